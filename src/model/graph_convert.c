/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_convert.c - a generated transformer as a graph of operators.
 *
 * Layers of one kind that stand alike are instances of one segment: the first
 * is built, the others are its copies with other paths and inputs.
 */
#include "model/graph_convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A graph of more is no help to anyone, and 1 GB. */
#define OPERATORS_MAX (UINT64_C(1) << 19)

/* Tokens that an operator does not run on are left out before it; each part of
 * a sequence has some of those that are left, if they are many. */
static gb_value chosen(convert *c, const sc_operator *op, gb_value x)
{
    if (!(op->share > 0.0 && op->share < 1.0)) return x;
    uint64_t n = (uint64_t)llround(op->share * (double)c->seq);
    if (n == 0) n = 1;
    if (gb_extent(&c->b, x, 1) == n) return x;
    x = gb_slice(&c->b, "chosen", x, 1, n);
    if (x != SC_NONE && n > 1)
        c->b.g.op[c->b.g.n_ops - 1].iter[1].kind = SC_I_FREE;
    return x;
}

static int named(const sc_layer *l, const char *name)
{
    for (uint32_t i = 0; i < l->n_ops; i++)
        if (strcmp(l->op[i].name, name) == 0) return (int)i;
    return -1;
}

typedef struct reads {
    gb_value x, y;
} reads;

/* Blocks name one input, where networks have two. */
static reads inputs_of(convert *c, const sc_layer *l, uint32_t i, gb_value in,
                       const gb_value *made)
{
    const sc_operator *op = &l->op[i];
    reads r = {op->src < 0 ? in : made[op->src], SC_NONE};
    if (op->src2 != -2) r.y = op->src2 < 0 ? in : made[op->src2];
    int down = -1;
    switch ((sc_op_type)op->type) {
    case SC_LINEAR: /* cross attention reads what the encoder made */
        if (strcmp(op->name, "cross_kv") == 0) r.x = c->encoded;
        break;
    case SC_ATTENTION:
        down = named(l, "kv_down");
        if (down <= 0 || op->src2 != -2) break;
        r.y = r.x; /* without positions keys stand last, queries before them */
        r.x = made[down - 1];
        break;
    case SC_COMBINE: r.y = made[named(l, "router")]; break;
    case SC_SCAN: r.y = made[named(l, "in_proj")]; break;
    default: break;
    }
    return r;
}

static gb_value layer(convert *c, const sc_layer *l, gb_value in, uint32_t n)
{
    gb_value made[SC_LAYER_OPS];
    for (uint32_t i = 0; i < n; i++) {
        const sc_operator *op = &l->op[i];
        reads r = inputs_of(c, l, i, in, made);
        if (i > 0 || in != SC_NONE) r.x = chosen(c, op, r.x);
        if (strcmp(op->name, "mtp_norm_e") == 0)
            r.x = convert_words_again(c, "mtp_embed");
        made[i] = convert_op(c, op, r.x, r.y);
    }
    return n ? made[n - 1] : in;
}

/* Predictions of later tokens go through the head's weight, each behind a norm
 * of its own. */
static void head(convert *c, const sc_layer *l, gb_value x,
                 const gb_value *later)
{
    int first = named(l, "mtp_norm");
    uint32_t n = first < 0 ? l->n_ops : (uint32_t)first;
    (void)layer(c, l, x, n);
    for (int64_t k = 0; k < c->m->t.mtp && n < l->n_ops; k++) {
        if (k > 0) gb_scope(&c->b, "%s.%u", l->path, (unsigned)k);
        gb_value v = later[k];
        for (uint32_t i = n; i < l->n_ops; i++) {
            sc_operator op = l->op[i];
            op.params /= (uint64_t)c->m->t.mtp;
            op.bias /= (uint64_t)c->m->t.mtp;
            v = convert_op(c, &op, v, SC_NONE);
        }
    }
}

/* ---- instances */

/* What a layer was built under, and where it stands. */
typedef struct built {
    bool is, learns, relative;
    gb_value in, out;
    const char *scope;
    uint32_t op, n_ops, tensor, n_tensors, segment;
} built;

static gb_value built_again(convert *c, const built *from, gb_value in,
                            uint32_t i)
{
    char scope[24];
    int n = snprintf(scope, sizeof scope, "layers.%u", i);
    gb_copy copy = {.op = from->op,
                    .n_ops = from->n_ops,
                    .tensor = from->tensor,
                    .n_tensors = from->n_tensors,
                    .in = from->in,
                    .in_again = in,
                    .scope = from->scope};
    if (!gb_again(&c->b, &copy, scope, (size_t)n)) return SC_NONE;
    return c->b.g.n_tensors - (from->tensor + from->n_tensors - from->out);
}

