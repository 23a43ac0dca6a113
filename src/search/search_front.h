/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_front.h - the front of a search: of the configurations of one or several
 * machines, or of machines with the fastest configuration of each.
 */
#ifndef SEARCH_FRONT_H
#define SEARCH_FRONT_H

#include "search/search_machine.h"

typedef enum sc_search_dim {
    SC_DIM_TIME, /* of a step, or the objective if it is energy; of a machine that
                  * of the whole run if there is one */
    SC_DIM_MEMORY,
    SC_DIM_DEVICES,
    SC_DIM_MONEY, /* of a step or run: device-seconds, or what is proportional;
                      * of a machine USD */
    SC_DIM_POWER, /* of the machine at its limit, W */
    SC_DIM_CAPITAL, /* what the machine costs, USD */
    SC_N_DIMS
} sc_search_dim;

extern const char *const sc_search_dim_names[]; /* "time" ...; NULL ends */

struct sc_machine_row;

typedef struct sc_search_member {
    const sc_search_jobs *jobs; /* NULL: a machine */
    const sc_search_row *row;   /* of jobs */
    const struct sc_machine_row *machine;
    double at[SC_N_DIMS]; /* 0: not known */
} sc_search_member;

/* The rows of the fronts of `size` that no other row is better than or equal to
 * in all dimensions of `dims` (bits); sorted by time, memory, devices. */
sc_status sc_search_front(const sc_search_machine *const *size,
                          uint32_t n_sizes, sc_search_goal goal, uint32_t dims,
                          sc_arena *a, sc_search_member **out, uint32_t *n,
                          sc_err *err);

/* The same of any members [n]. */
sc_status sc_search_front_of(const sc_search_member *all, uint32_t n_all,
                             uint32_t dims, sc_arena *a, sc_search_member **out,
                             uint32_t *n, sc_err *err);

/* Whether `x` is at least as good as `y` in all dimensions. */
bool sc_search_covers(const double *x, const double *y, uint32_t dims);

#endif
