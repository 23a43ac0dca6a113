/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.h - bytes that kernels with look-ups move on a device. */
#ifndef COST_LOOKUP_PRIVATE_H
#define COST_LOOKUP_PRIVATE_H

#include "cost/cost_op.h"

/* Takes what the last-level cache serves off the bytes of a kernel with
 * `reads`, and sets the seconds at the full rates of memory and cache. */
void lookup_move(const sc_device *d, const sc_kernel *k, sc_price *inout);

/* Reads of rows by a pass of a table whose distribution is known: rows of the
 * table, or in the backward pass gradients of results. */
sc_row_reads lookup_reads(const sc_op_work *w, bool forward);

/* Expected number of rows on this rank that are looked up at all. */
double lookup_unique(const sc_op_work *w);

#endif
