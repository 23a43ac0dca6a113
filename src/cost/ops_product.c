/* SPDX-License-Identifier: Apache-2.0 */
/* ops_product.c - kernels of operators with a product: linear layers, products
 * of values and of experts, convolutions; also their casts and gradients. */
#include "cost/ops.h"

#include <math.h>

/* Other ranks have the rows that do not divide evenly, so quotients differ from
 * integers only by rounding. */
static uint64_t whole(double x)
{
    double near = round(x);
    if (x < 1) return 1;
    return (uint64_t)(fabs(x - near) <= 1e-9 * near ? near : x);
}

static bool low_format(sc_precision p)
{
    return p == SC_FP8 || p == SC_FP4;
}

static sc_kernel gemm(const op_list *l, double groups, double m, double n,
                      double k)
{
    const sc_op_facts *f = l->f;
    return (sc_kernel){.kind = SC_K_GEMM,
                       .precision =
                           f->precision >= SC_FP8 && !l->w->low_precision
                               ? SC_BF16
                               : f->precision,
                       .scaling = f->scaling,
                       .batch = whole(groups),
                       .m = whole(m),
                       .n = whole(n),
                       .k = whole(k),
                       .launches = 2};
}

/* ---- low precision */

/* Each scale belongs to elements of one row or one column. */
static bool blocks_scaled(const op_list *l)
{
    return l->f->scaling == SC_SCALE_MX || l->f->scaling == SC_SCALE_BLOCK;
}

/* Whether the scale of a whole tensor is found in a pass of its own: current
 * scaling, and the second level of FP4's scales.  Delayed scaling has it from
 * earlier steps, a compiler puts the search into the kernel before. */
static bool finds_scale(const op_list *l)
{
    const sc_op_facts *f = l->f;
    if (f->fused_cast) return false;
    if (f->precision == SC_FP4) return true;
    return f->scaling == SC_SCALE_TENSOR && !f->delayed_scaling;
}

typedef struct operand {
    double tensors, rows, cols; /* one tensor for each expert */
    double part;                /* of the rows that this rank casts; 0: all */
    bool both;                  /* two products read it and sum over other
                                   dims */
} operand;

/* Adds the second copy of an operand.  One kernel writes both; if cast parts
 * are gathered with one scale for the tensor, another transposes the whole. */
static void second_copy(op_list *l, const operand *x, sc_kernel *k)
{
    const sc_op_facts *f = l->f;
    if (!x->both || f->fused_cast) return;
    if (!blocks_scaled(l) && f->any_layout) return;
    double e = sc_precision_bytes(f->precision);
    bool gathered = x->part > 0 && x->part < 1 && !blocks_scaled(l);
    if (!gathered)
        k->bytes = e * (double)k->batch * (double)k->m * (double)k->k;
    else
        ops_push(l, (sc_kernel){.kind = SC_K_MEMORY,
                                .name = "transpose",
                                .bytes = 2 * e * x->tensors * x->rows * x->cols,
                                .launches = 1});
}

/* Casts operands as Transformer Engine does: a kernel reads 16 bits and writes
 * one copy or two.  Tensor-scaled products of Blackwell read one copy in either
 * layout.  Delayed scaling and FP4 cast all tensors at once. */
static void cast(op_list *l, const operand *x)
{
    const sc_op_facts *f = l->f;
    if (!l->w->low_precision || !low_format(f->precision)) return;
    bool list =
        f->precision == SC_FP4 || (f->delayed_scaling && !blocks_scaled(l));
    double rows = x->rows * (x->part > 0 ? x->part : 1);
    sc_kernel k = {.kind = SC_K_AMAX,
                   .precision = f->precision,
                   .scaling = f->scaling,
                   .name = "find scale",
                   .batch = whole(list ? 1 : x->tensors),
                   .m = whole(list ? x->tensors * rows : rows),
                   .n = 1,
                   .k = whole(x->cols)};
    k.launches = 2 * (uint32_t)k.batch;
    if (finds_scale(l)) ops_push(l, k);
    k.kind = SC_K_QUANTIZE;
    k.name = "cast";
    k.launches = (uint32_t)k.batch;
    second_copy(l, x, &k);
    ops_push(l, k);
}

/* The operand of the forward product, which the one for weights reads too, or
 * the gradient of the result, which both gradients read.  Weights are cast once
 * per step and shared by its micro-batches. */
static void cast_operand(op_list *l, double tensors, double m)
{
    const sc_op_work *w = l->w;
    bool dgrad = ops_dgrad(l);
    if (ops_forward(l))
        cast(l, &(operand){tensors, m, w->k, w->cast_input, w->weight_learns});
    /* Both gradients use one cast. */
    if (dgrad || (ops_wgrad(l) && !w->input_learns))
        cast(l, &(operand){tensors, m, w->n, w->cast_gradient,
                           dgrad && w->weight_learns});
}

/* ---- linear */

/* The gradient of a bias reads the output's gradient once more, unless the
 * product's kernel computes it: with fusion, or with epilogues that accumulate
 * gradients. */
