/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c - the part of an exchange that kernels do not hide. */
#include "plan/overlap.h"

#include <math.h>

double overlap_kernels(double exchange_s, double kernels_s, double taken)
{
    double both = fmin(exchange_s, kernels_s);
    return exchange_s - both + both * taken;
}

/* The time beyond the product, of an exchange and a product in parts of which
 * all except `apart_s` of either run at once.  A program that would lose by
 * the overlap does not use it. */
static double beyond(const overlap_parts *x, double alone_s, double apart_s)
{
    double both = fmin(x->exchange_s, x->in_parts_s - alone_s);
    double product_s = x->in_parts_s + fmax(0, both) * x->taken;
    double total_s = fmax(product_s + apart_s, x->exchange_s + alone_s);
    return fmin(fmax(0, total_s - x->product_s), x->exchange_s);
}

double overlap_ring(const overlap_parts *x)
{
    return beyond(x, x->in_parts_s / x->n, 0);
}

double overlap_pipeline(const overlap_parts *x)
{
    return beyond(x, x->in_parts_s / x->n, x->exchange_s / x->n);
}
