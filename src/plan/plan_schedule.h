/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_schedule.h - schedule files, which list the passes of each pipeline
 * device in order.
 *
 *   placement: v            # loop (default), v, bidirectional
 *   devices:
 *     - F0 F1 B0 W0 B1 W1   # F forward, B backward, W backward of weights
 *     - F0.1 F0 ...         # micro-batch 0 of chunk 1
 *
 * If a micro-batch also has a W, its B computes gradients of inputs only.
 * Chunk c of device d holds stage c * pp + d in a loop, d and 2 pp - 1 - d in a
 * V, and d and pp - 1 - d if micro-batches enter at both ends (bidirectional).
 */
#ifndef SC_PLAN_SCHEDULE_H
#define SC_PLAN_SCHEDULE_H

#include "plan/plan.h"

typedef struct sc_schedule_file {
    const char *file;
    sc_schedule placement; /* built-in schedule that places stages in the same
                              way: interleaved, ZB-V or DualPipe */
    uint32_t pp, vpp, ga;
    bool splits;          /* some backward passes are split */
    const uint32_t *n;    /* [pp] */
    sc_slot *const *slot; /* [pp][n] */
} sc_schedule_file;

/* Checks that every pass appears once, that B follows F and W follows B, and
 * that the devices do not wait for each other in a cycle.
 * Errors at the pass: SC_C_SYNTAX, SC_C_TYPE, SC_C_DUPLICATE, SC_C_MISSING,
 * SC_C_CONFLICT (order), SC_C_CYCLE, SC_C_TOO_BIG (SC_SCHEDULE_PASSES). */
sc_status sc_schedule_read(const char *text, size_t len, const char *file,
                           sc_arena *a, const sc_schedule_file **out,
                           sc_err *err);
sc_status sc_schedule_load(const char *path, sc_arena *a,
                           const sc_schedule_file **out, sc_err *err);

#define SC_SCHEDULE_PASSES (1u << 24)

/* The same functions as sc_schedule_*() in plan.h, for the schedule of a run,
 * which may come from a file. */
sc_schedule sc_run_placement(const sc_run *r);
uint32_t sc_run_chunks(const sc_run *r);
uint32_t sc_run_stages(const sc_run *r);
/* Stages behind the loss, to which the program's rule gives nothing. */
uint32_t sc_run_idle_stages(const sc_run *r);
bool sc_run_splits(const sc_run *r);
uint32_t sc_run_slots(const sc_run *r);
uint32_t sc_run_order(const sc_run *r, uint32_t dev, sc_slot *out);
/* The virtual stage in chunk `chunk` of device `dev`, and the device that runs
 * micro-batch `mb` in stage `v`. */
uint32_t sc_run_stage(const sc_run *r, uint32_t dev, uint32_t chunk);
uint32_t sc_run_device(const sc_run *r, uint32_t v, uint32_t mb);

/* Whether the program can interleave `ga` micro-batches over `pp` devices: in
 * rounds of pp, or, if it allows long rounds, in ga / pp equal rounds. */
bool sc_schedule_rounds(const sc_software *sw, uint64_t pp, uint64_t ga);

/* The micro-batches of chunk `chunk` whose forward pass is a device's first,
 * and whose backward pass (of weights, where split) is its last. */
void sc_schedule_ends(const sc_slot *order, uint32_t n, uint32_t chunk,
                      uint32_t *first, uint32_t *last);

/* Peak of what a device holds, if a forward pass of chunk c leaves kept[c], of
 * which wgrad_held[c] stays until the weight pass if there is one. */
double sc_schedule_held(const sc_slot *order, uint32_t n, const double *kept,
                        const double *wgrad_held);
#endif
