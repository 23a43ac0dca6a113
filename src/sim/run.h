/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - inside the engine: its loops, and the links that ops share. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "net/net_flow.h"
#include "sim/radix.h"
#include "sim/sim.h"

/* Kinds that matter for overlap: those of sc_op_kind up to SC_OP_MEM, then
 * collectives on the gradient stream. */
enum { SIM_GRAD = SC_OP_MEM + 1, SIM_N_KINDS };

/* Rate of a kind beside a set of kinds (one bit each); the last row is for
 * kinds that neither slow nor are slowed. */
typedef struct sim_rates {
    double at[SIM_N_KINDS + 1][1 << SIM_N_KINDS];
    bool any; /* one is below 1 */
} sim_rates;

/* Bit of an op's kind; 0: neither slows nor is slowed. */
static inline unsigned sim_bit(const sc_graph *g, sc_op i)
{
    static const uint8_t bit[SC_N_OP_KINDS] = {1u << SC_OP_COMPUTE,
                                               1u << SC_OP_COLL,
                                               1u << SC_OP_P2P,
                                               1u << SC_OP_MEM,
                                               0,
                                               0};
    bool grad = g->kind[i] == SC_OP_COLL && g->stream[i] == SC_S_GRAD;
    return grad ? 1u << SIM_GRAD : bit[g->kind[i]];
}

/* Bits of all kinds that an op has, part after part. */
static inline unsigned sim_bits(const sc_graph *g, sc_op i)
{
    return g->parts && g->parts[i] ? g->parts[i]->kinds : sim_bit(g, i);
}

static inline double sim_rate(const sim_rates *r, unsigned bit, unsigned beside)
{
    return r->at[__builtin_ctz(bit | 1u << SIM_N_KINDS)][beside];
}

/* ---- links ---- */

/* Links and shares of one op in flight; the last link is private. */
typedef struct sim_path {
    struct sim_path *next; /* free ones of the traffic */
    uint32_t *link;
    double *share;
    double own; /* rate that its private link allows */
} sim_path;

/* Links of one traffic, in the flow machine. */
typedef struct sim_route {
    uint32_t n;
    uint32_t *link;
    double *share, *bw; /* bytes per byte; bytes/ps of the link */
    bool *slows;        /* the link slows collectives, too */
    double pace;        /* ps per byte of the op, on its slowest link */
    uint64_t slowest;   /* that link, of the machine */
    sim_path *free;
} sim_route;

typedef struct sim_net {
    sc_arena *a;
    sc_flows *flows;
    sim_route *route; /* [n_traffic] */
} sim_net;

/* Builds the links that the ops' traffic crosses.  `net->flows` stays NULL
 * where there are none. */
sc_status sim_net_init(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                       sim_net *net, sc_err *err);

/* Whether op `i` can share links. */
static inline bool sim_net_has(const sim_net *net, const sc_graph *g, sc_op i)
{
    return net->flows && g->traffic[i] != SC_NONE &&
           net->route[g->traffic[i]].n > 0 && g->bytes[i] > 0 &&
           g->work[i] > g->latency[i];
}

/* Op `i` begins to move at `now` and `rate`; NULL when out of memory. */
sim_path *sim_net_post(sim_net *net, const sc_graph *g, sc_op i, double rate,
                       sc_time now);
void sim_net_rate(sim_net *net, sim_path *p, uint32_t traffic, double rate);
void sim_net_free(sim_net *net, uint32_t traffic, sim_path *p);
/* No transfer between two devices was faster than its slowest link; SC_C_BUG
 * names both. */
sc_status sim_net_check(const sim_net *net, const sc_graph *g,
                        const sc_sim_opts *o, const sc_result *r, sc_err *err);

/* ---- loops ---- */

/* One pass in the order of ids; correct if nothing overlaps or shares. */
sc_status sim_sweep(const sc_graph *g, sc_arena *a, sc_result *r, sc_err *err);

typedef struct sim_run {
    const sc_graph *g;
    const sc_rules *rules;
    const sim_rates *rates;
    sim_net *net;
    double gamma;
    const sim_rates *const *of_class; /* [n_classes]; NULL: `rates` for all */
} sim_run;

sc_status sim_events(const sim_run *run, sc_arena *a, sc_result *r,
                     sc_err *err);

/* Rounds, see rules.ready_order; nothing shares or has rates. */
sc_status sim_rounds(const sim_run *run, sc_arena *a,
                     sc_op *order /* [n_ops] out: as started */, sc_result *r,
                     sc_err *err);

sc_status sim_stopped(const sc_graph *g, uint32_t n_done, sc_err *err);
sc_status sim_too_long(const sc_graph *g, sc_op i, sc_err *err);

/* check.c, for assertions: every op has a larger id than those that it waits for;
 * none starts before those have ended, or ends before it starts, or after the
 * makespan. */
bool sim_is_ordered(const sc_graph *g);
bool sim_is_causal(const sc_graph *g, const sc_result *r);

#endif
