/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - evaluates jobs that leave nothing open. */
#include "predict/points.h"

#include "predict/fast.h"

#include <math.h>
#include <string.h>

struct sc_points {
    predict_memo *memo;
    sc_job job;     /* with its samples */
    sc_run checked; /* model and program before the job changes them */
    sc_run base;
    search_space given;
    predict_notes unread;
    sc_points_room *room;

    /* jobs that wait, and the one that was filled last */
    struct waiting {
        predict_shape shape;
        predict_eval eval;
        uint64_t order; /* fast_order_key() */
        bool taken;
    } job_of[SC_POINTS_WAIT + 1];

    uint32_t n, n_taken;
    sc_arena_mark last; /* before the last one */
    bool filled;
    /* of jobs that are predicted as a whole */
    bool whole;
    sc_inputs in;
    sc_arena *a;
};

/* Keys that change the division of a job and nothing that jobs share. */
static const char *const shared[] = {
    "tp", "pp",   "dp",        "cp",       "ep",      "vp",   "micro-batch",
    "sp", "fsdp", "recompute", "schedule", "offload", "hsdp", NULL};

bool sc_points_shares(const sc_software *sw, const char *key)
{
    if (strcmp(key, "zero") == 0) return !sw->zero1;
    for (const char *const *k = shared; *k; k++)
        if (strcmp(*k, key) == 0) return true;
    return false;
}

bool sc_points_divides_dp(const sc_key *k)
{
    return k->offset == offsetof(sc_job, hsdp);
}

void sc_points_room_init(sc_points_room *x, size_t limit_bytes)
{
    *x = (sc_points_room){.orders = {.bytes = 0}};
    sc_arena_init(&x->a, limit_bytes);
    sc_arena_init(&x->orders.a, limit_bytes);
}

void sc_points_room_free(sc_points_room *x)
{
    sc_arena_free(&x->a);
    sc_arena_free(&x->orders.a);
}

sc_status sc_points_new(const sc_job *job, const sc_inputs *in, sc_arena *a,
                        sc_points_room *room, sc_points **out, sc_err *err)
{
    sc_points *x = SC_NEW(a, sc_points);
    if (!x) return sc_error_nomem(err);
    sc_job *own = &x->job;
    *own = *job;
    x->room = room;
    x->unread.arena = a;
    x->base = (sc_run){
        .hw = in->hw, .model = in->model, .sw = in->sw, .cost = in->cost};
    SC_TRY(predict_searchable(job, in->model, a, err));
    SC_TRY(predict_check_fidelity(job, err));
    x->in = *in;
    x->a = a;
    x->whole = predict_apart(job, in->model);
    if (x->whole && predict_by_net(job, in->model)) {
        SC_TRY(points_whole_open(own, a, &x->base, &x->unread, err));
    } else {
        SC_TRY(predict_samples(own, a, &x->base, err));
        x->checked = x->base;
        SC_TRY(predict_open(own, a, &x->base, &x->memo, err));
        SC_TRY(predict_base(own, a, &x->base, &x->unread, err));
    }
    x->given = (search_space){
        .law = predict_law_of(own, x->base.sw), .base = x->base, .a = a};
    *out = x;
    return SC_OK;
}

const sc_run *sc_points_run(const sc_points *x)
{
    return &x->base;
}

const sc_law *sc_points_law(const sc_points *x)
{
    return &x->given.law;
}

/* FLOP per second of all devices at the rate that no kernel exceeds. */
static double all_peaks(const sc_run *r)
{
    double sum = 0;
    if (r->hw->n_groups == 0)
        return r->hw->n_devices *
               predict_best_peak(r->hw->device, r->precision);
    for (uint32_t i = 0; i < r->hw->n_devices; i++)
        sum += predict_best_peak(sc_hw_device_at(r->hw, i), r->precision);
    return sum;
}

/* Of jobs that are predicted as a whole: any of them executes at least the
 * operations of the model. */
static sc_status least_whole(sc_points *x, double *seconds, sc_err *err)
{
    double flops = 0;
    sc_point unread;
    sc_err why;
    sc_err_init(&why);
    sc_status s =
        points_whole_run(&x->job, &x->in, x->a, &unread, &flops, &why);
    if (s == SC_ENOMEM) return sc_error_nomem(err);
    if (s == SC_OK) *seconds = flops / all_peaks(&x->base);
    return SC_OK;
}

sc_status sc_points_least(sc_points *x, double *seconds, sc_err *err)
{
    sc_run r = x->base;
    double flops = 0;
    uint32_t n = r.model->n_layers;
    *seconds = 0;
    if (x->whole) return least_whole(x, seconds, err);
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) r.size[ax] = 1;
    r.mbs = r.ga = 1;
    r.recompute = SC_RC_NONE;
    r.rc_first = r.rc_group = 0;
    sc_segment *b = SC_NEW_N(x->memo->a, sc_segment, n);
    if (!b) return sc_error_nomem(err);
    SC_TRY(sc_segment_passes(&r, &x->memo->networks, x->memo->a, b, err));
    for (uint32_t l = 0; l < n; l++)
        flops += r.model->layer[l].repeat * b[l].flops;
    *seconds = flops * (double)r.gbs / all_peaks(&r);
    return SC_OK;
}

