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

typedef struct sweep {
    double *done_f, *done_b; /* [n_stages * ga], < 0: not yet */
    double *at;              /* [pp] clock of each device */
    uint32_t *pos, *n_order; /* [pp] */
    sc_slot **order;         /* [pp] */
    /* chunks per device */
    uint32_t chunks;
    uint32_t *first, *last, *stage; /* [pp * chunks] sc_schedule_ends() */
    bool *up, *down; /* [pp * chunks] whether the next and the previous stage
                      * are on other devices */
    bool *idle;      /* [n_stages] no work in the backward pass */
} sweep;

static double duration(fast_engine *x, const sweep *s, const sc_slot *o,
                       uint32_t dev, double start)
{
    uint32_t c = dev * s->chunks + o->chunk;
    double d = fast_pass(x, dev, c, (sc_pass)o->pass, o->mb == s->first[c],
                         o->mb == s->last[c], start);
    if (x->cat) fast_charge(x, dev, c, (sc_pass)o->pass, d);
    return d;
}

/* A slot waits for a transfer from another device and for its place in the
 * order. */
static void charge_wait(const fast_engine *x, uint32_t dev, double wait,
                        bool sends)
{
    double way = x->c[dev].send_s < wait ? x->c[dev].send_s : wait;
    if (!x->cat) return;
    x->cat[dev][SC_CAT_PP] += way + (sends ? x->c[dev].send_s : 0);
    x->cat[dev][SC_CAT_BUBBLE] += wait - way;
}

/* A pass that computes only weight gradients: no other device waits for it. */
static bool weight_slot(fast_engine *x, sweep *s, uint32_t dev,
                        const sc_slot *o)
{
    uint32_t c = dev * s->chunks + o->chunk, v = s->stage[c];
    if (!s->idle[v]) {
        s->at[dev] += duration(x, s, o, dev, s->at[dev]);
    }
    s->pos[dev]++;
    return true;
}

static bool slot(fast_engine *x, sweep *s, uint32_t dev)
{
    const sc_run *r = &x->p->run;
    uint32_t n = x->p->n_stages;
    const sc_slot *o = &s->order[dev][s->pos[dev]];
    if (o->pass == SC_BWD_W) return weight_slot(x, s, dev, o);
    uint32_t c = dev * s->chunks + o->chunk, v = s->stage[c];
    size_t i = (size_t)v * r->ga + o->mb;
    bool bwd = o->pass != SC_FWD;
    double in = 0;
    if (!bwd && v > 0) in = s->done_f[i - r->ga];
    if (bwd) in = v + 1 < n ? s->done_b[i + r->ga] : s->done_f[i];
    if (in < 0 || (bwd && s->done_f[i] < 0)) return false;
    if (bwd && s->idle[v]) { /* without work, nothing waits */
        s->done_b[i] = in;
        s->pos[dev]++;
        return true;
    }
    double start = fast_larger(in, s->at[dev]);
    double end = start + duration(x, s, o, dev, start);
    double sent = end;
    bool last = bwd ? v == 0 || s->idle[v - 1] : v + 1 == n;
    if (!last && (bwd ? s->down : s->up)[c]) sent += fast_send(x, dev, end);
    charge_wait(x, dev, start - s->at[dev],
                x->c[dev].send_blocks && sent > end);
    s->at[dev] = x->c[dev].send_blocks ? sent : end;
    (bwd ? s->done_b : s->done_f)[i] = sent;
    s->pos[dev]++;
    return true;
}

/* Collects what all slots of a device's chunks have in common. */
static void chunks_of(const fast_engine *x, uint32_t dev, sweep *s)
{
    const sc_run *r = &x->p->run;
    for (uint32_t k = 0; k < s->chunks; k++) {
        uint32_t c = dev * s->chunks + k, v = sc_run_stage(r, dev, k);
        sc_schedule_ends(s->order[dev], s->n_order[dev], k, &s->first[c],
                         &s->last[c]);
        uint32_t mb = s->first[c];
        s->stage[c] = v;
        s->idle[v] = x->chunk[c].n_bwd == 0;
        s->up[c] = v + 1 < x->p->n_stages && sc_run_device(r, v + 1, mb) != dev;
        s->down[c] = v > 0 && sc_run_device(r, v - 1, mb) != dev;
    }
}

