/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.c - composes the step time of a run from segments along its schedule.
 * The search ranks candidates by it.
 *
 * finish(v, mb) = max(finish of the same pass on the neighbouring stage,
 * the device's previous slot) + duration.
 */
#include "predict/fast.h"

#include "predict/memory_group.h"

#include <math.h>
#include <string.h>

/* Seconds that the host and other memories add to each step. */
static double host_seconds(const sc_step_costs *c)
{
    return c->host_update_s + c->host_in_s + c->keep_s + c->save_copy_s +
           c->save_write_s;
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
    cat[SC_CAT_OFFLOAD] +=
        c->host_out_s + c->host_update_s + c->host_in_s + c->keep_s;
    cat[SC_CAT_OPTIMIZER] += c->optimizer_s;
    cat[SC_CAT_OTHER] += c->save_copy_s + c->save_write_s;
    cat[SC_CAT_BUBBLE] += norm - end - tied - both + after - update_seconds(c);
}

fast_last fast_last_of(const sc_step_costs *c)
{
    return (fast_last){.sums = c->pack_s + c->grad_s,
                       .out = c->host_out_s,
                       .after = update_seconds(c),
                       .tied = c->tied_s,
                       .dualpipe = c->dualpipe_sum_s};
}

uint32_t fast_reaches(const fast_engine *x, fast_reach *out)
{
    uint32_t pp = x->p->run.size[SC_AX_PP], n = 0;
    for (uint32_t dev = 0; dev < pp; n++) {
        uint32_t end = dev + predict_like_next(x->p, dev);
        out[n] = (fast_reach){0, 0};
        for (; dev < end; dev++) {
            out[n].passes = fast_larger(out[n].passes, x->at[dev]);
            out[n].grads = fast_larger(out[n].grads, x->device[dev].grads.end);
        }
    }
    return n;
}

static double reached(const fast_reach *g, const fast_last *last)
{
    return fast_larger(g->passes + (last->sums + last->out), g->grads);
}

/* The first and the last device are groups of their own, and those of DualPipe,
 * where a device meets the one that is as far from the other end. */
void fast_finish(const fast_reach *g, const fast_last *last, uint32_t n,
                 double *exchanged, double *after)
{
    double norm = 0, rest = 0, met = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || i + 1 == n)
            met = fast_larger(met, g[i].passes + (last[i].sums + last[i].out));
        norm = fast_larger(norm, reached(&g[i], &last[i]));
        rest = fast_larger(rest, last[i].after);
    }
    if (n > 1) norm = fast_larger(norm, met + last[0].tied);
    double summed = 0;
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t k = n - 1 - i;
        double both =
            fast_larger(reached(&g[i], &last[i]), reached(&g[k], &last[k]));
        if (last[i].dualpipe > 0)
            summed = fast_larger(summed, both + last[i].dualpipe);
    }
    *exchanged = fast_larger(norm, summed);
    *after = rest;
}

double fast_step(const sc_run *r, double exchanged, double after,
                 double fixed_s)
{
    double slow = sc_plan_slow_factor(r);
    sc_time whole = sc_time_from_s((exchanged + after) * slow);
    return sc_time_to_s(whole) + fixed_s * slow;
}

static sc_status new_engine(const predict_shape *of, sc_arena *a,
                            fast_engine **out, sc_err *err)
{
    fast_engine *x = SC_NEW(a, fast_engine);
    if (!x) return sc_error_nomem(err);
    const sc_plan *p = x->p = &of->plan;
    uint32_t pp = p->run.size[SC_AX_PP];
    x->segments = of->segments;
    x->sigma = sc_plan_overlap(p, x->segments);
    x->chunks = sc_run_chunks(&p->run);
    x->chunk = SC_RAW_N(a, fast_chunk, (size_t)pp * x->chunks);
    x->c = SC_RAW_N(a, sc_step_costs, pp);
    x->device = SC_NEW_N(a, fast_device, pp);
    x->at = SC_NEW_N(a, double, pp);
    x->price = SC_RAW_N(a, fast_price, FAST_PRICES);
    x->err = err;
    x->limit_s = INFINITY;
    if (!x->chunk || !x->c || !x->device || !x->at || !x->price)
        return sc_error_nomem(err);
    *out = x;
    return SC_OK;
}

