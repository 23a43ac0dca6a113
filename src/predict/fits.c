/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fits.c - the probability that a run fits in memory.
 *
 * log(measured peak / predicted peak) has a normal distribution on each side of
 * 0, with the quantiles 10 % and 90 % of measured runs (sc_held_out.memory).
 */
#include "base/stats.h"
#include "predict/internal.h"

#include <math.h>

/* Quantile 90 % of the standard normal distribution, and quantile
 * 1 - SC_MAY_FIT. */
static const double at_90 = 1.2815515655446004;
static const double at_limit = 0.6744897501960817;

double predict_fits_probability(const sc_cost *c, double full)
{
    const sc_interval *v = &c->held.memory;
    double room = -log(full), end = room < 0 ? -v->low : v->high;
    if (end <= 0) return room >= 0;
    return sc_normal_below(room / end * at_90);
}

double predict_fits_run(const sc_run *r, double full)
{
    double fits = predict_fits_probability(r->cost, full);
    return sc_run_idle_stages(r) ? fits * r->sw->idle_stages : fits;
}

double predict_most_full(const sc_cost *c)
{
    return exp(-c->held.memory.low / at_90 * at_limit);
}
