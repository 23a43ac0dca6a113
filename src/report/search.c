/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - prints the result of a search for a person. */
#include "report/search.h"

#include "report/report_difference.h"
#include "report/report_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *report_search_options_of(const sc_report_search *r,
                                     const sc_search_jobs *jobs,
                                     const sc_search_row *row, sc_arena *a)
{
    sc_job job;
    sc_search_row_job(jobs, row, &job);
    return sc_job_options(r->asked, &job, a);
}

const char *report_search_options(const sc_report_search *r,
                                  const sc_search_row *row, sc_arena *a)
{
    sc_job job;
    const sc_search_machines *m = r->machines;
    sc_search_row_job(r->jobs, row, &job);
    return sc_job_options(m ? &m->chosen->job : r->asked, &job, a);
}

static void outcome_of(const sc_report_search *r, uint32_t i, sc_outcome *out)
{
    sc_job job;
    sc_search_row_job(r->jobs, &r->found->best[i], &job);
    sc_outcome_of("", &job, &r->best[i], out);
}

double report_search_usd(const sc_prediction *p)
{
    return isnan(p->whole_run.days) ? p->cost_usd_per_step
                                    : p->whole_run.cost_usd;
}

double report_search_gap(const sc_search_result *r)
{
    if (r->left == 0) return 0;
    if (r->n_best == 0 || r->bound <= 0) return NAN;
    return fmax(0, r->best[0].score / r->bound - 1);
}

const char *report_search_why(const sc_report_search *r, uint32_t i,
                              sc_arena *a, sc_err *err)
{
    sc_outcome this, next;
    sc_difference d;
    if (i + 1 >= r->found->n_best) return "";
    outcome_of(r, i + 1, &next);
    outcome_of(r, i, &this);
    if (sc_difference_of(&next, &this, a, &d, err) != SC_OK) return NULL;
    sc_text t;
    sc_text_init(&t);
    sc_report_difference_line(&d, &t);
    const char *text = t.failed ? NULL : sc_strdup(a, t.buf);
    sc_text_free(&t);
    if (!text) sc_error_nomem(err);
    return text;
}

/* ---- the space ------------------------------------------------------------ */

static void values_of(const sc_search_option *o, sc_text *out)
{
    for (uint32_t k = 0; k < o->axis.n; k++) {
        char buf[64];
        sc_search_option_print(o, k, buf, sizeof buf);
        sc_text_add(out, "%s%s", k ? " " : "", buf);
    }
}

void sc_report_search_space(const sc_search_jobs *jobs, sc_text *out)
{
    sc_text_add(out, "%llu points\n\naxes\n",
                (unsigned long long)sc_search_space_points(jobs->space));
    for (uint32_t i = 0; i < jobs->n; i++) {
        sc_text t;
        sc_text_init(&t);
        values_of(&jobs->option[i], &t);
        report_line(out, jobs->option[i].key->name, "%.900s", t.buf);
        sc_text_free(&t);
    }
    sc_text_add(out, "\nrules\n");
    for (uint32_t i = 0; i < jobs->n_rules; i++) {
        const char *why = jobs->rule[i].why;
        bool said = false;
        for (uint32_t k = 0; k < i && !said; k++)
            said = strcmp(why, jobs->rule[k].why) == 0;
        if (!said) sc_text_add(out, "  %s\n", why);
    }
}

/* ---- rows ----------------------------------------------------------------- */

static void summary(const sc_report_search *r, sc_text *out)
{
    const sc_search_result *f = r->found;
    double gap = report_search_gap(f);
    report_line(out, "points", "%llu: %llu evaluated, %llu excluded by bounds",
                (unsigned long long)f->points, (unsigned long long)f->evaluated,
                (unsigned long long)f->pruned);
    for (uint32_t i = 0; i < f->n_reasons; i++)
        report_line(out, i ? "" : "not possible", "%llu by %s",
                    (unsigned long long)f->reason[i].n, f->reason[i].name);
    if (f->left)
        report_line(out, "not reached", "%llu points",
                    (unsigned long long)f->left);
    if (r->goal != SC_GOAL_STEP_TIME)
        report_line(out, "objective", "%s", sc_search_goal_names[r->goal]);
    if (r->relief)
        report_line(out, "host memory", "with %s %s", r->relief,
                    r->relieved ? "something fits" : "nothing fits either");
    if (f->left == 0)
        report_line(out, "optimal", "proved");
    else if (!isnan(gap))
        report_line(out, "optimal",
                    "no other point is more than %.3g %% better", 100 * gap);
    else
        report_line(out, "optimal", "not known: give a larger --budget");
}

/* The whole run, and what is made small. */
static void run_of(const sc_report_search *r, uint32_t i, sc_text *out)
{
    const sc_prediction *p = &r->best[i];
    char v[40];
    bool energy = r->goal == SC_GOAL_ENERGY, run = !isnan(p->whole_run.days);
    double usd = report_search_usd(p);
    report_row row = report_row_begin(run ? "whole run" : "a step", out);
    if (run) report_row_add(&row, "  ", report_days(p->whole_run.days).s);
    if (!isnan(usd)) report_row_add(&row, "  ", report_usd(usd).s);
    sc_unit_print_short(run ? p->whole_run.energy_j : p->energy_j_per_step,
                        SC_U_JOULE, v, sizeof v);
    if (energy) report_row_add(&row, "  ", v);
    snprintf(
        v, sizeof v, "%s tokens per USD",
        report_number(sc_search_goal_value(r->goal, r->found->best[i].score))
            .s);
    if (r->goal == SC_GOAL_TOKENS_PER_USD) report_row_add(&row, "  ", v);
    report_row_end(&row);
}

