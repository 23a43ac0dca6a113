/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latencies.c - how long launches and streams need apart from waiting.
 *
 * A kernel whose stream was free when it was launched shows the latency of a
 * launch; one that was queued shows the gap between kernels.  Each keeps its own
 * value where it was measured, within limits beyond which it must be a wait that
 * the trace does not explain, and has the median where it was not.
 */
#include "replay/model.h"

#include <stdlib.h>
#include <string.h>

/* NVIDIA's driver keeps 1,024 launches per channel (spec: at most 1,022 were
 * outstanding in measured traces). */
#define NVIDIA_QUEUE 1022

/* A kernel that waited for units starts this soon after they are free. */
#define DRAINED 20000000
/* Clocks of a device are this exact. */
#define ENDED 1500000

/* When the stream and everything the op waits for was ready. */
static sc_time ready(const replay_rank *r, const replay_device_op *op,
                     bool *any)
{
    sc_time at = 0;
    *any = op->prev != REPLAY_NONE || op->waits.n > 0;
    if (op->prev != REPLAY_NONE) at = replay_end(r, op->prev);
    for (uint32_t k = 0; k < op->waits.n; k++) {
        sc_time end = replay_end(r, r->wait[op->waits.first + k]);
        if (end > at) at = end;
    }
    return at;
}

/* The middle of measured times; `none` if there are none. */
static sc_time middle_or(double *v, uint32_t n, sc_time none)
{
    return n ? (sc_time)sc_quantile(v, n, 0.5) : none;
}

static sc_status usual(replay_rank *r, sc_arena *tmp, sc_err *err)
{
    double *latency = SC_RAW_N(tmp, double, r->n_ops);
    double *gap = SC_RAW_N(tmp, double, r->n_ops);
    uint32_t n = 0, n_gaps = 0;
    if (!latency || !gap) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const replay_device_op *op = &r->op[i];
        bool any;
        sc_time at = ready(r, op, &any), launched = replay_launched(r, i);
        if (op->item == REPLAY_NONE) continue;
        if (at <= launched && op->start > launched)
            latency[n++] = (double)(op->start - launched);
        /* queued for long enough that the launch was not the cause */
        if (any && at > launched + 20000000 && op->start >= at)
            gap[n_gaps++] = (double)(op->start - at);
    }
    r->usual_latency = middle_or(latency, n, 8000000);
    r->usual_gap = middle_or(gap, n_gaps, 1000000);
    if (r->usual_gap > 10000000) r->usual_gap = 10000000;
    return SC_OK;
}

/* Kernels and copies compete for units of their own kind. A collective does not
 * fill a device, but an event that the trace does not show may be at its end. */
static bool competes(const replay_rank *r, uint32_t a, uint32_t b)
{
    bool copy = replay_span(r, r->op[a].span)->kind == SC_SPAN_COPY;
    if (replay_span(r, r->op[b].span)->kind == SC_SPAN_COLL)
        return replay_end(r, b) <= r->op[a].start + ENDED;
    return copy == (replay_span(r, r->op[b].span)->kind == SC_SPAN_COPY);
}

/* A kernel that starts late without a reason in its stream waited for the units
 * of the device: a kernel of another stream held them, until it ended or the last
 * of its blocks were dispatched. */
static void find_drain(replay_rank *r, uint32_t i)
{
    replay_device_op *op = &r->op[i];
    uint32_t best = REPLAY_NONE;
    for (uint32_t s = 0; s < r->n_streams; s++) {
        uint32_t first = r->stream_head[s], k = first;
        if (s == op->stream) continue;
        SC_FIRST(k, r->stream_head[s + 1], mid, r->op[mid].start >= op->start)
        if (k == first || !competes(r, i, k - 1)) continue;
        if (replay_end(r, k - 1) + DRAINED < op->start) continue;
        if (best == REPLAY_NONE || replay_end(r, k - 1) > replay_end(r, best))
            best = k - 1;
    }
    op->drains = best;
    if (best != REPLAY_NONE) op->drain = op->start - r->op[best].start;
}

static bool of_graph(const replay_rank *r, uint32_t op)
{
    uint32_t item = op == REPLAY_NONE ? REPLAY_NONE : r->op[op].item;
    return item != REPLAY_NONE &&
           replay_span(r, r->item[item].span)->detail == SC_CALL_GRAPH_LAUNCH;
}

/* Profilers do not record all kernels of CUDA graphs, so a long gap beside one
 * is work that the trace does not show. */
static void keep_unrecorded(replay_rank *r, replay_device_op *op, sc_time gap)
{
    r->unrecorded += gap;
    op->gap = gap;
}

