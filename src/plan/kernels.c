/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - the kernels of one operator and pass on one rank.
 *
 * Byte counts are per element of the operands that a kernel reads and writes
 * in the working precision (2 bytes), as the framework's kernels touch them;
 * attention scores and dropout masks as in Korthikanti et al. 2022, section 4.
 */
#include "plan/kernels.h"

#include <math.h>
#include <string.h>

typedef struct dims {
    /* local extents of the op's dims; 1 where it has none */
    double b, s, h, head, ffn, vocab, expert, rank, state;
} dims;

static double local(const sc_run *r, const sc_placed *o, sc_dimname d)
{
    for (uint32_t i = 0; i < o->op->n_iter; i++) {
        const sc_iter *it = &o->op->iter[i];
        if (it->name != d) continue;
        double n = (double)sc_iter_extent(it, plan_batch(r), r->seq);
        for (sc_axlist l = o->split.shard[d]; l; l >>= 4)
            n /= r->size[(l & 15) - 1];
        bool part = d == SC_D_BATCH && o->op->share > 0;
        if (d == SC_D_EXPERT) n *= plan_routed(r);
        return part ? n * o->op->share : n;
    }
    return 1;
}

static dims dims_of(const sc_run *r, const sc_placed *o)
{
    return (dims){
        .b = local(r, o, SC_D_BATCH),
        .s = local(r, o, SC_D_SEQ),
        .h = local(r, o, SC_D_HIDDEN),
        .head = local(r, o, SC_D_HEAD),
        .ffn = local(r, o, SC_D_FFN),
        .vocab = local(r, o, SC_D_VOCAB),
        .expert = local(r, o, SC_D_EXPERT),
        .rank = local(r, o, SC_D_RANK),
        .state = local(r, o, SC_D_STATE),
    };
}

/* Elements of an element-wise operator's output on one rank. */
static double volume(const sc_run *r, const sc_placed *o)
{
    double n = 1;
    for (uint32_t i = 0; i < o->op->n_iter; i++)
        n *= local(r, o, (sc_dimname)o->op->iter[i].name);
    return n;
}

/* Attention heads on one rank. */
static double heads_of(const sc_run *r, const sc_placed *o)
{
    double n = (double)r->model->t.heads;
    for (sc_axlist l = o->split.shard[SC_D_HEAD]; l; l >>= 4)
        n /= r->size[(l & 15) - 1];
    return n;
}

static void push(plan_kernels *out, sc_kernel k, bool wgrad)
{
    if (out->n < PLAN_KERNELS) {
        out->wgrad[out->n] = wgrad;
        out->k[out->n++] = k;
    }
}

/* Element-wise traffic; programs that do not fuse move more. */
static void memory(plan_kernels *out, const sc_run *r, const char *name,
                   double bytes, uint32_t launches)
{
    double f = r->sw->fused ? 1 : r->cost->p[SC_P_TRAFFIC];
    push(out,
         (sc_kernel){.kind = SC_K_MEMORY,
                     .name = name,
                     .bytes = bytes * f,
                     .launches = launches},
         false);
}

static sc_scaling scaling_of(const sc_run *r)
{
    switch (r->recipe) {
    case SC_RECIPE_MXFP8:
    case SC_RECIPE_NVFP4: return SC_SCALE_MX;
    case SC_RECIPE_FP8_BLOCK:
        /* Transformer Engine runs it as MXFP8 where products have that. */
        return strncmp(r->hw->device->arch, "blackwell", 9) == 0
                   ? SC_SCALE_MX
                   : SC_SCALE_BLOCK;
    case SC_RECIPE_FP8_ROW: return SC_SCALE_ROW;
    default: return SC_SCALE_TENSOR;
    }
}

static sc_kernel gemm(const sc_run *r, const sc_operator *op, double m,
                      double n, double k)
{
    bool low = plan_low(r, op);
    return (sc_kernel){
        .kind = SC_K_GEMM,
        .precision = r->precision >= SC_FP8 && !low ? SC_BF16 : r->precision,
        .scaling = scaling_of(r),
        .name = op->name,
        .batch = 1,
        .m = (uint64_t)m,
        .n = (uint64_t)n,
        .k = (uint64_t)k,
        .launches = 2};
}

/* Each micro-batch but the first adds to what the others left; ZeRO-2 moves as
 * much into the buckets that are scattered after each. */
static bool accumulates(const sc_run *r)
{
    return r->zero < 3 && r->ga > 1;
}

static bool blocks_scaled(const sc_run *r)
{
    return scaling_of(r) == SC_SCALE_MX || scaling_of(r) == SC_SCALE_BLOCK;
}

