/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - one pass in the order of ids; correct if nothing overlaps or
 * shares. */
#include "sim/run.h"

typedef struct queue {
    sc_time end; /* of the last op */
    sc_op op;
} queue;

/* When an op may start, and which op allowed it. */
typedef struct moment {
    sc_time t;
    sc_op why;
} moment;

static inline moment behind(const queue *q, bool queued, moment m)
{
    /* branch-free: with varied durations a branch would be unpredictable */
    bool wait = queued & ((q->end > m.t) | ((q->end == m.t) & (q->op > m.why)));
    m.why = wait ? q->op : m.why;
    m.t = wait ? q->end : m.t;
    return m;
}

static inline void occupy(sc_result *r, queue *q, bool queued, uint32_t cls,
                          sc_op i, sc_time end)
{
    if (queued) *q = (queue){end, i};
    if (end > r->finish[cls]) r->finish[cls] = end;
}

/* Ids only grow, so the last of several equals is the largest. */
static inline void release(const sc_graph *g, sc_result *r, sc_op i,
                           sc_time end)
{
    for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++) {
        sc_op s = g->succ[k];
        bool later = end >= r->start[s];
        r->start[s] = later ? end : r->start[s];
        r->cause[s] = later ? i : r->cause[s];
    }
}

static sc_status sweep_one(const sc_graph *g, queue *queues, sc_result *r,
                           sc_err *err)
{
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t cls = g->cls[i];
        queue *q = &queues[(size_t)cls * SC_N_STREAMS + g->stream[i]];
        bool queued = g->kind[i] != SC_OP_MARK;
        moment m = behind(q, queued, (moment){r->start[i], r->cause[i]});
        sc_time work = g->work[i];
        if (work >= SC_TIME_MAX - m.t) return sim_too_long(g, i, err);
        sc_time end = m.t + work;
        r->start[i] = m.t;
        r->end[i] = end;
        r->cause[i] = m.t ? m.why : SC_NONE;
        occupy(r, q, queued, cls, i, end);
        release(g, r, i, end);
    }
    return SC_OK;
}

static sc_status sweep_several(const sc_graph *g, queue *queues, sc_result *r,
                               sc_err *err)
{
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t from = g->cls_head[i], to = g->cls_head[i + 1];
        bool queued = g->kind[i] != SC_OP_MARK;
        moment m = {r->start[i], r->cause[i]};
        queue *q = queues + g->stream[i];
        for (uint32_t p = from; p < to; p++)
            m = behind(q + (size_t)g->cls[p] * SC_N_STREAMS, queued, m);
        sc_time work = g->work[i];
        if (work >= SC_TIME_MAX - m.t) return sim_too_long(g, i, err);
        sc_time end = m.t + work;
        r->start[i] = m.t;
        r->end[i] = end;
        r->cause[i] = m.t ? m.why : SC_NONE;
        for (uint32_t p = from; p < to; p++)
            occupy(r, q + (size_t)g->cls[p] * SC_N_STREAMS, queued, g->cls[p],
                   i, end);
        /* a delay on no class is over for all, too */
        if (from == to && end > r->makespan) r->makespan = end;
        release(g, r, i, end);
    }
    return SC_OK;
}

sc_status sim_sweep(const sc_graph *g, sc_arena *a, sc_result *r, sc_err *err)
{
    queue *queues = SC_NEW_N(a, queue, (size_t)g->n_classes * SC_N_STREAMS);
    if (!queues) return sc_error_nomem(err);
    r->n_events = g->n_ops;
    return g->cls_head ? sweep_several(g, queues, r, err)
                       : sweep_one(g, queues, r, err);
}
