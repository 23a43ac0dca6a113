/* SPDX-License-Identifier: Apache-2.0 */
/* node_channels.h - runs NCCL's search among some devices of a node only
 * once. */
#ifndef COST_NODE_CHANNELS_H
#define COST_NODE_CHANNELS_H

#include "coll/coll_search.h"

/* Searches among the devices `dev` [n] of a node; a group on several nodes
 * includes networks.  Of the arrays only the ring's order is set.  Results are
 * kept in hw->memo.  `version` is used for nodes without a topology file.
 * Errors: those of sc_topo_channels(). */
sc_status cost_node_channels(const sc_hw *hw, sc_nccl version,
                             const uint32_t *dev, uint32_t n, uint32_t nodes,
                             sc_arena *a, sc_channels *out, sc_err *err);

#endif
