/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - writes a validation as JSON, and as tables for people. */
#include "calib/calib.h"
#include "calib/runs.h"
#include "calib/sure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON --------------------------------------------------------------------- */

/* Names of figures that are no times: a unit, and the keys. */
static const char *const others[][3] = {
    {"W", "measured_w", "predicted_w"},
    {"h", "measured_device_hours", "predicted_device_hours"},
    {"MWh", "measured_mwh", "predicted_mwh"},
};

/* Times have the unit in their names; measured and predicted of a collective
 * are also printed in microseconds, as its table has them. */
static void figures_json(const sc_valid_row *r, const char *unit, sc_json *j)
{
    bool us = strcmp(unit, "us") == 0;
    size_t k = 0;
    if (r->unit) unit = r->unit;
    while (k < SC_COUNT(others) && strcmp(unit, others[k][0]) != 0) k++;
    if (us || k < SC_COUNT(others)) {
        sc_json_put_double(j, "measured", r->measured);
        sc_json_put_double(j, "predicted", r->predicted);
    }
    if (k < SC_COUNT(others)) {
        sc_json_put_double(j, others[k][1], r->measured);
        sc_json_put_double(j, others[k][2], r->predicted);
        if (k > 0) {
            sc_json_put_double(j, "low", r->low);
            sc_json_put_double(j, "high", r->high);
        }
    } else {
        double scale = us ? 1e-6 : 1;
        sc_json_put_double(j, "measured_s", scale * r->measured);
        sc_json_put_double(j, "predicted_s", scale * r->predicted);
    }
    sc_json_put_double(j, "error", r->error);
}

static void row_json(const sc_valid_row *r, const char *unit, bool kernels,
                     sc_json *j)
{
    bool runs = strcmp(unit, "s") == 0 && !kernels;
    sc_json_begin(j, '{');
    sc_json_put_string(j, "id", r->id);
    sc_json_put_string(j, "family", r->family);
    sc_json_put_string(j, "device", r->device);
    sc_json_put_string(j, "model", r->model);
    if (strcmp(unit, "us") == 0 && r->hw_device)
        sc_json_put_string(j, "hw_device", r->hw_device);
    if (r->dtype) sc_json_put_string(j, "dtype", r->dtype);
    if (r->publisher) sc_json_put_string(j, "publisher", r->publisher);
    figures_json(r, unit, j);
    if (runs) {
        sc_json_put_double(j, "low_s", r->low);
        sc_json_put_double(j, "high_s", r->high);
        sc_json_put_string(j, "kind",
                           isfinite(r->predicted) ? sc_model_kind_names[r->kind]
                                                  : NULL);
    }
    if (isfinite(r->mem_measured)) {
        sc_json_put_double(j, "measured_memory_bytes", r->mem_measured);
        sc_json_put_double(j, "predicted_memory_bytes", r->mem_predicted);
    }
    if (r->outcome && isfinite(r->fits_probability)) {
        sc_json_put_string(j, "outcome",
                           r->outcome == CALIB_RAN ? "ran" : "oom");
        sc_json_key(j, "fits");
        sc_json_bool(j, r->fits);
        sc_json_put_double(j, "fits_probability", r->fits_probability);
    }
    sc_json_key(j, "counted");
    sc_json_bool(j, r->counted);
    if (r->reason) sc_json_put_string(j, "reason", r->reason);
    sc_json_put_strings(j, "assumptions", r->assumptions, r->n_assumptions);
    if (kernels || r->n_warnings)
        sc_json_put_strings(j, "warnings", r->warnings, r->n_warnings);
    sc_json_end(j, '}');
}

