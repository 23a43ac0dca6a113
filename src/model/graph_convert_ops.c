/* SPDX-License-Identifier: Apache-2.0 */
/* graph_convert_ops.c - operators of a generated transformer, one by one. */
#include "model/graph_convert.h"

#include <math.h>
#include <string.h>

static const uint8_t same[SC_G_DIMS] = {0, 1, 2, 3, 4, 5};

static const sc_iter *iter_of(const sc_operator *op, unsigned in, unsigned out)
{
    for (unsigned i = 2; i < op->n_iter; i++) {
        bool x = (op->x >> i & 1U) != 0, y = (op->y >> i & 1U) != 0;
        if (op->iter[i].name == SC_D_EXPERT) continue;
        if ((!in || x) && (!out || y)) return &op->iter[i];
    }
    return &op->iter[0];
}

static sc_gop *made(convert *c, gb_value v)
{
    return v == SC_NONE ? NULL : &c->b.g.op[gb_tensor(&c->b, v)->op];
}

/* ---- embedding */

static gb_value words(convert *c, const sc_operator *op)
{
    const sc_gdim dim[] = {{"batch", 1, true}, {"seq", c->seq, false}};
    c->ids = gb_input(&c->b, "tokens", 2, dim, 8);
    uint64_t width = iter_of(op, 0, 1)->extent;
    gb_value y =
        gb_embed(&c->b, op->name, c->ids, op->params / width, width, 1);
    if (y != SC_NONE) c->table = made(c, y)->weight[0].tensor;
    return y;
}

gb_value convert_words_again(convert *c, const char *name)
{
    return gb_embed_of(&c->b, name, c->ids, c->table);
}

static gb_value patches(convert *c, const sc_operator *op)
{
    const sc_iter *in = iter_of(op, 1, 0), *out = iter_of(op, 0, 1);
    const sc_gdim dim[] = {{"batch", 1, true},
                           {"seq", c->seq - 1, false},
                           {"rank", in->extent, false}};
    gb_product p = {.out_name = "hidden",
                    .out = out->extent,
                    .weight = SC_NONE,
                    .bias = op->bias > 0};
    return gb_linear_named(&c->b, op->name,
                           gb_input(&c->b, "patches", 3, dim, 0), &p);
}

