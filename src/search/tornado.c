/* SPDX-License-Identifier: Apache-2.0 */
/* tornado.c - searches again on machines one of whose properties has another
 * value. */
#include "search/search_tornado.h"

#include <math.h>
#include <stdlib.h>

typedef struct tornado {
    const sc_search_question *q;
    const sc_job *job; /* on the machine of `in` */
    const sc_inputs *in;
    sc_job same; /* of the row */
    double base_s;
    sc_arena own; /* of one search */
    sc_err *err;
} tornado;

/* Room for the last digit of a step that is also a limit. */
static const double rounding = 1 + 1e-9;

/* The fastest step on a machine, of those up to `most_s`; NaN: nothing fits. */
static sc_status fastest(tornado *x, const sc_hw *hw, double most_s,
                         double *out)
{
    sc_search_jobs jobs;
    sc_search_result f;
    sc_inputs in = *x->in;
    sc_search_options o = {.top = 1,
                           .threads = x->q->o->threads,
                           .keep_free = x->q->o->keep_free,
                           .goal = SC_GOAL_STEP_TIME,
                           .only_best = true};
    in.hw = hw;
    SC_TRY(sc_search_jobs_open(x->job, &in, x->q->given, x->q->n_given, &x->own,
                               &jobs, x->err));
    SC_TRY(sc_search_jobs_where(&jobs, x->q->where, x->q->n_where, &x->own,
                                x->err));
    if (isfinite(most_s))
        o.slowest =
            most_s * rounding / sc_search_tokens(sc_points_run(jobs.points));
    SC_TRY(sc_search_run(&jobs, &o, &x->own, &f, x->err));
    *out = f.n_best ? f.best[0].point.step_s : NAN;
    return SC_OK;
}

/* The same configuration; NaN: it leaves too little memory free. */
static sc_status again(tornado *x, const sc_hw *hw, double *out)
{
    sc_prediction *p = SC_NEW(&x->own, sc_prediction);
    if (!p) return sc_error_nomem(x->err);
    SC_TRY(sc_predict(&x->same, hw, x->in->model, x->in->sw, x->in->cost,
                      &x->own, p, x->err));
    *out = p->step_time_s;
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (p->memory[i].peak >
            (1 - x->q->o->keep_free) * p->memory[i].capacity)
            *out = NAN;
    return SC_OK;
}

static sc_status change(tornado *x, sc_hw_property what, double by,
                        double *searched, double *same)
{
    const sc_hw *hw;
    double again_s = NAN, found_s = NAN;
    sc_arena_reset(&x->own);
    SC_TRY(sc_hw_moved(x->in->hw, what, by, &x->own, &hw, x->err));
    SC_TRY(again(x, hw, &again_s));
    SC_TRY(fastest(x, hw, again_s, &found_s));
    *searched = found_s / x->base_s - 1;
    *same = again_s / x->base_s - 1;
    return SC_OK;
}

/* What makes that nothing fits comes first. */
static double effect(const sc_search_swing *s)
{
    if (isnan(s->less) || isnan(s->more)) return INFINITY;
    return fmax(fabs(s->less), fabs(s->more));
}

static int by_effect(const void *a, const void *b)
{
    double x = effect(a), y = effect(b);
    return (x < y) - (x > y);
}

static const double least = 1e-4;

static sc_status swings(tornado *x, double by, sc_search_swing *out,
                        uint32_t *n)
{
    *n = 0;
    for (int i = 0; i < (int)SC_N_HW_PROPERTIES; i++) {
        sc_search_swing s = {.name = sc_hw_property_names[i]};
        sc_hw_property what = (sc_hw_property)i;
        SC_TRY(change(x, what, 1 - by, &s.less, &s.same_less));
        SC_TRY(change(x, what, 1 + by, &s.more, &s.same_more));
        if (effect(&s) >= least) out[(*n)++] = s;
    }
    qsort(out, *n, sizeof *out, by_effect);
    return SC_OK;
}

sc_status sc_search_tornado(const sc_search_question *q, const sc_job *job,
                            const sc_search_jobs *jobs,
                            const sc_search_row *row, double by, sc_arena *a,
                            sc_search_swing out[SC_N_HW_PROPERTIES],
                            uint32_t *n, double *base_s, sc_err *err)
{
    tornado x = {.q = q, .job = job, .in = jobs->in, .err = err};
    sc_search_row_job(jobs, row, &x.same);
    x.same.engine = SC_ENGINE_FAST;
    x.same.brief = true;
    sc_arena_init(&x.own, a->limit);
    sc_status s = fastest(&x, x.in->hw, row->point.step_s, &x.base_s);
    if (s == SC_OK) s = swings(&x, by, out, n);
    sc_arena_free(&x.own);
    if (s == SC_OK) *base_s = x.base_s;
    return s;
}
