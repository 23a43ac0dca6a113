/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_measure.h - operators of a trace whose kernels no model covers, and their
 * times as somebody measured them on another device.
 *
 * An operator is the same as another if its name and its inputs are: shapes, types
 * and scalars, as the trace has them.
 */
#ifndef SC_REPLAY_MEASURE_H
#define SC_REPLAY_MEASURE_H

#include "replay/replay.h"

typedef struct sc_replay_operator {
    const char *name, *dims, *types,
        *concrete;    /* "aten::topk", "[[8, 50]]" ... */
    uint32_t count;   /* calls in the window */
    uint32_t kernels; /* of all calls */
    sc_time total;    /* of these */
    const char *why;  /* why its time is only estimated; NULL: it is covered */
} sc_replay_operator;

typedef struct sc_replay_operators {
    uint32_t n;
    sc_replay_operator *of; /* [n] by falling total */
    uint32_t n_shapeless; /* kernels without shapes, which nobody can measure */
    sc_time shapeless;
} sc_replay_operators;

/* Operators with kernels, of all ranks of all models together. A model covers a
 * kernel that it names, if kernels of that kind were measured on `d`. */
sc_status sc_replay_operators_of(const sc_replay_model *const *m, uint32_t n,
                                 const sc_cost *cost, const sc_device *d,
                                 sc_arena *a, sc_replay_operators *out,
                                 sc_err *err);

/* Times of calls of operators, without the host. */
typedef struct sc_replay_times {
    uint32_t n;
    sc_replay_operator *of; /* [n]; `total` of one call */
    sc_map map;
} sc_replay_times;

/* Reads a table with the columns operator, dims, types, concrete, device, seconds.
 * Rows of other devices than `d` are left out; `*n_other` counts them. */
sc_status sc_replay_times_read(const sc_csv *t, const sc_device *d, sc_arena *a,
                               sc_replay_times *out, uint32_t *n_other,
                               sc_err *err);

/* Writes a program in Python that measures the operators with PyTorch, and prints
 * that table. */
void sc_replay_measure_script(const sc_replay_operators *o, sc_text *out);

#endif
