/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c - searches over numbers of devices. */
#include "search/search_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sizes {
    sc_search_question q;
    sc_arena *a;
    sc_err *err;
    sc_search_sizes *out;
    uint32_t cap;
    double device_s; /* a lower bound of devices times the time of a step */
} sizes;

static bool limited(const sizes *x)
{
    return x->q.limits->until_s > 0 || x->q.limits->usd > 0;
}

/* The longest time of a token that may meet the limits on a machine; 0: any. */
static sc_status slowest(const sizes *x, const sc_search_machine *s,
                         sc_arena *a, double *out)
{
    SC_TRY(sc_search_longest(&x->q, s, a, out, x->err));
    if (isinf(*out)) *out = 0;
    return SC_OK;
}

/* ---- one size ------------------------------------------------------------- */

static sc_status open_size(sizes *x, uint64_t units, sc_search_machine *s,
                           bool *legal, sc_arena *a)
{
    sc_err why;
    sc_job job = *x->q.job;
    job.cluster = sc_cluster_resized(job.cluster, units, a);
    if (!job.cluster) return sc_error_nomem(x->err);
    SC_TRY(sc_search_machine_open(&x->q, &job, a, s, legal, &why, x->err));
    s->units = units;
    return SC_OK;
}

/* Searches for the fastest point that meets the limits. */
static sc_status fastest(sizes *x, sc_search_machine *s, sc_arena *a)
{
    sc_search_options o = *x->q.o;
    SC_TRY(slowest(x, s, a, &o.slowest));
    if (o.slowest > 0 && x->device_s / s->in.hw->n_devices > o.slowest)
        return SC_OK;
    o.goal = SC_GOAL_DAYS;
    o.top = 1;
    o.only_best = true;
    SC_TRY(sc_search_run(&s->jobs, &o, a, &s->found, x->err));
    if (s->found.left > 0) x->out->proved = false;
    SC_TRY(sc_search_machine_keep(&x->q, &o, s, a, x->err));
    return sc_search_machine_best(&x->q, s, a, x->err);
}

/* With limits the fastest point decides, which is the cheapest too unless the
 * machine is bought. */
static sc_status search_size(sizes *x, sc_search_machine *s)
{
    sc_search_options o = *x->q.o;
    if (limited(x)) o.goal = SC_GOAL_DAYS;
    SC_TRY(sc_search_run(&s->jobs, &o, x->a, &s->found, x->err));
    if (s->found.left > 0) x->out->proved = false;
    SC_TRY(sc_search_machine_best(&x->q, s, x->a, x->err));
    if (s->meets || x->q.limits->usd <= 0 || !sc_job_buys(&s->job))
        return SC_OK;
    sc_search_machine other = *s;
    other.found.n_best = 0;
    SC_TRY(fastest(x, &other, x->a));
    if (!other.meets) return SC_OK;
    s->found.best = other.found.best;
    s->found.n_best = other.found.n_best;
    s->best = other.best;
    s->meets = true;
    return SC_OK;
}

static int by_units(const void *a, const void *b)
{
    const sc_search_machine *const *x = a, *const *y = b;
    return (*x)->units < (*y)->units ? -1 : (*x)->units > (*y)->units;
}

static sc_status add_size(sizes *x, uint64_t units)
{
    sc_search_sizes *out = x->out;
    sc_search_machine *s = SC_NEW(x->a, sc_search_machine);
    bool legal;
    if (!s) return sc_error_nomem(x->err);
    SC_TRY(open_size(x, units, s, &legal, x->a));
    if (!legal) return SC_OK;
    SC_TRY(search_size(x, s));
    sc_search_machine **all = sc_grow(x->a, out->size, out->n, &x->cap, 16,
                                      sizeof(sc_search_machine *));
    if (!all) return sc_error_nomem(x->err);
    out->size = all;
    all[out->n++] = s;
    qsort(all, out->n, sizeof(sc_search_machine *), by_units);
    return SC_OK;
}

/* ---- the fewest ----------------------------------------------------------- */

static const sc_search_machine *first_that_meets(const sc_search_sizes *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->size[i]->meets) return s->size[i];
    return NULL;
}

static bool has(const sc_search_sizes *s, uint64_t units)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->size[i]->units == units) return true;
    return false;
}

/* Whether some point of a number of units meets the limits. */
static sc_status any_meets(sizes *x, uint64_t units, sc_arena *a, bool *yes)
{
    sc_search_machine s;
    bool legal;
    SC_TRY(open_size(x, units, &s, &legal, a));
    if (legal) SC_TRY(fastest(x, &s, a));
    *yes = legal && s.meets;
    return SC_OK;
}

/* Looks at all numbers that were not tried, below the first that meets. */
static sc_status fill(sizes *x, uint64_t most)
{
    sc_arena own;
    sc_status s = SC_OK;
    sc_arena_init(&own, x->a->limit);
    for (uint64_t u = 1; u < most && s == SC_OK; u++) {
        bool yes;
        if (has(x->out, u)) continue;
        sc_arena_reset(&own);
        s = any_meets(x, u, &own, &yes);
        if (s != SC_OK || !yes) continue;
        s = add_size(x, u);
        break;
    }
    sc_arena_free(&own);
    return s;
}

