/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_table.c - recognises tables of kernels, and reads their cells. */
#include "calib/kernel_table.h"

#include "base/assert.h"
#include "calib/kernel_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct column {
    const char *name;
    double lo, hi;
} column;

#define KERNEL_COLUMN(id, name, lo, hi) [id] = {#name, lo, hi},

static const column columns[KERNEL_N_COLUMNS] = {KERNEL_COLUMNS(KERNEL_COLUMN)};

/* A table has all these columns. The first kind that fits counts. */
typedef struct kind {
    kernel_column columns[13]; /* K_NONE ends */
    void (*read)(kernel_reader *rd);
} kind;

static const kind kinds[CALIB_N_KERNEL_TABLES] = {
    [CALIB_T_GEMM] = {{K_DEVICE, K_SOFTWARE, K_DTYPE, K_M, K_N, K_K, K_SECONDS},
                      kernel_read_gemm},
    [CALIB_T_ATTENTION] = {{K_DEVICE, K_SOFTWARE, K_KERNEL, K_DTYPE, K_BATCH,
                            K_HEADS, K_KV_HEADS, K_HEAD_DIM, K_SEQ, K_CAUSAL,
                            K_WINDOW, K_SECONDS},
                           kernel_read_attention},
    [CALIB_T_MLA] = {{K_DEVICE, K_SOFTWARE, K_DTYPE, K_BATCH, K_HEADS, K_QK_DIM,
                      K_V_DIM, K_SEQ, K_CAUSAL, K_SECONDS},
                     kernel_read_mla},
    [CALIB_T_MOE] = {{K_DEVICE, K_SOFTWARE, K_DTYPE, K_TOKENS, K_HIDDEN,
                      K_INTER, K_GATED, K_EXPERTS, K_TOPK, K_EP, K_TP,
                      K_DISTRIBUTION, K_SECONDS},
                     kernel_read_moe},
    [CALIB_T_QUANT] = {{K_DEVICE, K_SOFTWARE, K_OPERATION, K_DTYPE, K_M, K_K,
                        K_SECONDS},
                       kernel_read_quant},
    [CALIB_T_COMM] = {{K_DEVICE, K_GPUS, K_OPERATION, K_DTYPE, K_BYTES,
                       K_LIBRARY, K_VERSION, K_SECONDS},
                      kernel_read_comm},
    [CALIB_T_DEEPEP] = {{K_DEVICE, K_NODES, K_GPUS, K_LIBRARY, K_OPERATION,
                         K_TOKENS, K_HIDDEN, K_TOPK, K_EXPERTS, K_SECONDS},
                        kernel_read_deepep},
    [CALIB_T_OPERATOR] = {{K_OPNAME, K_LATENCY, K_NS_DEVICE, K_NS_KERNEL, K_B},
                          kernel_read_operator},
    [CALIB_T_LAYER] = {{K_UP_TIME, K_N_HEAD, K_N_KV_HEAD, K_N_EMBD, K_N_FFN,
                        K_GATED_MLP, K_NUM_TOKENS, K_SHARDS},
                       kernel_read_layer},
    [CALIB_T_VIDUR_COLL] = {{K_WORKERS, K_SIZE, K_COLLECTIVE, K_PER_NODE,
                             K_MAX_PER_NODE},
                            kernel_read_vidur_coll},
    [CALIB_T_NETWORK] = {{K_RUN, K_NS_DEVICE, K_RUN_SECONDS, K_TRAINING,
                          K_TIMES, K_NAME, K_GRAPH_OP, K_FORWARD, K_BACKWARD,
                          K_ACCUMULATE, K_PREV, K_SHAPES},
                         kernel_read_network},
};

static bool find_kind(const sc_csv *t, calib_kernel_table *out)
{
    for (int i = 0; i < (int)CALIB_N_KERNEL_TABLES; i++) {
        bool all = true;
        for (const kernel_column *c = kinds[i].columns; *c && all; c++)
            all = sc_csv_col(t, columns[*c].name) >= 0;
        if (!all) continue;
        *out = (calib_kernel_table)i;
        return true;
    }
    return false;
}

bool calib_kernel_is_table(const sc_csv *t)
{
    calib_kernel_table table;
    return find_kind(t, &table);
}

/* ---- cells --------------------------------------------------------------- */

void kernel_fail(kernel_reader *rd, sc_status s)
{
    rd->bad = true;
    if (rd->status == SC_OK) rd->status = s;
}

const char *kernel_text(const kernel_reader *rd, kernel_column c)
{
    return sc_csv_get(rd->t, rd->i, rd->col[c]);
}