/* Forgets the job that was filled last and does not wait. */
static void forget(sc_points *x)
{
    sc_arena *a = &x->room->a;
    if (x->n == 0)
        sc_arena_reset(a);
    else if (x->filled)
        sc_arena_restore(a, x->last);
    x->filled = true;
    x->last = sc_arena_save(a);
}

sc_status sc_points_memory(sc_points *x, const sc_job *job, double most_full,
                           sc_point *out, sc_err *err)
{
    sc_run run;
    sc_job own = *job;
    search_space *g = &x->given;
    struct waiting *w = &x->job_of[x->n];
    double flops;
    sc_assert(x->n < SC_POINTS_WAIT && x->n_taken == 0);
    if (x->whole) {
        SC_TRY(points_whole_run(job, &x->in, x->a, out, &flops, err));
        w->eval.step_s = out->step_s;
        return SC_OK;
    }
    forget(x);
    own.seq = x->job.seq;
    own.mean_tokens = x->job.mean_tokens;
    own.document_tokens = x->job.document_tokens;
    SC_TRY(predict_check(&own, x->checked.hw, x->checked.model, x->checked.sw,
                         err));
    g->job = &own;
    g->err = err;
    sc_err_init(&g->refused);
    /* the job of sc_points_new() may have had another schedule */
    g->base.schedule = x->base.order ? x->base.schedule
                       : job->schedule > SC_SCH_INTERLEAVED
                           ? (sc_schedule)job->schedule
                           : SC_SCH_1F1B;
    SC_TRY(predict_given(g, &run));
    SC_TRY(predict_fill(&run, most_full, x->memo, &x->room->a, &w->shape,
                        &w->eval, err));
    *out = (sc_point){.peak = w->eval.peak,
                      .full = w->eval.full,
                      .fits = w->eval.fits && !w->shape.enough};
    return SC_OK;
}

bool sc_points_whole(const sc_points *x)
{
    return x->whole;
}

double sc_points_shortest(const sc_points *x)
{
    return predict_shortest(&x->job_of[x->n].shape);
}

uint32_t sc_points_wait(sc_points *x)
{
    struct waiting *w = &x->job_of[x->n];
    w->order = x->whole ? 0 : fast_order_key(&w->shape.plan.run);
    w->taken = false;
    x->filled = false;
    return x->n++;
}

uint32_t sc_points_take(sc_points *x, uint32_t which[SC_POINTS_TOGETHER])
{
    uint32_t n = 0;
    uint64_t order = 0;
    for (uint32_t i = 0; i < x->n && n < SC_POINTS_TOGETHER; i++) {
        struct waiting *w = &x->job_of[i];
        if (w->taken || (n > 0 && w->order != order)) continue;
        order = w->order;
        w->taken = true;
        which[n++] = i;
    }
    x->n_taken += n;
    if (n == 0) x->n = x->n_taken = 0;
    return n;
}

/* The steps of jobs that were predicted as a whole are known. */
static void whole_steps(const sc_points *x, uint32_t n, const uint32_t *which,
                        const double *beat_s, sc_point *const *inout)
{
    for (uint32_t i = 0; i < n; i++) {
        inout[i]->step_s = x->job_of[which[i]].eval.step_s;
        inout[i]->slower = beat_s[i] > 0 && inout[i]->step_s >= beat_s[i];
    }
}

sc_status sc_points_steps(sc_points *x, uint32_t n, const uint32_t *which,
                          const double *beat_s, sc_point *const *inout,
                          sc_err *err)
{
    const predict_shape *shape[SC_POINTS_TOGETHER] = {NULL};
    sc_point *of[SC_POINTS_TOGETHER];
    double step_s[SC_POINTS_TOGETHER];
    uint32_t m = 0;
    if (x->whole) {
        whole_steps(x, n, which, beat_s, inout);
        return SC_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        shape[m] = &x->job_of[which[i]].shape;
        of[m] = inout[i];
        inout[i]->step_s = beat_s[i] > 0 ? predict_shortest(shape[m]) : 0;
        inout[i]->slower = beat_s[i] > 0 && inout[i]->step_s >= beat_s[i];
        m += !inout[i]->slower;
    }
    SC_TRY(predict_steps(shape, m, &x->room->orders, &x->room->a, step_s, err));
    for (uint32_t i = 0; i < m; i++) of[i]->step_s = step_s[i];
    return SC_OK;
}
