/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.h - the part of an exchange that kernels do not hide.
 *
 * Each function returns the seconds by which an exchange lengthens a pass:
 * between 0 and `exchange_s`, which is what it takes if nothing overlaps.
 */
#ifndef PLAN_OVERLAP_H
#define PLAN_OVERLAP_H

#include <stdint.h>

/* The exchange runs during `kernels_s` of kernels that do not need it, and
 * slows these by `taken`, the fraction of the SMs that it occupies. */
double overlap_kernels(double exchange_s, double kernels_s, double taken);

/* A product and its exchange in parts. */
typedef struct overlap_parts {
    uint32_t n;        /* parts of the product */
    double exchange_s; /* of all parts */
    double product_s;  /* the product in one kernel */
    double in_parts_s; /* the same in parts, without an exchange */
    double taken;      /* fraction of SMs that the exchange occupies */
} overlap_parts;

/* A ring of n ranks: each has one part of the operand at the start, or keeps
 * one part of the result, so the exchange of the other parts overlaps the
 * products of n - 1 parts. */
double overlap_ring(const overlap_parts *x);

/* A pipeline of n parts, each exchanged as a whole after its product: that of
 * the last part is exposed. */
double overlap_pipeline(const overlap_parts *x);

#endif
