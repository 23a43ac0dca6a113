/* SPDX-License-Identifier: Apache-2.0 */
/* sure.h - whether stated probabilities of being the fastest are right. */
#ifndef CALIB_SURE_H
#define CALIB_SURE_H

#include "calib/effects.h"

/* Judges the sets among h[0..n) that differ only in parallelization and have at
 * least CALIB_ORDER_ROWS rows, and the pairs in all sets: sets inout->pick and that of the groups of
 * whole families. The measured steps have noise of their own, so the stated
 * probabilities are those of being measured fastest. */
sc_status calib_judge_picks(const calib_held *h, uint32_t n,
                            const sc_cost *cost, sc_arena *a,
                            sc_validation *inout, sc_err *err);

/* Calibration errors: mean over rows, or pairs, of abs(mean stated probability -
 * fraction that was the fastest, or faster) of their bin; NaN without any. */
double calib_pick_off(const sc_valid_pick *p);
double calib_pair_off(const sc_valid_pick *p);

/* Print nothing if there was no set. */
void calib_pick_json(const sc_valid_pick *p, sc_json *j);
void calib_pick_text(const sc_valid_pick *p, sc_text *t);

#endif