static sc_status sweep_new(const fast_engine *x, sc_arena *a, sweep *s,
                           sc_err *err)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP], chunks = sc_run_chunks(r);
    size_t n = (size_t)x->p->n_stages * r->ga, m = (size_t)pp * chunks;
    *s = (sweep){.done_f = SC_NEW_N(a, double, n),
                 .done_b = SC_NEW_N(a, double, n),
                 .at = SC_NEW_N(a, double, pp),
                 .pos = SC_NEW_N(a, uint32_t, pp),
                 .n_order = SC_NEW_N(a, uint32_t, pp),
                 .order = SC_NEW_N(a, sc_slot *, pp),
                 .chunks = chunks,
                 .first = SC_NEW_N(a, uint32_t, m),
                 .last = SC_NEW_N(a, uint32_t, m),
                 .stage = SC_NEW_N(a, uint32_t, m),
                 .up = SC_NEW_N(a, bool, m),
                 .down = SC_NEW_N(a, bool, m),
                 .idle = SC_NEW_N(a, bool, x->p->n_stages)};
    if (!s->done_f || !s->done_b || !s->at || !s->pos || !s->n_order ||
        !s->order || !s->first || !s->last || !s->stage || !s->up || !s->down ||
        !s->idle)
        return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) s->done_f[i] = s->done_b[i] = -1;
    for (uint32_t dev = 0; dev < pp; dev++) {
        s->order[dev] = SC_NEW_N(a, sc_slot, sc_run_slots(r));
        if (!s->order[dev]) return sc_error_nomem(err);
        s->n_order[dev] = sc_run_order(r, dev, s->order[dev]);
        chunks_of(x, dev, s);
    }
    return SC_OK;
}

/* Seconds that the host adds to each step. */
static double host_seconds(const sc_step_costs *c)
{
    return c->host_update_s + c->host_in_s + c->save_copy_s + c->save_write_s;
}

/* The time at which a device has finished its passes and gradient exchanges. */
static double device_end(const fast_engine *x, const sweep *s, uint32_t dev)
{
    const sc_step_costs *c = &x->c[dev];
    double sum = c->pack_s + c->grad_s + c->host_out_s;
    return fast_larger(s->at[dev] + sum, x->device[dev].grads.end);
}

/* Seconds of the operations that follow the exchanges of all devices. */
static double update_seconds(const sc_step_costs *c)
{
    return c->optimizer_s + c->update_s + host_seconds(c);
}

static void charge_end(fast_engine *x, const sweep *s, uint32_t dev,
                       double norm, double after)
{
    const sc_step_costs *c = &x->c[dev];
    double *cat = x->cat[dev], end = device_end(x, s, dev);
    double own = c->pack_s + c->grad_s + c->host_out_s;
    bool ends = dev == 0 || dev + 1 == x->p->run.size[SC_AX_PP];
    double tied = ends ? fmin(norm - end, c->tied_s) : 0;
    double both = fmin(norm - end - tied, c->dualpipe_sum_s);
    cat[SC_CAT_COMPUTE] += c->pack_s;
    cat[SC_CAT_PP] += tied;
    cat[SC_CAT_DP] += c->grad_s + (end - s->at[dev] - own) + both + c->update_s;
    cat[SC_CAT_OFFLOAD] += c->host_out_s + c->host_update_s + c->host_in_s;
    cat[SC_CAT_OPTIMIZER] += c->optimizer_s;
    cat[SC_CAT_OTHER] += c->save_copy_s + c->save_write_s;
    cat[SC_CAT_BUBBLE] += norm - end - tied - both + after - update_seconds(c);
}

