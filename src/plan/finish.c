/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish.c - what happens once per step: gradient exchange, tied weights,
 * optimizer, gathers of updated weights, the fixed part.
 */
#include "plan/block.h"
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
    double sum = 0;
    for (uint32_t v = dev; v < p->n_stages; v += p->run.size[SC_AX_PP])
        for (uint32_t l = 0; l < p->run.model->n_layers; l++)
            if (p->stage[v].n[l]) sum += p->stage[v].n[l] * of(&blocks[l]);
    return sum;
}

sc_status sc_blocks_price(const sc_plan *p, sc_arena *a, sc_block **out,
                          sc_err *err)
{
    uint32_t n = p->run.model->n_layers;
    sc_block *b = SC_NEW_N(a, sc_block, n);
    if (!b) return sc_error_nomem(err);
    for (uint32_t l = 0; l < n; l++)
        SC_TRY(sc_block_price(p, l, a, &b[l], err));
    *out = b;
    return SC_OK;
}

void plan_stage_cats(const sc_plan *p, const sc_block *blocks, uint32_t v,
                     bool bwd, double cat[SC_N_CATS])
{
    for (uint32_t c = 0; c < SC_N_CATS; c++) {
        cat[c] = 0;
        for (uint32_t l = 0; l < p->run.model->n_layers; l++)
            cat[c] += p->stage[v].n[l] *
                      (bwd ? blocks[l].bwd_cat[c] : blocks[l].fwd_cat[c]);
    }
}

double sc_plan_overlap(const sc_plan *p, const sc_block *blocks)
{
    double share = 0;
    for (uint32_t l = 0; l < p->run.model->n_layers; l++) {
        const sc_exchange *x[] = {&blocks[l].gather, &blocks[l].grad,
                                  &blocks[l].update};
        for (size_t i = 0; i < SC_COUNT(x); i++)
            share = fmax(share, plan_units_share(&p->run, x[i]->channels));
    }
    return share;
}

double sc_plan_slow_factor(const sc_run *r)
{
    double nodes = r->hw->n_devices / 8.0;
    double wait = nodes > 1 ? r->cost->p[SC_P_STRAGGLER] * log2(nodes) : 0;
    return (1 + wait) * (r->numa_unbound ? 1 + r->cost->p[SC_P_NUMA] : 1);
}

static double pack_seconds(const sc_block *b)
{
    return b->pack_s;
}

static double optim_params(const sc_block *b)
{
    return b->optim_kept;
}

sc_status plan_exchange(const sc_plan *p, const sc_block *blocks, uint32_t dev,
                        bool update, double *seconds, double *bytes,
                        sc_err *err)
{
    const sc_run *r = &p->run;
    *seconds = *bytes = 0;
    bool beside = update ? r->sw->param_overlap : r->sw->grad_overlap;
    if (beside || r->zero >= 3 || r->forward_only) return SC_OK;
    sc_exchange all = {{0}, {0}, 0};
    for (uint32_t v = dev; v < p->n_stages; v += r->size[SC_AX_PP])
        for (uint32_t l = 0; l < r->model->n_layers; l++) {
            const sc_exchange *x = update ? &blocks[l].update : &blocks[l].grad;
            for (uint32_t m = 0; m < 1u << SC_N_AX; m++) {
                all.bytes[m] += p->stage[v].n[l] * x->bytes[m];
                if (x->bytes[m] > 0) all.coll[m] = x->coll[m];
            }
        }
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

/* The first and the last stage sum the gradients of a shared embedding. */
static sc_status tied(const sc_plan *p, double *seconds, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP];
    *seconds = 0;
    bool frozen = r->model->layer[0].op[0].frozen;
    if (pp == 1 || !r->model->t.tied || r->forward_only || frozen) return SC_OK;
    uint32_t two = 2, stride = p->stride[SC_AX_PP] * (pp - 1);
    sc_place at = sc_hw_place(r->hw, 1, &two, &stride);
    double v = (double)r->model->t.vocab * (double)r->model->t.hidden *
               r->sw->reduce_bytes / r->size[SC_AX_TP];
    sc_coll_price cp;
    SC_TRY(sc_cost_coll(r->cost, r->hw, SC_ALL_REDUCE, v, &at, -1, &cp, err));
    *seconds = cp.seconds;
    return SC_OK;
}

/* One activation between neighbouring stages; split over TP ranks it is
 * gathered again inside the node. */
