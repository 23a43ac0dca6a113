/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - builds a transformer as a network of operators.
 *
 * Layers of one kind in equal contexts are instances of one segment: the first
 * is built, and the others are copies with other paths and inputs.
 */
#include "model/network.h"

#include <stdio.h>
#include <string.h>

/* A network with more operators would need 1 GB. */
#define OPERATORS_MAX (UINT64_C(1) << 19)

/* The context in which a layer was built, and its range of operators. */
typedef struct built {
    bool is, learns, relative;
    net_value out;
    uint32_t segment;
    build_copy copy;
} built;

static net_value built_again(network *n, built *from, net_value in, uint32_t i)
{
    char scope[24];
    build_copy *c = &from->copy;
    int len = snprintf(scope, sizeof scope, "layers.%u", i);
    c->in_again = in;
    if (!build_again(&n->b, c, scope, (size_t)len)) return SC_NONE;
    return n->b.g.n_tensors - (c->tensor + c->n_tensors - from->out);
}

static net_value build(network *n, const sc_layer *l, net_value in, uint32_t i,
                       built *x)
{
    char alias[24];
    net_builder *b = &n->b;
    build_copy c = {.op = b->g.n_ops, .tensor = b->g.n_tensors, .in = in};
    snprintf(alias, sizeof alias, "layers.%u", l->block);
    build_scope(b, "layers.%u", i);
    b->alias = alias;
    x->is = true;
    x->out = network_block(n, l, in);
    x->segment = b->g.n_segments;
    b->alias = NULL;
    c.scope = b->scope;
    c.n_ops = b->g.n_ops - c.op;
    c.n_tensors = b->g.n_tensors - c.tensor;
    x->copy = c;
    return x->out;
}

static net_value block(network *n, uint32_t i, net_value in, built *known)
{
    uint32_t op = n->b.g.n_ops;
    const sc_tensor *t = build_tensor(&n->b, in);
    bool learns = t && t->learns, relative = n->relative[n->stack] != SC_NONE;
    net_value out;
    n->b.kind = n->m->order[i];
    if (known->is && known->learns == learns && known->relative == relative) {
        out = built_again(n, known, in, i);
    } else {
        known->learns = learns;
        known->relative = relative;
        out = build(n, &n->m->layer[n->b.kind], in, i, known);
    }
    build_instance(&n->b, known->segment, op);
    return out;
}

/* The decoder starts with the embedding and also reads the encoder's result. */
static net_value decoder(network *n, net_value x)
{
    uint32_t op = n->b.g.n_ops;
    n->encoded = x;
    n->stack = 1;
    n->b.kind = 0;
    build_scope(&n->b, "embedding");
    x = network_decoder_embedding(n);
    build_instance(&n->b, n->b.g.n_segments, op);
    return x;
}

static sc_status whole(network *n, sc_arena *a, sc_err *err)
{
    const sc_model *m = n->m;
    built known[SC_LAYERS] = {{0}};
    net_value *later = SC_NEW_N(a, net_value, (uint64_t)m->t.mtp + 1);
    uint32_t n_later = 0;
    if (!later) return sc_error_nomem(err);
    build_scope(&n->b, "embedding");
    net_value x = network_embedding(n), last = x;
    build_instance(&n->b, 0, 0);
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
    n->b.kind = (uint8_t)(m->n_layers - 1);
    network_head(n, x, later, n_later);
    build_instance(&n->b, n->b.g.n_segments, op);
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
                        "the network is for sequences of %llu tokens",
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
    build_init(&n->b, a, m->name, m->t.image ? "image" : "sequence");
    n->b.frozen = m->t.lora > 0;
    n->b.freeze = m->t.frozen;
}

sc_status sc_net_from_model(const sc_model *m, uint64_t seq, bool unfused,
                            sc_arena *a, const sc_net **out, sc_err *err)
{
    network n;
    uint32_t ops = 0;
    *out = m->net;
    if (m->net) return SC_OK;
    SC_TRY(few_enough(m, seq, &ops, err));
    start(&n, m, seq, unfused, a);
    /* unfused attention has nine operators, most of which have a weight */
    build_reserve(&n.b, ops + ops / 8 + 16, 2 * ops + 16);
    SC_TRY(whole(&n, a, err));
    return build_finish(&n.b, out, err);
}

/* ---- one layer of each kind */

/* Beyond 2^53 a count is not exact as a double. */
#define MAX_PARAMS 0x1p53

/* The layer of an operator of `kinds`.  A decoder's embedding belongs to the
 * embedding, but has operators of its own. */
static const sc_layer *layer_of(const sc_model *m, uint32_t op)
{
    const sc_net_instance *x = m->kinds->instance;
    while (op - x->first >= x->n_ops) x++;
    return &m->layer[x->kind];
}

/* How often a weight of `kinds` exists: only the first layer of a T5 stack has
 * scores by distance. */
static uint32_t times(const sc_model *m, const sc_tensor *w)
{
    bool once = strcmp(w->name, "relative") == 0 && !m->t.relative_each;
    return once ? 1 : layer_of(m, w->op)->repeat;
}

/* Whether it belongs to multi-token prediction: a block, or an operator of the
 * head. */
static bool is_mtp(const sc_model *m, uint32_t op)
{
    const sc_layer *l = layer_of(m, op);
    return l->mtp ||
           strncmp(sc_kind_op_name(l, &m->kinds->op[op]), "mtp_", 4) == 0;
}

static sc_status count_params(sc_model *m, sc_pos pos, sc_err *err)
{
    double all = 0, active = 0, trained = 0, mtp = 0;
    for (uint32_t i = 0; i < m->kinds->n_tensors; i++) {
        const sc_tensor *w = &m->kinds->tensor[i];
        if (w->kind != SC_TENSOR_WEIGHT) continue;
        const sc_net_op *op = &m->kinds->op[w->op];
        double n = sc_tensor_elements(w, 1) * times(m, w);
        trained += w->learns ? n : 0;
        if (is_mtp(m, w->op)) {
            mtp += n;
            continue;
        }
        all += n;
        active += op->type == SC_NET_EXPERT ? n / op->experts * op->topk : n;
    }
    if (all + mtp > MAX_PARAMS)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "the model has more than 2^53 parameters");
    m->params = (uint64_t)all;
    m->mtp_params = (uint64_t)mtp;
    m->active_params = (uint64_t)active;
    m->trained_params = (uint64_t)trained;
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
    SC_TRY(build_finish(&n.b, &m->kinds, err));
    for (uint32_t i = m->kinds->n_instances; i-- > 0;) {
        const sc_net_instance *x = &m->kinds->instance[i];
        m->layer[x->kind].first = x->first; /* the first embedding, not the
                                               decoder's */
        m->layer[x->kind].n_ops = x->n_ops;
    }
    return count_params(m, pos, err);
}

void sc_kind_path(const sc_layer *l, uint32_t block, const sc_net_op *op,
                  char *buf, size_t size)
{
    if (l->kind != SC_LAYER_BLOCK)
        snprintf(buf, size, "%s", op->path);
    else
        snprintf(buf, size, "layers.%u.%s", block, sc_kind_op_name(l, op));
}

const char *sc_kind_op_name(const sc_layer *l, const sc_net_op *op)
{
    const char *dot = strchr(op->path, '.');
    if (l->kind == SC_LAYER_BLOCK) dot = strchr(dot + 1, '.');
    return dot + 1;
}
