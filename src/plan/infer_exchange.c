/* SPDX-License-Identifier: Apache-2.0 */
/* infer_exchange.c - converts values from one layout to another: collectives
 * between the ranks that infer_groups.c finds. */
#include "plan/infer_groups.h"
#include "plan/internal.h"
#include "plan/prices.h"

#include <math.h>
#include <string.h>

uint32_t infer_device(const inference *f, uint32_t stage)
{
    return infer_own_device(f, f->stage_as ? f->stage_as[stage] : stage);
}

uint32_t infer_own_device(const inference *f, uint32_t stage)
{
    if (f->devices <= 1) return 0;
    return sc_schedule_device(f->schedule, f->devices, f->chunks, stage, 0,
                              f->job->ga);
}

/* Axis of the ring that an attention's keys travel along; SC_NONE. */
static uint32_t ring_axis(const inference *f, uint32_t op)
{
    bool ring = f->cp >= 0 && f->g->op[op].type == SC_NET_ATTENTION &&
                f->job->sw->cp_comm == SC_CP_RING &&
                !f->rules->exchanges_overlap && !f->rules->ring_simple;
    return ring ? (uint32_t)f->cp : SC_NONE;
}

double infer_ring_fraction(const inference *f, uint32_t op, uint32_t tensor,
                           const layout *l)
{
    uint32_t cp = ring_axis(f, op);
    if (cp == SC_NONE || layout_dim_of(l, cp) != LAYOUT_DIMS ||
        layout_dim_of(&f->kept[tensor].grad, cp) == LAYOUT_DIMS)
        return 1;
    return fmin(1, 2.0 / f->mesh.size[cp]);
}

/* Ring attention: parts of keys and values (and of their gradients) travel
 * around the ranks of one sequence while these compute on another part.  With a
 * causal mask each rank has tokens of both ends of the sequence (Brandon et al.
 * 2023), so that all ranks compute for the same time.  In a backward pass keys
 * and gradients travel, half of the kernels hide each, and memory holds two
 * parts of either.  A forward pass holds all parts that have arrived
 * (Transformer Engine's AttnFuncWithCPAndKVP2P). */
static sc_status in_a_ring(inference *f, const infer_why *w, infer_coll *c,
                           double *kernels_s)
{
    bool forward = w->recomputed || w->phase == INFER_FORWARD;
    uint32_t cp = ring_axis(f, w->op);
    c->ring = cp != SC_NONE && c->axes == 1u << cp &&
              (w->what == VALUE_ACT || w->what == VALUE_ACT_GRAD);
    if (!c->ring) return SC_OK;
    sc_price p;
    double n = f->mesh.size[cp];
    if (!forward && c->coll == SC_ALL_GATHER) c->out_bytes *= fmin(1, 2 / n);
    SC_TRY(
        infer_compute(f, w->op, forward ? SC_PASS_FWD : SC_PASS_BWD, 0, 1, &p));
    *kernels_s = p.seconds * (n - 1) / n / (forward ? 1 : 2);
    return SC_OK;
}

/* ---- recording ------------------------------------------------------- */

/* Category of an exchange: exchanges of activations are tensor parallelism,
 * whatever their axes are called, unless they move tokens or the sequence. */
static uint8_t cat_of(const inference *f, const infer_why *w, uint32_t axes)
{
    bool weight = f->g->tensor[w->of].kind == SC_TENSOR_WEIGHT;
    if (axes == 0) return SC_CAT_PP; /* between stages */
    if (weight) return SC_CAT_DP;
    if (infer_dispatches(f, axes)) return SC_CAT_EP;
    return infer_over(axes, f->cp) && !infer_over(axes, f->tp) ? SC_CAT_CP
                                                               : SC_CAT_TP;
}

