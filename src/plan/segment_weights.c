/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_weights.c - what a layer keeps on one rank between steps, and the
 * exchanges that follow.
 *
 *   ZeRO-3       weights are gathered before each use, gradients scattered
 *   FSDP's ZeRO-2  weights are gathered for both passes, gradients scattered
 *   ZeRO-1, 2    gradients are scattered, updated weights gathered
 *   else         gradients are summed by all
 *
 * Ranks that share a weight are those of dp, cp and replicas of sharded groups
 * (HSDP), and those of ep where it is not an expert's.  Rules of a file may say
 * otherwise of single weights.
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

/* Axes as bits by sc_axis: of all ranks that have the weight, and those that
 * each of its tensors is split over. */
typedef struct layout_of {
    uint32_t ranks;       /* have it */
    uint32_t kept, grad;  /* between steps */
    uint32_t state, want; /* of the optimizer; where gradients are brought */
} layout_of;

static double count(const sc_run *r, uint32_t axes)
{
    double n = 1;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (axes >> ax & 1) n *= r->size[ax];
    return n;
}

/* What a rule of the file says of a tensor holds before ZeRO.  Gradients are kept
 * as their weight is placed, states as gradients, unless something says
 * otherwise of them (graph_gradients.c). */
static layout_of layout_of_weight(const sc_run *r, const segment_weight *w)
{
    const struct segment_said *kept = &w->kept, *grad = &w->grad;
    uint32_t wide = 0;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (r->size[ax] > 1 && ax != SC_AX_PP && ax != SC_AX_TP)
            wide |= 1u << ax;
    if (w->expert) wide &= ~(1u << SC_AX_EP);
    uint32_t shard = wide & ~(1u << SC_AX_REP);
    int zero = r->zero_else;
    layout_of l = {.ranks = wide};
    bool parts = zero >= 3 || (zero == 2 && r->sw->zero2_weights);
    l.kept = kept->said ? kept->axes & wide : parts ? shard : 0;
    l.grad = kept->said ? l.kept : zero >= 2 ? shard : 0;
    if (grad->said && (!kept->said || grad->rank > kept->rank))
        l.grad = grad->axes & wide;
    l.state = w->state.said ? w->state.axes & wide : zero >= 1 ? shard : l.grad;
    l.want = kept->said || grad->said ? l.grad : l.state;
    return l;
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
                         sc_exchange *to, sc_segment *b)
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
    add_exchange(to, axes, wire.coll, wire.bytes);
}

/* Over ranks of tp, too, where each has a part of the sum.  The parts of a
 * replica are summed before anything is scattered. */
static void add_sums(const sc_plan *p, const segment_weight *w,
                     const layout_of *l, sc_segment *b)
{
    const sc_run *r = &p->run;
    double n = w->elements;
    uint32_t parts = w->summed ? 1u << SC_AX_TP : 0;
    bool each = l->grad || sc_run_reductions(r) == 1;
    sc_exchange *to = each ? &b->grad : &b->once;
    if (!l->want) {
        add_gradient(p, w, l->ranks | parts, SC_ALL_REDUCE, n, to, b);
        return;
    }
    add_exchange(to, parts, SC_ALL_REDUCE, r->sw->reduce_bytes * n);
    add_gradient(p, w, l->want, SC_REDUCE_SCATTER, n, to, b);
    add_gradient(p, w, l->ranks & ~l->want, SC_ALL_REDUCE,
                 n / count(r, l->want), to, b);
}

/* Gradients that leave in each micro-batch: with their layer, or as soon as a
 * bucket is full where the program has a size of buckets; the last ones first. */
static void add_buckets(const sc_plan *p, sc_segment *b)
{
    const sc_run *r = &p->run;
    double replicas = (double)sc_run_dp(r) * r->size[SC_AX_CP];
    double size =
        sc_software_bucket(r->sw, r->zero >= 3, replicas, r->sw->reduce_bytes);
    double open = 0, before = 0;
    for (uint32_t i = b->n_weights; i-- > 0;) {
        const segment_weight *w = &b->weight[i];
        if (w->still || !layout_of_weight(r, w).grad) continue;
        open += r->sw->reduce_bytes * w->elements;
        b->bulk = fmax(b->bulk, open);
        b->pair = fmax(b->pair, before + open);
        if (b->buckets < 1) b->first = open;
        b->last = open;
        if (size <= 0 || open < size) continue;
        b->buckets += 1;
        before = open;
        open = 0;
    }
    if (size > 0 && b->buckets > 0) b->buckets += open / size;
    b->buckets = fmax(1, b->buckets);
}

static void add_weight(const sc_plan *p, const segment_weight *w, sc_segment *b)
{
    const sc_run *r = &p->run;
    layout_of l = layout_of_weight(r, w);
    double n = w->elements, low = sc_precision_bytes(SC_BF16);
    double kept = n / count(r, l.kept);
    b->params += n;
    b->params_kept += kept;
    if (l.kept) b->gathered += n;
    if (w->still) b->frozen_kept += kept;
    add_exchange(&b->gather, l.kept, SC_ALL_GATHER, low * n);
    if (r->forward_only || w->still) return;
    b->grads_kept += n / count(r, l.grad);
    b->optim_kept += n / count(r, l.state);
    add_sums(p, w, &l, b);
    add_exchange(&b->update, l.state & ~l.kept, SC_ALL_GATHER, low * kept);
}

/* Of next to no bytes: what an exchange has once, whatever it takes along. */
static sc_status least_price(const sc_plan *p, const sc_exchange *x,
                             double *seconds, sc_err *err)
{
    sc_exchange least = *x;
    double bytes;
    for (uint32_t mask = 1; mask < 1u << SC_N_AX; mask++)
        least.bytes[mask] = fmin(8, least.bytes[mask]);
    return plan_exchange_price(p, &least, &bytes, seconds, err);
}

sc_status sc_segment_weights(const sc_plan *p, sc_segment *b, sc_err *err)
{
    bool apart = plan_ends_apart(&p->run);
    for (uint32_t i = 0; i < b->n_weights; i++)
        /* The last of several stages keeps a copy of a shared weight. */
        if (!b->weight[i].again || apart) add_weight(p, &b->weight[i], b);
    add_buckets(p, b);
    SC_TRY(plan_exchange_price(p, &b->gather, &b->gather_bytes, &b->gather_s,
                               err));
    SC_TRY(plan_exchange_price(p, &b->grad, &b->grad_bytes, &b->grad_s, err));
    SC_TRY(least_price(p, &b->grad, &b->grad_least_s, err));
    SC_TRY(plan_exchange_price(p, &b->once, &b->once_bytes, &b->once_s, err));
    SC_TRY(plan_exchange_price(p, &b->update, &b->update_bytes, &b->update_s,
                               err));
    if (p->run.zero >= 3) {
        b->gather_s *= rail_factor(p, &b->gather);
        b->grad_s *= rail_factor(p, &b->grad);
        b->once_s *= rail_factor(p, &b->once);
    }
    return SC_OK;
}
