/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - evaluates jobs that leave nothing open. */
#include "predict/points.h"

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
    points_ends ends;

    /* jobs that wait, and the one that was filled last */
    points_job job_of[SC_POINTS_WAIT + 1];
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
    sc_arena_init(&x->kept, limit_bytes);
}

void sc_points_room_free(sc_points_room *x)
{
    sc_arena_free(&x->a);
    sc_arena_free(&x->orders.a);
    sc_arena_free(&x->kept);
}

/* Prices of exchanges that a room keeps. */
#define PRICES 2048

/* Prices of exchanges stay in the room when the first axes change. */
static sc_status open_memo(sc_points *x, sc_err *err)
{
    sc_points_room *room = x->room;
    sc_coll_memo *prices = NULL;
    if (room && !room->prices)
        room->prices =
            sc_coll_memo_new(&room->kept, x->base.cost, x->base.hw, PRICES);
    if (room && !room->prices) return sc_error_nomem(err);
    if (room) prices = room->prices;
    return predict_open(&x->job, prices, x->a, &x->base, &x->memo, err);
}

static sc_status keep_end(sc_points *x, const sc_job *job, const sc_run *base,
                          sc_err *err)
{
    points_ends *e = &x->ends;
    uint32_t cap = e->cap;
    e->of = sc_grow(x->a, e->of, e->n, &e->cap, 4, sizeof *e->of);
    if (e->cap != cap) e->seen = SC_NEW_N(x->a, uint32_t, e->cap);
    if (!e->of || !e->seen) return sc_error_nomem(err);
    points_end *own = &e->of[e->n];
    *own = (points_end){*job, *base, 0};
    own->base.zero = job->zero > 0 ? (int)job->zero : 0;
    while (e->of[own->like].base.zero != own->base.zero ||
           !sc_run_same_states(&e->of[own->like].base, &own->base))
        own->like++;
    e->n++;
    return SC_OK;
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
    SC_TRY(predict_check_run(job, a, err));
    x->in = *in;
    x->a = a;
    x->whole = predict_apart(job, in->model);
    if (x->whole && predict_by_net(job, in->model)) {
        SC_TRY(points_whole_open(own, a, &x->base, &x->unread, err));
    } else {
        SC_TRY(predict_samples(own, a, &x->base, err));
        x->checked = x->base;
        SC_TRY(open_memo(x, err));
        SC_TRY(predict_base(own, a, &x->base, &x->unread, err));
    }
    x->given = (search_space){
        .law = predict_law_of(own, x->base.sw), .base = x->base, .a = a};
    *out = x;
    return keep_end(x, own, &x->base, err);
}

