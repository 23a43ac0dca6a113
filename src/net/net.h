/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - closed forms of bandwidth: the rate of one port of a scope when all
 * sibling groups (sc_place.peers) use the network at the same time.
 *
 * net_flow.h simulates messages that share links over time; net_fabric.h does so
 * for the links of an sc_hw.
 */
#ifndef SC_NET_H
#define SC_NET_H

#include "hw/hw.h"

/* Which members communicate.  Fabrics without a crossbar give each pattern another
 * bandwidth. */
typedef enum sc_pattern {
    SC_PATTERN_NEIGHBOURS, /* rings and chains laid along the links */
    SC_PATTERN_ALL_PAIRS,  /* everyone to everyone at once */
    SC_PATTERN_PAIR,       /* each member with one other; between nodes one
                              member of each node sends through its own NICs */
    SC_PATTERN_OTHER_RAILS /* like neighbours, but data enter another rail than
                              they left, and so cross the spines */
} sc_pattern;

/* Nominal bytes/s of one member's port inside the node (scope NODE), or of
 * one node's NICs that this group may use while its `peers` do the same
 * (scope NET), oversubscription included.  0: no such scope, or links without a
 * formula (SC_DIM_CUBE: the search in coll/ finds the rate). */
double sc_net_bw(const sc_hw *hw, const sc_place *at, sc_scope scope,
                 sc_pattern pattern);

/* Seconds per byte that the last of equal transfers between the two members of
 * every group takes over the links between leaves and spines, on average.  Each
 * takes a spine at random, so that some links carry more than others.  0: none
 * leaves its leaf, or leaves are not oversubscribed: rates of such networks are
 * fitted, and what their links share is in these. */
double sc_net_last_transfer(const sc_hw *hw, const sc_place *at);

/* Nominal latency of one hop in that scope, seconds. */
double sc_net_latency(const sc_hw *hw, sc_scope scope);

/* The innermost dimension inside the node along which the group has more than
 * one member; dim[0] if there is none. */
const sc_dim *sc_net_node_dim(const sc_hw *hw, const sc_place *at);
#endif
