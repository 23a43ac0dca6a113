/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_costs.c - costs that occur once per step: gradient exchange, tied
 * weights, optimizer, gathers of updated weights, the fixed part.
 */
#include "cost/cost_op.h"
#include "net/net.h"
#include "plan/plan_host.h"
#include "plan/plan_segment.h"

#include <math.h>
#include <string.h>

uint32_t sc_plan_stage_layers(const sc_plan *p, uint32_t v)
{
    return p->stage[v].blocks + p->stage[v].embed + p->stage[v].head;
}

uint32_t sc_plan_stage_entry(const sc_plan *p, uint32_t v, uint32_t i)
{
    const uint32_t *n = p->stage[v].n, layers = p->run.model->n_layers;
    uint32_t all = sc_run_segments(&p->run), l = 0;
    for (;; l++) {
        if (i < n[l]) return l;
        i -= n[l];
        if (all == layers) continue;
        if (i < n[layers + l]) return layers + l;
        i -= n[layers + l];
    }
}

double sc_plan_device_sum(const sc_plan *p, const sc_segment *segments,
                          uint32_t dev, sc_segment_property of)
{
    const sc_segment *own = sc_plan_segments(p, segments, dev);
    double sum = 0;
    for (uint32_t c = 0; c < sc_run_chunks(&p->run); c++) {
        const struct sc_stage *st = &p->stage[sc_run_stage(&p->run, dev, c)];
        for (uint32_t l = 0; l < sc_run_segments(&p->run); l++)
            if (st->n[l]) sum += st->n[l] * of(&own[l]);
    }
    return sum;
}

sc_status sc_segments_price(const sc_plan *p, sc_arena *a, sc_segment **out,
                            sc_err *err)
{
    uint32_t n = sc_run_segments(&p->run), kinds = p->n_kinds ? p->n_kinds : 1;
    sc_segment *b = SC_NEW_N(a, sc_segment, (size_t)n * kinds);
    if (!b) return sc_error_nomem(err);
    for (uint32_t k = 0; k < kinds; k++) {
        sc_plan own = *p;
        if (kinds > 1) own.run.hw = p->kind_hw[k];
        SC_TRY(sc_segment_passes(&own.run, NULL, a, &b[(size_t)k * n], err));
        for (uint32_t l = 0; l < n; l++)
            SC_TRY(sc_segment_weights(&own, a, &b[k * n + l], err));
    }
    *out = b;
    return SC_OK;
}

double sc_plan_overlap(const sc_plan *p, const sc_segment *segments)
{
    const sc_model *model = p->run.model;
    uint32_t kinds = p->n_kinds ? p->n_kinds : 1, n = sc_run_segments(&p->run);
    sc_units mean = {0};
    for (uint32_t i = 0; i < kinds * model->n_layers; i++) {
        uint32_t l = i % model->n_layers;
        const sc_segment *b = &segments[i / model->n_layers * n + l];
        const sc_exchange *of[] = {&b->grad, &b->once};
        for (uint32_t k = 0; k < of[0]->n + of[1]->n; k++) {
            const sc_moved *m =
                k < of[0]->n ? &of[0]->moved[k] : &of[1]->moved[k - of[0]->n];
            sc_units_add(&mean, model->layer[l].repeat * m->seconds,
                         m->channels);
        }
    }
    return sc_units_mean(&mean, p->run.hw->device);
}

/* The part of sc_plan_slow_factor() that settings of the host cause. */
static double host_factor(const sc_run *r)
{
    return r->numa_unbound ? 1 + r->cost->p[SC_P_NUMA] : 1;
}

bool plan_flattens(const sc_software *sw)
{
    return sw->flat_bytes > 0 && !sw->grad_overlap;
}

double plan_rails(const sc_software *sw, const sc_hw *hw, const sc_place *at)
{
    double used = (double)sw->zero3_rails;
    double all = hw->n_dims ? hw->dim[hw->n_dims - 1].ports : 0;
    return used > 0 && at->nodes > 1 ? fmax(1, all / used) : 1;
}