sc_status fast_engine_of(const predict_shape *of, sc_arena *a,
                         fast_engine **out, sc_err *err)
{
    fast_engine *x;
    SC_TRY(new_engine(of, a, &x, err));
    for (uint32_t dev = 0; dev < x->p->run.size[SC_AX_PP]; dev++) {
        bool alike = dev > 0 && sc_plan_devices_alike(x->p, dev, dev - 1);
        SC_TRY(sc_plan_step_costs(x->p, x->segments, dev,
                                  alike ? &x->c[dev - 1] : NULL, &x->c[dev],
                                  err));
    }
    *out = x;
    return fast_open(x, a, err);
}

sc_status fast_engine_passes(const predict_shape *of, const fast_engine *like,
                             sc_arena *a, fast_engine **out, sc_err *err)
{
    static const sc_step_costs none;
    fast_engine *x;
    SC_TRY(new_engine(of, a, &x, err));
    uint32_t pp = x->p->run.size[SC_AX_PP];
    if (like) memcpy(x->c, like->c, pp * sizeof *x->c);
    for (uint32_t dev = 0; !like && dev < pp; dev++)
        SC_TRY(
            sc_plan_step_costs(x->p, x->segments, dev, &none, &x->c[dev], err));
    *out = x;
    return fast_open(x, a, err);
}

/* Rounding may make sums shorter in another order. */
void fast_engine_limit(fast_engine *x, double beat_s)
{
    x->limit_s = beat_s / sc_plan_slow_factor(&x->p->run) * (1 + 1e-9);
}

sc_status fast_passes(fast_engine *const *x, uint32_t n, predict_orders *orders,
                      sc_arena *a, sc_err *err)
{
    const fast_order *o;
    SC_TRY(fast_order_of(&x[0]->p->run, orders, a, &o, err));
    SC_TRY(fast_sweep(x, n, o, a, err));
    for (uint32_t i = 0; i < n; i++)
        if (x[i]->status != SC_OK) return x[i]->status;
    return SC_OK;
}

/* The end of a step whose passes have run. */
static sc_status finish(fast_engine *x, sc_arena *a, double *norm,
                        double *after, sc_err *err)
{
    uint32_t pp = x->p->run.size[SC_AX_PP], n, dev = 0;
    fast_reach *g = SC_NEW_N(a, fast_reach, pp);
    fast_last *last = SC_NEW_N(a, fast_last, pp);
    if (!g || !last) return sc_error_nomem(err);
    n = fast_reaches(x, g);
    for (uint32_t i = 0; i < n; i++) {
        last[i] = fast_last_of(&x->c[dev]);
        dev += predict_like_next(x->p, dev);
    }
    fast_finish(g, last, n, norm, after);
    for (dev = 0; x->cat && dev < pp; dev++) charge_end(x, dev, *norm, *after);
    return SC_OK;
}

static sc_status steps(const predict_shape *const *of, uint32_t n,
                       predict_orders *orders, sc_arena *a, double *step_s,
                       sc_err *err)
{
    fast_engine *x[FAST_LANES];
    double norm, after;
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(fast_engine_of(of[i], a, &x[i], err));
    SC_TRY(fast_passes(x, n, orders, a, err));
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(finish(x[i], a, &norm, &after, err));
        step_s[i] = fast_step(&x[i]->p->run, norm, after, x[i]->c[0].fixed_s);
    }
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
    double norm, after;
    *out = (sc_net_clock){.n_devices = pp,
                          .memory = SC_NEW_N(a, sc_net_memory, pp),
                          .expanded = SC_NEW_N(a, double, pp),
                          .flops = SC_NEW_N(a, double, pp)};
    if (!m || !out->memory || !out->flops || !out->expanded)
        return sc_error_nomem(err);
    SC_TRY(fast_engine_of(of, a, &x, err));
    x->cat = sc_alloc(a, pp, sizeof *x->cat);
    if (!x->cat) return sc_error_nomem(err);
    SC_TRY(fast_passes(&x, 1, NULL, a, err));
    SC_TRY(finish(x, a, &norm, &after, err));
    SC_TRY(sc_predict_memory(p, of->segments, a, m, err));
    parts_of(x, (norm + after) * sc_plan_slow_factor(&p->run), out);
    for (uint32_t d = 0; d < pp; d++) {
        memory_of(&m[d], &out->memory[d]);
        out->expanded[d] = m[d].expanded;
        out->flops[d] = sc_plan_device_sum(p, of->segments, d, flops_of) *
                        predict_passes(&p->run);
    }
    return SC_OK;
}
