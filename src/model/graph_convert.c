/* SPDX-License-Identifier: Apache-2.0 */
/* graph_convert.c - a generated transformer as a graph of operators. */
#include "model/graph_build.h"

#include <math.h>
#include <string.h>

/* A graph of more is no help to anyone, and 1 GB. */
#define OPERATORS_MAX (UINT64_C(1) << 19)

typedef struct convert {
    const sc_model *m;
    uint64_t seq;
    bool unfused;
    gb_graph b;
    gb_value table; /* of the words: the head's too where it is tied */
} convert;

static sc_status refuse(const sc_model *m, const char *what, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                    "plans by blocks (without `rules` of single operators) "
                    "can say it",
                    "%.60s as a graph of operators: %s", m->name, what);
}

static sc_status expressible(const sc_model *m, sc_err *err)
{
    const sc_transformer *t = &m->t;
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n_layers; i++)
        n += (uint64_t)m->layer[i].n_ops * m->layer[i].repeat;
    if (n > OPERATORS_MAX) {
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "%.60s has %llu operators", m->name,
                        (unsigned long long)n);
    }
    if (t->experts) return refuse(m, "experts are not there yet", err);
    if (t->pattern) return refuse(m, "Mamba blocks are not there yet", err);
    if (t->kv_rank) return refuse(m, "latent attention is not there yet", err);
    if (t->mtp) return refuse(m, "predictions of later tokens are not", err);
    if (t->decoder_layers || t->position == SC_POS_RELATIVE)
        return refuse(m, "an encoder with a decoder is not there yet", err);
    if (t->sinks) return refuse(m, "attention sinks are not there yet", err);
    return SC_OK;
}

/* ---- operators */

static const sc_iter *iter_of(const sc_operator *op, unsigned in, unsigned out)
{
    for (unsigned i = 2; i < op->n_iter; i++) {
        bool x = (op->x >> i & 1U) != 0, y = (op->y >> i & 1U) != 0;
        if ((!in || x) && (!out || y)) return &op->iter[i];
    }
    return &op->iter[0];
}