/* `right` is the fraction of rows whose fit was predicted right. */
static void fits_json(const sc_valid_fits *f, sc_json *j)
{
    sc_json_key(j, "fits");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "right", f->rows ? (double)f->right / f->rows : NAN);
    sc_json_put_uint(j, "rows", f->rows);
    sc_json_put_uint(j, "refused", f->refused);
    sc_json_put_uint(j, "accepted", f->accepted);
    sc_json_put_double(j, "brier", f->rows ? f->squares / f->rows : NAN);
    sc_json_key(j, "by_probability");
    sc_json_begin(j, '[');
    for (uint32_t b = 0; b < SC_FITS_BINS; b++) {
        if (!f->of_bin[b]) continue;
        sc_json_begin(j, '{');
        sc_json_put_double(j, "from", (double)b / SC_FITS_BINS);
        sc_json_put_uint(j, "rows", f->of_bin[b]);
        sc_json_put_uint(j, "ran", f->ran[b]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

static void memory_json(const sc_validation *v, sc_json *j)
{
    sc_json_key(j, "memory");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "mape", v->mem_mape);
    sc_json_put_double(j, "bias", v->mem_bias);
    sc_json_put_uint(j, "rows", v->mem_rows);
    sc_json_end(j, '}');
    fits_json(&v->fits, j);
    calib_pick_json(&v->pick, j);
}

static void group_json(const sc_valid_group *g, bool seconds, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "family", g->family);
    sc_json_put_string(j, "device", g->device);
    if (g->dtype) sc_json_put_string(j, "dtype", g->dtype);
    sc_json_put_uint(j, "rows", g->rows);
    sc_json_put_uint(j, "skipped", g->skipped);
    sc_json_put_double(j, "mape", g->mape);
    sc_json_put_double(j, "median_ape", g->median_ape);
    sc_json_put_double(j, "p90_ape", g->p90_ape);
    sc_json_put_double(j, "bias", g->bias);
    sc_json_put_double(j, "kendall_tau", g->kendall_tau);
    sc_json_put_double(j, "regret", g->regret);
    sc_json_put_double(j, "regret_max", g->regret_max);
    sc_json_put_double(j, "coverage", g->coverage);
    sc_json_put_double(j, "memory_mape", g->mem_mape);
    sc_json_put_double(j, "memory_max_ape", g->mem_max);
    if (seconds) {
        sc_json_put_double(j, "memory_bias", g->mem_bias);
        sc_json_put_uint(j, "memory_rows", g->mem_rows);
        fits_json(&g->fits, j);
        calib_pick_json(&g->pick, j);
    }
    sc_json_end(j, '}');
}

static void parts_json(const sc_validation *v, sc_json *j)
{
    sc_json_key(j, "parts");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < v->n_parts; i++) {
        const sc_valid_part *p = &v->parts[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, p->is_kind ? "kind" : v->left_out, p->name);
        sc_json_put_uint(j, "rows", p->rows);
        sc_json_put_double(j, "mape", p->mape);
        sc_json_put_double(j, "bias", p->bias);
        sc_json_put_double(j, "coverage", p->coverage);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static const char *intervals_of(const sc_validation *v)
{
    if (strcmp(v->unit, "us") == 0)
        return "of interval_large, interval_small and interval_network";
    if (strcmp(v->unit, "h") == 0)
        return v->nested ? "of the other publishers, held out"
                         : "of published runs, data/fit/whole-run.yml";
    return v->nested ? "of the other families, held out"
                     : "of all families, data/fit/held-out.yml";
}

void sc_validation_json(const sc_validation *v, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.validate/1");
    bool seconds = !v->kernels && strcmp(v->unit, "s") == 0;
    sc_json_put_string(j, "unit", v->unit);
    sc_json_key(j, "rows");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < v->n_rows; i++)
        row_json(&v->rows[i], v->unit, v->kernels, j);
    sc_json_end(j, ']');
    sc_json_key(j, "groups");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < v->n_groups; i++)
        group_json(&v->groups[i], seconds, j);
    sc_json_end(j, ']');
    if (seconds) memory_json(v, j);
    sc_json_put_double(j, "mape", v->mape);
    sc_json_put_double(j, "median_ape", v->median_ape);
    sc_json_put_double(j, "coverage", v->coverage);
    if (!v->kernels) sc_json_put_double(j, "memory_mape", v->mem_mape);
    if (v->left_out) {
        parts_json(v, j);
        sc_json_put_string(j, "left_out", v->left_out);
        sc_json_put_double(j, "mean_of_left_out", v->family_mape);
        if (v->anchors) sc_json_put_uint(j, "anchors", v->anchors);
        sc_json_put_string(j, "intervals", intervals_of(v));
    }
    sc_json_put_uint(j, "skipped", v->skipped);
    sc_json_end(j, '}');
}

/* ---- text ----------------------------------------------------------------------- */

/* A right-aligned cell of 8 characters; "-" if there is no number. */
static void cell(sc_text *t, double v, double scale, const char *form)
{
    char buf[32] = "-";
    if (isfinite(v)) snprintf(buf, sizeof buf, form, scale * v);
    sc_text_add(t, "%8s", buf);
}

