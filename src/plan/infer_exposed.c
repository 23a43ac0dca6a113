/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_exposed.c - the part of an activation exchange that kernels do not
 * hide.  Programs split products to overlap the exchange of finished parts,
 * move tokens of one micro-batch while another computes, and gather inputs of
 * the product for weights during the product for inputs.
 */
#include "plan/infer.h"
#include "plan/internal.h"

#include <math.h>

/* Exchanges over ep that do not include axes of replicas move tokens to and
 * from experts. */
bool infer_dispatches(const inference *f, uint32_t axes)
{
    return (axes & f->ep_axis) && !(axes & f->replica_axes);
}

static bool only_tp(const inference *f, uint32_t axes)
{
    return f->tp >= 0 && axes == 1u << f->tp;
}

static bool tp_overlaps(const inference *f, sc_coll coll)
{
    bool on = f->s->tp_overlap >= 0 ? f->s->tp_overlap : f->job->sw->tp_overlap;
    return on && (coll == SC_ALL_GATHER || coll == SC_REDUCE_SCATTER);
}

static double dispatch_seconds(const inference *f, uint32_t tensor,
                               const sc_place *at, double seconds)
{
    const sc_software *sw = f->job->sw;
    const sc_tensor *t = &f->g->tensor[tensor];
    double width = (double)t->dim[t->n_dim - 1].extent;
    seconds *=
        sc_cost_dispatch_factor(f->job->cost, at, sw->dedup_dispatch, width);
    return sw->ep_overlap ? seconds * f->job->cost->p[SC_P_EP_EXPOSED]
                          : seconds;
}

/* The dispatch that sent the tokens of an operator to their experts. */
static const sc_net_op *dispatch_of(const sc_net *g, const sc_net_op *o)
{
    while (o->type != SC_NET_DISPATCH && o->n_in > 0) {
        uint32_t by = g->tensor[o->in[0].tensor].op;
        if (by >= g->n_ops || !g->op[by].topk) break;
        o = &g->op[by];
    }
    return o;
}

/* Expected number of ranks, of `n`, to which a token may be sent if the router
 * limits it to the experts of route_topk of route_groups. */
static double ranks_in_reach(const sc_net_op *o, double n)
{
    double groups = o->route_groups, own = groups / n, miss = 1;
    if (o->route_groups < 2) return n;
    if (own < 1) return n * o->route_topk / groups;
    for (uint32_t i = 0; i < o->route_topk; i++)
        miss *= fmax(0, groups - own - i) / (groups - i);
    return n * (1 - miss);
}

/* Number of copies of a token.  One is sent to each rank (over the network: to
 * each node) that has one of its k experts: n (1 - (1 - 1/n)^k) of n on
 * average. */
double infer_copies_sent(const inference *f, uint32_t op, uint32_t axes,
                         const sc_place *at)
{
    if (!infer_dispatches(f, axes) || !f->job->sw->dedup_dispatch) return 1;
    const sc_net_op *o = dispatch_of(f->g, &f->g->op[op]);
    double n = at->nodes > 1 ? at->nodes : at->n, k = o->topk;
    if (n <= 1 || k <= 0) return 1;
    double reach = ranks_in_reach(o, n);
    return sc_cost_dispatch_copies(reach, k);
}

/* Overlapped communication is hidden but slows kernels by the SMs it
 * occupies. */
static double overlapped(double taken, double seconds, double hidden_s)
{
    double both = fmin(seconds, hidden_s);
    return seconds - both + both * taken;
}

static double alone(const inference *f, const infer_why *w, const sc_place *at)
{
    bool overlaps =
        w->grad ? infer_grads_overlap(f) : f->job->sw->param_overlap;
    if (f->rules->exchanges_overlap || !w->once || overlaps) return 1;
    return plan_alone_fraction(f->job->cost, at);
}

static double rails(const inference *f, const infer_why *w, const sc_place *at)
{
    bool weights = w->what == VALUE_WEIGHT_USED || w->grad;
    if (f->s->zero < 3 || !weights) return 1;
    return plan_rails(f->job->sw, f->job->hw, at);
}

double infer_exposed(const inference *f, const infer_why *w, sc_coll coll,
                     uint32_t axes, const sc_place *at, uint32_t channels,
                     double seconds)
{
    const sc_device *d = infer_slowest(f, w->stage);
    bool value = w->what == VALUE_ACT || w->what == VALUE_ACT_GRAD;
    if (!value || w->once) return seconds * rails(f, w, at) / alone(f, w, at);
    if (f->rules->exchanges_overlap) return seconds;
    if (only_tp(f, axes) && tp_overlaps(f, coll))
        seconds *= f->job->cost->p[SC_P_TP_EXPOSED];
    else if (infer_dispatches(f, axes))
        seconds = dispatch_seconds(f, w->of, at, seconds);
    return overlapped(sc_plan_units(d, channels), seconds, w->hidden_s);
}
