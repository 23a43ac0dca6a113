/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.c - composes the step time of a run from segments along its schedule.
 * The search ranks candidates by it.
 *
 * finish(v, mb) = max(finish of the same pass on the neighbouring stage,
 * the device's previous slot) + duration.
 */
#include "predict/fast.h"

#include <math.h>
#include <string.h>

/* Seconds that the host adds to each step. */
static double host_seconds(const sc_step_costs *c)
{
    return c->host_update_s + c->host_in_s + c->save_copy_s + c->save_write_s;
}

/* The time at which a device has finished its passes and gradient exchanges. */
static double device_end(const fast_engine *x, uint32_t dev)
{
    const sc_step_costs *c = &x->c[dev];
    double sum = c->pack_s + c->grad_s + c->host_out_s;
    return fast_larger(x->at[dev] + sum, x->device[dev].grads.end);
}

/* Seconds of the operations that follow the exchanges of all devices. */
static double update_seconds(const sc_step_costs *c)
{
    return c->optimizer_s + c->update_s + host_seconds(c);
}

static void charge_end(fast_engine *x, uint32_t dev, double norm, double after)
{
    const sc_step_costs *c = &x->c[dev];
    double *cat = x->cat[dev], end = device_end(x, dev);
    double own = c->pack_s + c->grad_s + c->host_out_s;
    bool ends = dev == 0 || dev + 1 == x->p->run.size[SC_AX_PP];
    double tied = ends ? fmin(norm - end, c->tied_s) : 0;
    double both = fmin(norm - end - tied, c->dualpipe_sum_s);
    cat[SC_CAT_COMPUTE] += c->pack_s;
    cat[SC_CAT_PP] += tied;
    cat[SC_CAT_DP] += c->grad_s + (end - x->at[dev] - own) + both + c->update_s;
    cat[SC_CAT_OFFLOAD] += c->host_out_s + c->host_update_s + c->host_in_s;
    cat[SC_CAT_OPTIMIZER] += c->optimizer_s;
    cat[SC_CAT_OTHER] += c->save_copy_s + c->save_write_s;
    cat[SC_CAT_BUBBLE] += norm - end - tied - both + after - update_seconds(c);
}

/* Computes the end of the step: exchanges, tied weights, optimizer. */
static double finish(fast_engine *x)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP];
    double norm = 0, after = 0, met = 0, summed = 0;
    for (uint32_t dev = 0; dev < pp; dev++) {
        double sum = x->c[dev].pack_s + x->c[dev].grad_s + x->c[dev].host_out_s;
        double end = device_end(x, dev);
        if (dev == 0 || dev == pp - 1) met = fast_larger(met, x->at[dev] + sum);
        norm = fast_larger(norm, end);
        after = fast_larger(after, update_seconds(&x->c[dev]));
    }
    if (pp > 1) norm = fast_larger(norm, met + x->c[0].tied_s);
    for (uint32_t dev = 0; dev < pp / 2; dev++) {
        double other = device_end(x, pp - 1 - dev);
        double both = fast_larger(device_end(x, dev), other);
        if (x->c[dev].dualpipe_sum_s > 0)
            summed = fast_larger(summed, both + x->c[dev].dualpipe_sum_s);
    }
    norm = fast_larger(norm, summed);
    for (uint32_t dev = 0; x->cat && dev < pp; dev++)
        charge_end(x, dev, norm, after);
    return norm + after;
}

sc_status fast_engine_of(const predict_shape *of, sc_arena *a,
                         fast_engine **out, sc_err *err)
{
    fast_engine *x = SC_NEW(a, fast_engine);
    if (!x) return sc_error_nomem(err);
    const sc_plan *p = x->p = &of->plan;
    uint32_t pp = p->run.size[SC_AX_PP];
    x->segments = of->segments;
    x->sigma = sc_plan_overlap(p, x->segments);
    x->chunks = sc_run_chunks(&p->run);
    x->chunk = SC_NEW_N(a, fast_chunk, (size_t)pp * x->chunks);
    x->c = SC_NEW_N(a, sc_step_costs, pp);
    x->device = SC_NEW_N(a, fast_device, pp);
    x->at = SC_NEW_N(a, double, pp);
    x->err = err;
    if (!x->chunk || !x->c || !x->device || !x->at) return sc_error_nomem(err);
    for (uint32_t dev = 0; dev < pp; dev++) {
        bool alike = dev > 0 && sc_plan_devices_alike(p, dev, dev - 1);
        SC_TRY(sc_plan_step_costs(p, x->segments, dev,
                                  alike ? &x->c[dev - 1] : NULL, &x->c[dev],
                                  err));
    }
    *out = x;
    return fast_open(x, a, err);
}

