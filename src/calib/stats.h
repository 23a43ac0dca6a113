/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - the figures of a validation table.
 *
 * Plain functions of arrays; NaN means that the data do not suffice (an empty
 * array, ties only).  Functions that sort change the array they are given.
 */
#ifndef CALIB_STATS_H
#define CALIB_STATS_H

#include "calib/calib.h"

double calib_mean(const double *v, uint32_t n);

/* Kendall's tau-b of x[0..n) and y[0..n): 1 equal order, -1 opposite; pairs
 * tied in one of them count half. */
double calib_kendall(const double *x, const double *y, uint32_t n);

/* What taking the fastest predicted costs: measured[argmin predicted] over
 * the fastest measured, - 1.  Of equal predictions the slowest counts. */
double calib_regret(const double *measured, const double *predicted,
                    uint32_t n);

/* Rows that differ only in parallelization and micro-batch are judged by
 * their order where there are at least this many. */
#define CALIB_ORDER_ROWS 3

/* Marks repetitions of one configuration: the first one counts, with the
 * median of their measurements. */
sc_status calib_mark_repeats(sc_valid_row *rows, uint32_t n, sc_arena *a,
                             sc_err *err);

/* The median of the measurements lies in the row's 80 % interval. */
bool calib_inside(const sc_valid_row *r);

/* Groups (each family and device, then each family as a whole, in order of
 * appearance) and totals of out->rows[0..n_rows), which are marked. */
sc_status calib_summarise(sc_validation *out, sc_arena *a, sc_err *err);

/* The property of a row by which it is left out. */
typedef const char *(*calib_label)(const sc_valid_row *r);

/* The parts of out->rows: by label, then by kind of model. */
sc_status calib_summarise_parts(sc_validation *out, calib_label label,
                                sc_arena *a, sc_err *err);

#endif
