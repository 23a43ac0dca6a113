/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_plugin.h - a delay model of your own, for `stepcast emulate
 * --delay-model ./mine.so`.
 *
 * A plug-in is a shared object that exports three functions.  There is one
 * world per process, so state can be in static variables.  Calls come from one
 * thread at a time, and times never decrease.  A plug-in needs only this
 * header; examples/emulate/plugin has one that is built with the project.
 *
 * Units: bytes, picoseconds (int64_t) of the emulation's clock.
 */
#ifndef STEPCAST_DELAY_PLUGIN_H
#define STEPCAST_DELAY_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stepcast_delay_op {
    uint64_t id;          /* of the operation; comes back when it has ended */
    const char *op;       /* "all_reduce" ..., as in emulate's results */
    uint64_t bytes;       /* nccl-tests' V */
    uint32_t n;           /* members */
    const uint32_t *rank; /* [n] in the group's order; valid in the call only */
    uint32_t root;        /* position of root or sender in `rank` */
} stepcast_delay_op;

/* All members have come to the operation at `t` (not before the last
 * advance).  0: understood; else the run ends with an error. */
int stepcast_delay_post(const stepcast_delay_op *op, int64_t t);

/* When the next operation ends if nothing else comes; INT64_MAX: none is in
 * flight. */
int64_t stepcast_delay_next(void);

/* Time goes on to `t`.  Writes the ids of up to `cap` operations that have
 * ended by then, earliest first, and when; returns how many.  It is called
 * again with the same `t` until it returns less than `cap`. */
uint32_t stepcast_delay_advance(int64_t t, uint64_t *id, int64_t *end,
                                uint32_t cap);

/* The three of them, as the host of a plug-in holds them. */
typedef struct stepcast_delay_plugin {
    int (*post)(const stepcast_delay_op *op, int64_t t);
    int64_t (*next)(void);
    uint32_t (*advance)(int64_t t, uint64_t *id, int64_t *end, uint32_t cap);
} stepcast_delay_plugin;

#ifdef __cplusplus
}
#endif
#endif
