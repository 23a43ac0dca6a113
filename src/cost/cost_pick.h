/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_pick.h - how sure it is which of several predicted jobs is the fastest.
 *
 * The logarithms of the steps are jointly normal around the predictions, with
 * the covariance of cost_anchor.h, which own runs reduce. What all jobs share (a
 * slow site, a parameter on which all steps depend equally) decides nothing;
 * only what differs between two jobs can change their order.
 */
#ifndef SC_COST_PICK_H
#define SC_COST_PICK_H

#include "cost/cost_anchor.h"

/* One of the jobs between which is chosen. */
typedef struct sc_pick_row {
    double step_s;           /* predicted, with the own runs of sc_cost */
    const sc_traits *traits; /* with shares */
    /* Set by sc_pick_judge(): */
    double p_best;          /* probability of the smallest step time; rows that
                               are equally fast share it */
    double regret_expected; /* expected step over the expected smallest step,
                               minus 1 */
} sc_pick_row;

#define SC_PICK_DRAWS 20000
#define SC_SETTLE_MAX 3

typedef struct sc_pick_opts {
    uint64_t seed;
    uint32_t draws; /* 0: SC_PICK_DRAWS; rounded up to an even number */
    double noise;   /* standard deviation of the logarithm of each row that no
                       other shares: 0 for the true steps, SC_ANCHOR_NOISE for
                       measured ones */
    bool settle;    /* look for runs worth measuring */
} sc_pick_opts;

/* A row worth measuring. */
typedef struct sc_settle {
    uint32_t row;
    double regret; /* expected regret of the choice after this row and those
                      before it have been measured */
} sc_settle;

typedef struct sc_pick {
    uint32_t best; /* the row with the smallest expected step: the choice */
    double regret; /* its expected regret */
    uint32_t n_settle;
    sc_settle settle[SC_SETTLE_MAX]; /* the one that teaches most first; none
                                        whose measurement would save less than
                                        0.01 % of the step */
} sc_pick;

/* Judges rows[0..n). Two rows are judged in closed form, more by seeded draws: the
 * same rows, seed and number of draws give the same bytes. Errors: no row, a
 * step that is not positive. Time grows with n squared times the draws. */
sc_status sc_pick_judge(const sc_cost *cost, sc_pick_row *rows, uint32_t n,
                        const sc_pick_opts *o, sc_arena *a, sc_pick *out,
                        sc_err *err);

#endif
