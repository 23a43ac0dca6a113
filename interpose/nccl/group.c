/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - ncclGroupStart() and ncclGroupEnd(): the calls in between are
 * launched together.
 */
#include "nccl/call.h"

#include <stdlib.h>
#include <string.h>

/* The calling thread's open groups, whose calls are launched together. */
static _Thread_local struct {
    uint32_t depth, n, room;
    nccl_call *call;
    ncclResult_t failed; /* the first failure of the calls in it */
} group;

ncclResult_t call_submit(const nccl_call *c, const char *name)
{
    nccl_call one = *c;
    if (live_is_scout()) return ncclSuccess;
    if (!group.depth) {
        live_enter(c->comm->l);
        ncclResult_t rc = call_launch(&one, 1);
        live_leave(c->comm->l);
        return rc;
    }
    if (group.n == group.room) {
        uint32_t room = group.room ? 2 * group.room : 16;
        nccl_call *larger = realloc(group.call, room * sizeof *larger);
        if (!larger) return comm_fail(ncclSystemError, "%s: no memory", name);
        group.call = larger;
        group.room = room;
    }
    comm_hold(c->comm);
    group.call[group.n++] = one;
    return ncclSuccess;
}

ncclResult_t group_note(ncclResult_t rc)
{
    bool bad = rc != ncclSuccess && rc != ncclInProgress;
    if (bad && group.depth && !group.failed) group.failed = rc;
    return rc;
}

static bool same_exchange(const nccl_call *a, const nccl_call *b)
{
    return a->comm == b->comm && a->stream == b->stream && !b->part &&
           (b->coll == SC_SEND || b->coll == SC_RECV);
}

/* Sends to and receives from all other members of a communicator are one
 * exchange of all with all, represented by the first of them. */
static void merge_exchange(uint32_t first)
{
    nccl_call *a = &group.call[first];
    uint32_t n = a->comm->n, sent = 0, received = 0;
    uint64_t most = 0;
    bool twice = false;
    if (n < 3) return;
    bool *seen = calloc(2, n);
    if (!seen) return;
    for (uint32_t i = first; i < group.n; i++) {
        nccl_call *b = &group.call[i];
        if (!same_exchange(a, b)) continue;
        bool *s = &seen[b->peer + (b->coll == SC_SEND ? 0 : n)];
        if (b->peer != a->comm->rank)
            *(b->coll == SC_SEND ? &sent : &received) += 1;
        twice |= *s;
        *s = true;
        uint64_t bytes = b->count * call_type_size(b->type);
        if (bytes > most) most = bytes;
    }
    free(seen);
    if (twice || sent != n - 1 || received != n - 1) return;
    for (uint32_t i = group.n; i-- > first;)
        if (same_exchange(a, &group.call[i])) group.call[i].part = i != first;
    a->bytes = most * n;
}

NCCL_API(ncclResult_t, ncclGroupStart, void)
{
    group.depth++;
    return ncclSuccess;
}

static void close_group(void)
{
    for (uint32_t i = 0; i < group.n; i++) comm_release(group.call[i].comm);
    group.n = 0;
    group.failed = ncclSuccess;
}

static ncclResult_t end(const char *name)
{
    if (!group.depth)
        return comm_fail(ncclInvalidUsage, "%s without ncclGroupStart", name);
    group.depth--;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclGroupEnd, void)
{
    ncclResult_t rc = end("ncclGroupEnd");
    if (rc || group.depth) return rc;
    rc = group.failed;
    if (rc || !group.n) {
        close_group();
        return rc;
    }
    live *l = group.call[0].comm->l;
    live_enter(l);
    for (uint32_t i = 0; i < group.n; i++) {
        nccl_call *c = &group.call[i];
        if (!c->part && !c->bytes && (c->coll == SC_SEND || c->coll == SC_RECV))
            merge_exchange(i);
    }
    rc = call_launch(group.call, group.n);
    close_group();
    live_leave(l);
    return rc;
}

NCCL_API(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t *info)
{
    ncclResult_t rc = end("ncclGroupSimulateEnd");
    if (rc || group.depth) return rc;
    rc = group.failed;
    double seconds = 0;
    for (uint32_t i = 0; i < group.n; i++)
        seconds += price_seconds(&group.call[i]);
    close_group();
    if (info && info->size >= sizeof *info)
        info->estimated_time = (float)seconds;
    return rc;
}
