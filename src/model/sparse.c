/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.c - routed experts and Mamba-2 mixers.
 *
 * Routed tensors have a dim EXPERT under which a token stands once per expert
 * it goes to: its extent is top-k, its units are the experts.  The same dim
 * indexes the experts' weights.
 */
#include "model/ops.h"

/* Appends the dims (expert, `dims`) behind batch and seq. */
static sc_operator *routed(sc_layer *l, const char *name, sc_op_type type,
                           const sc_transformer *t)
{
    sc_operator *op = model_op(l, name, type);
    sc_iter expert = {SC_D_EXPERT, SC_I_BATCH, (uint64_t)t->topk,
                      (uint32_t)t->experts};
    op->iter[op->n_iter++] = expert;
    op->x = op->y = MODEL_TOKENS | MODEL_D2;
    return op;
}

static void expert_linear(sc_layer *l, const char *name,
                          const sc_transformer *t, sc_iter in, sc_iter out)
{
    sc_operator *op = routed(l, name, SC_EXPERT, t);
    model_add_dim(op, in, SC_I_REDUCE);
    model_add_dim(op, out, SC_I_FREE);
    op->x |= MODEL_D3;
    op->y |= MODEL_D4;
    op->w = MODEL_D2 | MODEL_D3 | MODEL_D4;
    op->bias = t->bias ? (uint64_t)t->experts * out.extent : 0;
    op->params = (uint64_t)t->experts * in.extent * out.extent + op->bias;
}

static void shared(sc_layer *l, const sc_transformer *t, int8_t norm2)
{
    int64_t f = t->shared_ffn;
    int routed_out = model_last(l);
    sc_iter ffn = model_dim(SC_D_FFN, f, f);
    sc_iter both = model_dim(SC_D_FFN, 2 * f, f);
    model_linear(l, "shared_fc1", model_hidden(t), model_gated(t) ? both : ffn,
                 t->bias)
        ->src = norm2;
    (void)model_pointwise(l, "shared_act", SC_ACT, ffn);
    (void)model_linear(l, "shared_fc2", ffn, model_hidden(t), t->bias);
    (void)model_sum(l, "shared_add", model_hidden(t), routed_out);
}

void model_experts(sc_layer *l, const sc_transformer *t)
{
    int8_t norm2 = (int8_t)model_last(l);
    int64_t f = t->moe_ffn, width = t->latent ? t->latent : t->hidden;
    sc_iter hidden = model_hidden(t), ffn = model_dim(SC_D_FFN, f, f);
    sc_iter both = model_dim(SC_D_FFN, 2 * f, f);
    sc_iter inner = model_dim(SC_D_HIDDEN, width, width);
    sc_iter narrow = model_dim(SC_D_RANK, width, width);

    model_linear(l, "router", hidden,
                 model_dim(SC_D_RANK, t->experts, t->experts), t->router_bias)
        ->wide = true;
    int8_t router = (int8_t)model_last(l);
    int8_t in = norm2;
    if (t->latent) {
        model_linear(l, "moe_down", hidden, narrow, false)->src = norm2;
        in = (int8_t)model_last(l);
    }
    sc_operator *op = routed(l, "dispatch", SC_DISPATCH, t);
    model_add_dim(op, inner, SC_I_FREE);
    op->x = MODEL_TOKENS | MODEL_D3;
    op->y |= MODEL_D3;
    op->src = in;
    op->src2 = router;
    expert_linear(l, "experts_fc1", t, inner, model_gated(t) ? both : ffn);
    op = routed(l, "experts_act", SC_ACT, t);
    model_add_dim(op, ffn, SC_I_FREE);
    op->x = op->y = MODEL_TOKENS | MODEL_D2 | MODEL_D3;
    expert_linear(l, "experts_fc2", t, ffn, inner);
    op = routed(l, "combine", SC_COMBINE, t);
    model_add_dim(op, inner, SC_I_FREE);
    op->x |= MODEL_D3;
    op->y = MODEL_TOKENS | MODEL_D3;
    if (t->latent) (void)model_linear(l, "moe_up", narrow, hidden, false);
    if (t->shared_ffn) shared(l, t, norm2);
}

void model_mamba(sc_layer *l, const sc_transformer *t)
{
    int in = model_last(l);
    int64_t heads = t->ssm_heads, groups = t->ssm_groups;
    int64_t d = heads * t->ssm_head_dim;
    int64_t xbc = d + 2 * groups * t->ssm_state; /* x, B and C */
    sc_iter hidden = model_hidden(t);
    sc_iter inner = model_dim(SC_D_STATE, d, groups);
    /* gate z beside them, and a step length per head */
    sc_iter all = model_dim(SC_D_STATE, xbc + d + heads, groups);

    (void)model_norm(l, "norm1", hidden, t->norm_bias);
    (void)model_linear(l, "in_proj", hidden, all, t->bias);
    sc_operator *op = model_pointwise(l, "conv", SC_CONV1D,
                                      model_dim(SC_D_STATE, xbc, groups));
    op->w = MODEL_D2;
    op->bias = (uint64_t)xbc;
    op->params = (uint64_t)(xbc * t->ssm_conv) + op->bias;

    op = model_pointwise(l, "scan", SC_SCAN, inner);
    op->iter[1].kind = SC_I_OPAQUE;
    model_add_dim(op, model_dim(SC_D_RANK, t->ssm_state, t->ssm_state),
                  SC_I_OPAQUE);
    op->w = MODEL_D2;
    op->params = 3 * (uint64_t)heads; /* decay, skip, bias of the step */

    op = model_norm(l, "ssm_norm", inner, false);
    op->iter[2].kind = SC_I_FREE; /* a norm per group */
    (void)model_linear(l, "out_proj", inner, hidden, t->bias);
    (void)model_sum(l, "add1", hidden, in);
}