/* What to change first if a row runs out of memory. */
static void smaller(const sc_report_search *r, uint32_t i, sc_text *out)
{
    if (i >= r->n_smaller || r->smaller[i].n == 0) return;
    const sc_suggestion *s = &r->smaller[i].change[0];
    report_line(out, "out of memory?", "%s: %+.1f %% time, %s", s->change,
                100 * (s->step_time_s / r->best[i].step_time_s - 1),
                report_bytes((uint64_t)s->peak).s);
}

static sc_status best(const sc_report_search *r, sc_arena *a, sc_text *out,
                      sc_err *err)
{
    const sc_search_result *f = r->found;
    for (uint32_t i = 0; i < f->n_best; i++) {
        const sc_search_row *row = &f->best[i];
        const sc_prediction *p = &r->best[i];
        const char *options = report_search_options(r, row, a);
        const char *why = report_search_why(r, i, a, err);
        if (!options || !why) return sc_error_nomem(err);
        sc_text_add(out, "\n%2u  %s   %s of %s, %.0f %% free   MFU %.1f %%\n",
                    i + 1, report_seconds(p->step_time_s).s,
                    report_bytes((uint64_t)row->point.peak).s,
                    report_bytes((uint64_t)p->memory_capacity_bytes).s,
                    100 * (1 - row->point.full), 100 * p->mfu);
        report_line(out, "options", "%s", options);
        if (!isnan(p->whole_run.days) || !isnan(p->cost_usd_per_step) ||
            r->goal != SC_GOAL_STEP_TIME)
            run_of(r, i, out);
        smaller(r, i, out);
        report_search_sure_row(r, i, out);
        if (*why) report_line(out, "than the next", "%s", why);
    }
    return SC_OK;
}

/* What each choice costs: the best of every value over the best of all. */
static void per_axis(const sc_report_search *r, sc_text *out)
{
    static const char *const names[] = {"step", "cost", "energy",
                                        "price of a token", "days"};
    const sc_search_result *f = r->found;
    double least = f->n_best ? f->best[0].score : 0;
    if (f->n_best)
        sc_text_add(out, "\nbest %s of each value, over the best of all\n",
                    names[r->goal]);
    for (uint32_t i = 0; i < r->jobs->n && f->n_best; i++) {
        const sc_search_option *o = &r->jobs->option[i];
        sc_text t;
        if (o->axis.n < 2) continue;
        sc_text_init(&t);
        for (uint32_t k = 0; k < o->axis.n; k++) {
            char buf[64];
            double s = f->per_axis[i][k].score;
            if (isinf(s)) continue;
            sc_search_option_print(o, k, buf, sizeof buf);
            sc_text_add(&t, "%s%s:%.3f", t.len ? "  " : "", buf, s / least);
        }
        report_line(out, o->key->name, "%.900s", t.buf);
        sc_text_free(&t);
    }
}

/* What a name of the job is replaced by, unless it was said before. */
static void replaced(const char *why, const char **said, sc_text *out)
{
    if (!why || (*said && strcmp(*said, why) == 0)) return;
    report_line(out, "assumed", "%s", why);
    *said = why;
}

/* Names that are not known, of the best rows and of machines. */
static void unknown_names(const sc_report_search *r, sc_text *out)
{
    const sc_search_machines *m = r->machines;
    const char *said = NULL;
    size_t before = out->len;
    for (uint32_t i = 0; m && i < m->n_best; i++)
        replaced(m->best[i].best->run.hw->nearest, &said, out);
    if (r->found->n_best && !m)
        replaced(r->best[0].run.hw->nearest, &said, out);
    if (r->found->n_best) replaced(r->best[0].run.sw->nearest, &said, out);
    if (out->len > before) sc_text_add(out, "\n");
}

sc_status sc_report_search_text(const sc_report_search *r, sc_arena *a,
                                sc_text *out, sc_err *err)
{
    const sc_search_result *f = r->found;
    if (f->n_best) {
        const sc_run *run = &r->best[0].run;
        sc_text_add(out, "%s on %s: %u devices, %s\n\n", run->model->name,
                    run->hw->name, run->hw->n_devices, run->sw->name);
        unknown_names(r, out);
    }
    if (r->sizes) report_search_sizes_text(r, out);
    if (r->machines) report_search_machines_text(r, out);
    if (!r->jobs) return SC_OK;
    summary(r, out);
    SC_TRY(best(r, a, out, err));
    report_search_settle(r, out);
    SC_TRY(report_search_learned(r, a, out, err));
    SC_TRY(report_search_front_text(r, a, out, err));
    per_axis(r, out);
    report_search_tornado_text(r, out);
    return SC_OK;
}
