/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - requests: ours are in pages that do not move, found by handle,
 * and mix with the library's in all calls.
 */
#include "mpi/handle.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 256

static struct {
    mp_request **page;
    uint32_t n_pages;
    mp_request *unused;
} table;

/* Another page, all unused. */
static void grow(void)
{
    mp_request **more = mp_alloc((table.n_pages + 1) * sizeof *more);
    if (table.n_pages) memcpy(more, table.page, table.n_pages * sizeof *more);
    free(table.page);
    table.page = more;
    mp_request *p = mp_alloc(PAGE * sizeof *p);
    memset(p, 0, PAGE * sizeof *p);
    for (uint32_t i = PAGE; i--;) {
        p[i].index = table.n_pages * PAGE + i;
        p[i].next = table.unused;
        table.unused = &p[i];
    }
    table.page[table.n_pages++] = p;
    if (table.n_pages * PAGE > HANDLE_ROOM)
        live_die(mp.l, "more than %u requests at once", HANDLE_ROOM);
}

mp_request *mp_request_new(MPI_Request *out)
{
    mp_lock();
    if (!table.unused) grow();
    mp_request *r = table.unused;
    table.unused = r->next;
    uint32_t index = r->index;
    *r = (mp_request){.index = index, .state = MP_INACTIVE};
    mp_unlock();
    *out = handle_make(MPI_Request, HANDLE_REQUEST, index);
    return r;
}

mp_request *mp_request_of(MPI_Request h)
{
    uint32_t i;
    if (!handle_is(handle_bits(h), HANDLE_REQUEST, &i)) return NULL;
    mp_lock();
    mp_request *r =
        i < table.n_pages * PAGE ? &table.page[i / PAGE][i % PAGE] : NULL;
    mp_unlock();
    if (!r || r->state == MP_FREE)
        live_die(mp.l, "a request was used after it had been freed");
    return r;
}

static void drop(mp_request *r)
{
    mp_comm *c = r->is_call ? r->call.c : r->msg.c;
    if (r->is_call) mp_call_release(&r->call);
    if (!r->is_call && r->msg.held) PMPI_Type_free(&r->msg.type);
    if (!r->is_call) free(r->msg.like.own);
    free(r->part);
    mp_comm_drop(c);
    mp_lock();
    r->state = MP_FREE;
    r->next = table.unused;
    table.unused = r;
    mp_unlock();
}

bool mp_parts_done(MPI_Request *part, int n, bool wait, int *error)
{
    int done = 1;
    for (int i = 0; i < n && done; i++) {
        int code = wait ? MPI_Wait(&part[i], MPI_STATUS_IGNORE)
                        : MPI_Test(&part[i], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) *error = code;
    }
    return done;
}

/* Whether it has ended; with `wait`, waits for that. */
static bool is_done(mp_request *r, bool wait)
{
    if (r->state != MP_ACTIVE) return true;
    if (!(r->part      ? mp_parts_done(r->part, r->n_parts, wait, &r->error)
          : r->is_call ? mp_call_done(r, wait)
                       : mp_message_done(r, wait)))
        return false;
    r->state = MP_DONE;
    return true;
}

void mp_leftovers(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < table.n_pages * PAGE; i++) {
        mp_request *r = &table.page[i / PAGE][i % PAGE];
        if (r->state != MP_ACTIVE) continue;
        if (r->pending) live_cancel(mp.l, r->ticket);
        n++;
    }
    if (n)
        live_warn(mp.l,
                  "rank %u called MPI_Finalize with %u operations in "
                  "flight",
                  live_rank(mp.l), n);
}

/* ---- status ------------------------------------------------------------------------ */

