/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - a prediction as text. */
#include <stepcast/report_predict.h>

#include <math.h>
#include <stdio.h>

#define GIB 1073741824.0

static void head(const sc_prediction *p, sc_text *out)
{
    const sc_run *r = &p->run;
    sc_text_add(out, "%s  %.4g B params on %u x %s (%s)\n", r->model->name,
                (double)r->model->params / 1e9, r->hw->n_devices,
                r->hw->device->name, r->hw->name);
    sc_text_add(out, "TP%u PP%u DP%u%s%s", r->size[SC_AX_TP], r->size[SC_AX_PP],
                r->size[SC_AX_DP], r->sp && r->size[SC_AX_TP] > 1 ? " SP" : "",
                r->vpp > 1 ? " interleaved" : "");
    if (r->zero) sc_text_add(out, " ZeRO-%d", r->zero);
    sc_text_add(out,
                "  %s  seq %llu  global batch %llu  micro-batch %llu x %u"
                "  recompute %s  %s\n\n",
                sc_precision_names[r->precision], (unsigned long long)r->seq,
                (unsigned long long)r->gbs, (unsigned long long)r->mbs, r->ga,
                sc_recompute_names[r->recompute], r->sw->name);
}

static const sc_stage_memory *fullest(const sc_prediction *p, uint32_t *stage)
{
    const sc_stage_memory *m = &p->memory[0];
    *stage = 0;
    for (uint32_t i = 1; i < p->n_stages; i++)
        if (p->memory[i].peak > m->peak) {
            m = &p->memory[i];
            *stage = i;
        }
    return m;
}

static void memory(const sc_prediction *p, sc_text *out)
{
    uint32_t stage;
    const sc_stage_memory *m = fullest(p, &stage);
    sc_text_add(out,
                "  fits?          %-9s %.1f of %.1f GiB on stage %u  (weights "
                "%.1f  gradients %.1f  optimizer %.1f\n"
                "                           activations %.1f  communication "
                "%.1f  other %.1f  reserve %.1f)\n",
                p->fits ? "yes" : "NO", m->peak / GIB,
                p->memory_capacity_bytes / GIB, stage, m->weights / GIB,
                m->gradients / GIB, m->optimizer / GIB, m->activations / GIB,
                m->communication / GIB, m->other / GIB,
                (m->peak - m->allocated) / GIB);
}

static void times(const sc_prediction *p, double measured, sc_text *out)
{
    char t[32], lo[32], hi[32], m[32];
    sc_unit_print_short(p->step_time_s, SC_U_TIME, t, sizeof t);
    sc_unit_print_short(p->step_time_low_s, SC_U_TIME, lo, sizeof lo);
    sc_unit_print_short(p->step_time_high_s, SC_U_TIME, hi, sizeof hi);
    sc_text_add(out,
                "  step time      %-9s 80 %% of comparable runs: %s ... %s\n",
                t, lo, hi);
    if (!isnan(measured)) {
        sc_unit_print_short(measured, SC_U_TIME, m, sizeof m);
        sc_text_add(out, "  measured       %-9s predicted is %+.1f %%\n", m,
                    100 * (p->step_time_s / measured - 1));
    }
    sc_text_add(out, "  throughput     %.4g tokens/s per device, %.4g in all\n",
                p->tokens_per_s_per_device, p->tokens_per_s);
    sc_text_add(out,
                "  model FLOP/s   %.1f TFLOP/s per device, MFU %.1f %%, HFU "
                "%.1f %%\n",
                p->model_tflops_per_device, 100 * p->mfu, 100 * p->hfu);
}

static void breakdown(const sc_prediction *p, sc_text *out)
{
    sc_text_add(out, "  time goes to  ");
    for (uint32_t c = 0; c < SC_N_CATS; c++) {
        double share = 100 * p->time_breakdown_s[c] / p->step_time_s;
        if (share >= 0.05)
            sc_text_add(out, " %s %.1f %% ", sc_cat_names[c], share);
    }
    sc_text_add(out, "\n");
}

static void money(const sc_prediction *p, sc_text *out)
{
    char e[32];
    if (!isnan(p->energy_j_per_step)) {
        sc_unit_print_short(p->energy_j_per_step, SC_U_JOULE, e, sizeof e);
        sc_text_add(out,
                    "  energy         %s per step (power limits, not "
                    "measured)\n",
                    e);
    }
    if (!isnan(p->cost_usd_per_step))
        sc_text_add(out, "  cost           %.4g USD per step\n",
                    p->cost_usd_per_step);
}

static void list(const char *title, const char *const *text, uint32_t n,
                 sc_text *out)
{
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(out, "  %-14s %s\n", i ? "" : title, text[i]);
}

void sc_report_prediction(const sc_job *job, const sc_prediction *p,
                          double measured, sc_text *out)
{
    head(p, out);
    memory(p, out);
    times(p, measured, out);
    breakdown(p, out);
    money(p, out);
    for (uint32_t i = 0; i < p->n_suggestions; i++) {
        const sc_suggestion *s = &p->suggestion[i];
        sc_text_add(out, "  %-14s %-20s %+.1f %% time, %.1f GiB\n",
                    i ? "" : "better", s->change,
                    100 * (s->step_time_s / p->step_time_s - 1), s->peak / GIB);
    }
    list("assumed", p->assumptions, p->n_assumptions, out);
    list("warning", p->warnings, p->n_warnings, out);
    if (!isnan(p->other_engine_s))
        sc_text_add(out, "  engines        %s differs by %+.2f %%\n",
                    job->engine == SC_ENGINE_EVENT ? "fast" : "event",
                    100 * (p->other_engine_s / p->step_time_s - 1));
}
