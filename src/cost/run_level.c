/* SPDX-License-Identifier: Apache-2.0 */
/* run_level.c - reads the level of published runs. */
#include "cost/cost_run_level.h"

typedef struct values {
    double factor, low, high;
    int64_t rows, publishers;
} values;

#define NUMBER(key, field, from, to, about)                                    \
    {                                                                          \
        .name = key, .type = SC_T_QUANTITY, .offset = offsetof(values, field), \
        .min = from, .max = to, .required = true, .help = about                \
    }
#define COUNT(key, field, about)                                     \
    {                                                                \
        .name = key, .type = SC_T_INT, .unit = SC_U_COUNT,           \
        .offset = offsetof(values, field), .min = 1, .max = 1000000, \
        .required = true, .help = about                              \
    }

static const sc_key keys[] = {
    NUMBER("factor", factor, 0.1, 100, "published over predicted time"),
    NUMBER("low", low, -10, 10, "quantile 10 % of the logarithm of errors"),
    NUMBER("high", high, -10, 10, "quantile 90 % of it"),
    COUNT("rows", rows, "published runs"),
    COUNT("publishers", publishers, "of these"),
    {.name = NULL}};

static sc_status read_tree(const sc_node *root, sc_arena *a, sc_run_level *out,
                           sc_err *err)
{
    const sc_node *map =
        root->kind == SC_N_MAP ? sc_node_get(root, "run_level") : NULL;
    values v = {0};
    if (!map || map->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, root->pos,
                        "`stepcast calibrate --whole-runs` writes such a file",
                        "the file has no map 'run_level'");
    SC_TRY(sc_schema_read(keys, map, &v, NULL, a, err));
    if (v.low > v.high)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, map->pos,
                        "write the lower quantile as low", "low is above high");
    *out = (sc_run_level){.factor = v.factor,
                          .low = v.low,
                          .high = v.high,
                          .rows = (uint32_t)v.rows,
                          .publishers = (uint32_t)v.publishers};
    return SC_OK;
}

sc_status sc_run_level_read(const char *text, size_t len, const char *file,
                            sc_arena *a, sc_run_level *out, sc_err *err)
{
    sc_node *root = NULL;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    return read_tree(root, a, out, err);
}

sc_status sc_run_level_builtin(sc_arena *a, sc_run_level *out, sc_err *err)
{
    sc_node *root = NULL;
    const sc_embedded *e = sc_embedded_find("fit/whole-run.yml");
    *out = (sc_run_level){.factor = 1};
    if (!e) return SC_OK;
    SC_TRY(sc_embedded_read(e, a, &root, err));
    return read_tree(root, a, out, err);
}
