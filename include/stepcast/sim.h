/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - the engine: runs an execution graph.
 *
 * An op starts when its predecessors have completed and its stream is free
 * (a mark heeds no stream).  What overlaps on one class changes rates, never
 * adds time: while ops of one class run together, each progresses at the rate
 * opts.rate gives for the pair.  Ops of kind HOST and MARK neither slow nor
 * are slowed.  Where no rate below 1 can apply, the graph is one sweep in
 * topological order; otherwise events are processed from a radix heap on
 * integer picoseconds: at each timestamp complete everything due, start
 * everything ready, then give the classes whose running ops changed new rates.
 * Only an op whose rate differs from before is timed anew: the work it has
 * left is kept in double precision, its completion is rounded up to the next
 * picosecond.  Streams are in-order queues, so nothing is ever chosen, and the
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
    sc_time *finish;   /* [n_classes] last end of the class */
    uint64_t n_events; /* completions, and timings of running ops */
} sc_result;

/* Errors: SC_C_RANGE (a rate outside (0, 1], an op that ends beyond sc_time),
 * SC_C_MEMORY; SC_C_BUG for a graph that sc_graph_check() refuses. */
sc_status sc_sim_run(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                     sc_result *out, sc_err *err);

/* Time of one class split by category: sums exactly to `until`.  Ops on the
 * compute stream count as their own category.  A gap before one, or between
 * the last one and the end of the class, is followed backwards along the
 * causes: an op of the class counts as its own category, a transfer from
 * another class to this one as PP, everything else as BUBBLE; so does the
 * time after the class has ended.  One pass over all ops. */
void sc_result_breakdown(const sc_graph *g, const sc_result *r, uint32_t cls,
                         sc_time until, sc_time out[SC_N_CATS]);

#ifdef __cplusplus
}
#endif
#endif