static void empty(MPI_Status *s)
{
    if (s == MPI_STATUS_IGNORE) return;
    s->MPI_SOURCE = MPI_ANY_SOURCE;
    s->MPI_TAG = MPI_ANY_TAG;
    s->MPI_ERROR = MPI_SUCCESS;
    PMPI_Status_set_elements(s, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(s, 0);
}

static void describe(const mp_request *r, MPI_Status *s)
{
    if (s == MPI_STATUS_IGNORE) return;
    empty(s);
    if (!r->is_call && r->state == MP_DONE) mp_message_status(r, s);
    if (r->canceled) PMPI_Status_set_cancelled(s, 1);
}

/* The program is told that a request is done. */
static int hand_over(mp_request *r, MPI_Request *h, MPI_Status *s)
{
    describe(r, s);
    int code = r->error;
    if (r->persistent) {
        r->state = MP_INACTIVE;
        r->error = MPI_SUCCESS;
        r->canceled = false;
    } else {
        drop(r);
        *h = MPI_REQUEST_NULL;
    }
    return code;
}

static bool any_of_ours(int n, const MPI_Request *h)
{
    for (int i = 0; i < n; i++)
        if (handle_is_request(h[i])) return true;
    return false;
}

static MPI_Status *nth(MPI_Status *s, int i)
{
    return s == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : s + i;
}

static bool is_guess(MPI_Request h)
{
    const mp_request *r = handle_is_request(h) ? mp_request_of(h) : NULL;
    return r && r->state == MP_ACTIVE && r->pending && !r->is_call &&
           !r->msg.send && !mp_is_true(r->msg.c, r->msg.member);
}

/* What the program does next depends on which of these receives have ended: at
 * least `least` of them are of ranks of which this is not known. */
static void choose(int least, int n, const MPI_Request *h, const char *name)
{
    int guesses = 0;
    for (int i = 0; i < n && guesses < least; i++) guesses += is_guess(h[i]);
    if (guesses == least) live_guess(mp.l, name);
}

/* ---- one ----------------------------------------------------------------------------- */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (!handle_is_request(*request)) return PMPI_Wait(request, status);
    live_enter(mp.l);
    mp_request *r = mp_request_of(*request);
    is_done(r, true);
    int code = hand_over(r, request, status);
    live_leave(mp.l);
    return code;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!handle_is_request(*request)) return PMPI_Test(request, flag, status);
    live_enter(mp.l);
    mp_request *r = mp_request_of(*request);
    *flag = is_done(r, false);
    if (!*flag) choose(1, 1, request, "MPI_Test");
    int code = *flag ? hand_over(r, request, status) : MPI_SUCCESS;
    live_leave(mp.l);
    return code;
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (!handle_is_request(request))
        return PMPI_Request_get_status(request, flag, status);
    live_enter(mp.l);
    mp_request *r = mp_request_of(request);
    *flag = is_done(r, false);
    if (*flag) describe(r, status);
    live_leave(mp.l);
    return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request *request)
{
    if (!handle_is_request(*request)) return PMPI_Request_free(request);
    live_enter(mp.l);
    mp_request *r = mp_request_of(*request);
    if (r->state == MP_ACTIVE && r->pending) {
        if (!r->is_call && !r->msg.send) mp_message_abandon(r);
        if (r->pending) live_forget(mp.l, r->ticket);
    }
    for (int i = 0; r->state == MP_ACTIVE && i < r->n_parts; i++)
        if (r->part[i] != MPI_REQUEST_NULL) MPI_Request_free(&r->part[i]);
    drop(r);
    *request = MPI_REQUEST_NULL;
    live_leave(mp.l);
    return MPI_SUCCESS;
}

/* Cancels receives; sends are already gone. */
int MPI_Cancel(MPI_Request *request)
{
    if (!handle_is_request(*request)) return PMPI_Cancel(request);
    mp_request *r = mp_request_of(*request);
    if (r->is_call)
        return mp_fail(r->call.c, MPI_ERR_REQUEST,
                       "MPI_Cancel: %s can't be canceled", r->call.name);
    if (r->state != MP_ACTIVE || r->msg.send) return MPI_SUCCESS;
    live_enter(mp.l);
    if (r->pending && !live_ends_now(mp.l, r->ticket)) {
        r->pending = false;
        r->canceled = true;
        r->msg.count = 0;
        r->state = MP_DONE;
    } else {
        is_done(r, true); /* it is too late */
    }
    live_leave(mp.l);
    return MPI_SUCCESS;
}

int MPI_Start(MPI_Request *request)
{
    if (!handle_is_request(*request)) return PMPI_Start(request);
    mp_request *r = mp_request_of(*request);
    const mp_comm *c = r->is_call ? r->call.c : r->msg.c;
    if (!r->persistent || r->state != MP_INACTIVE)
        return mp_fail(c, MPI_ERR_REQUEST, "MPI_Start: the request is %s",
                       r->persistent ? "active already" : "not persistent");
    live_enter(mp.l);
    int code = r->is_call ? mp_call_start(r) : mp_message_start(r);
    live_leave(mp.l);
    return code;
}

int MPI_Startall(int count, MPI_Request array_of_requests[])
{
    int code = MPI_SUCCESS;
    if (!any_of_ours(count, array_of_requests))
        return PMPI_Startall(count, array_of_requests);
    for (int i = 0; i < count && code == MPI_SUCCESS; i++)
        code = MPI_Start(&array_of_requests[i]);
    return code;
}

/* ---- several ------------------------------------------------------------------------ */

