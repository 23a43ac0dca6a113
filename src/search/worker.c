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

/* Energy, for one, depends on where the time of a step goes. */
static sc_status score(search_worker *w, sc_search_row *row)
{
    const sc_inputs *in = w->jobs->in;
    sc_job job;
    sc_prediction p;
    row->score = row->point.step_s * w->weight;
    if (!sc_search_goal_predicted(w->o->goal, &w->job)) return SC_OK;
    sc_search_row_job(w->jobs, row, &job);
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    sc_arena_reset(&w->whole);
    SC_TRY(sc_predict(&job, in->hw, in->model, in->sw, in->cost, &w->whole, &p,
                      &w->err));
    row->score = sc_search_goal_score(w->o->goal, &job, &p);
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

/* ---- ends of steps --------------------------------------------------------- */

/* The point of a job with an end; its digits are complete. */
static void with_end(const search_worker *w, const sc_point_end *e,
                     sc_search_row *row)
{
    uint32_t from = w->jobs->n_passes, n = w->jobs->n - from;
    if (n > 0)
        memcpy(&row->digit[from], &w->ends.digit[(size_t)e->end * n],
               n * sizeof *row->digit);
    row->point = e->point;
}

/* Steps of jobs that wait. */
static sc_status steps(search_worker *w)
{
    uint32_t which[SC_POINTS_TOGETHER], n;
    sc_point_ends of[SC_POINTS_TOGETHER];
    if (w->n_waiting == 0) return SC_OK;
    while ((n = sc_points_take(w->points, which))) {
        for (uint32_t i = 0; i < n; i++) {
            search_waiting *k = &w->waiting[which[i]];
            of[i] = k->ends;
            for (uint32_t e = 0; e < of[i].n; e++) {
                with_end(w, &of[i].of[e], &k->row);
                of[i].of[e].beat_s = beat_of(w, &k->row);
            }
        }
        SC_TRY(sc_points_steps(w->points, n, which, of, &w->err));
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t e = 0; e < of[i].n; e++) {
                sc_search_row *row = &w->waiting[which[i]].row;
                with_end(w, &of[i].of[e], row);
                SC_TRY(finish(w, row));
            }
    }
    w->n_waiting = 0;
    return SC_OK;
}

/* Appends the ends that are legal after the first `i` digits of w->row. */
static void list_ends(search_worker *w, uint32_t i, uint32_t at, bool counts,
                      search_waiting *k)
{
    const sc_search_jobs *jobs = w->jobs;
    uint32_t *digit = &w->row.digit[i];
    if (i == jobs->n) {
        if (w->ends.why[at] && counts) refuse(w, w->ends.why[at], 1);
        if (!w->ends.why[at])
            k->ends.of[k->ends.n++] = (sc_point_end){.end = w->ends.which[at]};
        return;
    }
    uint32_t n = jobs->option[i].axis.n;
    for (*digit = 0; *digit < n; ++*digit)
        if (sc_search_space_legal(jobs->space, w->row.digit, i))
            list_ends(w, i + 1, at * n + *digit, counts, k);
}

/* Whether no step of w->job is short enough to change the tally. */
static bool too_slow(void *with, double least_s, uint32_t n,
                     const sc_point_end *of)
{
    search_worker *w = with;
    sc_search_row row = w->row;
    for (uint32_t i = 0; i < n; i++) {
        with_end(w, &of[i], &row);
        double beat_s = beat_of(w, &row);
        if (beat_s <= 0 || least_s < beat_s) return false;
    }
    return true;
}

/* Memory of w->job, which is that of w->row, with all ends.  Those that fit
 * stay in the next of those that wait; `counts`: the others are counted. */
static sc_status fill(search_worker *w, bool counts)
{
    search_waiting *k = &w->waiting[w->n_waiting];
    sc_points_limit limit = {1 - w->o->keep_free, NULL, w};
    uint32_t n = 0, slow = 0;
    if (counts && !w->o->exhaustive) limit.slow = too_slow;
    k->row = w->row;
    k->ends.n = 0;
    list_ends(w, w->jobs->n_passes, 0, counts, k);
    if (k->ends.n == 0) return SC_OK;
    sc_err_init(&w->err);
    sc_status s = sc_points_memory(w->points, &w->job, &limit, k->ends.n,
                                   k->ends.of, &w->err);
    if (s == SC_EINPUT) {
        refuse(w, &w->err, k->ends.n);
        k->ends.n = 0;
        return SC_OK;
    }
    SC_TRY(s);
    for (uint32_t i = 0; i < k->ends.n; i++) {
        const sc_point *p = &k->ends.of[i].point;
        slow += p->slower;
        if (p->fits && p->full <= limit.most_full && !p->slower)
            k->ends.of[n++] = k->ends.of[i];
    }
    if (counts && n + slow < k->ends.n)
        search_tally_refuse(w->tally, "memory", k->ends.n - n - slow);
    w->tally->pruned += slow;
    k->ends.n = n;
    return SC_OK;
}

/* The job that was filled last waits for its steps. */
static sc_status wait_for_steps(search_worker *w, uint32_t most)
{
    uint32_t at = sc_points_wait(w->points);
    sc_assert(at == w->n_waiting);
    return ++w->n_waiting >= most ? steps(w) : SC_OK;
}

/* Of jobs with many ends fewer wait, because their memory is large; together
 * they fill all lanes. */
static uint32_t most_waiting(const search_worker *w)
{
    uint32_t most = SC_POINTS_WAIT / w->ends.n;
    return most > SC_POINTS_TOGETHER ? most : SC_POINTS_TOGETHER;
}

/* ---- the most promising first --------------------------------------------- */

/* Their scores are bounds. */
static int by_bound(const void *a, const void *b)
{
    return sc_search_row_order(a, b, SC_SEARCH_AXES);
}

