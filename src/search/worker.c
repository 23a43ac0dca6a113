/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - evaluates the points of a task depth first. */
#include "search/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points between two looks at the clock. */
enum { LOOK = 64 };

/* Most points whose bounds are kept until their steps are composed. */
enum { LATER = 1 << 14 };

/* ---- points -------------------------------------------------------------- */

bool search_worker_stopped(search_worker *w)
{
    const sc_search_options *o = w->o;
    if (o->stop && ++w->looks % LOOK == 0 && o->stop(o->with))
        atomic_store(w->stopped, true);
    return w->status != SC_OK || atomic_load(w->stopped);
}

/* "--ep" of an error at "--ep 8", of `n` points. */
static void refuse(search_worker *w, const sc_err *why, uint64_t n)
{
    const char *at = why->n ? why->d[0].file : "";
    size_t len = strcspn(at, " ");
    char name[sizeof((sc_search_reason *)0)->name] = "other";
    if (strncmp(at, "--", 2) == 0 && len < sizeof name) {
        memcpy(name, at, len);
        name[len] = '\0';
    }
    search_tally_refuse(w->tally, name, n);
}

/* Energy depends on where the time of a step goes, so it is predicted. */
static sc_status score(search_worker *w, sc_search_row *row)
{
    const sc_inputs *in = w->jobs->in;
    sc_job job;
    sc_prediction p;
    row->score = row->point.step_s * w->weight;
    if (w->o->goal != SC_GOAL_ENERGY) return SC_OK;
    sc_search_row_job(w->jobs, row, &job);
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    sc_arena_reset(&w->whole);
    SC_TRY(sc_predict(&job, in->hw, in->model, in->sw, in->cost, &w->whole, &p,
                      &w->err));
    row->score = job.tokens > 0 ? p.whole_run.energy_j : p.energy_j_per_step;
    return SC_OK;
}

/* Seconds that the step of a row must be shorter than; 0: any. */
static double beat_of(const search_worker *w, const sc_search_row *row)
{
    if (w->o->exhaustive) return 0;
    double beat = search_tally_beat(w->tally, row->digit, row->point.peak);
    double beat_s = fmin(beat / w->weight, w->most_s);
    return isinf(beat_s) ? 0 : beat_s;
}

static sc_status finish(search_worker *w, sc_search_row *row)
{
    if (row->point.slower) {
        w->tally->pruned++;
        return SC_OK;
    }
    SC_TRY(score(w, row));
    search_tally_add(w->tally, row, row->point.step_s <= w->most_s);
    return SC_OK;
}

/* Steps of rows that wait. */
static sc_status steps(search_worker *w)
{
    uint32_t which[SC_POINTS_TOGETHER], n;
    double beat[SC_POINTS_TOGETHER];
    sc_point *point[SC_POINTS_TOGETHER];
    if (w->n_waiting == 0) return SC_OK;
    while ((n = sc_points_take(w->points, which))) {
        for (uint32_t i = 0; i < n; i++) {
            sc_search_row *row = &w->waiting[which[i]];
            beat[i] = beat_of(w, row);
            point[i] = &row->point;
        }
        SC_TRY(sc_points_steps(w->points, n, which, beat, point, &w->err));
        for (uint32_t i = 0; i < n; i++)
            SC_TRY(finish(w, &w->waiting[which[i]]));
    }
    w->n_waiting = 0;
    return SC_OK;
}

/* Memory of w->job, which is that of `row`; `*may`: it fits. */
static sc_status fill(search_worker *w, sc_search_row *row, bool *may)
{
    double most = 1 - w->o->keep_free;
    sc_err_init(&w->err);
    sc_status s =
        sc_points_memory(w->points, &w->job, most, &row->point, &w->err);
    *may = s == SC_OK && row->point.fits && row->point.full <= most;
    if (s == SC_EINPUT) {
        refuse(w, &w->err, 1);
        return SC_OK;
    }
    SC_TRY(s);
    if (!*may) search_tally_refuse(w->tally, "memory", 1);
    return SC_OK;
}

static sc_status wait_for_step(search_worker *w, const sc_search_row *row,
                               uint32_t most)
{
    w->waiting[sc_points_wait(w->points)] = *row;
    return ++w->n_waiting >= most ? steps(w) : SC_OK;
}

/* ---- the most promising first --------------------------------------------- */

/* Their scores are bounds. */
static int by_bound(const void *a, const void *b)
{
    return sc_search_row_order(a, b, SC_SEARCH_AXES);
}

/* Composes the steps of rows that were kept, those with the least bounds first,
 * so that bounds exclude most others.  Few are composed together at first. */
