/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - evaluates the points of a space in tasks.
 *
 * A task is all points of one mesh.  Tasks run in rounds; each starts with what
 * was known before its round, so that no result depends on the number of
 * threads or on which of them is faster.
 */
#include "search/worker.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Most tasks of a round, and of all. */
enum { ROUND = 64, TASKS_MOST = 1 << 18 };

/* Points beyond which a search needs a limit of time. */
#define POINTS_MOST 100000000000

typedef struct search {
    const sc_search_jobs *jobs;
    const sc_search_options *o;
    uint32_t n_tasks, cap_tasks;
    uint32_t *digits; /* [n_tasks * n_mesh] */
    search_tally all;
    search_tally *tally; /* [ROUND] of the tasks of a round */
    uint32_t first, n;   /* tasks of the round */
    atomic_uint next;
    atomic_bool stopped;
} search;

typedef struct thread {
    search *x;
    search_worker w;
} thread;

/* ---- tasks --------------------------------------------------------------- */

static void *work(void *arg)
{
    thread *t = arg;
    search *x = t->x;
    search_worker *w = &t->w;
    uint32_t i;
    while (!search_worker_stopped(w) &&
           (i = atomic_fetch_add(&x->next, 1)) < x->n) {
        size_t at = (size_t)(x->first + i) * x->jobs->n_mesh;
        search_tally_seed(&x->tally[i], &x->all);
        w->status = search_worker_run(w, &x->digits[at], &x->tally[i]);
    }
    return NULL;
}

/* With a limit of time, tasks beyond the most are not reached. */
static bool enough(const search *x)
{
    return x->n_tasks == TASKS_MOST && x->o->stop;
}

static sc_status list_tasks(search *x, sc_arena *a, uint32_t *digit, uint32_t i,
                            sc_err *err)
{
    const sc_search_jobs *jobs = x->jobs;
    uint32_t n = jobs->n_mesh;
    if (i < n) {
        for (digit[i] = 0; digit[i] < jobs->option[i].axis.n && !enough(x);
             digit[i]++)
            if (sc_search_space_legal(jobs->space, digit, i))
                SC_TRY(list_tasks(x, a, digit, i + 1, err));
        return SC_OK;
    }
    if (sc_search_space_below(jobs->space, digit, n) == 0) return SC_OK;
    if (x->n_tasks == TASKS_MOST)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                        "give fewer values of axes, or --budget 10s",
                        "the space has more than %d meshes", TASKS_MOST);
    uint32_t *all =
        sc_grow(a, x->digits, x->n_tasks, &x->cap_tasks, 256, n * sizeof *all);
    if (!all) return sc_error_nomem(err);
    x->digits = all;
    memcpy(&all[(size_t)x->n_tasks++ * n], digit, n * sizeof *all);
    return SC_OK;
}

static sc_status check_size(const search *x, sc_err *err)
{
    uint64_t n = sc_search_space_points(x->jobs->space);
    if (x->o->stop || n <= POINTS_MOST) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                    "give fewer values of axes, or --budget 10s",
                    "the space has %s%.3g points",
                    n == SC_SEARCH_MOST ? "more than " : "", (double)n);
}

/* ---- order ---------------------------------------------------------------- */

/* Tasks whose best points are likely to be fast come first, because bounds then
 * exclude more. Only how long a search takes depends on it. */
typedef struct place {
    double group; /* the least estimate of tasks with its first digits */
    uint32_t at;
} place;

