/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - an op of several parts in its slot (sc_parts).
 *
 * Where nothing on its class slows it or is slowed by it, it is timed as a
 * whole; else part by part, as if each were an op: with the same roundings.
 */
#ifndef SIM_PARTS_H
#define SIM_PARTS_H

#include "sim/run.h"

/* `left` of the slot is of the part that ran at `since`. */
typedef struct sim_seq {
    uint32_t part;
    bool single; /* due when the part ends, not the op */
    bool late;   /* was single: parts' ends are kept */
} sim_seq;

void parts_start(const sc_graph *g, sim_slot *x, sim_seq *q);

/* Makes an op single, or whole again, by the kinds that run beside it. */
void parts_beside(const sim_rates *rates, const sc_graph *g, sc_result *r,
                  sim_slot *x, sim_seq *q, unsigned others, sc_time now);

/* What it is timed to has ended; true: the op has. */
bool parts_ended(const sc_graph *g, sc_result *r, sim_slot *x, sim_seq *q,
                 sc_time now);

/* Timed anew. */
void parts_retime(const sc_graph *g, sim_radix *queue, uint32_t slot,
                  const sim_seq *q, double rate, sc_time now);

#endif
