/* SPDX-License-Identifier: Apache-2.0 */
/* memory_group.h - the memory of neighbouring pipeline devices with the same
 * layers, of which the one that saves most activations needs most. */
#ifndef PREDICT_MEMORY_GROUP_H
#define PREDICT_MEMORY_GROUP_H

#include "predict/internal.h"

/* What options of the end of a step do not change; bytes. */
typedef struct memory_group {
    uint32_t first, n; /* devices */
    double capacity;
    double weights, activations;
    double unreduced; /* gradients before they are reduced */
    double buffers;   /* between stages, and of buckets */
    double others;    /* dropped by compression, and exchanges issued ahead */
    double expanded;  /* weights and activations in expanded memory */
    double expanded_capacity;
    double grads, optim; /* elements of gradients and of optimizer states */
    const char *worst;   /* as in sc_stage_memory */
} memory_group;

/* Number of devices from `dev` on that one group has: the first and the last
 * device, and those of DualPipe, are alone. */
uint32_t predict_like_next(const sc_plan *p, uint32_t dev);

/* `out` has room for all devices. */
sc_status predict_memory_groups(const sc_plan *p, const sc_segment *segments,
                                sc_arena *a, memory_group *out, uint32_t *n,
                                sc_err *err);

/* The memory of the group's fullest device.  `r` may differ in options of the
 * end of the step from the run of the group, and has `optim` states then. */
sc_stage_memory predict_group_memory(const sc_run *r, const memory_group *g,
                                     double optim);

/* The memory of a run by its groups [n], whose states have `optim` [n] elements
 * (NULL: their own), if peaks are `scale` times as large. */
typedef struct memory_most {
    double peak; /* of the fullest device */
    double full; /* as predict_full() */
} memory_most;

memory_most predict_groups_most(const sc_run *r, const memory_group *g,
                                uint32_t n, const double *optim, double scale);

#endif
