/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - the walk over one layer that prices it, explains it, or lists
 * its collectives. */
#ifndef PLAN_BLOCK_H
#define PLAN_BLOCK_H

#include "plan/kernels.h"

typedef struct emit {
    const sc_plan *p;
    const sc_layer *layer;
    const sc_placed *placed; /* [layer->n_ops] */
    sc_piece *piece;         /* room for the pieces of one pass */
    uint32_t n;
    sc_text *why;     /* recorder of prices, or NULL */
    sc_text *reasons; /* recorder of inferred collectives, or NULL */
    const char *pass; /* named in reasons */
    sc_err *err;
} emit;

/* Appends one priced collective; `hidden_s` of it runs beside a kernel. */
sc_status block_coll(emit *e, const char *name, sc_coll coll, uint32_t axes,
                     double bytes, double hidden_s);
void block_reason(emit *e, const char *name, const sc_move *m, double bytes);

/* Sums of an exchange over all communicators. */
sc_status plan_exchange_price(const sc_plan *p, const sc_exchange *x,
                              double *bytes, double *seconds, sc_err *err);

/* Weights, gradients, optimizer states and their exchanges. */
sc_status block_weights(emit *e, sc_block *b);
/* Activations kept for the backward pass. */
void block_activations(emit *e, sc_block *b);

void block_reasons(const sc_plan *p, uint32_t layer, sc_text *out);

#endif
