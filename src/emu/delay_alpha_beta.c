/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_alpha_beta.c - reads alpha-beta:FILE:
 *
 *   ranks: 2
 *   default: {alpha: 20us, beta: 1GB/s}
 *   all_reduce: {alpha: 30us, beta: 1.2GB/s, cpu_alpha: 5us, cpu_beta: 8GB/s}
 */
#include "emu/delay_file.h"

#include <float.h>
#include <stddef.h>

typedef struct entry {
    double alpha, beta, cpu_alpha, cpu_beta;
    int64_t ranks;
} entry;

#define FIELD(field) offsetof(entry, field)
#define MAX_S        86400.0

static const sc_key entry_keys[] = {
    {.name = "alpha",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TIME,
     .offset = FIELD(alpha),
     .max = MAX_S,
     .required = true,
     .help = "time at 0 bytes"},
    {.name = "beta",
     .type = SC_T_QUANTITY,
     .unit = SC_U_RATE,
     .offset = FIELD(beta),
     .min = 1,
     .max = DBL_MAX,
     .required = true,
     .help = "bytes per second"},
    {.name = "cpu_alpha",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TIME,
     .offset = FIELD(cpu_alpha),
     .def = "0us",
     .max = MAX_S,
     .help = "CPU time of a rank at 0 bytes"},
    {.name = "cpu_beta",
     .type = SC_T_QUANTITY,
     .unit = SC_U_RATE,
     .offset = FIELD(cpu_beta),
     .min = 1,
     .max = DBL_MAX,
     .help = "bytes per second of CPU time"},
    {.name = "ranks",
     .type = SC_T_INT,
     .offset = FIELD(ranks),
     .min = 2,
     .max = UINT32_MAX,
     .help = "size of the groups that these values apply to"},
    {0},
};

/* Keys of a file: the operations that programs call, in the order of
 * sc_coll. */
typedef struct file_keys {
    const sc_node *op[SC_N_CALLED_COLLS], *other;
    int64_t ranks;
} file_keys;

static void describe(sc_key key[SC_N_CALLED_COLLS + 3])
{
    uint32_t n = 0;
    for (; n < SC_N_CALLED_COLLS; n++)
        key[n] = (sc_key){.name = sc_coll_names[n],
                          .type = SC_T_NODE,
                          .offset = offsetof(file_keys, op) +
                                    n * sizeof(const sc_node *)};
    key[n++] = (sc_key){.name = "default",
                        .type = SC_T_NODE,
                        .offset = offsetof(file_keys, other)};
    key[n++] = (sc_key){.name = "ranks",
                        .type = SC_T_INT,
                        .offset = offsetof(file_keys, ranks),
                        .min = 2,
                        .max = UINT32_MAX};
    key[n] = (sc_key){0};
}

/* alpha + bytes / rate; rate 0: alpha alone. */
static bool line(double alpha, double rate, sc_arena *a, delay_curve *out)
{
    double *v = SC_NEW_N(a, double, 2);
    if (v == NULL) return false;
    v[1] = alpha;
    *out = (delay_curve){
        .n = 1, .bytes = v, .value = v + 1, .tail = rate > 0 ? 1 / rate : 0};
    return true;
}

static sc_status read_entry(const sc_node *node, int64_t ranks, sc_arena *a,
                            delay_op_rows *out, sc_err *err)
{
    entry e = {.ranks = ranks};
    SC_TRY(sc_schema_defaults(entry_keys, &e, a, err));
    SC_TRY(sc_schema_read(entry_keys, node, &e, NULL, a, err));
    delay_rows *r = SC_NEW(a, delay_rows);
    if (r == NULL || !line(e.alpha, e.beta, a, &r->time) ||
        !line(e.cpu_alpha, e.cpu_beta, a, &r->cpu))
        return sc_error_nomem(err);
    r->ranks = (uint32_t)e.ranks;
    if (e.cpu_alpha == 0 && e.cpu_beta == 0) r->cpu.n = 0;
    *out = (delay_op_rows){r, 1};
    return SC_OK;
}

sc_status delay_alpha_beta_read(const char *text, size_t len, const char *file,
                                sc_arena *a, delay_file *out, sc_err *err)
{
    sc_node *root = NULL;
    sc_key key[SC_N_CALLED_COLLS + 3];
    file_keys k = {.ranks = 0};
    delay_file f = {.name = file};
    describe(key);
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    sc_status first = sc_schema_read(key, root, &k, NULL, a, err);
    /* entries are checked even if the file has other errors */
    for (uint32_t i = 0; i <= SC_N_CALLED_COLLS; i++) {
        const char *name = i < SC_N_CALLED_COLLS ? sc_coll_names[i] : "default";
        const sc_node *node =
            root->kind == SC_N_MAP ? sc_node_get(root, name) : NULL;
        if (node == NULL) continue;
        sc_status s = read_entry(
            node, k.ranks, a, i < SC_N_CALLED_COLLS ? &f.op[i] : &f.other, err);
        if (first == SC_OK) first = s;
    }
    if (first == SC_OK && (root->kind != SC_N_MAP || root->n == (k.ranks != 0)))
        first = sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                         "write default: {alpha: 20us, beta: 1GB/s}",
                         "no operation has a time");
    if (first == SC_OK) *out = f;
    return first;
}
