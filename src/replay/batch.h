/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - what another batch changes in operators, kernels and collectives. */
#ifndef REPLAY_BATCH_H
#define REPLAY_BATCH_H

#include "replay/model.h"
#include "replay/pace.h"
#include "replay/shapes.h"

/* Shapes of parameters, which do not depend on the batch. */
typedef struct replay_params {
    sc_map shapes;
    bool any_shape; /* the trace has shapes at all */
} replay_params;

/* Collects them from operators that state them: gradients that are accumulated,
 * optimizers, and weights of products, convolutions, norms and embeddings. */
sc_status replay_params_of(const replay_rank *r, sc_arena *a,
                           replay_params *out, sc_err *err);

/* Multiplies the samples in the inputs of an operator by `factor`: the first
 * dimension of every tensor of two or more dimensions that is no parameter, and
 * of lists of rows that are looked up. */
void replay_batch_scale(const replay_params *p, const char *name, double factor,
                        shape_inputs *inout);

/* Of a thread whose operators compute on the host. `lane` is one of the trace. */
sc_status replay_pace_of(const replay_rank *r, const replay_params *p,
                         uint32_t lane, double factor, sc_arena *a,
                         replay_pace *out, sc_err *err);

#endif
