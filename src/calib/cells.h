/* SPDX-License-Identifier: Apache-2.0 */
/* cells.h - numbers in the cells of tables that `validate` reads. */
#ifndef CALIB_CELLS_H
#define CALIB_CELLS_H

#include "base/util.h"

/* A number in a column, from 0 to `high`; an empty cell is NaN. */
typedef struct calib_cell {
    int col; /* -1: there is none, which is as empty */
    double high;
    double *to;
    bool positive; /* 0 is none of them */
    const char *
        *rest; /* of words behind it: "1105920 (upper bound)"; NULL: none
                        * may follow */
} calib_cell;

/* Reads `n` cells of a row.  SC_EINPUT at each that is no such number. */
sc_status calib_cells_read(const sc_csv *t, uint32_t row,
                           const calib_cell *cell, size_t n, sc_err *err);

#endif
