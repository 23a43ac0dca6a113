/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - how long things take by MPI_Wtime, in us:
 *
 *   alone T compute C both B   an all-reduce, some work, both at once
 *   total X                    of fifty all-reduces with some work between
 */
#include "check.h"

#define N      65536
#define ROUNDS 21 /* the median of each counts: others disturb some of them */

static float x[N], y[N];

static int by_value(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median_us(double *s)
{
    qsort(s, ROUNDS, sizeof *s, by_value);
    return 1e6 * s[ROUNDS / 2];
}

static void work(void)
{
    volatile double v = 0;
    for (int i = 0; i < 200000; i++) v += i;
    (void)v;
}

int main(int argc, char **argv)
{
    MPI_Request q;
    MPI_Init(&argc, &argv);
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, w);
    double alone[ROUNDS], compute[ROUNDS], both[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double t0 = MPI_Wtime();
        MPI_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, w);
        double t1 = MPI_Wtime();
        work();
        double t2 = MPI_Wtime();
        MPI_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, w, &q);
        work();
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        double t3 = MPI_Wtime();
        alone[round] = t1 - t0;
        compute[round] = t2 - t1;
        both[round] = t3 - t2;
    }
    printf("alone %.3f compute %.3f both %.3f\n", median_us(alone),
           median_us(compute), median_us(both));
    double t0 = MPI_Wtime();
    for (int i = 0; i < 50; i++) {
        volatile double v = 0;
        for (int k = 0; k < 1000; k++) v += k;
        (void)v;
        MPI_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, w);
    }
    printf("total %.3f\n", 1e6 * (MPI_Wtime() - t0));
    MPI_Finalize();
    return 0;
}
