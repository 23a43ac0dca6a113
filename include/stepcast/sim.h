/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - the engine: runs an execution graph.
 *
 * An op starts when its predecessors have completed and its stream is free.
 * What overlaps on one class changes rates, never adds time: while a compute
 * op and a communication op of the same class run together, each progresses
 * at the rate opts.rate gives for the pair.  If no rate differs from 1 the
 * graph is one sweep in topological order; otherwise events are processed
 * from a radix heap on integer picoseconds, two phases per timestamp:
 * complete everything at t, then start what is ready in op-id order.  The
 * result is bit-identical on every compiler and machine.
 */
#ifndef SC_SIM_H
#define SC_SIM_H

#include <stepcast/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sc_sim_opts {
    /* Rates in (0, 1] of ops of kind a while an op of kind b runs on the same
     * class: rate[a][b].  Several partners: the smallest applies. */
    double rate[SC_N_OP_KINDS][SC_N_OP_KINDS];
} sc_sim_opts;

/* All rates 1. */
void sc_sim_opts_init(sc_sim_opts *o);

typedef struct sc_result {
    uint32_t n_ops;
    sc_time makespan;
    sc_time *start; /* [n_ops] */
    sc_time *end;   /* [n_ops] */
    /* [n_ops] the op whose completion let this one start (dependency or
     * predecessor in its stream), SC_NONE at time 0: reasons for waiting and
     * the critical path follow from it.  Ties: the larger id. */
    sc_op *cause;
    sc_time *finish; /* [n_classes] last end of the class */
    uint64_t n_events;
} sc_result;

sc_status sc_sim_run(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                     sc_result *out, sc_err *err);

/* Time of one class split by category: sums exactly to `until` - 0.  Ops on
 * the compute stream count as their own category; a gap before an op counts
 * as the category of what it waited for (p2p transfers as PP up to the
 * transfer's duration, the rest of a wait for another class as BUBBLE). */
void sc_result_breakdown(const sc_graph *g, const sc_result *r, uint32_t cls,
                         sc_time until, sc_time out[SC_N_CATS]);

#ifdef __cplusplus
}
#endif
#endif
