/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - prints the result of a search for a person. */
#include "report/search.h"

#include "report/report_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *report_search_options(const sc_report_search *r,
                                  const sc_search_row *row, sc_arena *a)
{
    sc_job job;
    sc_search_row_job(r->jobs, row, &job);
    return sc_job_options(r->asked, &job, a);
}

double report_search_gap(const sc_search_result *r)
{
    if (r->left == 0) return 0;
    if (r->n_best == 0 || r->bound_s <= 0) return NAN;
    return fmax(0, r->best[0].point.step_s / r->bound_s - 1);
}

enum { TERMS = 3 };

const char *report_search_why(const sc_prediction *p, const sc_prediction *q,
                              sc_arena *a)
{
    double less[SC_N_CATS];
    const char *text = "";
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        less[c] = q->time_breakdown_s[c] - p->time_breakdown_s[c];
    for (uint32_t k = 0; k < TERMS && text; k++) {
        uint32_t most = 0;
        for (uint32_t c = 1; c < SC_N_CATS; c++)
            if (fabs(less[c]) > fabs(less[most])) most = c;
        if (fabs(less[most]) < 1e-4 * p->step_time_s) break;
        text = sc_sprintf(a, "%s%s%s %s %s", text, *text ? ", " : "",
                          report_seconds(fabs(less[most])).s,
                          less[most] > 0 ? "less" : "more",
                          report_category((sc_cat)most).s);
        less[most] = 0;
    }
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
    if (f->left == 0)
        report_line(out, "optimal", "proved");
    else if (!isnan(gap))
        report_line(out, "optimal",
                    "no other point is more than %.3g %% faster", 100 * gap);
    else
        report_line(out, "optimal", "not known: give a larger --budget");
}

static sc_status best(const sc_report_search *r, sc_arena *a, sc_text *out,
                      sc_err *err)
{
    const sc_search_result *f = r->found;
    for (uint32_t i = 0; i < f->n_best; i++) {
        const sc_search_row *row = &f->best[i];
        const sc_prediction *p = &r->best[i];
        const char *options = report_search_options(r, row, a), *why = "";
        if (i + 1 < f->n_best) why = report_search_why(p, &r->best[i + 1], a);
        if (!options || !why) return sc_error_nomem(err);
        sc_text_add(out, "\n%2u  %s   %s of %s (%.0f %%)   MFU %.1f %%\n",
                    i + 1, report_seconds(p->step_time_s).s,
                    report_bytes((uint64_t)row->point.peak).s,
                    report_bytes((uint64_t)p->memory_capacity_bytes).s,
                    100 * row->point.full, 100 * p->mfu);
        report_line(out, "options", "%s", options);
        if (*why) report_line(out, "than the next", "%s", why);
    }
    return SC_OK;
}

/* Rows of the front in the text; --json has all. */
enum { FRONT_ROWS = 8 };

static sc_status front(const sc_report_search *r, sc_arena *a, sc_text *out,
                       sc_err *err)
{
    const sc_search_result *f = r->found;
    uint32_t n = f->n_front < FRONT_ROWS ? f->n_front : FRONT_ROWS;
    if (n) sc_text_add(out, "\nless memory for more time\n");
    for (uint32_t i = 0; i < n; i++) {
        const sc_search_row *row = &f->front[i];
        const char *options = report_search_options(r, row, a);
        if (!options) return sc_error_nomem(err);
        char title[32];
        snprintf(title, sizeof title, "%s",
                 report_bytes((uint64_t)row->point.peak).s);
        report_line(out, title, "%s: %s", report_seconds(row->point.step_s).s,
                    options);
    }
    if (n < f->n_front)
        report_line(out, "", "%u more with --json", f->n_front - n);
    return SC_OK;
}

/* What each choice costs: the best step of every value over the best of all. */
static void per_axis(const sc_report_search *r, sc_text *out)
{
    const sc_search_result *f = r->found;
    double least = f->n_best ? f->best[0].point.step_s : 0;
    if (f->n_best)
        sc_text_add(out, "\nbest step of each value, over the best of all\n");
    for (uint32_t i = 0; i < r->jobs->n && f->n_best; i++) {
        const sc_search_option *o = &r->jobs->option[i];
        sc_text t;
        if (o->axis.n < 2) continue;
        sc_text_init(&t);
        for (uint32_t k = 0; k < o->axis.n; k++) {
            char buf[64];
            double s = f->per_axis[i][k].point.step_s;
            if (isinf(s)) continue;
            sc_search_option_print(o, k, buf, sizeof buf);
            sc_text_add(&t, "%s%s:%.3f", t.len ? "  " : "", buf, s / least);
        }
        report_line(out, o->key->name, "%.900s", t.buf);
        sc_text_free(&t);
    }
}

sc_status sc_report_search_text(const sc_report_search *r, sc_arena *a,
                                sc_text *out, sc_err *err)
{
    const sc_search_result *f = r->found;
    if (f->n_best) {
        const sc_run *run = &r->best[0].run;
        sc_text_add(out, "%s on %s: %u devices, %s\n\n", run->model->name,
                    run->hw->name, run->hw->n_devices, run->sw->name);
    }
    summary(r, out);
    SC_TRY(best(r, a, out, err));
    SC_TRY(front(r, a, out, err));
    per_axis(r, out);
    return SC_OK;
}
