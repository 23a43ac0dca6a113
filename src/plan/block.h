/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - the walk over one layer that prices it, explains it, or lists
 * its collectives. */
#ifndef PLAN_BLOCK_H
#define PLAN_BLOCK_H

#include "plan/work.h"

typedef struct emit {
    const sc_plan *p;
    const sc_layer *layer;
    const sc_placed *placed; /* [layer->n_ops] */
    sc_piece *piece;         /* room for the pieces of one pass */
    uint32_t n;
    sc_err *err;
} emit;

/* Adds the exchange of the gradient of `elements` of an operator's weight, in the
 * run's format on the wire, with the kernels that it costs. */
void block_gradient(emit *e, const sc_placed *o, const sc_layout *made,
                    const sc_layout *want, double elements, sc_block *b);

/* Sums of an exchange over all communicators; sets x->channels. */
sc_status plan_exchange_price(const sc_plan *p, sc_exchange *x, double *bytes,
                              double *seconds, sc_err *err);

/* Weights, gradients, optimizer states and their exchanges. */
sc_status block_weights(emit *e, sc_block *b);
/* Activations kept for the backward pass. */
void block_activations(emit *e, sc_block *b);

#endif