/* Computes the steps of runs with the same order without their fixed part. */
static sc_status compose(fast_engine *const *x, uint32_t n,
                         predict_orders *orders, sc_arena *a, double *step_s,
                         sc_err *err)
{
    const fast_order *o;
    SC_TRY(fast_order_of(&x[0]->p->run, orders, a, &o, err));
    SC_TRY(fast_sweep(x, n, o, a, err));
    for (uint32_t i = 0; i < n; i++) {
        step_s[i] = finish(x[i]) * sc_plan_slow_factor(&x[i]->p->run);
        if (x[i]->status != SC_OK) return x[i]->status;
    }
    return SC_OK;
}

static sc_status steps(const predict_shape *const *of, uint32_t n,
                       predict_orders *orders, sc_arena *a, double *step_s,
                       sc_err *err)
{
    fast_engine *x[FAST_LANES];
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(fast_engine_of(of[i], a, &x[i], err));
    SC_TRY(compose(x, n, orders, a, step_s, err));
    for (uint32_t i = 0; i < n; i++)
        step_s[i] = sc_time_to_s(sc_time_from_s(step_s[i])) +
                    x[i]->c[0].fixed_s * sc_plan_slow_factor(&x[i]->p->run);
    return SC_OK;
}

sc_status predict_steps(const predict_shape *const *of, uint32_t n,
                        predict_orders *orders, sc_arena *a, double *step_s,
                        sc_err *err)
{
    sc_arena_mark mark = sc_arena_save(a);
    sc_status s = SC_OK;
    for (uint32_t from = 0; from < n && s == SC_OK;) {
        uint32_t m = 1;
        while (m < FAST_LANES && from + m < n &&
               fast_order_key(&of[from + m]->plan.run) ==
                   fast_order_key(&of[from]->plan.run))
            m++;
        s = steps(of + from, m, orders, a, step_s + from, err);
        from += m;
    }
    sc_arena_restore(a, mark);
    return s;
}

sc_status sc_predict_fast(const sc_plan *p, const sc_segment *segments,
                          sc_arena *a, double *step_s, sc_err *err)
{
    const predict_shape own = {.plan = *p, .segments = (sc_segment *)segments};
    const predict_shape *of = &own;
    return predict_steps(&of, 1, NULL, a, step_s, err);
}

/* ---- the whole result of the fast engine --------------------------------- */

static double flops_of(const sc_segment *b)
{
    return b->flops;
}

static void memory_of(const sc_stage_memory *m, sc_net_memory *out)
{
    *out = (sc_net_memory){.live = m->allocated - m->other};
    out->by_kind[SC_MEM_WEIGHT] = m->weights;
    out->by_kind[SC_MEM_GRAD] = m->gradients;
    out->by_kind[SC_MEM_OPTIM] = m->optimizer;
    out->by_kind[SC_MEM_ACTIVATION] = m->activations;
    out->by_kind[SC_MEM_COMM] = m->communication;
}

/* Time by category on the device that waits least, in whole picoseconds. */
static void parts_of(const fast_engine *x, double step_s, sc_net_clock *out)
{
    double slow = sc_plan_slow_factor(&x->p->run);
    uint32_t best = 0;
    for (uint32_t d = 1; d < out->n_devices; d++)
        if (x->cat[d][SC_CAT_BUBBLE] < x->cat[best][SC_CAT_BUBBLE]) best = d;
    out->makespan = sc_time_from_s(step_s);
    sc_time rest = out->makespan;
    for (uint32_t c = 0; c < SC_N_CATS; c++) {
        out->cat[c] = sc_time_from_s(fmax(0, slow * x->cat[best][c]));
        if (c != SC_CAT_BUBBLE) rest -= out->cat[c];
    }
    out->cat[SC_CAT_BUBBLE] = rest > 0 ? rest : 0;
    if (rest < 0) out->cat[SC_CAT_COMPUTE] += rest;
}

sc_status predict_clock(const predict_shape *of, sc_arena *a, sc_net_clock *out,
                        sc_err *err)
{
    const sc_plan *p = &of->plan;
    uint32_t pp = p->run.size[SC_AX_PP];
    fast_engine *x;
    sc_stage_memory *m = SC_NEW_N(a, sc_stage_memory, pp);
    double step_s;
    *out = (sc_net_clock){.n_devices = pp,
                          .memory = SC_NEW_N(a, sc_net_memory, pp),
                          .flops = SC_NEW_N(a, double, pp)};
    if (!m || !out->memory || !out->flops) return sc_error_nomem(err);
    SC_TRY(fast_engine_of(of, a, &x, err));
    x->cat = sc_alloc(a, pp, sizeof *x->cat);
    if (!x->cat) return sc_error_nomem(err);
    SC_TRY(compose(&x, 1, NULL, a, &step_s, err));
    SC_TRY(sc_predict_memory(p, of->segments, a, m, err));
    parts_of(x, step_s, out);
    for (uint32_t d = 0; d < pp; d++) {
        memory_of(&m[d], &out->memory[d]);
        out->flops[d] = sc_plan_device_sum(p, of->segments, d, flops_of) *
                        predict_passes(&p->run);
    }
    return SC_OK;
}