static int by_estimate(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The value of an axis in a task; 1: there is no such axis. */
static double degree(const search *x, const uint32_t *digit, const char *name)
{
    for (uint32_t i = 0; i < x->jobs->n_mesh; i++) {
        const sc_search_option *o = &x->jobs->option[i];
        if (strcmp(o->key->name, name) == 0)
            return fmax(1, (double)o->axis.value[digit[i]]);
    }
    return 1;
}

/* How much longer than without division a step takes by its bubble, and by
 * exchanges of activations, which are slow between nodes. */
static double estimate(const search *x, const uint32_t *digit)
{
    double node = x->jobs->in->hw->node_size, pp = degree(x, digit, "pp");
    double inner = degree(x, digit, "tp") * degree(x, digit, "cp");
    double passes = fmax(1, (double)sc_points_run(x->jobs->points)->gbs /
                                degree(x, digit, "dp"));
    return (1 + (pp - 1) / passes) * (1 + 0.1 * log2(inner)) *
           fmax(1, inner / node);
}

static sc_status order_tasks(search *x, sc_arena *a, sc_err *err)
{
    uint32_t n = x->jobs->n_mesh, own = x->jobs->n_own;
    place *p = SC_NEW_N(a, place, x->n_tasks);
    uint32_t *sorted = SC_NEW_N(a, uint32_t, (size_t)x->n_tasks * n);
    if (!p || !sorted) return sc_error_nomem(err);
    for (uint32_t first = 0, end; first < x->n_tasks; first = end) {
        const uint32_t *d = &x->digits[(size_t)first * n];
        double group = INFINITY;
        for (end = first; end < x->n_tasks; end++) {
            const uint32_t *e = &x->digits[(size_t)end * n];
            if (memcmp(d, e, own * sizeof *d) != 0) break;
            group = fmin(group, estimate(x, e));
        }
        for (uint32_t i = first; i < end; i++) p[i] = (place){group, i};
    }
    qsort(p, x->n_tasks, sizeof *p, by_estimate);
    for (uint32_t i = 0; i < x->n_tasks; i++)
        memcpy(&sorted[(size_t)i * n], &x->digits[(size_t)p[i].at * n],
               n * sizeof *sorted);
    x->digits = sorted;
    return SC_OK;
}

/* ---- rounds -------------------------------------------------------------- */

static sc_status run_round(search *x, thread *t, sc_err *err)
{
    uint32_t threads = x->o->threads < x->n ? x->o->threads : x->n;
    pthread_t of[threads + 1];
    uint32_t made = 0;
    atomic_store(&x->next, 0);
    for (uint32_t i = 0; i < x->n; i++)
        search_tally_seed(&x->tally[i], &x->all);
    while (made + 1 < threads &&
           pthread_create(&of[made], NULL, work, &t[made + 1]) == 0)
        made++;
    work(&t[0]);
    for (uint32_t i = 0; i < made; i++) pthread_join(of[i], NULL);
    for (uint32_t i = 0; i < x->o->threads; i++)
        if (t[i].w.status != SC_OK) {
            *err = t[i].w.err;
            return t[i].w.status;
        }
    for (uint32_t i = 0; i < x->n; i++)
        search_tally_join(&x->all, &x->tally[i]);
    return x->all.failed ? sc_error_nomem(err) : SC_OK;
}

/* The first rounds are short, because their tasks know little. */
static sc_status rounds(search *x, thread *t, sc_err *err)
{
    uint32_t most = 2;
    for (; x->first < x->n_tasks && !atomic_load(&x->stopped);
         x->first += x->n) {
        uint32_t left = x->n_tasks - x->first;
        x->n = left < most ? left : most;
        if (most < ROUND) most *= 2;
        SC_TRY(run_round(x, t, err));
        sc_progress_tell(x->o->progress, "meshes", x->first + x->n, x->n_tasks);
    }
    return SC_OK;
}

static void result(const search *x, sc_search_result *out)
{
    const search_tally *t = &x->all;
    uint64_t seen = t->evaluated + t->pruned;
    *out = (sc_search_result){.points = sc_search_space_points(x->jobs->space),
                              .evaluated = t->evaluated,
                              .pruned = t->pruned,
                              .n_reasons = t->n_reasons,
                              .n_best = t->n_best,
                              .best = t->best,
                              .n_front = t->n_front,
                              .front = t->front,
                              .per_axis = t->per_axis};
    memcpy(out->reason, t->reason, sizeof t->reason);
    for (uint32_t i = 0; i < t->n_reasons; i++) seen += t->reason[i].n;
    out->left = out->points - seen;
}

/* The weight of the step is that of all points if no axis changes more than the
 * division. */
static sc_status bound(const search *x, sc_arena *a, double *out, sc_err *err)
{
    const sc_search_jobs *jobs = x->jobs;
    const sc_run *run = sc_points_run(jobs->points);
    *out = 0;
    if (x->o->goal != SC_GOAL_STEP_TIME && !sc_search_jobs_divide(jobs))
        return SC_OK;
    SC_TRY(sc_search_least(jobs, a, out, err));
    *out *= sc_search_goal_weight(x->o->goal, &jobs->job, run);
    return SC_OK;
}

sc_status sc_search_run(const sc_search_jobs *jobs, const sc_search_options *o,
                        sc_arena *a, sc_search_result *out, sc_err *err)
{
    search *x = SC_NEW(a, search);
    thread *t = SC_NEW_N(a, thread, o->threads);
    uint32_t digit[SC_SEARCH_AXES];
    if (!x || !t) return sc_error_nomem(err);
    x->jobs = jobs;
    x->o = o;
    x->tally = SC_NEW_N(a, search_tally, ROUND);
    bool made = x->tally && search_tally_init(&x->all, jobs, o, a);
    for (uint32_t i = 0; made && i < ROUND; i++)
        made = search_tally_init(&x->tally[i], jobs, o, a);
    if (!made) return sc_error_nomem(err);
    SC_TRY(check_size(x, err));
    SC_TRY(list_tasks(x, a, digit, 0, err));
    SC_TRY(order_tasks(x, a, err));
    for (uint32_t i = 0; i < o->threads; i++) {
        t[i].x = x;
        search_worker_open(&t[i].w, jobs, o, &x->stopped, a->limit);
    }
    sc_status s = rounds(x, t, err);
    for (uint32_t i = 0; i < o->threads; i++) search_worker_free(&t[i].w);
    SC_TRY(s);
    result(x, out);
    return bound(x, a, &out->bound, err);
}

void sc_search_row_job(const sc_search_jobs *jobs, const sc_search_row *row,
                       sc_job *out)
{
    *out = jobs->job;
    for (uint32_t i = 0; i < jobs->n; i++)
        sc_search_option_set(&jobs->option[i], row->digit[i], out);
}