double plan_straggler(const sc_hw *hw, const sc_cost *cost)
{
    double nodes = hw->n_devices / 8.0;
    return 1 + (nodes > 1 ? cost->p[SC_P_STRAGGLER] * log2(nodes) : 0);
}

double sc_plan_slow_factor(const sc_run *r)
{
    return plan_straggler(r->hw, r->cost) * host_factor(r);
}

static double pack_seconds(const sc_segment *b)
{
    return b->pack_s;
}

static double optim_params(const sc_segment *b)
{
    return b->optim_kept;
}

static double low_params(const sc_segment *b)
{
    return b->low_kept;
}

/* Bytes that the update and the casts of updated weights move. */
static double updated_bytes(const sc_plan *p, const sc_segment *segments,
                            uint32_t device)
{
    const sc_run *r = &p->run;
    double cast = plan_low_cast(r->sw, r->recipe, r->hw->device);
    if (r->optim_tier >= SC_TIER_CPU) cast = 0;
    return r->sw->update_bytes *
               sc_plan_device_sum(p, segments, device, optim_params) +
           cast * sc_plan_device_sum(p, segments, device, low_params);
}

typedef enum moved { M_GRAD, M_ONCE, M_UPDATE } moved;

static const sc_exchange *moved_of(const sc_segment *b, moved what)
{
    return what == M_GRAD ? &b->grad : what == M_ONCE ? &b->once : &b->update;
}

/* Adds up the exchanges of all layers of a device. */
static void exchange_sum(const sc_plan *p, const sc_segment *segments,
                         uint32_t dev, moved what, sc_exchange *all)
{
    const sc_run *r = &p->run;
    const sc_segment *own = sc_plan_segments(p, segments, dev);
    for (uint32_t c = 0; c < sc_run_chunks(r); c++) {
        const struct sc_stage *stage = &p->stage[sc_run_stage(r, dev, c)];
        for (uint32_t l = 0; l < sc_run_segments(r); l++) {
            const sc_exchange *x = moved_of(&own[l], what);
            for (uint32_t i = 0; i < x->n; i++)
                plan_exchange_add(all, x->moved[i].axes, x->moved[i].coll,
                                  stage->n[l] * x->moved[i].bytes);
        }
    }
}

/* Seconds to exchange all gradients (or updated weights) of a device at once
 * without overlap; 0 if the exchange is overlapped or not needed. */
static sc_status exchange(const sc_plan *p, const sc_segment *segments,
                          uint32_t dev, moved what, double *seconds,
                          sc_err *err)
{
    const sc_run *r = &p->run;
    sc_exchange all = {0};
    *seconds = 0;
    bool update = what == M_UPDATE;
    /* With ZeRO-3 only weights that a rule leaves unsharded are gathered after
     * the update; no forward pass overlaps these gathers. */
    bool overlaps = update ? r->sw->param_overlap && !sc_run_shards(r)
                           : r->sw->grad_overlap || sc_run_shards(r);
    if (overlaps || r->forward_only) return SC_OK;
    exchange_sum(p, segments, dev, what, &all);
    SC_TRY(plan_exchange_price(p, &all, err));
    for (uint32_t i = 0; i < all.n; i++) *seconds += all.moved[i].seconds;
    if (what == M_GRAD) *seconds *= sc_run_reductions(r);
    return SC_OK;
}

/* The first and the last stage sum the gradients of a shared embedding. */
static sc_status tied(const sc_plan *p, const sc_segment *segments,
                      double *seconds, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP];
    *seconds = 0;
    bool frozen = segments[0].weight[0].frozen;
    if (!plan_ends_apart(r) || !r->model->t.tied || r->forward_only || frozen)
        return SC_OK;
    const uint32_t ends[] = {0, pp - 1};
    sc_place at = sc_hw_place_axis(r->hw, pp, p->stride[SC_AX_PP], 2, ends);
    double v = segments[0].weight[0].elements * r->sw->reduce_bytes;
    sc_coll_price cp;
    SC_TRY(sc_cost_coll_kept(p->prices, r->cost, r->hw, SC_ALL_REDUCE, v, &at,
                             &cp, err));
    *seconds = cp.seconds;
    return SC_OK;
}

