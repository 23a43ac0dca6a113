/* SPDX-License-Identifier: Apache-2.0 */
/* segment.h - a run whose layers are being added up; shared by segment.c and
 * segment_activations.c. */
#ifndef PLAN_SEGMENT_PRIVATE_H
#define PLAN_SEGMENT_PRIVATE_H

#include "plan/clock.h"
#include "plan/infer.h"
#include "plan/plan_segment.h"

enum { FORWARD, BACKWARD, PASSES };

/* One pass of a layer while it is added up. */
typedef struct segment_pass {
    double copies; /* seconds of copies of activations between memories */
    double now;    /* seconds on the compute stream so far */
} segment_pass;

typedef struct segment_reading {
    const sc_run *run;
    segment_network net;
    sc_net_run job;
    sc_net_plan plan;
    net_program prog; /* with copies between memories */
    lowering g;
    int tp; /* axis of the mesh; -1 */
    lower_clock clock;
    sc_segment *b;                /* [n_layers] */
    segment_pass (*pass)[PASSES]; /* [n_layers] */
    sc_made *made;        /* [n_ops] time of an operator's last kernel in
                                     the backward pass of its layer */
    uint32_t *at;         /* [n_items] index in both passes; SC_NONE: in
                                     none */
    uint32_t n_at, n_fwd; /* items of both passes; of the forward pass */
    sc_arena *a;
    sc_err *err;
} segment_reading;

/* The kind of layer that an item is counted for; SC_NONE if its layer does not
 * represent a kind. */
uint32_t segment_kind_of(const segment_reading *x, uint32_t item);

/* Whether a layer is compiled with all or none of its data offloaded, and scaled:
 * whole tensors of few layers are not the fraction that those of many are.  The
 * fit has rows that keep activations in the host's memory by whole tensors. */
bool segment_scales(const sc_run *of);

/* Sets the activations of all layers, whose passes are known. */
sc_status segment_activations(segment_reading *x);

#endif
