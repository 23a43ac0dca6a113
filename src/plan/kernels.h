/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - the kernels of one operator and pass on one rank. */
#ifndef PLAN_KERNELS_H
#define PLAN_KERNELS_H

#include "plan/plan_internal.h"

#define PLAN_KERNELS 12

typedef struct plan_kernels {
    uint32_t n;
    sc_kernel k[PLAN_KERNELS];
    bool wgrad[PLAN_KERNELS]; /* belongs to the weight pass */
} plan_kernels;

void plan_op_kernels(const sc_run *r, const sc_placed *o, bool backward,
                     plan_kernels *out);

/* Works on tokens sent to experts. */
bool plan_is_routed(const sc_operator *op);

/* Bytes an operator keeps for its backward pass on one rank; `x_elements` of
 * its input as it is kept (in its producer's layout). */
double plan_op_saved(const sc_run *r, const sc_placed *o, double x_elements);

/* Of these for attention: its output and the sums of its rows. */
double plan_attention_out(const sc_run *r, const sc_placed *o);

#endif
