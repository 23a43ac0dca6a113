/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_weights.c - the weights, gradients and optimizer states of a layer
 * that one rank keeps between steps, and the resulting exchanges.
 *
 *   ZeRO-3         all-gather of weights before each use, reduce-scatter of
 *                  gradients
 *   FSDP's ZeRO-2  all-gather of weights once for both passes, reduce-scatter
 *                  of gradients
 *   ZeRO-1, 2      reduce-scatter of gradients, all-gather of updated weights
 *   else           all-reduce of gradients
 *
 * A weight is shared by the ranks of dp, cp and replicas of sharded groups
 * (HSDP), and by those of ep if it belongs to no expert.  Rules of a file may
 * change this for single weights.
 */
#include "plan/plan_buckets.h"
#include "plan/plan_segment.h"

#include <math.h>

double sc_plan_units(const sc_device *d, double channels)
{
    /* Links of systolic arrays have engines, so no unit serves them.  Libraries
     * limit channels to half of the units of a small device. */
    if (d->array || d->units == 0) return 0;
    return fmin(0.5, channels / d->units);
}

double sc_units_mean(const sc_units *u, const sc_device *d)
{
    return u->seconds > 0 ? sc_plan_units(d, u->channels / u->seconds) : 0;
}

const sc_moved *sc_exchange_over(const sc_exchange *x, uint32_t axes)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->moved[i].axes == axes) return &x->moved[i];
    return NULL;
}

static uint32_t place_of(const sc_exchange *x, uint32_t axes, sc_coll coll)
{
    uint32_t i = 0;
    while (i < x->n && (x->moved[i].axes != axes || x->moved[i].coll != coll))
        i++;
    return i;
}

void plan_exchange_add(sc_exchange *x, uint32_t axes, sc_coll coll,
                       double bytes)
{
    if (!axes || bytes <= 0) return;
    uint32_t i = place_of(x, axes, coll);
    if (i == x->n) x->n++;
    if (i >= SC_MOVED) return; /* plan_exchange_price() reports it */
    x->moved[i].axes = axes;
    x->moved[i].coll = coll;
    x->moved[i].bytes += bytes;
}

sc_status sc_plan_move_price(const sc_plan *p, uint32_t axes, sc_coll coll,
                             double bytes, sc_coll_price *out, double *latency,
                             sc_err *err)
{
    const sc_run *r = &p->run;
    const sc_place *at = &p->place[axes];
    sc_coll_price least; /* price of 8 bytes, which is almost only latency */
    SC_TRY(
        sc_cost_coll_kept(p->prices, r->cost, r->hw, coll, 8, at, &least, err));
    SC_TRY(sc_cost_coll_kept(p->prices, r->cost, r->hw, coll, bytes, at, out,
                             err));
    *latency = plan_latency(least.seconds, out->seconds, out->bound);
    if (r->zero >= 3) out->seconds *= plan_rails(r->sw, r->hw, at);
    return SC_OK;
}

sc_status plan_exchange_price(const sc_plan *p, sc_exchange *x, sc_err *err)
{
    if (x->n > SC_MOVED)
        return sc_error(
            err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
            "gradients are exchanged over more than %d kinds of groups",
            SC_MOVED);
    x->bytes = x->seconds = x->latency = 0;
    x->link_s[0] = x->link_s[1] = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        sc_moved *m = &x->moved[i];
        sc_coll_price cp;
        double latency;
        SC_TRY(sc_plan_move_price(p, m->axes, m->coll, m->bytes, &cp, &latency,
                                  err));
        x->latency += latency;
        m->seconds = cp.seconds;
        x->bytes += m->bytes;
        x->seconds += m->seconds;
        for (int s = 0; s < 2; s++) x->link_s[s] += cp.link_s[s];
        m->channels = cp.channels;
    }
    return SC_OK;
}

/* ---- one weight ------------------------------------------------------ */

/* Bits by sc_axis: the axes of all ranks that share the weight, and the axes
 * over which each of its tensors is split. */
