/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - the parts of transformer blocks: attention and MLPs. */
#include "model/ops.h"

/* BERT's norms stand behind the sums. */
static bool post_norm(const sc_transformer *t)
{
    return t->encoder && !t->image;
}

/* Of what a part of the block made, before it is added. */
static void norm_out(sc_layer *l, const sc_transformer *t, const char *name)
{
    if (t->norms != SC_NORMS_BEFORE)
        (void)model_norm(l, name, model_hidden(t), t->norm_bias);
}

static sc_iter heads_of(int64_t heads, int64_t width, int64_t units)
{
    return model_dim(SC_D_HEAD, heads * width, units);
}

static sc_operator *attend(sc_layer *l, const char *name,
                           const sc_transformer *t, const model_kind *k)
{
    bool latent = t->kv_rank > 0;
    int64_t v = latent ? t->v_dim : t->head_dim;
    sc_operator *op =
        model_pointwise(l, name, SC_ATTENTION, heads_of(t->heads, v, t->heads));
    op->iter[1].kind = SC_I_OPAQUE;
    op->window = k->window ? (uint64_t)t->window : 0;
    op->kv_heads = (uint32_t)t->kv_heads;
    op->qk_dim = (uint32_t)(latent ? t->qk_nope + t->qk_rope : t->head_dim);
    op->v_dim = (uint32_t)v;
    op->causal = k->causal;
    if (t->sinks) {
        op->w = MODEL_D2;
        op->params = (uint64_t)t->heads;
    }
    return op;
}

static void grouped(sc_layer *l, const sc_transformer *t)
{
    int64_t heads = t->heads, kv = t->kv_heads, d = t->head_dim;
    sc_iter qk = heads_of(heads + kv, d, heads);
    model_adapted(l, t, "qkv", model_hidden(t),
                  heads_of(heads + 2 * kv, d, heads), t->qkv_bias);
    if (t->qk_norm) {
        sc_operator *op = model_norm(l, "qk_norm", qk, false);
        op->iter[2].kind = SC_I_FREE; /* a norm per head */
        op->params = t->qk_norm_all ? qk.extent : 2 * (uint64_t)d;
    }
    if (t->position == SC_POS_ROTARY) {
        (void)model_pointwise(l, "rope", SC_ROPE, qk);
    }
}

/* Queries, and keys with values, go through a narrow width each; a part of
 * the keys, without positions in the rest, is shared by all heads (DeepSeek-V2,
 * section 2.1). */
static void latent(sc_layer *l, const sc_transformer *t)
{
    int64_t qk = t->qk_nope + t->qk_rope;
    int8_t in = (int8_t)model_last(l);
    sc_iter hidden = model_hidden(t);
    sc_iter q = heads_of(t->heads, qk, t->heads);
    sc_iter kv = heads_of(t->heads, t->qk_nope + t->v_dim, t->heads);
    sc_iter kv_rank = model_dim(SC_D_RANK, t->kv_rank, t->kv_rank);
    int64_t down = t->kv_rank + t->qk_rope;
    if (t->q_rank) {
        sc_iter q_rank = model_dim(SC_D_RANK, t->q_rank, t->q_rank);
        (void)model_linear(l, "q_down", hidden, q_rank, false);
        (void)model_norm(l, "q_norm", q_rank, t->norm_bias);
        model_adapted(l, t, "q_up", q_rank, q, false);
    } else {
        model_adapted(l, t, "q_proj", hidden, q, false);
    }
    int8_t made_q = (int8_t)model_last(l);
    model_linear(l, "kv_down", hidden, model_dim(SC_D_RANK, down, down), false)
        ->src = in;
    (void)model_norm(l, "kv_norm", kv_rank, t->norm_bias);
    model_adapted(l, t, "kv_up", kv_rank, kv, false);
    if (t->qk_rope && t->position == SC_POS_ROTARY) {
        sc_iter turned = heads_of(t->heads, t->qk_rope, t->heads);
        model_pointwise(l, "rope", SC_ROPE, turned)->src = made_q;
    }
}

static void attention(sc_layer *l, const sc_transformer *t, const model_kind *k)
{
    int in = model_last(l);
    sc_iter hidden = model_hidden(t);
    if (!post_norm(t) && t->norms != SC_NORMS_AFTER)
        (void)model_norm(l, "norm1", hidden, t->norm_bias);
    if (t->kv_rank) {
        latent(l, t);
        int kv = model_last(l);
        bool rope = l->op[kv].type == SC_ROPE;
        sc_operator *op = attend(l, "attn", t, k);
        op->src2 = (int8_t)(rope ? kv - 1 : MODEL_NO_SRC);
    } else {
        grouped(l, t);
        (void)attend(l, "attn", t, k);
    }
    int64_t v = t->kv_rank ? t->v_dim : t->head_dim;
    model_adapted(l, t, "proj", heads_of(t->heads, v, t->heads), hidden,
                  t->bias || t->proj_bias);
    norm_out(l, t, "norm1_out");
    (void)model_sum(l, "add1", hidden, in);
    if (post_norm(t)) (void)model_norm(l, "norm1", hidden, t->norm_bias);
}