static uint32_t record(inference *f, const infer_why *w, const infer_coll *c,
                       const struct infer_groups *g,
                       const infer_exchange_price *price)
{
    sc_net_plan *p = f->p;
    sc_net_exchange *grown = sc_grow_raw(f->a, p->exchange, p->n_exchanges,
                                         &f->cap_exchanges, 256, sizeof *grown);
    if (!grown) {
        f->no_memory = true;
        return SC_NONE;
    }
    p->exchange = grown;
    grown[p->n_exchanges] = (sc_net_exchange){
        .path = w->path,
        .tensor = w->tensor,
        .why = c->reason,
        .origin = w->origin,
        .pass = (uint8_t)(w->recomputed ? SC_PASS_BWD : w->pass),
        .coll = (uint8_t)c->coll,
        .p2p = c->coll == SC_SENDRECV && c->axes == 0,
        .grad = w->grad,
        .bucketed = c->bucketed,
        .ring = c->ring,
        .stage = w->stage,
        .axes = c->axes,
        .n_groups = g->n,
        .size = g->size,
        .rank = g->rank,
        .place = &g->place,
        .bytes = c->bytes,
        .seconds = price->seconds,
        .link_s = {price->link_s[0], price->link_s[1]},
        .channels = price->channels};
    return p->n_exchanges++;
}

