/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_validate.h - validation of tables of kernels. */
#ifndef CALIB_KERNEL_VALIDATE_H
#define CALIB_KERNEL_VALIDATE_H

#include "calib/calib.h"

/* Predicts every row, in seconds. A group is one operation in one precision on
 * one device. */
sc_status calib_kernel_validate(const sc_csv *tables, uint32_t n_tables,
                                const sc_validate_opts *o, sc_arena *a,
                                sc_validation *out, sc_err *err);

#endif