static gb_value words(convert *c, const sc_operator *op)
{
    const sc_gdim dim[] = {{"batch", 1, true}, {"seq", c->seq, false}};
    gb_value ids = gb_input(&c->b, "tokens", 2, dim, 8);
    uint64_t width = iter_of(op, 0, 1)->extent;
    gb_value y = gb_embed(&c->b, op->name, ids, op->params / width, width, 1);
    if (y != SC_NONE) c->table = c->b.g.op[c->b.g.n_ops - 1].weight[0].tensor;
    return y;
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

static gb_value linear(convert *c, const sc_operator *op, gb_value x)
{
    const sc_iter *in = iter_of(op, 1, 0), *out = iter_of(op, 0, 1);
    bool tied = op->params == op->bias;
    gb_product p = {.out_name = sc_dimname_names[out->name],
                    .out = out->extent,
                    .in_units = in->units,
                    .out_units = out->units,
                    .weight = tied ? c->table : SC_NONE,
                    .bias = op->bias > 0};
    if (gb_extent(&c->b, x, 2) != in->extent)
        return gb_wrong(&c->b, op->name, "its input has another width");
    return gb_linear_named(&c->b, op->name, x, &p);
}

/* A row per position, of which the first are used; or one for all. */
static gb_value table(convert *c, const sc_operator *op, gb_value x)
{
    static const uint8_t at[] = {0, 1, 2};
    gb_graph *b = &c->b;
    uint64_t width = iter_of(op, 0, 1)->extent, rows = op->params / width;
    bool token = strcmp(op->name, "class_token") == 0;
    sc_gop *g =
        gb_open(b, op->name, token ? SC_G_CONCAT : SC_G_ELEMENTWISE, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(b, x);
    if (token) t.dim[1].extent = c->seq;
    gb_iters_of(g, &t);
    if (token) g->iter[1].kind = SC_I_OPAQUE;
    gb_port(&g->in[0], at, 3);
    const sc_gdim row[] = {{"position", rows, false}, t.dim[2]};
    const uint8_t rows_at = rows == c->seq ? 1 : SC_G_NO_ITER;
    const uint8_t ws[] = {rows_at, 2};
    gb_function(g, "sum");
    if (rows > 1) {
        (void)gb_weight(b, g, "weight", 2, row, ws);
    } else {
        (void)gb_weight(b, g, "weight", 1, row + 1, ws + 1);
    }
    return gb_close(b, g, 3, t.dim, at);
}

/* Over the heads' own widths where they are normed one by one. */
static gb_value norm(convert *c, const sc_operator *op, gb_value x)
{
    if (op->iter[2].kind == SC_I_OPAQUE)
        return gb_layer_norm(&c->b, op->name, x, op->bias > 0);
    static const uint8_t at[] = {0, 1, 2};
    static const uint8_t none = SC_G_NO_ITER;
    sc_gop *g = gb_open(&c->b, op->name, SC_G_NORM, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&c->b, x);
    const sc_gdim width = {"width", op->params, false};
    gb_iters_of(g, &t);
    g->iter[2].units = op->iter[2].units;
    gb_port(&g->in[0], at, 3);
    (void)gb_weight(&c->b, g, "weight", 1, &width, &none);
    return gb_close(&c->b, g, 3, t.dim, at);
}

/* ---- attention */

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

static gb_value attention(convert *c, const sc_operator *op, gb_value x)
{
    uint32_t heads = (uint32_t)(op->iter[2].extent / op->v_dim);
    const gb_attend fused = {x,          SC_NONE,      SC_NONE,
                             heads,      op->kv_heads, op->iter[2].extent,
                             op->qk_dim, op->v_dim,    op->window,
                             op->causal};
    if (!c->unfused) return gb_attention(&c->b, op->name, &fused);
    gb_graph *b = &c->b;
    uint32_t kv = op->kv_heads;
    gb_value q = by_head(c, "attn_q", x, heads, op->qk_dim, false);
    gb_value k = by_head(c, "attn_k", x, kv, op->qk_dim, true);
    gb_value v = by_head(c, "attn_v", x, kv, op->v_dim, true);
    gb_value p = gb_matmul(b, "attn_scores", q, k, true);
    only_seen(c, op);
    p = gb_softmax(b, "attn_softmax", p);
    if (c->m->t.dropout) p = gb_dropout(b, "attn_dropout", p);
    gb_value y = gb_matmul(b, "attn_context", p, v, false);
    only_seen(c, op);
    const gb_dim dim[] = {
        {"batch", 1, 0}, {"seq", c->seq, 2}, {"head", op->iter[2].extent, 1}};
    return gb_view(b, op->name, y, dim, 3, true);
}

/* ---- the rest */

static gb_value act(convert *c, const sc_operator *op, gb_value x)
{
    const char *what = sc_act_names[c->m->t.act];
    bool gated = gb_extent(&c->b, x, 2) == 2 * op->iter[2].extent;
    return gated ? gb_act_gated(&c->b, op->name, x, what)
                 : gb_act(&c->b, op->name, x, what);
}

static gb_value sum(convert *c, const sc_operator *op, gb_value x, gb_value y)
{
    gb_graph *b = &c->b;
    bool drop = c->m->t.dropout && !strstr(op->name, "_lora_");
    if (!drop) return gb_elementwise(b, op->name, x, y, "sum");
    if (op->src2 == -2) return gb_dropout(b, op->name, x);
    const char *name = sc_sprintf(b->a, "%s_dropout", op->name);
    if (!name) b->no_memory = true;
    if (name) x = gb_dropout(b, name, x);
    return gb_add(b, op->name, x, y);
}

static gb_value loss(convert *c, const sc_operator *op, gb_value x)
{
    const sc_gdim dim[] = {{"batch", 1, true},
                           {"seq", gb_extent(&c->b, x, 1), false}};
    gb_value labels = gb_input(&c->b, "labels", 2, dim, 8);
    return gb_loss(&c->b, op->name, x, labels, true);
}

static gb_value one(convert *c, const sc_operator *op, gb_value x, gb_value y)
{
    c->b.frozen = op->frozen;
    switch ((sc_op_type)op->type) {
    case SC_EMBED: return words(c, op);
    case SC_PATCH: return patches(c, op);
    case SC_POSITION: return table(c, op, x);
    case SC_NORM: return norm(c, op, x);
    case SC_LINEAR: return linear(c, op, x);
    case SC_ROPE:
        return gb_elementwise(&c->b, op->name, x, SC_NONE, "rotary positions");
    case SC_ATTENTION: return attention(c, op, x);
    case SC_ACT: return act(c, op, x);
    case SC_DROPOUT_ADD: return sum(c, op, x, y);
    case SC_LOSS: return loss(c, op, x);
    default: return gb_wrong(&c->b, op->name, "no such operator in graphs");
    }
}

/* Tokens that an operator does not run on are left out before it. */
static gb_value chosen(convert *c, const sc_operator *op, gb_value x)
{
    if (!(op->share > 0.0 && op->share < 1.0)) return x;
    uint64_t n = (uint64_t)llround(op->share * (double)c->seq);
    if (n == 0) n = 1;
    if (gb_extent(&c->b, x, 1) == n) return x;
    return gb_slice(&c->b, "chosen", x, 1, n);
}

static gb_value layer(convert *c, const sc_layer *l, gb_value in)
{
    gb_value made[SC_LAYER_OPS];
    for (uint32_t i = 0; i < l->n_ops; i++) {
        const sc_operator *op = &l->op[i];
        gb_value x = op->src < 0 ? in : made[op->src];
        gb_value y = op->src2 == -2 ? SC_NONE
                     : op->src2 < 0 ? in
                                    : made[op->src2];
        if (i > 0 || in != SC_NONE) x = chosen(c, op, x);
        made[i] = one(c, op, x, y);
    }
    return l->n_ops ? made[l->n_ops - 1] : in;
}

sc_status sc_opgraph_from_model(const sc_model *m, uint64_t seq, bool unfused,
                                sc_arena *a, const sc_opgraph **out,
                                sc_err *err)
{
    if (m->graph) {
        *out = m->graph;
        return SC_OK;
    }
    SC_TRY(expressible(m, err));
    if (seq < 2 || seq > UINT32_MAX) {
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "a graph for sequences of %llu tokens",
                        (unsigned long long)seq);
    }
    convert c = {.m = m, .seq = seq, .unfused = unfused, .table = SC_NONE};
    gb_init(&c.b, a, m->name, m->t.image ? "image" : "sequence");
    gb_scope(&c.b, "%s", m->layer[0].path);
    gb_value x = layer(&c, &m->layer[0], SC_NONE);
    for (uint32_t i = 0; i < m->n_blocks; i++) {
        gb_scope(&c.b, "layers.%u", i);
        x = layer(&c, &m->layer[m->order[i]], x);
    }
    const sc_layer *head = &m->layer[m->n_layers - 1];
    gb_scope(&c.b, "%s", head->path);
    (void)layer(&c, head, x);
    return gb_finish(&c.b, out, err);
}
