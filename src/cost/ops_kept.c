/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_kept.c - the data that operators keep for their backward pass, and those
 * that kernels hold in addition to inputs and outputs.
 */
#include "cost/ops.h"

#include <math.h>

static bool low_precision(const sc_op_facts *f, const sc_op_work *w)
{
    return w->low_precision && f->precision >= SC_FP8;
}

/* A fused kernel keeps the logarithm of the sum of each row; otherwise the
 * softmax, the result of its dropout and the mask are kept. */
static void of_attention(const sc_op_facts *f, const sc_op_work *w,
                         sc_op_held *out)
{
    double scores = w->groups * w->m * w->keys;
    if (f->attention != SC_ATTN_UNFUSED) {
        out->own[0] = 4 * w->groups * w->m;
        return;
    }
    out->own[0] = scores * w->each;
    if (!w->dropout) return;
    out->own[1] = scores * w->each;
    out->own[2] = scores;
}

/* A low-precision product keeps its cast operand, one byte per element.
 * Kernels read both operands along the summed dim, so the backward pass casts
 * the gradient in both layouts and transposes the input. */
static void of_product(const sc_op_facts *f, const sc_op_work *w,
                       sc_op_held *out)
{
    if (!low_precision(f, w)) return;
    out->grad = (w->weight_learns ? 2 : 1) * w->elements;
    if (!w->weight_learns) return;
    out->copy = 1;
    out->operand = w->x / w->each;
}

/* Without a fused kernel, the activation of a gated layer is a tensor of its
 * own, which the gradient of the gate reads. */
static void of_activation(const sc_op_facts *f, const sc_op_work *w,
                          sc_op_held *out)
{
    if (f->low_activations && f->precision >= SC_FP8) out->copy = 1;
    if (w->gated && !f->fused && !f->single_pass)
        out->own[0] = w->elements * w->each;
}

/* Logits are in 16 bits and are replaced by their gradients.  A loss of several
 * kernels keeps them in 32 bits and needs most memory while it computes the
 * gradients. */
static void of_loss(const sc_op_facts *f, const sc_op_work *w, sc_op_held *out)
{
    double logits = w->x / w->each;
    double most =
        w->split && f->split_logits > 0 ? f->split_logits : f->logit_bytes;
    if (most <= 2 * w->each) return;
    out->copy = 4;
    out->forward = fmax(0, most - w->each - out->copy) * logits;
}

void sc_op_hold(const sc_op_facts *f, const sc_op_work *w, sc_op_held *out)
{
    *out = (sc_op_held){0};
    switch ((sc_net_type)w->type) {
    case SC_NET_LINEAR:
    case SC_NET_EXPERT: of_product(f, w, out); break;
    case SC_NET_ACT: of_activation(f, w, out); break;
    case SC_NET_DROPOUT: out->own[0] = w->elements; break;
    case SC_NET_ELEMENTWISE: out->own[0] = w->dropout ? w->elements : 0; break;
    case SC_NET_ATTENTION: of_attention(f, w, out); break;
    case SC_NET_LOSS: of_loss(f, w, out); break;
    default: break;
    }
}
