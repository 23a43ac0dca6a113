/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish.c - what happens once per step: gradient exchange, tied weights,
 * optimizer, gathers of updated weights, the fixed part.
 */
#include "plan/block.h"
#include "plan/host.h"
#include "plan/lower.h"

#include <math.h>
#include <string.h>

uint32_t sc_plan_stage_layers(const sc_plan *p, uint32_t v)
{
    return p->stage[v].blocks + p->stage[v].embed + p->stage[v].head;
}

uint32_t sc_plan_stage_entry(const sc_plan *p, uint32_t v, uint32_t i)
{
    uint32_t l = 0;
    while (i >= p->stage[v].n[l]) i -= p->stage[v].n[l++];
    return l;
}

double sc_plan_device_sum(const sc_plan *p, const sc_block *blocks,
                          uint32_t dev, sc_block_property of)
{
    const sc_block *own = sc_plan_blocks(p, blocks, dev);
    double sum = 0;
    for (uint32_t c = 0; c < sc_run_chunks(&p->run); c++) {
        const struct sc_stage *st = &p->stage[sc_run_stage(&p->run, dev, c)];
        for (uint32_t l = 0; l < p->run.model->n_layers; l++)
            if (st->n[l]) sum += st->n[l] * of(&own[l]);
    }
    return sum;
}

sc_status sc_blocks_price(const sc_plan *p, sc_arena *a, sc_block **out,
                          sc_err *err)
{
    uint32_t n = p->run.model->n_layers, kinds = p->n_kinds ? p->n_kinds : 1;
    sc_block *b = SC_NEW_N(a, sc_block, (size_t)n * kinds);
    if (!b) return sc_error_nomem(err);
    for (uint32_t k = 0; k < kinds; k++) {
        sc_plan own = *p;
        if (kinds > 1) own.run.hw = p->kind_hw[k];
        for (uint32_t l = 0; l < n; l++)
            SC_TRY(sc_block_price(&own, l, a, &b[k * n + l], err));
    }
    *out = b;
    return SC_OK;
}

double plan_pass_cat(const sc_block *b, sc_pass pass, uint32_t cat)
{
    switch (pass) {
    case SC_FWD: return b->fwd_cat[cat];
    case SC_BWD: return b->bwd_cat[cat];
    case SC_BWD_X: return b->bwd_cat[cat] - b->w_cat[cat];
    case SC_BWD_W: break;
    }
    return b->w_cat[cat];
}

void plan_stage_cats(const sc_plan *p, const sc_block *blocks, uint32_t v,
                     sc_pass pass, double cat[SC_N_CATS])
{
    for (uint32_t c = 0; c < SC_N_CATS; c++) {
        cat[c] = 0;
        for (uint32_t l = 0; l < p->run.model->n_layers; l++)
            cat[c] += p->stage[v].n[l] * plan_pass_cat(&blocks[l], pass, c);
    }
}

double sc_plan_overlap(const sc_plan *p, const sc_block *blocks)
{
    double share = 0;
    uint32_t kinds = p->n_kinds ? p->n_kinds : 1;
    for (uint32_t l = 0; l < kinds * p->run.model->n_layers; l++) {
        const sc_exchange *x[] = {&blocks[l].gather, &blocks[l].grad,
                                  &blocks[l].update};
        for (size_t i = 0; i < SC_COUNT(x); i++)
            share =
                fmax(share, sc_plan_units(p->run.hw->device, x[i]->channels));
    }
    return share;
}

