/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_weights.c - what a layer keeps on one rank between steps, and the
 * exchanges that follow.
 *
 *   ZeRO-3       weights are gathered before each use, gradients scattered
 *   ZeRO-1, 2    gradients are scattered, updated weights gathered
 *   else         gradients are summed by all
 *
 * Ranks that share a weight are those of dp, cp and replicas of sharded groups
 * (HSDP), and those of ep where it is not an expert's.
 */
#include "plan/segment.h"

#include <math.h>

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

/* ---- one weight ------------------------------------------------------------- */

/* Axes of size above 1 as a mask, and how many ranks they have. */
static uint32_t add_axis(const sc_run *r, sc_axis ax, double *ranks)
{
    if (r->size[ax] <= 1) return 0;
    *ranks *= r->size[ax];
    return 1u << ax;
}

static void add_exchange(sc_exchange *x, uint32_t axes, sc_coll coll,
                         double bytes)
{
    if (!axes) return;
    x->bytes[axes] += bytes;
    x->coll[axes] = (uint8_t)coll;
}

/* In the run's format on the wire, with the kernels that it costs. */
static void add_gradient(const sc_plan *p, const segment_weight *w,
                         uint32_t axes, sc_coll coll, double elements,
                         sc_segment *b)
{
    const sc_run *r = &p->run;
    const compress_by by = {.cost = r->cost,
                            .device = r->hw->device,
                            .format = r->compress,
                            .wide = r->sw->reduce_bytes};
    if (!axes) return;
    compress_wire wire =
        compress_gradient(&by, &w->matrix, coll, elements, p->place[axes].n);
    b->pack_s += wire.pack_s;
    b->residual += wire.residual;
    add_exchange(&b->grad, axes, wire.coll, wire.bytes);
}

static void add_weight(const sc_plan *p, const segment_weight *w, sc_segment *b)
{
    const sc_run *r = &p->run;
    double n = w->elements, ranks = 1, copies = 1;
    double low = sc_precision_bytes(SC_BF16);
    uint32_t shard = add_axis(r, SC_AX_DP, &ranks);
    shard |= add_axis(r, SC_AX_CP, &ranks);
    if (!w->expert) shard |= add_axis(r, SC_AX_EP, &ranks);
    uint32_t rep = add_axis(r, SC_AX_REP, &copies);
    double part = n / ranks, kept = r->zero >= 3 ? part : n;
    b->params += n;
    b->params_kept += kept;
    if (w->still) b->frozen_kept += kept;
    if (r->zero >= 3) add_exchange(&b->gather, shard, SC_ALL_GATHER, low * n);
    if (r->forward_only || w->still) return;
    b->grads_kept += r->zero >= 2 ? part : n;
    b->optim_kept += r->zero >= 1 ? part : n;
    uint32_t parts = w->summed ? 1u << SC_AX_TP : 0;
    if (r->zero == 0) {
        add_gradient(p, w, shard | rep | parts, SC_ALL_REDUCE, n, b);
        return;
    }
    /* the parts of a replica are summed before anything is scattered */
    add_exchange(&b->grad, parts, SC_ALL_REDUCE, r->sw->reduce_bytes * n);
    add_gradient(p, w, shard, SC_REDUCE_SCATTER, n, b);
    add_gradient(p, w, rep, SC_ALL_REDUCE, part, b);
    if (r->zero < 3) add_exchange(&b->update, shard, SC_ALL_GATHER, low * n);
}

sc_status sc_segment_weights(const sc_plan *p, sc_segment *b, sc_err *err)
{
    bool apart = plan_ends_apart(&p->run);
    for (uint32_t i = 0; i < b->n_weights; i++)
        /* The last of several stages keeps a copy of a shared weight. */
        if (!b->weight[i].again || apart) add_weight(p, &b->weight[i], b);
    SC_TRY(plan_exchange_price(p, &b->gather, &b->gather_bytes, &b->gather_s,
                               err));
    SC_TRY(plan_exchange_price(p, &b->grad, &b->grad_bytes, &b->grad_s, err));
    SC_TRY(plan_exchange_price(p, &b->update, &b->update_bytes, &b->update_s,
                               err));
    if (p->run.zero >= 3) {
        b->gather_s *= rail_factor(p, &b->gather);
        b->grad_s *= rail_factor(p, &b->grad);
    }
    return SC_OK;
}
