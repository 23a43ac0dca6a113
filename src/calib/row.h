/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - predicts one row of a table of runs. */
#ifndef CALIB_ROW_H
#define CALIB_ROW_H

#include "calib/calib.h"
#include "calib/runs.h"

/* Predicts `run` into `out` (strings in `a`; `scratch` is reset). If a row
 * can't be predicted, `out` has the reason. `choice` receives every choice,
 * kept in `a` except for its cost. It may be NULL, and is only written if a
 * step time was predicted. */
sc_status calib_row_predict(const calib_run *run, const sc_cost *cost,
                            int engine, sc_arena *a, sc_arena *scratch,
                            sc_valid_row *out, sc_run *choice, sc_err *err);

/* Seconds of a run's step with the choices in `choice` and the parameters `c`,
 * by the fast engine. `scratch` is reset. */
sc_status calib_row_price(const calib_run *run, const sc_run *choice,
                          const sc_cost *cost, sc_arena *scratch, double *step,
                          sc_err *err);

#endif
