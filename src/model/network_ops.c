/* SPDX-License-Identifier: Apache-2.0 */
/* network_ops.c - operators of transformers that have more to say than those
 * of any network. */
#include "model/network.h"

#include <string.h>

static const uint8_t same[SC_G_DIMS] = {0, 1, 2, 3, 4, 5};

sc_gop *network_made(network *n, gb_value v)
{
    return v == SC_NONE ? NULL : &n->b.g.op[gb_tensor(&n->b, v)->op];
}

gb_value network_words_again(network *n, const char *name)
{
    return gb_embed_of(&n->b, name, n->ids, n->table);
}

/* ---- products and norms */

gb_value network_linear(network *n, const char *name, gb_value x,
                        network_product p)
{
    gb_product g = {.out_name = p.out.name,
                    .out = p.out.extent,
                    .in_units = p.in_units,
                    .out_units = p.out.units,
                    .weight = SC_NONE,
                    .bias = p.bias};
    bool frozen = n->b.frozen;
    if (p.tied) g.weight = n->head != SC_NONE ? n->head : n->table;
    if (g.weight != SC_NONE) /* its bias goes with it */
        n->b.frozen |= !gb_tensor(&n->b, g.weight)->learns;
    gb_value v = gb_linear_named(&n->b, name, x, &g);
    n->b.frozen = frozen;
    sc_gop *op = network_made(n, v);
    if (op) op->keep_bf16 = p.wide || gb_named(&n->b, n->m->wide, name);
    return v;
}

/* The two products of an adapter and the sum with what they adapt. */
static const struct {
    const char *of, *a, *b, *add;
    bool mlp;
} adapters[] = {
    {"qkv", "qkv_lora_a", "qkv_lora_b", "qkv_lora_add", false},
    {"q_proj", "q_proj_lora_a", "q_proj_lora_b", "q_proj_lora_add", false},
    {"q_up", "q_up_lora_a", "q_up_lora_b", "q_up_lora_add", false},
    {"kv_up", "kv_up_lora_a", "kv_up_lora_b", "kv_up_lora_add", false},
    {"proj", "proj_lora_a", "proj_lora_b", "proj_lora_add", false},
    {"fc1", "fc1_lora_a", "fc1_lora_b", "fc1_lora_add", true},
    {"fc2", "fc2_lora_a", "fc2_lora_b", "fc2_lora_add", true},
};

/* Only adapters learn where there are any. */
gb_value network_adapted(network *n, const char *name, gb_value x,
                         network_product p)
{
    const sc_transformer *t = n->t;
    gb_value base = network_linear(n, name, x, p);
    for (size_t i = 0; t->lora && i < SC_COUNT(adapters); i++) {
        if (strcmp(name, adapters[i].of) != 0) continue;
        if (adapters[i].mlp && !t->lora_mlp) break;
        network_product a = {.out = network_width("rank", t->lora, t->lora),
                             .in_units = p.in_units,
                             .wide = true};
        network_product b = {.out = p.out, .wide = true};
        n->b.frozen = false;
        gb_value v = network_linear(n, adapters[i].a, x, a);
        v = network_linear(n, adapters[i].b, v, b);
        n->b.frozen = true;
        return gb_add(&n->b, adapters[i].add, v, base);
    }
    return base;
}

gb_value network_norm(network *n, const char *name, gb_value x)
{
    return gb_layer_norm(&n->b, name, x, n->t->norm_bias);
}

gb_value network_norm_part(network *n, const char *name, gb_value x,
                           uint64_t extent)
{
    static const uint8_t last = 2;
    if (gb_extent(&n->b, x, 2) == extent) return network_norm(n, name, x);
    sc_gop *g = gb_open(&n->b, name, SC_G_NORM, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&n->b, x);
    const sc_gdim width = {"width", extent, false};
    t.dim[2].extent = extent;
    gb_iters_of(g, &t);
    g->iter[2].kind = SC_I_OPAQUE;
    gb_port(&g->in[0], same, 3);
    (void)gb_weight(&n->b, g, "weight", 1, &width, &last);
    if (n->t->norm_bias) (void)gb_weight(&n->b, g, "bias", 1, &width, &last);
    return gb_close(&n->b, g, 3, t.dim, same);
}

gb_value network_norm_each(network *n, const char *name, gb_value x,
                           network_dim dim, uint64_t weights)
{
    static const uint8_t none = SC_G_NO_ITER, last = 2;
    sc_gop *g = gb_open(&n->b, name, SC_G_NORM, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&n->b, x);
    bool whole = weights == dim.extent;
    const sc_gdim width = {"width", weights, false};
    gb_iters_of(g, &t);
    g->iter[2].extent = dim.extent; /* heads stand beside values */
    g->iter[2].units = dim.units;
    gb_port(&g->in[0], same, 3);
    (void)gb_weight(&n->b, g, "weight", 1, &width, whole ? &last : &none);
    return gb_close(&n->b, g, 3, t.dim, same);
}

/* What turns queries and keys leaves the values beside them as they are. */
gb_value network_rope(network *n, const char *name, gb_value x, network_dim dim)
{
    sc_gop *g = gb_open(&n->b, name, SC_G_ROPE, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&n->b, x);
    gb_iters_of(g, &t);
    g->iter[2].extent = dim.extent;
    g->iter[2].units = dim.units;
    gb_port(&g->in[0], same, 3);
    return gb_close(&n->b, g, 3, t.dim, same);
}

gb_value network_act(network *n, const char *name, gb_value x)
{
    const char *what = sc_act_names[n->t->act];
    return model_gated(n->t) ? gb_act_gated(&n->b, name, x, what)
                             : gb_act(&n->b, name, x, what);
}

