/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - a search on another machine than that of the job. */
#include "search/search_front.h"

#include <math.h>

sc_status sc_search_longest(const sc_search_question *q,
                            const sc_search_machine *m, sc_arena *a,
                            double *out, sc_err *err)
{
    const sc_search_limits *l = q->limits;
    double usd_per_s, tokens = (double)q->job->tokens;
    *out = INFINITY;
    if (l->until_s > 0) *out = l->until_s / tokens;
    if (l->usd <= 0) return SC_OK;
    SC_TRY(sc_predict_least_usd(&m->job, sc_points_run(m->jobs.points), a,
                                &usd_per_s, err));
    *out = fmin(*out, l->usd / (usd_per_s * tokens));
    return SC_OK;
}

static bool meets(const sc_search_limits *l, const sc_prediction *p)
{
    const double day = 86400, rounding = 1 + 1e-12;
    if (!p) return false;
    if (l->until_s > 0 && p->whole_run.days * day > l->until_s * rounding)
        return false;
    return !(l->usd > 0 && p->whole_run.cost_usd > l->usd * rounding);
}

/* What the objective, limits and the front need to know of a machine. */
static sc_status check(const sc_search_question *q, const sc_search_machine *m,
                       sc_err *err)
{
    bool money = q->dims >> SC_DIM_MONEY & 1;
    return sc_search_goal_check(money ? SC_GOAL_COST : q->o->goal, q->limits,
                                &m->job, m->in.hw, err);
}

sc_status sc_search_machine_open(const sc_search_question *q, const sc_job *job,
                                 sc_arena *a, sc_search_machine *out,
                                 bool *legal, sc_err *why, sc_err *err)
{
    sc_err_init(why);
    *out = (sc_search_machine){.job = *job, .in = *q->in};
    *legal = false;
    sc_status s = sc_job_on_machine(&out->job, a, &out->in, why);
    if (s == SC_OK) s = check(q, out, why);
    if (s == SC_OK)
        s = sc_search_jobs_open(&out->job, &out->in, q->given, q->n_given, a,
                                &out->jobs, why);
    if (s == SC_OK)
        s = sc_search_jobs_where(&out->jobs, q->where, q->n_where, a, why);
    *legal = s == SC_OK;
    if (s == SC_OK || s == SC_EINPUT) return SC_OK;
    *err = *why;
    return s;
}

static sc_status predict_row(const sc_search_machine *m,
                             const sc_search_row *row, sc_arena *a,
                             sc_prediction *out, sc_err *err)
{
    sc_job job;
    sc_search_row_job(&m->jobs, row, &job);
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    return sc_predict(&job, m->in.hw, m->in.model, m->in.sw, m->in.cost, a, out,
                      err);
}

sc_status sc_search_machine_best(const sc_search_question *q,
                                 sc_search_machine *m, sc_arena *a, sc_err *err)
{
    sc_prediction *p = SC_NEW(a, sc_prediction);
    if (!p) return sc_error_nomem(err);
    m->best = NULL;
    if (m->found.n_best == 0) return SC_OK;
    SC_TRY(predict_row(m, &m->found.best[0], a, p, err));
    m->best = p;
    m->meets = meets(q->limits, p);
    return SC_OK;
}

/* Rows of `f` that meet the limits. */
static sc_status keep(const sc_search_question *q, const sc_search_machine *m,
                      sc_search_result *f, sc_arena *a, sc_err *err)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->n_best; i++) {
        sc_prediction p;
        sc_arena_mark mark = sc_arena_save(a);
        SC_TRY(predict_row(m, &f->best[i], a, &p, err));
        bool meet = meets(q->limits, &p);
        sc_arena_restore(a, mark);
        if (meet) f->best[kept++] = f->best[i];
    }
    f->n_best = kept;
    return SC_OK;
}

/* The electricity of a machine that is bought makes some steps cheaper than
 * shorter ones.  Only if the cheapest meets the limits does any. */
static sc_status any_meets(const sc_search_question *q,
                           const sc_search_options *o,
                           const sc_search_machine *m, sc_arena *a, bool *yes,
                           sc_err *err)
{
    sc_search_result f;
    sc_search_options own = *o;
    own.goal = SC_GOAL_COST;
    own.top = 1;
    own.only_best = true;
    SC_TRY(sc_search_run(&m->jobs, &own, a, &f, err));
    SC_TRY(keep(q, m, &f, a, err));
    *yes = f.n_best > 0;
    return SC_OK;
}

sc_status sc_search_machine_keep(const sc_search_question *q,
                                 const sc_search_options *o,
                                 sc_search_machine *m, sc_arena *a, sc_err *err)
{
    const sc_search_limits *l = q->limits;
    sc_search_result *f = &m->found;
    sc_search_options own = *o;
    bool bought = l->usd > 0 && sc_job_buys(&m->job), more;
    if (!bought && (!sc_job_fails(&m->job) || (l->until_s <= 0 && l->usd <= 0)))
        return SC_OK;
    bool all = f->n_best < o->top;
    SC_TRY(keep(q, m, f, a, err));
    if (!bought || all || f->n_best > 0 || f->left > 0) return SC_OK;
    SC_TRY(any_meets(q, o, m, a, &more, err));
    own.only_best = true;
    while (more) {
        sc_search_result r;
        own.top *= 8;
        SC_TRY(sc_search_run(&m->jobs, &own, a, &r, err));
        more = r.n_best == own.top && r.left == 0;
        SC_TRY(keep(q, m, &r, a, err));
        if (r.n_best == 0) continue;
        f->best = r.best;
        f->n_best = r.n_best < o->top ? r.n_best : o->top;
        more = false;
    }
    return SC_OK;
}
