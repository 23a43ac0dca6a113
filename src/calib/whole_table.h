/* SPDX-License-Identifier: Apache-2.0 */
/* whole_table.h - validation of tables of published whole runs. */
#ifndef CALIB_WHOLE_TABLE_H
#define CALIB_WHOLE_TABLE_H

#include "calib/calib.h"

/* True if the header is that of a table of whole runs. */
bool calib_whole_table(const sc_csv *t);

/* Only reports errors in cells. */
sc_status calib_whole_check(const sc_csv *t, sc_err *err);

/* Predicts every row: device-hours (unit "h") and, where the energy was
 * measured, MWh in a row of its own. Columns with names of options set these, as in
 * tables of runs: `failures`. */
sc_status calib_whole_validate(const sc_csv *tables, uint32_t n_tables,
                               const sc_validate_opts *o, sc_arena *a,
                               sc_validation *out, sc_err *err);

#endif
