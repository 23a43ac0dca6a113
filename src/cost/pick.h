/* SPDX-License-Identifier: Apache-2.0 */
/* pick.h - what the files about choices share. */
#ifndef COST_PICK_H
#define COST_PICK_H

#include "cost/cost_pick.h"

/* Sets out->settle. `cov` is the covariance [n * n] of the logarithms of the
 * rows' steps, which is overwritten; `least` the expected smallest step. */
sc_status pick_settle(const sc_pick_row *rows, uint32_t n, double *cov,
                      double least, sc_arena *a, sc_pick *out, sc_err *err);

#endif
