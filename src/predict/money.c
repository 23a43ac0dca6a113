/* SPDX-License-Identifier: Apache-2.0 */
/* money.c - energy and cost of a step. */
#include "predict/internal.h"

#include <math.h>

/* Power of a device over its limit: all of it while it computes, less while it
 * moves data, least while it waits, clocks up. */
static double device_activity(const sc_prediction *p)
{
    const double *c = p->run.cost->p;
    double t = p->step_time_s, busy = 0, waiting = 0;
    for (uint32_t i = 0; i < SC_N_CATS; i++) {
        if (i == SC_CAT_COMPUTE || i == SC_CAT_OPTIMIZER)
            busy += p->time_breakdown_s[i];
        if (i == SC_CAT_BUBBLE || i == SC_CAT_HOST)
            waiting += p->time_breakdown_s[i];
    }
    double moving = fmax(0, t - busy - waiting);
    return (busy + moving * c[SC_P_EXCHANGE_POWER] +
            waiting * c[SC_P_IDLE_POWER]) /
           fmax(t, busy + moving + waiting);
}

/* What the machine draws if its devices have that activity. */
static double watts(const sc_run *r, double activity)
{
    const sc_hw *hw = r->hw;
    double all = hw->n_devices * hw->device->power_w * activity +
                 hw->n_nodes * hw->node_power_w * r->cost->p[SC_P_HOST_WATTS];
    return all * (hw->pue > 0 ? hw->pue : 1);
}

double sc_predict_least_watts(const sc_run *r)
{
    const double *c = r->cost->p;
    double least = fmin(c[SC_P_EXCHANGE_POWER], c[SC_P_IDLE_POWER]);
    return r->hw->device->power_w > 0 ? watts(r, fmin(1, least)) : NAN;
}

double predict_idle_watts(const sc_run *r)
{
    return r->hw->device->power_w > 0 ? watts(r, r->cost->p[SC_P_IDLE_POWER])
                                      : NAN;
}

void predict_money(const sc_job *job, sc_prediction *p)
{
    const sc_run *r = &p->run;
    const sc_hw *hw = r->hw;
    double t = p->step_time_s;
    p->energy_j_per_step = NAN;
    if (hw->device->power_w > 0)
        p->energy_j_per_step = watts(r, device_activity(p)) * t;
    p->cost_usd_per_step =
        job->price >= 0 ? job->price * hw->n_devices * t : NAN;
}
