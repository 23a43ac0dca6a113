/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_exposed.c - the part of an activation exchange that kernels do not
 * hide.  Programs compute products in parts during the exchange of other parts,
 * move tokens of one micro-batch while another computes, gather inputs of the
 * product for weights during the product for inputs, and sum gradients of
 * inputs during the product for weights.
 */
#include "plan/infer.h"
#include "plan/internal.h"
#include "plan/overlap.h"

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

/* ---- tensor parallelism -------------------------------------------------- */

/* The products whose operand or result an exchange over tp moves: those that
 * read the tensor, or the one that makes it. */
typedef struct products {
    uint32_t n;
    const uint32_t *op; /* [n] */
    uint32_t one;
} products;

static bool is_product(const inference *f, const infer_why *w, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    return o->type == SC_NET_LINEAR && !o->topk && o->n_weight > 0 &&
           f->node[op].stage == w->stage && !f->node[op].rr_rule;
}

/* An all-gather is before the products that need the value, any other exchange
 * is after those that make it.  Gradients move against the forward pass. */
static products products_of(const inference *f, const infer_why *w,
                            bool gathers)
{
    const infer_kept *kept = &f->kept[w->of];
    if (gathers == (w->what == VALUE_ACT))
        return (products){.n = kept->n_readers, .op = kept->reader};
    return (products){.n = 1, .one = f->g->tensor[w->of].op};
}

static uint32_t product_at(const products *p, uint32_t i)
{
    return p->op ? p->op[i] : p->one;
}

/* Two neighbouring parts run at once, on two streams, so that one fills the
 * SMs that the last wave of the other leaves (PyTorch's
 * _fused_all_gather_matmul, Transformer Engine's userbuffers). */
enum { AT_ONCE = 2 };

/* Adds the prices of one product, as a whole and in parts. */
static sc_status add_parts(inference *f, const infer_why *w, uint32_t op,
                           overlap_parts *x)
{
    sc_price whole, part;
    uint32_t kernels = (x->n + AT_ONCE - 1) / AT_ONCE;
    /* A table has no times of parts, nor of one of the backward products. */
    if (f->job->table) return SC_OK;
    SC_TRY(infer_compute(f, op, w->pass, 0, 1, &whole));
    SC_TRY(infer_compute_chunk(f, op, w->pass, kernels, &part));
    x->product_s += whole.seconds;
    x->in_parts_s += fmax(whole.seconds, kernels * part.seconds);
    return SC_OK;
}

/* Ranks that scatter in parts send these to their owners, where another kernel
 * adds them up (PyTorch's _pipelined_produce_and_all2all). */
static double added_up(const inference *f, const infer_why *w, double bytes)
{
    const sc_kernel sum = {.kind = SC_K_MEMORY,
                           .name = "sum of parts",
                           .launches = 1,
                           .bytes = bytes * (1 + 1.0 / f->mesh.size[f->tp])};
    return sc_cost_kernel(f->job->cost, infer_slowest(f, w->stage), &sum)
        .seconds;
}

/* The exchange in parts, each during the product of another part. */
static sc_status in_parts(inference *f, const infer_why *w, const infer_coll *c,
                          double taken, double *seconds)
{
    bool gathers = c->coll == SC_ALL_GATHER;
    double all = *seconds;
    uint32_t pieces = gathers ? 0 : (uint32_t)f->job->sw->tp_pieces;
    overlap_parts x = {.n = pieces ? pieces : f->mesh.size[f->tp],
                       .exchange_s = *seconds,
                       .taken = pieces ? taken : 0};
    products p = products_of(f, w, gathers);
    for (uint32_t i = 0; i < p.n; i++) {
        uint32_t op = product_at(&p, i);
        if (is_product(f, w, op) && infer_in_block(f->g->op[op].path))
            SC_TRY(add_parts(f, w, op, &x));
    }
    if (!(x.product_s > 0)) return SC_OK;
    *seconds = pieces ? overlap_pipeline(&x) : overlap_ring(&x);
    if (!gathers && !pieces)
        *seconds = fmin(all, *seconds + added_up(f, w, c->bytes));
    return SC_OK;
}

/* Seconds of the products for weights that run while gradients of their inputs
 * are summed: none for weights that do not learn. */
static sc_status weight_products(inference *f, const infer_why *w,
                                 double *seconds)
{
    const infer_kept *kept = &f->kept[w->of];
    *seconds = 0;
    for (uint32_t i = 0; i < kept->n_readers; i++) {
        uint32_t op = kept->reader[i];
        sc_price p;
        if (!is_product(f, w, op) || f->job->table ||
            !f->g->tensor[f->g->op[op].weight[0].tensor].learns)
            continue;
        SC_TRY(infer_compute(f, op, SC_PASS_WGRAD, 0, 1, &p));
        *seconds += p.seconds;
    }
    return SC_OK;
}

/* What of an exchange over tp is exposed: `taken` of the SMs are its own where
 * it overlaps kernels.  The gradient of an input is a sum over several
 * products in programs without `tp_async`, so its scatter follows no product
 * (micro_pipeline_tp.py of PyTorch, collective matmul of XLA). */