/* `lo` is -1 if the number has to be above 0. */
static double number(kernel_reader *rd, int col, double lo, double hi)
{
    const char *text = sc_csv_get(rd->t, rd->i, col);
    sc_pos pos = sc_csv_pos(rd->t, rd->i, col);
    double least = lo < 0 ? 0 : lo, v = least;
    sc_status s = sc_unit_parse(text, SC_U_NONE, pos, &v, rd->err);
    if (s == SC_OK && lo < 0 && v == 0)
        s = sc_error(rd->err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                     "column %s: it has to be more than 0", rd->t->header[col]);
    else if (s == SC_OK && (v < least || v > hi))
        s = sc_error(rd->err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                     "column %s: %.40s is outside %g to %g", rd->t->header[col],
                     text, least, hi);
    if (s == SC_OK) return v;
    kernel_fail(rd, s);
    return least;
}

double kernel_number(kernel_reader *rd, kernel_column c)
{
    const column *k = &columns[c];
    if (kernel_text(rd, c)[0] != '\0')
        return number(rd, rd->col[c], k->lo, k->hi);
    rd->missing = k->name;
    return k->lo < 0 ? 0 : k->lo;
}

uint64_t kernel_whole(kernel_reader *rd, kernel_column c)
{
    double v = kernel_number(rd, c);
    if (v == floor(v)) return (uint64_t)v;
    kernel_fail(rd, sc_error(rd->err, SC_EINPUT, SC_C_RANGE,
                             sc_csv_pos(rd->t, rd->i, rd->col[c]), NULL,
                             "column %s: %.40s is not a whole number",
                             columns[c].name, kernel_text(rd, c)));
    return (uint64_t)columns[c].lo;
}

uint64_t kernel_optional(kernel_reader *rd, kernel_column c, uint64_t otherwise)
{
    return kernel_text(rd, c)[0] == '\0' ? otherwise : kernel_whole(rd, c);
}

double kernel_optional_seconds(kernel_reader *rd, kernel_column c)
{
    return kernel_text(rd, c)[0] == '\0' ? NAN : kernel_number(rd, c);
}

bool kernel_vidur_seconds(kernel_reader *rd, const char *name, double *out)
{
    char text[80];
    snprintf(text, sizeof text, "time_stats.%.40s.median", name);
    int col = sc_csv_col(rd->t, text);
    if (sc_csv_get(rd->t, rd->i, col)[0] == '\0') return false;
    *out = 1e-3 * number(rd, col, 0, 1e9);
    return true;
}

/* ---- precisions ---------------------------------------------------------- */

typedef struct format {
    const char *name;
    sc_precision precision;
    sc_scaling scaling;
} format;

static const format formats[] = {
    {"fp32", SC_FP32, SC_SCALE_TENSOR}, {"tf32", SC_TF32, SC_SCALE_TENSOR},
    {"fp16", SC_FP16, SC_SCALE_TENSOR}, {"bf16", SC_BF16, SC_SCALE_TENSOR},
    {"fp8", SC_FP8, SC_SCALE_TENSOR},   {"fp8-block", SC_FP8, SC_SCALE_BLOCK},
    {"fp8-row", SC_FP8, SC_SCALE_ROW},  {"mxfp8", SC_FP8, SC_SCALE_MX},
    {"nvfp4", SC_FP4, SC_SCALE_MX},     {"mxfp4", SC_FP4, SC_SCALE_MX},
    {"int8", SC_INT8, SC_SCALE_ROW},
};

/* Other spellings, by what they contain; the first counts. */
static const format contained[] = {
    {"fp4", SC_FP4, SC_SCALE_MX},           {"mxfp8", SC_FP8, SC_SCALE_MX},
    {"block", SC_FP8, SC_SCALE_BLOCK},      {"blk", SC_FP8, SC_SCALE_BLOCK},
    {"row", SC_FP8, SC_SCALE_ROW},          {"channel", SC_FP8, SC_SCALE_ROW},
    {"token", SC_FP8, SC_SCALE_ROW},        {"fp8", SC_FP8, SC_SCALE_TENSOR},
    {"e4m3", SC_FP8, SC_SCALE_TENSOR},      {"e5m2", SC_FP8, SC_SCALE_TENSOR},
    {"int8", SC_INT8, SC_SCALE_ROW},        {"w8a8", SC_INT8, SC_SCALE_ROW},
    {"tf32", SC_TF32, SC_SCALE_TENSOR},     {"bf16", SC_BF16, SC_SCALE_TENSOR},
    {"bfloat16", SC_BF16, SC_SCALE_TENSOR}, {"fp16", SC_FP16, SC_SCALE_TENSOR},
    {"float16", SC_FP16, SC_SCALE_TENSOR},  {"half", SC_FP16, SC_SCALE_TENSOR},
    {"fp32", SC_FP32, SC_SCALE_TENSOR},     {"float", SC_FP32, SC_SCALE_TENSOR},
};

