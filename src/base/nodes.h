/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - the members of a group, sorted by node.
 *
 * Nodes are in the order in which the group's first members on them appear, and
 * members of a node in their order in the group.
 */
#ifndef SC_BASE_NODES_H
#define SC_BASE_NODES_H

#include "base/arena.h"

typedef struct sc_nodes {
    uint32_t n;       /* nodes that have members */
    uint32_t least;   /* members of the node with fewest */
    uint32_t most;    /* members of the node with most */
    uint32_t *order;  /* [members] positions in the group */
    uint32_t *first;  /* [n + 1] where a node begins in `order` */
    uint32_t *number; /* [nodes of the machine] zero between two calls */
} sc_nodes;

/* Space for groups of up to `members` ranks on a machine of `nodes` nodes.
 * Returns false if out of memory. */
bool sc_nodes_init(sc_nodes *x, sc_arena *a, uint32_t members, uint32_t nodes);

/* Sorts the members `rank[n]`; `size` devices are a node. */
void sc_nodes_sort(sc_nodes *x, const uint32_t *rank, uint32_t n,
                   uint32_t size);

#endif
