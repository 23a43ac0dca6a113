/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.c - the fast engine: block durations composed by the schedule's
 * recurrence.
 *
 * finish(v, mb) = max(finish of the same pass on the neighbouring stage,
 * the device's previous slot) + duration.  Differs from the event engine only
 * in what crosses block borders: exchanges beside compute are composed layer
 * by layer, those of weights and gradients other than ZeRO-3's each pass in
 * isolation.
 */
#include "predict/internal.h"

#include <math.h>
#include <string.h>

/* What a device has run that shards weights (ZeRO-3). */
typedef struct past {
    double busy; /* end of its exchanges */
    uint64_t n;  /* layers */
    double end[SC_PREFETCH_MAX + 2];
} past;

typedef struct fast {
    const sc_plan *p;
    const sc_block *blocks;
    double sigma;     /* extra time per overlapped time */
    double *f, *b;    /* [n_stages] duration of a closed pass */
    double *gathered; /* [pp] end of the gathers of updated weights */
    bool gathers;     /* they run beside the first forward */
    bool beside;      /* gradients are exchanged beside the last backward */
    double *last_b;   /* [n_stages] with gradient exchange beside */
    double *tail;     /* [n_stages] exchange left after the last backward */
    sc_step_costs *c; /* [pp] */
    past *past;       /* [pp] */
} fast;

static const sc_block *layer_of(const fast *x, uint32_t v, uint32_t i)
{
    return &x->blocks[sc_plan_stage_entry(x->p, v, i)];
}

static uint32_t n_layers(const fast *x, uint32_t v)
{
    return sc_plan_stage_layers(x->p, v);
}

/* Layers of a virtual stage that a pass runs, in its order. */
static uint32_t n_run(const fast *x, uint32_t v, bool bwd)
{
    uint32_t n = n_layers(x, v), skip = 0;
    while (bwd && skip < n && layer_of(x, v, skip)->still) skip++;
    return n - skip;
}

static const sc_block *run_of(const fast *x, uint32_t v, bool bwd, uint32_t k)
{
    return layer_of(x, v, bwd ? n_layers(x, v) - 1 - k : k);
}

/* End of the layer that has to be done before the weights of one `ahead`
 * layers from now are gathered. */
static double gate(const past *h, uint32_t depth, uint32_t ahead)
{
    uint64_t back = 1 + depth - ahead;
    return back > h->n ? 0 : h->end[(h->n - back) % SC_COUNT(h->end)];
}

/* ZeRO-3: per layer compute beside the exchanges of its neighbours, those of
 * earlier passes included.  What overlaps slows both. */
static double zero3(fast *x, uint32_t v, uint32_t dev, bool bwd, double start)
{
    uint32_t n = n_run(x, v, bwd), next = 0;
    uint32_t depth = (uint32_t)x->p->run.sw->prefetch;
    past *h = &x->past[dev];
    double t = start, busy = h->busy, ready[SC_PREFETCH_MAX + 1] = {0};
    for (uint32_t k = 0; k < n; k++) {
        const sc_block *b = run_of(x, v, bwd, k);
        for (; next < n && next <= k + depth; next++) {
            double s = run_of(x, v, bwd, next)->gather_s;
            if (s > 0) busy = fmax(busy, gate(h, depth, next - k)) + s;
            ready[next % (depth + 1)] = s > 0 ? busy : 0;
        }
        double c = bwd ? b->bwd_s + b->pack_s : b->fwd_s;
        double from = fmax(t, ready[k % (depth + 1)]);
        /* Kernels come first in a block, and only they are slowed. */
        double own = (bwd ? b->bwd_cat : b->fwd_cat)[SC_CAT_COMPUTE];
        double slow = x->sigma * fmin(own, fmax(0, busy - from));
        for (uint32_t i = k + 1; i < next; i++) {
            double *r = &ready[i % (depth + 1)];
            *r += x->sigma * fmin(own, fmax(0, *r - from));
        }
        busy += slow;
        t = from + c + slow;
        h->end[h->n++ % SC_COUNT(h->end)] = t;
        if (bwd && b->grad_s > 0) busy = fmax(busy, t) + b->grad_s;
    }
    h->busy = busy;
    x->tail[v] = bwd ? fmax(0, busy - t) : 0;
    return t - start;
}

/* Weights are gathered from the start of the step on, beside whatever runs:
 * only what is not there when a layer needs it is waited for. */
static double first_forward(fast *x, uint32_t v, uint32_t dev, double start)
{
    double t = start, gathered = x->gathered[dev], busy = 0;
    uint32_t n = n_layers(x, v);
    for (uint32_t k = 0; k < n; k++) {
        const sc_block *b = layer_of(x, v, k);
        gathered += b->update_s;
        t = fmax(t, gathered) + b->fwd_s;
        busy += b->fwd_s;
    }
    double beside = fmin(busy, fmax(0, gathered - start));
    x->gathered[dev] = gathered;
    return t + x->sigma * beside - start;
}

static double last_backward(const fast *x, uint32_t v, double behind,
                            double *tail)
{
    double t = 0, free_at = behind, bucket = 0, bucket_s = 0, sent = 0;
    double own = 0; /* kernels: only they are slowed */
    uint32_t n = n_run(x, v, true);
    for (uint32_t k = 0; k < n; k++) {
        const sc_block *b = run_of(x, v, true, k);
        t += b->bwd_s + b->pack_s;
        own += b->bwd_cat[SC_CAT_COMPUTE] + b->pack_s;
        bucket += b->grad_bytes;
        bucket_s += b->grad_s;
        if (bucket > 0 &&
            (k == n - 1 || bucket >= x->p->run.sw->bucket_bytes)) {
            free_at = fmax(free_at, t) + bucket_s;
            sent += bucket_s;
            bucket = bucket_s = 0;
        }
    }
    double beside = fmin(own, fmax(0, behind + sent - fmax(0, free_at - t)));
    /* Both run slower while they overlap. */
    *tail = fmax(0, free_at - t);
    return t + x->sigma * beside;
}

static void durations(fast *x)
{
    const sc_run *r = &x->p->run;
    bool dp = sc_run_dp(r) * r->size[SC_AX_CP] > 1;
    x->beside = dp && r->zero < 3 && r->sw->grad_overlap;
    x->gathers = dp && r->zero > 0 && r->zero < 3 && r->sw->param_overlap;
    for (uint32_t v = 0; v < x->p->n_stages; v++) {
        x->tail[v] = 0;
        x->f[v] = x->b[v] = 0;
        for (uint32_t k = 0; k < n_layers(x, v); k++) {
            x->f[v] += layer_of(x, v, k)->fwd_s;
            x->b[v] += layer_of(x, v, k)->bwd_s;
        }
        x->last_b[v] = dp && r->zero < 3 && r->sw->grad_overlap
                           ? last_backward(x, v, 0, &x->tail[v])
                           : x->b[v];
    }
}

typedef struct sweep {
    double *done_f, *done_b; /* [n_stages * ga], < 0: not yet */
    double *at;              /* [pp] clock of each device */
    double *grad;            /* [pp] end of exchanges beside compute */
    uint32_t *pos, *n_order; /* [pp] */
    sc_slot **order;         /* [pp] */
} sweep;

static double duration(fast *x, const sweep *s, const sc_slot *o, uint32_t v,
                       uint32_t dev, double start)
{
    bool last = o->mb == x->p->run.ga - 1;
    if (x->p->run.zero >= 3) return zero3(x, v, dev, o->pass != SC_FWD, start);
    bool exchange = last || sc_run_reductions(&x->p->run) > 1;
    if (o->pass != SC_FWD && exchange && x->beside) /* chunks share a stream */
        return last_backward(x, v, fmax(0, s->grad[dev] - start), &x->tail[v]);
    if (o->pass != SC_FWD) return last ? x->last_b[v] : x->b[v];
    return o->mb == 0 && x->gathers ? first_forward(x, v, dev, start) : x->f[v];
}

static bool slot(fast *x, sweep *s, uint32_t dev)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP], n = x->p->n_stages;
    const sc_slot *o = &s->order[dev][s->pos[dev]];
    uint32_t v = o->chunk * pp + dev;
    size_t i = (size_t)v * r->ga + o->mb;
    bool bwd = o->pass != SC_FWD;
    double in = 0;
    if (!bwd && v > 0) in = s->done_f[i - r->ga];
    if (bwd) in = v + 1 < n ? s->done_b[i + r->ga] : s->done_f[i];
    if (in < 0) return false;
    if (bwd && n_run(x, v, true) == 0) { /* nothing to do, nobody waits */
        s->done_b[i] = in;
        s->pos[dev]++;
        return true;
    }
    double start = fmax(in, s->at[dev]);
    double end =
        start + duration(x, s, o, v, dev, start) + x->c[dev].send_slow_s;
    double sent = end;
    bool last = bwd ? v == 0 || n_run(x, v - 1, true) == 0 : v + 1 == n;
    if (!last && pp > 1) sent += x->c[dev].send_s;
    s->at[dev] = x->c[dev].send_blocks ? sent : end;
    if (bwd && (o->mb == r->ga - 1 || (x->beside && sc_run_reductions(r) > 1)))
        s->grad[dev] = fmax(s->grad[dev], end + x->tail[v]);
    (bwd ? s->done_b : s->done_f)[i] = sent;
    s->pos[dev]++;
    return true;
}