/* The rows of a size that meet the limits: the first ones, as the fastest. */
static sc_status trim(const sizes *x, sc_search_machine *s)
{
    const sc_run *run = &s->best->run;
    double most;
    SC_TRY(slowest(x, s, x->a, &most));
    const sc_search_row *row = s->found.best;
    uint32_t n = 1; /* it is known to meet them */
    most *= row->score / row->point.step_s * sc_search_tokens(run);
    while (!sc_job_buys(&s->job) && n < s->found.n_best && row[n].score <= most)
        n++;
    s->found.n_best = n;
    return SC_OK;
}

/* The best rows that meet the limits, by the goal; by time, if there is no time
 * left to search for them. */
static sc_status answer(sizes *x)
{
    sc_search_options o = *x->q.o;
    sc_search_machine *s = NULL;
    for (uint32_t i = 0; i < x->out->n && !s; i++)
        if (x->out->size[i]->meets) s = x->out->size[i];
    if (!s) return SC_OK;
    sc_search_machine *own = SC_NEW(x->a, sc_search_machine);
    if (!own) return sc_error_nomem(x->err);
    *own = *s;
    SC_TRY(slowest(x, s, x->a, &o.slowest));
    x->out->chosen = own;
    x->out->goal = o.goal;
    SC_TRY(sc_search_run(&s->jobs, &o, x->a, &own->found, x->err));
    SC_TRY(sc_search_machine_keep(&x->q, &o, own, x->a, x->err));
    if (own->found.left > 0) {
        *own = *s;
        x->out->goal = SC_GOAL_DAYS;
        SC_TRY(trim(x, own));
    }
    return sc_search_machine_best(&x->q, own, x->a, x->err);
}

/* Without limits the size with the best row; of equal ones the smallest. */
static const sc_search_machine *best_of(const sc_search_sizes *s)
{
    const sc_search_machine *best = NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        const sc_search_result *f = &s->size[i]->found;
        if (f->n_best &&
            (!best || f->best[0].score < best->found.best[0].score))
            best = s->size[i];
    }
    return best;
}

/* ---- numbers of units ------------------------------------------------------ */

/* 1, 2, 3, 4, 6, 8, 12 ... and `most`. */
static sc_status try_usual(sizes *x, uint64_t most)
{
    for (uint64_t p = 1; p <= most; p *= 2) {
        SC_TRY(add_size(x, p));
        if (p > 1 && p / 2 * 3 < most) SC_TRY(add_size(x, p / 2 * 3));
        x->out->n_tried += p > 1 && p / 2 * 3 < most ? 2 : 1;
        if (p < most && 2 * p > most) {
            SC_TRY(add_size(x, most));
            x->out->n_tried++;
        }
    }
    return SC_OK;
}

static sc_status check(sizes *x, uint64_t *units)
{
    *units = sc_cluster_units(x->q.job->cluster);
    if (*units == 0)
        return sc_error(
            x->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file("--nodes"),
            "give a cluster with a number: dgx-h100:64",
            "the number of nodes of %.60s can't be changed", x->q.job->cluster);
    return sc_search_goal_check(x->q.o->goal, x->q.limits, x->q.job,
                                x->q.in->hw, x->err);
}

static sc_status none_legal(sizes *x)
{
    return sc_error(x->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--nodes"),
                    "give other numbers, or leave out an axis; the global "
                    "batch stays the same",
                    "the job can't be divided over any of %u numbers of nodes",
                    x->out->n_tried);
}

sc_status sc_search_sizes_run(const sc_search_question *q,
                              const sc_machine_axis *nodes, sc_arena *a,
                              sc_search_sizes *out, sc_err *err)
{
    uint32_t n_units = nodes->n;
    sc_job own = *q->job;
    sc_points *points;
    uint64_t most;
    sizes x = {.q = *q, .a = a, .err = err, .out = out};
    x.q.job = &own;
    *out = (sc_search_sizes){.proved = n_units == 0, .goal = q->o->goal};
    SC_TRY(check(&x, &most));
    SC_TRY(sc_search_jobs_batch(q->job, q->in, a, &own, &points, err));
    const sc_run *run = sc_points_run(points);
    SC_TRY(sc_points_least(points, &x.device_s, err));
    x.device_s *= q->in->hw->n_devices / sc_search_tokens(run);
    for (uint32_t i = 0; i < q->n_given; i++) /* they may change the bound */
        if (!sc_points_shares(run->sw, q->given[i].key->name)) x.device_s = 0;
    for (uint32_t i = 0; i < n_units; i++)
        SC_TRY(add_size(&x, strtoull(nodes->value[i], NULL, 10)));
    out->n_tried = n_units;
    if (n_units == 0) SC_TRY(try_usual(&x, most));
    if (out->n == 0) return none_legal(&x);
    if (!limited(&x)) {
        out->chosen = best_of(out);
        return SC_OK;
    }
    const sc_search_machine *first = first_that_meets(out);
    if (n_units == 0) SC_TRY(fill(&x, first ? first->units : most));
    return answer(&x);
}
