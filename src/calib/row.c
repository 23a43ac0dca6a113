/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - the prediction of one row of a table of runs. */
#include "calib/row.h"

#include "calib/figure.h"

#include <math.h>

/* What the parameters and activations of the transformer blocks alone take on
 * the first stage: the figure that Korthikanti et al. 2022 draw (figure 1). */
static sc_status block_memory(const sc_prediction *p, sc_arena *scratch,
                              double *out, sc_err *err)
{
    sc_plan plan;
    SC_TRY(sc_plan_build(&p->run, scratch, &plan, err));
    uint32_t pp = p->run.size[SC_AX_PP], vpp = p->run.vpp;
    double all[3] = {0}, in_blocks[3] = {0}, saved = 0; /* w, g, o */
    for (uint32_t i = 0; i < p->run.model->n_layers; i++) {
        sc_block b;
        SC_TRY(sc_block_price(&plan, i, scratch, &b, err));
        const uint8_t kind = p->run.model->layer[i].kind;
        double n = 0;
        for (uint32_t v = 0; v < plan.n_stages; v += pp)
            n += kind == SC_LAYER_BLOCK   ? plan.stage[v].blocks
                 : kind == SC_LAYER_EMBED ? plan.stage[v].embed
                                          : plan.stage[v].head;
        const double kept[3] = {b.params_kept, b.grads_kept, b.optim_kept};
        for (int k = 0; k < 3; k++) {
            all[k] += n * kept[k];
            if (kind == SC_LAYER_BLOCK) in_blocks[k] += n * kept[k];
        }
        if (kind == SC_LAYER_BLOCK) saved = b.saved;
    }
    const sc_stage_memory *m = &p->memory[0];
    const double bytes[3] = {m->weights, m->gradients, m->optimizer};
    double sum = 0;
    for (int k = 0; k < 3; k++)
        if (all[k] > 0) sum += bytes[k] * in_blocks[k] / all[k];
    uint32_t flying =
        sc_schedule_in_flight(p->run.schedule, pp, vpp, p->run.ga, 0);
    *out = sum + saved * flying * plan.stage[0].blocks;
    return SC_OK;
}

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
    return SC_OK;
}

/* The software may be a copy with the job's own values: kept beside. */
static sc_status keep_choice(const sc_prediction *p, sc_arena *a, sc_run *out,
                             sc_err *err)
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
    return SC_OK;
}

static sc_status predict(const calib_run *run, const sc_cost *cost, int engine,
                         sc_arena *scratch, sc_prediction *p, double *mem,
                         sc_err *err)
{
    sc_job job = run->job;
    job.engine = engine;
    job.brief = true;
    SC_TRY(
        sc_predict(&job, run->hw, run->model, run->sw, cost, scratch, p, err));
    *mem = sc_predict_reported_memory(p);
    if (!run->mem_formula) return SC_OK;
    if (!p->graph) return block_memory(p, scratch, mem, err);
    *mem = calib_figure_memory(p->graph);
    return SC_OK;
}

sc_status calib_row_predict(const calib_run *run, const sc_cost *cost,
                            int engine, sc_arena *a, sc_arena *scratch,
                            sc_valid_row *out, sc_run *choice, sc_err *err)
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
                        .config_key = run->config_key,
                        .group_key = run->group_key};
    sc_prediction p = {.step_time_s = NAN};
    if (!row.reason) {
        sc_err why;
        sc_err_init(&why);
        sc_arena_reset(scratch);
        sc_status s =
            predict(run, cost, engine, scratch, &p, &row.mem_predicted, &why);
        SC_TRY(calib_row_reason(s, &why, a, &row.reason, err));
    }
    SC_TRY(copy_assumptions(run, row.reason ? NULL : &p, a, &row, err));
    if (!row.reason) {
        row.predicted = p.step_time_s;
        row.error = row.predicted / row.measured - 1;
        row.low = p.step_time_low_s;
        row.high = p.step_time_high_s;
        row.kind = (uint8_t)sc_predict_kind(run->model);
        row.hw_device = run->hw->device->name;
        if (choice && p.run.sw) SC_TRY(keep_choice(&p, a, choice, err));
        row.reason = run->unscored;
    }
    *out = row;
    return SC_OK;
}
