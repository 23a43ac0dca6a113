/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_spread.c - spreads splits from operators that rules mention to all
 * others, axis by axis, until nothing changes: forward from what an operator
 * reads, and backward from the operators that read its result.  Partial sums
 * over an axis stay open until the layout behind their reader is known, so that
 * they can be reduced and scattered if that layout is sharded.
 */
#include "plan/infer.h"

/* What a neighbour may propose instead of an iteration dim to split. */
#define WHOLE 254 /* no split */
#define STUCK 253 /* a dim that this operator cannot split */

typedef struct proposal {
    uint8_t it; /* iteration dim, WHOLE or STUCK */
    double elements;
    const sc_operand *port;
    sc_axes order; /* order of the axes that split it in the neighbour */
} proposal;

static bool has(sc_axes list, uint32_t ax)
{
    return sc_axes_mask(list) >> ax & 1;
}

/* Whether `ax` may split a dim.  If the neighbour's dim `as` (may be NULL) has
 * as many indivisible parts, this dim may be cut unevenly in the same way. */
static bool may_split(const inference *f, uint32_t op, uint8_t it, uint32_t ax,
                      const sc_iter_dim *as)
{
    const sc_iter_dim *d = &f->g->op[op].iter[it];
    if (d->kind == SC_I_OPAQUE || f->node[op].by[it]) return false;
    if (d->batch) return true;
    uint64_t parts = infer_parts(f, f->node[op].split[it]);
    parts *= f->mesh.size[ax];
    if (infer_units(d) % parts == 0) return true;
    return f->ragged && as && infer_units(as) == infer_units(d) &&
           parts <= infer_units(d);
}

/* Finds the dim that `ax` splits in the tensor's kept layout; SC_TENSOR_DIMS:
 * none.  Returns false if this is not decided yet. */
static bool kept_dim(const inference *f, uint32_t tensor, uint32_t ax,
                     uint32_t *dim)
{
    const sc_tensor *t = &f->g->tensor[tensor];
    const infer_kept *k = &f->kept[tensor];
    *dim = SC_TENSOR_DIMS;
    if (k->origin) {
        uint32_t d = layout_dim_of(&k->l, ax);
        if (d < SC_TENSOR_DIMS) *dim = d;
        return true;
    }
    const infer_node *n = &f->node[t->op];
    if (!(n->decided >> ax & 1)) return false;
    const sc_operand *out = &f->g->op[t->op].out;
    uint32_t seen = 0;
    for (uint32_t d = 0; d < t->n_dim; d++) {
        if (out->at[d] == SC_NO_ITER) continue;
        seen |= 1u << out->at[d];
        if (has(n->split[out->at[d]], ax)) *dim = d;
    }
    if (*dim < SC_TENSOR_DIMS) return true;
    for (uint32_t i = 0; i < f->g->op[t->op].n_iter; i++)
        if (!(seen >> i & 1) && has(n->split[i], ax)) return false;
    return !has(n->rr_axes, ax);
}

/* Number of elements that are exchanged if this option is chosen. */
static double exchanged(const proposal *p, uint32_t n, uint8_t option)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].it == option) continue;
        bool indexed = option >= SC_ITER_DIMS;
        for (uint32_t d = 0; d < SC_TENSOR_DIMS; d++)
            indexed |= p[i].port->at[d] == option;
        if (p[i].it != WHOLE || indexed) sum += p[i].elements;
    }
    return sum;
}

/* Chooses the option with the smallest exchange.  Among equal ones a split is
 * preferred, and among splits that of the largest tensor. */
static uint8_t choose(const proposal *p, uint32_t n)
{
    uint8_t best = WHOLE;
    double least = exchanged(p, n, WHOLE), size = 0, of[SC_ITER_DIMS];
    for (uint32_t i = 0; i < SC_ITER_DIMS; i++) of[i] = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].it >= SC_ITER_DIMS) continue;
        double x = of[p[i].it];
        if (x < 0) x = of[p[i].it] = exchanged(p, n, p[i].it);
        bool ties = x == least && (best == WHOLE || p[i].elements > size);
        if (x < least || ties) {
            best = p[i].it;
            least = x;
            size = p[i].elements;
        }
    }
    return best;
}

static void resolve(inference *f, uint32_t op, uint32_t ax, const proposal *p,
                    uint32_t n)
{
    infer_node *node = &f->node[op];
    uint8_t it = choose(p, n);
    node->decided |= 1u << ax;
    if (it >= SC_ITER_DIMS) return;
    sc_axes *split = &node->split[it];
    *split = sc_axes_add(*split, ax);
    for (uint32_t i = 0; i < n; i++) /* in the neighbour's order */
        if (p[i].it == it && sc_axes_mask(p[i].order) == sc_axes_mask(*split))
            *split = p[i].order;
}

