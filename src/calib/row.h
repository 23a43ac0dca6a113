/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - predicts one row of a table of runs. */
#ifndef CALIB_ROW_H
#define CALIB_ROW_H

#include "calib/calib.h"
#include "calib/runs.h"

/* A whole run of a row whose job has tokens. */
typedef struct calib_whole {
    double days, devices, energy_j;
    double device_part; /* of energy_j that devices take */
    double pue;         /* of the machine; 0: energy_j does not have it */
} calib_whole;

/* What is wanted of a row besides time and memory. Members that are set are
 * only written if a step time was predicted, and kept in `a`. */
typedef struct calib_row_also {
    sc_run *choice;     /* every choice, without its cost; NULL */
    bool interval;      /* the 80 % interval */
    sc_traits *traits;  /* with shares; needs `interval`; NULL */
    calib_whole *whole; /* NULL */
} calib_row_also;

/* Predicts `run` into `out` (strings in `a`; `scratch` is reset). A fact that a
 * prediction refuses is left open in `run`, with a warning. If a row can't be
 * predicted, `out` has the reason. */
sc_status calib_row_predict(calib_run *run, const sc_cost *cost, int engine,
                            sc_arena *a, sc_arena *scratch, sc_valid_row *out,
                            calib_row_also also, sc_err *err);

/* Leaves that fact of a run's job open that the error names. If nothing is left
 * to change, `changed` is false. */
sc_status calib_relax(const sc_err *why, sc_arena *a, calib_run *run,
                      bool *changed, sc_err *err);

/* Seconds of a run's step with the choices in `choice` and the parameters `c`,
 * by the fast engine. `scratch` is reset. */
sc_status calib_row_price(const calib_run *run, const sc_run *choice,
                          const sc_cost *cost, sc_arena *scratch, double *step,
                          sc_err *err);

#endif
