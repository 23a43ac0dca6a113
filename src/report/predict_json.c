/* SPDX-License-Identifier: Apache-2.0 */
/* predict_json.c - a prediction as stepcast.result/1. */
#include <stepcast/report_predict.h>

#include <math.h>
#include <stdio.h>
#include <stepcast_version.h>

/* What is not a degree of parallelism. */
static void strategy(const sc_run *r, sc_json *j)
{
    char format[32];
    sc_compress_print(&r->compress, format, sizeof format);
    uint32_t rep = r->size[SC_AX_REP] > 1 ? r->size[SC_AX_REP] : 1;
    sc_json_put_uint(j, "hsdp", sc_run_dp(r) / rep);
    sc_json_put_uint(j, "prefetch", (uint64_t)r->sw->prefetch);
    sc_json_put_string(j, "cp_comm", sc_cp_comm_names[r->sw->cp_comm]);
    sc_json_put_string(j, "grad_compress", format);
    sc_json_put_double(j, "capacity_factor",
                       r->capacity > 0 ? r->capacity : NAN);
    sc_json_put_double(j, "expert_imbalance",
                       r->imbalance > 0 ? r->imbalance : 1);
    sc_json_put_uint(j, "trained_params", r->model->trained_params);
}

static void config(const sc_run *r, sc_json *j)
{
    sc_json_key(j, "config");
    sc_json_begin(j, '{');
    sc_json_put_string(j, "model", r->model->name);
    sc_json_put_string(j, "cluster", r->hw->name);
    sc_json_put_string(j, "device", r->hw->device->name);
    sc_json_put_uint(j, "devices", r->hw->n_devices);
    sc_json_put_string(j, "software", r->sw->name);
    for (uint32_t ax = 0; ax < SC_AX_REP; ax++)
        sc_json_put_uint(j, sc_axis_names[ax],
                         ax == SC_AX_DP   ? sc_run_dp(r)
                         : ax == SC_AX_EP ? sc_run_ep(r)
                                          : r->size[ax]);
    sc_json_put_uint(j, "vp", r->vpp);
    sc_json_put_uint(j, "global_batch", r->gbs);
    sc_json_put_uint(j, "micro_batch", r->mbs);
    sc_json_put_uint(j, "micro_batches", r->ga);
    sc_json_put_uint(j, "seq", r->seq);
    sc_json_put_string(j, "precision", sc_recipe_names[r->recipe]);
    sc_json_put_uint(j, "zero", (uint64_t)r->zero);
    strategy(r, j);
    sc_json_key(j, "sp");
    sc_json_bool(j, r->sp);
    sc_json_put_string(j, "recompute", sc_recompute_names[r->recompute]);
    sc_json_put_double(j, "offload", r->offload);
    sc_json_put_string(j, "schedule", sc_schedule_names[r->schedule]);
    sc_json_end(j, '}');
}

static void memory(const sc_prediction *p, sc_json *j)
{
    sc_json_key(j, "memory_per_stage");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const sc_stage_memory *m = &p->memory[i];
        sc_json_begin(j, '{');
        sc_json_put_double(j, "weights", m->weights);
        sc_json_put_double(j, "gradients", m->gradients);
        sc_json_put_double(j, "optimizer", m->optimizer);
        sc_json_put_double(j, "activations", m->activations);
        sc_json_put_double(j, "communication", m->communication);
        sc_json_put_double(j, "other", m->other);
        sc_json_put_double(j, "allocated", m->allocated);
        sc_json_put_double(j, "peak", m->peak);
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
        sc_json_put_string(j, "change", p->suggestion[i].change);
        sc_json_put_double(j, "step_time_s", p->suggestion[i].step_time_s);
        sc_json_put_double(j, "peak", p->suggestion[i].peak);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void hex(sc_json *j, const char *key, uint64_t v)
{
    char buf[24];
    snprintf(buf, sizeof buf, "%016llx", (unsigned long long)v);
    sc_json_put_string(j, key, buf);
}

static void provenance(const sc_prediction *p, sc_json *j)
{
    sc_json_key(j, "provenance");
    sc_json_begin(j, '{');
    sc_json_put_string(j, "version", STEPCAST_VERSION);
    sc_json_put_string(j, "commit", STEPCAST_COMMIT);
    hex(j, "fit_hash", p->run.cost->hash);
    sc_json_put_uint(j, "seed", 0);
    hex(j, "model_hash", p->run.model->hash);
    hex(j, "cluster_hash", p->run.hw->hash);
    sc_json_put_uint(j, "candidates", p->n_candidates);
    sc_json_end(j, '}');
}

static void totals(const sc_prediction *p, double measured, sc_json *j)
{
    sc_json_put_double(j, "step_time_s", p->step_time_s);
    sc_json_put_double(j, "step_time_low_s", p->step_time_low_s);
    sc_json_put_double(j, "step_time_high_s", p->step_time_high_s);
    sc_json_put_double(j, "step_time_other_engine_s", p->other_engine_s);
    if (!isnan(measured)) {
        sc_json_put_double(j, "measured_s", measured);
        sc_json_put_double(j, "error", p->step_time_s / measured - 1);
    }
    sc_json_put_double(j, "samples_per_s", p->samples_per_s);
    sc_json_put_double(j, "tokens_per_s", p->tokens_per_s);
    sc_json_put_double(j, "tokens_per_s_per_device",
                       p->tokens_per_s_per_device);
    sc_json_put_double(j, "model_tflops_per_device",
                       p->model_tflops_per_device);
    sc_json_put_double(j, "mfu", p->mfu);
    sc_json_put_double(j, "hfu", p->hfu);
    sc_json_key(j, "fits");
    sc_json_bool(j, p->fits);
    sc_json_put_double(j, "memory_capacity_bytes", p->memory_capacity_bytes);
}

void sc_report_prediction_json(const sc_job *job, const sc_prediction *p,
                               double measured, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.result/1");
    sc_json_put_string(j, "engine",
                       job->engine == SC_ENGINE_EVENT ? "event" : "fast");
    config(&p->run, j);
    totals(p, measured, j);
    memory(p, j);
    sc_json_key(j, "time_breakdown_s");
    sc_json_begin(j, '{');
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        sc_json_put_double(j, sc_cat_names[c], p->time_breakdown_s[c]);
    sc_json_end(j, '}');
    sc_json_put_double(j, "energy_j_per_step", p->energy_j_per_step);
    sc_json_put_double(j, "cost_usd_per_step", p->cost_usd_per_step);
    suggestions(p, j);
    texts(j, "assumptions", p->assumptions, p->n_assumptions);
    texts(j, "warnings", p->warnings, p->n_warnings);
    provenance(p, j);
    sc_json_end(j, '}');
}
