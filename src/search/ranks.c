/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - a search of several processes.
 *
 * Rank 0 hands out the tasks of a round one by one.  A thread of another rank
 * asks for a task, and each result asks for the next one; the answer is a task,
 * or that the round is over.  A rank leaves the round when its last thread has
 * ended.  Then rank 0 sends all that was found, with which the next round
 * starts: so all ranks have the same bounds, and tasks that a rank evaluates
 * give what they would give in one process.
 */
#include "search/run.h"

#include <stdio.h>
#include <string.h>

typedef enum message_kind {
    ASKS,   /* for a task */
    RESULT, /* task, status, error, how the rank ends, rows, tally */
    LEAVES, /* the round */
    FAILS   /* status, error */
} message_kind;

typedef enum ending { GOES_ON, STOPS, IS_INTERRUPTED } ending;

static ending ending_of(search *x)
{
    if (atomic_load(&x->interrupted)) return IS_INTERRUPTED;
    return atomic_load(&x->stopped) ? STOPS : GOES_ON;
}

bool search_is_remote(const search *x)
{
    return x->o->ranks && x->o->ranks->rank > 0;
}

static sc_status broken(uint32_t rank, sc_err *err)
{
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_none(),
                    "start all ranks with the same program and options",
                    "a message of rank %u can't be read", rank);
}

static sc_status send(const search *x, uint32_t to, sc_bytes *m, sc_err *err)
{
    const sc_search_ranks *r = x->o->ranks;
    sc_status s =
        m->failed ? sc_error_nomem(err) : r->send(r->with, to, m, err);
    sc_bytes_free(m);
    return s;
}

/* Waits for the next message of rank 0. */
static sc_status receive(const search *x, sc_bytes *m, sc_err *err)
{
    const sc_search_ranks *r = x->o->ranks;
    uint32_t from = r->n;
    while (from == r->n) SC_TRY(r->receive(r->with, m, &from, err));
    return SC_OK;
}

/* ---- the other ranks ------------------------------------------------------- */

/* Sends a message and gets a task; *is false: the round is over. */
static sc_status exchange(search *x, sc_bytes *m, uint32_t *task, bool *is,
                          sc_err *err)
{
    sc_bytes answer = {0};
    pthread_mutex_lock(&x->talks);
    sc_status s = send(x, 0, m, err);
    if (s == SC_OK) s = receive(x, &answer, err);
    pthread_mutex_unlock(&x->talks);
    sc_bytes_in in = sc_bytes_from(answer.buf, answer.len);
    uint64_t n = sc_bytes_get_most(&in, x->n_tasks);
    if (s == SC_OK && in.bad) s = broken(0, err);
    sc_bytes_free(&answer);
    *is = n > 0;
    *task = (uint32_t)(n - 1);
    return s;
}

static void write_result(const search_thread *t, uint32_t task, sc_bytes *m)
{
    const search_worker *w = &t->w;
    const sc_store_block *rows = &t->remote.rows;
    sc_bytes_uint(m, RESULT);
    sc_bytes_uint(m, task);
    sc_bytes_uint(m, (uint64_t)w->status);
    sc_bytes_uint(m, ending_of(t->x));
    sc_bytes_text(m, w->status != SC_OK && w->err.n ? w->err.d[0].msg : "");
    sc_bytes_uint(m, rows->rows);
    sc_bytes_uint(m, rows->bytes.len);
    sc_bytes_add(m, rows->bytes.buf, rows->bytes.len);
    search_tally_write(&t->remote, m);
}

void *search_remote_work(void *thread)
{
    search_thread *t = thread;
    search *x = t->x;
    search_worker *w = &t->w;
    sc_bytes m = {0};
    uint32_t task;
    bool is = true;
    sc_bytes_uint(&m, ASKS);
    sc_status s = exchange(x, &m, &task, &is, &w->err);
    while (s == SC_OK && is) {
        const uint32_t *digit = &x->digits[(size_t)task * x->jobs->n_mesh];
        search_tally_seed(&t->remote, &x->all);
        if (!search_worker_stopped(w))
            w->status = search_worker_run(w, digit, &t->remote);
        write_result(t, task, &m);
        s = exchange(x, &m, &task, &is, &w->err);
    }
    if (s != SC_OK) w->status = s;
    return NULL;
}

sc_status search_remote_leave(search *x, sc_err *err)
{
    sc_bytes m = {0};
    sc_bytes_uint(&m, LEAVES);
    return send(x, 0, &m, err);
}

void sc_search_ranks_fail(sc_status s, const sc_err *err, sc_bytes *message)
{
    char line[400] = "";
    if (err->n) sc_diag_format(&err->d[0], line, sizeof line);
    sc_bytes_uint(message, FAILS);
    sc_bytes_uint(message, (uint64_t)s);
    sc_bytes_text(message, line);
}

/* ---- rank 0 ----------------------------------------------------------------- */