/* A row per position, of which the first are used; or one for all. */
static gb_value table(convert *c, const sc_operator *op, gb_value x)
{
    gb_graph *b = &c->b;
    uint64_t width = iter_of(op, 0, 1)->extent, rows = op->params / width;
    bool token = strcmp(op->name, "class_token") == 0;
    /* T5's table is one of attention. */
    if (c->m->t.position == SC_POS_RELATIVE &&
        strcmp(op->name, "position") == 0)
        return x;
    sc_gop *g =
        gb_open(b, op->name, token ? SC_G_CONCAT : SC_G_POSITION, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(b, x);
    if (token) t.dim[1].extent = c->seq;
    gb_iters_of(g, &t);
    if (token) g->iter[1].kind = SC_I_OPAQUE;
    gb_port(&g->in[0], same, 3);
    const sc_gdim row[] = {{"position", rows, false}, t.dim[2]};
    /* every rank keeps all rows, whatever positions it has */
    const uint8_t ws[] = {SC_G_NO_ITER, 2};
    if (rows > 1) {
        (void)gb_weight(b, g, "weight", 2, row, ws);
    } else {
        (void)gb_weight(b, g, "weight", 1, row + 1, ws + 1);
    }
    return gb_close(b, g, 3, t.dim, same);
}

/* ---- products and norms */

static gb_value linear(convert *c, const sc_operator *op, gb_value x,
                       gb_value y)
{
    const sc_iter *in = iter_of(op, 1, 0), *out = iter_of(op, 0, 1);
    bool head = strstr(op->name, "lm_head") != NULL;
    bool tied = op->params == op->bias;
    gb_product p = {.out_name = sc_dimname_names[out->name],
                    .out = out->extent,
                    .in_units = in->units,
                    .out_units = out->units,
                    .weight = SC_NONE,
                    .bias = op->bias > 0};
    if (tied) p.weight = c->head != SC_NONE ? c->head : c->table;
    if (y != SC_NONE) { /* a state beside the next token's embedding */
        const gb_value both[] = {y, x};
        x = gb_concat(&c->b, "mtp_join", both, 2, 2);
    }
    if (gb_extent(&c->b, x, 2) != in->extent)
        return gb_wrong(&c->b, op->name, "its input has another width");
    gb_value v = gb_linear_named(&c->b, op->name, x, &p);
    if (v == SC_NONE) return v;
    made(c, v)->keep_bf16 = op->wide;
    if (head && !tied) c->head = made(c, v)->weight[0].tensor;
    return v;
}

/* The first columns of what it reads where that is wider; over the width of
 * single heads or groups where these are normed one by one. */
static gb_value norm(convert *c, const sc_operator *op, gb_value x)
{
    static const uint8_t none = SC_G_NO_ITER, last = 2;
    uint64_t wide = op->iter[2].extent;
    bool one = op->iter[2].kind == SC_I_OPAQUE;
    if (one && gb_extent(&c->b, x, 2) == wide)
        return gb_layer_norm(&c->b, op->name, x, op->bias > 0);
    sc_gop *g = gb_open(&c->b, op->name, SC_G_NORM, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&c->b, x);
    bool whole = one || op->params - op->bias == wide;
    const sc_gdim width = {"width", op->params - op->bias, false};
    if (one) t.dim[2].extent = wide; /* heads stand beside values */
    gb_iters_of(g, &t);
    g->iter[2].extent = wide;
    g->iter[2].units = op->iter[2].units;
    if (one) g->iter[2].kind = SC_I_OPAQUE;
    gb_port(&g->in[0], same, 3);
    (void)gb_weight(&c->b, g, "weight", 1, &width, whole ? &last : &none);
    if (op->bias) (void)gb_weight(&c->b, g, "bias", 1, &width, &last);
    return gb_close(&c->b, g, 3, t.dim, same);
}

/* What turns queries and keys leaves the values beside them as they are. */
static gb_value rope(convert *c, const sc_operator *op, gb_value x)
{
    sc_gop *g = gb_open(&c->b, op->name, SC_G_ROPE, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&c->b, x);
    gb_iters_of(g, &t);
    g->iter[2].extent = op->iter[2].extent;
    g->iter[2].units = op->iter[2].units;
    gb_port(&g->in[0], same, 3);
    return gb_close(&c->b, g, 3, t.dim, same);
}

/* ---- attention */

/* Learned scores: one per head beside all others, or one per head and distance
 * (T5), which the first layer of a stack has. */
static void scores(convert *c, const sc_operator *op, sc_gop *g, uint8_t head)
{
    const sc_gdim dim[] = {{"bucket", 32, false},
                           {"head", (uint64_t)c->m->t.heads, false}};
    const uint8_t at[] = {SC_G_NO_ITER, head};
    gb_value *w = &c->relative[c->stack];
    if (op->params) (void)gb_weight(&c->b, g, "sinks", 1, dim + 1, &head);
    if (c->m->t.position != SC_POS_RELATIVE || op->cross) return;
    if (*w == SC_NONE)
        *w = gb_weight(&c->b, g, "relative", 2, dim, at);
    else
        gb_weight_of(g, *w, 2, at);
}

/* Queries, keys or values, by head. */
static gb_value by_head(convert *c, const char *name, gb_value x,
                        uint32_t heads, uint64_t width, bool keys)
{
    static const uint8_t xs[] = {0, 1, 2}, ys[] = {0, 2, 1, 3};
    sc_gop *g = gb_open(&c->b, name, SC_G_SLICE, 1, &x);
    if (!g) return SC_NONE;
    const char *rows = keys ? "keys" : "seq";
    const sc_gdim dim[] = {{"batch", 1, true},
                           {"head", heads, false},
                           {rows, c->seq, false},
                           {"width", width, false}};
    (void)gb_iter(g, "batch", SC_I_BATCH, 1);
    (void)gb_iter(g, "seq", SC_I_FREE, c->seq);
    (void)gb_iter(g, "head", SC_I_FREE, heads);
    (void)gb_iter(g, "width", SC_I_OPAQUE, width);
    gb_port(&g->in[0], xs, 3);
    return gb_close(&c->b, g, 4, dim, ys);
}

static void only_seen(convert *c, const sc_operator *op)
{
    if (c->b.no_memory || c->b.wrong) return;
    sc_gop *g = &c->b.g.op[c->b.g.n_ops - 1];
    if (op->window && op->window < c->seq)
        g->flops *= (double)op->window / (double)c->seq;
    g->causal = op->causal;
}

static gb_value softmax(convert *c, const sc_operator *op, const char *name,
                        gb_value x)
{
    sc_gop *g = gb_open(&c->b, name, SC_G_SOFTMAX, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&c->b, x);
    gb_iters_of(g, &t);
    g->iter[t.n_dim - 1].kind = SC_I_OPAQUE;
    gb_port(&g->in[0], same, t.n_dim);
    scores(c, op, g, 1);
    return gb_close(&c->b, g, t.n_dim, t.dim, same);
}

static gb_value in_parts(convert *c, const sc_operator *op, uint32_t heads,
                         gb_value q, gb_value kv)
{
    gb_graph *b = &c->b;
    const char *n[] = {"q",       "k",       "v",      "scores",
                       "softmax", "dropout", "context"};
    for (size_t i = 0; i < SC_COUNT(n); i++) {
        n[i] = sc_sprintf(b->a, "%s_%s", op->name, n[i]);
        if (!n[i]) b->no_memory = true;
    }
    if (b->no_memory) return SC_NONE;
    q = by_head(c, n[0], q, heads, op->qk_dim, false);
    gb_value k = by_head(c, n[1], kv, op->kv_heads, op->qk_dim, true);
    gb_value v = by_head(c, n[2], kv, op->kv_heads, op->v_dim, true);
    gb_value p = gb_matmul(b, n[3], q, k, true);
    only_seen(c, op);
    p = softmax(c, op, n[4], p);
    if (c->m->t.dropout) p = gb_dropout(b, n[5], p);
    gb_value y = gb_matmul(b, n[6], p, v, false);
    only_seen(c, op);
    const gb_dim dim[] = {
        {"batch", 1, 0}, {"seq", c->seq, 2}, {"head", op->iter[2].extent, 1}};
    return gb_view(b, op->name, y, dim, 3, true);
}

/* Queries and keys with values of a latent attention come apart. */
static gb_value convert_attention(convert *c, const sc_operator *op, gb_value q,
                                  gb_value kv)
{
    uint32_t heads = (uint32_t)(op->iter[2].extent / op->v_dim);
    const gb_attend fused = {.q = q,
                             .k = kv,
                             .v = SC_NONE,
                             .heads = heads,
                             .kv_heads = op->kv_heads,
                             .out = op->iter[2].extent,
                             .qk_dim = op->qk_dim,
                             .v_dim = op->v_dim,
                             .seen = op->window,
                             .causal = op->causal};
    if (c->unfused) return in_parts(c, op, heads, q, kv == SC_NONE ? q : kv);
    sc_gop *g = gb_attention_open(&c->b, op->name, &fused);
    if (!g) return SC_NONE;
    g->cross = op->cross;
    g->dropout = c->m->t.dropout;
    scores(c, op, g, 2);
    return gb_attention_close(&c->b, g);
}

/* ---- routed tokens */

static void route(convert *c, gb_value v)
{
    const sc_transformer *t = &c->m->t;
    sc_gop *g = made(c, v);
    if (!g) return;
    g->experts = (uint32_t)t->experts;
    g->topk = (uint32_t)t->topk;
    for (unsigned i = 0; i < g->n_iter; i++)
        if (strcmp(g->iter[i].name, "expert") == 0)
            g->iter[i].units = g->experts;
    if (g->type != SC_G_DISPATCH) return;
    g->route_groups = (uint32_t)t->route_groups;
    g->route_topk = (uint32_t)t->route_topk;
}

static gb_value dispatch(convert *c, const sc_operator *op, gb_value x,
                         gb_value router)
{
    gb_value v = gb_dispatch(&c->b, op->name, x, router, op->iter[2].extent);
    route(c, v);
    return v;
}

static gb_value expert(convert *c, const sc_operator *op, gb_value x)
{
    const sc_iter *in = iter_of(op, 1, 0), *out = iter_of(op, 0, 1);
    gb_product p = {.out_name = sc_dimname_names[out->name],
                    .out = out->extent,
                    .in_units = in->units,
                    .out_units = out->units,
                    .weight = SC_NONE,
                    .bias = op->bias > 0};
    gb_value v = gb_experts(&c->b, op->name, x, (uint64_t)c->m->t.experts, &p);
    route(c, v);
    if (v != SC_NONE) made(c, v)->keep_bf16 = op->wide;
    return v;
}

static gb_value combine(convert *c, const sc_operator *op, gb_value x,
                        gb_value router)
{
    gb_value v = gb_combine(&c->b, op->name, x, router);
    route(c, v);
    return v;
}

/* ---- Mamba */

static gb_value conv1d(convert *c, const sc_operator *op, gb_value x)
{
    static const uint8_t at[] = {2, SC_G_NO_ITER};
    uint64_t n = op->iter[2].extent;
    sc_gop *g = gb_open(&c->b, op->name, SC_G_CONV1D, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&c->b, x);
    t.dim[2].extent = n;
    gb_iters_of(g, &t);
    g->iter[2].units = op->iter[2].units;
    const sc_gdim w[] = {{"state", n, false},
                         {"k", (op->params - op->bias) / n, false}};
    gb_port(&g->in[0], same, 3);
    (void)gb_weight(&c->b, g, "weight", 2, w, at);
    if (op->bias) (void)gb_weight(&c->b, g, "bias", 1, w, at);
    return gb_close(&c->b, g, 3, t.dim, same);
}

/* Reads what the convolution made, and beside it gates and step lengths. */
static gb_value scan(convert *c, const sc_operator *op, gb_value x,
                     gb_value gates)
{
    static const uint8_t at = 2;
    const gb_value in[] = {x, gates};
    sc_gop *g = gb_open(&c->b, op->name, SC_G_SCAN, 2, in);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&c->b, x);
    t.dim[2].extent = op->iter[2].extent;
    gb_iters_of(g, &t);
    g->iter[1].kind = SC_I_OPAQUE;
    g->iter[2].units = op->iter[2].units;
    (void)gb_iter(g, "rank", SC_I_OPAQUE, op->iter[3].extent);
    gb_port(&g->in[0], same, 3);
    gb_port(&g->in[1], same, 3);
    /* Decay, skip and bias of the step of each head. */
    const sc_gdim w = {"state", op->params, false};
    (void)gb_weight(&c->b, g, "weight", 1, &w, &at);
    g->flops = 7.0 * (double)c->seq * (double)op->iter[2].extent *
               (double)op->iter[3].extent;
    return gb_close(&c->b, g, 3, t.dim, same);
}

