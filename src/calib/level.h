/* SPDX-License-Identifier: Apache-2.0 */
/* level.h - the level of published runs over predicted ones. */
#ifndef CALIB_LEVEL_H
#define CALIB_LEVEL_H

#include "calib/calib.h"

/* Fits a level to the device-hours of rows that are predicted without one,
 * and its interval to the errors of publishers that are left out. */
sc_status calib_level_fit(const sc_validation *v, sc_arena *a,
                          sc_run_level *out, sc_err *err);

/* Gives each row the level of the other publishers' rows, and the interval of
 * their errors. */
sc_status calib_level_leave_out(sc_validation *v, sc_arena *a, sc_err *err);

#endif
