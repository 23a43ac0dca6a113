/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - quantiles, and the distribution of normal numbers. */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sc_sort(double *v, uint64_t n)
{
    if (n > 1) qsort(v, n, sizeof *v, by_value);
}

double sc_quantile_sorted(const double *v, uint64_t n, double q)
{
    if (n == 0) return NAN;
    double at = q * (double)(n - 1);
    uint64_t i = (uint64_t)at;
    if (i + 1 >= n) return v[n - 1];
    return v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

double sc_quantile(double *v, uint64_t n, double q)
{
    sc_sort(v, n);
    return sc_quantile_sorted(v, n, q);
}

static int by_weighted(const void *a, const void *b)
{
    return by_value(&((const sc_weighted *)a)->v, &((const sc_weighted *)b)->v);
}

double sc_weighted_quantile(sc_weighted *v, uint32_t n, double q)
{
    double sum = 0, below = 0, at = 0, last = NAN;
    if (n == 0) return NAN;
    qsort(v, n, sizeof *v, by_weighted);
    for (uint32_t i = 0; i < n; i++) sum += v[i].w;
    for (uint32_t i = 0; i < n; i++) {
        double middle = (below + v[i].w / 2) / sum;
        if (q <= middle)
            return i == 0 ? v[0].v
                          : last + (v[i].v - last) * (q - at) / (middle - at);
        below += v[i].w;
        at = middle;
        last = v[i].v;
    }
    return last;
}

/* The x above which a normal number lies with probability q, 0 < q <= 0.5:
 * Hastings' rational approximation (Approximations for Digital Computers, 1955,
 * sheet 68), made exact by Newton's steps on erfc(). */
static double upper(double q)
{
    double t = sqrt(-2 * log(q));
    double z = t - ((0.010328 * t + 0.802853) * t + 2.515517) /
                       (((0.001308 * t + 0.189269) * t + 1.432788) * t + 1);
    for (int i = 0; i < 2; i++) {
        double tail = erfc(z * 0.7071067811865476) / 2;
        double density = exp(-z * z / 2) * 0.3989422804014327; /* 1/sqrt(2pi) */
        z += (tail - q) / density;
    }
    return z;
}

double sc_normal_max(double u, double n)
{
    double tail = -expm1(log(u) / n); /* 1 - u^(1/n), also close to 1 */
    if (tail <= 0) tail = 0x1p-60 / n;
    if (tail <= 0.5) return upper(tail);
    return -upper(exp(log(u) / n));
}

double sc_normal_below(double z)
{
    return 0.5 * erfc(-z * 0.7071067811865476); /* 1/sqrt(2) */
}
