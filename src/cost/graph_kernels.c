/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_kernels.c - the kernels of an operator of a graph in one pass.
 *
 * Products and fused attention by their shapes; everything else by the bytes
 * that pass through memory, counted in passes over its tensors.
 *
 * `fused`: what is computed element by element from the output of a product, a
 * normalization or another such operator is part of that kernel: the value it
 * makes takes the place of the one it reads, and only further operands cost.
 * The statistics of a batch norm behind a convolution come out of the
 * convolution.
 */
#include "cost/graph_op.h"

#include <math.h>
#include <string.h>

/* What one block of a normalization holds on the chip; beyond, it reads its
 * input twice. */
#define NORM_ROW 65536.0

static uint64_t whole(double x)
{
    return x < 1 ? 1 : (uint64_t)llround(x);
}

static sc_kernel *push(gop_kernels *out, sc_kernel k)
{
    if (out->n == GOP_KERNELS) return &out->k[GOP_KERNELS - 1];
    out->joined[out->n] = false;
    out->k[out->n] = k;
    return &out->k[out->n++];
}

static void memory(gop_kernels *out, const sc_cost *c, const sc_gwork *w,
                   double bytes, uint32_t launches)
{
    if (!(bytes > 0)) return;
    push(out, (sc_kernel){.kind = SC_K_MEMORY,
                          .precision = w->precision,
                          .name = sc_gtype_names[w->op->type],
                          .bytes = bytes * (w->fused ? 1 : c->p[SC_P_TRAFFIC]),
                          .launches = launches});
}

/* Traffic of an operator inside another's kernel. */
static void joined(gop_kernels *out, const sc_cost *c, const sc_gwork *w,
                   double bytes)
{
    uint32_t n = out->n;
    memory(out, c, w, bytes, 1);
    if (out->n > n) out->joined[n] = true;
}

static double out_bytes(const sc_gwork *w)
{
    return gop_elements(w, &w->op->out) * gop_bytes(w, &w->op->out);
}

static double in_bytes(const sc_gwork *w, uint32_t i)
{
    return gop_elements(w, &w->op->in[i]) * gop_bytes(w, &w->op->in[i]);
}

static double all_in_bytes(const sc_gwork *w)
{
    double sum = 0;
    for (uint32_t i = 0; i < w->op->n_in; i++) sum += in_bytes(w, i);
    return sum;
}

static double weight_bytes(const sc_gwork *w, uint32_t i)
{
    return gop_elements(w, &w->op->weight[i]) * gop_bytes(w, &w->op->weight[i]);
}

static bool dgrad(const sc_gwork *w)
{
    return (w->pass == SC_GP_DGRAD || w->pass == SC_GP_BWD) &&
           gop_input_learns(w);
}

static bool wgrad(const sc_gwork *w)
{
    return (w->pass == SC_GP_WGRAD || w->pass == SC_GP_BWD) &&
           gop_weight_learns(w);
}

/* Gradients of operators without a product come out of one kernel, scales and
 * biases with it. */
static bool backward(const sc_gwork *w)
{
    if (w->pass == SC_GP_WGRAD) return !gop_input_learns(w) && wgrad(w);
    return dgrad(w) || wgrad(w);
}

/* The operator that made the first input of `o`, NULL if none did; views in
 * between make nothing. */
static const sc_gop *producer(const sc_opgraph *g, const sc_gop *o)
{
    while (o->n_in > 0) {
        const sc_gtensor *t = &g->tensor[o->in[0].tensor];
        if (t->kind != SC_GT_VALUE || t->op >= g->n_ops) return NULL;
        o = &g->op[t->op];
        if (o->type != SC_G_VIEW || o->copy) return o;
    }
    return NULL;
}

static bool joins(const sc_gwork *w)
{
    const sc_gop *p = w->fused ? producer(w->graph, w->op) : NULL;
    if (!p) return false;
    switch ((sc_gtype)p->type) {
    case SC_G_LINEAR:
    case SC_G_CONV:
    case SC_G_CONV_TRANSPOSED:
    case SC_G_BATCH_NORM:
    case SC_G_NORM:
    case SC_G_ACT:
    case SC_G_DROPOUT:
    case SC_G_ROPE:
    case SC_G_POSITION:
    case SC_G_ELEMENTWISE: return true;
    default: return false;
    }
}

/* Inside a normalization's kernel, with what else is there. */
static bool behind_norm(const sc_gwork *w)
{
    const sc_gop *p = producer(w->graph, w->op);
    while (p && (p->type == SC_G_ELEMENTWISE || p->type == SC_G_DROPOUT ||
                 p->type == SC_G_ACT))
        p = producer(w->graph, p);
    return p && (p->type == SC_G_BATCH_NORM || p->type == SC_G_NORM);
}

/* ---- products --------------------------------------------------------- */

