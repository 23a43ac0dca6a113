/* SPDX-License-Identifier: Apache-2.0 */
/* ops_attention.c - kernels of attention: one fused kernel, or products,
 * softmax and dropout (Korthikanti et al. 2022, section 4). */
#include "cost/ops.h"

#include <math.h>

/* Megatron's kernel supports 16-bit scores with up to 2048 columns (16384 in
 * 2023) if heads x batch is a multiple of four. */
static bool softmax_fuses(const op_list *l)
{
    sc_precision p = l->f->precision;
    return l->f->fused_softmax && l->w->keys <= 2048 &&
           (uint64_t)l->w->groups % 4 == 0 && (p == SC_FP16 || p == SC_BF16);
}

static void products(op_list *l)
{
    const sc_op_work *w = l->w;
    sc_precision p = l->f->precision;
    sc_kernel scores = {.kind = SC_K_GEMM,
                        .precision = p >= SC_FP8 ? SC_BF16 : p,
                        .name = "scores",
                        .batch = (uint64_t)w->groups,
                        .m = (uint64_t)w->m,
                        .n = (uint64_t)w->keys,
                        .k = (uint64_t)w->k,
                        .launches = 2};
    sc_kernel context = scores;
    context.name = "context";
    context.n = (uint64_t)w->k;
    context.k = (uint64_t)w->keys;
    for (int i = 0; i < (ops_forward(l) ? 1 : 2); i++) {
        ops_push(l, scores);
        ops_push(l, context);
    }
}

static void unfused(op_list *l)
{
    const sc_op_work *w = l->w;
    bool backward = !ops_forward(l);
    double e = w->groups * w->m * w->keys;
    products(l);
    /* scores are read and written; dropout also has a mask */
    double bytes = e * w->each * (backward ? 3 : 2);
    if (w->dropout) bytes += e * (2 * w->each + 1);
    /* Separate kernels: cast to fp32, scale, mask, softmax, cast back. */
    bool fuses = softmax_fuses(l);
    if (!fuses) bytes += e * (backward ? 22 : 29);
    ops_memory(l, "softmax", bytes, fuses ? 2 : 7);
    ops_memory(l, "transpose", (backward ? 6 : 2) * w->y, 4);
}

void ops_attention(op_list *l)
{
    const sc_op_work *w = l->w;
    bool backward = !ops_forward(l);
    double d = w->k;
    if (backward && !ops_dgrad(l)) return;
    if (l->f->attention == SC_ATTN_UNFUSED) {
        unfused(l);
        return;
    }
    double keys = l->f->attended > 0 ? w->n * l->f->attended : w->n;
    if (l->f->pad_head_dim && d > 64 && d < 128) d = 128;
    ops_push(l, (sc_kernel){.kind = SC_K_FLASH,
                            .precision = l->f->precision,
                            .name = "attention",
                            .batch = (uint64_t)w->groups,
                            .m = (uint64_t)w->m,
                            .n = (uint64_t)keys,
                            .k = (uint64_t)d,
                            .attention = (sc_attention_kernel)l->f->attention,
                            .backward = backward,
                            .low_scores = l->f->low_attention,
                            /* With a window every query has about as many keys,
                             * so the scores form no causal triangle. */
                            .causal = w->causal && w->n >= w->keys,
                            .launches = backward ? 3 : 1});
}
