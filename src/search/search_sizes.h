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

/* ---- the front of several sizes ------------------------------------------ */

typedef enum sc_search_dim {
    SC_DIM_TIME, /* or energy, if it is the goal */
    SC_DIM_MEMORY,
    SC_DIM_DEVICES,
    SC_DIM_MONEY,
    SC_N_DIMS
} sc_search_dim;

extern const char *const sc_search_dim_names[]; /* "time" ...; NULL ends */

typedef struct sc_search_member {
    const sc_search_jobs *jobs;
    const sc_search_row *row;
    double at[SC_N_DIMS]; /* money: device-seconds, or what is proportional */
} sc_search_member;

/* The rows of the fronts of `size` that no other row is better than or equal to
 * in all dimensions of `dims` (bits); sorted by time, memory, devices. */
sc_status sc_search_front(const sc_search_machine *const *size,
                          uint32_t n_sizes, sc_search_goal goal, uint32_t dims,
                          sc_arena *a, sc_search_member **out, uint32_t *n,
                          sc_err *err);

#endif