/* Of sc_plan_slow_factor(), what slows a rank by itself. */
static double host_factor(const sc_run *r)
{
    return r->numa_unbound ? 1 + r->cost->p[SC_P_NUMA] : 1;
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

static double pack_seconds(const sc_block *b)
{
    return b->pack_s;
}

static double optim_params(const sc_block *b)
{
    return b->optim_kept;
}

/* Adds `of` times the exchange `x`. */
static void exchange_add(sc_exchange *sum, const sc_exchange *x, double of)
{
    for (uint32_t m = 0; m < 1u << SC_N_AX; m++) {
        sum->bytes[m] += of * x->bytes[m];
        if (x->bytes[m] > 0) sum->coll[m] = x->coll[m];
    }
}

/* All of a device's gradients (or updated weights), once. */
static void exchange_sum(const sc_plan *p, const sc_block *blocks, uint32_t dev,
                         bool update, sc_exchange *out)
{
    const sc_run *r = &p->run;
    const sc_block *own = sc_plan_blocks(p, blocks, dev);
    sc_exchange all = {{0}, {0}, 0};
    for (uint32_t c = 0; c < sc_run_chunks(r); c++)
        for (uint32_t l = 0; l < r->model->n_layers; l++)
            exchange_add(&all, update ? &own[l].update : &own[l].grad,
                         p->stage[sc_run_stage(r, dev, c)].n[l]);
    *out = all;
}

/* One exchange of all of a device's gradients (or updated weights) at once,
 * nothing beside it; 0 where it is overlapped or not needed. */
static sc_status exchange(const sc_plan *p, const sc_block *blocks,
                          uint32_t dev, bool update, double *seconds,
                          double *bytes, sc_err *err)
{
    const sc_run *r = &p->run;
    *seconds = *bytes = 0;
    bool beside = update ? r->sw->param_overlap : r->sw->grad_overlap;
    if (beside || r->zero >= 3 || r->forward_only) return SC_OK;
    sc_exchange all;
    exchange_sum(p, blocks, dev, update, &all);
    SC_TRY(plan_exchange_price(p, &all, bytes, seconds, err));
    if (!update) {
        *seconds *= sc_run_reductions(r);
        *bytes *= sc_run_reductions(r);
    }
    const sc_place *at =
        &p->place[1u << SC_AX_DP | 1u << SC_AX_EP | 1u << SC_AX_REP];
    bool mixed = at->nodes > 1 && at->m > 1;
    *seconds /= r->cost->p[mixed ? SC_P_GRAD_MIXED : SC_P_GRAD_NET];
    return SC_OK;
}

/* Gradient of a rank's part of the embedding. */
static double table_bytes(const sc_plan *p)
{
    const sc_run *r = &p->run;
    const sc_placed *table = &p->placed[0][0];
    sc_layout l = plan_tensor(table, table->op->w, false);
    double v = (double)r->model->t.vocab * (double)r->model->t.hidden *
               r->sw->reduce_bytes;
    for (uint32_t d = 0; d < SC_N_DIMNAMES; d++)
        for (sc_axlist list = l.shard[d]; list; list >>= 4)
            v /= r->size[(list & 15) - 1];
    return v;
}

/* The first and the last stage sum the gradients of a shared embedding. */
static sc_status tied(const sc_plan *p, double *seconds, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP];
    *seconds = 0;
    bool frozen = r->model->layer[0].op[0].frozen;
    if (!plan_ends_apart(r) || !r->model->t.tied || r->forward_only || frozen)
        return SC_OK;
    const uint32_t ends[] = {0, pp - 1};
    sc_place at = sc_hw_place_axis(r->hw, pp, p->stride[SC_AX_PP], 2, ends);
    double v = table_bytes(p);
    sc_coll_price cp;
    SC_TRY(sc_cost_coll(r->cost, r->hw, SC_ALL_REDUCE, v, &at, -1, &cp, err));
    *seconds = cp.seconds;
    return SC_OK;
}

/* A rank's part of an activation; *whole is all of it. */
static double part_sent(const sc_run *r, double *whole, bool *split)
{
    uint32_t tp = r->size[SC_AX_TP];
    *whole = sc_precision_bytes(SC_BF16) * (double)r->mbs * (double)r->seq *
             (double)r->model->t.hidden / r->size[SC_AX_CP];
    *split = tp > 1 && (r->sw->p2p_scatter || r->sp);
    return *split ? *whole / tp : *whole;
}

double sc_run_send_bytes(const sc_run *r)
{
    double whole;
    bool split;
    return r->size[SC_AX_PP] == 1 ? 0 : part_sent(r, &whole, &split);
}

/* To the neighbours of a pipeline device, which all replicas send to at once:
 * the slower of both ways.  Chunks go round from the last device to the first.
 */
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
        SC_TRY(sc_cost_coll(r->cost, r->hw, SC_SENDRECV, bytes, &place, -1,
                            &one, err));
        if (one.seconds > out->seconds) *out = one;
    }
    return SC_OK;
}

/* One activation between neighbouring stages; split over TP ranks it is
 * gathered again inside the node. */
static sc_status transfer(const sc_plan *p, uint32_t dev, sc_step_costs *c,
                          sc_err *err)
{
    const sc_run *r = &p->run;
    double whole;
    bool split;
    if (r->size[SC_AX_PP] == 1) return SC_OK;
    sc_coll_price cp;
    c->send_bytes = part_sent(r, &whole, &split);
    SC_TRY(send_price(p, dev, c->send_bytes, &cp, err));
    c->send_s = cp.seconds;
    /* split passes leave no time to wait */
    bool chunks = sc_run_chunks(r) > 1 || sc_run_splits(r);
    /* a strategy that says so has them beside compute without these, too */
    if (r->strategy && r->strategy->p2p_overlap > 0) chunks = true;
    c->send_blocks = !(r->sw->p2p_overlap && chunks);
    if (!c->send_blocks)
        c->send_slow_s =
            2 * c->send_s * sc_plan_units(r->hw->device, cp.channels);
    if (!split || r->sp) return SC_OK;
    SC_TRY(sc_cost_coll(r->cost, r->hw, SC_ALL_GATHER, whole,
                        &p->place[1u << SC_AX_TP], -1, &cp, err));
    c->send_s += cp.seconds;
    return SC_OK;
}

