/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - puts the calls of a unit into their streams: begin, data, wait for
 * the end.
 */
#include "nccl/reserve.h"
#include "nccl/watch.h"

#include <pthread.h>

/* Units of a stream are queued in the order in which they are launched. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool waits(const nccl_call *c)
{
    bool p2p = c->coll == SC_SEND || c->coll == SC_RECV;
    bool self = p2p && !c->bytes && c->peer == c->comm->rank;
    return c->comm->n > 1 && !c->part && !self && call_bytes(c) > 0;
}

static live_op describe(const nccl_call *c)
{
    struct ncclComm *m = c->comm;
    return (live_op){
        .coll = c->bytes ? SC_ALL_TO_ALL : c->coll,
        .group = m->group,
        .peer = m->world[c->peer],
        .bytes = call_bytes(c),
        .async = true,
        .device = true,
    };
}

/* Data that calls of one stream exchange with other real ranks: sizes, and
 * addresses in host memory. */
static void plan_exchanges(nccl_call *call, uint32_t n, const nccl_call *of,
                           bool captured)
{
    gpu *g = of->comm->g;
    size_t room = 0;
    for (uint32_t i = 0; i < n; i++)
        if (call[i].stream == of->stream && waits(&call[i]))
            room += exchange_plan(&call[i]);
    if (!room) return;
    unsigned char *at = exchange_memory(g, of->stream, room, captured);
    if (!at)
        live_die(
            of->comm->l,
            "NCCL: there is no pinned memory to exchange data of real ranks");
    for (uint32_t i = 0; i < n; i++)
        if (call[i].stream == of->stream && !call[i].part)
            at += exchange_place(&call[i], at);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; call[i].part && k < i; k++)
            if (call[k].comm == call[i].comm && call[k].bytes &&
                call[k].stream == call[i].stream)
                call[i].x = call[k].x;
}

static unit *make_unit(nccl_call *call, uint32_t n, const nccl_call *of)
{
    gpu *g = of->comm->g;
    uint32_t k = 0, blocks = 1;
    int capture = 0;
    for (uint32_t i = 0; i < n; i++)
        k += call[i].stream == of->stream && waits(&call[i]);
    if (g->d->capturing) g->d->capturing(of->stream, &capture);
    plan_exchanges(call, n, of, capture == 1);
    unit *u = watch_alloc(g, of->stream, k, capture == 1);
    if (!u) return NULL;
    k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (call[i].stream != of->stream || !waits(&call[i])) continue;
        u->op[k].op = describe(&call[i]);
        u->op[k].x = call[i].x;
        u->op[k++].comm = call[i].comm;
        comm_hold(call[i].comm);
        uint32_t b = price_blocks(&call[i]);
        if (b > blocks) blocks = b;
    }
    u->blocks = blocks < g->sms ? blocks : g->sms;
    return u;
}

/* Begins to collect what the stream does for a unit; NULL: for calls that take no
 * time. The pieces themselves, 2 KB, are not cleared. */
static void collect(pieces *p, gpu *g, cudaStream_t stream, const unit *u)
{
    kernel_op *o = &p->op;
    p->g = g;
    p->stream = stream;
    p->blocks = u ? u->blocks : 0;
    p->waits = u && !g->values;
    p->begun = p->typed = false;
    o->n = o->gen = o->index = 0;
    o->slot = o->count = o->ring = o->tickets = 0;
    if (!p->waits) return;
    o->slot = u->at;
    o->gen = u->gen;
    if (!u->captured) return;
    o->count = u->count;
    o->tickets = g->tickets;
    o->ring = g->ring_at;
    o->index = u->index;
}

static CUresult begin(const unit *u)
{
    if (!u->g->values) return 0;
    return u->g->d->write_value(u->stream, u->at + offsetof(nccl_slot, started),
                                1, 0);
}

static CUresult finish(const unit *u)
{
    const driver *d = u->g->d;
    CUdeviceptr released = u->at + offsetof(nccl_slot, released);
    if (!u->g->values) return 0;
    CUresult rc = d->wait_value(u->stream, released, 1, CU_WAIT_GEQ);
    return rc ? rc : d->write_value(u->stream, released, 0, 0);
}

static CUresult fill(const nccl_call *call, uint32_t n, pieces *p)
{
    CUresult rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++)
        if (call[i].stream == p->stream && !exchange_fills(&call[i]))
            rc = data_fill(&call[i], call, n, p);
    return rc;
}

/* Copies the data of real ranks between device and host. */
static CUresult move_data(const nccl_call *call, uint32_t n, cudaStream_t s,
                          CUresult (*move)(const nccl_call *c))
{
    CUresult rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++)
        if (call[i].stream == s) rc = move(&call[i]);
    return rc;
}

/* Everything between the copies of real ranks' data. What has begun is ended,
 * whatever fails. */
static CUresult launch_unit(const nccl_call *call, uint32_t n, const unit *u,
                            pieces *p, bool *begun)
{
    CUresult rc = begin(u);
    if (rc) return rc;
    *begun = u->g->values;
    rc = fill(call, n, p);
    if (rc && !*begun && !p->begun) return rc;
    CUresult rc2 = pieces_end(p);
    CUresult rc3 = *begun ? finish(u) : 0;
    *begun |= p->begun;
    return rc ? rc : rc2 ? rc2 : rc3;
}

static ncclResult_t failed(const gpu *g, CUresult rc)
{
    return comm_fail(ncclUnhandledCudaError, "CUDA: %s",
                     driver_error(g->d, rc));
}

/* Launches the work of the calls on the stream of `of`, one of them. */
static ncclResult_t launch_stream(nccl_call *call, uint32_t n,
                                  const nccl_call *of)
{
    gpu *g = of->comm->g;
    pieces p;
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= call[i].stream == of->stream && waits(&call[i]);
    if (!any) {
        collect(&p, g, of->stream, NULL);
        CUresult rc = fill(call, n, &p);
        if (!rc) rc = pieces_end(&p);
        return rc ? failed(g, rc) : ncclSuccess;
    }
    unit *u = make_unit(call, n, of);
    if (!u)
        return comm_fail(ncclSystemError, "no memory shared with the device");
    /* The unit may have ended and be freed before its last launch. */
    const unit place = *u;
    collect(&p, g, of->stream, u);
    bool begun = false;
    pthread_mutex_lock(&lock);
    watch_queue(u);
    CUresult rc = move_data(call, n, of->stream, exchange_out);
    if (!rc) rc = launch_unit(call, n, &place, &p, &begun);
    if (!begun) watch_drop(u);
    if (!rc) rc = move_data(call, n, of->stream, exchange_in);
    pthread_mutex_unlock(&lock);
    return rc ? failed(g, rc) : ncclSuccess;
}

ncclResult_t call_launch(nccl_call *call, uint32_t n)
{
    ncclResult_t rc = ncclSuccess;
    for (uint32_t i = 0; i < n && !rc; i++) rc = reserve_for(&call[i]);
    for (uint32_t i = 0; i < n && !rc; i++) {
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first &= call[k].stream != call[i].stream ||
                     call[k].comm->g != call[i].comm->g;
        if (!first) continue;
        bool entered = gpu_enter(call[i].comm->g);
        rc = launch_stream(call, n, &call[i]);
        gpu_leave(call[i].comm->g, entered);
    }
    return rc;
}