sc_status sc_points_add_end(sc_points *x, const sc_job *job, bool zero,
                            uint32_t *which, sc_err *err)
{
    sc_run r = x->checked;
    sc_job own = x->job;
    *which = x->ends.n;
    x->ends.zero = zero;
    points_copy_end(job, zero, &own);
    if (x->whole) return keep_end(x, &own, &x->base, err);
    SC_TRY(predict_open(&own, NULL, x->a, &r, NULL, err));
    SC_TRY(predict_base(&own, x->a, &r, &x->unread, err));
    /* equal programs share what the memo has of them */
    for (uint32_t i = 0; i < x->ends.n; i++)
        if (predict_same_program(x->ends.of[i].base.sw, r.sw))
            r.sw = x->ends.of[i].base.sw;
    return keep_end(x, &own, &r, err);
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

/* What decides whether the layers of a job are priced. */
typedef struct question {
    sc_points *x;
    points_job *job;
    const sc_points_limit *limit;
    uint32_t n;
    sc_point_end *inout;
} question;

static sc_status all_memory(question *q, bool *any, sc_err *err)
{
    sc_points *x = q->x;
    points_job *j = q->job;
    sc_arena *a = &x->room->a;
    const predict_shape *s = &j->shape;
    j->group = SC_NEW_N(a, memory_group, s->plan.run.size[SC_AX_PP]);
    if (!j->group) return sc_error_nomem(err);
    SC_TRY(predict_memory_groups(&s->plan, s->segments, a, j->group,
                                 &j->n_groups, err));
    SC_TRY(points_cut_of(&x->ends, x->memo, j, a, err));
    points_memory_of(&x->ends, j, predict_memory_scale(x->memo),
                     q->limit->most_full, q->n, q->inout, any);
    return SC_OK;
}

/* Marks the ends of a job that fits if no step can be short enough. */
static bool too_slow(question *q)
{
    const sc_points_limit *of = q->limit;
    if (!of->slow) return false;
    double least_s = predict_shortest_unpriced(q->x->memo, &q->job->shape);
    bool slow = least_s > 0 && of->slow(of->with, least_s, q->n, q->inout);
    for (uint32_t i = 0; i < q->n && slow; i++) {
        sc_point *p = &q->inout[i].point;
        p->slower = p->fits && p->full <= of->most_full;
        p->step_s = least_s;
    }
    return slow;
}

/* A job that fits with no end if its activations are the least does not fit
 * with its own. */
static sc_status hopeless(predict_shape *s, void *with, bool *enough,
                          sc_err *err)
{
    question *q = with;
    bool any;
    sc_assert(s == &q->job->shape);
    SC_TRY(all_memory(q, &any, err));
    for (uint32_t i = 0; i < q->n && !any; i++) q->inout[i].point.fits = false;
    *enough = !any || too_slow(q);
    return SC_OK;
}

static sc_status whole_memory(sc_points *x, const sc_job *job, uint32_t n,
                              sc_point_end *inout, sc_err *err)
{
    double flops;
    for (uint32_t i = 0; i < n; i++) {
        sc_job own = *job;
        if (x->ends.n > 1)
            points_copy_end(&x->ends.of[inout[i].end].job, x->ends.zero, &own);
        SC_TRY(
            points_whole_run(&own, &x->in, x->a, &inout[i].point, &flops, err));
    }
    return SC_OK;
}

void sc_points_task(sc_points *x)
{
    if (x->memo) x->memo->task++;
}

sc_status sc_points_memory(sc_points *x, const sc_job *job,
                           const sc_points_limit *limit, uint32_t n,
                           sc_point_end *inout, sc_err *err)
{
    sc_run run;
    sc_job own = *job;
    search_space *g = &x->given;
    points_job *j = &x->job_of[x->n];
    bool any;
    sc_assert(x->n < SC_POINTS_WAIT && x->n_taken == 0);
    if (x->whole) return whole_memory(x, job, n, inout, err);
    forget(x);
    own.seq = x->job.seq;
    own.mean_tokens = x->job.mean_tokens;
    own.document_tokens = x->job.document_tokens;
    if (x->ends.n > 1) points_copy_end(&x->ends.of[0].job, x->ends.zero, &own);
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
    *j = (points_job){.end = 0, .zero = run.zero};
    question q = {x, j, limit, n, inout};
    bool asks = limit->slow || limit->most_full < INFINITY;
    SC_TRY(predict_shape_of(&run, x->memo, &x->room->a, asks ? hopeless : NULL,
                            &q, &j->shape, err));
    return j->shape.enough ? SC_OK : all_memory(&q, &any, err);
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
    points_job *j = &x->job_of[x->n];
    j->order = x->whole ? 0 : fast_order_key(&j->shape.plan.run);
    j->taken = false;
    x->filled = false;
    return x->n++;
}

uint32_t sc_points_take(sc_points *x, uint32_t which[SC_POINTS_TOGETHER])
{
    uint32_t n = 0;
    uint64_t order = 0;
    for (uint32_t i = 0; i < x->n && n < SC_POINTS_TOGETHER; i++) {
        points_job *j = &x->job_of[i];
        if (j->taken || (n > 0 && j->order != order)) continue;
        order = j->order;
        j->taken = true;
        which[n++] = i;
    }
    x->n_taken += n;
    if (n == 0) x->n = x->n_taken = 0;
    return n;
}

/* ---- steps --------------------------------------------------------------- */

/* Jobs whose passes run together, each with the ends that have the same
 * passes. */
typedef struct lanes {
    sc_points *x;
    uint32_t n;

    struct lane {
        points_job *job;
        predict_shape *shape;
        fast_engine *engine;
        uint32_t n;
        sc_point_end **end; /* [n] */
    } lane[FAST_LANES];
} lanes;

/* The longest time that passes of a lane may take for one of its ends. */
static sc_status limit_of(sc_points *x, const struct lane *k, double *most,
                          sc_err *err)
{
    *most = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        const sc_point_end *e = k->end[i];
        double after = 0, beat_s = e->beat_s > 0 ? e->beat_s : INFINITY;
        if (e->beat_s > 0)
            SC_TRY(points_least_after(&x->ends, x->memo, k->job, e->end, &after,
                                      err));
        *most = fmax(*most, beat_s - after);
    }
    return SC_OK;
}

static void late(const struct lane *k)
{
    double slow = sc_plan_slow_factor(&k->engine->p->run);
    for (uint32_t i = 0; i < k->n; i++) {
        k->end[i]->point.step_s = k->engine->late_s * slow;
        k->end[i]->point.slower = true;
    }
}

static sc_status run_lanes(lanes *l, sc_err *err)
{
    sc_points *x = l->x;
    sc_arena *a = &x->room->a;
    fast_engine *engine[FAST_LANES];
    if (l->n == 0) return SC_OK;
    for (uint32_t i = 0; i < l->n; i++) {
        struct lane *k = &l->lane[i];
        bool like = i > 0 && l->lane[i - 1].job == k->job;
        SC_TRY(fast_engine_passes(k->shape, like ? engine[i - 1] : NULL, a,
                                  &k->engine, err));
        engine[i] = k->engine;
        double most;
        SC_TRY(limit_of(x, k, &most, err));
        fast_engine_limit(k->engine, most);
    }
    SC_TRY(fast_passes(engine, l->n, &x->room->orders, a, err));
    for (uint32_t i = 0; i < l->n; i++) {
        struct lane *k = &l->lane[i];
        if (k->engine->late_s > 0) {
            late(k);
            continue;
        }
        SC_TRY(points_steps_of(&x->ends, x->memo, k->job, k->engine, k->n,
                               k->end, a, err));
    }
    l->n = 0;
    return SC_OK;
}

