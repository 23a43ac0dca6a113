/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calib_nccltests.h - the profile of a cluster fitted on logs of nccl-tests.
 * See docs/inputs.md.
 */
#ifndef SC_CALIB_NCCLTESTS_H
#define SC_CALIB_NCCLTESTS_H

#include "calib/calib.h"
#include "coll/coll_nccltests.h"

#define SC_NCCL_FIT_MAX 32

/* A fit of the network parameters that the rows determine. */
typedef struct sc_nccl_fit {
    uint32_t n;                       /* parameters fitted */
    sc_param param[SC_NCCL_FIT_MAX];  /* most certain first */
    double value[SC_NCCL_FIT_MAX];    /* fitted */
    double before[SC_NCCL_FIT_MAX];   /* where it started */
    double se_log[SC_NCCL_FIT_MAX];   /* standard error of the logarithm */
    double rows[SC_NCCL_FIT_MAX];     /* effective rows; 0: not known */
    uint32_t n_rows, n_groups;        /* groups: collective, ranks, nodes */
    double error_before, error_after; /* mean over groups of the mean
                                          |predicted / measured - 1| of rows
                                          above 1 MiB (all, if there is none) */
    uint32_t n_calibrated; /* networks between nodes among the rows */
    sc_calibrated calibrated[SC_CALIBRATED];
} sc_nccl_fit;

/* Fits `inout` to rows measured on (parts of) cluster `hw`; groups of
 * (collective, ranks, nodes) weigh the same.  Only parameters that the rows
 * can tell apart are free, at most twelve.  `inout` is marked as calibrated on
 * the cluster where rows are of several nodes.  `report` gets the errors
 * of each group and the parameters, and may be NULL.  Errors, all in one pass
 * at the first row of a test: SC_C_CONFLICT, another device, more ranks or
 * nodes than the cluster has; SC_C_UNSUPPORTED, a collective that can't be
 * priced there; SC_C_MISSING, no rows. */
sc_status sc_fit_nccl_tests(const sc_nccl_row *rows, uint32_t n,
                            const sc_hw *hw, sc_cost *inout, sc_nccl_fit *out,
                            sc_text *report, sc_arena *a, sc_err *err);

/* The same for a table of collectives (columns as data/validation/network.csv):
 * each row on the machine that it names, groups of (device, collective, ranks,
 * nodes) weigh the same, and at most SC_NCCL_FIT_MAX parameters are free.  Rows
 * that can't be expressed are left out and counted in `report`.  Errors as of
 * the reader of tables; SC_C_MISSING, no rows. */
sc_status sc_fit_network_table(const sc_csv *table, sc_cost *inout,
                               sc_nccl_fit *out, sc_text *report, sc_arena *a,
                               sc_err *err);

/* The seconds that `c` predicts for a row on the first devices of each node of
 * `hw`, while all other devices are idle. */
sc_status sc_nccl_row_predict(const sc_nccl_row *row, const sc_hw *hw,
                              const sc_cost *c, double *seconds, sc_err *err);

/* Appends the profile, for `--profile FILE`: parameters in the form of
 * data/fit.  `from` says what it was fitted on, lines without comment marks.
 */
void sc_nccl_fit_write(const sc_nccl_fit *fit, const char *from, sc_text *out);
#endif