/* Casts of one operand, a tensor per expert: scales of past steps cast the
 * list at once; a scale of its own takes two kernels before each cast, that
 * find the maximum and make the scale (Transformer Engine). */
static uint32_t cast_kernels(const sc_run *r, double weights)
{
    if (blocks_scaled(r)) return (uint32_t)weights;
    if (r->sw->fp8_scaling == SC_FP8_DELAYED) return 1;
    return (uint32_t)(3 * weights);
}

/* Low precision: operands are scaled, cast and transposed, half of it in each
 * direction. */
static void quantize(plan_kernels *out, const sc_run *r, double m, double n,
                     double k, double weights)
{
    if (r->precision != SC_FP8 && r->precision != SC_FP4) return;
    bool blocks = blocks_scaled(r);
    uint32_t casts = cast_kernels(r, weights);
    double q =
        r->cost->p[blocks && r->recipe != SC_RECIPE_NVFP4 ? SC_P_QUANTIZE_MX
                                                          : SC_P_QUANTIZE];
    if (r->sw->fused_cast) q = fmin(q, 1);
    push(out,
         (sc_kernel){.kind = SC_K_MEMORY,
                     .name = "cast",
                     .bytes = 1.5 * m * (k + n) * q,
                     .launches = casts},
         false);
}

static void linear(plan_kernels *out, const sc_run *r, const sc_placed *o,
                   bool backward)
{
    const sc_operator *op = o->op;
    double in = 1, free = 1, m = 1;
    for (uint32_t i = 0; i < op->n_iter; i++) {
        double e = local(r, o, (sc_dimname)op->iter[i].name);
        if (op->iter[i].kind == SC_I_BATCH) m *= e;
        if (op->iter[i].kind == SC_I_REDUCE) in *= e;
        if (op->iter[i].kind == SC_I_FREE) free *= e;
    }
    if (plan_low(r, op)) quantize(out, r, m, free, in, 1);
    if (!backward) {
        push(out, gemm(r, op, m, free, in), false);
        return;
    }
    push(out, gemm(r, op, m, in, free), false);
    if (op->frozen) return;
    double share = free * in, sum = accumulates(r) ? r->sw->accum_bytes : 0;
    bool fused = r->sw->fused_accumulate;
    sc_kernel wgrad = gemm(r, op, free, in, m);
    if (fused) wgrad.bytes = sum * share;
    push(out, wgrad, true);
    if (sum > 0 && !fused)
        push(out,
             (sc_kernel){.kind = SC_K_MEMORY,
                         .name = "accumulate",
                         .bytes = sum * share,
                         .launches = 1},
             true);
}

/* Megatron's kernel takes 16-bit scores of up to 2048 columns (16384 in
 * 2023) whose heads x batch come in fours. */
static bool softmax_fuses(const sc_run *r, double heads_b)
{
    return r->sw->fused_softmax && r->seq <= 2048 &&
           (uint64_t)heads_b % 4 == 0 &&
           (r->precision == SC_FP16 || r->precision == SC_BF16);
}

static void attention_unfused(plan_kernels *out, const sc_run *r, double bh,
                              double rows, double d, double m_head,
                              bool backward)
{
    double s = (double)r->seq, e = bh * rows * s;
    bool drop = r->model->t.dropout;
    sc_kernel scores = {.kind = SC_K_GEMM,
                        .precision = r->precision,
                        .name = "scores",
                        .batch = (uint64_t)bh,
                        .m = (uint64_t)rows,
                        .n = (uint64_t)s,
                        .k = (uint64_t)d,
                        .launches = 2};
    sc_kernel context = scores;
    context.name = "context";
    context.n = (uint64_t)d;
    context.k = (uint64_t)s;
    if (scores.precision >= SC_FP8)
        scores.precision = context.precision = SC_BF16;
    for (int i = 0; i < (backward ? 2 : 1); i++) {
        push(out, scores, false);
        push(out, context, false);
    }
    double soft = backward ? 6 : 4, mask = drop ? 5 : 0;
    double bytes = e * (soft + mask);
    /* Separate kernels: cast to fp32, scale, mask, softmax, cast back. */
    if (!softmax_fuses(r, bh)) bytes += e * (backward ? 22 : 29);
    memory(out, r, "softmax", bytes, softmax_fuses(r, bh) ? 2 : 7);
    memory(out, r, "transpose", (backward ? 12 : 4) * m_head, 4);
}