static sc_status sweep_new(const fast *x, sc_arena *a, sweep *s, sc_err *err)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP];
    size_t n = (size_t)x->p->n_stages * r->ga;
    *s = (sweep){SC_NEW_N(a, double, n),    SC_NEW_N(a, double, n),
                 SC_NEW_N(a, double, pp),   SC_NEW_N(a, double, pp),
                 SC_NEW_N(a, uint32_t, pp), SC_NEW_N(a, uint32_t, pp),
                 SC_NEW_N(a, sc_slot *, pp)};
    if (!s->done_f || !s->done_b || !s->at || !s->grad || !s->pos ||
        !s->n_order || !s->order)
        return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) s->done_f[i] = s->done_b[i] = -1;
    for (uint32_t dev = 0; dev < pp; dev++) {
        s->order[dev] =
            SC_NEW_N(a, sc_slot, sc_schedule_slots(r->schedule, r->vpp, r->ga));
        if (!s->order[dev]) return sc_error_nomem(err);
        s->n_order[dev] = sc_schedule_order(r->schedule, pp, r->vpp, r->ga, dev,
                                            r->forward_only, s->order[dev]);
    }
    return SC_OK;
}

/* After the pipeline: exchanges, tied weights, optimizer. */
static double finish(const fast *x, const sweep *s)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP];
    double norm = 0, after = 0, met = 0;
    for (uint32_t dev = 0; dev < pp; dev++) {
        double sum = x->c[dev].pack_s + x->c[dev].grad_s;
        double end = fmax(s->at[dev] + sum, s->grad[dev]);
        if (dev == 0 || dev == pp - 1) met = fmax(met, s->at[dev] + sum);
        norm = fmax(norm, end);
        after = fmax(after, x->c[dev].optimizer_s + x->c[dev].update_s +
                                x->c[dev].fixed_s);
    }
    if (pp > 1) norm = fmax(norm, met + x->c[0].tied_s);
    return norm + after;
}

