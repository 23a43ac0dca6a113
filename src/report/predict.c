/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - prints a prediction as text. */
#include "report/net.h"
#include "report/report_difference.h"
#include "report/report_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void head(const sc_prediction *p, sc_text *out)
{
    const sc_run *r = &p->run;
    double params = (double)r->model->params;
    bool small = params < 999.5e6;
    sc_text_add(out, "%s, %.3g %s parameters, on %u x %s (%s)\n",
                r->model->name, params / (small ? 1e6 : 1e9),
                small ? "million" : "billion", r->hw->n_devices,
                r->hw->device->name, r->hw->name);
    if (p->by_mesh) {
        report_net_head(p, out);
        return;
    }
    sc_text_add(out, "TP%u PP%u DP%u", r->size[SC_AX_TP], r->size[SC_AX_PP],
                sc_run_dp(r));
    if (sc_run_ep(r) > 1) sc_text_add(out, " EP%u", sc_run_ep(r));
    if (r->size[SC_AX_CP] > 1) sc_text_add(out, " CP%u", r->size[SC_AX_CP]);
    if (r->size[SC_AX_CP] > 1 && r->sw->cp_comm != SC_CP_RING)
        sc_text_add(out, " (%s)", sc_cp_comm_names[r->sw->cp_comm]);
    if (r->vpp > 1) sc_text_add(out, " VP%u", r->vpp);
    if (r->sp && r->size[SC_AX_TP] > 1) sc_text_add(out, " SP");
    if (r->zero) sc_text_add(out, " ZeRO-%d", r->zero);
    if (r->size[SC_AX_REP] > 1)
        sc_text_add(out, " HSDP%u", sc_run_dp(r) / r->size[SC_AX_REP]);
    if (r->compress.kind != SC_GRAD_PLAIN) {
        char format[32];
        sc_compress_print(&r->compress, format, sizeof format);
        sc_text_add(out, "  gradients in %s", format);
    }
    if (r->size[SC_AX_PP] > 1)
        sc_text_add(out, "  %s", sc_schedule_names[r->schedule]);
    sc_text_add(out, "  %s  recompute %s  %s%s\n", sc_recipe_names[r->recipe],
                sc_recompute_names[r->recompute], r->sw->name,
                r->forward_only ? "  forward only" : "");
    sc_text_add(out,
                "sequence %llu  global batch %llu = %u micro-batch%s of %llu "
                "x DP%u\n\n",
                (unsigned long long)r->seq, (unsigned long long)r->gbs, r->ga,
                r->ga == 1 ? "" : "es", (unsigned long long)r->mbs,
                sc_run_dp(r));
}

static const sc_stage_memory *fullest(const sc_prediction *p, uint32_t *stage)
{
    const sc_stage_memory *m = &p->memory[0];
    *stage = 0;
    for (uint32_t i = 1; i < p->n_stages; i++)
        if (p->memory[i].peak * m->capacity > m->peak * p->memory[i].capacity) {
            m = &p->memory[i];
            *stage = i;
        }
    return m;
}

void sc_report_memory(const sc_prediction *p, sc_text *out)
{
    uint32_t stage;
    double part[SC_N_PARTS];
    sc_stage_parts(fullest(p, &stage), part);
    if (!p->by_mesh) {
        sc_text_add(out, "memory of stage %u at its peak\n", stage);
        for (int i = 0; i < (int)SC_N_PARTS; i++)
            sc_text_add(out, "  %-22s %8.2f GiB\n", sc_part_names[i],
                        part[i] / SC_GIB);
    }
    sc_report_graph(p, out);
}

static void memory(const sc_prediction *p, sc_text *out)
{
    uint32_t stage;
    const sc_stage_memory *m = fullest(p, &stage);
    double part[SC_N_PARTS];
    sc_stage_parts(m, part);
    char item[64], tight[64] = "";
    snprintf(item, sizeof item, " on stage %u", stage);
    double likely = 100 * p->fits_probability;
    if (likely >= 5 && likely < 90)
        snprintf(tight, sizeof tight, "; tight: %.0f %% likely to fit", likely);
    report_value(out, "fits?", p->fits ? "yes" : "NO",
                 "peak %.1f of %.1f GiB%s%s", m->peak / SC_GIB,
                 m->capacity / SC_GIB, p->n_stages > 1 ? item : "", tight);
    if (m->expanded > 0) {
        snprintf(item, sizeof item, "%.1f GiB", m->expanded / SC_GIB);
        report_value(out, "expanded", item, "of %.1f GiB beside it",
                     m->expanded_capacity / SC_GIB);
    }
    report_row r = report_row_begin("memory (GiB)", out);
    for (int i = 0; i < (int)SC_N_PARTS; i++) {
        snprintf(item, sizeof item, "%s %.1f", sc_part_names[i],
                 part[i] / SC_GIB);
        if (part[i] >= 0.05 * SC_GIB) report_row_add(&r, "  ", item);
    }
    report_row_end(&r);
}

