/* SPDX-License-Identifier: Apache-2.0 */
/* predict_json.c - writes a prediction as stepcast.result/1. */
#include "report/net.h"
#include "report/origin.h"
#include "report/report_difference.h"

#include <math.h>
#include <stdio.h>

/* "global-batch" in files is "global_batch" in a document. */
static void put_key(sc_json *j, const char *name)
{
    char key[64];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof key; n++) {
        key[n] = name[n];
        if (key[n] == '-' || key[n] == ' ') key[n] = '_';
    }
    key[n] = '\0';
    sc_json_key(j, key);
}

static void put_value(sc_json *j, const sc_key *k, const sc_job *job)
{
    const void *field = (const char *)job + k->offset;
    char buf[64];
    put_key(j, k->name);
    if (k->type == SC_T_BOOL) {
        sc_json_bool(j, *(const bool *)field);
    } else if (k->type == SC_T_TRISTATE) {
        sc_json_bool(j, *(const int *)field > 0);
    } else if (k->type == SC_T_INT) {
        sc_json_int(j, *(const int64_t *)field);
    } else if (k->type == SC_T_QUANTITY && k->unit == SC_U_NONE) {
        sc_json_double(j, *(const double *)field);
    } else if (k->type == SC_T_STRING) {
        sc_json_string(j, *(const char *const *)field);
    } else {
        sc_schema_print(k, job, buf, sizeof buf);
        sc_json_string(j, buf);
    }
}

/* Writes every choice in the form that --config reads, and then what follows
 * from the choices. */
static void config(const sc_job *job, const sc_run *r,
                   const sc_report_origin *o, sc_json *j)
{
    sc_job whole;
    sc_job_resolve(job, r, &whole);
    whole.model = job->model;
    sc_json_key(j, "config");
    sc_json_begin(j, '{');
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        /* What was not chosen has no name. */
        const int *named = (const void *)((const char *)&whole + k->offset);
        bool open = k->type == SC_T_ENUM || k->type == SC_T_TRISTATE;
        bool always = k->type == SC_T_BOOL || (open && *named != SC_INFER);
        if (always || sc_job_has(&whole, k)) put_value(j, k, &whole);
    }
    if (o && o->megatron) sc_json_put_string(j, "megatron", o->megatron);
    if (o && o->from) {
        sc_json_key(j, "from");
        sc_json_begin(j, '[');
        for (const char *const *f = o->from; *f; f++) sc_json_string(j, *f);
        sc_json_end(j, ']');
    }
    if (o && o->profile) sc_json_put_string(j, "profile", o->profile);
    sc_json_put_string(j, "model_name", r->model->name);
    sc_json_put_string(j, "device", r->hw->device->name);
    sc_json_put_uint(j, "devices", r->hw->n_devices);
    sc_json_put_uint(j, "micro_batches", r->ga);
    sc_json_put_uint(j, "trained_params", r->model->trained_params);
    sc_json_end(j, '}');
}

static void memory(const sc_prediction *p, sc_json *j)
{
    sc_json_key(j, "memory_per_stage");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const sc_stage_memory *m = &p->memory[i];
        double part[SC_N_PARTS];
        sc_json_begin(j, '{');
        sc_stage_parts(m, part);
        for (int k = 0; k < (int)SC_PART_RESERVE; k++)
            sc_json_put_double(j, sc_part_names[k], part[k]);
        sc_json_put_double(j, "allocated", m->allocated);
        sc_json_put_double(j, "peak", m->peak);
        if (m->expanded_capacity > 0)
            sc_json_put_double(j, "expanded", m->expanded);
        sc_json_end(j, '}');
    }
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
        sc_json_key(j, "fits");
        sc_json_bool(j, p->suggestion[i].fits);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void provenance(const sc_prediction *p, const sc_report_origin *o,
                       sc_json *j)
{
    report_provenance(j);
    report_hex(j, "fit_hash", p->run.cost->hash);
    sc_json_put_uint(j, "seed", o ? o->seed : 0);
    report_hex(j, "model_hash", p->run.model->hash);
    report_hex(j, "cluster_hash", p->run.hw->hash);
    report_inputs(o ? o->input : NULL, o ? o->n_inputs : 0, j);
    sc_json_put_uint(j, "candidates", p->n_candidates);
    sc_json_end(j, '}');
}