gb_value network_sum(network *n, const char *name, gb_value x, gb_value y)
{
    gb_graph *b = &n->b;
    bool drop = n->t->dropout;
    if (drop && n->unfused) {
        const char *own = sc_sprintf(b->a, "%s_dropout", name);
        if (!own) b->no_memory = true;
        if (own) x = gb_dropout(b, own, x);
    }
    gb_value v = gb_add(b, name, x, y);
    if (v != SC_NONE && !n->unfused) network_made(n, v)->dropout = drop;
    return v;
}

/* ---- attention */

/* Learned scores: one per head beside all others, or one per head and distance
 * (T5), which the first layer of a stack has. */
static void scores(network *n, const network_scores *s, sc_gop *g, uint8_t head)
{
    const sc_gdim dim[] = {{"bucket", 32, false},
                           {"head", (uint64_t)n->t->heads, false}};
    const uint8_t at[] = {SC_G_NO_ITER, head};
    gb_value *w = &n->relative[n->stack];
    if (n->t->sinks) (void)gb_weight(&n->b, g, "sinks", 1, dim + 1, &head);
    if (n->t->position != SC_POS_RELATIVE || s->cross) return;
    if (*w == SC_NONE)
        *w = gb_weight(&n->b, g, "relative", 2, dim, at);
    else
        gb_weight_of(g, *w, 2, at);
}

/* Queries, keys or values, by head. */
static gb_value by_head(network *n, const char *name, gb_value x,
                        uint32_t heads, uint64_t width, bool keys)
{
    static const uint8_t xs[] = {0, 1, 2}, ys[] = {0, 2, 1, 3};
    sc_gop *g = gb_open(&n->b, name, SC_G_SLICE, 1, &x);
    if (!g) return SC_NONE;
    const char *rows = keys ? "keys" : "seq";
    const sc_gdim dim[] = {{"batch", 1, true},
                           {"head", heads, false},
                           {rows, n->seq, false},
                           {"width", width, false}};
    (void)gb_iter(g, "batch", SC_I_BATCH, 1);
    (void)gb_iter(g, "seq", SC_I_FREE, n->seq);
    (void)gb_iter(g, "head", SC_I_FREE, heads);
    (void)gb_iter(g, "width", SC_I_OPAQUE, width);
    gb_port(&g->in[0], xs, 3);
    return gb_close(&n->b, g, 4, dim, ys);
}

static void only_seen(network *n, const network_scores *s)
{
    if (n->b.no_memory || n->b.wrong) return;
    sc_gop *g = &n->b.g.op[n->b.g.n_ops - 1];
    if (s->window && s->window < n->seq)
        g->flops *= (double)s->window / (double)n->seq;
    g->causal = s->causal;
}

/* Patterns name its weights by the attention that it is a part of. */
static gb_value softmax(network *n, const network_scores *s, const char *name,
                        const char *of, gb_value x)
{
    bool frozen = n->b.frozen;
    sc_gop *g = gb_open(&n->b, name, SC_G_SOFTMAX, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&n->b, x);
    gb_iters_of(g, &t);
    g->iter[t.n_dim - 1].kind = SC_I_OPAQUE;
    gb_port(&g->in[0], same, t.n_dim);
    n->b.frozen |= gb_named(&n->b, n->b.freeze, of);
    scores(n, s, g, 1);
    n->b.frozen = frozen;
    return gb_close(&n->b, g, t.n_dim, t.dim, same);
}

static gb_value in_parts(network *n, const char *name, const network_scores *s,
                         const gb_attend *w)
{
    gb_graph *b = &n->b;
    const char *p[] = {"q",       "k",       "v",      "scores",
                       "softmax", "dropout", "context"};
    for (size_t i = 0; i < SC_COUNT(p); i++) {
        p[i] = sc_sprintf(b->a, "%s_%s", name, p[i]);
        if (!p[i]) b->no_memory = true;
    }
    if (b->no_memory) return SC_NONE;
    gb_value kv = w->k == SC_NONE ? w->q : w->k;
    gb_value q = by_head(n, p[0], w->q, w->heads, w->qk_dim, false);
    gb_value k = by_head(n, p[1], kv, w->kv_heads, w->qk_dim, true);
    gb_value v = by_head(n, p[2], kv, w->kv_heads, w->v_dim, true);
    gb_value x = gb_matmul(b, p[3], q, k, true);
    only_seen(n, s);
    x = softmax(n, s, p[4], name, x);
    if (n->t->dropout) x = gb_dropout(b, p[5], x);
    gb_value y = gb_matmul(b, p[6], x, v, false);
    only_seen(n, s);
    const gb_dim dim[] = {
        {"batch", 1, 0}, {"seq", n->seq, 2}, {"head", w->out, 1}};
    return gb_view(b, name, y, dim, 3, true);
}

gb_value network_attention(network *n, const char *name, network_scores s)
{
    const sc_transformer *t = n->t;
    bool latent = t->kv_rank > 0;
    int64_t qk = latent ? t->qk_nope + t->qk_rope : t->head_dim;
    int64_t v = latent ? t->v_dim : t->head_dim;
    const gb_attend w = {.q = s.q,
                         .k = s.kv,
                         .v = SC_NONE,
                         .heads = (uint32_t)t->heads,
                         .kv_heads = (uint32_t)t->kv_heads,
                         .out = (uint64_t)(t->heads * v),
                         .qk_dim = (uint64_t)qk,
                         .v_dim = (uint64_t)v,
                         .seen = s.window,
                         .causal = s.causal};
    if (n->unfused) return in_parts(n, name, &s, &w);
    sc_gop *g = gb_attention_open(&n->b, name, &w);
    if (!g) return SC_NONE;
    g->cross = s.cross;
    g->dropout = t->dropout;
    scores(n, &s, g, 2);
    return gb_attention_close(&n->b, g);
}