/* Bytes of an activation that one rank sends; `*total` is all of it. */
static double part_sent(const sc_run *r, double *total, bool *split)
{
    uint32_t tp = r->size[SC_AX_TP];
    *total = sc_precision_bytes(SC_BF16) * (double)r->mbs * (double)r->seq *
             (double)r->model->t.hidden / r->size[SC_AX_CP];
    *split = tp > 1 && (r->sw->p2p_scatter || r->sp);
    return *split ? *total / tp : *total;
}

double sc_run_send_bytes(const sc_run *r)
{
    double total;
    bool split;
    return r->size[SC_AX_PP] == 1 ? 0 : part_sent(r, &total, &split);
}

bool sc_run_gathers_sent(const sc_run *r)
{
    return r->size[SC_AX_TP] > 1 && r->sw->p2p_scatter && !r->sp;
}

/* Price of a transfer to the slower of both neighbours of a pipeline device,
 * while all replicas send.  Chunks are also sent from the last to the first. */
static sc_status send_price(const sc_plan *p, uint32_t dev, double bytes,
                            sc_coll_price *out, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP];
    bool round =
        sc_run_chunks(r) > 1 && sc_run_placement(r) == SC_SCH_INTERLEAVED;
    *out = (sc_coll_price){0};
    for (int way = -1; way < 2; way += 2) {
        bool end = way < 0 ? dev == 0 : dev + 1 == pp;
        if (end && !round) continue;
        uint32_t to = (uint32_t)((int)(dev + pp) + way) % pp;
        uint32_t at[] = {to < dev ? to : dev, to < dev ? dev : to};
        sc_place place =
            sc_hw_place_axis(r->hw, pp, p->stride[SC_AX_PP], 2, at);
        sc_coll_price one;
        SC_TRY(sc_cost_coll_kept(p->prices, r->cost, r->hw, SC_SENDRECV, bytes,
                                 &place, &one, err));
        one.seconds =
            fmax(one.seconds, bytes * sc_net_last_transfer(r->hw, &place));
        one.seconds += plan_transfer_wait(r->sw, r->cost, r->hw,
                                          r->size[SC_AX_TP], &place);
        if (one.seconds > out->seconds) *out = one;
    }
    return SC_OK;
}

/* Transfer of one activation between neighbouring stages.  If it is split over
 * TP ranks, the receivers gather it before their pass. */
static sc_status transfer(const sc_plan *p, uint32_t dev, sc_step_costs *c,
                          sc_err *err)
{
    const sc_run *r = &p->run;
    double total;
    bool split;
    if (r->size[SC_AX_PP] == 1) return SC_OK;
    sc_coll_price cp;
    double bytes = part_sent(r, &total, &split);
    SC_TRY(send_price(p, dev, bytes, &cp, err));
    c->send = sc_contender_of(cp.seconds, 0, cp.link_s, bytes);
    /* Schedules with split passes overlap transfers as those with chunks do. */
    bool chunks = sc_run_chunks(r) > 1 || sc_run_splits(r);
    /* `overlap: {p2p: true}` of a strategy allows overlap in any schedule. */
    if (r->strategy && r->strategy->p2p_overlap > 0) chunks = true;
    c->send_blocks = !(r->sw->p2p_overlap && chunks);
    if (!sc_run_gathers_sent(r)) return SC_OK;
    SC_TRY(sc_cost_coll_kept(p->prices, r->cost, r->hw, SC_ALL_GATHER, total,
                             &p->place[1u << SC_AX_TP], &cp, err));
    c->join = sc_contender_of(cp.seconds, 0, cp.link_s, total);
    return SC_OK;
}

/* DualPipe: the sum of gradients with the device that holds the other copy of
 * the stages. */
