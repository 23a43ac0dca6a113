/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.h - orders of passes, shared by schedule.c and schedule_zero.c. */
#ifndef PLAN_SCHEDULE_H
#define PLAN_SCHEDULE_H

#include "plan/plan.h"

/* Appends the passes of two chunks of one device.  The passes of each chunk are
 * in the order of its micro-batches. */
typedef struct sch_writer {
    sc_slot *out; /* NULL: slots are only counted */
    uint32_t n;
    uint32_t first[2], limit[2]; /* first and end of each chunk's micro-batches;
                                    later ones are left out */
    bool forward_only;
    uint32_t done[4][2];   /* by pass and chunk */
    uint32_t flying, most; /* micro-batches in flight, now and at most so far */
} sch_writer;

/* The schedules with split backward passes. */
void sch_zero_order(sc_schedule s, uint32_t pp, uint32_t ga, uint32_t dev,
                    sch_writer *w);

#endif