void kernel_precision(calib_kernel_row *row, const char *dtype,
                      sc_precision *precision, sc_scaling *scaling)
{
    const format *f = NULL;
    for (size_t i = 0; i < SC_COUNT(formats) && !f; i++)
        if (strcmp(dtype, formats[i].name) == 0) f = &formats[i];
    if (!f) {
        for (size_t i = 0; i < SC_COUNT(contained) && !f; i++)
            if (strstr(dtype, contained[i].name)) f = &contained[i];
        kernel_warn(row, f ? "unknown dtype; priced as the nearest known one"
                           : "unknown dtype; priced as bf16");
    }
    *precision = f ? f->precision : SC_BF16;
    *scaling = f ? f->scaling : SC_SCALE_TENSOR;
    if (row->device->peak[*precision] <= 0)
        kernel_warn(row, "no peak of this device for this dtype is known; "
                         "priced with that of a wider one");
}

/* ---- devices ------------------------------------------------------------- */

static const kernel_known *look_up(const kernel_known_list *l, const char *text,
                                   uint32_t nodes, uint32_t per_node)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->k[i].nodes == nodes && l->k[i].per_node == per_node &&
            strcmp(l->k[i].text, text) == 0)
            return &l->k[i];
    return NULL;
}

static const kernel_known *remember(kernel_reader *rd, kernel_known_list *l,
                                    kernel_known k)
{
    l->k = sc_grow(rd->a, l->k, l->n, &l->cap, 8, sizeof *l->k);
    if (!l->k) {
        kernel_fail(rd, sc_error_nomem(rd->err));
        l->n = l->cap = 0;
        return NULL;
    }
    l->k[l->n] = k;
    return &l->k[l->n++];
}

/* Names in the column `device` that mean another board than in the catalogue
 * (README.md of the tables). */
static const char *renamed(const kernel_reader *rd, const char *text)
{
    if (rd->table <= CALIB_T_DEEPEP && strcmp(text, "rtx-pro-6000") == 0)
        return "rtx-pro-6000-server";
    return text;
}

static const kernel_known *device_of(kernel_reader *rd, const char *text)
{
    const kernel_known *known = look_up(&rd->devices, text, 0, 0);
    if (known) return known;
    const sc_device *d = NULL;
    const char *warning = NULL;
    sc_status s =
        sc_device_nearest(renamed(rd, text), rd->a, &d, &warning, rd->err);
    if (s != SC_OK) {
        kernel_fail(rd, s);
        return NULL;
    }
    return remember(
        rd, &rd->devices,
        (kernel_known){.text = text, .value = d, .warning = warning});
}

/* Builds a machine; on failure the reason is the warning. */
static kernel_known build(const kernel_reader *rd, const char *device,
                          kernel_known k)
{
    sc_err why;
    const sc_hw *hw = NULL;
    sc_err_init(&why);
    sc_pos pos = sc_csv_pos(rd->t, rd->i, -1);
    char spec[80];
    int n = snprintf(spec, sizeof spec, "%s:%u", k.text, k.nodes);
    sc_status s = k.text != device
                      ? sc_hw_build(n < (int)sizeof spec ? spec : "", pos,
                                    rd->a, &hw, &why)
                      : sc_hw_from_numbers(device, k.nodes, k.per_node, 0, 0,
                                           pos, rd->a, &hw, &why);
    if (s == SC_OK)
        k.value = hw;
    else
        k.warning = "no machine with so many devices can be built";
    return k;
}

const sc_hw *kernel_machine(kernel_reader *rd, calib_kernel_row *row,
                            const char *spec, uint32_t nodes, uint32_t per_node)
{
    const char *device = row->device->name, *text = spec ? spec : device;
    const kernel_known *k = look_up(&rd->machines, text, nodes, per_node);
    if (!k)
        k = remember(rd, &rd->machines,
                     build(rd, device,
                           (kernel_known){.text = text,
                                          .nodes = nodes,
                                          .per_node = per_node}));
    if (!k) return NULL;
    if (!k->value) row->reason = k->warning;
    return k->value;
}

/* ---- rows ---------------------------------------------------------------- */

void kernel_warn(calib_kernel_row *row, const char *warning)
{
    if (row->n_warnings < CALIB_KERNEL_WARNINGS)
        row->warning[row->n_warnings++] = warning;
}