static sc_status mirror(const sc_plan *p, const sc_segment *segments,
                        uint32_t dev, sc_step_costs *c, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP], other = pp - 1 - dev;
    if (sc_run_placement(r) != SC_SCH_DUALPIPE || r->forward_only) return SC_OK;
    if (other == dev) return SC_OK;
    const uint32_t both[] = {other < dev ? other : dev,
                             other < dev ? dev : other};
    sc_place at = sc_hw_place_axis(r->hw, pp, p->stride[SC_AX_PP], 2, both);
    sc_coll_price cp;
    double bytes = r->sw->reduce_bytes *
                   sc_plan_device_sum(p, segments, dev, optim_params);
    SC_TRY(
        sc_cost_coll(r->cost, r->hw, SC_ALL_REDUCE, bytes, &at, -1, &cp, err));
    c->dualpipe_sum_s = cp.seconds;
    return SC_OK;
}

bool sc_plan_stages_alike(const sc_plan *p, uint32_t v, uint32_t w)
{
    const struct sc_stage *x = &p->stage[v], *y = &p->stage[w];
    return x->embed == y->embed && x->head == y->head &&
           x->blocks == y->blocks &&
           memcmp(x->n, y->n, sc_run_segments(&p->run) * sizeof *x->n) == 0;
}

bool sc_plan_devices_alike(const sc_plan *p, uint32_t x, uint32_t y)
{
    if (p->kind && p->kind[x] != p->kind[y]) return false;
    for (uint32_t c = 0; c < sc_run_chunks(&p->run); c++)
        if (!sc_plan_stages_alike(p, sc_run_stage(&p->run, x, c),
                                  sc_run_stage(&p->run, y, c)))
            return false;
    return true;
}

/* Costs that depend only on the layers of a device. */
static sc_status layer_costs(const sc_plan *p, const sc_segment *segments,
                             uint32_t device, sc_step_costs *out, sc_err *err)
{
    const sc_run *r = &p->run;
    sc_step_costs c = {0};
    double once;
    SC_TRY(tied(p, segments, &c.tied_s, err));
    SC_TRY(exchange(p, segments, device, M_GRAD, &c.grad_s, err));
    SC_TRY(exchange(p, segments, device, M_ONCE, &once, err));
    SC_TRY(exchange(p, segments, device, M_UPDATE, &c.update_s, err));
    c.grad_s += once;
    if (!r->forward_only && !r->sw->grad_overlap && !sc_run_shards(r))
        c.pack_s = sc_run_reductions(r) *
                   sc_plan_device_sum(p, segments, device, pack_seconds);
    if (!r->forward_only) {
        /* One kernel updates lists of weights (graph_update.c). */
        sc_op_kernels adam = {
            .n = 1,
            .joined = {true},
            .k = {{.kind = SC_K_MEMORY,
                   .bytes = updated_bytes(p, segments, device)}}};
        c.optimizer_s = sc_op_price(r->cost, r->hw->device, &adam).seconds;
        double states = r->sw->optim_bytes *
                        sc_plan_device_sum(p, segments, device, optim_params);
        if (r->optim_tier == SC_TIER_EXPANDED && states > 0)
            c.optimizer_s =
                plan_expanded_update(r->hw, c.optimizer_s, 2 * states);
        c.fixed_s = sc_plan_step_fixed(r);
    }
    plan_host_costs(p, segments, device, &c);
    *out = c;
    return SC_OK;
}

sc_status sc_plan_step_costs(const sc_plan *p, const sc_segment *segments,
                             uint32_t device, const sc_step_costs *alike,
                             sc_step_costs *out, sc_err *err)
{
    sc_plan own = *p;
    sc_step_costs c;
    own.run.hw = sc_plan_hw(p, device);
    if (alike)
        c = *alike;
    else
        SC_TRY(layer_costs(&own, segments, device, &c, err));
    SC_TRY(transfer(&own, device, &c, err));
    SC_TRY(mirror(&own, segments, device, &c, err));
    *out = c;
    return SC_OK;
}