static sc_kernel gemm(const sc_gwork *w, double groups, double m, double n,
                      double k)
{
    return (sc_kernel){.kind = SC_K_GEMM,
                       .precision = w->precision,
                       .name = sc_gtype_names[w->op->type],
                       .batch = whole(groups),
                       .m = whole(m),
                       .n = whole(n),
                       .k = whole(k)};
}

static sc_kernel conv(const sc_gwork *w, double groups, double m, double n,
                      double k)
{
    sc_kernel out = gemm(w, groups, m, n, k);
    /* Convolutions have no recipe of 8 bits. */
    if (out.precision >= SC_FP8) out.precision = SC_BF16;
    out.kind = SC_K_CONV;
    out.bytes = in_bytes(w, 0) + weight_bytes(w, 0) + out_bytes(w);
    return out;
}

/* The gradient of a bias reads the output's once more; a product's kernel
 * makes it on the way where programs fuse. */
static void bias_grad(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    if (w->op->n_weight > 1 && !w->fused) memory(out, c, w, out_bytes(w), 1);
}

static void convolution(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    gop_product p = gop_product_of(w);
    if (w->pass == SC_GP_FWD) push(out, conv(w, p.groups, p.m, p.n, p.k));
    if (dgrad(w)) { /* as many products, at the positions of the input */
        double m = gop_elements(w, &w->op->in[0]) / (p.in * p.groups);
        push(out, conv(w, p.groups, m, p.in, p.m * p.n * p.k / (m * p.in)));
    }
    if (wgrad(w)) { /* summed over all positions of all samples */
        double n = gop_elements(w, &w->op->weight[0]) / (p.groups * p.n);
        push(out, conv(w, p.groups, p.n, n, p.m * p.k / n));
        bias_grad(out, c, w);
    }
}

static void linear(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    gop_product p = gop_product_of(w);
    if (w->pass == SC_GP_FWD) push(out, gemm(w, p.groups, p.m, p.n, p.k));
    if (dgrad(w)) push(out, gemm(w, p.groups, p.m, p.k, p.n));
    if (wgrad(w)) {
        push(out, gemm(w, p.groups, p.n, p.k, p.m));
        bias_grad(out, c, w);
    }
}

static void matmul(gop_kernels *out, const sc_gwork *w)
{
    gop_product p = gop_product_of(w);
    if (w->pass == SC_GP_FWD) push(out, gemm(w, p.groups, p.m, p.n, p.k));
    if (!dgrad(w)) return;
    push(out, gemm(w, p.groups, p.m, p.k, p.n));
    push(out, gemm(w, p.groups, p.k, p.n, p.m));
}

/* Heads are the units of the iteration dim that has them; keys, what the second
 * input has and the output has not. */
static void attention(gop_kernels *out, const sc_gwork *w)
{
    const sc_gop *o = w->op;
    double heads = 1, width = 1, samples = 1, y = gop_elements(w, &o->out);
    double part = 1;
    for (uint32_t i = 0; i < o->n_iter; i++) {
        double all = sc_giter_extent(&o->iter[i], w->samples);
        part *= w->extent[i] / all;
        if (o->iter[i].units > 0) {
            heads = o->iter[i].units * w->extent[i] / all;
            width = all / o->iter[i].units;
        }
        if (o->iter[i].batch)
            samples *= w->extent[i] / (double)o->iter[i].extent;
    }
    double keys = o->flops * w->samples * part / (4 * y);
    if (w->pass != SC_GP_FWD && !dgrad(w)) return;
    push(out, (sc_kernel){.kind = SC_K_FLASH,
                          .precision = w->precision,
                          .name = sc_gtype_names[o->type],
                          .batch = whole(samples * heads),
                          .m = whole(y / (samples * heads * width)),
                          .n = whole(keys),
                          .k = whole(width),
                          .attention = w->attention == SC_ATTN_UNFUSED
                                           ? SC_ATTN_CUDNN
                                           : (sc_attention_kernel)w->attention,
                          .backward = w->pass != SC_GP_FWD,
                          .causal = o->causal,
                          .launches = w->pass == SC_GP_FWD ? 1 : 3});
}

/* ---- tables ------------------------------------------------------------ */

/* Tables that stand one behind the other are looked up by one kernel where
 * programs fuse. */
static bool same_kernel(const sc_gwork *w)
{
    return w->fused && w->op > w->graph->op && w->op[-1].type == SC_G_EMBED;
}

/* Rows are gathered and summed.  Backward: indices are sorted with their
 * positions (8 bytes, four passes of a radix sort, read and written), then
 * each looked-up row gets its gradient. */