/* ---- the rest */

static gb_value act(convert *c, const sc_operator *op, gb_value x)
{
    const sc_gtensor *t = gb_tensor(&c->b, x);
    const char *what = sc_act_names[c->m->t.act];
    if (!t) return SC_NONE;
    bool gated =
        t->dim[t->n_dim - 1].extent == 2 * op->iter[op->n_iter - 1].extent;
    gb_value v = gated ? gb_act_gated(&c->b, op->name, x, what)
                       : gb_act(&c->b, op->name, x, what);
    if (v != SC_NONE && gb_tensor(&c->b, v)->n_dim == 4) route(c, v);
    return v;
}

static gb_value sum(convert *c, const sc_operator *op, gb_value x, gb_value y)
{
    gb_graph *b = &c->b;
    bool drop = c->m->t.dropout && !strstr(op->name, "_lora_");
    if (op->src2 == -2) return gb_dropout(b, op->name, x);
    if (drop && c->unfused) {
        const char *name = sc_sprintf(b->a, "%s_dropout", op->name);
        if (!name) b->no_memory = true;
        if (name) x = gb_dropout(b, name, x);
    }
    gb_value v = gb_add(b, op->name, x, y);
    if (v != SC_NONE && !c->unfused) made(c, v)->dropout = drop;
    return v;
}