static void totals(const sc_prediction *p, double measured, sc_json *j)
{
    sc_json_put_double(j, "step_time_s", p->step_time_s);
    sc_json_put_double(j, "step_time_low_s", p->step_time_low_s);
    sc_json_put_double(j, "step_time_high_s", p->step_time_high_s);
    sc_json_put_double(j, "step_time_other_engine_s", p->other_engine_s);
    if (!isnan(p->analytic_s))
        sc_json_put_double(j, "step_time_analytic_s", p->analytic_s);
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
    sc_json_put_double(j, "fits_probability", p->fits_probability);
    sc_json_put_double(j, "memory_capacity_bytes", p->memory_capacity_bytes);
}

/* Expected failures of each cause. */
static void causes(const sc_failing_run *x, const sc_hw *hw, sc_json *j)
{
    const sc_goodput *g = &x->expected;
    double exposed_s = g->total_s - g->part_s[SC_GP_WAITS];
    sc_json_key(j, "causes");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < x->table->n; i++) {
        const sc_failure *f = &x->table->failure[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "cause", f->name);
        sc_json_put_string(j, "component", sc_component_names[f->of]);
        sc_json_put_double(j, "times",
                           f->rate * sc_hw_count(hw, f->of) * exposed_s);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void failing_run(const sc_prediction *p, sc_json *j)
{
    const sc_failing_run *x = p->whole_run.failing;
    const sc_goodput *g = &x->expected;
    const double day = 86400;
    sc_json_key(j, "failures");
    sc_json_begin(j, '{');
    sc_json_put_string(j, "table", x->table->name);
    sc_json_put_double(j, "goodput", x->goodput);
    sc_json_put_double(j, "days_without_failures", x->days_without);
    sc_json_key(j, "days");
    sc_json_begin(j, '{');
    for (int i = 0; i < (int)SC_N_GOODPUT_PARTS; i++) {
        put_key(j, sc_goodput_names[i]);
        sc_json_double(j, g->part_s[i] / day);
    }
    sc_json_end(j, '}');
    sc_json_put_double(j, "times", g->failures);
    sc_json_put_double(j, "planned_stops", g->planned);
    sc_json_put_double(j, "checkpoint_every_steps", x->steps_between);
    sc_json_put_double(j, "checkpoint_s", x->job.save_s);
    sc_json_put_double(j, "checkpoint_lag_s", x->job.lag_s);
    sc_json_put_double(j, "interval_s", g->every_s);
    sc_json_put_double(j, "interval_young_s", g->young_s);
    sc_json_put_double(j, "interval_daly_s", g->daly_s);
    sc_json_put_double(j, "restart_s", x->job.restart_s);
    sc_json_put_double(j, "repair_s", x->job.repair_s);
    sc_json_put_uint(j, "spare_nodes", x->job.spares);
    sc_json_put_uint(j, "simulated_runs", x->simulated);
    sc_json_put_double(j, "simulated_days_low", x->low_s / day);
    sc_json_put_double(j, "simulated_days_high", x->high_s / day);
    causes(x, p->run.hw, j);
    sc_json_end(j, '}');
}

static void purchase(const sc_purchase *x, sc_json *j)
{
    sc_json_key(j, "purchase");
    sc_json_begin(j, '{');
    sc_json_put_string(j, "prices", x->prices->name);
    sc_json_put_double(j, "usd", x->usd);
    sc_json_put_double(j, "hosts", x->parts.hosts);
    sc_json_put_double(j, "hosts_usd", x->hosts_usd);
    sc_json_put_double(j, "adapters", x->parts.adapters);
    sc_json_put_double(j, "switches", x->parts.switches);
    sc_json_put_double(j, "switches_usd", x->switches_usd);
    sc_json_put_double(j, "network_links", x->parts.links);
    sc_json_put_double(j, "links_usd", x->links_usd);
    sc_json_put_double(j, "racks_usd", x->racks_usd);
    sc_json_put_double(j, "expanded_memory_usd", x->expanded_usd);
    sc_json_put_double(j, "service_life_s", x->prices->life_s);
    sc_json_put_double(j, "usd_per_s", x->usd_per_s);
    sc_json_put_double(j, "electricity_usd_per_j", x->usd_per_j);
    sc_json_end(j, '}');
}

static void power(const sc_power *w, sc_json *j)
{
    sc_json_key(j, "power");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "average_w", w->total);
    sc_json_put_double(j, "devices_w", w->devices);
    sc_json_put_double(j, "hosts_w", w->hosts);
    sc_json_put_double(j, "adapters_w", w->adapters);
    sc_json_put_double(j, "switches_w", w->switches);
    sc_json_put_double(j, "links_w", w->links);
    sc_json_put_double(j, "pue", w->pue);
    sc_json_end(j, '}');
}

