/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - evaluates the points of a space in tasks.
 *
 * A task is all points of one mesh.  Tasks run in rounds; each starts with what
 * was known before its round, and their results are joined in the order of the
 * tasks, so that no result depends on the number of threads or ranks, on which
 * of them is faster, or on whether the search was ended and continued between
 * two rounds.  The size of a round depends on its place alone.
 */
#include "search/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void search_tell(const search *x, uint32_t done)
{
    const search_tally *t = &x->all;
    const sc_search_sofar s = {.done = done < x->n_tasks ? done : x->n_tasks,
                               .tasks = x->n_tasks,
                               .evaluated = t->evaluated,
                               .best = t->n_best ? t->best[0].score : INFINITY,
                               .bound = x->bound,
                               .from = x->n_tasks ? (double)x->from / x->n_tasks
                                                  : 0};
    if (x->o->tell) x->o->tell(x->o->with, &s);
}

/* ---- rounds -------------------------------------------------------------- */

static bool ends(void *with)
{
    search *x = with;
    const sc_search_options *o = x->o;
    if (o->interrupted && o->interrupted(o->with))
        atomic_store(&x->interrupted, true);
    return atomic_load(&x->interrupted) || (o->stop && o->stop(o->with));
}

static void *work(void *arg)
{
    search_thread *t = arg;
    search *x = t->x;
    search_worker *w = &t->w;
    uint32_t i;
    while (!search_worker_stopped(w) &&
           (i = atomic_fetch_add(&x->next, 1)) < x->n) {
        size_t at = (size_t)(x->first + i) * x->jobs->n_mesh;
        w->status = search_worker_run(w, &x->digits[at], &x->tally[i]);
        if (t->tells) search_tell(x, x->first + atomic_load(&x->next));
    }
    return NULL;
}

/* The main thread is one of the threads, unless it serves other ranks. */
static sc_status run_threads(search *x, search_thread *t, sc_err *err)
{
    uint32_t threads = x->o->threads < x->n ? x->o->threads : x->n;
    bool remote = search_is_remote(x),
         serves = x->o->ranks && x->o->ranks->n > 1;
    void *(*run)(void *) = remote ? search_remote_work : work;
    pthread_t of[threads + 1];
    uint32_t made = 0, first = serves ? 0 : 1;
    sc_status s = SC_OK;
    while (made + first < threads &&
           pthread_create(&of[made], NULL, run, &t[made + first]) == 0)
        made++;
    t[0].tells = first == 1;
    if (first == 1 || made == 0) run(&t[0]);
    if (serves) s = remote ? SC_OK : search_ranks_serve(x, err);
    for (uint32_t i = 0; i < made; i++) pthread_join(of[i], NULL);
    return s == SC_OK && remote ? search_remote_leave(x, err) : s;
}

static sc_status run_round(search *x, search_thread *t, sc_err *err)
{
    atomic_store(&x->next, 0);
    x->over = false;
    for (; x->n_tally < x->n; x->n_tally++)
        if (!search_tally_init(&x->tally[x->n_tally], x->jobs, x->o, x->a))
            return sc_error_nomem(err);
    for (uint32_t i = 0; i < x->n && !search_is_remote(x); i++)
        search_tally_seed(&x->tally[i], &x->all);
    SC_TRY(run_threads(x, t, err));
    for (uint32_t i = 0; i < x->o->threads; i++)
        if (t[i].w.status != SC_OK) {
            *err = t[i].w.err;
            return t[i].w.status;
        }
    return SC_OK;
}

static sc_status note(const search *x, sc_err *err)
{
    sc_search_saved_run *run = x->saved;
    run->done = x->first;
    run->tally.len = 0;
    search_tally_write(&x->all, &run->tally);
    return run->tally.failed ? sc_error_nomem(err) : SC_OK;
}

static sc_status save(const search *x, sc_err *err)
{
    if (!x->saved) return SC_OK;
    SC_TRY(note(x, err));
    return x->o->save ? x->o->save(x->o->with, x->o->saved, err) : SC_OK;
}

/* What was found in a round that was ended by a limit of time counts, but the
 * search goes on before it. */
static sc_status finish_round(search *x, sc_err *err)
{
    bool whole = !atomic_load(&x->stopped);
    if (atomic_load(&x->interrupted)) return SC_EINTR;
    for (uint32_t i = 0; i < x->n; i++) {
        const search_tally *t = &x->tally[i];
        search_tally_join(&x->all, t);
        if (x->o->keep)
            SC_TRY(x->o->keep(x->o->with, t->rows.rows, t->rows.bytes.buf,
                              t->rows.bytes.len, err));
    }
    if (x->all.failed) return sc_error_nomem(err);
    if (!whole) return SC_OK;
    x->first += x->n;
    search_tell(x, x->first);
    return save(x, err);
}

/* Tasks of the round that begins with task `first`: few at first, because they
 * know little, and many in the end, so that many ranks have work. */
static uint32_t round_from(uint32_t first)
{
    uint32_t n = first < ROUND ? first : first / 8;
    if (first >= ROUND && n < ROUND) n = ROUND;
    return n < 2 ? 2 : n > ROUND_MOST ? ROUND_MOST : n;
}

static sc_status rounds(search *x, search_thread *t, sc_err *err)
{
    SC_TRY(search_ranks_share(x, SC_OK, err));
    while (x->first < x->n_tasks && !atomic_load(&x->stopped)) {
        uint32_t left = x->n_tasks - x->first, n = round_from(x->first);
        x->n = left < n ? left : n;
        sc_status s = run_round(x, t, err);
        if (s == SC_OK && !search_is_remote(x)) s = finish_round(x, err);
        SC_TRY(search_ranks_share(x, s, err));
    }
    return SC_OK;
}

