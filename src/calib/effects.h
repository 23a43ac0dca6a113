/* SPDX-License-Identifier: Apache-2.0 */
/* effects.h - what held-out errors have in common, and what own runs would have
 * taught of them. */
#ifndef CALIB_EFFECTS_H
#define CALIB_EFFECTS_H

#include "calib/calib.h"
#include "calib/runs.h"

/* A counted row that a fit without its family predicted. */
typedef struct calib_held {
    sc_valid_row *row;
    sc_traits traits;
    const sc_covariance *cov;  /* of this fit */
    const sc_effects *effects; /* of the other families; NULL: not estimated */
} calib_held;

/* The covariance of `from` with that of the parameters of `fit` replaced. */
sc_status calib_covariance_of(const sc_covariance *from,
                              const sc_fit_result *fit, sc_arena *a,
                              sc_covariance *out, sc_err *err);

/* Copies traits into `a`; `out` may be `t`. */
sc_status calib_keep_traits(const sc_traits *t, sc_arena *a, sc_traits *out,
                            sc_err *err);

/* Standard deviations that make the held-out errors h[0..n) of all families but
 * `without` (NULL: none) most likely, given wide priors around
 * sc_effects_usual. Errors beyond CALIB_EFFECTS_CLIP count as that large.
 * Families weigh as in a fit. */
#define CALIB_EFFECTS_CLIP 0.25
sc_status calib_effects_fit(const calib_held *h, uint32_t n,
                            const char *without, sc_arena *a, sc_effects *out,
                            sc_err *err);

/* Predicts every row of h[0..n) with `anchors` other rows of its family as own
 * runs; up to CALIB_ANCHOR_SETS choices of them in each family, at equal
 * distances. The effects come from the other families. out->rows[out->n_rows]
 * are the pairs of a choice and a row. */
#define CALIB_ANCHOR_SETS 10
sc_status calib_with_anchors(const calib_held *h, uint32_t n, uint32_t anchors,
                             const sc_cost *cost, sc_arena *a,
                             sc_validation *out, sc_err *err);

#endif
