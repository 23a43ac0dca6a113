/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - quantiles, and the normal distribution. */
#ifndef SC_BASE_STATS_H
#define SC_BASE_STATS_H

#include <stdint.h>

/* Sorts `v` in ascending order. */
void sc_sort(double *v, uint64_t n);

/* The quantile `q` (0.5: the median) of values that are sorted, interpolated
 * between the two nearest.  NaN if there is no value. */
double sc_quantile_sorted(const double *v, uint64_t n, double q);
/* The same for unsorted values, which it sorts. */
double sc_quantile(double *v, uint64_t n, double q);

typedef struct sc_weighted {
    double v, w; /* value and weight */
} sc_weighted;

/* The quantile of weighted values, which it sorts. Each value lies in the
 * middle of its weight. NaN if there is no value. */
double sc_weighted_quantile(sc_weighted *v, uint32_t n, double q);

/* The quantile at probability `u`, 0 < u < 1, of the largest of `n` normal
 * numbers. With n = 1 it is the quantile of the normal distribution. */
double sc_normal_max(double u, double n);

/* The probability that a standard normal variable is at most `z`. */
double sc_normal_below(double z);
#endif
