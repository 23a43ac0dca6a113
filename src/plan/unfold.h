/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unfold.h - resolves references of a folded program in the whole network.
 *
 * The two compiled middle instances of a run show to what the others refer.  If
 * each refers to its own value, every instance refers to its own.  If the
 * second refers to a value of the first, every instance refers to the one
 * before it; if the first refers to a value of the second, to the one after it.
 * A value that both share is shared by all.
 */
#ifndef PLAN_UNFOLD_H
#define PLAN_UNFOLD_H

#include "plan/fold.h"

enum { LOOPS = 2, PARTS = INFER_REPS * LOOPS };

/* Numbers of values, or of items, in the folded and in the whole program. */
typedef struct numbering {
    uint32_t *at;    /* [n] part that made it; SC_NONE: outside of all runs */
    uint32_t *now;   /* [n] outside of runs: its number in the whole program */
    uint32_t *from;  /* [n_runs * PARTS] the first one that each part made */
    uint32_t **copy; /* [n_runs * LOOPS][count] the first one of each instance
                        in the whole program */
} numbering;

enum { VALUES, ITEMS, NUMBERED };

/* A gradient whose lists are filled in at the end. */
typedef struct pending {
    uint32_t first, second; /* templates: gradients of the folded program */
    uint32_t run, instance;
} pending;

typedef struct unfold {
    inference *f;
    const infer_fold *d;
    const inference *from;
    numbering of[NUMBERED];
    pending *pending; /* [n_pending] */
    uint32_t n_pending, cap_pending;
    uint32_t *list; /* scratch */
    uint32_t cap_list;
} unfold;

/* Where an item is emitted: in an instance of a run, or outside of all runs. */
typedef struct context {
    uint32_t run, instance; /* run SC_NONE: outside */
    uint32_t first, second; /* templates of the current operator: folded
                               operators that it repeats */
    uint32_t op;            /* its number in the whole network; SC_NONE: none */
    uint32_t n_items; /* items of an instance if its references follow from the
                         instances before it; else 0 */
} context;

/* Numbers the values and items of `u->from`; call this first. */
sc_status infer_number_parts(unfold *u, uint32_t loops);

/* Range of what an operator made in a loop: from the result to `*end`. */
infer_mark infer_made(const inference *f, uint32_t loop, uint32_t op,
                      infer_mark *end);

bool infer_is_middle(const unfold *u, const context *c);

/* Number in the whole program, or network, to which `c` refers if the first
 * middle instance refers to `v` and the second to `w`. */
uint32_t infer_made_ref(const unfold *u, const context *c, const numbering *o,
                        uint32_t v, uint32_t w);
uint32_t infer_op_ref(const unfold *u, const context *c, uint32_t v,
                      uint32_t w);
uint32_t infer_tensor_ref(const unfold *u, const context *c, uint32_t v,
                          uint32_t w);
uint32_t infer_stage_ref(const unfold *u, const context *c, uint32_t v,
                         uint32_t w);

#endif