static sc_status compose_later(search_worker *w)
{
    uint32_t together = 1;
    bool may;
    if (w->n_later > 0) qsort(w->later, w->n_later, sizeof *w->later, by_bound);
    for (uint32_t i = 0; i < w->n_later && !search_worker_stopped(w); i++) {
        sc_search_row *row = &w->later[i];
        double beat_s = beat_of(w, row);
        if (beat_s > 0 && row->score >= beat_s) {
            w->tally->pruned++;
            continue;
        }
        sc_search_row_job(w->jobs, row, &w->job);
        SC_TRY(fill(w, row, &may));
        SC_TRY(wait_for_step(w, row, together));
        if (w->n_waiting == 0 && together < SC_POINTS_WAIT) together *= 2;
    }
    w->n_later = 0;
    return steps(w);
}

static sc_status evaluate(search_worker *w)
{
    bool may;
    SC_TRY(fill(w, &w->row, &may));
    if (!may) return SC_OK;
    if (w->o->exhaustive || sc_points_whole(w->points))
        return wait_for_step(w, &w->row, SC_POINTS_WAIT);
    if (!w->later) w->later = SC_RAW_N(&w->rows, sc_search_row, LATER);
    if (!w->later) return sc_error_nomem(&w->err);
    w->row.score = sc_points_shortest(w->points);
    w->later[w->n_later++] = w->row;
    if (w->n_later < LATER) return SC_OK;
    sc_job job = w->job;
    SC_TRY(compose_later(w));
    w->job = job;
    return SC_OK;
}

/* Visits all points with the first `i` digits. */
static sc_status visit(search_worker *w, uint32_t i)
{
    const sc_search_jobs *jobs = w->jobs;
    uint32_t *digit = &w->row.digit[i];
    if (i == jobs->n) return evaluate(w);
    for (*digit = 0; *digit < jobs->option[i].axis.n; ++*digit) {
        if (!sc_search_space_legal(jobs->space, w->row.digit, i)) continue;
        if (search_worker_stopped(w)) return SC_OK;
        sc_search_option_set(&jobs->option[i], *digit, &w->job);
        SC_TRY(visit(w, i + 1));
    }
    return SC_OK;
}

/* ---- tasks --------------------------------------------------------------- */

/* Makes w->points for the first digits of a task, if they are others. */
static sc_status open_points(search_worker *w, const uint32_t *digit)
{
    const sc_search_jobs *jobs = w->jobs;
    uint32_t n = jobs->n_own;
    w->job = jobs->job;
    for (uint32_t i = 0; i < jobs->n_mesh; i++)
        sc_search_option_set(&jobs->option[i], digit[i], &w->job);
    memcpy(w->row.digit, digit, jobs->n_mesh * sizeof *digit);
    if (w->points && memcmp(w->slow, digit, n * sizeof *digit) == 0)
        return SC_OK;
    memcpy(w->slow, digit, n * sizeof *digit);
    sc_arena_reset(&w->a);
    w->points = NULL;
    SC_TRY(
        sc_points_new(&w->job, jobs->in, &w->a, &w->room, &w->points, &w->err));
    const sc_run *run = sc_points_run(w->points);
    double slowest = w->o->slowest;
    w->weight = sc_search_goal_weight(w->o->goal, &w->job, run);
    w->most_s = slowest > 0 ? slowest * sc_search_tokens(run) : INFINITY;
    return SC_OK;
}

sc_status search_worker_run(search_worker *w, const uint32_t *digit,
                            search_tally *tally)
{
    uint32_t n = w->jobs->n_mesh;
    w->tally = tally;
    sc_err_init(&w->err);
    sc_status s = open_points(w, digit);
    if (s == SC_EINPUT) {
        /* points that can't be evaluated are not listed, so this writes
         * nothing */
        refuse(w, &w->err, sc_search_space_below(w->jobs->space, digit, n));
        return SC_OK;
    }
    SC_TRY(s);
    SC_TRY(visit(w, n));
    SC_TRY(compose_later(w));
    return steps(w);
}

void search_worker_open(search_worker *w, const sc_search_jobs *jobs,
                        const sc_search_options *o, atomic_bool *stopped,
                        size_t limit_bytes)
{
    *w = (search_worker){.jobs = jobs, .o = o, .stopped = stopped};
    sc_arena_init(&w->a, limit_bytes);
    sc_arena_init(&w->whole, limit_bytes);
    sc_arena_init(&w->rows, limit_bytes);
    sc_points_room_init(&w->room, limit_bytes);
    sc_err_init(&w->err);
}

void search_worker_free(search_worker *w)
{
    sc_arena_free(&w->whole);
    sc_arena_free(&w->rows);
    sc_arena_free(&w->a);
    sc_points_room_free(&w->room);
}
