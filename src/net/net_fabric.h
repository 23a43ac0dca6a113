/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_fabric.h - messages between the devices of a machine, as flows
 * (net_flow.h) over its links and routes.
 *
 * A message becomes a flow over the links of its route, each of which adds
 * its latency.  Links and routes are created when they are first used.  The clock
 * is advanced by sc_flows_next() and sc_flows_advance() of sc_fabric_flows().
 *
 * Units: bytes, bytes/s, picoseconds (sc_time).  Everything lives in the arena
 * given to sc_fabric_new(); `hw` is borrowed.
 */
#ifndef SC_NET_FABRIC_H
#define SC_NET_FABRIC_H

#include "hw/hw.h"
#include "net/net_flow.h"

/* Which of several equal routes a message takes. */
typedef enum sc_route_rule {
    SC_ROUTE_ECMP,    /* a hash of pair, label and seed chooses: messages of
                         one connection take one route, and connections may
                         collide */
    SC_ROUTE_ADAPTIVE /* among up to 16 routes, the one whose fullest link
                         has the fewest messages for its rate at the time of
                         posting */
} sc_route_rule;

typedef struct sc_fabric_opts { /* all zero: ECMP, nominal rates */
    sc_route_rule rule;
    uint64_t seed;
    double fraction[2]; /* by sc_scope: fraction of the nominal rate that links
                        carry; 0: all of it */
} sc_fabric_opts;

typedef struct sc_message {
    uint32_t src, dst; /* devices */
    uint64_t bytes;
    uint64_t label; /* selects one of the pair's connections, for ECMP */
    double weight;  /* see sc_flow; 0: 1 */
    uint64_t tag;   /* returned with the end */
} sc_message;

typedef struct sc_fabric sc_fabric;

sc_status sc_fabric_new(const sc_hw *hw, const sc_fabric_opts *opts,
                        sc_arena *a, sc_fabric **out, sc_err *err);

sc_flows *sc_fabric_flows(sc_fabric *f);

/* Sends a message at `t`, see sc_flows_post().  From a device to itself it
 * takes no time. */
uint32_t sc_fabric_post(sc_fabric *f, const sc_message *m, sc_time t);

/* The route that a message posted now would take: links of sc_fabric_flows() and
 * the sum of their latencies.  False if out of memory or if a device does not
 * exist. */
typedef struct sc_fabric_path {
    const uint32_t *links; /* [n] in the arena */
    uint32_t n;
    sc_time latency;
} sc_fabric_path;

bool sc_fabric_route(sc_fabric *f, const sc_message *m, sc_fabric_path *out);

/* The machine's link that belongs to a link of sc_fabric_flows(). */
uint64_t sc_fabric_link(const sc_fabric *f, uint32_t link);
#endif