/* Computes the end of the step: exchanges, tied weights, optimizer. */
static double finish(fast_engine *x, const sweep *s)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP];
    double norm = 0, after = 0, met = 0, summed = 0;
    for (uint32_t dev = 0; dev < pp; dev++) {
        double sum = x->c[dev].pack_s + x->c[dev].grad_s + x->c[dev].host_out_s;
        double end = device_end(x, s, dev);
        if (dev == 0 || dev == pp - 1) met = fast_larger(met, s->at[dev] + sum);
        norm = fast_larger(norm, end);
        after = fast_larger(after, update_seconds(&x->c[dev]));
    }
    if (pp > 1) norm = fast_larger(norm, met + x->c[0].tied_s);
    for (uint32_t dev = 0; dev < pp / 2; dev++) {
        double other = device_end(x, s, pp - 1 - dev);
        double both = fast_larger(device_end(x, s, dev), other);
        if (x->c[dev].dualpipe_sum_s > 0)
            summed = fast_larger(summed, both + x->c[dev].dualpipe_sum_s);
    }
    norm = fast_larger(norm, summed);
    for (uint32_t dev = 0; x->cat && dev < pp; dev++)
        charge_end(x, s, dev, norm, after);
    return norm + after;
}

static sc_status compose(fast_engine *x, sc_arena *a, double *step_s,
                         sc_err *err)
{
    const sc_run *r = &x->p->run;
    sweep s;
    SC_TRY(fast_open(x, a, err));
    SC_TRY(sweep_new(x, a, &s, err));
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++)
            while (s.pos[dev] < s.n_order[dev] && slot(x, &s, dev))
                moved = true;
    }
    *step_s = finish(x, &s) * sc_plan_slow_factor(r);
    return x->status;
}

/* Computes the step without its fixed part. */
static sc_status run_all(fast_engine *x, sc_arena *a, double *step_s,
                         sc_err *err)
{
    const sc_plan *p = x->p;
    uint32_t pp = p->run.size[SC_AX_PP];
    size_t n = (size_t)pp * sc_run_chunks(&p->run);
    x->sigma = sc_plan_overlap(p, x->segments);
    x->chunks = sc_run_chunks(&p->run);
    x->chunk = SC_NEW_N(a, fast_chunk, n);
    x->c = SC_NEW_N(a, sc_step_costs, pp);
    x->device = SC_NEW_N(a, fast_device, pp);
    x->err = err;
    if (!x->chunk || !x->c || !x->device) return sc_error_nomem(err);
    for (uint32_t dev = 0; dev < pp; dev++)
        SC_TRY(sc_plan_step_costs(p, x->segments, dev, &x->c[dev], err));
    return compose(x, a, step_s, err);
}

sc_status sc_predict_fast(const sc_plan *p, const sc_segment *segments,
                          sc_arena *a, double *step_s, sc_err *err)
{
    sc_arena_mark mark = sc_arena_save(a);
    fast_engine *x = SC_NEW(a, fast_engine);
    if (!x) return sc_error_nomem(err);
    x->p = p;
    x->segments = segments;
    sc_status s = run_all(x, a, step_s, err);
    if (s == SC_OK)
        *step_s = sc_time_to_s(sc_time_from_s(*step_s)) +
                  x->c[0].fixed_s * sc_plan_slow_factor(&p->run);
    sc_arena_restore(a, mark);
    return s;
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

sc_status predict_clock(const sc_plan *p, const sc_segment *segments,
                        sc_arena *a, sc_net_clock *out, sc_err *err)
{
    uint32_t pp = p->run.size[SC_AX_PP];
    fast_engine *x = SC_NEW(a, fast_engine);
    sc_stage_memory *m = SC_NEW_N(a, sc_stage_memory, pp);
    double step_s;
    *out = (sc_net_clock){.n_devices = pp,
                          .memory = SC_NEW_N(a, sc_net_memory, pp),
                          .flops = SC_NEW_N(a, double, pp)};
    if (!x || !m || !out->memory || !out->flops) return sc_error_nomem(err);
    x->p = p;
    x->segments = segments;
    x->cat = sc_alloc(a, pp, sizeof *x->cat);
    if (!x->cat) return sc_error_nomem(err);
    SC_TRY(run_all(x, a, &step_s, err));
    SC_TRY(sc_predict_memory(p, segments, a, m, err));
    parts_of(x, step_s, out);
    for (uint32_t d = 0; d < pp; d++) {
        memory_of(&m[d], &out->memory[d]);
        out->flops[d] = sc_plan_device_sum(p, segments, d, flops_of) *
                        predict_passes(&p->run);
    }
    return SC_OK;
}
