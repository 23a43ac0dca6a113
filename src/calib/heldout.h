/* SPDX-License-Identifier: Apache-2.0 */
/* heldout.h - 80 % intervals from the errors of held-out families. */
#ifndef CALIB_HELDOUT_H
#define CALIB_HELDOUT_H

#include "calib/calib.h"
#include "calib/effects.h"
#include "calib/runs.h"
#include "calib/stepfit.h"

/* A kind of model with fewer rows has the interval of all kinds. For a kind
 * with n rows, that interval has the weight CALIB_KIND_ROWS / (n +
 * CALIB_KIND_ROWS). */
#define CALIB_KIND_ROWS 20.0

/* If no row of the fit has a run's device or program, no measurement shows how
 * much wider its interval has to be. 1.5 times the widest interval covers about
 * -30 % to +40 %, which is what software gave that was left out of a fit. */
#define CALIB_UNSEEN 1.5

/* Computes intervals from rows[0..n) that count, each predicted without its
 * family, in standard deviations (row.sd). Rows of the family `without` (NULL: none) are ignored. Families
 * with CALIB_FAMILY_FULL rows or more have equal weight. Sets all, kind and
 * unseen. */
sc_status calib_held_out_intervals(const sc_valid_row *rows, uint32_t n,
                                   const char *without, sc_arena *a,
                                   sc_held_out *out, sc_err *err);

/* The quantiles 10 % and 90 % of log(measured / predicted peak of memory), with
 * the weights of families as above; too few rows leave `inout` as it is. */
sc_status calib_memory_interval(const sc_valid_row *rows, uint32_t n,
                                sc_arena *a, sc_interval *inout, sc_err *err);

/* Sets inout->held.memory from the runs with a measured peak. Fits and held-out
 * predictions begin with it, so that all choose with the same probability to
 * fit. */
sc_status calib_learn_memory(calib_run *run, uint32_t n, sc_arena *a,
                             sc_cost *inout, sc_err *err);

/* Predicts every family with a fit without it: rows of `set` are replaced, and
 * their intervals come from the other families. `effects` is what the errors
 * have in common. */
sc_status calib_leave_families(calib_run *run, uint32_t n, const sc_cost *start,
                               const sc_progress *progress, sc_arena *a,
                               calib_fit_set *set, sc_effects *effects,
                               sc_err *err);

/* Sets the standard deviations of the rows of h[0..n) by these effects. */
void calib_deviations(const calib_held *h, uint32_t n, const sc_effects *e);

/* Sets the intervals of each fitted family in h[0..n) from the effects and the
 * errors of the other families. rows[0..n_rows) holds the rows of `h`. Leaves
 * row.sd to the effects of the last family. Sets the effects in `h`. */
sc_status calib_nested_intervals(calib_held *h, uint32_t n, sc_valid_row *rows,
                                 uint32_t n_rows, sc_arena *a, sc_err *err);

/* Writes the text of data/fit/held-out.yml; `from` is as for
 * calib_fit_write(). */
void calib_held_out_write(const sc_held_out *h, const sc_valid_row *rows,
                          uint32_t n, const char *from, sc_text *out);

/* Reports the rows and interval of each kind of model, and how many rows the
 * interval covers. */
void calib_held_out_report(const sc_held_out *h, const sc_valid_row *rows,
                           uint32_t n, sc_text *out);

#endif
