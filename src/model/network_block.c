/* SPDX-License-Identifier: Apache-2.0 */
/* network_block.c - builds the parts of a transformer's blocks: attention and
 * MLPs. */
#include "model/network.h"

static bool post_norm(const network *n)
{
    return model_post_norm(n->t);
}

static bool norms_first(const network *n)
{
    return !post_norm(n) && n->t->norms != SC_NORMS_AFTER;
}

/* A norm of a part's result before it is added. */
static net_value norm_out(network *n, const char *name, net_value x)
{
    bool has = n->t->norms == SC_NORMS_AFTER || n->t->norms == SC_NORMS_BOTH;
    return has ? network_norm(n, name, x) : x;
}

/* A product, the two products of its adapter, and their sum; if there are
 * adapters, only they learn. */
static net_value adapted(network *n, const char *name, net_value x,
                         network_dim out, bool bias)
{
    net_value base = network_linear(n, name, x, out, bias);
    if (!n->t->lora) return base;
    n->b.frozen = false;
    x = network_linear(n, network_part(n, name, "lora_a"), x,
                       network_rank(n->t->lora), false);
    x = network_linear(n, network_part(n, name, "lora_b"),
                       network_keep_bf16(n, x), out, false);
    n->b.frozen = true;
    return build_add(&n->b, network_part(n, name, "lora_add"),
                     network_keep_bf16(n, x), base);
}

static net_value rope(network *n, net_value x, network_dim dim)
{
    sc_tensor t; /* values stay as they are, next to queries and keys */
    sc_net_op *g = network_open(n, "rope", SC_NET_ROPE, 1, &x, dim, &t);
    return g ? network_close(n, g, &t) : SC_NONE;
}

static net_value grouped(network *n, build_attend w, net_value x)
{
    const sc_transformer *t = n->t;
    int64_t h = t->heads, kv = t->kv_heads, d = t->head_dim;
    network_dim qk = network_heads(h + kv, d, h);
    w.q = adapted(n, "qkv", x, network_heads(h + 2 * kv, d, h), t->qkv_bias);
    if (t->qk_norm)
        w.q = network_norm_of(n, "qk_norm", w.q, qk,
                              t->qk_norm_all ? qk.extent : 2 * (uint64_t)d);
    if (t->position == SC_POS_ROTARY) w.q = rope(n, w.q, qk);
    w.k = SC_NONE;
    net_value v = network_attention(n, "attn", w);
    if (!t->attn_gate) return v;
    net_value gate =
        adapted(n, "attn_gate", x, network_heads(h, d, h), t->qkv_bias);
    gate = build_act(&n->b, "attn_gate_act", gate, "sigmoid");
    return build_elementwise(&n->b, "attn_gated", v, gate, "product");
}

/* Queries are projected through a narrow width, keys and values through
 * another.  All heads share the rotary part of the keys (DeepSeek-V2, section
 * 2.1). */
static net_value latent(network *n, build_attend w, net_value x)
{
    const sc_transformer *t = n->t;
    int64_t h = t->heads;
    network_dim q = network_heads(h, t->qk_nope + t->qk_rope, h);
    network_dim kv = network_heads(h, t->qk_nope + t->v_dim, h);
    if (t->q_rank) {
        w.q = network_linear(n, "q_down", x, network_rank(t->q_rank), false);
        w.q = network_norm(n, "q_norm", w.q);
        w.q = adapted(n, "q_up", w.q, q, false);
    } else {
        w.q = adapted(n, "q_proj", x, q, false);
    }
    w.k = network_linear(n, "kv_down", x, network_rank(t->kv_rank + t->qk_rope),
                         false);
    w.k = network_norm_of(n, "kv_norm", w.k, network_rank(t->kv_rank), 0);
    w.k = adapted(n, "kv_up", w.k, kv, false);
    if (t->qk_rope && t->position == SC_POS_ROTARY)
        w.q = rope(n, w.q, network_heads(h, t->qk_rope, h));
    return network_attention(n, "attn", w);
}

static net_value attend(network *n, const sc_layer *l, net_value normed)
{
    const sc_transformer *t = n->t;
    const build_attend w = {.seen = l->window ? (uint64_t)t->window : 0,
                            .causal = l->causal};
    net_value v = t->kv_rank ? latent(n, w, normed) : grouped(n, w, normed);
    return adapted(n, "proj", v, network_hidden(n), t->bias || t->proj_bias);
}

