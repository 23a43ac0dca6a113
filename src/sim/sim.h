/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - the two loops of the engine; both fill the same result. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stepcast/sim.h>

/* One pass in id order: right where no rate differs from 1. */
sc_status sim_sweep(const sc_graph *g, sc_arena *a, sc_result *r, sc_err *err);

/* Events in time order, with rates. */
sc_status sim_events(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                     sc_result *r, sc_err *err);

/* The time of an op does not fit sc_time. */
sc_status sim_too_long(const sc_graph *g, sc_op i, sc_err *err);

#endif