int MPI_Waitall(int count, MPI_Request array_of_requests[],
                MPI_Status array_of_statuses[])
{
    if (!any_of_ours(count, array_of_requests))
        return PMPI_Waitall(count, array_of_requests, array_of_statuses);
    bool failed = false;
    live_enter(mp.l);
    for (int i = 0; i < count; i++) {
        MPI_Status *s = nth(array_of_statuses, i);
        int code = MPI_Wait(&array_of_requests[i], s);
        if (s != MPI_STATUS_IGNORE) s->MPI_ERROR = code;
        failed |= code != MPI_SUCCESS;
    }
    live_leave(mp.l);
    return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

/* The request is null, or ours and not started. */
static bool idle(MPI_Request h)
{
    return h == MPI_REQUEST_NULL ||
           (handle_is_request(h) && mp_request_of(h)->state == MP_INACTIVE);
}

/* Whether a request of either kind has ended, without freeing it. */
static int ended(MPI_Request h, bool *done)
{
    mp_request *r = handle_is_request(h) ? mp_request_of(h) : NULL;
    int flag = 0, code = MPI_SUCCESS;
    if (r)
        flag = is_done(r, false);
    else
        code = PMPI_Request_get_status(h, &flag, MPI_STATUS_IGNORE);
    *done = flag;
    return code;
}

int MPI_Testall(int count, MPI_Request array_of_requests[], int *flag,
                MPI_Status array_of_statuses[])
{
    if (!any_of_ours(count, array_of_requests))
        return PMPI_Testall(count, array_of_requests, flag, array_of_statuses);
    live_enter(mp.l);
    bool all = true;
    int code = MPI_SUCCESS;
    for (int i = 0; i < count && all; i++)
        if (!idle(array_of_requests[i]))
            code = ended(array_of_requests[i], &all);
    *flag = all;
    if (!all) choose(1, count, array_of_requests, "MPI_Testall");
    if (all && code == MPI_SUCCESS)
        code = MPI_Waitall(count, array_of_requests, array_of_statuses);
    live_leave(mp.l);
    return code;
}

/* The first request that has ended; *index MPI_UNDEFINED: none is active. With
 * `wait`, waits for one; else *flag says whether there is one. */
static int first(bool wait, const char *name, int n, MPI_Request *h, int *index,
                 int *flag, MPI_Status *s)
{
    bool active, done = false;
    int code = MPI_SUCCESS;
    live_enter(mp.l);
    choose(wait ? 2 : 1, n, h, name);
    *index = MPI_UNDEFINED;
    do {
        active = false;
        for (int i = 0; i < n && !done && code == MPI_SUCCESS; i++) {
            if (idle(h[i])) continue;
            active = true;
            code = ended(h[i], &done);
            if (!done) continue;
            *index = i;
            code = MPI_Wait(&h[i], s);
        }
    } while (wait && active && !done && code == MPI_SUCCESS);
    if (!active) empty(s);
    if (flag) *flag = done || !active;
    live_leave(mp.l);
    return code;
}

int MPI_Testany(int count, MPI_Request array_of_requests[], int *index,
                int *flag, MPI_Status *status)
{
    if (!any_of_ours(count, array_of_requests))
        return PMPI_Testany(count, array_of_requests, index, flag, status);
    return first(false, "MPI_Testany", count, array_of_requests, index, flag,
                 status);
}

int MPI_Waitany(int count, MPI_Request array_of_requests[], int *index,
                MPI_Status *status)
{
    if (!any_of_ours(count, array_of_requests))
        return PMPI_Waitany(count, array_of_requests, index, status);
    return first(true, "MPI_Waitany", count, array_of_requests, index, NULL,
                 status);
}

/* All that have ended; with `wait`, waits for one. */
static int some(bool wait, const char *name, int n, MPI_Request *h, int *n_out,
                int *indices, MPI_Status *s)
{
    bool active, failed = false;
    live_enter(mp.l);
    choose(wait ? 2 : 1, n, h, name);
    *n_out = 0;
    do {
        active = false;
        for (int i = 0; i < n; i++) {
            bool done;
            if (idle(h[i])) continue;
            active = true;
            /* If that fails, so does the wait. */
            if (ended(h[i], &done) == MPI_SUCCESS && !done) continue;
            MPI_Status *at = nth(s, *n_out);
            int code = MPI_Wait(&h[i], at);
            if (at != MPI_STATUS_IGNORE) at->MPI_ERROR = code;
            failed |= code != MPI_SUCCESS;
            indices[(*n_out)++] = i;
        }
    } while (wait && active && *n_out == 0);
    if (!active) *n_out = MPI_UNDEFINED;
    live_leave(mp.l);
    return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int MPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount,
                 int array_of_indices[], MPI_Status array_of_statuses[])
{
    if (!any_of_ours(incount, array_of_requests))
        return PMPI_Testsome(incount, array_of_requests, outcount,
                             array_of_indices, array_of_statuses);
    return some(false, "MPI_Testsome", incount, array_of_requests, outcount,
                array_of_indices, array_of_statuses);
}

int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount,
                 int array_of_indices[], MPI_Status array_of_statuses[])
{
    if (!any_of_ours(incount, array_of_requests))
        return PMPI_Waitsome(incount, array_of_requests, outcount,
                             array_of_indices, array_of_statuses);
    return some(true, "MPI_Waitsome", incount, array_of_requests, outcount,
                array_of_indices, array_of_statuses);
}