/* `*normed` receives the normed input. */
static net_value attention(network *n, const sc_layer *l, net_value x,
                           net_value *normed)
{
    *normed = norms_first(n) ? network_norm(n, "norm1", x) : x;
    net_value v = attend(n, l, *normed);
    v = network_sum(n, "add1", norm_out(n, "norm1_out", v), x);
    return post_norm(n) ? network_norm(n, "norm1", v) : v;
}

/* Attention and Mamba-2 read the same input (Falcon-H1). */
static net_value both(network *n, const sc_layer *l, net_value x)
{
    net_value normed = norms_first(n) ? network_norm(n, "norm1", x) : x;
    net_value v = attend(n, l, normed);
    v = build_add(&n->b, "mixed", network_mamba_of(n, normed, false), v);
    v = network_sum(n, "add1", norm_out(n, "norm1_out", v), x);
    return post_norm(n) ? network_norm(n, "norm1", v) : v;
}

/* Keys and values are made from the encoder's result. */
static net_value cross_attention(network *n, net_value x)
{
    const sc_transformer *t = n->t;
    int64_t h = t->heads, kv = t->kv_heads, d = t->head_dim;
    build_attend w = {.cross = true};
    net_value v = post_norm(n) ? x : network_norm(n, "cross_norm", x);
    w.q = network_linear(n, "cross_q", v, network_heads(h, d, h), t->qkv_bias);
    w.k = network_linear(n, "cross_kv", n->encoded,
                         network_heads(2 * kv, d, kv), t->qkv_bias);
    v = network_attention(n, "cross_attn", w);
    v = network_linear(n, "cross_proj", v, network_hidden(n), t->bias);
    v = network_sum(n, "cross_add", v, x);
    return post_norm(n) ? network_norm(n, "cross_norm", v) : v;
}

static net_value dense(network *n, net_value x)
{
    const sc_transformer *t = n->t;
    bool bias = t->bias || t->mlp_bias;
    net_value (*product)(network *, const char *, net_value, network_dim,
                         bool) = t->lora_mlp ? adapted : network_linear;
    x = product(n, "fc1", x, network_ffn(n, t->ffn), bias);
    x = network_act(n, "act", x);
    return product(n, "fc2", x, network_hidden(n), bias);
}

/* `first` is the block's input, `normed` the same after the norm that the parts
 * may share. */
static net_value mlp(network *n, const sc_layer *l, net_value x,
                     net_value first, net_value normed)
{
    net_value v = x;
    if (n->t->one_norm && normed != SC_NONE)
        v = normed;
    else if (norms_first(n))
        v = network_norm(n, "norm2", n->t->parallel ? first : x);
    v = l->mlp == SC_MLP_EXPERTS ? network_experts(n, v) : dense(n, v);
    v = network_sum(n, "add2", norm_out(n, "norm2_out", v), x);
    return post_norm(n) ? network_norm(n, "norm2", v) : v;
}

/* Joins the state of a token with the embedding of the next (DeepSeek-V3,
 * section 2.2); the embedding is the model's own. */
static net_value mtp_input(network *n, net_value x)
{
    net_value both[] = {network_norm(n, "mtp_norm_h", x), SC_NONE};
    x = network_words_again(n, "mtp_embed");
    both[1] = network_norm(n, "mtp_norm_e", x);
    x = build_concat(&n->b, "mtp_join", both, 2, 2);
    return network_linear(n, "mtp_proj", x, network_hidden(n), false);
}

net_value network_block(network *n, const sc_layer *l, net_value x)
{
    if (l->mtp) x = mtp_input(n, x);
    net_value first = x, normed = SC_NONE;
    if (l->mixer == SC_MIXER_ATTENTION) x = attention(n, l, x, &normed);
    if (l->mixer == SC_MIXER_MAMBA || l->mixer == SC_MIXER_DELTA)
        x = network_mamba(n, x, l->mixer == SC_MIXER_DELTA);
    if (l->mixer == SC_MIXER_BOTH) x = both(n, l, x);
    if (l->cross) x = cross_attention(n, x);
    if (l->mlp != SC_MLP_NONE) x = mlp(n, l, x, first, normed);
    return l->last_enc ? network_norm(n, "norm_enc", x) : x;
}
