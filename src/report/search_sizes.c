/* SPDX-License-Identifier: Apache-2.0 */
/* search_sizes.c - time and money over numbers of devices. */
#include "report/report_plot.h"
#include "report/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a whole run if there is one, else of a step. */
static double time_of(const sc_prediction *p)
{
    return isnan(p->whole_run.days) ? p->step_time_s : p->whole_run.days;
}

static report_word time_text(const sc_prediction *p, double v)
{
    return isnan(p->whole_run.days) ? report_seconds(v) : report_days(v);
}

static void row(const sc_report_search *r, const sc_search_machine *s,
                sc_text *out)
{
    bool limited = r->limits.until_s > 0 || r->limits.usd > 0;
    const sc_prediction *p = s->best;
    sc_text_add(out, "  %7u  ", s->in.hw->n_devices);
    if (!p) {
        sc_text_add(out, "nothing fits\n");
        return;
    }
    sc_text_add(
        out, "%9s  %10s  %10s  %4.1f %%  %3.0f %% free%s\n",
        report_seconds(p->step_time_s).s,
        isnan(p->whole_run.days) ? "" : report_days(p->whole_run.days).s,
        isnan(report_search_usd(p)) ? "" : report_usd(report_search_usd(p)).s,
        100 * p->mfu, 100 * (1 - s->found.best[0].point.full),
        !limited   ? ""
        : s->meets ? "  meets"
                   : "");
}

static double ends(const double *v, uint32_t n, bool high)
{
    double out = v[0];
    for (uint32_t i = 1; i < n; i++)
        out = high ? fmax(out, v[i]) : fmin(out, v[i]);
    return out;
}

enum { PLOTTED = 64 };

static void plot(const sc_report_search *r, sc_text *out)
{
    double x[PLOTTED], t[PLOTTED], usd[PLOTTED];
    uint32_t n = 0;
    const sc_prediction *p = NULL;
    for (uint32_t i = 0; i < r->sizes->n && n < PLOTTED; i++) {
        const sc_search_machine *s = r->sizes->size[i];
        if (!s->best) continue;
        p = s->best;
        x[n] = p->run.hw->n_devices;
        t[n] = time_of(p);
        usd[n++] = report_search_usd(p);
    }
    if (n < 2) return;
    report_word w[] = {
        time_text(p, ends(t, n, false)), time_text(p, ends(t, n, true)),
        report_usd(ends(usd, n, false)), report_usd(ends(usd, n, true))};
    char low[32], high[32];
    snprintf(low, sizeof low, "%.0f", ends(x, n, false));
    snprintf(high, sizeof high, "%.0f devices", ends(x, n, true));
    bool money = !isnan(usd[0]);
    const report_line_plot l = {
        .title = money ? "time (t) and money ($) over devices"
                       : "time (t) over devices",
        .n = n,
        .x = {x, low, high},
        .left = {t, w[0].s, w[1].s},
        .right = {money ? usd : NULL, w[2].s, w[3].s},
        .mark = "t$"};
    sc_report_plot(&l, out);
}

static void limits(const sc_report_search *r, sc_text *out)
{
    const sc_search_limits *l = &r->limits;
    char wish[96] = "";
    int n = 0;
    if (l->until_s > 0)
        n = snprintf(wish, sizeof wish, "%s",
                     report_days(l->until_s / 86400).s);
    if (l->usd > 0)
        snprintf(wish + n, sizeof wish - (size_t)n, "%s%s", n ? " and " : "",
                 report_usd(l->usd).s);
    if (l->until_s <= 0 && l->usd <= 0) return;
    const sc_search_machine *c = r->sizes->chosen;
    if (!c)
        report_line(out, "fewest devices", "none that was tried meets %s",
                    wish);
    else
        report_line(out, "fewest devices", "%u (%s) meet %s%s",
                    c->in.hw->n_devices, c->job.cluster, wish,
                    r->sizes->proved ? "; no smaller number does" : "");
}

void report_search_sizes_text(const sc_report_search *r, sc_text *out)
{
    sc_text_add(
        out,
        "  devices       step         run        cost     MFU    memory\n");
    for (uint32_t i = 0; i < r->sizes->n; i++) row(r, r->sizes->size[i], out);
    plot(r, out);
    sc_text_add(out, "\n");
    limits(r, out);
}

/* ---- JSON ----------------------------------------------------------------- */

static sc_status size_json(const sc_report_search *r,
                           const sc_search_machine *s, sc_arena *a, sc_json *j,
                           sc_err *err)
{
    const sc_prediction *p = s->best;
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "devices", s->in.hw->n_devices);
    sc_json_put_uint(j, "nodes", s->units);
    sc_json_put_double(j, "step_time_s", p ? p->step_time_s : NAN);
    sc_json_put_double(j, "days", p ? p->whole_run.days : NAN);
    sc_json_put_double(j, "cost_usd", p ? report_search_usd(p) : NAN);
    sc_json_put_double(j, "mfu", p ? p->mfu : NAN);
    sc_json_put_uint(j, "space", s->found.points);
    sc_json_put_uint(j, "not_reached", s->found.left);
    sc_json_key(j, "meets");
    sc_json_bool(j, s->meets);
    if (p) {
        const sc_search_row *row = &s->found.best[0];
        sc_json_put_double(j, "peak", row->point.peak);
        sc_json_put_double(j, "memory_margin", 1 - row->point.full);
        SC_TRY(report_search_row_json(r, &s->jobs, row, a, j, err));
    }
    sc_json_end(j, '}');
    return SC_OK;
}

sc_status report_search_sizes_json(const sc_report_search *r, sc_arena *a,
                                   sc_json *j, sc_err *err)
{
    const sc_search_machine *c = r->sizes->chosen;
    sc_json_key(j, "limits");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "until_s",
                       r->limits.until_s > 0 ? r->limits.until_s : NAN);
    sc_json_put_double(j, "cost_usd", r->limits.usd > 0 ? r->limits.usd : NAN);
    sc_json_end(j, '}');
    sc_json_key(j, "fewest_devices");
    if (c && (r->limits.until_s > 0 || r->limits.usd > 0))
        sc_json_int(j, c->in.hw->n_devices);
    else
        sc_json_null(j);
    sc_json_key(j, "devices");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < r->sizes->n; i++)
        SC_TRY(size_json(r, r->sizes->size[i], a, j, err));
    sc_json_end(j, ']');
    return SC_OK;
}
