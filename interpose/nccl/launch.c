/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - puts the calls of a unit into their streams: begin, data, wait for
 * the end.
 */
#include "nccl/call.h"
#include "nccl/watch.h"

#include <pthread.h>

/* Threads of a block, as in NCCL's largest kernels; see HOLD for the
 * registers. */
#define HOLD_THREADS 640

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

static CUresult begin(const unit *u)
{
    const gpu *g = u->g;
    uint32_t gen = u->captured ? 0 : u->gen;
    CUdeviceptr at = u->at;
    void *args[] = {&at, &gen};
    if (g->values)
        return g->d->write_value(u->stream, at + offsetof(nccl_slot, started),
                                 1, 0);
    return gpu_launch(u->g, g->fixed[KERNEL_MARK], 1, 1, u->stream, args);
}

static CUresult finish(const unit *u)
{
    const gpu *g = u->g;
    uint32_t gen = u->captured ? 0 : u->gen;
    CUdeviceptr at = u->at, released = at + offsetof(nccl_slot, released);
    void *args[] = {&at, &gen};
    if (!g->values)
        return gpu_launch(u->g, g->fixed[KERNEL_HOLD], u->blocks, HOLD_THREADS,
                          u->stream, args);
    CUresult rc = g->d->wait_value(u->stream, released, 1, CU_WAIT_GEQ);
    return rc ? rc : g->d->write_value(u->stream, released, 0, 0);
}

static CUresult fill(const nccl_call *call, uint32_t n, cudaStream_t s)
{
    CUresult rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++)
        if (call[i].stream == s && !exchange_fills(&call[i]))
            rc = data_fill(&call[i], call, n);
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
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= call[i].stream == of->stream && waits(&call[i]);
    if (!any) {
        CUresult rc = fill(call, n, of->stream);
        return rc ? failed(g, rc) : ncclSuccess;
    }
    unit *u = make_unit(call, n, of);
    if (!u)
        return comm_fail(ncclSystemError, "no memory shared with the device");
    /* The unit may have ended and be freed before its last launch. */
    const unit place = *u;
    pthread_mutex_lock(&lock);
    watch_queue(u);
    CUresult rc = move_data(call, n, of->stream, exchange_out);
    if (!rc) rc = begin(&place);
    bool begun = rc == 0;
    if (!rc) rc = fill(call, n, of->stream);
    if (begun) {
        CUresult rc2 = finish(&place);
        if (!rc) rc = rc2;
        if (!rc) rc = move_data(call, n, of->stream, exchange_in);
    } else {
        watch_drop(u);
    }
    pthread_mutex_unlock(&lock);
    return rc ? failed(g, rc) : ncclSuccess;
}

ncclResult_t call_launch(nccl_call *call, uint32_t n)
{
    ncclResult_t rc = ncclSuccess;
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