static void set_op(replay_rank *r, uint32_t i)
{
    replay_device_op *op = &r->op[i];
    bool any;
    sc_time at = ready(r, op, &any), launched = replay_launched(r, i);
    sc_time most_gap = 4 * r->usual_gap + 2000000;
    sc_time most_latency = 4 * r->usual_latency + 20000000;
    if (op->item == REPLAY_NONE) {
        /* nothing tells when it was launched */
        op->gap = op->start > at ? op->start - at : 0;
        return;
    }
    sc_time gap = op->start > at ? op->start - at : 0;
    sc_time latency = op->start > launched ? op->start - launched : 0;
    bool queued = any && at > launched + r->usual_latency;
    op->gap = r->usual_gap;
    op->latency = r->usual_latency;
    if (queued && gap <= most_gap)
        op->gap = gap;
    else if (queued && (of_graph(r, i) || of_graph(r, op->prev)))
        keep_unrecorded(r, op, gap);
    else if (!queued && latency <= most_latency)
        op->latency = latency;
    else
        find_drain(r, i);
    if (!queued && op->prev == REPLAY_NONE && op->drains == REPLAY_NONE &&
        latency > most_latency) {
        /* of a stream's first op: for work from before the trace */
        op->earliest = op->start - op->gap;
        r->from_before += latency - op->latency;
    }
    if (!queued && gap < op->gap) op->gap = gap;
    if (op->gap > op->latency) op->latency = op->gap;
}

/* NVIDIA's runtime and driver have calls of these names. */
static bool is_cuda(const replay_rank *r)
{
    for (uint32_t i = 0; i < r->n_items; i++) {
        if (r->item[i].span == REPLAY_NONE) continue;
        const char *name = r->m->name[replay_span(r, r->item[i].span)->name];
        return strncmp(name, "cu", 2) == 0;
    }
    return false;
}

/* The usual length of calls that launch, to tell those that waited. */
static sc_status usual_call(const replay_rank *r, sc_arena *tmp, sc_time *out,
                            sc_err *err)
{
    double *dur = SC_RAW_N(tmp, double, r->n_items);
    uint32_t n = 0;
    if (!dur) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r->n_items; i++)
        if (r->item[i].kind == REPLAY_LAUNCH)
            dur[n++] = (double)replay_span(r, r->item[i].span)->dur;
    *out = middle_or(dur, n, 5000000);
    return SC_OK;
}

/* A launch that would be one too many returns when an earlier one has ended. */
static void set_queue(replay_rank *r, uint32_t i, sc_time call)
{
    replay_device_op *op = &r->op[i];
    uint32_t first = r->stream_head[op->stream];
    if (op->item == REPLAY_NONE || i - first < r->queue) return;
    replay_item *it = &r->item[op->item];
    if (it->device != i || it->waits.n) return;
    sc_time dur = replay_span(r, it->span)->dur;
    sc_time freed = replay_end(r, i - r->queue);
    op->frees = i - r->queue;
    it->queued = 1;
    it->leave = it->enter + dur;
    it->tail = freed > it->enter && freed < it->leave ? it->leave - freed : dur;
    if (freed >= it->leave && it->tail > call) it->tail = call;
}

/* The most launches of a stream that were outstanding when one returned. */
static uint32_t outstanding(const replay_rank *r)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const replay_device_op *op = &r->op[i];
        uint32_t done = r->stream_head[op->stream];
        if (op->item == REPLAY_NONE) continue;
        const replay_item *it = &r->item[op->item];
        sc_time returned = it->enter + replay_span(r, it->span)->dur;
        SC_FIRST(done, i, mid, replay_end(r, mid) > returned)
        if (i - done > most) most = i - done;
    }
    return most;
}

sc_status replay_find_latencies(replay_rank *r, sc_arena *a, sc_err *err)
{
    sc_arena tmp;
    sc_time call = 0;
    sc_arena_init(&tmp, a->limit);
    sc_status s = usual(r, &tmp, err);
    if (s == SC_OK) s = usual_call(r, &tmp, &call, err);
    sc_arena_free(&tmp);
    SC_TRY(s);
    for (uint32_t i = 0; i < r->n_ops; i++) set_op(r, i);
    if (is_cuda(r)) {
        /* a stream on which more were outstanding has a longer queue */
        uint32_t most = outstanding(r) + 1;
        r->queue = most > NVIDIA_QUEUE ? most : NVIDIA_QUEUE;
    }
    for (uint32_t i = 0; r->queue && i < r->n_ops; i++) set_queue(r, i, call);
    return SC_OK;
}
