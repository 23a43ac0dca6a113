/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.h - closed forms of what a collective moves, by algorithm.  The messages
 * themselves are in coll_schedule.h.
 *
 * A phase is a number of equal steps in which every member sends `bytes`
 * through its port of one scope: inside the node or between nodes.  net/ and
 * cost/ know how long that takes.  Sizes follow nccl-tests: V is the full
 * buffer (all-gather, reduce-scatter: of all n members together; all-to-all:
 * what one member sends, its own share included).
 */
#ifndef SC_COLL_H
#define SC_COLL_H

#include "coll/coll_schedule.h"
#include "hw/hw.h"

#define SC_COLL_PHASES 8

typedef struct sc_phase {
    sc_scope scope;
    uint32_t steps; /* sequential steps, each pays one hop latency */
    double bytes;   /* through the busiest member's port in its busier
                       direction, all steps together; SC_SCOPE_NET: per
                       node, all its members of the group together */
    bool overlaps;  /* runs pipelined with the previous phase */
} sc_phase;

typedef struct sc_phases {
    uint32_t n;
    sc_phase p[SC_COLL_PHASES];
} sc_phases;

/* One row per algorithm, in this order. */
enum {
    SC_ALGO_RING,         /* one ring over all members, over each rail */
    SC_ALGO_TREE,         /* double binary tree of nodes, chains inside */
    SC_ALGO_HIERARCHICAL, /* inside the nodes, rings between them per rail */
    SC_ALGO_DIRECT,       /* everyone to everyone */
    SC_ALGO_NVLS,         /* reduced in the node's switch; several nodes: and
                             in the network's, where the cluster has SHARP */
    SC_ALGO_NVLS_TREE,    /* in the node's switch, trees between nodes */
    SC_ALGO_COLLNET,      /* directly in the node, SHARP in the network */
    SC_ALGO_PAT,          /* parallel aggregated trees, a device per node */
    SC_N_ALGOS
};

typedef struct sc_algorithm {
    const char *name; /* "ring" "tree" "hierarchical" "direct" "nvls"
                         "nvls_tree" "collnet" "pat" */
    /* false: it does not do this collective */
    bool (*schedule)(sc_coll coll, sc_coll_group g, sc_coll_schedule *out);
    /* whether it can run there; NULL: anywhere */
    bool (*can)(const sc_hw *hw, const sc_place *at);
} sc_algorithm;

const sc_algorithm *sc_algorithms(uint32_t *n);
/* False if the algorithm cannot run this collective at this place.  For a group
 * of one or no bytes it returns true and no phases. */
bool sc_algorithm_phases(int algorithm, sc_coll coll, double bytes,
                         const sc_place *at, const sc_hw *hw, sc_phases *out);
int sc_algorithm_find(const char *name); /* index, -1: none */

/* busbw = algbw * factor (nccl-tests). */
double sc_coll_bus_factor(sc_coll coll, uint32_t n);

/* Bytes over all phases of one scope: in that scope's `bytes` unit. */
double sc_phases_bytes(const sc_phases *ph, sc_scope scope);
#endif
