/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - benchmarks that count instructions.
 *
 * A file bench/bench_<name>.c defines bench_main(), which prepares data and
 * calls bench_case() for each thing measured; bench.c has the program around
 * it.  Instructions are counted by callgrind inside the measured function
 * only, so that they are the same on every run; nanoseconds are the best of
 * five and depend on the machine.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

/* Does the work `n` times. */
typedef void bench_fn(void *ctx, uint64_t n);

/* Defined by the benchmark; called once per run of the program. */
void bench_main(void);

/* Measure `fn(ctx, n)`; `n` is reduced to 1 in a smoke run. */
void bench_case(const char *name, bench_fn *fn, void *ctx, uint64_t n);

/* Times `n` calls fn(ctx, 1) one by one and prints quantiles in ns, which
 * include two readings of the clock.  Only where all cases are timed. */
void bench_calls(const char *name, bench_fn *fn, void *ctx, uint64_t n);

/* bench_calls() does nothing in this run. */
bool bench_only_counts(void);

/* Uses a result, so that the compiler does not remove the work for it. */
void bench_keep(double value);

/* Set-up failed: say so and exit. */
_Noreturn void bench_fail(const char *what);

#endif