static gb_value block(convert *c, uint32_t i, gb_value in, built *known)
{
    const sc_layer *l = &c->m->layer[c->m->order[i]];
    uint32_t op = c->b.g.n_ops;
    const sc_gtensor *t = gb_tensor(&c->b, in);
    built now = {.is = true,
                 .learns = t && t->learns,
                 .relative = c->relative[c->stack] != SC_NONE,
                 .in = in,
                 .op = op,
                 .tensor = c->b.g.n_tensors};
    gb_value out = SC_NONE;
    bool again = known->is && known->learns == now.learns &&
                 known->relative == now.relative;
    if (again) out = built_again(c, known, in, i);
    if (!again) {
        gb_scope(&c->b, "layers.%u", i);
        out = layer(c, l, in, l->n_ops);
        now.out = out;
        now.scope = c->b.scope;
        now.n_ops = c->b.g.n_ops - op;
        now.n_tensors = c->b.g.n_tensors - now.tensor;
        now.segment = c->b.g.n_segments;
        *known = now;
    }
    gb_instance(&c->b, known->segment, op);
    return out;
}

/* The decoder starts from the words again, and reads what the encoder made. */
static gb_value decoder(convert *c, gb_value x)
{
    uint32_t op = c->b.g.n_ops;
    c->encoded = x;
    c->stack = 1;
    gb_scope(&c->b, "%s", c->m->layer[0].path);
    x = convert_words_again(c, "embed_decoder");
    if (c->m->t.dropout) x = gb_dropout(&c->b, "embed_decoder_drop", x);
    gb_instance(&c->b, c->b.g.n_segments, op);
    return x;
}

static sc_status whole(convert *c, sc_arena *a, sc_err *err)
{
    const sc_model *m = c->m;
    built known[SC_LAYERS] = {{0}};
    gb_value *later = SC_NEW_N(a, gb_value, (uint64_t)m->t.mtp + 1);
    if (!later) return sc_error_nomem(err);
    int64_t n = m->t.layers + m->t.decoder_layers;
    gb_scope(&c->b, "%s", m->layer[0].path);
    gb_value x = layer(c, &m->layer[0], SC_NONE, m->layer[0].n_ops), last = x;
    gb_instance(&c->b, 0, 0);
    for (uint32_t i = 0; i < m->n_blocks; i++) {
        if (m->t.decoder_layers && i == m->t.layers) last = decoder(c, last);
        last = block(c, i, last, &known[m->order[i]]);
        if (i < n) x = last;
        if (i >= n) later[i - n] = last;
    }
    if (!m->n_blocks) x = last;
    const sc_layer *h = &m->layer[m->n_layers - 1];
    uint32_t op = c->b.g.n_ops;
    gb_scope(&c->b, "%s", h->path);
    head(c, h, x, later);
    gb_instance(&c->b, c->b.g.n_segments, op);
    return SC_OK;
}

static sc_status few_enough(const sc_model *m, uint64_t seq, uint32_t *ops,
                            sc_err *err)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n_layers; i++)
        n += (uint64_t)m->layer[i].n_ops * m->layer[i].repeat;
    if (n > OPERATORS_MAX)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "%.60s has %llu operators", m->name,
                        (unsigned long long)n);
    if (seq < 2 || seq > UINT32_MAX)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "a graph for sequences of %llu tokens",
                        (unsigned long long)seq);
    *ops = (uint32_t)n;
    return SC_OK;
}

sc_status sc_opgraph_from_model(const sc_model *m, uint64_t seq, bool unfused,
                                sc_arena *a, const sc_opgraph **out,
                                sc_err *err)
{
    if (m->graph) {
        *out = m->graph;
        return SC_OK;
    }
    uint32_t ops = 0;
    SC_TRY(few_enough(m, seq, &ops, err));
    convert c = {.m = m,
                 .seq = seq,
                 .unfused = unfused,
                 .ids = SC_NONE,
                 .table = SC_NONE,
                 .head = SC_NONE,
                 .labels = SC_NONE,
                 .encoded = SC_NONE,
                 .relative = {SC_NONE, SC_NONE}};
    gb_init(&c.b, a, m->name, m->t.image ? "image" : "sequence");
    /* Attention in parts is nine operators; most have a weight. */
    gb_reserve(&c.b, ops + ops / 8 + 16, 2 * ops + 16);
    SC_TRY(whole(&c, a, err));
    return gb_finish(&c.b, out, err);
}
