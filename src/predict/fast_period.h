/* SPDX-License-Identifier: Apache-2.0 */
/* fast_period.h - periods of a schedule, which a sweep need not repeat. */
#ifndef PREDICT_FAST_PERIOD_H
#define PREDICT_FAST_PERIOD_H

#include "predict/fast.h"

/* Sets the period of an order, if its middle has one; its list lives in `to`. */
sc_status fast_period_find(const sc_run *r, fast_order *o, sc_arena *a,
                           sc_arena *to, sc_err *err);

/* The clocks of a sweep of one run. */
typedef struct fast_clocks {
    double *end;       /* [n_places] */
    double *at, *busy; /* [pp] */
    double *left;      /* [pp]; NULL: not needed */
} fast_clocks;

/* What a sweep was like one period ago. */
typedef struct fast_period {
    uint32_t next; /* the slot before which it is compared; UINT32_MAX: none */
    bool known;
    uint32_t n;        /* numbers of a state */
    double *view;      /* [2 * n] one period ago, now */
    double *at, *left; /* [pp] */
    double (*cat)[SC_N_CATS];
} fast_period;

/* Only passes with exchanges beside them are worth it. */
sc_status fast_period_open(const fast_engine *x, const fast_order *o,
                           sc_arena *a, fast_period *p, sc_err *err);
/* Before slot p->next: if the state is that of one period ago, lets all whole
 * periods that follow pass, and returns the number of their slots. */
uint32_t fast_period_skip(fast_engine *x, const fast_order *o, uint32_t slot,
                          fast_clocks *c, fast_period *p);

#endif