/* ---- what was saved -------------------------------------------------------- */

/* A search that was saved goes on where it was; another one is added. */
static sc_status restore(search *x, sc_err *err)
{
    sc_search_saved *s = x->o->saved;
    uint64_t hash = search_hash(x->jobs, x->o);
    if (!s || search_is_remote(x)) return SC_OK;
    if (s->next == s->n) {
        sc_search_saved_run *all =
            sc_grow(s->a, s->run, s->n, &s->cap, 8, sizeof *all);
        if (!all) return sc_error_nomem(err);
        s->run = all;
        all[s->n++] = (sc_search_saved_run){.space = hash, .tasks = x->n_tasks};
        x->saved = &all[s->next++];
        return note(x, err);
    }
    x->saved = &s->run[s->next++];
    /* what came after a search that was not done may be different now */
    while (x->saved->done < x->saved->tasks && s->n > s->next)
        sc_bytes_free(&s->run[--s->n].tally);
    sc_bytes_in in = sc_bytes_from(x->saved->tally.buf, x->saved->tally.len);
    if (x->saved->space != hash || x->saved->tasks != x->n_tasks ||
        !search_tally_read(&x->all, &in) || in.at != in.n)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(s->file),
                        "begin again without --resume",
                        "the file is of another search, or of another version "
                        "of stepcast");
    x->first = x->from = x->saved->done;
    return SC_OK;
}

/* Most points first, so that their order does not depend on that of tasks. */
static int by_points(const void *a, const void *b)
{
    const sc_search_reason *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void result(const search *x, sc_search_result *out)
{
    const search_tally *t = &x->all;
    uint64_t seen = t->evaluated + t->pruned;
    *out = (sc_search_result){.points = sc_search_space_points(x->jobs->space),
                              .evaluated = t->evaluated,
                              .pruned = t->pruned,
                              .bound = x->bound,
                              .n_reasons = t->n_reasons,
                              .n_best = t->n_best,
                              .best = t->best,
                              .n_front = t->n_front,
                              .front = t->front,
                              .per_axis = t->per_axis};
    memcpy(out->reason, t->reason, sizeof t->reason);
    memcpy(out->steps, t->steps, sizeof t->steps);
    qsort(out->reason, out->n_reasons, sizeof *out->reason, by_points);
    for (uint32_t i = 0; i < t->n_reasons; i++) seen += t->reason[i].n;
    out->left = out->points - seen;
}

/* The weight of the step is that of all points if no axis changes more than the
 * division. */
static sc_status bound(const search *x, double *out, sc_err *err)
{
    const sc_search_jobs *jobs = x->jobs;
    const sc_run *run = sc_points_run(jobs->points);
    *out = 0;
    if (x->o->goal != SC_GOAL_STEP_TIME && !sc_search_jobs_divide(jobs))
        return SC_OK;
    double weight;
    SC_TRY(
        sc_search_goal_weight(x->o->goal, &jobs->job, run, x->a, &weight, err));
    SC_TRY(sc_search_least(jobs, x->a, out, err));
    *out *= weight;
    return SC_OK;
}

static sc_status run(search *x, sc_err *err)
{
    const sc_search_options *o = x->o;
    search_thread *t = SC_NEW_N(x->a, search_thread, o->threads);
    if (!t) return sc_error_nomem(err);
    for (uint32_t i = 0; search_is_remote(x) && i < o->threads; i++)
        if (!search_tally_init(&t[i].remote, x->jobs, o, x->a))
            return sc_error_nomem(err);
    for (uint32_t i = 0; i < o->threads; i++) {
        t[i].x = x;
        search_worker_open(&t[i].w, x->jobs, &x->own, &x->stopped, x->a->limit);
    }
    pthread_mutex_init(&x->talks, NULL);
    sc_status s = rounds(x, t, err);
    pthread_mutex_destroy(&x->talks);
    for (uint32_t i = 0; i < o->threads; i++) {
        search_worker_free(&t[i].w);
        sc_store_block_free(&t[i].remote.rows);
    }
    for (uint32_t i = 0; i < x->n_tally; i++)
        sc_store_block_free(&x->tally[i].rows);
    return s;
}

sc_status sc_search_run(const sc_search_jobs *jobs, const sc_search_options *o,
                        sc_arena *a, sc_search_result *out, sc_err *err)
{
    search *x = SC_NEW(a, search);
    if (!x) return sc_error_nomem(err);
    x->jobs = jobs;
    x->o = o;
    x->a = a;
    x->own = *o;
    x->own.stop = ends;
    x->own.with = x;
    x->tally = SC_NEW_N(a, search_tally, ROUND_MOST);
    if (!x->tally || !search_tally_init(&x->all, jobs, o, a))
        return sc_error_nomem(err);
    SC_TRY(search_tasks(x, err));
    SC_TRY(bound(x, &x->bound, err));
    SC_TRY(restore(x, err));
    SC_TRY(run(x, err));
    result(x, out);
    return SC_OK;
}

void sc_search_row_job(const sc_search_jobs *jobs, const sc_search_row *row,
                       sc_job *out)
{
    *out = jobs->job;
    for (uint32_t i = 0; i < jobs->n; i++)
        sc_search_option_set(&jobs->option[i], row->digit[i], out);
    if (jobs->expands && !sc_job_moves(out)) sc_job_move_to(out, SC_INFER);
}
