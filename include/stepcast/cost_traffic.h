/* SPDX-License-Identifier: Apache-2.0 */
/* cost_traffic.h - which links of a machine a collective loads, and how much:
 * beside its price alone, what it shares with others. */
#ifndef SC_COST_TRAFFIC_H
#define SC_COST_TRAFFIC_H

#include <stepcast/coll.h>
#include <stepcast/graph_exec.h>
#include <stepcast/hw.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Traffic of a collective or transfer over real ranks: `n_groups` groups of
 * `size` ranks each (rank[group * size + i], in ring order), all at work at
 * once.  Rings and trees move along neighbours, all-to-all between all pairs,
 * a transfer from rank 0 to rank 1 of the group.  `share` per byte of V. */
sc_status sc_traffic_of(const sc_hw *hw, sc_coll coll, const uint32_t *rank,
                        uint32_t n_groups, uint32_t size, uint64_t seed,
                        sc_arena *a, sc_traffic *out, sc_err *err);

#ifdef __cplusplus
}
#endif
#endif