/* The other copy of a device's stages. */
static sc_status mirror(const sc_plan *p, const sc_block *blocks, uint32_t dev,
                        sc_step_costs *c, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP], other = pp - 1 - dev;
    if (sc_run_placement(r) != SC_SCH_DUALPIPE || r->forward_only) return SC_OK;
    if (other == dev) return SC_OK;
    const uint32_t both[] = {other < dev ? other : dev,
                             other < dev ? dev : other};
    sc_place at = sc_hw_place_axis(r->hw, pp, p->stride[SC_AX_PP], 2, both);
    sc_coll_price cp;
    double bytes =
        r->sw->reduce_bytes * sc_plan_device_sum(p, blocks, dev, optim_params);
    SC_TRY(
        sc_cost_coll(r->cost, r->hw, SC_ALL_REDUCE, bytes, &at, -1, &cp, err));
    c->mirror_s = cp.seconds;
    return SC_OK;
}

sc_status sc_plan_step_costs(const sc_plan *p, const sc_block *blocks,
                             uint32_t device, sc_step_costs *out, sc_err *err)
{
    sc_plan own = *p;
    own.run.hw = sc_plan_hw(p, device);
    const sc_run *r = &own.run;
    p = &own;
    sc_step_costs c = {0};
    SC_TRY(transfer(p, device, &c, err));
    SC_TRY(tied(p, &c.tied_s, err));
    SC_TRY(mirror(p, blocks, device, &c, err));
    SC_TRY(exchange(p, blocks, device, false, &c.grad_s, &c.grad_bytes, err));
    SC_TRY(
        exchange(p, blocks, device, true, &c.update_s, &c.update_bytes, err));
    if (!r->forward_only && !r->sw->grad_overlap && r->zero < 3)
        c.pack_s = sc_run_reductions(r) *
                   sc_plan_device_sum(p, blocks, device, pack_seconds);
    if (!r->forward_only) {
        sc_kernel adam = {
            .kind = SC_K_MEMORY,
            .launches = 8,
            .bytes = r->sw->update_bytes *
                     sc_plan_device_sum(p, blocks, device, optim_params)};
        c.optimizer_s = sc_cost_kernel(r->cost, r->hw->device, &adam).seconds;
        c.fixed_s = r->cost->p[SC_P_STEP_FIXED];
        if (r->sw->capture == SC_CAPTURE_STEP)
            c.fixed_s *= r->cost->p[SC_P_STEP_CAPTURED];
    }
    plan_host_costs(p, blocks, device, &c);
    *out = c;
    return SC_OK;
}

/* ---- the tail of the graph --------------------------------------------- */

static sc_op once(lower *lw, uint32_t dev, const lower_op_desc *what,
                  sc_op after)
{
    if (what->seconds <= 0) return after;
    lower_op_desc d = *what;
    bool dp = d.kind == SC_OP_COLL && d.cat == SC_CAT_DP;
    d.group = dp ? lw->group[SC_AX_DP] : SC_NONE;
    d.peer = SC_NONE;
    d.stream = SC_S_COMPUTE;
    sc_op op = lower_op(lw, dev, &d);
    lower_after(lw, after, op);
    return op;
}

/* A moment that several devices reach together. */
static sc_op join(lower *lw, const sc_op *of, uint32_t n)
{
    sc_op mark = lower_op(lw, 0,
                          &(lower_op_desc){.name = "gradient norm",
                                           .group = SC_NONE,
                                           .peer = SC_NONE,
                                           .kind = SC_OP_MARK,
                                           .stream = SC_S_HOST,
                                           .cat = SC_CAT_OTHER});
    for (uint32_t i = 0; i < n; i++) lower_after(lw, of[i], mark);
    return mark;
}

static void reduce(lower *lw, uint32_t dev, sc_op *done)
{
    const sc_step_costs *c = &lw->costs[dev];
    done[dev] = once(lw, dev,
                     &(lower_op_desc){.name = "compress gradients",
                                      .seconds = c->pack_s,
                                      .kind = SC_OP_COMPUTE,
                                      .cat = SC_CAT_COMPUTE},
                     done[dev]);
    done[dev] = once(lw, dev,
                     &(lower_op_desc){.name = "reduce gradients",
                                      .seconds = c->grad_s,
                                      .bytes = c->grad_bytes,
                                      .kind = SC_OP_COLL,
                                      .cat = SC_CAT_DP},
                     done[dev]);
}

