/* SPDX-License-Identifier: Apache-2.0 */
/* slack.c - how much later an op may end without changing when another one ends.
 * One pass against the order of ids, as in the critical path method (Kelley and
 * Walker 1959). */
#include "sim/run.h"

static inline void lower(sc_time *latest, sc_time t)
{
    if (t < *latest) *latest = t;
}

sc_status sc_result_slack(const sc_graph *g, const sc_result *r, sc_op target,
                          sc_arena *a, sc_time **out, sc_err *err)
{
    size_t queues = (size_t)g->n_classes * SC_N_STREAMS;
    sc_time *slack = SC_RAW_N(a, sc_time, g->n_ops);
    sc_arena_mark mark = sc_arena_save(a);
    sc_op *next = SC_RAW_N(a, sc_op, queues); /* in each queue */
    if (!slack || !next) return sc_error_nomem(err);
    sc_assert(r->order == NULL);
    for (size_t q = 0; q < queues; q++) next[q] = SC_NONE;
    for (sc_op i = g->n_ops; i-- > 0;) {
        /* the latest end; of ops behind: the latest start */
        sc_time latest = i == target ? r->end[i] : SC_TIME_MAX;
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            lower(&latest, slack[g->succ[k]]);
        bool queued = g->kind[i] != SC_OP_MARK;
        for (uint32_t p = sc_op_place(g, i);
             queued && p < sc_op_place(g, i + 1); p++) {
            size_t q = (size_t)g->cls[p] * SC_N_STREAMS + g->stream[i];
            if (next[q] != SC_NONE) lower(&latest, slack[next[q]]);
            next[q] = i;
        }
        slack[i] =
            latest == SC_TIME_MAX ? latest : latest - (r->end[i] - r->start[i]);
    }
    for (sc_op i = 0; i < g->n_ops; i++)
        if (slack[i] != SC_TIME_MAX) slack[i] -= r->start[i];
    sc_arena_restore(a, mark);
    *out = slack;
    return SC_OK;
}