static void times(const sc_prediction *p, double measured, sc_text *out)
{
    char t[32], lo[32], hi[32];
    double step = p->step_time_s;
    sc_unit_print_like(p->step_time_low_s, step, SC_U_TIME, lo, sizeof lo);
    sc_unit_print_like(p->step_time_high_s, step, SC_U_TIME, hi, sizeof hi);
    if (isfinite(p->step_time_low_s))
        report_value(out, "step time", report_seconds(step).s,
                     "80 %% interval %s to %s", lo, hi);
    else
        report_value(out, "step time", report_seconds(step).s, "%s", "");
    if (!isnan(measured)) {
        sc_unit_print_like(measured, step, SC_U_TIME, t, sizeof t);
        report_value(out, "measured", t, "the prediction differs by %+.1f %%",
                     100 * (step / measured - 1));
    }
    bool tokens = p->run.seq > 1;
    double all = tokens ? p->tokens_per_s : p->samples_per_s;
    snprintf(t, sizeof t, "%s", report_number(all / p->run.hw->n_devices).s);
    snprintf(lo, sizeof lo, "%s", report_number(all).s);
    report_value(out, "throughput", t, "%s/s per device, %s in all",
                 tokens ? "tokens" : "samples", lo);
    snprintf(t, sizeof t, "%.1f", p->model_tflops_per_device);
    report_value(out, "model FLOP/s", t,
                 "TFLOP/s per device, MFU %.1f %%, HFU %.1f %%", 100 * p->mfu,
                 100 * p->hfu);
}

static void breakdown(const sc_prediction *p, sc_text *out)
{
    char item[64];
    report_row r = report_row_begin("time goes to", out);
    for (uint32_t c = 0; c < SC_N_CATS; c++) {
        double share = 100 * p->time_breakdown_s[c] / p->step_time_s;
        snprintf(item, sizeof item, "%s %.1f %%", report_category((sc_cat)c).s,
                 share);
        if (share >= 0.05) report_row_add(&r, "  ", item);
    }
    report_row_end(&r);
}

/* The average power of the machine, and of its parts as fractions. */
static void power(const sc_power *w, sc_text *out)
{
    char v[32], item[64];

    const struct {
        const char *what;
        double watts;
    } part[] = {{"devices", w->devices},
                {"hosts", w->hosts},
                {"adapters", w->adapters},
                {"switches", w->switches},
                {"links", w->links}};

    if (isnan(w->total)) return;
    sc_unit_print_short(w->total, SC_U_WATT, v, sizeof v);
    if (w->pue > 1)
        report_value(out, "power", v, "on average, with PUE %.3g", w->pue);
    else
        report_value(out, "power", v, "on average");
    report_row r = report_row_begin("", out);
    for (size_t i = 0; i < SC_COUNT(part); i++) {
        double percent = 100 * w->pue * part[i].watts / w->total;
        snprintf(item, sizeof item, "%s %.1f %%", part[i].what, percent);
        if (percent >= 0.05) report_row_add(&r, "  ", item);
    }
    report_row_end(&r);
}

static void money(const sc_prediction *p, sc_text *out)
{
    char v[32];
    if (!isnan(p->energy_j_per_step)) {
        sc_unit_print_short(p->energy_j_per_step, SC_U_JOULE, v, sizeof v);
        report_value(out, "energy", v, "per step, estimated from power limits");
    }
    power(&p->power, out);
    if (!isnan(p->cost_usd_per_step)) {
        snprintf(v, sizeof v, "%.4g USD", p->cost_usd_per_step);
        report_value(out, "cost", v, "per step");
    }
    if (!isnan(p->co2e_kg_per_step)) {
        snprintf(v, sizeof v, "%.4g kg", p->co2e_kg_per_step);
        report_value(out, "CO2e", v, "per step");
    }
}

