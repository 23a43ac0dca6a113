/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.c - fits the level of published runs.
 *
 * The factor is the median of published over predicted device-hours, so no
 * single run moves it far. There is one for all runs: at most one parameter per
 * 20 rows is fitted. Energies do not count in the fit.
 */
#include "calib/level.h"

#include "base/number.h"
#include "base/stats.h"
#include "calib/fitfile.h"
#include "calib/stats.h"
#include "calib/whole_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool of(const sc_valid_row *r, const char *publisher)
{
    return publisher && strcmp(r->publisher, publisher) == 0;
}

static bool in_fit(const sc_valid_row *r)
{
    return r->counted && !r->unit;
}

static double log_ratio(const sc_valid_row *r)
{
    return log(r->median / r->predicted);
}

/* The factor of rows of other publishers than these two (NULL: of all), over
 * the one with which they are predicted. `w` has room for all rows. */
static double factor_without(const sc_validation *v, const char *one,
                             const char *other, sc_weighted *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_rows; i++) {
        const sc_valid_row *r = &v->rows[i];
        if (in_fit(r) && !of(r, one) && !of(r, other))
            w[n++] = (sc_weighted){log_ratio(r), 1};
    }
    return n > 0 ? exp(sc_weighted_quantile(w, n, 0.5)) : 1;
}

/* Errors of the rows without those of `without` (NULL: of all), each with the
 * factor of yet other publishers. */
static uint32_t held_out(const sc_validation *v, const char *without,
                         sc_weighted *w, sc_weighted *error)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_rows; i++) {
        const sc_valid_row *r = &v->rows[i];
        if (!in_fit(r) || of(r, without)) continue;
        double f = factor_without(v, r->publisher, without, w);
        error[n++] = (sc_weighted){log_ratio(r) - log(f), 1};
    }
    return n;
}

static sc_status room(const sc_validation *v, sc_arena *a, sc_weighted **w,
                      sc_weighted **error, sc_err *err)
{
    *w = SC_NEW_N(a, sc_weighted, (size_t)v->n_rows + 1);
    *error = SC_NEW_N(a, sc_weighted, (size_t)v->n_rows + 1);
    return *w && *error ? SC_OK : sc_error_nomem(err);
}

static uint32_t count_publishers(const sc_validation *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_rows; i++) {
        bool first = in_fit(&v->rows[i]);
        for (uint32_t j = 0; j < i && first; j++)
            first =
                !in_fit(&v->rows[j]) || !of(&v->rows[j], v->rows[i].publisher);
        n += first;
    }
    return n;
}

sc_status calib_level_fit(const sc_validation *v, sc_arena *a,
                          sc_run_level *out, sc_err *err)
{
    sc_weighted *w, *error;
    SC_TRY(room(v, a, &w, &error, err));
    uint32_t n = held_out(v, NULL, w, error);
    *out = (sc_run_level){.factor = factor_without(v, NULL, NULL, w),
                          .low = sc_weighted_quantile(error, n, 0.1),
                          .high = sc_weighted_quantile(error, n, 0.9),
                          .rows = n,
                          .publishers = count_publishers(v)};
    return SC_OK;
}

/* ---- leave-out ----------------------------------------------------------- */

static const char *publisher_of(const sc_valid_row *r)
{
    return r->unit ? NULL : r->publisher;
}

sc_status calib_level_leave_out(sc_validation *v, sc_arena *a, sc_err *err)
{
    sc_weighted *w, *error;
    SC_TRY(room(v, a, &w, &error, err));
    double *factor = SC_NEW_N(a, double, (size_t)v->n_rows + 1);
    if (!factor) return sc_error_nomem(err);
    for (uint32_t i = 0; i < v->n_rows; i++) {
        sc_valid_row *r = &v->rows[i];
        uint32_t n = held_out(v, r->publisher, w, error);
        factor[i] = factor_without(v, r->publisher, NULL, w);
        double predicted = r->predicted * factor[i];
        r->low = predicted * exp(sc_weighted_quantile(error, n, 0.1));
        r->high = predicted * exp(sc_weighted_quantile(error, n, 0.9));
    }
    for (uint32_t i = 0; i < v->n_rows; i++) {
        sc_valid_row *r = &v->rows[i];
        r->predicted *= factor[i];
        if (r->counted) r->error = r->predicted / r->measured - 1;
    }
    v->left_out = "family";
    v->nested = true;
    SC_TRY(calib_summarise(v, a, err));
    SC_TRY(calib_summarise_parts(v, publisher_of, a, err));
    return SC_OK;
}

/* ---- the file ------------------------------------------------------------ */

static void put(sc_text *t, const char *key, double v)
{
    char buf[40];
    number_print(v, 3, buf, sizeof buf);
    sc_text_add(t, "%s: %s", key, isfinite(v) ? buf : "null");
}

static void write_level(const sc_run_level *l, const sc_validation *held,
                        const char *from, sc_text *out)
{
    sc_text_add(out, "# Only `stepcast calibrate --whole-runs TABLE` writes "
                     "this file.\n");
    calib_fit_comment(from, out);
    sc_text_add(
        out,
        "# factor is the median of published over predicted device-hours. low "
        "and high are\n# the quantiles 10 %% and 90 %% of log(published / "
        "(factor x predicted)), each run with\n# the factor of the other "
        "publishers.\nrun_level: {");
    put(out, "factor", l->factor);
    put(out, ", low", l->low);
    put(out, ", high", l->high);
    sc_text_add(out, ", rows: %u, publishers: %u}\n", l->rows, l->publishers);
    sc_text_add(out, "# Mean errors of device-hours in %%, each publisher "
                     "with the factor of the others:\n");
    for (uint32_t i = 0; i < held->n_parts; i++) {
        const sc_valid_part *p = &held->parts[i];
        if (!p->is_kind)
            sc_text_add(out, "# %s %.1f of %u\n", p->name, 100 * p->mape,
                        p->rows);
    }
}

sc_status sc_calibrate_whole(const sc_csv *tables, uint32_t n_tables,
                             const char *from, sc_arena *a, sc_text *yml,
                             sc_text *report, sc_err *err)
{
    sc_validate_opts o = {.engine = SC_ENGINE_FAST};
    sc_validation v;
    sc_run_level level;
    sc_cost *cost = SC_NEW(a, sc_cost);
    if (!cost) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n_tables; i++)
        if (!calib_whole_table(&tables[i]))
            return sc_error(err, SC_EINPUT, SC_C_MISSING,
                            (sc_pos){tables[i].file, 1, 1},
                            "data/validation/README.md lists the columns",
                            "this is no table of whole runs");
    SC_TRY(sc_cost_builtin(a, cost, err));
    cost->run_level = (sc_run_level){.factor = 1};
    o.cost = cost;
    SC_TRY(calib_whole_validate(tables, n_tables, &o, a, &v, err));
    SC_TRY(calib_level_fit(&v, a, &level, err));
    if (level.rows == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING,
                        (sc_pos){tables[0].file, 1, 1},
                        "give device-hours and tokens of a run",
                        "no row of the table can be compared");
    SC_TRY(calib_level_leave_out(&v, a, err));
    write_level(&level, &v, from, yml);
    sc_validation_text(&v, true, report);
    return yml->failed || report->failed ? sc_error_nomem(err) : SC_OK;
}
