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
    uint32_t kernels; /* first piece of the operator's latest kernels */
    sc_text *why;     /* recorder of prices, or NULL */
    sc_text *reasons; /* recorder of inferred collectives, or NULL */
    const char *pass; /* named in reasons */
    sc_err *err;
} emit;

/* Appends one priced collective; `hidden_s` of it runs beside a kernel. */
sc_status block_coll(emit *e, const char *name, sc_coll coll, uint32_t axes,
                     double bytes, double hidden_s);
/* One line of `show --strategy`; `how` it is done, or "". */
void block_reason(emit *e, const char *name, const sc_move *m, double bytes,
                  const char *how);

/* Adds what turns one layout of a weight or gradient into another to `x`. */
void block_collect(emit *e, const char *what, const sc_layout *from,
                   const sc_layout *to, double elements, double bytes_each,
                   sc_exchange *x);

/* The same of the gradient of `elements` of an operator's weight, in the
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

void block_reasons(const sc_plan *p, uint32_t layer, sc_text *out);

#endif
