/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_flow.h - messages as flows that share links.  The caller advances the
 * clock.
 *
 * A flow moves bytes over a set of links; each link carries all of them or a
 * given fraction.  The flow first waits for its latency.  Then it moves at its
 * weighted max-min fair rate: all rates rise in proportion to the weights, and a
 * flow's rate stops rising when one of its links is full.  Rates are constant
 * until a flow starts or ends.  Then the affected flows get new rates, once for
 * all events of the same picosecond.
 *
 * There is no event loop inside.  The caller advances the time:
 *
 *   for (sc_time t; (t = sc_flows_next(x)) != SC_TIME_MAX;) {
 *       const sc_flow_end *end;
 *       uint32_t n = sc_flows_advance(x, t, &end);
 *       for (uint32_t i = 0; i < n; i++) ... post what end[i].tag releases
 *   }
 *
 * Links are numbered by sc_flows_add_link() and can have any capacities
 * (net_fabric.h adds the links of an sc_hw).
 *
 * Units: bytes, bytes/s (double), picoseconds (sc_time).  The end of a flow is
 * rounded up to the next picosecond, where 3e-14 of a duration count as rounding
 * error of doubles, and does not change afterwards.  The same calls give the same times
 * on every machine.
 *
 * Ownership: everything lives in the arena given to sc_flows_new(), which
 * only grows: some 130 bytes per flow in flight and 4 for each of its links.
 * Not thread-safe: one machine, one thread.
 */
#ifndef SC_NET_FLOW_H
#define SC_NET_FLOW_H

#include "base/base.h"

typedef struct sc_flows sc_flows;

#define SC_FLOW_NONE UINT32_MAX

typedef struct sc_flow {
    const uint32_t *links; /* [n_links] borrowed until the flow has ended; a
                              link listed twice is crossed twice */
    const double *share;   /* [n_links] also borrowed: bytes that cross the link
                              per byte of the flow, > 0; NULL: 1 each */
    uint32_t n_links;      /* 0: takes its latency only */
    uint64_t bytes;
    double weight;   /* > 0; if one link limits two flows, twice the weight
                        gives twice the rate */
    sc_time latency; /* >= 0 */
    uint64_t tag;    /* returned with the end */
} sc_flow;

typedef struct sc_flow_end {
    uint64_t tag;
    sc_time t;
    uint32_t flow; /* its id, which later flows may use again */
} sc_flow_end;

/* Starts without links and flows, at time 0. */
sc_status sc_flows_new(sc_arena *a, sc_flows **out, sc_err *err);

/* Reserves memory for `flows` in flight at once.  Growing step by step needs up to
 * three times as much. */
sc_status sc_flows_reserve(sc_flows *x, uint32_t flows, sc_err *err);

/* Adds a link of `bw` >= 0 bytes/s and returns its number: 0, 1, 2...;
 * SC_FLOW_NONE if out of memory.  Flows on a link of 0 do not move. */
uint32_t sc_flows_add_link(sc_flows *x, double bw);

/* Changes the capacity of a link to `bw` >= 0, from the time last advanced
 * to. */
void sc_flows_set_bw(sc_flows *x, uint32_t link, double bw);

/* Sends a flow at `t`, which is not before the time last advanced to.  Returns
 * its id; SC_FLOW_NONE if out of memory or if an argument is invalid. */
uint32_t sc_flows_post(sc_flows *x, const sc_flow *flow, sc_time t);

/* Removes a flow that has not ended, at the time last advanced to. */
void sc_flows_cancel(sc_flows *x, uint32_t flow);

/* The time of the next end or start of a flow, whichever is earlier: no flow ends
 * before it unless another is posted.  SC_TIME_MAX: nothing moves any more. */
sc_time sc_flows_next(sc_flows *x);

/* Advances the time to `t`.  Returns how many flows have ended since the last
 * call, ordered by time and then by id; the list is valid until the next call.
 * A caller that posts flows at the end of others advances to sc_flows_next() and
 * no further.  SC_FLOW_NONE: out of memory; the object cannot be used again. */
uint32_t sc_flows_advance(sc_flows *x, sc_time t, const sc_flow_end **ends);

/* Present rate of a flow, bytes/s; 0 before its latency is over. */
double sc_flows_rate(sc_flows *x, uint32_t flow);

/* Bytes that a flow still has to move at the time last advanced to. */
double sc_flows_left(sc_flows *x, uint32_t flow);

/* Present total rate of a link, bytes/s. */
double sc_flows_link_rate(sc_flows *x, uint32_t link);

/* The number of flows of a link that have not ended, moving or not, and the
 * capacity of the link. */
uint32_t sc_flows_link_load(const sc_flows *x, uint32_t link);
double sc_flows_link_bw(const sc_flows *x, uint32_t link);

/* The number of rates computed so far, as a measure of the work. */
uint64_t sc_flows_rated(const sc_flows *x);
#endif
