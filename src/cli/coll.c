/* SPDX-License-Identifier: Apache-2.0 */
/* coll.c - `stepcast coll`: one collective over sizes, as nccl-tests prints. */
#include <stepcast/cost.h>

#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

typedef struct coll_opts {
    const char *cluster, *algorithm;
    int64_t ranks;
    double min, max;
} coll_opts;

#define OFF(f) offsetof(coll_opts, f)
const sc_key cli_coll_keys[] = {
    {"cluster", SC_T_STRING, SC_U_NONE, OFF(cluster), NULL, 0, 0, NULL,
     "--cluster", "SPEC", "machine", false},
    {"ranks", SC_T_INT, SC_U_COUNT, OFF(ranks), NULL, 1, 1 << 24, NULL,
     "--ranks", "N", "members, the first N devices (default: all)", false},
    {"algorithm", SC_T_STRING, SC_U_NONE, OFF(algorithm), "auto", 0, 0, NULL,
     "--algorithm", "NAME", "auto, ring, tree, ...", false},
    {0},
};

typedef struct sizes {
    const char *min, *max;
} sizes;

const sc_key cli_coll_size_keys[] = {
    {"min", SC_T_STRING, SC_U_NONE, offsetof(sizes, min), "8", 0, 0, NULL,
     "--min", "SIZE", "smallest message; K, M, G are 2^10, 2^20, 2^30", false},
    {"max", SC_T_STRING, SC_U_NONE, offsetof(sizes, max), "8G", 0, 0, NULL,
     "--max", "SIZE", "largest message", false},
    {0},
};

/* nccl-tests' spelling: 8, 1K, 64M, 8G in powers of two; also units. */
static sc_status size_of(const char *text, const char *flag, double *out,
                         sc_err *err)
{
    size_t n = strlen(text);
    static const char suffix[] = "KMG";
    const char *at = n ? strchr(suffix, text[n - 1]) : NULL;
    char plain[32];
    if (n == 0 || n >= sizeof plain)
        return sc_error(err, SC_EUSAGE, SC_C_OPTION, sc_pos_file(flag), NULL,
                        "not a size: '%s'", text);
    bool digit = text[n - 1] >= '0' && text[n - 1] <= '9';
    if (!digit && (!at || !*at))
        return sc_unit_parse(text, SC_U_BYTES, sc_pos_file(flag), out, err);
    snprintf(plain, sizeof plain, "%.*s", (int)(digit ? n : n - 1), text);
    double factor = 1;
    for (const char *s = suffix; at && *at && s <= at; s++) factor *= 1024;
    SC_TRY(sc_unit_parse(plain, SC_U_NONE, sc_pos_file(flag), out, err));
    *out *= factor;
    return SC_OK;
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

static sc_status sweep(cli *c, const coll_opts *o, sc_coll coll, int algorithm,
                       table *x)
{
    const sc_hw *hw = NULL;
    sc_cost cost;
    SC_TRY(sc_hw_build(o->cluster, sc_pos_file("--cluster"), c->arena, &hw,
                       c->err));
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    uint32_t n = o->ranks ? (uint32_t)o->ranks : hw->n_devices, one = 1;
    if (n > hw->n_devices)
        return sc_error(c->err, SC_EINPUT, SC_C_RANGE, sc_pos_file("--ranks"),
                        NULL, "%u ranks on %u devices", n, hw->n_devices);
    if (!hw->device)
        return sc_error(c->err, SC_EINPUT, SC_C_MISSING,
                        sc_pos_file("--cluster"), "add '; device=h100-sxm'",
                        "the machine names no device");
    sc_place at = sc_hw_place(hw, 1, &n, &one);
    for (double v = o->min; v <= o->max * (1 + 1e-12); v *= 2) {
        sc_coll_price p;
        SC_TRY(sc_cost_coll(&cost, hw, coll, v, &at, algorithm, &p, c->err));
        if (p.seconds > 0) row(x, v, coll, n, &p);
    }
    return SC_OK;
}

static sc_status pick(cli *c, const coll_opts *o, const char *word,
                      sc_coll *coll, int *algorithm)
{
    int k = 0;
    while (sc_coll_names[k] && strcmp(sc_coll_names[k], word) != 0) k++;
    if (!sc_coll_names[k])
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        sc_nearest(word, sc_coll_names),
                        "unknown collective '%s'", word);
    *coll = (sc_coll)k;
    *algorithm = -1;
    if (o->algorithm && strcmp(o->algorithm, "auto") != 0) {
        *algorithm = sc_algorithm_find(o->algorithm);
        if (*algorithm < 0)
            return sc_error(c->err, SC_EUSAGE, SC_C_OPTION,
                            sc_pos_file("--algorithm"), "auto, ring, tree ...",
                            "unknown algorithm '%s'", o->algorithm);
    }
    return SC_OK;
}

sc_status cli_coll(cli *c, int argc, char *const *argv)
{
    coll_opts o = {0};
    sizes sz = {"8", "8G"};
    sc_opt_set sets[2] = {{cli_coll_keys, &o, {{0}}},
                          {cli_coll_size_keys, &sz, {{0}}}};
    sc_words words = {0};
    sc_coll coll = SC_ALL_REDUCE;
    int algorithm = -1;
    SC_TRY(cli_parse(c, argc, argv, sets, 2, &words));
    if (words.n != 1 || !o.cluster)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "stepcast coll all_reduce --cluster dgx-h100:2",
                        "coll needs a collective and --cluster");
    SC_TRY(pick(c, &o, words.w[0], &coll, &algorithm));
    SC_TRY(size_of(sz.min, "--min", &o.min, c->err));
    SC_TRY(size_of(sz.max, "--max", &o.max, c->err));
    if (!(o.min >= 1) || o.max < o.min)
        return sc_error(c->err, SC_EINPUT, SC_C_RANGE, sc_pos_file("--min"),
                        NULL, "sizes from %g to %g bytes", o.min, o.max);
    table x;
    sc_text_init(&x.t);
    sc_json_init(&x.j, true);
    sc_text_add(&x.t, "%14s %12s %10s %10s\n", "bytes", "time us", "algbw GB/s",
                "busbw GB/s");
    sc_json_begin(&x.j, '{');
    sc_json_key(&x.j, "schema");
    sc_json_string(&x.j, "stepcast.coll/1");
    sc_json_key(&x.j, "rows");
    sc_json_begin(&x.j, '[');
    sc_status s = sweep(c, &o, coll, algorithm, &x);
    sc_json_end(&x.j, ']');
    sc_json_end(&x.j, '}');
    if (s == SC_OK)
        s = c->json ? cli_emit_json(c, &x.j) : cli_emit_text(c, &x.t);
    sc_text_free(&x.t);
    sc_json_free(&x.j);
    return s;
}
