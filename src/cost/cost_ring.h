/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_ring.h - collectives as alpha + V / beta: NCCL 2.10.3, always as ring
 * with the simple protocol, at any size (sc_rules.ring_simple).
 *
 * Both numbers come from the topology search on the devices that take part, and
 * from NCCL's own table (coll_search.h). Collectives that NCCL's table lacks,
 * and rings of four devices, follow the rules of Proteus.
 */
#ifndef SC_COST_RING_H
#define SC_COST_RING_H

#include "coll/coll_search.h"

/* One group of ranks.  Plain data, can be copied.  Making it needs a search of
 * the node's graph, so keep it for all collectives of the group. */
typedef struct sc_ring_group {
    uint32_t n, nodes;
    sc_tuning tuning;
} sc_ring_group;

/* Makes the group of `rank` [n >= 1].  The node of the first rank represents
 * all nodes of the group: the same members take part in each.  The search's
 * memory comes from `a` and is freed; results are kept in hw->memo (about 10 ms
 * on a cube mesh with networks, once).  Errors: those of sc_topo_channels(). */
sc_status sc_cost_ring_group(const sc_hw *hw, const uint32_t *rank, uint32_t n,
                             sc_arena *a, sc_ring_group *out, sc_err *err);

typedef struct sc_ring_price {
    double seconds;
    double alpha;         /* seconds */
    double beta;          /* bytes/s of V, as nccl-tests counts it */
    uint32_t repetitions; /* number of times that alpha + V / beta is paid: n -
                             1 for an all-to-all */
} sc_ring_price;

/* A transfer is a broadcast to one rank, and so is a scatter or gather
 * (SC_BROADCAST).  An all-to-all uses the broadcast's numbers: between nodes
 * half of beta and half of alpha, inside a node beta and a tenth of alpha.
 * Groups of one and collectives of 0 bytes cost nothing. */
sc_status sc_cost_ring_simple(const sc_ring_group *g, sc_coll coll,
                              double bytes, sc_ring_price *out, sc_err *err);
#endif
