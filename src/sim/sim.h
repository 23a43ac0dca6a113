/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - the engine: runs an execution graph.
 *
 * An op occupies one stream on each of its classes. It starts when its
 * predecessors have completed and it is first on all of these streams (a mark
 * needs no stream). Streams are queues in the order of ids (or of readiness, by
 * the rules). An op is work and a rate; overlap changes rates and never adds
 * time: while ops of one class run together, each progresses at the rate that
 * opts.rate gives for the pair, and an op that moves bytes at the smaller of
 * that rate and its weighted max-min fair share of every link on its route. Ops
 * of kind HOST and MARK neither slow others nor are slowed.
 *
 * An op never runs faster than alone (its price), and alone it runs at that
 * speed, unless it is priced faster than a link on its route: then a transfer
 * takes as long as its bytes need there, and a collective fills that link. Ops
 * (of one group) that are limited by the same link move their bytes at the same
 * rate.
 *
 * If no rate below 1 can apply and nothing is shared, the graph is run in one
 * sweep in topological order. Otherwise events come from a radix heap on
 * integer picoseconds: at each timestamp everything due completes, everything
 * ready starts, and new rates go to ops that overlap or share with those that
 * started or ended. Only an op whose rate changed is timed anew: its remaining
 * work is kept in double precision, and its completion is rounded up to the
 * next picosecond. Nothing is ever chosen, so the result is bit-identical on
 * every compiler and machine.
 *
 * Units: picoseconds, bytes, bytes/s.
 */
#ifndef SC_SIM_H
#define SC_SIM_H

#include "base/rules.h"
#include "graph/graph.h"
#include "hw/hw.h"

typedef struct sc_sim_opts {
    const sc_hw *hw;       /* links; NULL: nothing is shared */
    const sc_rules *rules; /* NULL: our own */
    /* Rates in (0, 1] of ops of kind a while an op of kind b runs on the same
     * class: rate[a][b].  Several partners: the smallest applies. */
    double rate[SC_N_OP_KINDS][SC_N_OP_KINDS];
    /* If >= 0, compute and gradient exchanges that overlap both take 1 + gamma
     * times as long, whatever `rate` says; NaN: by the rates. */
    double gamma;
    double link_fraction[2]; /* by sc_scope, see sc_fabric_opts */
    /* [n_classes] options whose `rate` and `gamma` hold for each class; NULL:
     * these for all. Not with rules.ready_order. */
    const struct sc_sim_opts *const *of_class;
    /* Links above the leaves slow collectives that move more than they carry, as
     * they slow transfers: prices do not contain these links. */
    bool slow_above;
} sc_sim_opts;

/* All rates 1, nothing shared. */
void sc_sim_opts_init(sc_sim_opts *o);

typedef struct sc_result {
    uint32_t n_ops;
    sc_time makespan;
    sc_time *start; /* [n_ops] */
    sc_time *end;   /* [n_ops] */
    /* [n_ops] the op whose completion allowed this one to start (dependency or
     * predecessor in a stream), SC_NONE at time 0. Reasons for waiting and the
     * critical path follow from it. Ties: the larger id. */
    sc_op *cause;
    const sc_op *order;  /* [n_ops] such that every stream ran its own in that
                            order; NULL: by id */
    sc_time *finish;     /* [n_classes] last end of the class */
    sc_time *shared;     /* [n_ops] extra time from sharing links */
    sc_time *overlapped; /* [n_ops] extra time from overlap */
    sc_time *part_end;   /* [parts] end of a part that other ops slowed; 0:
                            as if alone; NULL: no op has parts */
    uint32_t n_links;    /* links that were used */
    uint64_t *link;      /* [n_links] */
    double *link_bytes;  /* [n_links] carried */
    uint64_t n_events;   /* completions, and timings of running ops */
} sc_result;

/* Errors: SC_C_RANGE (an option, a link that the machine does not have, an op
 * that ends beyond sc_time), SC_C_TOO_BIG, SC_C_MEMORY; SC_C_BUG for a graph
 * that is not as graph.h says, and for a result in which a transfer exceeds
 * a link. */
sc_status sc_sim_run(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                     sc_result *out, sc_err *err);

/* When part `k` of op `i` starts and ends. */
sc_time sc_part_start(const sc_graph *g, const sc_result *r, sc_op i,
                      uint32_t k);
sc_time sc_part_end(const sc_graph *g, const sc_result *r, sc_op i, uint32_t k);

/* `*out` [n_ops] in `a`: by how much the work of each op may grow without a later
 * end of `target`; SC_TIME_MAX for ops that it does not depend on. Growing by
 * more moves the end by the rest. Exact where nothing overlaps or shares, which is
 * where sc_sim_run() needs one sweep. */
sc_status sc_result_slack(const sc_graph *g, const sc_result *r, sc_op target,
                          sc_arena *a, sc_time **out, sc_err *err);

/* Splits the time of one class by category; the parts sum exactly to `until`.
 * Ops on the compute stream count as their own category. A gap before one, or
 * after the last one, is followed backwards along the causes: an op of the
 * class counts as its own category, a transfer from another class to this one
 * as PP, everything else as BUBBLE; so does the time after the class has ended.
 * One pass over all ops. */
void sc_result_breakdown(const sc_graph *g, const sc_result *r, uint32_t cls,
                         sc_time until, sc_time out[SC_N_CATS]);
#endif
