/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - statistics of a validation table.
 *
 * All are plain functions of arrays. A result of NaN means that the data do
 * not suffice (an empty array, only ties). Functions that sort change their
 * array.
 */
#ifndef CALIB_STATS_H
#define CALIB_STATS_H

#include "calib/calib.h"

double calib_mean(const double *v, uint32_t n);

/* Kendall's tau-b of x[0..n) and y[0..n): 1 for equal order, -1 for opposite
 * order. A pair that is tied in one of them counts half. */
double calib_kendall(const double *x, const double *y, uint32_t n);

/* The regret of using the configuration that is predicted fastest:
 * measured[argmin predicted] / min(measured) - 1. Of equal predictions the one
 * measured slowest counts. */
double calib_regret(const double *measured, const double *predicted,
                    uint32_t n);

/* The order of rows that differ only in parallelization and micro-batch is
 * judged if there are at least this many. */
#define CALIB_ORDER_ROWS 3

/* Marks repetitions of one configuration. The first one counts, with the median
 * of their measurements. */
sc_status calib_mark_repeats(sc_valid_row *rows, uint32_t n, sc_arena *a,
                             sc_err *err);

/* Whether the median of the measurements lies in the row's 80 % interval. */
bool calib_inside(const sc_valid_row *r);

/* Sums the marked rows out->rows[0..n_rows) as totals and as groups: each
 * family and device, then each family alone, in order of appearance. */
sc_status calib_summarise(sc_validation *out, sc_arena *a, sc_err *err);

/* The property by which rows are grouped to be left out; NULL: the row is in no
 * group. */
typedef const char *(*calib_label)(const sc_valid_row *r);

/* Sums out->rows by label, and then by kind of model, or whole runs by figure;
 * out->family_mape is the mean over labels. */
sc_status calib_summarise_parts(sc_validation *out, calib_label label,
                                sc_arena *a, sc_err *err);

#endif