static void attention(plan_kernels *out, const sc_run *r, const sc_placed *o,
                      bool backward)
{
    dims x = dims_of(r, o);
    const sc_operator *op = o->op;
    double bh = x.b * heads_of(r, o);
    double d = (op->qk_dim + op->v_dim) / 2.0;
    double m_head = x.b * (double)r->seq * x.head;
    if (r->sw->attention == SC_ATTN_UNFUSED) {
        attention_unfused(out, r, bh, x.s, d, m_head, backward);
        return;
    }
    if (r->sw->pad_head_dim && d > 64 && d < 128) d = 128;
    /* Inside a window every query sees about as many keys: no triangle. */
    bool window = op->window && op->window < r->seq;
    push(out,
         (sc_kernel){.kind = SC_K_FLASH,
                     .precision = r->precision,
                     .name = "attention",
                     .batch = (uint64_t)bh,
                     .m = (uint64_t)x.s,
                     .n = window ? op->window : r->seq,
                     .k = (uint64_t)d,
                     .attention = (sc_attention_kernel)r->sw->attention,
                     .backward = backward,
                     .causal = op->causal && !window,
                     .launches = backward ? 3 : 1},
         false);
}

/* Products of routed tokens: one weight per expert, as many tokens each. */
static void expert(plan_kernels *out, const sc_run *r, const sc_placed *o,
                   bool backward)
{
    const sc_operator *op = o->op;
    double in = 1, free = 1, rows = 1, experts = 1;
    for (uint32_t i = 0; i < op->n_iter; i++) {
        const sc_iter *it = &op->iter[i];
        double e = local(r, o, (sc_dimname)it->name);
        if (it->kind == SC_I_REDUCE) in *= e;
        if (it->kind == SC_I_FREE) free *= e;
        if (it->kind == SC_I_BATCH) rows *= e;
        if (it->name == SC_D_EXPERT)
            experts = it->units * (e / plan_routed(r) / (double)it->extent);
    }
    if (experts < 1) experts = 1;
    bool low = plan_low(r, op);
    if (low) quantize(out, r, rows, free, in, experts);
    double m = fmax(1, round(rows / experts));
    /* One by one: a product each, and where blocks are scaled a kernel before
     * it that lays out the scales. */
    bool loop = r->sw->grouped_loop;
    uint32_t each =
        r->precision >= SC_FP8 && scaling_of(r) == SC_SCALE_MX ? 2 : 1;
    sc_kernel k = {.kind = SC_K_GEMM,
                   .precision =
                       r->precision >= SC_FP8 && !low ? SC_BF16 : r->precision,
                   .scaling = scaling_of(r),
                   .name = op->name,
                   .batch = (uint64_t)experts,
                   .grouped = true,
                   .m = (uint64_t)m,
                   .n = (uint64_t)(backward ? in : free),
                   .k = (uint64_t)(backward ? free : in),
                   .launches = loop ? each * (uint32_t)experts : 2};
    push(out, k, false);
    if (!backward || op->frozen) return;
    k.bytes = accumulates(r) ? r->sw->accum_bytes * experts * free * in : 0;
    k.m = (uint64_t)free;
    k.n = (uint64_t)in;
    k.k = (uint64_t)m;
    push(out, k, true);
}

/* Tokens gathered by expert and back: k copies read and written, indices. */
static void permute(plan_kernels *out, const sc_run *r, const sc_placed *o,
                    bool backward)
{
    dims x = dims_of(r, o);
    double copies = x.b * x.s * x.h * x.expert;
    memory(out, r, o->op->name, (backward ? 8 : 6) * copies, 4);
}

/* The scan and its convolution run over the state in several passes; backward
 * as other memory-bound work (spec/accuracy.md B4). */
static void state_space(plan_kernels *out, const sc_run *r, const sc_placed *o,
                        bool backward)
{
    dims x = dims_of(r, o);
    double e = x.b * (double)r->seq * x.state;
    memory(out, r, o->op->name,
           (backward ? 1.6 : 1) * r->cost->p[SC_P_SCAN] * e, 3);
}

static void lookup(plan_kernels *out, const sc_run *r, const sc_placed *o,
                   bool backward)
{
    dims x = dims_of(r, o);
    double e = x.b * x.s * x.h;
    sc_kernel k = {.kind = SC_K_LOOKUP,
                   .name = o->op->name,
                   .bytes = (backward ? 8 : 4) * e,
                   .launches = 3};
    /* The gradient of the table is dense: cleared, then added to. */
    if (backward) k.bytes += 4 * x.vocab * x.h;
    push(out, k, backward);
}

