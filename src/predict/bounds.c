/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.c - checks the physical bounds of every result, and finds its 80 %
 * interval.
 */
#include "predict/internal.h"

#include <math.h>

double predict_best_peak(const sc_device *d, sc_precision p)
{
    double peak = d->peak[p] > 0 ? d->peak[p] : d->vector_flops;
    /* Operators that a low-precision recipe keeps in a wider format only run
     * slower. */
    return fmax(peak, d->vector_flops);
}

sc_status predict_bounds(const sc_prediction *p, double flops_device,
                         sc_err *err)
{
    const sc_run *r = &p->run;
    double peak = predict_best_peak(r->hw->device, r->precision), sum = 0;
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
        bool holds = m->weights > 0 || r->offload_weights > 0 ||
                     r->sw->stage_split == SC_SPLIT_COST;
        if (!(m->peak >= m->weights) || !holds)
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "memory of stage %u is below its weights", i);
    }
    return SC_OK;
}

/* ---- interval ------------------------------------------------------------ */

sc_model_kind sc_predict_kind(const sc_model *m)
{
    if (m->net) return SC_KIND_GRAPH;
    if (m->t.lora > 0) return SC_KIND_ADAPTERS;
    if (m->t.encoder) return SC_KIND_ENCODER;
    return m->t.experts > 0 ? SC_KIND_EXPERTS : SC_KIND_DENSE;
}

static bool device_seen(const sc_run *run)
{
    const sc_held_out *h = &run->cost->held;
    if (run->hw->device->like) return false; /* not measured itself */
    return sc_held_out_rows(h->arch, h->n_archs, run->hw->device->arch) > 0;
}

/* A measured program that differs only by its profile counts as this
 * program. */
static bool program_seen(const sc_run *run)
{
    const sc_held_out *h = &run->cost->held;
    for (const sc_software *s = run->sw; s; s = s->base)
        if (sc_held_out_rows(h->program, h->n_programs, s->name) > 0)
            return true;
    return false;
}

/* The lowest and the highest end over all kinds of models. */
static sc_interval widest(const sc_held_out *h)
{
    sc_interval v = h->all;
    for (int k = 0; k < (int)SC_N_KINDS; k++) {
        if (k == SC_KIND_GRAPH) continue;
        v.low = fmin(v.low, h->kind[k].low);
        v.high = fmax(v.high, h->kind[k].high);
    }
    return v;
}

/* Whether an unknown name of the device or the program was replaced. */
static bool guessed(const sc_run *run)
{
    return run->hw->nearest || run->sw->nearest;
}

bool predict_seen(const sc_run *run)
{
    return device_seen(run) && program_seen(run) && !guessed(run);
}

/* The ends of the 80 % interval of the model's kind in standard deviations of
 * the job. If no row of the fit has this device or program, the widest of all
 * kinds. */
static sc_interval interval_of(const sc_run *run)
{
    const sc_held_out *h = &run->cost->held;
    return predict_seen(run) ? h->kind[sc_predict_kind(run->model)] : widest(h);
}

/* The share of the step that waits for messages of axes that span nodes. */
static double between_nodes(const sc_prediction *p)
{
    static const struct {
        sc_axis axis;
        sc_cat cat;
    } inner_first[] = {{SC_AX_TP, SC_CAT_TP},  {SC_AX_CP, SC_CAT_CP},
                       {SC_AX_EP, SC_CAT_EP},  {SC_AX_DP, SC_CAT_DP},
                       {SC_AX_REP, SC_CAT_DP}, {SC_AX_PP, SC_CAT_PP}};

    const sc_run *r = &p->run;
    bool spans[SC_N_CATS] = {false};
    double span = 1, sum = 0;
    for (size_t i = 0; i < SC_COUNT(inner_first); i++) {
        double size = r->size[inner_first[i].axis];
        if (size > 1) span *= size;
        if (size > 1 && span > r->hw->node_size)
            spans[inner_first[i].cat] = true;
    }
    for (int c = 0; c < SC_N_CATS; c++)
        if (spans[c]) sum += p->time_breakdown_s[c];
    return sum / p->step_time_s;
}

/* An uncalibrated network adds its own error, which is independent of the
 * others, in that share. */
static void widen_for_network(const sc_prediction *p, sc_interval *v)
{
    const sc_run *r = &p->run;
    uint32_t all = r->hw->n_devices, stride = 1;
    sc_place at = sc_hw_place(r->hw, 1, &all, &stride);
    if (sc_cost_calibrated(r->cost, r->hw, &at)) return;
    double own = log(r->cost->p[SC_P_INTERVAL_NETWORK]) * between_nodes(p);
    v->low = copysign(hypot(v->low, own), v->low);
    v->high = copysign(hypot(v->high, own), v->high);
}

sc_status sc_predict_interval(sc_prediction *p, sc_arena *a, sc_err *err)
{
    const sc_cost *c = p->run.cost;
    sc_interval v = interval_of(&p->run);
    p->step_time_low_s = p->step_time_high_s = NAN;
    SC_TRY(sc_predict_shares(p, a, err));
    if (isnan(v.low)) return SC_OK;
    double sd = sc_effects_deviation(&c->held.effects, c->held.unseen, c->cov,
                                     &p->traits);
    v.low *= sd;
    v.high *= sd;
    widen_for_network(p, &v);
    if (c->anchors) p->narrow = sc_anchors_narrow(c->anchors, &p->traits, a);
    p->step_time_low_s = p->step_time_s * exp(v.low * p->narrow);
    p->step_time_high_s = p->step_time_s * exp(v.high * p->narrow);
    return SC_OK;
}

void predict_interval_notes(const sc_prediction *p, predict_notes *assume,
                            predict_notes *warn)
{
    const sc_held_out *h = &p->run.cost->held;
    sc_interval v = interval_of(&p->run);
    if (isnan(v.low)) return;
    if (!device_seen(&p->run))
        predict_note(warn,
                     "no measured step on %s devices is in the fit; "
                     "the rates are those of the nearest generation",
                     p->run.hw->device->like ? p->run.hw->device->name
                                             : p->run.hw->device->arch);
    if (!program_seen(&p->run))
        predict_note(warn, "no measured step of %s is in the fit",
                     p->run.sw->name);
    if (predict_seen(&p->run))
        predict_note(assume,
                     "interval: from the errors of %u measured runs of %s "
                     "models in %u families, each predicted by a fit without "
                     "its family",
                     v.rows, sc_model_kind_names[sc_predict_kind(p->run.model)],
                     v.families);
    else
        predict_note(assume, "interval widened %.3gx: %s", h->unseen,
                     guessed(&p->run)
                         ? "the device or the program is the nearest known one"
                         : "no measured run of this device and program is in "
                           "the fit");
}