static sc_status over_tp(inference *f, const infer_why *w, const infer_coll *c,
                         double taken, double *seconds)
{
    const sc_software *sw = f->job->sw;
    bool parts = f->s->tp_overlap >= 0 ? f->s->tp_overlap : sw->tp_overlap;
    bool gathers = c->coll == SC_ALL_GATHER && w->pass != SC_PASS_WGRAD;
    bool scatters = c->coll == SC_REDUCE_SCATTER;
    bool sums =
        w->what == VALUE_ACT_GRAD && (scatters || c->coll == SC_ALL_REDUCE);
    double hidden_s = 0;
    if (sw->tp_async && w->hidden_s > 0)
        hidden_s = w->hidden_s;
    else if (sw->tp_async && sums)
        SC_TRY(weight_products(f, w, &hidden_s));
    else if (parts && !sums && (gathers || scatters))
        return in_parts(f, w, c, taken, seconds);
    *seconds = overlap_kernels(*seconds, hidden_s, taken);
    return SC_OK;
}

/* ---- experts ------------------------------------------------------------- */

static double dispatch_seconds(const inference *f, uint32_t tensor,
                               const sc_place *at, double seconds)
{
    const sc_tensor *t = &f->g->tensor[tensor];
    double width = (double)t->dim[t->n_dim - 1].extent;
    return seconds * sc_cost_dispatch_factor(f->job->cost, at,
                                             f->job->sw->dedup_dispatch, width);
}

/* Tokens move four times in a layer and micro-batch.  A forward pass runs
 * together with a backward pass of another micro-batch (Megatron-Core's
 * combined_1f1b.py), so a quarter of both passes' kernels hides each. */
static sc_status layer_kernels(inference *f, uint32_t op, double *seconds)
{
    uint32_t first = op, end = op + 1;
    while (first > 0 && f->unit[first - 1] == f->unit[op]) first--;
    while (end < f->g->n_ops && f->unit[end] == f->unit[op]) end++;
    *seconds = 0;
    for (uint32_t i = first; i < end; i++) {
        const sc_net_op *o = &f->g->op[i];
        sc_price p[3] = {0};
        if (f->node[i].rr_rule) continue;
        SC_TRY(infer_compute(f, i, SC_PASS_FWD, 0, 1, &p[0]));
        if (f->kept[o->out.tensor].learns)
            SC_TRY(infer_compute(f, i, SC_PASS_DGRAD, 0, 1, &p[1]));
        if (o->n_weight > 0 && f->g->tensor[o->weight[0].tensor].learns)
            SC_TRY(infer_compute(f, i, SC_PASS_WGRAD, 0, 1, &p[2]));
        *seconds += p[0].seconds + p[1].seconds + p[2].seconds;
    }
    *seconds /= 4;
    return SC_OK;
}

static sc_status over_ep(inference *f, const infer_why *w, const sc_place *at,
                         double taken, double *seconds)
{
    double hidden_s = w->hidden_s;
    *seconds = dispatch_seconds(f, w->of, at, *seconds);
    bool overlaps = f->job->sw->ep_overlap && !f->job->forward_only;
    if (overlaps && !f->job->table) SC_TRY(layer_kernels(f, w->op, &hidden_s));
    *seconds = overlap_kernels(*seconds, hidden_s, taken);
    return SC_OK;
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

/* ---- all exchanges ------------------------------------------------------- */

static double rails(const inference *f, const infer_why *w, const sc_place *at)
{
    bool weights = w->what == VALUE_WEIGHT_USED || w->grad;
    if (f->s->zero < 3 || !weights) return 1;
    return plan_rails(f->job->sw, f->job->hw, at);
}

/* What hides the rest of an exchange, for `--why`. */
static const char *hidden_by(const inference *f, const infer_why *w,
                             const infer_coll *c)
{
    if (c->ring) return "attention to other parts";
    if (w->hidden_s > 0) return "the product for inputs";
    if (infer_dispatches(f, c->axes))
        return f->job->sw->ep_overlap ? "kernels of another micro-batch" : NULL;
    bool sums = w->what == VALUE_ACT_GRAD && c->coll != SC_ALL_GATHER;
    return sums ? "the product for weights" : "products of other parts";
}

sc_status infer_exposed(inference *f, const infer_why *w, const infer_coll *c,
                        const sc_place *at, uint32_t channels,
                        infer_exposure *out)
{
    double *seconds = &out->seconds;
    out->hidden_by = hidden_by(f, w, c);
    double taken = sc_plan_units(infer_slowest(f, w->stage), channels);
    bool value = w->what == VALUE_ACT || w->what == VALUE_ACT_GRAD;
    if (!value || w->once) {
        *seconds *= rails(f, w, at);
        return SC_OK;
    }
    if (f->rules->exchanges_overlap) return SC_OK;
    if (only_tp(f, c->axes)) return over_tp(f, w, c, taken, seconds);
    if (infer_dispatches(f, c->axes)) return over_ep(f, w, at, taken, seconds);
    *seconds = overlap_kernels(*seconds, w->hidden_s, taken);
    return SC_OK;
}