static void bias_gradient(op_list *l)
{
    const sc_op_facts *f = l->f;
    if (l->w->bias && !f->fused && !f->fused_accumulate)
        ops_memory(l, "bias", l->w->y, 1);
}

/* The product for weights adds to the gradient of earlier micro-batches itself,
 * or another kernel does. */
static void weight_gradient(op_list *l, sc_kernel k, double weights)
{
    double moved = l->f->accum_bytes * weights;
    bool itself = l->f->fused_accumulate && k.kind == SC_K_GEMM;
    if (itself) k.bytes = moved;
    ops_push(l, k);
    if (moved > 0 && !itself)
        ops_push(l, (sc_kernel){.kind = SC_K_MEMORY,
                                .name = "accumulate",
                                .bytes = moved,
                                .launches = 1});
    bias_gradient(l);
}

void ops_linear(op_list *l)
{
    const sc_op_work *w = l->w;
    cast_operand(l, 1, w->groups * w->m);
    if (ops_forward(l)) ops_push(l, gemm(l, w->groups, w->m, w->n, w->k));
    if (ops_dgrad(l)) ops_push(l, gemm(l, w->groups, w->m, w->k, w->n));
    if (ops_wgrad(l))
        weight_gradient(l, gemm(l, w->groups, w->n, w->k, w->m),
                        w->groups * w->n * w->k);
}

/* ---- products of values */

void ops_matmul(op_list *l)
{
    const sc_op_work *w = l->w;
    if (ops_forward(l)) ops_push(l, gemm(l, w->groups, w->m, w->n, w->k));
    if (!ops_dgrad(l)) return;
    ops_push(l, gemm(l, w->groups, w->m, w->k, w->n));
    if (w->learns > 1) ops_push(l, gemm(l, w->groups, w->k, w->n, w->m));
}

/* ---- experts: one weight each, as many tokens each */

static sc_kernel grouped(const op_list *l, double m, double n, double k)
{
    const sc_op_facts *f = l->f;
    double experts = l->w->groups;
    sc_kernel g = gemm(l, 1, m, n, k);
    /* In a loop: one product per expert and, with block scaling, a kernel
     * before it that arranges the scales. */
    uint32_t each = f->precision >= SC_FP8 && f->scaling == SC_SCALE_MX ? 2 : 1;
    g.batch = (uint64_t)experts;
    g.grouped = true;
    if (f->grouped_loop) g.launches = each * (uint32_t)experts;
    return g;
}

void ops_expert(op_list *l)
{
    const sc_op_work *w = l->w;
    double m = fmax(1, round(w->m));
    cast_operand(l, w->groups, w->m);
    if (ops_forward(l)) ops_push(l, grouped(l, m, w->n, w->k));
    if (ops_dgrad(l)) ops_push(l, grouped(l, m, w->k, w->n));
    if (ops_wgrad(l))
        weight_gradient(l, grouped(l, w->n, w->k, m), w->groups * w->n * w->k);
}

/* ---- convolutions */

/* Work with channels that are padded to groups of 8 over the work without: in
 * 16 bits, cuDNN's kernels for matrix units take no other tensors, except those
 * for first layers, which take 4 (cuDNN developer guide, "tensor core
 * operations"). */
static double padded(double channels)
{
    double group = channels <= 4 ? 4 : 8;
    return ceil(channels / group) * group / channels;
}

/* `channels`: those of the input, or of the result, that it sums over. */
static sc_kernel conv(const op_list *l, double m, double n, double k,
                      double channels, bool weights)
{
    const sc_op_work *w = l->w;
    sc_kernel out = gemm(l, w->groups, m, n, k);
    /* Convolutions have no 8-bit recipe. */
    if (out.precision >= SC_FP8) out.precision = SC_BF16;
    out.kind = SC_K_CONV;
    out.launches = 0;
    out.bytes = w->x + w->w + w->y;
    if (w->groups <= 1) out.padded = padded(channels);
    out.window.weights = weights;
    if (w->window)
        out.window = (sc_window){.side = w->window,
                                 .weights = weights,
                                 .rows = (uint32_t)whole(w->rows),
                                 .cols = (uint32_t)whole(w->cols)};
    return out;
}

void ops_conv(op_list *l)
{
    const sc_op_work *w = l->w;
    if (ops_forward(l))
        ops_push(l, conv(l, w->m, w->n, w->k, w->channels, false));
    if (ops_dgrad(l)) { /* as many products, at the positions of the input */
        double m = w->x / w->each / (w->channels * w->groups);
        double k = w->m * w->n * w->k / (m * w->channels);
        ops_push(l, conv(l, m, w->channels, k, w->n, false));
    }
    if (ops_wgrad(l)) { /* summed over all positions of all samples */
        double n = w->w / w->each / (w->groups * w->n);
        weight_gradient(l, conv(l, w->n, n, w->m * w->k / n, w->channels, true),
                        w->w / w->each);
    }
}
