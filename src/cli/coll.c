/* SPDX-License-Identifier: Apache-2.0 */
/* coll.c - `stepcast coll`: one collective over sizes, as nccl-tests prints. */
#include <stepcast/cost.h>

#include "cli/predict.h"

#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *cluster, *least, *most, *profile;
    int64_t ranks;
    int algorithm; /* index of algorithm_names */
} options;

/* "auto", then the algorithms in the library's order. */
static const char *const algorithm_names[] = {
    "auto", "ring", "tree", "hierarchical", "direct", "nvls", NULL};

_Static_assert(SC_COUNT(algorithm_names) == SC_N_ALGOS + 2, "names");

#define OFF(f) offsetof(options, f)
const sc_key cli_coll_keys[] = {
    {"cluster", SC_T_STRING, SC_U_NONE, OFF(cluster), NULL, 0, 0, NULL,
     "--cluster", "SPEC", "machine", false},
    {"ranks", SC_T_INT, SC_U_COUNT, OFF(ranks), NULL, 1, 1 << 24, NULL,
     "--ranks", "N", "members, the first N devices (default: all)", false},
    {"algorithm", SC_T_ENUM, SC_U_NONE, OFF(algorithm), "auto", 0, 0,
     algorithm_names, "--algorithm", NULL, "how it is done", false},
    {"min", SC_T_STRING, SC_U_NONE, OFF(least), "8", 0, 0, NULL, "--min",
     "SIZE", "smallest message; K, M, G are 2^10, 2^20, 2^30", false},
    {"max", SC_T_STRING, SC_U_NONE, OFF(most), "8G", 0, 0, NULL, "--max",
     "SIZE", "largest message", false},
    {"profile", SC_T_STRING, SC_U_NONE, OFF(profile), NULL, 0, 0, NULL,
     "--profile", "FILE", "parameters as written by calibrate", false},
    {0},
};

#define MAX_MESSAGE 0x1p50

/* nccl-tests' spelling: 8, 1K, 64M, 8G in powers of two; also units. */
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
    if (*out >= 1 && *out <= MAX_MESSAGE) return SC_OK;
    return sc_error(c->err, SC_EUSAGE, SC_C_RANGE, pos,
                    "a message is from 1 byte to 2^50",
                    "the size is out of range");
}

typedef struct table {
    sc_text t;
    sc_json j;
} table;

static void row(table *x, double bytes, sc_coll coll, uint32_t n,
                const sc_coll_price *p)
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

static sc_status sweep(cli *c, const options *o, sc_coll coll,
                       const double size[2], table *x)
{
    const sc_hw *hw = NULL;
    sc_cost cost;
    SC_TRY(sc_hw_build(o->cluster, sc_pos_file("--cluster"), c->arena, &hw,
                       c->err));
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    SC_TRY(cli_profile(c, o->profile, &cost));
    uint32_t n = o->ranks ? (uint32_t)o->ranks : hw->n_devices, one = 1;
    if (n > hw->n_devices)
        return sc_error(c->err, SC_EINPUT, SC_C_RANGE,
                        sc_pos_file(sc_sprintf(c->arena, "--ranks %u", n)),
                        NULL, "%u ranks on %u devices", n, hw->n_devices);
    if (!hw->device)
        return sc_error(c->err, SC_EINPUT, SC_C_MISSING,
                        sc_pos_file("--cluster"), "add \"; device=h100-sxm\"",
                        "the machine names no device");
    sc_place at = sc_hw_place(hw, 1, &n, &one);
    double v = size[0];
    for (int i = 0; v <= size[1] * (1 + 1e-12) && i < 64; i++) {
        sc_coll_price p;
        SC_TRY(sc_cost_coll(&cost, hw, coll, v, &at, o->algorithm - 1, &p,
                            c->err));
        if (p.seconds > 0) row(x, v, coll, n, &p);
        v *= 2;
    }
    return SC_OK;
}

static sc_status find_coll(cli *c, const char *word, sc_coll *coll)
{
    int k = 0;
    while (sc_coll_names[k] && strcmp(sc_coll_names[k], word) != 0) k++;
    if (!sc_coll_names[k])
        return sc_error(
            c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
            cli_hint(c, word, sc_coll_names, "for example all_reduce"),
            "unknown collective \"%.60s\"", word);
    *coll = (sc_coll)k;
    return SC_OK;
}

static sc_status print(cli *c, const options *o, sc_coll coll,
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
    sc_status s = sweep(c, o, coll, size, &x);
    sc_json_end(&x.j, ']');
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
    sc_coll coll = SC_ALL_REDUCE;
    double size[2] = {0, 0};
    SC_TRY(sc_schema_defaults(cli_coll_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (words.n != 1 || !o.cluster)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example stepcast coll all_reduce --cluster "
                        "dgx-h100:2",
                        "coll needs a collective and --cluster");
    SC_TRY(find_coll(c, words.w[0], &coll));
    SC_TRY(size_of(c, o.least, "--min", &size[0]));
    SC_TRY(size_of(c, o.most, "--max", &size[1]));
    if (size[1] < size[0])
        return sc_error(
            c->err, SC_EINPUT, SC_C_RANGE,
            sc_pos_file(sc_sprintf(c->arena, "--max %.60s", o.most)), NULL,
            "less than --min %.60s", o.least);
    return print(c, &o, coll, size);
}
