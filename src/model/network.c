/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - a transformer as a network of operators.
 *
 * Layers of one kind that stand alike are instances of one segment: the first
 * is built, the others are its copies with other paths and inputs.
 */
#include "model/network.h"

#include <stdio.h>
#include <string.h>

/* A graph of more is no help to anyone, and 1 GB. */
#define OPERATORS_MAX (UINT64_C(1) << 19)

/* What a layer was built under, and where it stands. */
typedef struct built {
    bool is, learns, relative;
    gb_value in, out;
    const char *scope;
    uint32_t op, n_ops, tensor, n_tensors, segment;
} built;

static gb_value built_again(network *n, const built *from, gb_value in,
                            uint32_t i)
{
    char scope[24];
    int len = snprintf(scope, sizeof scope, "layers.%u", i);
    gb_copy copy = {.op = from->op,
                    .n_ops = from->n_ops,
                    .tensor = from->tensor,
                    .n_tensors = from->n_tensors,
                    .in = from->in,
                    .in_again = in,
                    .scope = from->scope};
    if (!gb_again(&n->b, &copy, scope, (size_t)len)) return SC_NONE;
    return n->b.g.n_tensors - (from->tensor + from->n_tensors - from->out);
}

static gb_value block(network *n, uint32_t i, gb_value in, built *known)
{
    uint32_t op = n->b.g.n_ops;
    const sc_gtensor *t = gb_tensor(&n->b, in);
    built now = {.is = true,
                 .learns = t && t->learns,
                 .relative = n->relative[n->stack] != SC_NONE,
                 .in = in,
                 .op = op,
                 .tensor = n->b.g.n_tensors};
    gb_value out = SC_NONE;
    bool again = known->is && known->learns == now.learns &&
                 known->relative == now.relative;
    if (again) out = built_again(n, known, in, i);
    if (!again) {
        const sc_layer *l = &n->m->layer[n->m->order[i]];
        char alias[24];
        snprintf(alias, sizeof alias, "layers.%u", l->block);
        gb_scope(&n->b, "layers.%u", i);
        n->b.alias = alias;
        out = network_block(n, l, in);
        n->b.alias = NULL;
        now.out = out;
        now.scope = n->b.scope;
        now.n_ops = n->b.g.n_ops - op;
        now.n_tensors = n->b.g.n_tensors - now.tensor;
        now.segment = n->b.g.n_segments;
        *known = now;
    }
    gb_instance(&n->b, known->segment, op);
    return out;
}

/* The decoder starts from the words again, and reads what the encoder made. */
static gb_value decoder(network *n, gb_value x)
{
    uint32_t op = n->b.g.n_ops;
    n->encoded = x;
    n->stack = 1;
    gb_scope(&n->b, "embedding");
    x = network_words_again(n, "embed_decoder");
    if (n->t->dropout) x = gb_dropout(&n->b, "embed_decoder_drop", x);
    gb_instance(&n->b, n->b.g.n_segments, op);
    return x;
}

static sc_status whole(network *n, sc_arena *a, sc_err *err)
{
    const sc_model *m = n->m;
    built known[SC_LAYERS] = {{0}};
    gb_value *later = SC_NEW_N(a, gb_value, (uint64_t)m->t.mtp + 1);
    uint32_t n_later = 0;
    if (!later) return sc_error_nomem(err);
    gb_scope(&n->b, "embedding");
    gb_value x = network_embedding(n), last = x;
    gb_instance(&n->b, 0, 0);
    for (uint32_t i = 0; i < m->n_blocks; i++) {
        const sc_layer *l = &m->layer[m->order[i]];
        if (l->cross && !n->stack) last = decoder(n, last);
        last = block(n, i, last, &known[m->order[i]]);
        if (l->mtp)
            later[n_later++] = last;
        else
            x = last;
    }
    uint32_t op = n->b.g.n_ops;
    network_head(n, x, later, n_later);
    gb_instance(&n->b, n->b.g.n_segments, op);
    return SC_OK;
}

