/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - predicts one row of a table of runs. */
#include "calib/row.h"

#include "calib/effects.h"
#include "calib/figure.h"

#include <math.h>

static sc_status copy_assumptions(const calib_run *run, const sc_prediction *p,
                                  sc_arena *a, sc_valid_row *out, sc_err *err)
{
    uint32_t n = run->n_assumptions + (p ? p->n_assumptions : 0);
    out->assumptions = SC_NEW_N(a, const char *, n);
    if (!out->assumptions) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        const char *text =
            i < run->n_assumptions
                ? run->assumptions[i]
                : sc_strdup(a, p->assumptions[i - run->n_assumptions]);
        if (!text) return sc_error_nomem(err);
        out->assumptions[i] = text;
    }
    out->n_assumptions = n;
    const char **warnings = SC_NEW_N(a, const char *, run->n_warnings);
    if (!warnings) return sc_error_nomem(err);
    for (uint32_t i = 0; i < run->n_warnings; i++)
        warnings[i] = run->warnings[i];
    out->warnings = warnings;
    out->n_warnings = run->n_warnings;
    return SC_OK;
}

/* Keeps the choices of a prediction. The software may be a copy with the job's
 * own values, so it is copied too, and the model one that attends to packed
 * documents. */
static sc_status keep_choice(const calib_run *run, const sc_prediction *p,
                             sc_arena *a, sc_run *out, sc_err *err)
{
    sc_software *sw = SC_NEW(a, sc_software);
    if (!sw) return sc_error_nomem(err);
    *sw = *p->run.sw;
    sw->base = NULL;
    sw->name = sc_strdup(a, sw->name);
    if (!sw->name) return sc_error_nomem(err);
    *out = p->run;
    out->sw = sw;
    out->cost = NULL;
    if (out->model != run->model && !out->model->net)
        return sc_model_from_transformer(&out->model->t, sc_pos_none(), a,
                                         &out->model, err);
    return SC_OK;
}

static sc_status predict(const calib_run *run, const sc_cost *cost, int engine,
                         bool interval, sc_arena *scratch, sc_prediction *p,
                         double *mem, sc_err *err)
{
    sc_job job = run->job;
    /* this memory is a sum over lifetimes, which only the event engine has */
    job.engine = run->mem_formula ? SC_ENGINE_EVENT : engine;
    job.brief = true;
    SC_TRY(
        sc_predict(&job, run->hw, run->model, run->sw, cost, scratch, p, err));
    if (interval) SC_TRY(sc_predict_interval(p, scratch, err));
    *mem = run->mem_formula ? calib_figure_memory(p->net)
                            : sc_predict_reported_memory(p);
    return SC_OK;
}

sc_status calib_row_predict(calib_run *run, const sc_cost *cost, int engine,
                            sc_arena *a, sc_arena *scratch, sc_valid_row *out,
                            calib_row_also also, sc_err *err)
{
    sc_valid_row row = {.id = run->id,
                        .family = run->family,
                        .device = run->device,
                        .model = run->model_name,
                        .reason = run->reason,
                        .measured = run->measured,
                        .median = run->measured,
                        .predicted = NAN,
                        .error = NAN,
                        .mem_measured = run->mem_measured,
                        .mem_predicted = NAN,
                        .low = NAN,
                        .high = NAN,
                        .outcome = run->outcome,
                        .fits_probability = NAN,
                        .config_key = run->config_key,
                        .group_key = run->group_key};
    sc_prediction p = {.step_time_s = NAN};
    bool again = !row.reason;
    while (again) {
        sc_err why;
        sc_err_init(&why);
        sc_arena_reset(scratch);
        sc_status s = predict(run, cost, engine, also.interval, scratch, &p,
                              &row.mem_predicted, &why);
        again = false;
        if (s == SC_EINPUT) SC_TRY(calib_relax(&why, a, run, &again, err));
        if (!again) SC_TRY(calib_row_reason(s, &why, a, &row.reason, err));
    }
    row.unfitted = run->relaxed > 0 || (run->sw && run->sw->unfitted);
    SC_TRY(copy_assumptions(run, row.reason ? NULL : &p, a, &row, err));
    if (!row.reason) {
        row.predicted = p.step_time_s;
        if (run->rate > 0)
            row.measured = row.median =
                p.step_time_s * p.tokens_per_s / run->rate;
        row.error = row.predicted / row.measured - 1;
        row.low = p.step_time_low_s;
        row.high = p.step_time_high_s;
        row.fits = p.fits;
        row.fits_probability = p.fits_probability;
        row.kind = (uint8_t)sc_predict_kind(run->model);
        row.hw_device = run->hw->device->name;
        if (also.whole)
            *also.whole = (calib_whole){
                .days = p.whole_run.days,
                .devices = run->hw->n_devices,
                .energy_j = p.whole_run.energy_j,
                .device_part = p.power.pue * p.power.devices / p.power.total,
                .pue = run->hw->pue};
        if (also.choice && p.run.sw)
            SC_TRY(keep_choice(run, &p, a, also.choice, err));
        if (also.traits)
            SC_TRY(calib_keep_traits(&p.traits, a, also.traits, err));
        row.reason = run->unscored;
    }
    *out = row;
    return SC_OK;
}

sc_status calib_row_price(const calib_run *run, const sc_run *choice,
                          const sc_cost *cost, sc_arena *scratch, double *step,
                          sc_err *err)
{
    sc_job job = run->job;
    sc_run chosen = *choice;
    sc_prediction p;
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    job.mbs = (int64_t)choice->mbs;
    chosen.cost = cost;
    sc_arena_reset(scratch);
    if (run->model->net)
        SC_TRY(sc_predict(&job, run->hw, run->model, run->sw, cost, scratch, &p,
                          err));
    else
        SC_TRY(sc_predict_chosen(&job, &chosen, scratch, &p, err));
    *step = p.step_time_s;
    return SC_OK;
}