typedef struct layout_of {
    uint32_t ranks;       /* ranks that share the weight */
    uint32_t kept, grad;  /* weight and gradient between steps */
    uint32_t state, want; /* optimizer states; gradients after the exchange */
} layout_of;

static double count(const sc_run *r, uint32_t axes)
{
    double n = 1;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (axes >> ax & 1) n *= r->size[ax];
    return n;
}

/* Rules of the file override ZeRO.  By default gradients have the layout of
 * their weight, and states that of gradients (infer_gradients.c). */
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

/* Sum of a gradient's exchanges; `to` is b->grad or b->once. */
typedef struct leaving {
    sc_exchange *to;
    sc_gradient way;
} leaving;

static void leave_over(leaving *l, uint32_t axes, sc_coll coll, double bytes)
{
    sc_gradient *g = &l->way;
    if (!axes || bytes <= 0) return;
    plan_exchange_add(l->to, axes, coll, bytes);
    g->axes[g->n] = (uint8_t)axes;
    g->coll[g->n] = (uint8_t)coll;
    g->bytes[g->n++] = bytes;
}

/* Adds an exchange in the run's format on the wire, and its kernels. */
static void add_gradient(const sc_plan *p, const segment_weight *w,
                         uint32_t axes, sc_coll coll, double elements,
                         leaving *l, sc_segment *b)
{
    const sc_run *r = &p->run;
    const compress_by by = {.cost = r->cost,
                            .device = r->hw->device,
                            .format = r->compress,
                            .value_bytes = r->sw->reduce_bytes,
                            .flat = plan_flattens(r->sw)};
    if (!axes) return;
    compress_wire wire =
        compress_gradient(&by, &w->matrix, coll, elements, p->place[axes].n);
    b->pack_s += wire.pack_s;
    b->residual += wire.residual;
    leave_over(l, axes, wire.coll, wire.bytes);
}

/* Adds the sum over tp, if its ranks hold partial sums: these are summed within
 * each replica before the gradient is scattered. */
static void add_sums(const sc_plan *p, const segment_weight *w,
                     const layout_of *l, leaving *go, sc_segment *b)
{
    const sc_run *r = &p->run;
    double n = w->elements;
    uint32_t parts = w->summed ? 1u << SC_AX_TP : 0;
    bool each = l->grad || sc_run_reductions(r) == 1;
    go->to = each ? &b->grad : &b->once;
    if (!l->want) {
        add_gradient(p, w, l->ranks | parts, SC_ALL_REDUCE, n, go, b);
        return;
    }
    leave_over(go, parts, SC_ALL_REDUCE, r->sw->reduce_bytes * n);
    add_gradient(p, w, l->want, SC_REDUCE_SCATTER, n, go, b);
    add_gradient(p, w, l->ranks & ~l->want, SC_ALL_REDUCE,
                 n / count(r, l->want), go, b);
}

/* Forms the buckets of sharded gradients, from the last weight to the first.  A
 * layer has one bucket unless the program has a bucket size. */
static void add_buckets(const sc_plan *p, sc_segment *b)
{
    const sc_run *r = &p->run;
    double replicas = (double)sc_run_dp(r) * r->size[SC_AX_CP];
    double size =
        sc_software_bucket(r->sw, r->zero >= 3, replicas, r->sw->reduce_bytes);
    double before = 0;
    plan_bucket one;
    plan_buckets all = {.full = size, .room = 1, .open = &one};
    for (uint32_t i = b->n_weights; i-- > 0;) {
        const segment_weight *w = &b->weight[i];
        if (w->frozen || !layout_of_weight(r, w).grad) continue;
        double bytes = r->sw->reduce_bytes * w->elements;
        plan_bucket *open = plan_bucket_of(&all, 0);
        bool full = plan_bucket_add(&all, open, &bytes, 1, 0);
        b->last = open->bytes[0];
        b->bulk = fmax(b->bulk, b->last);
        b->pair = fmax(b->pair, before + b->last);
        if (b->buckets < 1) b->first = b->last;
        if (!full) continue;
        b->buckets += 1;
        before = plan_bucket_close(&all, open).bytes[0];
    }
    if (b->buckets > 0 && all.n) b->buckets += one.bytes[0] / size;
    b->buckets = fmax(1, b->buckets);
}

