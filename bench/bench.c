/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c - the program around a benchmark.  `--list` prints each case with
 * its n, `--case NAME` runs one of them once (under callgrind), `--smoke`
 * runs all with n = 1; without arguments all are timed.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    bool list, smoke;
    const char *only; /* NULL: all cases */
    unsigned ran;
} mode;

static volatile double kept;

void bench_keep(double value)
{
    kept = value;
}

_Noreturn void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* The function callgrind counts in; called through, never inlined. */
__attribute__((noinline)) static void bench_measured(bench_fn *fn, void *ctx,
                                                     uint64_t n)
{
    fn(ctx, n);
    kept = 0; /* prevents a tail call */
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_case(const char *name, bench_fn *fn, void *ctx, uint64_t n)
{
    if (mode.only && strcmp(mode.only, name) != 0) return;
    mode.ran++;
    if (mode.list) {
        printf("%s %llu\n", name, (unsigned long long)n);
        return;
    }
    if (mode.only || mode.smoke) {
        bench_measured(fn, ctx, mode.smoke ? 1 : n);
        return;
    }
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double start = seconds();
        bench_measured(fn, ctx, n);
        double t = seconds() - start;
        if (i == 0 || t < best) best = t;
    }
    printf("%s %.2f\n", name, best * 1e9 / (double)n);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool bench_only_counts(void)
{
    return mode.list || mode.smoke || mode.only;
}

void bench_calls(const char *name, bench_fn *fn, void *ctx, uint64_t n)
{
    static const double at[] = {0.5, 0.9, 0.99, 0.999};
    if (bench_only_counts()) return;
    double *t = malloc(n * sizeof *t);
    if (!t) bench_fail("memory");
    for (uint64_t i = 0; i < n; i++) t[i] = -1; /* no page faults later */
    for (uint64_t i = 0; i < n; i++) {
        double start = seconds();
        fn(ctx, 1);
        t[i] = seconds() - start;
    }
    qsort(t, n, sizeof *t, by_value);
    printf("%s, single calls:", name);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        printf(" p%g %.0f", 100 * at[i], 1e9 * t[(size_t)(at[i] * (double)n)]);
    printf(" longest %.0f\n", 1e9 * t[n - 1]);
    free(t);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            mode.list = true;
        else if (strcmp(argv[i], "--smoke") == 0)
            mode.smoke = true;
        else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc)
            mode.only = argv[++i];
        else
            bench_fail("usage: [--list | --smoke | --case NAME]");
    }
    bench_main();
    if (mode.ran == 0) bench_fail("no such case");
    return 0;
}
