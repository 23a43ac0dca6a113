/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - prints predictions of one job on several machines as a table. */
#include "report/report_predict.h"
#include "report/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME,
    DEVICES,
    LAYOUT,
    FITS,
    STEP,
    RANGE,
    RATE,
    MFU,
    DAYS,
    COST,
    N_COLS
};

#define CELL 48

typedef struct table {
    uint32_t n;
    char (*cell)[N_COLS][CELL]; /* [n], the first row is the heading */
} table;

static const char *const heading[N_COLS] = {
    "cluster",       "devices", "layout", "fits, GiB", "step time",
    "80 % interval", "/s/dev.", "MFU",    "days",      "USD"};

static double fullest(const sc_prediction *p)
{
    double most = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        most = fmax(most, p->memory[i].peak);
    return most;
}

static void layout(const sc_run *r, char *buf, size_t size)
{
    static const struct {
        const char *name;
        int axis;
    } axes[] = {{"TP", SC_AX_TP}, {"CP", SC_AX_CP}, {"PP", SC_AX_PP}};

    size_t at = 0;
    for (size_t i = 0; i < SC_COUNT(axes); i++)
        if (r->size[axes[i].axis] > 1 && at < size)
            at += (size_t)snprintf(buf + at, size - at, "%s%u ", axes[i].name,
                                   r->size[axes[i].axis]);
    if (at < size)
        at += (size_t)snprintf(buf + at, size - at, "DP%u", sc_run_dp(r));
    if (sc_run_ep(r) > 1 && at < size)
        at += (size_t)snprintf(buf + at, size - at, " EP%u", sc_run_ep(r));
    if (r->zero && at < size)
        (void)snprintf(buf + at, size - at, " ZeRO-%d", r->zero);
}

static void row(const sc_job *job, const sc_prediction *p,
                char cell[N_COLS][CELL])
{
    const sc_run *r = &p->run;
    char low[24], high[24];
    double all = r->seq > 1 ? p->tokens_per_s : p->samples_per_s;
    snprintf(cell[NAME], CELL, "%.40s", job->cluster);
    snprintf(cell[DEVICES], CELL, "%u", r->hw->n_devices);
    if (!p->by_mesh) layout(r, cell[LAYOUT], CELL);
    snprintf(cell[FITS], CELL, "%-3s %.1f/%.0f", p->fits ? "yes" : "NO",
             fullest(p) / SC_GIB, p->memory_capacity_bytes / SC_GIB);
    sc_unit_print_short(p->step_time_s, SC_U_TIME, cell[STEP], CELL);
    sc_unit_print_short(p->step_time_low_s, SC_U_TIME, low, sizeof low);
    sc_unit_print_short(p->step_time_high_s, SC_U_TIME, high, sizeof high);
    if (isfinite(p->step_time_low_s))
        snprintf(cell[RANGE], CELL, "%s to %s", low, high);
    sc_unit_print_short(all / r->hw->n_devices, SC_U_COUNT, cell[RATE], CELL);
    snprintf(cell[MFU], CELL, "%.1f %%", 100 * p->mfu);
    if (!isnan(p->whole_run.days))
        snprintf(cell[DAYS], CELL, p->whole_run.days < 99.95 ? "%.3g" : "%.0f",
                 p->whole_run.days);
    double usd = report_search_usd(p);
    if (!isnan(usd)) sc_unit_print_short(usd, SC_U_COUNT, cell[COST], CELL);
}

/* Columns that are empty in all rows are left out. */
static void print(const table *t, sc_text *out)
{
    int width[N_COLS] = {0};
    for (int c = 0; c < N_COLS; c++)
        for (uint32_t i = 1; i < t->n; i++) {
            int w = (int)strlen(t->cell[i][c]);
            int h = (int)strlen(t->cell[0][c]);
            if (w > 0 && width[c] < h) width[c] = h;
            if (width[c] < w) width[c] = w;
        }
    for (uint32_t i = 0; i < t->n; i++) {
        sc_text line;
        sc_text_init(&line);
        for (int c = 0; c < N_COLS; c++)
            if (width[c] > 0)
                sc_text_add(&line, "%s%-*s", c ? "  " : "", width[c],
                            t->cell[i][c]);
        size_t n = line.len;
        while (n > 0 && line.buf[n - 1] == ' ') n--;
        sc_text_add(out, "%.*s\n", (int)n, line.buf ? line.buf : "");
        out->failed = out->failed || line.failed;
        sc_text_free(&line);
    }
}

sc_status sc_report_compare(const sc_job *const *jobs, const sc_prediction *p,
                            uint32_t n, sc_arena *a, sc_text *out, sc_err *err)
{
    table t = {.n = n + 1, .cell = NULL};
    t.cell =
        (char(*)[N_COLS][CELL])SC_NEW_N(a, char, (size_t)t.n *N_COLS *CELL);
    if (!t.cell) return sc_error_nomem(err);
    const sc_run *r = &p[0].run;
    for (int c = 0; c < N_COLS; c++)
        snprintf(t.cell[0][c], CELL, "%s", heading[c]);
    snprintf(t.cell[0][RATE], CELL, "%s/s/device",
             r->seq > 1 ? "tokens" : "samples");
    if (isnan(p[0].whole_run.days))
        snprintf(t.cell[0][COST], CELL, "USD per step");
    for (uint32_t i = 0; i < n; i++) row(jobs[i], &p[i], t.cell[i + 1]);
    sc_text_add(out, "%s, %s\n\n", r->model->name, r->sw->name);
    print(&t, out);
    sc_text_add(out, "\nAssumptions and warnings for one cluster: `stepcast "
                     "predict` with that cluster alone.\n");
    return SC_OK;
}
