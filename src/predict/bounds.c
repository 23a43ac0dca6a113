/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.c - what no result may break, and how far to trust it.
 */
#include "predict/internal.h"

#include <math.h>
#include <string.h>

static double best_peak(const sc_device *d, sc_precision p)
{
    double peak = d->peak[p] > 0 ? d->peak[p] : d->vector_flops;
    /* What a low-precision recipe leaves wide only runs slower. */
    return fmax(peak, d->vector_flops);
}

sc_status predict_bounds(const sc_prediction *p, double flops_device,
                         sc_err *err)
{
    const sc_run *r = &p->run;
    double peak = best_peak(r->hw->device, r->precision), sum = 0;
    if (!(p->step_time_s > 0) || !isfinite(p->step_time_s))
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "step time is %g s", p->step_time_s);
    if (flops_device > p->step_time_s * peak * (1 + 1e-9))
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "%.4g FLOP in %.4g s is above the device's peak of "
                        "%.4g FLOP/s",
                        flops_device, p->step_time_s, peak);
    for (uint32_t c = 0; c < SC_N_CATS; c++) sum += p->time_breakdown_s[c];
    if (fabs(sum - p->step_time_s) > 1e-9 * fmax(1, p->step_time_s))
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "the parts of the step sum to %.12g s, not %.12g", sum,
                        p->step_time_s);
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const sc_stage_memory *m = &p->memory[i];
        if (!(m->peak >= m->weights) || !(m->weights > 0))
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "memory of stage %u is below its weights", i);
    }
    return SC_OK;
}

bool predict_fitted(const sc_device *d)
{
    static const char *const fitted[] = {"ampere", "hopper", "blackwell"};
    for (size_t i = 0; i < SC_COUNT(fitted); i++)
        if (strcmp(d->arch, fitted[i]) == 0) return true;
    return false;
}

/* 80 % of held-out rows lie within: 1.28 x 1.25 x their mean absolute error
 * (spec: 5 % inside a fitted family, 10 % for a new model or device, 30 % and
 * more for software or devices without rows). */
double sc_predict_spread(const sc_run *run)
{
    double half = run->sw->measured ? 0.12 : 0.2;
    return predict_fitted(run->hw->device) ? half : 0.35;
}

void sc_predict_rates(const sc_cost *c, sc_sim_opts *o)
{
    double rate = 1 / (1 + c->p[SC_P_OVERLAP]);
    sc_sim_opts_init(o);
    o->rate[SC_OP_COMPUTE][SC_OP_COLL] = rate;
    o->rate[SC_OP_COLL][SC_OP_COMPUTE] = rate;
}