static void embed(gop_kernels *out, const sc_gwork *w)
{
    const sc_gop *o = w->op;
    double lookups = o->lookups ? o->lookups : 1;
    double row = gop_elements(w, &o->out), table = gop_bytes(w, &o->weight[0]);
    double index = in_bytes(w, 0), y = out_bytes(w);
    bool forward = w->pass == SC_GP_FWD;
    if (!forward && !wgrad(w)) return;
    push(out, (sc_kernel){.kind = SC_K_LOOKUP,
                          .precision = w->precision,
                          .name = sc_gtype_names[o->type],
                          .bytes = row * lookups * table + y +
                                   (forward ? 1 : 8) * index,
                          .launches = forward ? 1 : 5});
    out->joined[out->n - 1] = same_kernel(w);
}

/* ---- element by element ------------------------------------------------ */

static void elementwise(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    double y = out_bytes(w), others = all_in_bytes(w) - in_bytes(w, 0);
    double mask = w->op->dropout ? gop_elements(w, &w->op->out) : 0;
    bool one = w->op->n_in == 1;
    if (w->pass == SC_GP_FWD) {
        if (joins(w))
            joined(out, c, w, others + mask);
        else
            memory(out, c, w, all_in_bytes(w) + y + mask, 1);
        return;
    }
    if (!backward(w)) return;
    /* An activation reads what it was given, which a normalization reads
     * anyway.  A sum hands its gradient to another branch, where it is added
     * to that of the value's other readers. */
    if (joins(w))
        joined(out, c, w, (one ? (behind_norm(w) ? 0 : y) : 2 * others) + mask);
    else
        memory(out, c, w, (one ? 3 * y : y + 2 * others) + mask, 1);
}

static void dropout(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    double mask = gop_elements(w, &w->op->out);
    if (w->pass != SC_GP_FWD && !backward(w)) return;
    if (joins(w))
        joined(out, c, w, mask);
    else
        memory(out, c, w, 2 * out_bytes(w) + mask, 1);
}

static void batch_norm(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    double x = out_bytes(w);
    const sc_gop *p = w->fused ? producer(w->graph, w->op) : NULL;
    bool given = p && (p->type == SC_G_CONV || p->type == SC_G_CONV_TRANSPOSED);
    if (w->pass == SC_GP_FWD)
        memory(out, c, w, given ? 2 * x : 3 * x, 2);
    else if (backward(w))
        memory(out, c, w, 5 * x, 2);
}

/* Elements that share their statistics, at most. */
static double norm_row(const sc_gwork *w)
{
    double n = 1;
    for (uint32_t i = 0; i < w->op->n_iter; i++)
        if (w->op->iter[i].kind != SC_I_BATCH) n *= w->extent[i];
    return n;
}

static void norm(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    double x = out_bytes(w);
    bool twice = norm_row(w) > NORM_ROW;
    if (w->pass == SC_GP_FWD)
        memory(out, c, w, (twice ? 3 : 2) * x, twice ? 2 : 1);
    else if (backward(w))
        memory(out, c, w, 5 * x, 2); /* gradients of scale and bias, too */
}

/* Softmax and cross entropy, in fp32 inside. */
static void loss(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    if (w->pass == SC_GP_FWD || backward(w))
        memory(out, c, w, 4 * in_bytes(w, 0), 4);
}

static void moved(gop_kernels *out, const sc_cost *c, const sc_gwork *w)
{
    const sc_gop *o = w->op;
    double in = all_in_bytes(w), y = out_bytes(w);
    if (w->pass != SC_GP_FWD && !backward(w)) return;
    bool forward = w->pass == SC_GP_FWD;
    switch ((sc_gtype)o->type) {
    case SC_G_SOFTMAX: memory(out, c, w, (forward ? 2 : 3) * y, 1); break;
    case SC_G_CONCAT: memory(out, c, w, 2 * y, 1); break;
    case SC_G_SLICE:
        /* The gradient of the whole is cleared, then filled. */
        memory(out, c, w, forward ? 2 * y : in + 2 * y, 1);
        break;
    case SC_G_VIEW:
        if (o->copy) memory(out, c, w, 2 * y, 1);
        break;
    default: memory(out, c, w, in + y, 1); break; /* pools, upsampling */
    }
}

void gop_list(const sc_cost *c, const sc_gwork *w, gop_kernels *out)
{
    switch ((sc_gtype)w->op->type) {
    case SC_G_LINEAR:
    case SC_G_EXPERT: linear(out, c, w); break;
    case SC_G_MATMUL: matmul(out, w); break;
    case SC_G_CONV:
    case SC_G_CONV_TRANSPOSED: convolution(out, c, w); break;
    case SC_G_EMBED: embed(out, w); break;
    case SC_G_ATTENTION: attention(out, w); break;
    case SC_G_BATCH_NORM: batch_norm(out, c, w); break;
    case SC_G_NORM: norm(out, c, w); break;
    case SC_G_ACT:
    case SC_G_ROPE:
    case SC_G_POSITION:
    case SC_G_ELEMENTWISE: elementwise(out, c, w); break;
    case SC_G_DROPOUT: dropout(out, c, w); break;
    case SC_G_LOSS: loss(out, c, w); break;
    default: moved(out, c, w); break;
    }
}