/* Takes the result of a task that another rank was given. */
static sc_status take_result(search *x, sc_bytes_in *in, uint32_t from,
                             sc_err *err)
{
    uint64_t task = sc_bytes_get_uint(in) - x->first;
    sc_status s = (sc_status)sc_bytes_get_most(in, SC_EINTR);
    uint64_t end = sc_bytes_get_uint(in);
    if (end != GOES_ON) atomic_store(&x->stopped, true);
    if (end == IS_INTERRUPTED) atomic_store(&x->interrupted, true);
    const char *why = sc_bytes_get_text(in, x->a);
    uint64_t rows = sc_bytes_get_uint(in), len = sc_bytes_get_uint(in);
    const uint8_t *bytes = sc_bytes_take(in, len);
    if (in->bad || task >= x->n) return broken(from, err);
    if (s != SC_OK)
        return sc_error(err, s, SC_C_IO, sc_pos_none(), NULL, "rank %u: %.200s",
                        from, why);
    search_tally *t = &x->tally[task];
    if (!search_tally_read(t, in))
        return t->failed ? sc_error_nomem(err) : broken(from, err);
    sc_bytes_add(&t->rows.bytes, bytes, (size_t)len);
    t->rows.rows = rows;
    return SC_OK;
}

/* A rank that has failed asks for nothing and leaves no round. */
static sc_status take_failure(search *x, sc_bytes_in *in, uint32_t from,
                              sc_err *err)
{
    sc_status s = (sc_status)sc_bytes_get_most(in, SC_EINTR);
    const char *why = sc_bytes_get_text(in, x->a);
    atomic_store(&x->stopped, true);
    return in->bad || s == SC_OK ? broken(from, err)
                                 : sc_error(err, s, SC_C_IO, sc_pos_none(),
                                            NULL, "rank %u: %.200s", from, why);
}

static sc_status handle(search *x, const sc_bytes *m, uint32_t from,
                        uint32_t *left, sc_err *err)
{
    sc_bytes_in in = sc_bytes_from(m->buf, m->len);
    uint64_t kind = sc_bytes_get_uint(&in);
    sc_bytes answer = {0};
    sc_status s = SC_OK;
    if (kind == LEAVES) {
        --*left;
        return SC_OK;
    }
    if (kind == FAILS) {
        *left = 0;
        return take_failure(x, &in, from, err);
    }
    if (kind == RESULT) s = take_result(x, &in, from, err);
    if (kind > RESULT || in.bad) s = broken(from, err);
    if (s != SC_OK) atomic_store(&x->stopped, true);
    uint32_t i = x->n;
    if (!atomic_load(&x->stopped)) i = atomic_fetch_add(&x->next, 1);
    sc_bytes_uint(&answer, i < x->n ? (uint64_t)x->first + i + 1 : 0);
    sc_status sent = send(x, from, &answer, s == SC_OK ? err : NULL);
    return s == SC_OK ? sent : s;
}

/* After an error it goes on until all ranks have left the round. */
sc_status search_ranks_serve(search *x, sc_err *err)
{
    const sc_search_ranks *r = x->o->ranks;
    uint32_t left = r->n - 1;
    sc_status s = SC_OK;
    while (left > 0) {
        sc_bytes m = {0};
        uint32_t from = r->n;
        if (x->own.stop(x)) atomic_store(&x->stopped, true);
        SC_TRY(r->receive(r->with, &m, &from, err));
        sc_status one = SC_OK;
        if (from < r->n)
            one = handle(x, &m, from, &left, s == SC_OK ? err : NULL);
        else
            search_tell(x, x->first + atomic_load(&x->next));
        sc_bytes_free(&m);
        if (s == SC_OK) s = one;
    }
    return s;
}

/* ---- the state after a round ------------------------------------------------ */

static sc_status share_out(search *x, sc_status s, sc_err *err)
{
    const sc_search_ranks *r = x->o->ranks;
    sc_status sent = SC_OK;
    for (uint32_t to = 1; to < r->n; to++) {
        sc_bytes m = {0};
        sc_bytes_uint(&m, (uint64_t)s);
        sc_bytes_text(&m, s != SC_OK && err->n ? err->d[0].msg : "");
        sc_bytes_uint(&m, atomic_load(&x->stopped));
        sc_bytes_uint(&m, x->first);
        search_tally_write(&x->all, &m);
        sc_status one = send(x, to, &m, s == SC_OK ? err : NULL);
        if (sent == SC_OK) sent = one;
    }
    return s == SC_OK ? sent : s;
}

static sc_status take_over(search *x, const sc_bytes *m, sc_err *err)
{
    sc_bytes_in in = sc_bytes_from(m->buf, m->len);
    sc_status s = (sc_status)sc_bytes_get_most(&in, SC_EINTR);
    const char *why = sc_bytes_get_text(&in, x->a);
    bool stopped = sc_bytes_get_uint(&in);
    uint64_t first = sc_bytes_get_most(&in, x->n_tasks);
    if (in.bad) return broken(0, err);
    if (s == SC_EINTR) return s;
    if (s != SC_OK)
        return sc_error(err, s, SC_C_IO, sc_pos_none(), NULL, "%.200s", why);
    if (!search_tally_read(&x->all, &in))
        return x->all.failed ? sc_error_nomem(err) : broken(0, err);
    x->first = (uint32_t)first;
    atomic_store(&x->stopped, stopped);
    return SC_OK;
}

sc_status search_ranks_share(search *x, sc_status s, sc_err *err)
{
    if (!x->o->ranks || x->o->ranks->n < 2) return s;
    if (!search_is_remote(x)) return share_out(x, s, err);
    sc_bytes m = {0};
    if (s == SC_OK) s = receive(x, &m, err);
    if (s == SC_OK) s = take_over(x, &m, err);
    sc_bytes_free(&m);
    return s;
}
