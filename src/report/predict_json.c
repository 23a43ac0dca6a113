/* SPDX-License-Identifier: Apache-2.0 */
/* predict_json.c - a prediction as stepcast.result/1. */
#include <stepcast/report_predict.h>

#include <math.h>
#include <stdio.h>
#include <stepcast_version.h>

static void num(sc_json *j, const char *key, double v)
{
    sc_json_key(j, key);
    sc_json_double(j, v); /* NaN: null */
}

static void word(sc_json *j, const char *key, const char *v)
{
    sc_json_key(j, key);
    sc_json_string(j, v);
}

static void count(sc_json *j, const char *key, uint64_t v)
{
    sc_json_key(j, key);
    sc_json_uint(j, v);
}

static void config(const sc_run *r, sc_json *j)
{
    sc_json_key(j, "config");
    sc_json_begin(j, '{');
    word(j, "model", r->model->name);
    word(j, "cluster", r->hw->name);
    word(j, "device", r->hw->device->name);
    count(j, "devices", r->hw->n_devices);
    word(j, "software", r->sw->name);
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        count(j, sc_axis_names[ax],
              ax == SC_AX_DP   ? sc_run_dp(r)
              : ax == SC_AX_EP ? sc_run_ep(r)
                               : r->size[ax]);
    count(j, "vp", r->vpp);
    count(j, "global_batch", r->gbs);
    count(j, "micro_batch", r->mbs);
    count(j, "micro_batches", r->ga);
    count(j, "seq", r->seq);
    word(j, "precision", sc_recipe_names[r->recipe]);
    count(j, "zero", (uint64_t)r->zero);
    sc_json_key(j, "sp");
    sc_json_bool(j, r->sp);
    word(j, "recompute", sc_recompute_names[r->recompute]);
    word(j, "schedule", sc_schedule_names[r->schedule]);
    sc_json_end(j, '}');
}

static void memory(const sc_prediction *p, sc_json *j)
{
    sc_json_key(j, "memory_per_stage");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const sc_stage_memory *m = &p->memory[i];
        sc_json_begin(j, '{');
        num(j, "weights", m->weights);
        num(j, "gradients", m->gradients);
        num(j, "optimizer", m->optimizer);
        num(j, "activations", m->activations);
        num(j, "communication", m->communication);
        num(j, "other", m->other);
        num(j, "allocated", m->allocated);
        num(j, "peak", m->peak);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void texts(sc_json *j, const char *key, const char *const *t, uint32_t n)
{
    sc_json_key(j, key);
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) sc_json_string(j, t[i]);
    sc_json_end(j, ']');
}

static void suggestions(const sc_prediction *p, sc_json *j)
{
    sc_json_key(j, "suggestions");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_suggestions; i++) {
        sc_json_begin(j, '{');
        word(j, "change", p->suggestion[i].change);
        num(j, "step_time_s", p->suggestion[i].step_time_s);
        num(j, "peak", p->suggestion[i].peak);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void hex(sc_json *j, const char *key, uint64_t v)
{
    char buf[24];
    snprintf(buf, sizeof buf, "%016llx", (unsigned long long)v);
    word(j, key, buf);
}

static void provenance(const sc_prediction *p, sc_json *j)
{
    sc_json_key(j, "provenance");
    sc_json_begin(j, '{');
    word(j, "version", STEPCAST_VERSION);
    word(j, "commit", STEPCAST_COMMIT);
    hex(j, "fit_hash", p->run.cost->hash);
    count(j, "seed", 0);
    hex(j, "model_hash", p->run.model->hash);
    hex(j, "cluster_hash", p->run.hw->hash);
    count(j, "candidates", p->n_candidates);
    sc_json_end(j, '}');
}

static void totals(const sc_prediction *p, double measured, sc_json *j)
{
    num(j, "step_time_s", p->step_time_s);
    num(j, "step_time_low_s", p->step_time_low_s);
    num(j, "step_time_high_s", p->step_time_high_s);
    num(j, "step_time_other_engine_s", p->other_engine_s);
    if (!isnan(measured)) {
        num(j, "measured_s", measured);
        num(j, "error", p->step_time_s / measured - 1);
    }
    num(j, "samples_per_s", p->samples_per_s);
    num(j, "tokens_per_s", p->tokens_per_s);
    num(j, "tokens_per_s_per_device", p->tokens_per_s_per_device);
    num(j, "model_tflops_per_device", p->model_tflops_per_device);
    num(j, "mfu", p->mfu);
    num(j, "hfu", p->hfu);
    sc_json_key(j, "fits");
    sc_json_bool(j, p->fits);
    num(j, "memory_capacity_bytes", p->memory_capacity_bytes);
}

void sc_report_prediction_json(const sc_job *job, const sc_prediction *p,
                               double measured, sc_json *j)
{
    sc_json_begin(j, '{');
    word(j, "schema", "stepcast.result/1");
    word(j, "engine", job->engine == SC_ENGINE_EVENT ? "event" : "fast");
    config(&p->run, j);
    totals(p, measured, j);
    memory(p, j);
    sc_json_key(j, "time_breakdown_s");
    sc_json_begin(j, '{');
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        num(j, sc_cat_names[c], p->time_breakdown_s[c]);
    sc_json_end(j, '}');
    num(j, "energy_j_per_step", p->energy_j_per_step);
    num(j, "cost_usd_per_step", p->cost_usd_per_step);
    suggestions(p, j);
    texts(j, "assumptions", p->assumptions, p->n_assumptions);
    texts(j, "warnings", p->warnings, p->n_warnings);
    provenance(p, j);
    sc_json_end(j, '}');
}