static void cross_attention(sc_layer *l, const sc_transformer *t)
{
    static const model_kind all = {.causal = false};
    int in = model_last(l);
    int64_t heads = t->heads, kv = t->kv_heads, d = t->head_dim;
    sc_iter hidden = model_hidden(t), q = heads_of(heads, d, heads);
    (void)model_norm(l, "cross_norm", hidden, t->norm_bias);
    (void)model_linear(l, "cross_q", hidden, q, t->qkv_bias);
    int8_t made_q = (int8_t)model_last(l);
    model_linear(l, "cross_kv", hidden, heads_of(2 * kv, d, kv), t->qkv_bias)
        ->src = MODEL_LAYER_INPUT; /* stands for the encoder's output */
    sc_operator *op = attend(l, "cross_attn", t, &all);
    op->cross = true;
    op->src2 = op->src;
    op->src = made_q;
    (void)model_linear(l, "cross_proj", q, hidden, t->bias);
    (void)model_sum(l, "cross_add", hidden, in);
}

static void dense(sc_layer *l, const sc_transformer *t)
{
    sc_iter hidden = model_hidden(t), f = model_dim(SC_D_FFN, t->ffn, t->ffn);
    sc_iter both = model_dim(SC_D_FFN, 2 * t->ffn, t->ffn);
    bool bias = t->bias || t->mlp_bias;
    model_adapted(l, t, "fc1", hidden, model_gated(t) ? both : f, bias);
    (void)model_pointwise(l, "act", SC_ACT, f);
    model_adapted(l, t, "fc2", f, hidden, bias);
}

/* What operators from `first` on would read of `from` they read of `other`. */
static void read_other(sc_layer *l, uint32_t first, int from, int other)
{
    for (uint32_t i = first; i < l->n_ops; i++)
        if (l->op[i].src == from) l->op[i].src = (int8_t)other;
}

static void mlp(sc_layer *l, const sc_transformer *t, const model_kind *k,
                int block_in)
{
    int in = model_last(l);
    sc_iter hidden = model_hidden(t);
    uint32_t first = l->n_ops;
    if (!post_norm(t) && t->norms != SC_NORMS_AFTER && !t->one_norm) {
        sc_operator *op = model_norm(l, "norm2", hidden, t->norm_bias);
        if (t->parallel) op->src = (int8_t)block_in;
    }
    if (k->mlp == MODEL_MOE) {
        model_experts(l, t);
    } else {
        dense(l, t);
    }
    if (t->one_norm) read_other(l, first, in, block_in + 1);
    norm_out(l, t, "norm2_out");
    (void)model_sum(l, "add2", hidden, in);
    if (post_norm(t)) (void)model_norm(l, "norm2", hidden, t->norm_bias);
}

/* The state of a token beside the embedding of the next (DeepSeek-V3,
 * section 2.2); the embedding is the model's own. */
static void mtp_input(sc_layer *l, const sc_transformer *t)
{
    sc_iter hidden = model_hidden(t);
    sc_iter two = model_dim(SC_D_HIDDEN, 2 * t->hidden, 2 * t->hidden);
    (void)model_norm(l, "mtp_norm_h", hidden, t->norm_bias);
    model_norm(l, "mtp_norm_e", hidden, t->norm_bias)->src = MODEL_LAYER_INPUT;
    model_linear(l, "mtp_proj", two, hidden, false)->src2 = 0;
}

void model_block(sc_layer *l, const sc_transformer *t, const model_kind *k)
{
    l->path = k->path;
    l->kind = SC_LAYER_BLOCK;
    if (k->mtp) mtp_input(l, t);
    int in = model_last(l);
    if (k->mixer == MODEL_ATTENTION) attention(l, t, k);
    if (k->mixer == MODEL_MAMBA) model_mamba(l, t);
    if (k->cross) cross_attention(l, t);
    if (k->mlp != MODEL_NO_MLP) mlp(l, t, k, in);
    if (k->last_enc) {
        (void)model_norm(l, "norm_enc", model_hidden(t), t->norm_bias);
    }
}