static sc_status few_enough(const sc_model *m, uint64_t seq, uint32_t *ops,
                            sc_err *err)
{
    uint64_t n = m->layer[0].n_ops + m->layer[m->n_layers - 1].n_ops;
    for (uint32_t i = 0; i < m->n_blocks; i++) n += m->layer[m->order[i]].n_ops;
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

static void start(network *n, const sc_model *m, uint64_t seq, bool unfused,
                  sc_arena *a)
{
    *n = (network){.m = m,
                   .t = &m->t,
                   .seq = seq,
                   .unfused = unfused,
                   .ids = SC_NONE,
                   .table = SC_NONE,
                   .head = SC_NONE,
                   .labels = SC_NONE,
                   .encoded = SC_NONE,
                   .relative = {SC_NONE, SC_NONE}};
    gb_init(&n->b, a, m->name, m->t.image ? "image" : "sequence");
    n->b.frozen = m->t.lora > 0;
    n->b.freeze = m->t.frozen;
}

sc_status sc_opgraph_from_model(const sc_model *m, uint64_t seq, bool unfused,
                                sc_arena *a, const sc_opgraph **out,
                                sc_err *err)
{
    network n;
    uint32_t ops = 0;
    *out = m->graph;
    if (m->graph) return SC_OK;
    SC_TRY(few_enough(m, seq, &ops, err));
    start(&n, m, seq, unfused, a);
    /* Attention in parts is nine operators; most have a weight. */
    gb_reserve(&n.b, ops + ops / 8 + 16, 2 * ops + 16);
    SC_TRY(whole(&n, a, err));
    return gb_finish(&n.b, out, err);
}

/* ---- one layer of each kind */

/* Beyond 2^53 a count is not exact as a double. */
#define MAX_PARAMS 0x1p53

typedef struct counts {
    double all, active, trained;
} counts;

static void count(const sc_model *m, const sc_gtensor *w, double times,
                  counts *c)
{
    const sc_gop *op = &m->kinds->op[w->op];
    double n = sc_gtensor_elements(w, 1) * times;
    c->all += n;
    c->active += op->type == SC_G_EXPERT ? n / op->experts * op->topk : n;
    c->trained += w->learns ? n : 0;
}

/* T5's scores by distance are of the first layer of a stack. */
static bool of_one(const sc_gtensor *w)
{
    return strcmp(w->name, "relative") == 0;
}

static sc_status count_params(sc_model *m, sc_pos pos, sc_err *err)
{
    counts c = {0};
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const sc_layer *l = &m->layer[i];
        for (uint32_t k = l->first; k < l->first + l->n_ops; k++) {
            const sc_gop *op = &m->kinds->op[k];
            for (unsigned j = 0; j < op->n_weight; j++) {
                const sc_gtensor *w = &m->kinds->tensor[op->weight[j].tensor];
                if (w->op == k) count(m, w, of_one(w) ? 1 : l->repeat, &c);
            }
        }
    }
    if (c.all > MAX_PARAMS)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "the model has more than 2^53 parameters");
    m->params = (uint64_t)c.all;
    m->active_params = (uint64_t)c.active;
    m->trained_params = (uint64_t)c.trained;
    return SC_OK;
}

sc_status model_kinds(sc_model *m, sc_pos pos, sc_arena *a, sc_err *err)
{
    uint8_t each[SC_LAYERS];
    sc_model few = *m;
    network n;
    few.n_blocks = m->n_layers - 2;
    few.order = each;
    for (uint32_t i = 0; i < few.n_blocks; i++) each[i] = (uint8_t)(i + 1);
    start(&n, &few, MODEL_KINDS_SEQ, false, a);
    n.b.copied = true; /* sums of large models are not exact */
    SC_TRY(whole(&n, a, err));
    SC_TRY(gb_finish(&n.b, &m->kinds, err));
    for (uint32_t i = 0, l = 0; i < m->kinds->n_instances; i++) {
        const sc_ginstance *x = &m->kinds->instance[i];
        if (i > 0 && strcmp(x->path, "embedding") == 0) continue;
        m->layer[l].first = x->first;
        m->layer[l++].n_ops = x->n_ops;
    }
    return count_params(m, pos, err);
}
