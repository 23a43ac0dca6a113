/* SPDX-License-Identifier: Apache-2.0 */
/* infer_memo.c - keeps prices of kernels by operator, which equal operators
 * share, and conversions from one layout to another. */
#include "plan/infer.h"

#include <string.h>

typedef struct kernel_key {
    const sc_device *device;
    uint64_t near; /* by the operators before it, since kernels are fused */
    double weight_parts;
    uint32_t pass, weight, chunks;
    sc_axes split[SC_ITER_DIMS];
} kernel_key;

typedef struct kernels {
    struct kernels *next;
    kernel_key key;

    union {
        sc_price price;
        sc_op_held held; /* where the pass is HELD */
    };
} kernels;

/* Pseudo-pass for the memory that the forward pass holds besides values. */
#define HELD UINT32_MAX

/* A program has few pairs of layouts. */
#define SEQUENCE_BITS 6

typedef struct sequence {
    bool known;
    layout from, to;
    uint32_t n;
    layout_move move[SC_MESH_AXES]; /* [n] */
} sequence;

struct infer_memo {
    kernels **kernel; /* [operators of the whole network], by first equal one */
    sequence sequence[1u << SEQUENCE_BITS]; /* by a hash of both layouts */
};

sc_status infer_memo_new(inference *f)
{
    f->memo = SC_RAW_N(f->a, struct infer_memo, 1);
    if (!f->memo) return sc_error_nomem(f->err);
    for (size_t k = 0; k < SC_COUNT(f->memo->sequence); k++)
        f->memo->sequence[k].known = false;
    f->memo->kernel = SC_NEW_N(f->a, kernels *, f->g->n_ops);
    return f->memo->kernel ? SC_OK : sc_error_nomem(f->err);
}

static bool passed_by(const sc_net_op *o)
{
    return o->type == SC_NET_VIEW || o->type == SC_NET_ELEMENTWISE ||
           o->type == SC_NET_DROPOUT || o->type == SC_NET_ACT;
}

/* Hash of everything outside an operator on which its price depends
 * (cost/graph_work.c): the fused operators that make its first input, the
 * operator before it, and which inputs need a gradient. */
static uint64_t near(const inference *f, uint32_t op)
{
    const sc_net *g = f->g;
    const sc_net_op *o = &g->op[op];
    uint64_t h = op > 0 && g->op[op - 1].type == SC_NET_EMBED;
    for (uint32_t k = 0; k < o->n_in; k++)
        h = 2 * h + g->tensor[o->in[k].tensor].learns;
    while (o->n_in > 0) {
        const sc_tensor *t = &g->tensor[o->in[0].tensor];
        if (t->kind != SC_TENSOR_VALUE) break;
        h = (h + infer_equal_op(f, t->op) + 1) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
        o = &g->op[t->op];
        if (!passed_by(o)) break;
    }
    return h;
}

static sc_status fresh(inference *f, uint32_t op, kernels *k)
{
    const kernel_key *key = &k->key;
    if (key->pass == HELD) {
        k->held = infer_kernel_memory_anew(f, op);
        return SC_OK;
    }
    return infer_compute_anew(f, op, (sc_op_pass)key->pass, key->weight,
                              key->weight_parts, key->chunks, &k->price);
}

static bool same(const kernel_key *a, const kernel_key *b, uint32_t n_iter)
{
    return a->near == b->near && a->pass == b->pass && a->weight == b->weight &&
           a->weight_parts == b->weight_parts && a->device == b->device &&
           a->chunks == b->chunks &&
           memcmp(a->split, b->split, n_iter * sizeof *a->split) == 0;
}

static sc_status known(inference *f, uint32_t op, uint32_t pass,
                       uint32_t weight, double weight_parts, uint32_t chunks,
                       const kernels **out)
{
    const infer_node *n = &f->node[op];
    uint32_t n_iter = f->g->op[op].n_iter;
    kernels **list = &f->memo->kernel[infer_equal_op(f, op)];
    kernel_key key = {.device = infer_slowest(f, n->stage),
                      .near = near(f, op),
                      .weight_parts = weight_parts,
                      .pass = pass,
                      .weight = weight,
                      .chunks = chunks};
    memcpy(key.split, n->split, n_iter * sizeof *key.split);
    kernels *k = *list;
    while (k && !same(&k->key, &key, n_iter)) k = k->next;
    if (!k) {
        k = SC_NEW(f->a, kernels);
        if (!k) return sc_error_nomem(f->err);
        k->key = key;
        SC_TRY(fresh(f, op, k));
        k->next = *list;
        *list = k;
    }
    *out = k;
    return SC_OK;
}

sc_status infer_compute(inference *f, uint32_t op, sc_op_pass pass,
                        uint32_t weight, double weight_parts, sc_price *out)
{
    const kernels *k;
    SC_TRY(known(f, op, pass, weight, weight_parts, 1, &k));
    *out = k->price;
    return SC_OK;
}

sc_status infer_compute_chunk(inference *f, uint32_t op, sc_op_pass pass,
                              uint32_t chunks, sc_price *out)
{
    const kernels *k;
    SC_TRY(known(f, op, pass, 0, 1, chunks, &k));
    *out = k->price;
    return SC_OK;
}

sc_status infer_kernel_memory(inference *f, uint32_t op, sc_op_held *out)
{
    const kernels *k;
    SC_TRY(known(f, op, HELD, 0, 1, 1, &k));
    *out = k->held;
    return SC_OK;
}

static uint32_t place_of(const layout *from, const layout *to)
{
    const uint64_t prime = UINT64_C(0xff51afd7ed558ccd);
    uint64_t h = (from->partial * prime + to->partial) * prime;
    for (uint32_t d = 0; d < LAYOUT_DIMS; d++)
        h = ((h ^ from->shard[d]) * prime ^ to->shard[d]) * prime;
    return (uint32_t)(h >> (64 - SEQUENCE_BITS));
}

uint32_t infer_sequence(const inference *f, const layout *from,
                        const layout *to, layout_move *out)
{
    if (layout_equal(from, to)) return 0;
    if (!f->memo) return layout_sequence(from, to, &f->mesh, out);
    sequence *s = &f->memo->sequence[place_of(from, to)];
    if (!s->known || !layout_equal(&s->from, from) ||
        !layout_equal(&s->to, to)) {
        s->known = true;
        s->from = *from;
        s->to = *to;
        s->n = layout_sequence(from, to, &f->mesh, s->move);
    }
    memcpy(out, s->move, s->n * sizeof *out);
    return s->n;
}
