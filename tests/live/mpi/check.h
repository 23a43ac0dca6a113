/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what the live MPI programs share: checks that count. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_failed, n_checked;

#define CHECK(cond)                                                            \
    do {                                                                       \
        n_checked++;                                                           \
        if (!(cond)) {                                                         \
            n_failed++;                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
        }                                                                      \
    } while (0)

static inline void check_eq(const char *file, int line, const char *what,
                            double a, const char *wanted, double b)
{
    n_checked++;
    if (a == b) return;
    n_failed++;
    fprintf(stderr, "%s:%d: %s is %.17g, not %s = %.17g\n", file, line, what, a,
            wanted, b);
}

#define CHECK_EQ(a, b) \
    check_eq(__FILE__, __LINE__, #a, (double)(a), #b, (double)(b))

/* A program that checked nothing has not passed. */
static inline int verdict(const char *name)
{
    printf("%s: %d checks, %d failed\n", name, n_checked, n_failed);
    return n_failed || !n_checked;
}

#endif
