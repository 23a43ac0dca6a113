/* SPDX-License-Identifier: Apache-2.0 */
/* network_ops.c - builds operators that need more facts in transformers than in
 * other networks. */
#include "model/network.h"

#include <string.h>

static const uint8_t same[SC_TENSOR_DIMS] = {0, 1, 2, 3, 4, 5};

sc_net_op *network_made(network *n, net_value v)
{
    return v == SC_NONE ? NULL : &n->b.g.op[build_tensor(&n->b, v)->op];
}

net_value network_words_again(network *n, const char *name)
{
    return build_embed_of(&n->b, name, n->ids, n->table);
}

const char *network_part(network *n, const char *name, const char *part)
{
    const char *text = sc_sprintf(n->b.a, "%s_%s", name, part);
    if (!text) n->b.no_memory = true;
    return text ? text : name;
}

/* ---- products and norms */

/* A product keeps the whole heads of its input. */
static uint32_t parts_of(network *n, net_value x)
{
    const sc_net_op *op = network_made(n, x);
    if (!op) return 0;
    const sc_iter_dim *it = &op->iter[op->out.at[2]];
    uint64_t parts = it->units ? it->units : it->extent;
    return parts < build_extent(&n->b, x, 2) ? (uint32_t)parts : 0;
}

/* The bias of an existing weight learns if that weight does. */
net_value network_product(network *n, const char *name, net_value x,
                          network_dim out, bool bias, net_value weight)
{
    build_product p = {.out_name = out.name,
                       .out = out.extent,
                       .in_units = parts_of(n, x),
                       .out_units = out.units,
                       .weight = weight,
                       .bias = bias};
    bool frozen = n->b.frozen;
    if (weight != SC_NONE) n->b.frozen |= !build_tensor(&n->b, weight)->learns;
    net_value v = build_linear_named(&n->b, name, x, &p);
    n->b.frozen = frozen;
    return build_named(&n->b, n->m->keep_bf16, name) ? network_keep_bf16(n, v)
                                                     : v;
}

net_value network_keep_bf16(network *n, net_value v)
{
    if (v != SC_NONE) network_made(n, v)->keep_bf16 = true;
    return v;
}

sc_net_op *network_open(network *n, const char *name, sc_net_type type,
                        unsigned n_in, const net_value *in, network_dim dim,
                        sc_tensor *t)
{
    sc_net_op *g = build_open(&n->b, name, type, n_in, in);
    if (!g) return NULL;
    *t = *build_tensor(&n->b, in[0]);
    build_iters_of(g, t);
    g->iter[2].extent = dim.extent;
    g->iter[2].units = dim.units;
    for (unsigned i = 0; i < n_in; i++) build_port(&g->in[i], same, 3);
    return g;
}

net_value network_close(network *n, sc_net_op *op, const sc_tensor *t)
{
    return build_close(&n->b, op, 3, t->dim, same);
}

net_value network_norm(network *n, const char *name, net_value x)
{
    sc_tensor t;
    if (!n->t->plain_norm)
        return build_layer_norm(&n->b, name, x, n->t->norm_bias);
    network_dim dim =
        network_width("hidden", (int64_t)build_extent(&n->b, x, 2), 0);
    sc_net_op *g = network_open(n, name, SC_NET_NORM, 1, &x, dim, &t);
    if (!g) return SC_NONE;
    g->iter[2].kind = SC_I_OPAQUE;
    return network_close(n, g, &t);
}

net_value network_norm_of(network *n, const char *name, net_value x,
                          network_dim dim, uint64_t each)
{
    const sc_tensor_dim width = {"width", each ? each : dim.extent, false};
    uint8_t at = width.extent == dim.extent ? 2 : SC_NO_ITER;
    sc_tensor t;
    if (!each && build_extent(&n->b, x, 2) == dim.extent)
        return network_norm(n, name, x);
    sc_net_op *g = network_open(n, name, SC_NET_NORM, 1, &x, dim, &t);
    if (!g) return SC_NONE;
    if (!each) g->iter[2].kind = SC_I_OPAQUE;
    if (!each) t.dim[2].extent = dim.extent;
    (void)build_weight(&n->b, g, "weight", 1, &width, &at);
    if (n->t->norm_bias) (void)build_weight(&n->b, g, "bias", 1, &width, &at);
    return network_close(n, g, &t);
}

net_value network_act(network *n, const char *name, net_value x)
{
    const char *what = sc_act_names[n->t->act];
    return model_gated(n->t) ? build_act_gated(&n->b, name, x, what)
                             : build_act(&n->b, name, x, what);
}

net_value network_sum(network *n, const char *name, net_value x, net_value y)
{
    net_builder *b = &n->b;
    bool drop = n->t->dropout;
    if (drop && n->unfused)
        x = build_dropout(b, network_part(n, name, "dropout"), x);
    net_value v = build_add(b, name, x, y);
    if (v != SC_NONE && !n->unfused) network_made(n, v)->dropout = drop;
    return v;
}

/* ---- attention */