static void purchase(const sc_purchase *x, sc_text *out)
{
    char item[80];

    const struct {
        const char *what;
        double n, usd;
    } part[] = {{"hosts", x->parts.hosts, x->hosts_usd},
                {"switches", x->parts.switches, x->switches_usd},
                {"links", x->parts.links, x->links_usd},
                {"racks", x->parts.hosts, x->racks_usd},
                {"GB expanded memory", x->expanded_gb, x->expanded_usd}};

    report_value(out, "purchase", report_number(x->usd).s,
                 "USD, written off in %.3g years (%s)",
                 x->prices->life_s / (365.25 * 86400), x->prices->title);
    report_row r = report_row_begin("", out);
    for (size_t i = 0; i < SC_COUNT(part); i++) {
        snprintf(item, sizeof item, "%.0f %s %.1f %%", part[i].n, part[i].what,
                 100 * part[i].usd / x->usd);
        if (part[i].usd > 0) report_row_add(&r, "  ", item);
    }
    report_row_end(&r);
}

/* 1.29, 12.9, 129, 1294 */
static const char *plain(double v, char buf[32])
{
    snprintf(buf, 32, v < 99.95 ? "%.3g" : "%.0f", v);
    return buf;
}

/* Tokens for a dollar and a joule, where there is a price. */
static void per(const sc_prediction *p, double tokens, report_row *r)
{
    char item[80];
    if (!(p->whole_run.cost_usd > 0)) return;
    snprintf(item, sizeof item, "%s tokens per USD",
             report_number(tokens / p->whole_run.cost_usd).s);
    report_row_add(r, "  ", item);
    snprintf(item, sizeof item, "%.3g tokens per J",
             tokens / p->whole_run.energy_j);
    if (p->whole_run.energy_j > 0) report_row_add(r, "  ", item);
}

/* Prints where the time of a run with failures goes. */
static void failures(const sc_failing_run *x, sc_text *out)
{
    const sc_goodput *g = &x->expected;
    char value[32], item[80];
    snprintf(value, sizeof value, "%.1f %%", 100 * x->goodput);
    report_value(out, "goodput", value,
                 "of the time trains; without failures %s days",
                 plain(x->days_without, item));
    bool any = x->goodput < 0.9995;
    report_row r = {out, 0};
    if (any) r = report_row_begin("", out);
    for (int i = SC_GP_TRAINING + 1; any && i < (int)SC_N_GOODPUT_PARTS; i++) {
        double part = 100 * g->part_s[i] / g->total_s;
        snprintf(item, sizeof item, "%s %.1f %%", sc_goodput_names[i], part);
        if (part >= 0.05) report_row_add(&r, "  ", item);
    }
    if (any) report_row_end(&r);
    double every = g->total_s / fmax(1, g->failures);
    if (g->failures >= 0.05)
        report_line(out, "failures", "%s, one every %s (%s)",
                    report_number(g->failures).s, report_seconds(every).s,
                    x->table->title);
    if (isfinite(x->low_s))
        report_line(out, "simulated",
                    "80 %% of %u runs with this step take %.3g to %.3g days",
                    x->simulated, x->low_s / 86400, x->high_s / 86400);
}

/* Prints what the run takes at the level of published runs. */
static void published(const sc_prediction *p, sc_text *out)
{
    const sc_run_level *l = &p->run.cost->run_level;
    char days[32], low[32], high[32], item[64];
    if (isnan(p->whole_run.published.days)) return;
    report_line(out, "as published",
                "%s days, %.2f times as long: the median of %u published runs, "
                "80 %% interval %s to %s days",
                plain(p->whole_run.published.days, days), l->factor, l->rows,
                plain(p->whole_run.published.days_low, low),
                plain(p->whole_run.published.days_high, high));
    report_row r = report_row_begin("", out);
    snprintf(item, sizeof item, "%s device-hours",
             report_number(p->whole_run.published.device_hours).s);
    report_row_add(&r, "  ", item);
    snprintf(item, sizeof item, "%s MWh",
             plain(p->whole_run.published.energy_j / 3.6e9, low));
    if (!isnan(p->whole_run.published.energy_j)) report_row_add(&r, "  ", item);
    snprintf(item, sizeof item, "%s USD",
             report_number(p->whole_run.published.cost_usd).s);
    if (!isnan(p->whole_run.published.cost_usd)) report_row_add(&r, "  ", item);
    report_row_end(&r);
}