/* Composes the steps of jobs that were kept, those with the least bounds first,
 * so that bounds exclude most others.  Few are composed together at first. */
static sc_status compose_later(search_worker *w)
{
    uint32_t together = 1, most = most_waiting(w);
    if (w->n_later > 0) qsort(w->later, w->n_later, sizeof *w->later, by_bound);
    for (uint32_t i = 0; i < w->n_later && !search_worker_stopped(w); i++) {
        w->row = w->later[i];
        if (w->ends.n == 1) {
            double beat_s = beat_of(w, &w->row);
            if (beat_s > 0 && w->row.score >= beat_s) {
                w->tally->pruned++;
                continue;
            }
        }
        sc_search_row_job(w->jobs, &w->row, &w->job);
        SC_TRY(fill(w, false));
        SC_TRY(wait_for_steps(w, together));
        if (w->n_waiting == 0 && 2 * together <= most) together *= 2;
    }
    w->n_later = 0;
    return steps(w);
}

static sc_status evaluate(search_worker *w)
{
    SC_TRY(fill(w, true));
    search_waiting *k = &w->waiting[w->n_waiting];
    if (k->ends.n == 0) return SC_OK;
    if (w->o->exhaustive || sc_points_whole(w->points))
        return wait_for_steps(w, most_waiting(w));
    if (!w->later) w->later = SC_RAW_N(&w->rows, sc_search_row, LATER);
    if (!w->later) return sc_error_nomem(&w->err);
    with_end(w, &k->ends.of[0], &k->row);
    k->row.score = sc_points_shortest(w->points);
    w->later[w->n_later++] = k->row;
    if (w->n_later < LATER) return SC_OK;
    sc_job job = w->job;
    sc_search_row row = w->row;
    SC_TRY(compose_later(w));
    w->job = job;
    w->row = row;
    return SC_OK;
}

/* Visits all points with the first `i` digits. */
static sc_status visit(search_worker *w, uint32_t i)
{
    const sc_search_jobs *jobs = w->jobs;
    uint32_t *digit = &w->row.digit[i];
    uint32_t n = i < jobs->n ? jobs->option[i].axis.n : 0;
    if (i == jobs->n_passes) return evaluate(w);
    bool backwards = !w->o->exhaustive && jobs->backwards >> i & 1;
    for (uint32_t k = 0; k < n; k++) {
        *digit = backwards ? n - 1 - k : k;
        if (!sc_search_space_legal(jobs->space, w->row.digit, i)) continue;
        if (search_worker_stopped(w)) return SC_OK;
        sc_search_option_set(&jobs->option[i], *digit, &w->job);
        SC_TRY(visit(w, i + 1));
    }
    return SC_OK;
}

/* ---- tasks --------------------------------------------------------------- */

static void set_end(const search_worker *w, uint32_t at, uint32_t *digit,
                    sc_job *job)
{
    const sc_search_jobs *jobs = w->jobs;
    for (uint32_t i = jobs->n; i-- > jobs->n_passes;) {
        const sc_search_option *o = &jobs->option[i];
        digit[i - jobs->n_passes] = at % o->axis.n;
        sc_search_option_set(o, at % o->axis.n, job);
        at /= o->axis.n;
    }
}

/* Adds an end to w->points, or keeps the reason why it is not legal. */
static sc_status add_end(search_worker *w, uint32_t at)
{
    uint32_t n = w->jobs->n - w->jobs->n_passes, digit[SC_SEARCH_AXES], own = 0;
    sc_job job = w->job;
    sc_err why;
    sc_err_init(&why);
    set_end(w, at, digit, &job);
    sc_status s =
        sc_points_add_end(w->points, &job, w->jobs->zero_ends, &own, &why);
    if (s == SC_EINPUT) {
        sc_err *kept = SC_NEW(&w->a, sc_err);
        if (!kept) return sc_error_nomem(&w->err);
        *kept = why;
        w->ends.why[at] = kept;
        return SC_OK;
    }
    if (s != SC_OK) w->err = why;
    w->ends.which[at] = own;
    if (s == SC_OK)
        memcpy(&w->ends.digit[(size_t)own * n], digit, n * sizeof *digit);
    return s;
}

/* Without axes of ends, the only end is that of the job of w->points. */
static sc_status open_ends(search_worker *w)
{
    const sc_search_jobs *jobs = w->jobs;
    uint32_t axes = jobs->n - jobs->n_passes;
    search_ends *e = &w->ends;
    *e = (search_ends){.n = 1};
    for (uint32_t i = jobs->n_passes; i < jobs->n; i++)
        e->n *= jobs->option[i].axis.n;
    e->which = SC_NEW_N(&w->a, uint32_t, e->n);
    e->why = SC_NEW_N(&w->a, const sc_err *, e->n);
    e->digit = SC_NEW_N(&w->a, uint32_t, (size_t)(e->n + 1) * (axes + 1));
    if (!e->which || !e->why || !e->digit) return sc_error_nomem(&w->err);
    for (uint32_t i = 0; i < most_waiting(w); i++) {
        sc_point_end *of = SC_NEW_N(&w->a, sc_point_end, e->n);
        if (!of) return sc_error_nomem(&w->err);
        w->waiting[i].ends.of = of;
    }
    for (uint32_t at = 0; axes > 0 && at < e->n; at++) SC_TRY(add_end(w, at));
    return SC_OK;
}

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
    SC_TRY(open_ends(w));
    const sc_run *run = sc_points_run(w->points);
    double slowest = w->o->slowest;
    SC_TRY(sc_search_goal_weight(w->o->goal, &w->job, run, &w->a, &w->weight,
                                 &w->err));
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
    sc_points_task(w->points);
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