/* Adds learned scores: one per head next to the others, or one per head and
 * distance (T5), which only the first layer of a stack has. */
static void scores(network *n, const build_attend *w, sc_net_op *g,
                   uint8_t head)
{
    const sc_tensor_dim dim[] = {{"bucket", 32, false},
                                 {"head", (uint64_t)n->t->heads, false}};
    const uint8_t at[] = {SC_NO_ITER, head};
    net_value *table = &n->relative[n->stack];
    if (n->t->sinks) (void)build_weight(&n->b, g, "sinks", 1, dim + 1, &head);
    if (n->t->position != SC_POS_RELATIVE || w->cross) return;
    if (n->t->relative_each)
        (void)build_weight(&n->b, g, "relative", 2, dim, at);
    else if (*table == SC_NONE)
        *table = build_weight(&n->b, g, "relative", 2, dim, at);
    else
        build_weight_of(g, *table, 2, at);
}

/* Queries, keys or values with a head dim. */
static net_value by_head(network *n, const char *name, net_value x,
                         uint32_t heads, uint64_t width, bool keys)
{
    static const uint8_t xs[] = {0, 1, 2}, ys[] = {0, 2, 1, 3};
    sc_net_op *g = build_open(&n->b, name, SC_NET_SLICE, 1, &x);
    if (!g) return SC_NONE;
    const char *rows = keys ? "keys" : "seq";
    const sc_tensor_dim dim[] = {{"batch", 1, true},
                                 {"head", heads, false},
                                 {rows, n->seq, false},
                                 {"width", width, false}};
    (void)build_iter(g, "batch", SC_I_BATCH, 1);
    (void)build_iter(g, "seq", SC_I_FREE, n->seq);
    (void)build_iter(g, "head", SC_I_FREE, heads);
    (void)build_iter(g, "width", SC_I_OPAQUE, width);
    build_port(&g->in[0], xs, 3);
    return build_close(&n->b, g, 4, dim, ys);
}

static void only_seen(network *n, const build_attend *w)
{
    if (n->b.no_memory || n->b.wrong) return;
    sc_net_op *g = &n->b.g.op[n->b.g.n_ops - 1];
    if (w->seen && w->seen < n->seq)
        g->flops *= (double)w->seen / (double)n->seq;
    g->causal = w->causal;
}

/* Patterns name its weights by the attention operator that it belongs to. */
static net_value softmax(network *n, const build_attend *w, const char *name,
                         const char *of, net_value x)
{
    bool frozen = n->b.frozen;
    sc_net_op *g = build_open(&n->b, name, SC_NET_SOFTMAX, 1, &x);
    if (!g) return SC_NONE;
    sc_tensor t = *build_tensor(&n->b, x);
    build_iters_of(g, &t);
    g->iter[t.n_dim - 1].kind = SC_I_OPAQUE;
    build_port(&g->in[0], same, t.n_dim);
    n->b.frozen |= build_named(&n->b, n->b.freeze, of);
    scores(n, w, g, 1);
    n->b.frozen = frozen;
    return build_close(&n->b, g, t.n_dim, t.dim, same);
}

static net_value in_parts(network *n, const char *name, const build_attend *w)
{
    net_builder *b = &n->b;
    net_value kv = w->k == SC_NONE ? w->q : w->k;
    net_value q = by_head(n, network_part(n, name, "q"), w->q, w->heads,
                          w->qk_dim, false);
    net_value k = by_head(n, network_part(n, name, "k"), kv, w->kv_heads,
                          w->qk_dim, true);
    net_value v =
        by_head(n, network_part(n, name, "v"), kv, w->kv_heads, w->v_dim, true);
    net_value x = build_matmul(b, network_part(n, name, "scores"), q, k, true);
    only_seen(n, w);
    x = softmax(n, w, network_part(n, name, "softmax"), name, x);
    if (n->t->dropout)
        x = build_dropout(b, network_part(n, name, "dropout"), x);
    x = build_matmul(b, network_part(n, name, "context"), x, v, false);
    only_seen(n, w);
    const build_dim dim[] = {
        {"batch", 1, 0}, {"seq", n->seq, 2}, {"head", w->out, 1}};
    return build_view(b, name, x, dim, 3, true);
}

net_value network_attention(network *n, const char *name, build_attend w)
{
    const sc_transformer *t = n->t;
    bool latent = t->kv_rank > 0;
    w.v = SC_NONE;
    w.heads = (uint32_t)t->heads;
    w.kv_heads = (uint32_t)t->kv_heads;
    w.qk_dim = (uint64_t)(latent ? t->qk_nope + t->qk_rope : t->head_dim);
    w.v_dim = (uint64_t)(latent ? t->v_dim : t->head_dim);
    w.out = (uint64_t)t->heads * w.v_dim;
    if (n->unfused) return in_parts(n, name, &w);
    sc_net_op *g = build_attention_open(&n->b, name, &w);
    if (!g) return SC_NONE;
    g->dropout = t->dropout;
    scores(n, &w, g, 2);
    return build_attention_close(&n->b, g);
}
