/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - what --peer-data says of peers' buffers; run with noise:0.5 or none.
 */
#include "check.h"

#include <math.h>

#define N 100000

static float x[N], y[N];

static double deviation(const float *a, float scale)
{
    double sum = 0;
    for (int i = 0; i < N; i++) {
        double d = (double)(a[i] / scale - x[i]);
        sum += d * d;
    }
    return sqrt(sum / N);
}

int main(int argc, char **argv)
{
    int n, me, ones = 1, count = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    double mean = 0, s = 0;
    for (int i = 0; i < N; i++) x[i] = (float)(i % 100);
    for (int i = 0; i < N; i++) mean += x[i] / N;
    for (int i = 0; i < N; i++) s += (x[i] - mean) * (x[i] - mean) / N;
    s = sqrt(s);
    for (int i = 0; i < N; i++) y[i] = -7;
    MPI_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    float *all = malloc(sizeof *all * (size_t)n * N);
    for (int i = 0; i < n * N; i++) all[i] = -7;
    MPI_Allgather(x, N, MPI_FLOAT, all, N, MPI_FLOAT, MPI_COMM_WORLD);
    MPI_Allreduce(&ones, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int other = (me + 1) % n;
    CHECK_EQ(deviation(all + (size_t)me * N, 1), 0);
    if (argc > 1 && !strcmp(argv[1], "none")) {
        CHECK_EQ(all[(size_t)other * N], -7);
        CHECK_EQ(y[1], -7);
    } else {
        /* The mean over n of n - 1 noisy ones, and one of them. */
        double wanted = 0.5 * s * sqrt(n - 1.0) / n;
        CHECK(fabs(deviation(y, (float)n) / wanted - 1) < 0.05);
        CHECK(fabs(deviation(all + (size_t)other * N, 1) / (0.5 * s) - 1) <
              0.05);
        CHECK_EQ(count, n);
    }
    free(all);
    MPI_Finalize();
    return verdict("data");
}
