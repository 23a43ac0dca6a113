/* SPDX-License-Identifier: Apache-2.0 */
/* bed.h - what the programs of this folder share: options, numbers, times. */
#ifndef BED_H
#define BED_H

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of option "-x", or what it is without. */
static inline long bed_option(int argc, char **argv, const char *name,
                              long without)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name)) return strtol(argv[i + 1], NULL, 10);
    return without;
}

static inline uint64_t bed_next(uint64_t *s) /* splitmix64 */
{
    uint64_t z = (*s += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline float bed_uniform(uint64_t *s) /* -1 .. 1 */
{
    return (float)((double)(bed_next(s) >> 11) * 0x1p-52 - 1.0);
}

static inline void *bed_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

static inline float *bed_floats(size_t n, float scale, uint64_t *seed)
{
    float *p = bed_alloc(n, sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = scale * bed_uniform(seed);
    return p;
}

static inline int bed_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One line per rank: median and quartiles of a step, and what came out.  The
 * first fifth of the steps warms up.  With BED_STEPS in the environment first
 * each step's time, in ms, on a line of its own. */
static inline void bed_report(const char *name, double *s, int n, double loss)
{
    int rank, size, skip = n / 5;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; getenv("BED_STEPS") && i < n; i++)
        printf("%s step %.6f\n", name, 1e3 * s[i]);
    double *t = s + skip;
    int k = n - skip;
    qsort(t, (size_t)k, sizeof *t, bed_by_value);
    printf("%s rank %d of %d: steps %d median_ms %.4f q1_ms %.4f q3_ms %.4f "
           "loss %.9g\n",
           name, rank, size, n, 1e3 * t[k / 2], 1e3 * t[k / 4],
           1e3 * t[3 * k / 4], loss);
    fflush(stdout);
}

/* c[m][n] += a[m][k] b[k][n]; with the transposed forms below all that a
 * layer's forward and backward passes need. */
static inline void bed_mul(float *restrict c, const float *restrict a,
                           const float *restrict b, int m, int k, int n)
{
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++) {
            float x = a[(size_t)i * (size_t)k + (size_t)p];
            const float *row = b + (size_t)p * (size_t)n;
            float *out = c + (size_t)i * (size_t)n;
            for (int j = 0; j < n; j++) out[j] += x * row[j];
        }
}

/* c[k][n] += a[m][k]^T b[m][n] */
static inline void bed_mul_ta(float *restrict c, const float *restrict a,
                              const float *restrict b, int m, int k, int n)
{
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++) {
            float x = a[(size_t)i * (size_t)k + (size_t)p];
            const float *row = b + (size_t)i * (size_t)n;
            float *out = c + (size_t)p * (size_t)n;
            for (int j = 0; j < n; j++) out[j] += x * row[j];
        }
}

/* c[m][k] += a[m][n] b[k][n]^T */
static inline void bed_mul_tb(float *restrict c, const float *restrict a,
                              const float *restrict b, int m, int n, int k)
{
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++) {
            const float *x = a + (size_t)i * (size_t)n;
            const float *y = b + (size_t)p * (size_t)n;
            float sum[8] = {0};
            int j = 0;
            for (; j + 8 <= n; j += 8)
                for (int u = 0; u < 8; u++) sum[u] += x[j + u] * y[j + u];
            float rest = 0;
            for (; j < n; j++) rest += x[j] * y[j];
            for (int u = 0; u < 8; u++) rest += sum[u];
            c[(size_t)i * (size_t)k + (size_t)p] += rest;
        }
}

#endif
