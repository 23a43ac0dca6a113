/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - what a layer keeps on one rank between steps: weights, gradients,
 * optimizer states; and the exchanges that their layouts imply.
 *
 *   weights kept -> weights used      the gather before each use (ZeRO-3)
 *   gradient made -> gradient kept    data-parallel reduction
 *   optimizer's -> weights kept       the gather after the update (ZeRO-1, 2)
 */
#include "plan/block.h"

#include <math.h>
#include <string.h>

/* First dimension of the weight, where ZeRO shards it further. */
static sc_dimname first_dim(const sc_operator *op)
{
    for (uint32_t i = 0; i < op->n_iter; i++)
        if (op->w >> i & 1) return (sc_dimname)op->iter[i].name;
    return SC_N_DIMNAMES;
}

static sc_layout further(const sc_operator *op, sc_layout l, sc_axlist more)
{
    sc_dimname d = first_dim(op);
    if (d == SC_N_DIMNAMES) return l;
    for (; more; more >>= 4) {
        sc_axis ax = (sc_axis)((more & 15) - 1);
        if (!(sc_axlist_mask(l.shard[d]) >> ax & 1))
            l.shard[d] = sc_axlist_add(l.shard[d], ax);
    }
    return l;
}

/* Adds what turns one layout of a weight or gradient into another to `x`. */
static void collect(const emit *e, const sc_layout *from, const sc_layout *to,
                    double elements, double bytes_each, sc_exchange *x)
{
    sc_move m[SC_MOVES];
    uint32_t n = sc_layout_moves(from, to, e->p->run.size, m);
    for (uint32_t i = 0; i < n; i++) {
        x->bytes[m[i].axes] += m[i].fraction * elements * bytes_each;
        x->coll[m[i].axes] = (uint8_t)m[i].coll;
    }
}

double sc_plan_units(const sc_device *d, uint32_t channels)
{
    /* Links of systolic arrays have engines of their own; no library lets its
     * channels take more than half of a small device. */
    if (d->array || d->units == 0) return 0;
    return fmin(0.5, (double)channels / d->units);
}

sc_status plan_exchange_price(const sc_plan *p, sc_exchange *x, double *bytes,
                              double *seconds, sc_err *err)
{
    *bytes = *seconds = 0;
    for (uint32_t mask = 1; mask < 1u << SC_N_AX; mask++) {
        if (x->bytes[mask] <= 0) continue;
        sc_coll_price cp;
        SC_TRY(sc_cost_coll(p->run.cost, p->run.hw, (sc_coll)x->coll[mask],
                            x->bytes[mask], &p->place[mask], -1, &cp, err));
        *bytes += x->bytes[mask];
        *seconds += cp.seconds;
        if (cp.channels > x->channels) x->channels = cp.channels;
    }
    return SC_OK;
}

static bool between_nodes(const sc_plan *p, const sc_exchange *x)
{
    for (uint32_t mask = 1; mask < 1u << SC_N_AX; mask++)
        if (x->bytes[mask] > 0 && p->place[mask].nodes > 1) return true;
    return false;
}

/* Exchanges that use some of a node's NICs only. */
static double rail_factor(const sc_plan *p, const sc_exchange *x)
{
    const sc_run *r = &p->run;
    const sc_dim *net = &r->hw->dim[r->hw->n_dims - 1];
    if (r->sw->zero3_rails <= 0 || r->hw->n_nodes <= 1 || net->ports == 0 ||
        !between_nodes(p, x))
        return 1;
    return fmax(1, (double)net->ports / (double)r->sw->zero3_rails);
}

/* A head that shares the embedding's weight has none of its own, but the last
 * of several stages keeps a copy. */
static double weight_elements(const sc_run *r, const sc_operator *op)
{
    if (op->params || !op->w) return (double)op->params;
    return plan_ends_apart(r) ? plan_elements(r, op, op->w) : 0;
}

sc_status block_weights(emit *e, sc_block *b)
{
    const sc_run *r = &e->p->run;
    for (uint32_t i = 0; i < e->layer->n_ops; i++) {
        const sc_placed *o = &e->placed[i];
        const sc_operator *op = o->op;
        double n = weight_elements(r, op);
        if (n <= 0) continue;
        sc_layout used = plan_tensor(o, op->w, false);
        sc_layout kept = further(op, used, o->weight);
        sc_layout made = plan_tensor(o, op->w, true);
        sc_layout want = further(op, used, o->optim);
        uint32_t all = (1u << SC_N_DIMNAMES) - 1;
        b->params += n * sc_layout_fraction(&used, all, r->size);
        b->params_kept += n * sc_layout_fraction(&kept, all, r->size);
        if (op->frozen)
            b->frozen_kept += n * sc_layout_fraction(&kept, all, r->size);
        collect(e, &kept, &used, n, sc_precision_bytes(SC_BF16), &b->gather);
        if (r->forward_only || op->frozen) continue;
        sc_layout held = further(op, used, o->grad);
        b->grads_kept += n * sc_layout_fraction(&held, all, r->size);
        b->optim_kept += n * sc_layout_fraction(&want, all, r->size);
        block_gradient(e, o, &made, &want, n, b);
        collect(e, &want, &kept, n, sc_precision_bytes(SC_BF16), &b->update);
    }
    const sc_plan *p = e->p;
    SC_TRY(plan_exchange_price(p, &b->gather, &b->gather_bytes, &b->gather_s,
                               e->err));
    SC_TRY(
        plan_exchange_price(p, &b->grad, &b->grad_bytes, &b->grad_s, e->err));
    SC_TRY(plan_exchange_price(p, &b->update, &b->update_bytes, &b->update_s,
                               e->err));
    if (r->zero >= 3) {
        b->gather_s *= rail_factor(p, &b->gather);
        b->grad_s *= rail_factor(p, &b->grad);
    }
    return SC_OK;
}