static sc_status compose(fast *x, sc_arena *a, double *step_s, sc_err *err)
{
    const sc_run *r = &x->p->run;
    sweep s;
    durations(x);
    SC_TRY(sweep_new(x, a, &s, err));
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++)
            while (s.pos[dev] < s.n_order[dev] && slot(x, &s, dev))
                moved = true;
    }
    *step_s = finish(x, &s) * sc_plan_slow_factor(r);
    return SC_OK;
}

sc_status sc_predict_fast(const sc_plan *p, const sc_block *blocks, sc_arena *a,
                          double *step_s, sc_err *err)
{
    uint32_t n = p->n_stages, pp = p->run.size[SC_AX_PP];
    sc_arena_mark mark = sc_arena_save(a);
    double *d = SC_NEW_N(a, double, 4 * (size_t)n + pp);
    fast x = {.p = p,
              .blocks = blocks,
              .sigma = sc_plan_overlap(p, blocks),
              .c = SC_NEW_N(a, sc_step_costs, pp),
              .past = SC_NEW_N(a, past, pp)};
    if (!d || !x.c || !x.past) return sc_error_nomem(err);
    x.f = d;
    x.b = d + n;
    x.last_b = d + 2 * (size_t)n;
    x.tail = d + 3 * (size_t)n;
    x.gathered = d + 4 * (size_t)n;
    sc_status s = SC_OK;
    for (uint32_t dev = 0; dev < pp && s == SC_OK; dev++)
        s = sc_plan_step_costs(p, blocks, dev, &x.c[dev], err);
    if (s == SC_OK) s = compose(&x, a, step_s, err);
    sc_arena_restore(a, mark);
    return s;
}
