/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - what prices of kernels in steps and of kernels alone share. */
#ifndef COST_KERNEL_FUNCTIONS_H
#define COST_KERNEL_FUNCTIONS_H

#include "cost/cost.h"

/* Time of this kind of kernel on the device over that of its form, as own
 * kernels gave it; 1 if none were measured. */
double kernel_level(const sc_cost *c, const sc_device *d, sc_form_kind kind);

#endif
