/* SPDX-License-Identifier: Apache-2.0 */
/* anchor.h - what the files about own runs share. */
#ifndef COST_ANCHOR_H
#define COST_ANCHOR_H

#include "cost/cost_anchor.h"

/* Parameters that the level of the network between nodes moves together. */
extern const sc_param anchor_network[];
extern const uint32_t anchor_n_network;

/* Parts of the covariance of two jobs: by parameters and network, and by
 * levels (with what the same job shares). */
double anchor_by_parameters(const sc_anchors *s, const sc_traits *x,
                            const sc_traits *y);
double anchor_by_levels(const sc_anchors *s, const sc_traits *x,
                        const sc_traits *y);

/* In place lower Cholesky factor of a[n * n]; false: not positive definite.
 * With `least` above 0 the matrix may be semidefinite: a row of which less than
 * this fraction of its variance is left is determined by those before it. */
bool anchor_factor(double *a, uint32_t n, double least);

/* Solves L L^T x = b in place, with the factor in `l`, [n * n] by rows. */
void anchor_solve(const double *l, uint32_t n, double *b);

/* Reads the list `anchors` of profile `root`, if it has one, whose parameters
 * were read into `inout`, which was `base`. */
sc_status anchor_read(const sc_node *root, const sc_cost *base, sc_arena *a,
                      sc_cost *inout, sc_err *err);

/* Reads a plain number in [lo, hi]. */
sc_status anchor_number(const sc_node *n, double lo, double hi, double *out,
                        sc_err *err);

#endif
