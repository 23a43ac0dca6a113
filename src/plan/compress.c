/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress.c - gradients that are compressed for an exchange: its bytes, and
 * the kernels that compress and decompress.
 *
 * Formats of 8 and 16 bits use the collective that the layouts imply.  Top-k
 * selects different elements on every replica, so these are gathered with their
 * indices.  PowerSGD sums two thin factors instead of a matrix.
 */
#include "plan/compress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    double bytes; /* per element; 0: elements have no fixed size */
    double lo, hi;
} formats[] = {
    [SC_GRAD_PLAIN] = {"none", 0, 0, 0},
    [SC_GRAD_FP16] = {"fp16", 2, 0, 0},
    [SC_GRAD_BF16] = {"bf16", 2, 0, 0},
    [SC_GRAD_FP8] = {"fp8", 1, 0, 0},
    [SC_GRAD_INT8] = {"int8", 1, 0, 0},
    [SC_GRAD_TOPK] = {"topk", 0, 0, 1},
    [SC_GRAD_POWERSGD] = {"powersgd", 0, 1, 4096},
};

sc_status sc_compress_read(const char *text, sc_pos pos, sc_compress *out,
                           sc_err *err)
{
    size_t len = strcspn(text, ":"), i = 0;
    while (i < SC_COUNT(formats) && (strlen(formats[i].name) != len ||
                                     strncmp(text, formats[i].name, len) != 0))
        i++;
    if (i == SC_COUNT(formats))
        return sc_error(
            err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos,
            "none, fp16, bf16, fp8, int8, topk:FRACTION or powersgd:RANK",
            "unknown format \"%.40s\"", text);
    sc_compress c = {(sc_compress_kind)i, 0};
    char *end = NULL;
    bool sized = formats[i].hi > 0, is_rank = c.kind == SC_GRAD_POWERSGD;
    if (text[len] == ':') c.arg = strtod(text + len + 1, &end);
    if (sized != (end != NULL) || (end && (*end || end == text + len + 1)))
        return sc_error(err, SC_EINPUT, SC_C_TYPE, pos,
                        "for example bf16, topk:0.01, powersgd:4",
                        "\"%.40s\" %s", text,
                        sized ? "needs one number" : "takes no number");
    if (sized && (!(c.arg >= formats[i].lo) || !(c.arg <= formats[i].hi) ||
                  c.arg <= 0 || (is_rank && c.arg != floor(c.arg))))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        is_rank ? "a rank from 1 to 4096"
                                : "a fraction above 0, up to 1",
                        "%s of %s", formats[i].name, text + len + 1);
    *out = c;
    return SC_OK;
}

void sc_compress_print(const sc_compress *c, char *buf, size_t size)
{
    if (formats[c->kind].hi > 0)
        snprintf(buf, size, "%s:%g", formats[c->kind].name, c->arg);
    else
        snprintf(buf, size, "%s", formats[c->kind].name);
}

/* ---- kernels --------------------------------------------------------- */

static void kernel(const compress_by *by, const sc_kernel *k, compress_wire *w)
{
    if (by->why) sc_cost_explain_kernel(by->cost, by->device, k, by->why);
    w->pack_s += sc_cost_kernel(by->cost, by->device, k).seconds;
}

static void memory(const compress_by *by, const char *name, double bytes,
                   uint32_t launches, compress_wire *w)
{
    kernel(by,
           &(sc_kernel){.kind = SC_K_MEMORY,
                        .name = name,
                        .bytes = bytes,
                        .launches = launches},
           w);
}

/* Gradients are cast to the narrow format before the exchange and back after
 * it.  A scale follows from the largest element, which costs one more read. */
static void cast(const compress_by *by, double local, compress_wire *w)
{
    double value_bytes = by->value_bytes, low = formats[by->format.kind].bytes;
    bool scaled = low < 2;
    memory(by, "compress gradient",
           local * (2 * (value_bytes + low) + (scaled ? value_bytes : 0)),
           scaled ? 3 : 2, w);
}

enum { INDEX_BYTES = 4, RADIX_PASSES = 4 };

/* Top-k: adds the residual of the last step (two reads, one write), ranks
 * magnitudes byte by byte, and stores the new residual (a read and a write).
 * After the exchange, the pairs of all replicas are added to zeros. */
static void largest(const compress_by *by, double local, double pairs,
                    compress_wire *w)
{
    double value_bytes = by->value_bytes;
    memory(by, "largest elements", local * value_bytes * (3 + RADIX_PASSES + 2),
           12, w);
    memory(by, "add largest",
           local * value_bytes + pairs * (INDEX_BYTES + 3 * value_bytes), 2, w);
    w->residual += local * value_bytes;
}

/* PyTorch's PowerSGD compresses only matrices that shrink at least by half. */
static bool shrinks(const compress_matrix *m, double rank)
{
    return m->rows * m->cols > 2 * rank * (m->rows + m->cols);
}

/* Vogels et al. 2019, algorithm 1: P = M Q, summed, made orthogonal; Q = M^T P,
 * summed; M' = P Q^T.  The error is added before and kept after. */
static void power_iteration(const compress_by *by, const compress_matrix *m,
                            compress_wire *w)
{
    double rank = by->format.arg, value_bytes = by->value_bytes;
    double all = m->count * m->rows * m->cols;
    const double shape[3][3] = {{m->rows, rank, m->cols},
                                {m->cols, rank, m->rows},
                                {m->rows, m->cols, rank}};
    static const char *const name[] = {"factor P", "factor Q", "matrix P Q"};
    bool tf32 = value_bytes >= 4 && by->device->peak[SC_TF32] > 0;
    for (uint32_t i = 0; i < 3; i++)
        kernel(by,
               &(sc_kernel){.kind = SC_K_GEMM,
                            .precision = tf32 ? SC_TF32 : SC_BF16,
                            .name = name[i],
                            .batch = (uint64_t)fmax(1, m->count),
                            .m = (uint64_t)shape[i][0],
                            .n = (uint64_t)shape[i][1],
                            .k = (uint64_t)shape[i][2],
                            .launches = 1},
               w);
    /* Gram-Schmidt: the projection on each column is subtracted from the later
     * columns. */
    memory(by, "orthogonal columns",
           m->count * m->rows * rank * (rank + 1) * value_bytes, (uint32_t)rank,
           w);
    memory(by, "error feedback", 6 * all * value_bytes, 2, w);
    w->residual += all * value_bytes;
}

/* ---- exchange -------------------------------------------------------- */

compress_wire compress_gradient(const compress_by *by, const compress_matrix *m,
                                sc_coll coll, double local, double ranks)
{
    double low = formats[by->format.kind].bytes;
    compress_wire w = {.coll = coll, .bytes = local * by->value_bytes};
    bool sum = coll == SC_ALL_REDUCE;
    if (by->format.kind == SC_GRAD_TOPK && sum) {
        double pairs = by->format.arg * local * ranks;
        largest(by, local, pairs, &w);
        w.coll = SC_ALL_GATHER;
        w.bytes = pairs * (by->value_bytes + INDEX_BYTES);
    } else if (by->format.kind == SC_GRAD_POWERSGD && sum) {
        if (!shrinks(m, by->format.arg)) return w;
        power_iteration(by, m, &w);
        w.bytes =
            m->count * (m->rows + m->cols) * by->format.arg * by->value_bytes;
    } else if (low > 0 && low < by->value_bytes) {
        w.bytes = local * low;
        cast(by, local, &w);
    } else if (by->flat) {
        /* Each of the three reads and writes every element. */
        memory(by, "flat gradients", 3 * 2 * w.bytes, 1, &w);
    }
    return w;
}
