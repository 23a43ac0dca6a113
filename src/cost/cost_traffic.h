/* SPDX-License-Identifier: Apache-2.0 */
/* cost_traffic.h - finds the links of a machine that a collective loads, and
 * their load. The price of a collective alone does not show which links it
 * shares. */
#ifndef SC_COST_TRAFFIC_H
#define SC_COST_TRAFFIC_H

#include "coll/coll.h"
#include "graph/graph.h"
#include "hw/hw.h"

/* Groups of equal size. */
typedef struct sc_traffic_groups {
    const uint32_t *rank; /* [n][size], the ranks of a group in ring order */
    uint32_t n, size;
} sc_traffic_groups;

/* Traffic of a collective or transfer over real ranks, if all groups
 * communicate at the same time.  `share`: bytes over a link per byte of V.
 *
 * Reductions, gathers and broadcasts move along rings: in a node from member to
 * member, or as the topology search finds them where the node is wired
 * (coll_search.h); between nodes as many at once as the smallest node has
 * members, each through another.  On a torus or mesh rings follow its rows back
 * and forth, with half of the bytes in each direction.  The root of a broadcast
 * or reduction is rank 0.  An all-to-all moves data between all pairs; of more
 * than 65 members a sample of the pairs represents all.  SC_SENDRECV is a
 * transfer from rank 0 to rank 1 of a group of two, in a larger group from
 * every rank to the next.
 *
 * If there are more than 128 links, 8 of those that are alike (same ends, rate
 * and load) represent them: the same ones for all collectives with the same
 * load. Time is linear in the ranks, for an all-to-all in min(size, 65) of
 * each. Errors: SC_C_RANGE, a rank beyond the machine; SC_C_MEMORY. */
sc_status sc_traffic_of(const sc_hw *hw, sc_coll coll,
                        const sc_traffic_groups *of, uint64_t seed, sc_arena *a,
                        sc_traffic *out, sc_err *err);

/* The same where other jobs use the links, too: every link is in the result, and
 * with `even` routes use all equal links above the leaves evenly, as adaptive
 * routing does, instead of the one that the seed picks. */
sc_status sc_traffic_all(const sc_hw *hw, sc_coll coll,
                         const sc_traffic_groups *of, uint64_t seed, bool even,
                         sc_arena *a, sc_traffic *out, sc_err *err);
#endif