static bool from_inputs(inference *f, uint32_t op, uint32_t ax, proposal *p,
                        bool relaxed)
{
    const sc_net_op *o = &f->g->op[op];
    uint32_t n = 0;
    for (uint32_t k = 0; k < o->n_in; k++) {
        const sc_tensor *t = &f->g->tensor[o->in[k].tensor];
        uint32_t dim;
        if (t->kind != SC_TENSOR_VALUE) continue;
        if (!kept_dim(f, o->in[k].tensor, ax, &dim)) {
            if (!relaxed) return false;
            dim = SC_TENSOR_DIMS;
        }
        uint8_t it = WHOLE;
        sc_axes order = 0;
        if (dim < SC_TENSOR_DIMS) {
            uint8_t at = f->g->op[t->op].out.at[dim];
            if (f->kept[o->in[k].tensor].origin)
                order = f->kept[o->in[k].tensor].l.shard[dim];
            else if (at != SC_NO_ITER)
                order = f->node[t->op].split[at];
            it = o->in[k].at[dim];
            const sc_iter_dim *as =
                at == SC_NO_ITER ? NULL : &f->g->op[t->op].iter[at];
            if (it == SC_NO_ITER || !may_split(f, op, it, ax, as)) it = STUCK;
        }
        p[n++] = (proposal){it, infer_elements(f, t), &o->in[k], order};
    }
    if (n == 0 && !relaxed) return false;
    resolve(f, op, ax, p, n);
    return true;
}

/* The iteration dim of `op` that corresponds to the split of its result by a
 * reader. */
static uint8_t read_as(const inference *f, uint32_t op, uint32_t reader,
                       uint32_t tensor, uint32_t ax, sc_axes *order)
{
    const sc_net_op *r = &f->g->op[reader];
    for (uint32_t k = 0; k < r->n_in; k++) {
        if (r->in[k].tensor != tensor) continue;
        for (uint32_t d = 0; d < f->g->tensor[tensor].n_dim; d++) {
            uint8_t at = r->in[k].at[d];
            if (at == SC_NO_ITER || !has(f->node[reader].split[at], ax))
                continue;
            uint8_t it = f->g->op[op].out.at[d];
            if (it == SC_NO_ITER || !may_split(f, op, it, ax, &r->iter[at]))
                return STUCK;
            *order = f->node[reader].split[at];
            return it;
        }
    }
    return WHOLE;
}

static bool from_users(inference *f, uint32_t op, uint32_t ax, proposal *p)
{
    const sc_net_op *o = &f->g->op[op];
    const infer_kept *k = &f->kept[o->out.tensor];
    uint32_t n = 0;
    if (k->origin) { /* a rule gives the layout of the result */
        uint32_t d = layout_dim_of(&k->l, ax);
        uint8_t it = d < SC_TENSOR_DIMS ? o->out.at[d] : WHOLE;
        if (it < SC_ITER_DIMS && !may_split(f, op, it, ax, NULL)) it = STUCK;
        p[n++] =
            (proposal){it, 1, &o->out, d < SC_TENSOR_DIMS ? k->l.shard[d] : 0};
    }
    for (uint32_t i = 0; i < k->n_readers && !k->origin; i++) {
        if (!(f->node[k->reader[i]].decided >> ax & 1)) return false;
        sc_axes order = 0;
        uint8_t it = read_as(f, op, k->reader[i], o->out.tensor, ax, &order);
        p[n++] = (proposal){it, 1, &o->out, order};
    }
    if (n == 0) return false;
    resolve(f, op, ax, p, n);
    return true;
}

static bool sweep(inference *f, uint32_t ax, proposal *p, bool backward,
                  bool relaxed)
{
    bool changed = false;
    for (uint32_t i = 0; i < f->g->n_ops; i++) {
        uint32_t op = backward ? f->g->n_ops - 1 - i : i;
        if (f->node[op].decided >> ax & 1) continue;
        changed |= backward ? from_users(f, op, ax, p)
                            : from_inputs(f, op, ax, p, relaxed);
    }
    return changed;
}

/* The largest number of inputs of an operator or of readers of a tensor. */
static uint32_t most_neighbours(const inference *f)
{
    uint32_t most = 1;
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        const sc_net_op *o = &f->g->op[op];
        uint32_t users = f->kept[o->out.tensor].n_readers;
        if (o->n_in > most) most = o->n_in;
        if (users > most) most = users;
    }
    return most;
}

void infer_spread(inference *f)
{
    proposal *p = SC_NEW_N(f->a, proposal, most_neighbours(f));
    if (!p) {
        f->no_memory = true;
        return;
    }
    for (uint32_t ax = 0; ax < f->mesh.n_axes; ax++) {
        if (f->mesh.size[ax] <= 1 || (int)ax == f->pp) continue;
        bool changed = true;
        while (changed) {
            changed = sweep(f, ax, p, false, false);
            changed |= sweep(f, ax, p, true, false);
        }
        (void)sweep(f, ax, p, false, true);
    }
}