/* Optimizer states with the host. */
static sc_op host_update(lower *lw, uint32_t dev, sc_op after)
{
    const sc_step_costs *c = &lw->costs[dev];
    sc_op op = once(lw, dev,
                    &(lower_op_desc){.name = "update by the host",
                                     .seconds = c->host_update_s,
                                     .kind = SC_OP_HOST,
                                     .cat = SC_CAT_OFFLOAD},
                    after);
    return once(lw, dev,
                &(lower_op_desc){.name = "weights from the host",
                                 .seconds = c->host_in_s,
                                 .bytes = c->host_bytes,
                                 .kind = SC_OP_MEM,
                                 .cat = SC_CAT_OFFLOAD},
                op);
}

/* A checkpoint, spread over the steps between two. */
static sc_op save(lower *lw, uint32_t dev, sc_op after)
{
    const sc_step_costs *c = &lw->costs[dev];
    sc_op op = once(lw, dev,
                    &(lower_op_desc){.name = "checkpoint to the host",
                                     .seconds = c->save_copy_s,
                                     .bytes = c->save_bytes,
                                     .kind = SC_OP_MEM,
                                     .cat = SC_CAT_OFFLOAD},
                    after);
    return once(lw, dev,
                &(lower_op_desc){.name = "checkpoint written",
                                 .seconds = c->save_write_s,
                                 .kind = SC_OP_HOST,
                                 .cat = SC_CAT_OTHER},
                op);
}

static void update(lower *lw, uint32_t dev, sc_op norm)
{
    const sc_step_costs *c = &lw->costs[dev];
    sc_op op = once(lw, dev,
                    &(lower_op_desc){.name = "optimizer",
                                     .seconds = c->optimizer_s,
                                     .kind = SC_OP_COMPUTE,
                                     .cat = SC_CAT_OPTIMIZER},
                    norm);
    op = host_update(lw, dev, op);
    op = once(lw, dev,
              &(lower_op_desc){.name = "gather updated weights",
                               .seconds = c->update_s,
                               .bytes = c->update_bytes,
                               .kind = SC_OP_COLL,
                               .cat = SC_CAT_DP},
              op);
    op = save(lw, dev, op);
    once(lw, dev,
         &(lower_op_desc){.name = "step",
                          .seconds = c->fixed_s,
                          .kind = SC_OP_HOST,
                          .cat = SC_CAT_OTHER},
         op);
}

/* First and last stage sum the gradient of the weight they share. */
static void tie(lower *lw, sc_op *done)
{
    const sc_step_costs *c = &lw->costs[0];
    uint32_t last = lw->p->run.size[SC_AX_PP] - 1;
    if (c->tied_s <= 0) return;
    sc_op both[2] = {done[0], done[last]};
    sc_op met = join(lw, both, 2);
    const lower_op_desc d = {.name = "tied embedding",
                             .seconds = c->tied_s,
                             .kind = SC_OP_COLL,
                             .cat = SC_CAT_PP};
    done[0] = once(lw, 0, &d, met);
    done[last] = once(lw, last, &d, met);
}

/* Two devices hold each stage of DualPipe: both wait for all gradients of
 * their own, then sum them. */
static void mirrored(lower *lw, sc_op *done)
{
    uint32_t pp = lw->p->run.size[SC_AX_PP];
    for (uint32_t dev = 0; dev < pp / 2; dev++) {
        const sc_step_costs *c = &lw->costs[dev];
        uint32_t other = pp - 1 - dev;
        if (c->mirror_s <= 0) continue;
        sc_op of[4] = {done[dev], done[other], lw->grad_tail[dev],
                       lw->grad_tail[other]};
        sc_op met = join(lw, of, 4);
        const lower_op_desc d = {.name = "sum of both copies",
                                 .seconds = c->mirror_s,
                                 .kind = SC_OP_COLL,
                                 .cat = SC_CAT_PP};
        done[dev] = once(lw, dev, &d, met);
        done[other] = once(lw, other, &d, met);
    }
}

void lower_finish(lower *lw)
{
    uint32_t pp = lw->p->run.size[SC_AX_PP];
    if (lw->p->run.forward_only) return;
    sc_op *done = lw->tail;
    for (uint32_t dev = 0; dev < pp; dev++) {
        reduce(lw, dev, done);
        done[dev] = once(lw, dev,
                         &(lower_op_desc){.name = "gradients to the host",
                                          .seconds = lw->costs[dev].host_out_s,
                                          .bytes = lw->costs[dev].host_bytes,
                                          .kind = SC_OP_MEM,
                                          .cat = SC_CAT_OFFLOAD},
                         done[dev]);
    }
    tie(lw, done);
    mirrored(lw, done);
    sc_op norm = join(lw, done, pp);
    for (uint32_t dev = 0; dev < pp; dev++)
        lower_after(lw, lw->grad_tail[dev], norm);
    for (uint32_t dev = 0; dev < pp; dev++) update(lw, dev, norm);
}