/* Prints the sums over all steps of a run. */
static void whole_run(const sc_job *job, const sc_prediction *p, sc_text *out)
{
    char tokens[32], steps[32], hours[32], low[32], item[64];
    if (isnan(p->whole_run.days)) return;
    snprintf(tokens, sizeof tokens, "%s", report_number((double)job->tokens).s);
    snprintf(steps, sizeof steps, "%s", report_number(p->whole_run.steps).s);
    sc_text_add(out, "  whole run      %s days for %s tokens in %s steps",
                plain(p->whole_run.days, hours), tokens, steps);
    if (isfinite(p->whole_run.days_low))
        sc_text_add(out, ", 80 %% interval %s to %s days",
                    plain(p->whole_run.days_low, low),
                    plain(p->whole_run.days_high, hours));
    sc_text_add(out, "\n");
    report_row r = report_row_begin("", out);
    snprintf(hours, sizeof hours, "%s",
             report_number(p->whole_run.device_hours).s);
    snprintf(item, sizeof item, "%s device-hours", hours);
    report_row_add(&r, "  ", item);
    snprintf(item, sizeof item, "%s MWh",
             plain(p->whole_run.energy_j / 3.6e9, hours));
    if (!isnan(p->whole_run.energy_j)) report_row_add(&r, "  ", item);
    snprintf(steps, sizeof steps, "%s", report_number(p->whole_run.cost_usd).s);
    snprintf(item, sizeof item, "%s USD", steps);
    if (!isnan(p->whole_run.cost_usd)) report_row_add(&r, "  ", item);
    double co2e = p->co2e_kg_per_step / p->energy_j_per_step *
                  p->whole_run.energy_j / 1000;
    snprintf(item, sizeof item, "%s t CO2e", plain(co2e, hours));
    if (!isnan(co2e)) report_row_add(&r, "  ", item);
    per(p, (double)job->tokens, &r);
    report_row_end(&r);
    published(p, out);
    if (p->whole_run.failing) failures(p->whole_run.failing, out);
}

static void suggestions(const sc_prediction *p, sc_text *out)
{
    int width = 14;
    for (uint32_t i = 0; i < p->n_suggestions; i++) {
        int n = (int)strlen(p->suggestion[i].change);
        if (n > width) width = n;
    }
    for (uint32_t i = 0; i < p->n_suggestions; i++) {
        const sc_suggestion *s = &p->suggestion[i];
        report_row r = report_row_begin(i         ? ""
                                        : p->fits ? "faster with"
                                                  : "smaller with",
                                        out);
        sc_text_add(out, "%-*s  %+6.1f %% time, %.1f GiB", width, s->change,
                    100 * (s->step_time_s / p->step_time_s - 1),
                    s->peak / SC_GIB);
        report_row_end(&r);
    }
}

static void engines(const sc_job *job, const sc_prediction *p, sc_text *out)
{
    const char *other = job->engine == SC_ENGINE_EVENT ? "fast" : "event";
    if (isnan(p->other_engine_s)) return;
    double off = 100 * (p->other_engine_s / p->step_time_s - 1);
    if (fabs(off) < 0.01)
        report_line(out, "cross-check",
                    "the %s engine differs by less than 0.01 %%", other);
    else
        report_line(out, "cross-check", "the %s engine differs by %+.2f %%",
                    other, off);
}

static void fidelity(const sc_job *job, const sc_prediction *p, sc_text *out)
{
    if (isnan(p->analytic_s)) return;
    report_line(out, "fidelity",
                "%s: communication is simulated message by message; with "
                "closed formulas the step takes %s",
                sc_fidelity_names[job->fidelity],
                report_seconds(p->analytic_s).s);
}

void sc_report_prediction(const sc_job *job, const sc_prediction *p,
                          double measured, sc_text *out)
{
    head(p, out);
    memory(p, out);
    times(p, measured, out);
    breakdown(p, out);
    money(p, out);
    if (p->purchase) purchase(p->purchase, out);
    whole_run(job, p, out);
    suggestions(p, out);
    report_row_list("assumed", p->assumptions, p->n_assumptions, out);
    report_row_list("warning", p->warnings, p->n_warnings, out);
    engines(job, p, out);
    fidelity(job, p, out);
}