static void loss(plan_kernels *out, const sc_run *r, const sc_placed *o,
                 bool backward)
{
    dims x = dims_of(r, o);
    push(out,
         (sc_kernel){.kind = SC_K_MEMORY,
                     .name = "loss",
                     .bytes = x.b * x.s * x.vocab * r->sw->loss_bytes / 2,
                     .launches = backward ? 8 : 12},
         false);
}

bool plan_is_routed(const sc_operator *op)
{
    for (uint32_t i = 0; i < op->n_iter; i++)
        if (op->iter[i].name == SC_D_EXPERT) return true;
    return false;
}

/* GPT-OSS: clamped activations and a bias per expert, outside of the grouped
 * products. */
static double expert_bias(const sc_run *r, const sc_operator *op)
{
    if (!plan_is_routed(op) || !r->model->t.bias) return 1;
    return 1 + r->cost->p[r->sw->fused_experts ? SC_P_EXPERT_BIAS_FUSED
                                               : SC_P_EXPERT_BIAS];
}

void plan_op_kernels(const sc_run *r, const sc_placed *o, bool backward,
                     plan_kernels *out)
{
    dims x = dims_of(r, o);
    double e = volume(r, o), f = e;
    bool gated = r->model->t.act >= SC_ACT_SWIGLU;
    bool drop = r->model->t.dropout;
    out->n = 0;
    switch ((sc_op_type)o->op->type) {
    case SC_EMBED: lookup(out, r, o, backward); break;
    case SC_POSITION:
        memory(out, r, "position", (backward ? 4 : 6) * e, 1);
        break;
    case SC_NORM:
        memory(out, r, o->op->name, (backward ? 12 : 4) * e, backward ? 3 : 1);
        break;
    case SC_LINEAR: linear(out, r, o, backward); break;
    case SC_ROPE: memory(out, r, "rope", 10 * x.b * x.s * x.head, 4); break;
    case SC_ATTENTION: attention(out, r, o, backward); break;
    case SC_ACT:
        f *= expert_bias(r, o->op);
        if (gated)
            memory(out, r, "act", (backward ? 10 : 6) * f, backward ? 3 : 2);
        else
            memory(out, r, "act", (backward ? 8 : 4) * f, backward ? 2 : 1);
        break;
    case SC_DROPOUT_ADD:
        memory(out, r, o->op->name,
               (backward ? 6
                : drop   ? 7
                         : 6) *
                   e,
               backward ? 2 : 1);
        break;
    case SC_LOSS: loss(out, r, o, backward); break;
    case SC_DISPATCH:
    case SC_COMBINE: permute(out, r, o, backward); break;
    case SC_EXPERT: expert(out, r, o, backward); break;
    case SC_CONV1D:
    case SC_SCAN: state_space(out, r, o, backward); break;
    default: break;
    }
}

double plan_op_saved(const sc_run *r, const sc_placed *o, double x_elements)
{
    dims x = dims_of(r, o);
    double bh = x.b * heads_of(r, o);
    double e = bh * x.s * (double)r->seq;
    bool gated = r->model->t.act >= SC_ACT_SWIGLU;
    switch ((sc_op_type)o->op->type) {
    case SC_LINEAR:
    case SC_EXPERT:
        /* A frozen weight has no gradient to make from its input.
         * Low-precision products keep the operand they were given. */
        if (o->op->frozen) return 0;
        return (plan_low(r, o->op) ? 1 : 2) * x_elements;
    case SC_NORM:
    case SC_CONV1D:
    case SC_SCAN: return 2 * x_elements;
    case SC_ACT:
        if (r->sw->low_activations && r->precision >= SC_FP8)
            return x_elements * (gated ? 2 : 1);
        return 2 * x_elements * (gated ? 2 : 1);
    case SC_DROPOUT_ADD: return r->model->t.dropout ? volume(r, o) : 0;
    case SC_ATTENTION:
        x_elements = bh * x.s *
                     (o->op->qk_dim + (o->op->qk_dim + o->op->v_dim) *
                                          (double)o->op->kv_heads /
                                          (double)r->model->t.heads);
        if (r->sw->attention != SC_ATTN_UNFUSED)
            return 2 * x_elements + 4 * bh * x.s;
        if (o->recompute) return 2 * x_elements;
        return 2 * x_elements + e * (r->model->t.dropout ? 5 : 2);
    case SC_LOSS: return 4 * x.b * x.s * x.vocab;
    default: return 0;
    }
}

double plan_attention_out(const sc_run *r, const sc_placed *o)
{
    dims x = dims_of(r, o);
    double rows = x.b * heads_of(r, o) * x.s;
    return rows * (2 * o->op->v_dim + 4);
}