/* Programs without buckets cast sharded gradients to the precision of the
 * reduction, or add them to those of other micro-batches.  Returns the bytes
 * that this moves. */
static double widened(const sc_run *r, const segment_weight *w,
                      const layout_of *l)
{
    double wide = r->sw->reduce_bytes, low = sc_precision_bytes(SC_BF16);
    if (!l->grad || r->sw->bucket_bytes > 0 || wide <= low) return 0;
    bool adds = sc_run_stays_gathered(r) && r->ga > 1;
    return w->elements * (adds ? r->sw->accum_bytes : wide + low);
}

/* Bytes of an element when a weight is gathered. */
static double gathered_bytes(const sc_run *r, const segment_weight *w)
{
    return sc_precision_bytes(SC_BF16) *
           (w->low ? plan_low_gathered(r->sw, r->recipe) : 1);
}

/* Adds a weight; returns the bytes that casting its gradient moves. */
static double add_weight(const sc_plan *p, const segment_weight *w, leaving *go,
                         sc_segment *b)
{
    const sc_run *r = &p->run;
    layout_of l = layout_of_weight(r, w);
    double n = w->elements, low = gathered_bytes(r, w);
    double kept = n / count(r, l.kept);
    b->params += n;
    b->params_kept += kept;
    if (l.kept) b->gathered += n;
    if (w->frozen) b->frozen_kept += kept;
    plan_exchange_add(&b->gather, l.kept, SC_ALL_GATHER, low * n);
    if (r->forward_only || w->frozen) return 0;
    b->grads_kept += n / count(r, l.grad);
    b->optim_kept += n / count(r, l.state);
    if (w->table) b->tables_kept += n / count(r, l.state);
    if (w->low && r->zero < 3) b->low_kept += kept;
    add_sums(p, w, &l, go, b);
    plan_exchange_add(&b->update, l.state & ~l.kept, SC_ALL_GATHER, low * kept);
    return widened(r, w, &l);
}

/* Lists gradients in the order in which they are computed. */
static void add_order(const leaving *go, sc_segment *b)
{
    for (uint32_t i = b->n_weights; i-- > 0;) {
        if (go[i].way.n == 0 || go[i].to != &b->grad) continue;
        sc_gradient *g = &b->gradient[b->n_gradients++];
        *g = go[i].way;
        g->weight = i;
    }
}

sc_status sc_segment_weights(const sc_plan *p, sc_arena *a, sc_segment *b,
                             sc_err *err)
{
    const sc_run *r = &p->run;
    bool apart = plan_ends_apart(r);
    leaving *go = SC_NEW_N(a, leaving, b->n_weights);
    b->gradient = SC_NEW_N(a, sc_gradient, b->n_weights);
    double cast = 0;
    if (!go || !b->gradient) return sc_error_nomem(err);
    for (uint32_t i = 0; i < b->n_weights; i++)
        /* With several stages the last one keeps a copy of a shared weight;
         * otherwise the weight is only gathered a second time. */
        if (!b->weight[i].shared || apart)
            cast += add_weight(p, &b->weight[i], &go[i], b);
        else
            plan_exchange_add(
                &b->gather, layout_of_weight(r, &b->weight[i]).kept,
                SC_ALL_GATHER,
                gathered_bytes(r, &b->weight[i]) * b->weight[i].elements);
    if (cast > 0) {
        sc_kernel k = {.kind = SC_K_MEMORY, .launches = 1, .bytes = cast};
        b->cast_s = sc_cost_kernel(r->cost, r->hw->device, &k).seconds;
        b->pack_s += b->cast_s;
    }
    add_buckets(p, b);
    if (b->params > 0)
        b->away = r->offload_weights * b->params_kept / b->params;
    SC_TRY(plan_exchange_price(p, &b->gather, err));
    SC_TRY(plan_exchange_price(p, &b->grad, err));
    SC_TRY(plan_exchange_price(p, &b->once, err));
    SC_TRY(plan_exchange_price(p, &b->update, err));
    add_order(go, b);
    return SC_OK;
}
