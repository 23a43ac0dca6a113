/* SPDX-License-Identifier: Apache-2.0 */
/* search_front.c - the front of a search as a table and as a plot. */
#include "report/report_plot.h"
#include "report/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

report_word report_days(double days)
{
    report_word w;
    snprintf(w.s, sizeof w.s, days < 99.95 ? "%.3g days" : "%.0f days", days);
    return w;
}

report_word report_usd(double usd)
{
    report_word w;
    snprintf(w.s, sizeof w.s, "%s USD", report_number(usd).s);
    return w;
}

/* With limits the searches of all sizes look for the fastest points. */
static sc_search_goal goal_of(const sc_report_search *r)
{
    bool limited = r->limits.until_s > 0 || r->limits.usd > 0;
    return r->sizes && limited ? SC_GOAL_DAYS : r->goal;
}

sc_status report_search_front(const sc_report_search *r, sc_arena *a,
                              sc_search_member **m, uint32_t *n, sc_err *err)
{
    sc_search_machine one = {.jobs = *r->jobs, .in = *r->jobs->in};
    const sc_search_machine *all = &one;
    one.found = *r->found;
    if (r->sizes && r->sizes->n > 0)
        return sc_search_front((const sc_search_machine *const *)r->sizes->size,
                               r->sizes->n, goal_of(r), r->dims, a, m, n, err);
    SC_TRY(sc_search_front(&all, 1, r->goal, r->dims, a, m, n, err));
    for (uint32_t i = 0; i < *n; i++) (*m)[i].jobs = r->jobs;
    return SC_OK;
}

/* Rows of the front in the text; --json has all. */
enum { FRONT_ROWS = 8 };

typedef struct ends {
    double low, high;
} ends;

static void widen(ends *e, double v)
{
    e->low = fmin(e->low, v);
    e->high = fmax(e->high, v);
}

static void plot(const sc_report_search *r, const sc_search_member *m,
                 uint32_t n, sc_arena *a, sc_text *out)
{
    bool memory = r->dims >> SC_DIM_MEMORY & 1;
    double *step = SC_NEW_N(a, double, n), *x = SC_NEW_N(a, double, n);
    ends ey = {INFINITY, 0}, ex = {INFINITY, 0};
    report_word low, high;
    if (!step || !x) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        step[i] = m[i].row->point.step_s;
        x[i] = m[i].at[memory ? SC_DIM_MEMORY : SC_DIM_DEVICES];
        widen(&ey, step[i]);
        widen(&ex, x[i]);
    }
    low = memory ? report_bytes((uint64_t)ex.low) : report_number(ex.low);
    high = memory ? report_bytes((uint64_t)ex.high) : report_number(ex.high);
    report_word fast = report_seconds(ey.low), slow = report_seconds(ey.high);
    const report_line_plot p = {.title = memory
                                             ? "the front: step over memory"
                                             : "the front: step over devices",
                                .n = n,
                                .x = {x, low.s, high.s},
                                .left = {step, fast.s, slow.s},
                                .mark = "*"};
    sc_report_plot(&p, out);
}

void report_search_dims(uint32_t dims, sc_text *out)
{
    for (uint32_t d = 0; d < SC_N_DIMS; d++) {
        uint32_t before = dims & ((1u << d) - 1), behind = dims >> (d + 1);
        if (dims >> d & 1)
            sc_text_add(out, "%s%s",
                        !before  ? ""
                        : behind ? ", "
                                 : " and ",
                        sc_search_dim_names[d]);
    }
}

sc_status report_search_front_text(const sc_report_search *r, sc_arena *a,
                                   sc_text *out, sc_err *err)
{
    sc_search_member *m;
    uint32_t n;
    bool sizes = r->sizes && r->sizes->n > 1;
    SC_TRY(report_search_front(r, a, &m, &n, err));
    if (n == 0) return SC_OK;
    sc_text_add(out,
                sizes ? "\nnone is better in " : "\nless memory for more time");
    if (sizes) report_search_dims(r->dims, out);
    sc_text_add(out, "\n");
    for (uint32_t i = 0; i < n && i < FRONT_ROWS; i++) {
        const sc_point *p = &m[i].row->point;
        const char *options =
            report_search_options_of(r, m[i].jobs, m[i].row, a);
        char title[32];
        if (!options) return sc_error_nomem(err);
        snprintf(title, sizeof title, "%s", report_bytes((uint64_t)p->peak).s);
        report_line(out, title, "%s: %s", report_seconds(p->step_s).s, options);
    }
    if (n > FRONT_ROWS)
        report_line(out, "", "%u more with --json", n - FRONT_ROWS);
    if (n > 2) plot(r, m, n, a, out);
    return SC_OK;
}
