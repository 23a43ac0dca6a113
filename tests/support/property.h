/* SPDX-License-Identifier: Apache-2.0 */
/*
 * property.h - random tests that shrink their counterexample.
 *
 * A property draws what it needs with prop_below() and the like.  The draws of
 * a failing case are shrunk (deleted, set to zero, halved, decremented) as long
 * as the property still fails, so generators should make 0 the simplest choice.
 *
 *   static bool reverses(prop *p, void *ctx) {
 *       uint64_t n = prop_below(p, 100); ...
 *       return same(list, twice);
 *   }
 *   assert_true(prop_check("reverse twice", 1000, reverses, NULL));
 *
 * The seed is fixed for each name; STEPCAST_SEED=N sets another one, and
 * STEPCAST_SEED=random takes one from the clock.  It is printed.
 */
#ifndef TESTS_PROPERTY_H
#define TESTS_PROPERTY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prop prop;

/* A number in [0, n); 0 where n is 0. */
uint64_t prop_below(prop *p, uint64_t n);

/* A number in [0, 1). */
double prop_unit(prop *p);

/* A finite double: small whole numbers, decimals, any exponent and mantissa,
 * both signs, subnormals. */
double prop_double(prop *p);

/* In the last run, on the minimal case: time to print what fails. */
bool prop_reporting(const prop *p);

/* Runs `fn` on `cases` random cases.  True if it returned true on each;
 * otherwise prints the seed and the minimal failing choices.  `fn` reports a
 * failure by returning false (an assertion would skip the shrinking). */
bool prop_check(const char *name, unsigned cases,
                bool (*fn)(prop *p, void *ctx), void *ctx);

#endif
