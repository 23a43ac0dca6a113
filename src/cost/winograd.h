/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.h - convolutions with fewer multiplications (Lavin and Gray
 * 2016). */
#ifndef COST_WINOGRAD_H
#define COST_WINOGRAD_H

#include "cost/cost.h"

/* A convolution as products of transformed tiles. */
typedef struct kernel_winograd {
    bool fused;          /* one kernel transforms and multiplies */
    sc_kernel product;   /* the kernel of a convolution if fused, otherwise a
                            GEMM */
    double moved;        /* bytes that separate transform kernels move */
    uint32_t transforms; /* number of these kernels */
} kernel_winograd;

/* The i-th such algorithm that the library has for a device; false: none. */
bool kernel_winograd_of(const sc_device *d, const sc_kernel *k, uint32_t i,
                        kernel_winograd *out);

#endif
