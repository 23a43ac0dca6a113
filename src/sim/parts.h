/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - an op of several parts in its slot (sc_parts).
 *
 * If nothing on its class slows it or is slowed by it, it is timed as a whole;
 * else part by part, with the same rounding as if each part were an op.
 */
#ifndef SIM_PARTS_H
#define SIM_PARTS_H

#include "sim/run.h"

/* the part to which the slot's `left` belongs */
typedef struct sim_seq {
    uint32_t part;
    bool single; /* due when the part ends, not the op */
    bool late;   /* was timed part by part: the ends of parts are kept */
} sim_seq;

void parts_start(const sc_graph *g, sim_slot *x, sim_seq *q);

/* Switches an op between timing by parts and as a whole, by the kinds that run
 * at the same time. */
void parts_beside(const sim_rates *rates, const sc_graph *g, sc_result *r,
                  sim_slot *x, sim_seq *q, unsigned others, sc_time now);

/* The timed part has ended; true: the whole op has ended. */
bool parts_ended(const sc_graph *g, sc_result *r, sim_slot *x, sim_seq *q,
                 sc_time now);

/* Timed anew. */
void parts_retime(const sc_graph *g, sim_radix *queue, uint32_t slot,
                  const sim_seq *q, double rate, sc_time now);

#endif
