/* SPDX-License-Identifier: Apache-2.0 */
/* coll.c - `stepcast coll`: one collective over sizes, printed like
 * nccl-tests. */
#include "cli/predict.h"
#include "coll/coll_search.h"
#include "cost/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *cluster, *least, *most, *profile;
    int64_t ranks;
    int algorithm; /* index of algorithm_names */
} options;

/* "auto", then the algorithms in the library's order. */
static const char *const algorithm_names[] = {
    "auto", "ring",      "tree",    "hierarchical", "direct",
    "nvls", "nvls_tree", "collnet", "pat",          NULL};

_Static_assert(SC_COUNT(algorithm_names) == SC_N_ALGOS + 2, "names");

#define OFF(f) offsetof(options, f)
const sc_key cli_coll_keys[] = {
    {.name = "cluster",
     .type = SC_T_STRING,
     .offset = OFF(cluster),
     .flag = "--cluster",
     .meta = "SPEC",
     .help = "machine"},
    {.name = "ranks",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(ranks),
     .min = 1,
     .max = 1 << 24,
     .flag = "--ranks",
     .meta = "N",
     .help = "members, the first N devices (default: all)"},
    {.name = "algorithm",
     .type = SC_T_ENUM,
     .offset = OFF(algorithm),
     .def = "auto",
     .names = algorithm_names,
     .flag = "--algorithm",
     .help = "the algorithm; auto: the library chooses"},
    {.name = "min",
     .type = SC_T_STRING,
     .offset = OFF(least),
     .def = "8",
     .flag = "--min",
     .meta = "SIZE",
     .help = "smallest message; K, M, G are 2^10, 2^20, 2^30"},
    {.name = "max",
     .type = SC_T_STRING,
     .offset = OFF(most),
     .def = "8G",
     .flag = "--max",
     .meta = "SIZE",
     .help = "largest message"},
    {.name = "profile",
     .type = SC_T_STRING,
     .offset = OFF(profile),
     .flag = "--profile",
     .meta = "FILE",
     .help = "parameters as written by calibrate"},
    {0},
};

#define MAX_MESSAGE 0x1p50

/* Sizes as in nccl-tests: 8, 1K, 64M, 8G in powers of two; also with units. */
static sc_status read_size(const char *text, sc_pos pos, double *out,
                           sc_err *err)
{
    static const char suffix[] = "KMG";
    size_t n = strlen(text);
    const char *at = n ? strchr(suffix, text[n - 1]) : NULL;
    bool digit = n && text[n - 1] >= '0' && text[n - 1] <= '9';
    char plain[32];
    if (n == 0 || n >= sizeof plain)
        return sc_error(err, SC_EINPUT, SC_C_UNIT, pos, "write it like 64M",
                        "\"%.40s\" is not a size", text);
    if (!digit && !at) return sc_unit_parse(text, SC_U_BYTES, pos, out, err);
    snprintf(plain, sizeof plain, "%.*s", (int)(digit ? n : n - 1), text);
    SC_TRY(sc_unit_parse(plain, SC_U_NONE, pos, out, err));
    for (const char *s = suffix; at && s <= at; s++) *out *= 1024;
    return SC_OK;
}

static sc_status size_of(const cli *c, const char *text, const char *flag,
                         double *out)
{
    const char *shown = sc_sprintf(c->arena, "%s %.60s", flag, text);
    if (!shown) return sc_error_nomem(c->err);
    sc_pos pos = sc_pos_file(shown);
    if (read_size(text, pos, out, c->err) != SC_OK)
        return c->err->status = SC_EUSAGE; /* it can't be parsed */
    if (*out < 1 || *out > MAX_MESSAGE)
        return sc_error(c->err, SC_EUSAGE, SC_C_RANGE, pos,
                        "a message is from 1 byte to 2^50",
                        "the size is out of range");
    if (*out == floor(*out)) return SC_OK;
    return sc_error(c->err, SC_EUSAGE, SC_C_RANGE, pos,
                    "a message has whole bytes", "%.17g bytes", *out);
}

typedef struct table {
    sc_text t;
    sc_json j;
} table;

