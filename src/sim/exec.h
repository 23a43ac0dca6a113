/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - the executor inside: the loop, and the links it shares. */
#ifndef SIM_EXEC_H
#define SIM_EXEC_H

#include <stepcast/net_flow.h>
#include <stepcast/sim_exec.h>

#include "sim/radix.h"

/* Kinds as overlap sees them: those of sc_op_kind up to SC_OP_MEM, then
 * collectives on the stream of gradients. */
enum { EXEC_GRAD = SC_OP_MEM + 1, EXEC_N_KINDS };

/* Rate of a kind beside a set of kinds, a bit each. */
typedef struct exec_rates {
    double at[EXEC_N_KINDS][1 << EXEC_N_KINDS];
    bool any; /* one is below 1 */
} exec_rates;

/* EXEC_N_KINDS: neither slows nor is slowed. */
static inline unsigned exec_kind(const sc_exec *x, sc_op i)
{
    if (x->kind[i] == SC_OP_COLL && x->stream[i] == SC_S_GRAD) return EXEC_GRAD;
    return x->kind[i] <= SC_OP_MEM ? x->kind[i] : EXEC_N_KINDS;
}

/* ---- links ---- */

/* Links and shares of one op in flight; the last link is its own. */
typedef struct exec_path {
    struct exec_path *next; /* free ones of the traffic */
    uint32_t *link;
    double *share;
    double own; /* rate that its own link allows */
} exec_path;

/* Links of one traffic, in the flow machine. */
typedef struct exec_route {
    uint32_t n;
    uint32_t *link;
    double *share, *bw; /* bytes per byte; bytes/ps of the link */
    exec_path *free;
} exec_route;

typedef struct exec_net {
    sc_arena *a;
    sc_flows *flows;
    exec_route *route; /* [n_traffic] */
} exec_net;

/* Builds the links that the ops' traffic crosses.  `net->flows` stays NULL
 * where there are none. */
sc_status exec_net_init(const sc_exec *x, const sc_exec_opts *o, sc_arena *a,
                        exec_net *net, sc_err *err);

/* Can op `i` share links? */
static inline bool exec_net_has(const exec_net *net, const sc_exec *x, sc_op i)
{
    return net->flows && x->traffic[i] != SC_NONE &&
           net->route[x->traffic[i]].n > 0 && x->bytes[i] > 0 &&
           x->work[i] > x->latency[i];
}

/* Op `i` begins to move at `now` and `rate`; NULL when out of memory. */
exec_path *exec_net_post(exec_net *net, const sc_exec *x, sc_op i, double rate,
                         sc_time now);
void exec_net_rate(exec_net *net, exec_path *p, uint32_t traffic, double rate);
void exec_net_free(exec_net *net, uint32_t traffic, exec_path *p);

/* ---- loops ---- */

/* One pass in id order: right where nothing shares or overlaps. */
sc_status exec_sweep(const sc_exec *x, sc_arena *a, sc_exec_result *r,
                     sc_err *err);

typedef struct exec_run {
    const sc_exec *x;
    const sc_rules *rules;
    const exec_rates *rates;
    exec_net *net;
    double gamma;
} exec_run;

sc_status exec_events(const exec_run *run, sc_arena *a, sc_exec_result *r,
                      sc_err *err);

/* Rounds, see rules.ready_order; nothing shares or has rates. */
sc_status exec_rounds(const exec_run *run, sc_arena *a, sc_exec_result *r,
                      sc_err *err);

sc_status exec_stopped(const sc_exec *x, uint32_t n_done, sc_err *err);
sc_status exec_too_long(const sc_exec *x, sc_op i, sc_err *err);

#endif