/* Whether the passes of a job and exchanges beside them are the same with both
 * ends. */
static bool same_passes(const sc_points *x, uint32_t a, uint32_t b)
{
    const sc_run *p = &x->ends.of[a].base, *q = &x->ends.of[b].base;
    return (!x->ends.zero || p->zero == q->zero) && sc_run_same_passes(p, q);
}

static sc_status shape_with(sc_points *x, points_job *j, uint32_t end,
                            predict_shape **out, sc_err *err)
{
    sc_arena *a = &x->room->a;
    uint32_t n = sc_run_segments(&j->shape.plan.run);
    *out = &j->shape;
    if (end == j->end) return SC_OK;
    predict_shape *s = SC_NEW(a, predict_shape);
    if (!s) return sc_error_nomem(err);
    *s = j->shape;
    s->segments = SC_RAW_N(a, sc_segment, n);
    if (!s->segments) return sc_error_nomem(err);
    memcpy(s->segments, j->shape.segments, n * sizeof *s->segments);
    *out = s;
    return points_set_end(&x->ends, x->memo, j, end, s, err);
}

/* Adds those ends of a job that have the passes of the first of `n`, and moves
 * the others to the front; returns their number. */
static sc_status add_lane(lanes *l, points_job *j, uint32_t *n,
                          sc_point_end **end, sc_err *err)
{
    sc_points *x = l->x;
    struct lane *k = &l->lane[l->n];
    uint32_t first = end[0]->end, rest = 0;
    *k = (struct lane){.job = j};
    k->end = SC_RAW_N(&x->room->a, sc_point_end *, *n);
    if (!k->end) return sc_error_nomem(err);
    for (uint32_t i = 0; i < *n; i++)
        if (same_passes(x, first, end[i]->end))
            k->end[k->n++] = end[i];
        else
            end[rest++] = end[i];
    *n = rest;
    l->n++;
    return shape_with(x, j, first, &k->shape, err);
}

/* Whether the step of a job with this end can be short enough. */
static sc_status can_be_short(sc_points *x, points_job *j, double passes_s,
                              sc_point_end *e, sc_err *err)
{
    double after;
    e->point.step_s = passes_s;
    e->point.slower = passes_s >= e->beat_s;
    if (e->point.slower) return SC_OK;
    SC_TRY(points_least_after(&x->ends, x->memo, j, e->end, &after, err));
    e->point.step_s = passes_s + after;
    e->point.slower = e->point.step_s >= e->beat_s;
    return SC_OK;
}

/* Adds the ends of a job whose steps can be short enough. */
static sc_status add_job(lanes *l, points_job *j, const sc_point_ends *of,
                         sc_err *err)
{
    uint32_t n = 0;
    double passes_s = -1;
    sc_point_end **end = SC_RAW_N(&l->x->room->a, sc_point_end *, of->n);
    if (!end && of->n) return sc_error_nomem(err);
    for (uint32_t i = 0; i < of->n; i++) {
        sc_point_end *e = &of->of[i];
        e->point.slower = false;
        if (e->beat_s > 0) {
            if (passes_s < 0) passes_s = predict_shortest(&j->shape);
            SC_TRY(can_be_short(l->x, j, passes_s, e, err));
        }
        if (!e->point.slower) end[n++] = e;
    }
    while (n > 0) {
        SC_TRY(add_lane(l, j, &n, end, err));
        if (l->n == FAST_LANES) SC_TRY(run_lanes(l, err));
    }
    return SC_OK;
}

sc_status sc_points_steps(sc_points *x, uint32_t n, const uint32_t *which,
                          const sc_point_ends *inout, sc_err *err)
{
    lanes l = {.x = x};
    sc_arena_mark mark = sc_arena_save(&x->room->a);
    sc_status s = SC_OK;
    for (uint32_t i = 0; i < n && s == SC_OK; i++) {
        if (!x->whole) {
            s = add_job(&l, &x->job_of[which[i]], &inout[i], err);
            continue;
        }
        /* they are known since memory was asked for */
        for (uint32_t k = 0; k < inout[i].n; k++) {
            sc_point_end *e = &inout[i].of[k];
            e->point.slower = e->beat_s > 0 && e->point.step_s >= e->beat_s;
        }
    }
    if (s == SC_OK) s = run_lanes(&l, err);
    sc_arena_restore(&x->room->a, mark);
    return s;
}