static void row(table *x, double bytes, sc_coll coll, uint32_t n,
                const sc_coll_price *p, const double interval[2])
{
    double alg = bytes / p->seconds / 1e9;
    double bus = alg * sc_coll_bus_factor(coll, n);
    uint32_t count = 0;
    const sc_algorithm *a = sc_algorithms(&count);
    const char *name = p->algorithm >= 0 ? a[p->algorithm].name : "none";
    sc_text_add(&x->t, "%14.0f %12.2f %10.2f %10.2f   %s %s\n", bytes,
                p->seconds * 1e6, alg, bus, name, p->protocol);
    sc_json_begin(&x->j, '{');
    sc_json_key(&x->j, "bytes");
    sc_json_double(&x->j, bytes);
    sc_json_key(&x->j, "time_us");
    sc_json_double(&x->j, p->seconds * 1e6);
    sc_json_put_double(&x->j, "time_low_us", interval[0] * 1e6);
    sc_json_put_double(&x->j, "time_high_us", interval[1] * 1e6);
    sc_json_key(&x->j, "algbw_GBps");
    sc_json_double(&x->j, alg);
    sc_json_key(&x->j, "busbw_GBps");
    sc_json_double(&x->j, bus);
    sc_json_key(&x->j, "algorithm");
    sc_json_string(&x->j, name);
    sc_json_key(&x->j, "protocol");
    sc_json_string(&x->j, p->protocol);
    sc_json_end(&x->j, '}');
}

/* The collectives to price. */
typedef struct sweep_of {
    const sc_hw *hw;
    sc_cost cost;
    sc_coll coll;
    sc_place at;
} sweep_of;

static sc_status at_option(const cli *c, sc_code code, const char *option,
                           const char *hint, const char *what)
{
    return sc_error(c->err, SC_EINPUT, code, sc_pos_file(option), hint, "%s",
                    what);
}

static sc_status load(cli *c, const options *o, sweep_of *w)
{
    SC_TRY(sc_hw_build(o->cluster, sc_pos_file("--cluster"), c->arena, &w->hw,
                       c->err));
    SC_TRY(sc_cost_builtin(c->arena, &w->cost, c->err));
    SC_TRY(sc_cost_profile(o->profile, c->arena, &w->cost, c->err));
    const sc_hw *hw = w->hw;
    uint32_t n = o->ranks ? (uint32_t)o->ranks : hw->n_devices, one = 1;
    const char *ranks = sc_sprintf(c->arena, "--ranks %u", n);
    if (!ranks) return sc_error_nomem(c->err);
    if (n > hw->n_devices)
        return sc_error(c->err, SC_EINPUT, SC_C_RANGE, sc_pos_file(ranks), NULL,
                        "%u ranks on %u devices", n, hw->n_devices);
    if (n < 2)
        return at_option(c, SC_C_RANGE, o->ranks ? ranks : "--cluster",
                         "a collective has two members or more",
                         "a collective of one rank moves no data");
    if (!hw->device)
        return at_option(c, SC_C_MISSING, "--cluster",
                         "add \"; device=h100-sxm\"",
                         "the cluster has no device");
    w->at = sc_hw_place(hw, 1, &n, &one);
    return SC_OK;
}

/* If the user chose an algorithm that can't run, the error is at that
 * option. */
static sc_status no_price(const cli *c, const options *o, const sweep_of *w,
                          sc_status s)
{
    if (s != SC_EINPUT || o->algorithm == 0 || c->err->n != 1 ||
        c->err->d[0].code != SC_C_UNSUPPORTED ||
        !strstr(c->err->d[0].msg, algorithm_names[o->algorithm]))
        return s; /* the error has another reason */
    const char *name = algorithm_names[o->algorithm];
    const char *option = sc_sprintf(c->arena, "--algorithm %s", name);
    if (!option) return sc_error_nomem(c->err);
    sc_err_init(c->err);
    return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(option),
                    "leave it out: the library chooses",
                    "%s can't run as %s over %u devices of %s",
                    sc_coll_names[w->coll], name, w->at.n, w->hw->name);
}

static sc_status sweep(cli *c, const options *o, const sweep_of *w,
                       const double size[2], table *x)
{
    double v = size[0];
    for (int i = 0; v <= size[1] * (1 + 1e-12) && i < 64; i++) {
        sc_coll_price p;
        double interval[2];
        sc_status s = sc_cost_coll(&w->cost, w->hw, w->coll, v, &w->at,
                                   o->algorithm - 1, &p, c->err);
        if (s != SC_OK) return no_price(c, o, w, s);
        sc_cost_coll_interval(&w->cost, w->hw, &w->at, v, &p, &interval[0],
                              &interval[1]);
        row(x, v, w->coll, w->at.n, &p, interval);
        v *= 2;
    }
    return SC_OK;
}