static sc_status transfer(const sc_plan *p, sc_step_costs *c, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t tp = r->size[SC_AX_TP];
    if (r->size[SC_AX_PP] == 1) return SC_OK;
    double whole = sc_precision_bytes(SC_BF16) * (double)r->mbs *
                   (double)r->seq * (double)r->model->t.hidden /
                   r->size[SC_AX_CP];
    bool split = tp > 1 && (r->sw->p2p_scatter || r->sp);
    uint32_t two = 2, stride = p->stride[SC_AX_PP];
    sc_place at = sc_hw_place(r->hw, 1, &two, &stride);
    sc_coll_price cp;
    c->send_bytes = split ? whole / tp : whole;
    SC_TRY(sc_cost_coll(r->cost, r->hw, SC_SENDRECV, c->send_bytes, &at, -1,
                        &cp, err));
    c->send_s = cp.seconds;
    c->send_blocks = !(r->sw->p2p_overlap && r->vpp > 1);
    if (!c->send_blocks)
        c->send_slow_s = 2 * c->send_s * plan_units_share(r, cp.channels);
    if (!split || r->sp) return SC_OK;
    SC_TRY(sc_cost_coll(r->cost, r->hw, SC_ALL_GATHER, whole,
                        &p->place[1u << SC_AX_TP], -1, &cp, err));
    c->send_s += cp.seconds;
    return SC_OK;
}

sc_status sc_plan_step_costs(const sc_plan *p, const sc_block *blocks,
                             uint32_t device, sc_step_costs *out, sc_err *err)
{
    const sc_run *r = &p->run;
    sc_step_costs c = {0};
    SC_TRY(transfer(p, &c, err));
    SC_TRY(tied(p, &c.tied_s, err));
    SC_TRY(
        plan_exchange(p, blocks, device, false, &c.grad_s, &c.grad_bytes, err));
    SC_TRY(plan_exchange(p, blocks, device, true, &c.update_s, &c.update_bytes,
                         err));
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
    *out = c;
    return SC_OK;
}

/* ---- the tail of the graph --------------------------------------------- */

static sc_op once(lower *lw, uint32_t dev, const char *name, double seconds,
                  double bytes, uint8_t kind, uint8_t cat, sc_op after)
{
    if (seconds <= 0) return after;
    bool dp = kind == SC_OP_COLL && cat == SC_CAT_DP;
    sc_op op =
        lower_op(lw, dev,
                 &(lower_op_desc){.name = name,
                                  .seconds = seconds,
                                  .bytes = bytes,
                                  .group = dp ? lw->group[SC_AX_DP] : SC_NONE,
                                  .peer = SC_NONE,
                                  .kind = kind,
                                  .stream = SC_S_COMPUTE,
                                  .cat = cat});
    lower_after(lw, after, op);
    return op;
}

/* A moment that all devices reach together: the gradient norm. */
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
    done[dev] = once(lw, dev, "compress gradients", c->pack_s, 0, SC_OP_COMPUTE,
                     SC_CAT_COMPUTE, done[dev]);
    done[dev] = once(lw, dev, "reduce gradients", c->grad_s, c->grad_bytes,
                     SC_OP_COLL, SC_CAT_DP, done[dev]);
}

static void update(lower *lw, uint32_t dev, sc_op norm)
{
    const sc_step_costs *c = &lw->costs[dev];
    sc_op op = once(lw, dev, "optimizer", c->optimizer_s, 0, SC_OP_COMPUTE,
                    SC_CAT_OPTIMIZER, norm);
    op = once(lw, dev, "gather updated weights", c->update_s, c->update_bytes,
              SC_OP_COLL, SC_CAT_DP, op);
    once(lw, dev, "step", c->fixed_s, 0, SC_OP_HOST, SC_CAT_OTHER, op);
}

void lower_finish(lower *lw)
{
    uint32_t pp = lw->p->run.size[SC_AX_PP];
    if (lw->p->run.forward_only) return;
    sc_op *done = lw->tail;
    for (uint32_t dev = 0; dev < pp; dev++) reduce(lw, dev, done);
    if (lw->costs[0].tied_s > 0) {
        sc_op both[2] = {done[0], done[pp - 1]};
        sc_op met = join(lw, both, 2);
        double s = lw->costs[0].tied_s;
        done[0] =
            once(lw, 0, "tied embedding", s, 0, SC_OP_COLL, SC_CAT_PP, met);
        done[pp - 1] = once(lw, pp - 1, "tied embedding", s, 0, SC_OP_COLL,
                            SC_CAT_PP, met);
    }
    sc_op norm = join(lw, done, pp);
    for (uint32_t dev = 0; dev < pp; dev++)
        lower_after(lw, lw->grad_tail[dev], norm);
    for (uint32_t dev = 0; dev < pp; dev++) update(lw, dev, norm);
}
