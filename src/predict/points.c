/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - evaluates jobs that leave nothing open. */
#include "predict/fast.h"
#include "predict/predict_points.h"
#include "predict/space_mesh.h"

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

static sc_status refused(const char *what, const char *name, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file("--model"),
                    "use `stepcast predict` for each choice",
                    "%.60s is %s, whose choices are not searched", name, what);
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
    if (predict_by_net(job, in->model))
        return refused("a network of operators", in->model->name, err);
    SC_TRY(predict_samples(own, a, &x->base, err));
    x->checked = x->base;
    SC_TRY(predict_open(own, a, &x->base, &x->memo, err));
    SC_TRY(predict_base(own, a, &x->base, &x->unread, err));
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

sc_status sc_points_least(sc_points *x, double *seconds, sc_err *err)
{
    sc_run r = x->base;
    double flops = 0;
    uint32_t n = r.model->n_layers;
    *seconds = 0;
    if (r.hw->n_groups > 0) return SC_OK;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) r.size[ax] = 1;
    r.mbs = r.ga = 1;
    r.recompute = SC_RC_NONE;
    r.rc_first = r.rc_group = 0;
    sc_segment *b = SC_NEW_N(x->memo->a, sc_segment, n);
    if (!b) return sc_error_nomem(err);
    SC_TRY(sc_segment_passes(&r, &x->memo->networks, x->memo->a, b, err));
    for (uint32_t l = 0; l < n; l++)
        flops += r.model->layer[l].repeat * b[l].flops;
    *seconds = flops * (double)r.gbs / r.hw->n_devices /
               predict_best_peak(r.hw->device, r.precision);
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
    sc_assert(x->n < SC_POINTS_WAIT && x->n_taken == 0);
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

uint32_t sc_points_wait(sc_points *x)
{
    struct waiting *w = &x->job_of[x->n];
    w->order = fast_order_key(&w->shape.plan.run);
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

sc_status sc_points_steps(sc_points *x, uint32_t n, const uint32_t *which,
                          const double *beat_s, sc_point *const *inout,
                          sc_err *err)
{
    const predict_shape *shape[SC_POINTS_TOGETHER] = {NULL};
    sc_point *of[SC_POINTS_TOGETHER];
    double step_s[SC_POINTS_TOGETHER];
    uint32_t m = 0;
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