static sc_status assumptions(const cli *c, const sweep_of *w, sc_json *j)
{
    sc_json_key(j, "assumptions");
    sc_json_begin(j, '[');
    if (w->hw->nccl_assumed && sc_nccl_sm(w->hw) > 0) {
        const char *text = sc_sprintf(
            c->arena,
            "algorithms are those of NCCL %s, the usual release on devices of "
            "this generation: the cluster names none (key nccl)",
            sc_nccl_names[w->hw->nccl]);
        if (!text) return sc_error_nomem(c->err);
        sc_json_string(j, text);
    }
    const char *nodes = sc_hw_assumed(w->hw, c->arena);
    if (nodes) {
        sc_json_string(j, nodes);
        cli_note(c, "note: %s\n", nodes);
    }
    sc_json_end(j, ']');
    return SC_OK;
}

/* Names the size at which NCCL's choice loses most. */
static void slow_choice(cli *c, const sweep_of *w, const double size[2],
                        sc_json *j)
{
    sc_coll_slow slow, worst = {0};
    double v = size[0], at = 0;
    for (int i = 0; v <= size[1] * (1 + 1e-12) && i < 64; i++, v *= 2) {
        if (!sc_cost_coll_slow(&w->cost, w->hw, w->coll, v, &w->at, &slow) ||
            (at > 0 &&
             slow.seconds * worst.best_s <= worst.seconds * slow.best_s))
            continue;
        worst = slow;
        at = v;
    }
    if (!(at > 0)) return;
    sc_text t;
    sc_text_init(&t);
    sc_cost_coll_slow_text(&worst, w->coll, at, &w->at, 0, &t);
    if (!t.failed) {
        sc_json_string(j, t.buf);
        cli_note(c, "warning: %s\n", t.buf);
    }
    sc_text_free(&t);
}

static void warnings(cli *c, const options *o, const sweep_of *w,
                     const double size[2], sc_json *j)
{
    sc_json_key(j, "warnings");
    sc_json_begin(j, '[');
    if (!sc_cost_calibrated(&w->cost, w->hw, &w->at)) {
        static const char text[] =
            "the network between the nodes is not calibrated: times may differ "
            "by a factor of 2; `stepcast calibrate --nccl-tests LOG` makes a "
            "profile from a log of it";
        sc_json_string(j, text);
        cli_note(c, "warning: %s\n", text);
    }
    if (o->algorithm == 0) slow_choice(c, w, size, j);
    sc_json_end(j, ']');
}

static sc_status find_coll(cli *c, const char *word, sc_coll *coll)
{
    *coll = sc_coll_find(word);
    if (*coll == SC_N_COLLS || sc_coll_priced(*coll) != *coll)
        return sc_error(
            c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
            cli_hint(c, word, sc_priced_coll_names, "for example all_reduce"),
            "unknown collective \"%.60s\"", word);
    return SC_OK;
}

static sc_status print(cli *c, const options *o, const sweep_of *w,
                       const double size[2])
{
    table x;
    sc_text_init(&x.t);
    sc_json_init(&x.j, true);
    sc_text_add(&x.t, "%14s %12s %10s %10s   %s\n", "bytes", "time us",
                "algbw GB/s", "busbw GB/s", "algorithm");
    sc_json_begin(&x.j, '{');
    sc_json_key(&x.j, "schema");
    sc_json_string(&x.j, "stepcast.coll/1");
    sc_json_key(&x.j, "rows");
    sc_json_begin(&x.j, '[');
    sc_status s = sweep(c, o, w, size, &x);
    sc_json_end(&x.j, ']');
    if (s == SC_OK) s = assumptions(c, w, &x.j);
    if (s == SC_OK) warnings(c, o, w, size, &x.j);
    sc_json_end(&x.j, '}');
    if (s == SC_OK)
        s = c->json ? cli_emit_json(c, &x.j) : cli_emit_text(c, &x.t);
    sc_text_free(&x.t);
    sc_json_free(&x.j);
    return s;
}

sc_status cli_coll(cli *c, int argc, char *const *argv)
{
    options o = {0};
    sc_opt_set set = {cli_coll_keys, &o, {{0}}};
    sc_words words = {0};
    sweep_of w = {.coll = SC_ALL_REDUCE};
    double size[2] = {0, 0};
    SC_TRY(sc_schema_defaults(cli_coll_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (words.n != 1 || !o.cluster)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example stepcast coll all_reduce --cluster "
                        "dgx-h100:2",
                        "coll needs a collective and --cluster");
    SC_TRY(find_coll(c, words.w[0], &w.coll));
    SC_TRY(size_of(c, o.least, "--min", &size[0]));
    SC_TRY(size_of(c, o.most, "--max", &size[1]));
    if (size[1] < size[0])
        return sc_error(
            c->err, SC_EINPUT, SC_C_RANGE,
            sc_pos_file(sc_sprintf(c->arena, "--max %.60s", o.most)), NULL,
            "less than --min %.60s", o.least);
    SC_TRY(load(c, &o, &w));
    return print(c, &o, &w, size);
}
