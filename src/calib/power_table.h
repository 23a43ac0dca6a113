/* SPDX-License-Identifier: Apache-2.0 */
/* power_table.h - validation of tables of measured power of nodes. */
#ifndef CALIB_POWER_TABLE_H
#define CALIB_POWER_TABLE_H

#include "calib/stats.h"

/* True if the header is that of a table of power. */
bool calib_power_table(const sc_csv *t);

/* Only reports errors in cells. */
sc_status calib_power_check(const sc_csv *t, sc_err *err);

/* Predicts every row, in watts per node. A group is one benchmark on one
 * device. */
sc_status calib_power_validate(const sc_csv *tables, uint32_t n_tables,
                               const sc_validate_opts *o, sc_arena *a,
                               sc_validation *out, sc_err *err);

/* The same with the power of hosts from the rows that `label` does not call as
 * the predicted one. */
sc_status calib_power_leave_out(const sc_csv *tables, uint32_t n_tables,
                                calib_label label, const sc_validate_opts *o,
                                sc_arena *a, sc_validation *out, sc_err *err);

#endif