static void percent(sc_text *t, double v)
{
    cell(t, v, 100, "%.2f");
}

static void grow(size_t *width, const char *text)
{
    size_t len = strlen(text);
    if (len > *width) *width = len;
}

static int column(size_t width)
{
    return (int)(width < 60 ? width : 60) + 2;
}

static void rows_text(const sc_validation *v, sc_text *t)
{
    size_t longest = 3;
    for (uint32_t i = 0; i < v->n_rows; i++) grow(&longest, v->rows[i].id);
    int width = column(longest);
    bool micro = v->kernels && strcmp(v->unit, "s") == 0;
    const char *unit = micro ? "us" : v->unit;
    double scale = micro ? 1e6 : 1;
    sc_text_add(t, "%-*s%10s %-2s%10s %-2s%8s\n", width, "row", "measured",
                unit, "predicted", unit, "err %");
    for (uint32_t i = 0; i < v->n_rows; i++) {
        const sc_valid_row *r = &v->rows[i];
        sc_text_add(t, "%-*s", width, r->id);
        if (r->reason) {
            sc_text_add(t, "  skipped: %s\n", r->reason);
            continue;
        }
        if (isnan(r->measured) && r->outcome) {
            sc_text_add(t, "  %s; predicted to fit with %.0f %%\n",
                        r->outcome == CALIB_OOM ? "ran out of memory" : "ran",
                        100 * r->fits_probability);
            continue;
        }
        sc_text_add(t, "%12.4f %12.4f ", scale * r->measured,
                    scale * r->predicted);
        cell(t, r->error, 100, "%+.2f");
        sc_text_add(t, "%s%s%s\n", r->unit ? "  " : "", r->unit ? r->unit : "",
                    r->counted ? "" : "  (repetition)");
    }
    sc_text_add(t, "\n");
}

static bool judged(const sc_valid_group *g)
{
    return isfinite(g->mape) || isfinite(g->mem_mape) || g->fits.rows > 0;
}

/* How many rows ran, by the probability that they fit. */
static void calibration_text(const sc_valid_fits *f, sc_text *t)
{
    sc_text_add(t,
                "probability to fit: Brier score %.3f; rows that ran, by %%:",
                f->squares / f->rows);
    const char *between = "";
    for (uint32_t b = 0; b < SC_FITS_BINS; b++) {
        if (!f->of_bin[b]) continue;
        sc_text_add(t, "%s %u-%u: %u of %u", between, 100 * b / SC_FITS_BINS,
                    100 * (b + 1) / SC_FITS_BINS, f->ran[b], f->of_bin[b]);
        between = ",";
    }
    sc_text_add(t, "\n");
}

/* Memory and fits over all rows. */
static void memory_text(const sc_validation *v, sc_text *t)
{
    const sc_valid_fits *f = &v->fits;
    if (v->mem_rows)
        sc_text_add(t,
                    "\nmemory of %u rows: mean error %.2f %%, bias %+.2f %%\n",
                    v->mem_rows, 100 * v->mem_mape, 100 * v->mem_bias);
    if (f->rows)
        sc_text_add(t,
                    "%sfits: %.1f %% of %u configurations right; %u that ran "
                    "were refused, %u that ran out of memory were accepted\n",
                    v->mem_rows ? "" : "\n", 100.0 * f->right / f->rows,
                    f->rows, f->refused, f->accepted);
    if (f->right < f->rows) calibration_text(f, t);
}

static void group_cells(const sc_valid_group *g, bool coverage, sc_text *t)
{
    percent(t, g->mape);
    percent(t, g->median_ape);
    percent(t, g->p90_ape);
    cell(t, g->bias, 100, "%+.2f");
    cell(t, g->kendall_tau, 1, "%.2f");
    percent(t, g->regret);
    percent(t, g->regret_max);
    percent(t, g->mem_mape);
    percent(t, g->mem_max);
    if (coverage) cell(t, g->coverage, 100, "%.0f");
    sc_text_add(t, "\n");
}

