/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepfit.h - fits the step, program and graph sets of parameters to measured
 * runs.
 *
 * The fast engine predicts every row once at given parameters. The choices of
 * the row are kept, and its price is computed again with each parameter changed
 * a little, which gives its derivatives. A fit moves along the derivatives.
 * Then rows are predicted at the new parameters, until they no longer change
 * (calibrate.c repeats this).
 */
#ifndef CALIB_STEPFIT_H
#define CALIB_STEPFIT_H

#include "calib/calib.h"
#include "calib/runs.h"

/* A family with CALIB_FAMILY_FULL rows or more counts as this many rows; a
 * smaller family counts in proportion to its rows. */
#define CALIB_FAMILY_WEIGHT 60.0
#define CALIB_FAMILY_FULL   20.0

/* A fit has at most one parameter per this many rows. */
#define CALIB_ROWS_PER_PARAMETER 20u

/* d log(step time) / d log(parameter): the fraction of the step that grows with
 * the parameter or, if negative, shrinks with it. */
typedef struct calib_share {
    sc_param param;
    double share;
} calib_share;

typedef struct calib_fit_row {
    const sc_valid_row *row; /* as predicted when it was prepared */
    const calib_run *run;
    const sc_run *choice; /* with every choice made */
    double log_pred;      /* log(step time, s) at the set's parameters */
    uint32_t n_shares;
    calib_share *share; /* [n_shares] those that are not 0; NULL: not computed
                           yet */
} calib_fit_row;

typedef struct calib_fit_set {
    sc_cost at;         /* the parameters of all predictions and shares */
    uint32_t n, n_rows; /* configurations to fit on; rows of the tables */
    calib_fit_row *fit; /* [n] */
    uint32_t n_graphs;
    calib_fit_row *net; /* [n_graphs] */
    uint32_t n_programs;
    calib_fit_row *program; /* [n_programs] of programs with fitted keys */
    sc_valid_row *rows;     /* [n_rows] every row, predicted */
    sc_run *choice; /* [n_rows] choices of the rows that were predicted */
} calib_fit_set;

/* Predicts all runs with the parameters `at`, and keeps the choices of rows
 * that count. */
sc_status calib_fit_prepare(calib_run *run, uint32_t n, const sc_cost *at,
                            sc_arena *a, calib_fit_set *out, sc_err *err);

/* The rows that a set is fitted to, [*n]. */
calib_fit_row *calib_fit_rows(const calib_fit_set *set, sc_param_set which,
                              uint32_t *n);

/* Sets the parameters of a set to their centres. */
void calib_fit_centre(sc_param_set set, sc_cost *inout);

/* Lists the free parameters of a set, [SC_N_PARAMS]; returns their number. */
uint32_t calib_fit_free(sc_param_set set, sc_param *out);

/* The weight in a fit of each row of a family that has `rows` rows. */
double calib_family_weight(double rows);

/* A start for the fit of `which` (sc_fit_scan()): its parameters with wide
 * priors, by exact prices of all rows. */
sc_status calib_fit_scan(sc_param_set which, calib_fit_set *set, sc_cost *inout,
                         sc_arena *a, sc_err *err);

/* Fits the parameters of `which` (SC_SET_STEP, SC_SET_PROGRAM, SC_SET_GRAPH) to
 * those of its rows i with use[i] (NULL: all). It starts at `inout`, whose
 * other parameters stay. Shares of rows that are not known yet are computed and
 * stay in `a`. */
sc_status calib_fit_set_of(sc_param_set which, calib_fit_set *set,
                           const bool *use, sc_cost *inout, sc_fit_result *out,
                           sc_arena *a, sc_err *err);

#endif
