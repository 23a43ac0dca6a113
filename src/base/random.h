/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - pseudo-random numbers: the same sequence on every machine.
 *
 * The state of a sequence is 64 bits, and any value is a legal start.
 */
#ifndef SC_BASE_RANDOM_H
#define SC_BASE_RANDOM_H

#include <stdint.h>

/* The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): every bit
 * of the result depends on every bit of the input, and different inputs have
 * different results. */
static inline uint64_t sc_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* splitmix64. */
uint64_t sc_random(uint64_t *state);
double sc_random_unit(uint64_t *state); /* [0, 1) */
uint64_t sc_random_below(uint64_t *state, uint64_t n);

/* sc_normal() returns a number of the standard normal distribution. Two cost
 * nearly the same as one; the first of the two is that of sc_normal(). */
double sc_normal(uint64_t *state);
void sc_normal_pair(uint64_t *state, double out[2]);
#endif
