/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_work.h - what the devices of a measured step did, by pass, kind of kernel
 * and layer: what a prediction is compared with.
 */
#ifndef SC_REPLAY_WORK_H
#define SC_REPLAY_WORK_H

#include "replay/replay.h"

typedef enum sc_work_pass {
    SC_WORK_FORWARD,
    SC_WORK_BACKWARD, /* with what is recomputed in it */
    SC_WORK_UPDATE,   /* of the optimizer */
    SC_WORK_ELSE,     /* known to be of none of these, or not known */
    SC_N_WORK_PASSES
} sc_work_pass;

typedef enum sc_work_kind {
    SC_WORK_PRODUCTS,  /* linear layers and convolutions */
    SC_WORK_ATTENTION, /* fused; else batched products and softmax */
    SC_WORK_NORMS,
    SC_WORK_KERNELS, /* all others */
    SC_WORK_COLLS,   /* collectives and messages, waiting included */
    SC_WORK_COPIES,  /* copies and memsets */
    SC_N_WORK_KINDS
} sc_work_kind;

extern const char *const sc_work_pass_names[]; /* "forward" ...; NULL ends */
extern const char *const sc_work_kind_names[]; /* "products" ...; NULL ends */

/* Kernels of a part of the model, forward and backward. */
typedef struct sc_layer_work {
    const char *name; /* "layers.3"; NULL: a trace does not have names */
    sc_time pass[2];  /* per step, by SC_WORK_FORWARD and SC_WORK_BACKWARD */
} sc_layer_work;

/* Durations per step: what runs at once counts as often. */
typedef struct sc_step_work {
    sc_time time[SC_N_WORK_PASSES][SC_N_WORK_KINDS];
    /* What is before the first layer, the layers, and what is behind the last one. */
    uint32_t n_layers;
    sc_layer_work *layer; /* [n_layers + 2] */
    /* By pass: how often a sequence of kernels repeats in it, one for each layer;
     * 0: none does. Where it is not n_layers, `layer` has nothing of the pass. */
    uint32_t repeats[2];
} sc_step_work;

/* The work of rank `rank` (an index) as recorded, whose model has `n_layers` equal
 * layers.  A trace does not name layers; they are found as a sequence of kernels that
 * repeats `n_layers` times in a pass, and no oftener. */
sc_status sc_replay_work(const sc_replay_model *m, uint32_t rank,
                         uint32_t n_layers, sc_arena *a, sc_step_work *out,
                         sc_err *err);

#endif