static void published_run(const sc_prediction *p, sc_json *j)
{
    sc_json_key(j, "as_published");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "factor", p->run.cost->run_level.factor);
    sc_json_put_double(j, "days", p->whole_run.published.days);
    sc_json_put_double(j, "days_low", p->whole_run.published.days_low);
    sc_json_put_double(j, "days_high", p->whole_run.published.days_high);
    sc_json_put_double(j, "device_hours", p->whole_run.published.device_hours);
    sc_json_put_double(j, "energy_j", p->whole_run.published.energy_j);
    sc_json_put_double(j, "cost_usd", p->whole_run.published.cost_usd);
    sc_json_end(j, '}');
}

static void whole_run(const sc_prediction *p, sc_json *j)
{
    if (!isnan(p->co2e_kg_per_step))
        sc_json_put_double(j, "co2e_kg_per_step", p->co2e_kg_per_step);
    if (p->purchase) purchase(p->purchase, j);
    if (isnan(p->whole_run.days)) return;
    sc_json_put_double(j, "steps", p->whole_run.steps);
    sc_json_put_double(j, "days", p->whole_run.days);
    sc_json_put_double(j, "days_low", p->whole_run.days_low);
    sc_json_put_double(j, "days_high", p->whole_run.days_high);
    sc_json_put_double(j, "device_hours", p->whole_run.device_hours);
    sc_json_put_double(j, "energy_j", p->whole_run.energy_j);
    sc_json_put_double(j, "cost_usd", p->whole_run.cost_usd);
    if (!isnan(p->co2e_kg_per_step))
        sc_json_put_double(j, "co2e_kg",
                           p->co2e_kg_per_step / p->energy_j_per_step *
                               p->whole_run.energy_j);
    if (!isnan(p->whole_run.published.days)) published_run(p, j);
    if (p->whole_run.failing) failing_run(p, j);
}

void sc_report_prediction_json(const sc_job *job, const sc_prediction *p,
                               double measured, const sc_report_origin *o,
                               sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.result/1");
    sc_json_put_string(j, "engine",
                       job->engine == SC_ENGINE_EVENT ? "event" : "fast");
    sc_json_put_string(j, "fidelity", sc_fidelity_names[job->fidelity]);
    config(job, &p->run, o, j);
    totals(p, measured, j);
    memory(p, j);
    sc_json_key(j, "time_breakdown_s");
    sc_json_begin(j, '{');
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        sc_json_put_double(j, sc_cat_names[c], p->time_breakdown_s[c]);
    sc_json_end(j, '}');
    sc_json_put_double(j, "energy_j_per_step", p->energy_j_per_step);
    sc_json_put_double(j, "cost_usd_per_step", p->cost_usd_per_step);
    if (!isnan(p->power.total)) power(&p->power, j);
    whole_run(p, j);
    suggestions(p, j);
    if (p->by_mesh) report_net_json(p, j);
    sc_json_put_strings(j, "assumptions", p->assumptions, p->n_assumptions);
    sc_json_put_strings(j, "warnings", p->warnings, p->n_warnings);
    provenance(p, o, j);
    sc_json_end(j, '}');
}
