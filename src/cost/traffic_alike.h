/* SPDX-License-Identifier: Apache-2.0 */
/* traffic_alike.h - links that a collective loads, with the facts by which they
 * are compared. */
#ifndef COST_TRAFFIC_ALIKE_H
#define COST_TRAFFIC_ALIKE_H

#include "hw/hw_link.h"

/* Links are alike if they join the same kinds of ends and carry equal loads. */
typedef struct cost_link {
    uint64_t link, order;
    double share, bw;
    float like; /* `share`, rounded so that sums in another order are equal */
    uint32_t kind;
} cost_link;

/* Sets all fields from link and share. */
void cost_describe_link(const hw_map *map, cost_link *i);

/* Of each set of links that are alike, keeps those whose numbers have the
 * smallest hashes. Two collectives with similar links therefore keep the same
 * ones. Returns `*n` links in any order; NULL: out of memory. */
cost_link *cost_thin_out(sc_arena *a, cost_link *all, uint32_t *n);

#endif