static gb_value loss(convert *c, const sc_operator *op, gb_value x)
{
    const sc_gdim dim[] = {{"batch", 1, true},
                           {"seq", gb_extent(&c->b, x, 1), false}};
    if (c->labels == SC_NONE) c->labels = gb_input(&c->b, "labels", 2, dim, 8);
    return gb_loss(&c->b, op->name, x, c->labels, true);
}

gb_value convert_op(convert *c, const sc_operator *op, gb_value x, gb_value y)
{
    c->b.frozen = op->frozen;
    switch ((sc_op_type)op->type) {
    case SC_EMBED: return words(c, op);
    case SC_PATCH: return patches(c, op);
    case SC_POSITION: return table(c, op, x);
    case SC_NORM: return norm(c, op, x);
    case SC_LINEAR: return linear(c, op, x, y);
    case SC_ROPE: return rope(c, op, x);
    case SC_ATTENTION: return convert_attention(c, op, x, y);
    case SC_ACT: return act(c, op, x);
    case SC_DROPOUT_ADD: return sum(c, op, x, y);
    case SC_LOSS: return loss(c, op, x);
    case SC_DISPATCH: return dispatch(c, op, x, y);
    case SC_EXPERT: return expert(c, op, x);
    case SC_COMBINE: return combine(c, op, x, y);
    case SC_CONV1D: return conv1d(c, op, x);
    case SC_SCAN: return scan(c, op, x, y);
    default: return gb_wrong(&c->b, op->name, "no such operator in graphs");
    }
}
