/* SPDX-License-Identifier: Apache-2.0 */
/* curves.h - validation of tables of collectives. */
#ifndef CALIB_CURVES_H
#define CALIB_CURVES_H

#include "calib/stats.h"

/* True if the header is that of a table of collectives. */
bool calib_curves_table(const sc_csv *t);

/* Predicts every row; times in microseconds, as the tables have them.  A
 * group is one collective of one number of ranks and nodes on one device. */
sc_status calib_curves_validate(const sc_csv *tables, uint32_t n_tables,
                                const sc_validate_opts *o, sc_arena *a,
                                sc_validation *out, sc_err *err);

/* The same, but each row is predicted by a fit of the network parameters, from
 * their centres, to the rows of all tables with another label; a device's
 * label, for example. */
sc_status calib_curves_leave_out(const sc_csv *tables, uint32_t n_tables,
                                 calib_label label, const sc_validate_opts *o,
                                 sc_arena *a, sc_validation *out, sc_err *err);

#endif