static void groups_text(const sc_validation *v, sc_text *t)
{
    size_t family = 6, device = 6;
    for (uint32_t i = 0; i < v->n_groups; i++) {
        if (!judged(&v->groups[i])) continue;
        grow(&family, v->groups[i].family);
        if (v->groups[i].device) grow(&device, v->groups[i].device);
    }
    int w1 = column(family), w2 = column(device);
    sc_text_add(t, "%-*s%-*s%6s%6s%8s%8s%8s%8s%8s%8s%8s%8s%8s%s\n", w1,
                "family", w2, "device", "rows", "skip", "mape %", "median",
                "p90", "bias", "tau", "regret", "worst", "mem %", "mem max",
                v->left_out ? "  in 80%" : "");
    for (uint32_t i = 0; i < v->n_groups; i++) {
        const sc_valid_group *g = &v->groups[i];
        if (!judged(g)) continue;
        sc_text_add(t, "%-*s%-*s%6u%6u", w1, g->family, w2,
                    g->device ? g->device : "(all)", g->rows, g->skipped);
        group_cells(g, v->left_out != NULL, t);
    }
    sc_text_add(t, "%-*s%6u%6u", w1 + w2, "all rows", v->n_rows, v->skipped);
    percent(t, v->mape);
    percent(t, v->median_ape);
    sc_text_add(t, "\n");
    if ((v->left_out || v->kernels) && isfinite(v->coverage))
        sc_text_add(t, "\n%.1f %% of rows in their 80 %% interval, %s\n",
                    100 * v->coverage, intervals_of(v));
}

/* Prints the groups that were left out together, and then the kinds of
 * models. */
static void parts_text(const sc_validation *v, sc_text *t)
{
    size_t name = 8;
    for (uint32_t i = 0; i < v->n_parts; i++) grow(&name, v->parts[i].name);
    for (uint32_t i = 0; i < v->n_parts; i++) {
        const sc_valid_part *p = &v->parts[i];
        if (i == 0 || p->is_kind != v->parts[i - 1].is_kind)
            sc_text_add(t, "\n%-*s%6s%8s%8s%8s\n", column(name),
                        p->is_kind ? "kind" : "left out", "rows", "mape %",
                        "bias", "in 80%");
        sc_text_add(t, "%-*s%6u", column(name), p->name, p->rows);
        percent(t, p->mape);
        cell(t, p->bias, 100, "%+.2f");
        cell(t, p->coverage, 100, "%.0f");
        sc_text_add(t, "\n");
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Prints each reason once, with its number of rows. */
static void skipped_text(const sc_validation *v, sc_text *t)
{
    sc_text_add(t, "\n%u of %u rows skipped\n", v->skipped, v->n_rows);
    for (uint32_t i = 0; i < v->n_rows; i++) {
        const char *reason = v->rows[i].reason;
        uint32_t n = 0;
        bool first = reason != NULL;
        for (uint32_t k = 0; k < v->n_rows && first; k++) {
            if (!same_text(v->rows[k].reason, reason)) continue;
            if (k < i) first = false;
            n++;
        }
        if (first) sc_text_add(t, "%6u  %s\n", n, reason);
    }
}

/* Number of rows before `end` with a warning. */
static uint32_t warned(const sc_validation *v, uint32_t end, const char *text)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < end; i++)
        for (uint32_t k = 0; k < v->rows[i].n_warnings; k++)
            n += strcmp(v->rows[i].warnings[k], text) == 0;
    return n;
}

/* Prints each warning once, with its number of rows. */
static void warnings_text(const sc_validation *v, sc_text *t)
{
    bool any = false;
    for (uint32_t i = 0; i < v->n_rows; i++)
        for (uint32_t k = 0; k < v->rows[i].n_warnings; k++) {
            const char *text = v->rows[i].warnings[k];
            if (warned(v, i, text) > 0) continue;
            if (!any) sc_text_add(t, "\nrows with a warning\n");
            any = true;
            sc_text_add(t, "%6u  %s\n", warned(v, v->n_rows, text), text);
        }
}

void sc_validation_text(const sc_validation *v, bool rows, sc_text *out)
{
    if (rows) rows_text(v, out);
    groups_text(v, out);
    memory_text(v, out);
    calib_pick_text(&v->pick, out);
    parts_text(v, out);
    bool mean = v->left_out && isfinite(v->family_mape);
    if (mean)
        sc_text_add(out, "\nmean over what was left out: %.2f %%",
                    100 * v->family_mape);
    if (v->anchors)
        sc_text_add(out, "; each row with %u other%s of its family as own runs",
                    v->anchors, v->anchors > 1 ? "s" : "");
    if (mean) sc_text_add(out, "\n");
    if (v->skipped > 0) skipped_text(v, out);
    warnings_text(v, out);
}
