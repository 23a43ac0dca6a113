/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_sizes.h - one search for each number of a cluster's units (nodes,
 * racks, chips of a pod), and the fewest that meet a deadline or a budget.
 */
#ifndef SEARCH_SIZES_H
#define SEARCH_SIZES_H

#include "search/search_machines.h"

typedef struct sc_search_sizes {
    uint32_t n;
    sc_search_machine **size; /* [n], fewest units first; those that divide the
                            * job and fit may be fewer than were tried */
    uint32_t n_tried;
    const sc_search_machine *chosen; /* the fewest that meet the limits; without
                                   * limits the best; NULL: none */
    sc_search_goal goal;             /* of the rows of `chosen` */
    bool proved; /* no other number below the chosen one meets the limits */
} sc_search_sizes;

/* Searches the given numbers of units; nodes->n 0: powers of two, three times those, up to the number that the cluster has. Then, with limits, all numbers
 * below the first that meets them. The global batch is that of the cluster as
 * it was given. With limits, best rows are the fastest ones, and those of the
 * chosen size are the best by the goal that meet them. */
sc_status sc_search_sizes_run(const sc_search_question *q,
                              const sc_machine_axis *nodes, sc_arena *a,
                              sc_search_sizes *out, sc_err *err);

#endif
