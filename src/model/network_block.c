/* SPDX-License-Identifier: Apache-2.0 */
/* network_block.c - the parts of a transformer's blocks: attention and MLPs. */
#include "model/network.h"

/* BERT's norms stand behind the sums. */
static bool post_norm(const network *n)
{
    return n->t->encoder && !n->t->image;
}

static bool norms_first(const network *n)
{
    return !post_norm(n) && n->t->norms != SC_NORMS_AFTER;
}

static gb_value grouped(network *n, const sc_layer *l, gb_value x)
{
    const sc_transformer *t = n->t;
    int64_t heads = t->heads, kv = t->kv_heads, d = t->head_dim;
    network_dim qk = network_heads(heads + kv, d, heads);
    network_product qkv = {.out = network_heads(heads + 2 * kv, d, heads),
                           .bias = t->qkv_bias};
    gb_value v = network_adapted(n, "qkv", x, qkv);
    if (t->qk_norm)
        v = network_norm_each(n, "qk_norm", v, qk,
                              t->qk_norm_all ? qk.extent : 2 * (uint64_t)d);
    if (t->position == SC_POS_ROTARY) v = network_rope(n, "rope", v, qk);
    network_scores s = {.q = v,
                        .kv = SC_NONE,
                        .window = l->window ? (uint64_t)t->window : 0,
                        .causal = l->causal};
    return network_attention(n, "attn", s);
}

/* Queries, and keys with values, go through a narrow width each; a part of
 * the keys, without positions in the rest, is shared by all heads (DeepSeek-V2,
 * section 2.1). */
static gb_value latent(network *n, const sc_layer *l, gb_value x)
{
    const sc_transformer *t = n->t;
    int64_t h = t->heads, down = t->kv_rank + t->qk_rope;
    network_product q = {.out = network_heads(h, t->qk_nope + t->qk_rope, h)};
    network_product kv = {.out = network_heads(h, t->qk_nope + t->v_dim, h)};
    network_product q_down = {.out =
                                  network_width("rank", t->q_rank, t->q_rank)};
    network_product kv_down = {.out = network_width("rank", down, down)};
    network_scores s = {.window = l->window ? (uint64_t)t->window : 0,
                        .causal = l->causal};
    if (t->q_rank) {
        s.q = network_linear(n, "q_down", x, q_down);
        s.q = network_norm(n, "q_norm", s.q);
        s.q = network_adapted(n, "q_up", s.q, q);
    } else {
        s.q = network_adapted(n, "q_proj", x, q);
    }
    s.kv = network_linear(n, "kv_down", x, kv_down);
    s.kv = network_norm_part(n, "kv_norm", s.kv, (uint64_t)t->kv_rank);
    s.kv = network_adapted(n, "kv_up", s.kv, kv);
    if (t->qk_rope && t->position == SC_POS_ROTARY)
        s.q = network_rope(n, "rope", s.q, network_heads(h, t->qk_rope, h));
    return network_attention(n, "attn", s);
}

/* Of what a part of the block made, before it is added. */
static gb_value norm_out(network *n, const char *name, gb_value x)
{
    return n->t->norms == SC_NORMS_BEFORE ? x : network_norm(n, name, x);
}

/* `*normed` is what it reads. */
static gb_value attention(network *n, const sc_layer *l, gb_value x,
                          gb_value *normed)
{
    const sc_transformer *t = n->t;
    int64_t v_dim = t->kv_rank ? t->v_dim : t->head_dim;
    network_product proj = {.out = network_hidden(n),
                            .in_units =
                                network_heads(t->heads, v_dim, t->heads).units,
                            .bias = t->bias || t->proj_bias};
    *normed = norms_first(n) ? network_norm(n, "norm1", x) : x;
    gb_value v = t->kv_rank ? latent(n, l, *normed) : grouped(n, l, *normed);
    v = network_adapted(n, "proj", v, proj);
    v = norm_out(n, "norm1_out", v);
    v = network_sum(n, "add1", v, x);
    return post_norm(n) ? network_norm(n, "norm1", v) : v;
}

/* Keys and values are of what the encoder made. */
static gb_value cross_attention(network *n, gb_value x)
{
    const sc_transformer *t = n->t;
    int64_t heads = t->heads, kv = t->kv_heads, d = t->head_dim;
    network_product q = {.out = network_heads(heads, d, heads),
                         .bias = t->qkv_bias};
    network_product both = {.out = network_heads(2 * kv, d, kv),
                            .bias = t->qkv_bias};
    network_product proj = {
        .out = network_hidden(n), .in_units = q.out.units, .bias = t->bias};
    gb_value v = network_norm(n, "cross_norm", x);
    network_scores s = {.cross = true};
    s.q = network_linear(n, "cross_q", v, q);
    s.kv = network_linear(n, "cross_kv", n->encoded, both);
    v = network_attention(n, "cross_attn", s);
    v = network_linear(n, "cross_proj", v, proj);
    return network_sum(n, "cross_add", v, x);
}

static gb_value dense(network *n, gb_value x)
{
    const sc_transformer *t = n->t;
    int64_t f = t->ffn, wide = model_gated(t) ? 2 * f : f;
    bool bias = t->bias || t->mlp_bias;
    network_product fc1 = {.out = network_width("ffn", wide, f), .bias = bias};
    network_product fc2 = {.out = network_hidden(n), .bias = bias};
    gb_value v = network_adapted(n, "fc1", x, fc1);
    v = network_act(n, "act", v);
    return network_adapted(n, "fc2", v, fc2);
}

/* `first` is what the block reads, `normed` the same behind the norm that its
 * parts may share. */
static gb_value mlp(network *n, const sc_layer *l, gb_value x, gb_value first,
                    gb_value normed)
{
    gb_value v = x;
    if (n->t->one_norm && normed != SC_NONE)
        v = normed;
    else if (norms_first(n))
        v = network_norm(n, "norm2", n->t->parallel ? first : x);
    v = l->mlp == SC_MLP_EXPERTS ? network_experts(n, v) : dense(n, v);
    v = network_sum(n, "add2", norm_out(n, "norm2_out", v), x);
    return post_norm(n) ? network_norm(n, "norm2", v) : v;
}

/* The state of a token beside the embedding of the next (DeepSeek-V3,
 * section 2.2); the embedding is the model's own. */
static gb_value mtp_input(network *n, gb_value x)
{
    network_product proj = {.out = network_hidden(n)};
    gb_value h = network_norm(n, "mtp_norm_h", x);
    gb_value e = network_words_again(n, "mtp_embed");
    e = network_norm(n, "mtp_norm_e", e);
    const gb_value both[] = {h, e};
    return network_linear(n, "mtp_proj",
                          gb_concat(&n->b, "mtp_join", both, 2, 2), proj);
}

gb_value network_block(network *n, const sc_layer *l, gb_value x)
{
    if (l->mtp) x = mtp_input(n, x);
    gb_value first = x, normed = SC_NONE;
    if (l->mixer == SC_MIXER_ATTENTION) x = attention(n, l, x, &normed);
    if (l->mixer == SC_MIXER_MAMBA) x = network_mamba(n, x);
    if (l->cross) x = cross_attention(n, x);
    if (l->mlp != SC_MLP_NONE) x = mlp(n, l, x, first, normed);
    return l->last_enc ? network_norm(n, "norm_enc", x) : x;
}