static const char *id_of(const kernel_reader *rd, const char *suffix)
{
    const char *file = rd->t->file ? rd->t->file : "table";
    const char *slash = strrchr(file, '/');
    return sc_sprintf(rd->a, "%s:%u%s%s", slash ? slash + 1 : file,
                      rd->t->line[rd->i], suffix ? ":" : "",
                      suffix ? suffix : "");
}

calib_kernel_row *kernel_row(kernel_reader *rd, const char *device,
                             const char *operation, const char *suffix)
{
    const kernel_known *known = device_of(rd, device);
    if (!known || rd->bad) return NULL;
    rd->rows = sc_grow(rd->a, rd->rows, rd->n, &rd->cap, 256, sizeof *rd->rows);
    const char *id = id_of(rd, suffix);
    if (!rd->rows || !id || !operation) {
        kernel_fail(rd, sc_error_nomem(rd->err));
        rd->n = rd->cap = 0;
        return NULL;
    }
    calib_kernel_row *r = &rd->rows[rd->n++];
    *r = (calib_kernel_row){.pos = sc_csv_pos(rd->t, rd->i, -1),
                            .id = id,
                            .table = rd->table,
                            .operation = operation,
                            .device_text = device,
                            .device = known->value,
                            .software = kernel_text(rd, K_SOFTWARE),
                            .dtype = kernel_text(rd, K_DTYPE),
                            .cast_seconds = NAN};
    if (known->warning) kernel_warn(r, known->warning);
    if (rd->missing)
        r->reason =
            sc_sprintf(rd->a, "the cell of column %s is empty", rd->missing);
    rd->n_parts = 0;
    return r;
}

void kernel_push(kernel_reader *rd, sc_kernel k)
{
    kernel_push_times(rd, k, 1);
}

void kernel_push_times(kernel_reader *rd, sc_kernel k, uint64_t times)
{
    sc_assert(rd->n_parts < KERNEL_PARTS);
    rd->times[rd->n_parts] = (double)times;
    rd->part[rd->n_parts++] = k;
}

void kernel_finish(kernel_reader *rd, calib_kernel_row *row)
{
    sc_kernel *part = SC_NEW_N(rd->a, sc_kernel, rd->n_parts);
    if (!part) {
        kernel_fail(rd, sc_error_nomem(rd->err));
        return;
    }
    memcpy(part, rd->part, rd->n_parts * sizeof *part);
    row->part = part;
    row->n_parts = rd->n_parts;
}

/* Room for one more kernel of the last row. */
static bool run_grow(kernel_reader *rd, uint32_t n)
{
    uint32_t cap = rd->run_cap;
    sc_kernel *part =
        sc_grow(rd->a, rd->run_part, n, &cap, 64, sizeof *rd->run_part);
    cap = rd->run_cap;
    double *times =
        sc_grow(rd->a, rd->run_times, n, &cap, 64, sizeof *rd->run_times);
    if (!part || !times) return false;
    rd->run_part = part;
    rd->run_times = times;
    rd->run_cap = cap;
    return true;
}

void kernel_append(kernel_reader *rd, calib_kernel_row *row)
{
    if (row->n_parts == 0) {
        rd->run_part = NULL;
        rd->run_times = NULL;
        rd->run_cap = 0;
    }
    for (uint32_t i = 0; i < rd->n_parts; i++) {
        if (!run_grow(rd, row->n_parts)) {
            kernel_fail(rd, sc_error_nomem(rd->err));
            return;
        }
        rd->run_part[row->n_parts] = rd->part[i];
        rd->run_times[row->n_parts++] = rd->times[i];
    }
    row->part = rd->run_part;
    row->times = rd->run_times;
    if (row->n_parts) row->reason = NULL;
}

sc_status calib_kernel_rows_read(const sc_csv *t, sc_arena *a,
                                 calib_kernel_row **out, uint32_t *n,
                                 sc_err *err)
{
    kernel_reader rd = {.t = t, .a = a, .err = err};
    if (!find_kind(t, &rd.table))
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                        (sc_pos){t->file, 1, 1},
                        "data/validation/README.md lists the columns",
                        "this is no table of kernels");
    for (int c = 0; c < (int)KERNEL_N_COLUMNS; c++)
        rd.col[c] = c == K_NONE ? -1 : sc_csv_col(t, columns[c].name);
    for (rd.i = 0; rd.i < t->n_rows; rd.i++) {
        rd.bad = false;
        rd.missing = NULL;
        kinds[rd.table].read(&rd);
        if (rd.status == SC_ENOMEM) break;
    }
    if (rd.status != SC_OK) return rd.status;
    *out = rd.rows;
    *n = rd.n;
    return SC_OK;
}
