/* SPDX-License-Identifier: Apache-2.0 */
/* money.c - power, energy and cost of a step. */
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

/* What the machine draws if its devices have that activity. The power of a host
 * includes its adapters where it is known. */
static sc_power power_of(const sc_run *r, double activity)
{
    const sc_hw *hw = r->hw;
    const sc_network_power *net = &hw->network_power;
    double hosts = hw->n_nodes * hw->node_power_w * r->cost->p[SC_P_HOST_WATTS];
    sc_power w = {.devices = hw->n_devices * hw->device->power_w * activity,
                  .hosts = fmax(0, hosts - net->adapters_w),
                  .adapters = net->adapters_w,
                  .switches = net->switches_w,
                  .links = net->links_w,
                  .pue = hw->pue > 0 ? hw->pue : 1};
    w.total = w.pue * (w.devices + w.hosts + w.adapters + w.switches + w.links);
    if (hw->device->power_w <= 0) w.total = NAN;
    return w;
}

double sc_predict_least_watts(const sc_run *r)
{
    const double *c = r->cost->p;
    double least = fmin(c[SC_P_EXCHANGE_POWER], c[SC_P_IDLE_POWER]);
    return power_of(r, fmin(1, least)).total;
}

double sc_predict_most_watts(const sc_run *r)
{
    return power_of(r, 1).total;
}

double predict_idle_watts(const sc_run *r)
{
    return power_of(r, r->cost->p[SC_P_IDLE_POWER]).total;
}

double sc_job_rent(const sc_job *job, const sc_hw *hw)
{
    if (job->price >= 0) return job->price;
    return hw->price > 0 ? hw->price : NAN;
}

void predict_money(const sc_job *job, sc_prediction *p)
{
    double t = p->step_time_s;
    p->power = power_of(&p->run, device_activity(p));
    p->energy_j_per_step = p->power.total * t;
    p->cost_usd_per_step =
        sc_job_rent(job, p->run.hw) * p->run.hw->n_devices * t;
}
