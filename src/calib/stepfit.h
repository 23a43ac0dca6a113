/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepfit.h - the step set of parameters, fitted on measured runs.
 *
 * A row is inferred once, with the event engine, and its choices are kept; a
 * fit then prices the kept plan with the fast engine, times what the event
 * engine added.  Refit until the choices stand (calibrate.c does).
 */
#ifndef CALIB_STEPFIT_H
#define CALIB_STEPFIT_H

#include <stepcast/calib.h>

#include "calib/runs.h"

/* Every family counts as much as this many rows of its own, where it has at
 * least CALIB_FAMILY_FULL rows, and in proportion below. */
#define CALIB_FAMILY_WEIGHT 60.0
#define CALIB_FAMILY_FULL   20.0

/* At most one fitted parameter per so many rows. */
#define CALIB_ROWS_PER_PARAMETER 20u

typedef struct calib_fit_row {
    const sc_valid_row *row; /* as predicted when it was prepared */
    sc_plan plan;            /* plan.run.cost is set by the fit */
    double log_event;
} calib_fit_row;

/* A step of an operator graph: its choices as a job. */
typedef struct calib_graph_row {
    const sc_valid_row *row;
    const calib_run *run;
    uint64_t mbs;
} calib_graph_row;

typedef struct calib_fit_set {
    uint32_t n, n_rows; /* configurations to fit on; rows of the tables */
    calib_fit_row *fit; /* [n] */
    uint32_t n_graphs;
    calib_graph_row *graph; /* [n_graphs] */
    sc_valid_row *rows;     /* [n_rows] every row, predicted */
} calib_fit_set;

/* Predicts all runs at `at` and keeps the choices of those that count. */
sc_status calib_fit_prepare(const calib_run *run, uint32_t n, const sc_cost *at,
                            sc_arena *a, calib_fit_set *out, sc_err *err);

/* Sets those of a set to their centres. */
void calib_fit_centre(sc_param_set set, sc_cost *inout);

/* Free parameters of a set, [SC_N_PARAMS]; returns their number. */
uint32_t calib_fit_free(sc_param_set set, sc_param *out);

/* Fits those of the graph set on set->graph[i] where use[i] (NULL: all),
 * starting at `inout`, which keeps its other sets. */
sc_status calib_fit_graph(const calib_fit_set *set, const bool *use,
                          sc_cost *inout, sc_fit_result *out, sc_arena *a,
                          sc_err *err);

/* What a family counts in a fit, per row of its `rows`. */
double calib_family_weight(double rows);

/* Fits those of the step set on set->fit[i] where use[i] (NULL: all), starting at `inout`,
 * which keeps its other sets. */
sc_status calib_fit_step(const calib_fit_set *set, const bool *use,
                         sc_cost *inout, sc_fit_result *out, sc_arena *a,
                         sc_err *err);

#endif
