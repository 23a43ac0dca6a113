/* SPDX-License-Identifier: Apache-2.0 */
/* search_tornado.h - how much the step of a search depends on the machine. */
#ifndef SEARCH_TORNADO_H
#define SEARCH_TORNADO_H

#include "hw/hw_moved.h"
#include "search/search_machine.h"

/* The change of a step, as a fraction, if a property of the machine is less or
 * more; NaN: nothing fits. */
typedef struct sc_search_swing {
    const char *name;            /* of sc_hw_property_names */
    double less, more;           /* of the fastest step, searched again */
    double same_less, same_more; /* of the same configuration */
} sc_search_swing;

/* Changes each property of the machine of a search by -`by` and +`by`.  `row` is
 * the configuration that is predicted again; `job` that of `jobs` on its machine.
 * Largest change first; those below 1e-4 are left out.  `*base_s` is the fastest
 * step of the search. */
sc_status sc_search_tornado(const sc_search_question *q, const sc_job *job,
                            const sc_search_jobs *jobs,
                            const sc_search_row *row, double by, sc_arena *a,
                            sc_search_swing out[SC_N_HW_PROPERTIES],
                            uint32_t *n, double *base_s, sc_err *err);

#endif