/* Adds the exchange, its item and the values that it makes. */
static sc_status emit(inference *f, const infer_why *w, const infer_coll *c,
                      struct infer_groups *g, uint32_t to, uint32_t *item)
{
    infer_exchange_price cost = {0};
    bool unpriced =
        w->once && f->job->no_update; /* only the passes are priced */
    if (!g) return sc_error_nomem(f->err);
    infer_coll own = *c;
    infer_why why = *w;
    SC_TRY(in_a_ring(f, w, &own, &why.hidden_s));
    own.bytes *= infer_copies_sent(f, w->op, c->axes, &g->place) *
                 infer_low_bytes(f, w, c);
    if (own.ring) own.reason = sc_sprintf(f->a, "%s, in a ring", c->reason);
    if (!own.reason) return sc_error_nomem(f->err);
    c = &own;
    w = &why;
    if (!unpriced)
        SC_TRY(infer_groups_price(f, g, c->coll, c->ring, c->bytes, &cost));
    uint32_t x = record(f, w, c, g, &cost);
    infer_exposure e = {.seconds = cost.seconds};
    if (c->coll != SC_SENDRECV)
        SC_TRY(infer_exposed(f, w, c, &g->place, cost.channels, &e));
    double shown = e.seconds;
    if (f->job->prices && x != SC_NONE)
        SC_TRY(prices_report_exchange(f->job, &f->p->exchange[x], &g->place, &e,
                                      f->err));
    double part = cost.seconds > 0 ? shown / cost.seconds : 1;
    program_item it = {.pass = (uint8_t)(w->recomputed ? SC_PASS_FWD : w->pass),
                       .recomputed = w->recomputed,
                       .cat = cat_of(f, w, c->axes),
                       .stage = w->stage,
                       .to = to,
                       .op = w->op,
                       .exchange = x,
                       .once = w->once,
                       .seconds = shown,
                       .latency = fmin(cost.latency, shown),
                       .bytes = c->bytes * fmin(part, 1),
                       .n_in = c->n_in};
    it.out =
        infer_value(f, (program_value){.word = {w->path, w->tensor},
                                       .tensor = w->of,
                                       .what = w->what,
                                       .stage = to == SC_NONE ? w->stage : to,
                                       .bytes = c->out_bytes});
    *item = infer_item(f, it, c->in, w->phase);
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

sc_status infer_exchange_at(inference *f, program_item *it, sc_net_exchange *x)
{
    uint32_t device[] = {
        infer_device(f, it->stage),
        infer_device(f, it->to == SC_NONE ? it->stage : it->to)};
    struct infer_groups *g = x->p2p    ? infer_groups_across(f, device, 2)
                             : x->axes ? infer_groups_of(f, device[0], x->axes)
                                       : infer_groups_all(f);
    infer_exchange_price cost;
    if (!g) return sc_error_nomem(f->err);
    SC_TRY(
        infer_groups_price(f, g, (sc_coll)x->coll, x->ring, x->bytes, &cost));
    x->n_groups = g->n;
    x->size = g->size;
    x->rank = g->rank;
    if (cost.seconds == x->seconds) return SC_OK;
    double part = x->seconds > 0 ? it->seconds / x->seconds : 1;
    x->seconds = cost.seconds;
    memcpy(x->link_s, cost.link_s, sizeof x->link_s);
    x->channels = cost.channels;
    it->seconds = part * cost.seconds;
    it->latency = fmin(cost.latency, it->seconds);
    return SC_OK;
}

sc_status infer_collective(inference *f, const infer_why *w,
                           const infer_coll *c, uint32_t *item)
{
    struct infer_groups *g =
        infer_groups_of(f, infer_device(f, w->stage), c->axes);
    return emit(f, w, c, g, SC_NONE, item);
}

/* ---- layouts --------------------------------------------------------- */

static const char *reason(const layout_move *m)
{
    switch (m->coll) {
    case SC_ALL_REDUCE: return "partial to replicated";
    case SC_REDUCE_SCATTER: return "partial to sharded";
    case SC_ALL_GATHER:
        return m->dim == INFER_RR_DIM ? "one owner to replicated"
                                      : "sharded to replicated";
    default:
        return m->dim == INFER_RR_DIM ? "sharded to one owner"
               : m->moved == INFER_RR_DIM
                   ? "one owner to sharded"
                   : "sharded to sharded by another dimension";
    }
}

/* An exchange between all ranks and the one that runs the operator. */
static void one_ended(const inference *f, uint32_t of, const layout *before,
                      const layout *after, const layout_move *m, double bytes,
                      infer_coll *c)
{
    uint32_t dims = (1u << SC_TENSOR_DIMS) - 1;
    double was = infer_fraction(f, of, before, dims);
    double is = infer_fraction(f, of, after, dims);
    c->coll = m->dim == INFER_RR_DIM && m->coll != SC_ALL_GATHER ? SC_REDUCE
                                                                 : SC_BROADCAST;
    c->bytes = bytes * (was > is ? was : is);
    c->out_bytes = bytes * is;
    c->reason = c->coll == SC_REDUCE ? "needed on one rank"
                : m->moved == INFER_RR_DIM && m->dim == INFER_RR_DIM
                    ? "made on one rank, needed on another"
                    : "made on one rank, needed on all";
}

bool infer_sum_add(inference *f, infer_sum *sum, uint32_t value)
{
    uint32_t *grown =
        sc_grow_raw(f->a, sum->value, sum->n, &sum->cap, 2, sizeof *grown);
    if (!grown) {
        f->no_memory = true;
        return false;
    }
    sum->value = grown;
    grown[sum->n++] = value;
    return true;
}

sc_status infer_convert(inference *f, const infer_why *w, const layout *from,
                        const layout *to, double bytes, infer_sum *v)
{
    layout_move m[SC_MESH_AXES];
    layout now = *from;
    uint32_t all = (1u << LAYOUT_DIMS) - 1;
    uint32_t n = infer_moves(f, w->of, from, to, m);
    v->gathered = false;
    for (uint32_t i = 0; i < n; i++) {
        layout before = now;
        layout_move_on(&now, to, &m[i]);
        double after = infer_fraction(f, w->of, &now, all);
        infer_coll c = {.coll = m[i].coll,
                        .axes = m[i].axes,
                        .bytes = m[i].fraction * bytes,
                        .out_bytes = after * bytes,
                        .reason = reason(&m[i]),
                        .in = v->value,
                        .n_in = v->n};
        uint32_t item;
        bool round_robin =
            m[i].dim == INFER_RR_DIM || m[i].moved == INFER_RR_DIM;
        bool placed = round_robin && (from->at || to->at);
        if (placed) one_ended(f, w->of, &before, &now, &m[i], bytes, &c);
        SC_TRY(infer_collective(f, w, &c, &item));
        v->n = 1;
        v->value[0] = f->prog->item[item].out;
        v->gathered = m[i].coll == SC_ALL_GATHER && !placed;
    }
    return SC_OK;
}

/* ---- between stages -------------------------------------------------- */

/* Axes of tensor parallelism along which ranks hold the same value, so that
 * each can send a part (Narayanan et al. 2021, section 4.1). */
static uint32_t sent_in_parts(const inference *f, const layout *l)
{
    int tp = f->tp;
    if (!f->job->sw->p2p_scatter || tp < 0 || f->mesh.size[tp] <= 1) return 0;
    bool whole = layout_dim_of(l, (uint32_t)tp) == LAYOUT_DIMS &&
                 !(l->partial >> tp & 1);
    return whole ? 1u << tp : 0;
}

sc_status infer_send(inference *f, const infer_why *w, uint32_t to,
                     const layout *l, double bytes, infer_sum *v)
{
    uint32_t device[] = {infer_device(f, w->stage), infer_device(f, to)}, item;
    if (device[0] == device[1]) return SC_OK;
    uint32_t axes = sent_in_parts(f, l);
    double part = bytes / infer_groups_size(f, axes);
    infer_coll c = {.coll = SC_SENDRECV,
                    .bytes = part,
                    .out_bytes = part,
                    .reason = "made on another stage",
                    .in = v->value,
                    .n_in = v->n};
    SC_TRY(emit(f, w, &c, infer_groups_across(f, device, 2), to, &item));
    v->n = 1;
    v->value[0] = f->prog->item[item].out;
    if (!axes) return SC_OK;
    infer_why there = *w;
    there.stage = to;
    infer_coll gather = {.coll = SC_ALL_GATHER,
                         .axes = axes,
                         .bytes = bytes,
                         .out_bytes = bytes,
                         .reason = "sent in shards",
                         .in = v->value,
                         .n_in = 1};
    SC_TRY(infer_collective(f, &there, &gather, &item));
    v->value[0] = f->prog->item[item].out;
    return SC_OK;
}

/* Adds the `n` values that an item makes on as many stages, and returns the
 * first. */
static sc_status on_stages(inference *f, uint32_t item, const uint32_t *stage,
                           uint32_t n, uint32_t *out)
{
    if (f->no_memory) return sc_error_nomem(f->err);
    program_item *it = &f->prog->item[item];
    f->prog->value[it->out].stage = stage[0];
    for (uint32_t i = 1; i < n; i++) {
        program_value v = f->prog->value[it->out];
        v.stage = stage[i];
        (void)infer_value(f, v);
    }
    it->n_more = n - 1;
    *out = it->out;
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

sc_status infer_over_stages(inference *f, const infer_why *w, sc_coll coll,
                            double bytes, const infer_sum *in,
                            const uint32_t *stage, uint32_t n, uint32_t *out)
{
    uint32_t item;
    infer_coll c = {.coll = coll,
                    .bytes = bytes,
                    .out_bytes = bytes,
                    .reason = coll == SC_BROADCAST
                                  ? "read on all stages"
                                  : "partial sums on all stages",
                    .in = in->value,
                    .n_in = in->n};
    SC_TRY(emit(f, w, &c, infer_groups_all(f), SC_NONE, &item));
    return on_stages(f, item, stage, n, out);
}

/* Stages on one device accumulate into one gradient. */
static uint32_t sum_here(inference *f, const infer_why *w, const infer_coll *c)
{
    program_item it = infer_kernels(w->op, w->stage, w->pass);
    it.once = w->once;
    it.n_in = c->n_in;
    it.out = infer_value(f, (program_value){.word = {w->path, w->tensor},
                                            .tensor = w->of,
                                            .what = w->what,
                                            .stage = w->stage,
                                            .bytes = c->out_bytes});
    return infer_item(f, it, c->in, w->phase);
}

sc_status infer_tie(inference *f, const infer_why *w, const uint32_t *stage,
                    uint32_t n, double bytes, const uint32_t *in, uint32_t n_in,
                    uint32_t *out)
{
    uint32_t *device = SC_NEW_N(f->a, uint32_t, n), item;
    if (!device) return sc_error_nomem(f->err);
    bool apart = false;
    for (uint32_t i = 0; i < n; i++) {
        device[i] = infer_device(f, stage[i]);
        /* DualPipe: two stages whose homes mirror each other are both on
         * both devices. */
        if (f->schedule == SC_SCH_DUALPIPE && f->devices > 1 &&
            f->devices - 1 - device[i] < device[i])
            device[i] = f->devices - 1 - device[i];
        apart = apart || device[i] != device[0];
    }
    infer_coll c = {.coll = SC_ALL_REDUCE,
                    .bytes = bytes,
                    .out_bytes = bytes,
                    .reason = "stages share the weight",
                    .in = in,
                    .n_in = n_in};
    if (apart)
        SC_TRY(emit(f, w, &c, infer_groups_across(f, device, n), stage[n - 1],
                    &item));
    else
        item = sum_here(f, w, &c);
    return on_stages(f, item, stage, n, out);
}
