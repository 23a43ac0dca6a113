/* SPDX-License-Identifier: Apache-2.0 */
/* leaveout.c - computes errors of predictions by fits that do not contain the
 * predicted rows. */
#include "calib/curves.h"
#include "calib/effects.h"
#include "calib/heldout.h"
#include "calib/level.h"
#include "calib/memoryfit.h"
#include "calib/power_table.h"
#include "calib/row.h"
#include "calib/stats.h"
#include "calib/stepfit.h"
#include "calib/sure.h"
#include "calib/whole_table.h"

#include <math.h>
#include <string.h>

static const char *family_of(const sc_valid_row *r)
{
    return r->family;
}

static const char *device_of(const sc_valid_row *r)
{
    return r->hw_device ? r->hw_device : r->device;
}

static const char *model_of(const sc_valid_row *r)
{
    return r->model;
}

static sc_status find_label(const char *by, sc_arena *a, calib_label *out,
                            sc_err *err)
{
    static const char *const names[] = {"family", "device", "model", NULL};
    static const calib_label labels[] = {family_of, device_of, model_of};
    for (int i = 0; names[i]; i++) {
        if (strcmp(by, names[i]) != 0) continue;
        *out = labels[i];
        return SC_OK;
    }
    return sc_error(
        err, SC_EUSAGE, SC_C_OPTION, sc_pos_option(a, "--leave-out", by),
        "write family, device or model", "'%s' can't be left out", by);
}

typedef struct study {
    calib_run *run; /* [set.n_rows] */
    const sc_validate_opts *o;
    const sc_cost *start;
    calib_label label;
    calib_fit_set set;
    sc_traits *traits;            /* [set.n_rows] of counted rows */
    const sc_covariance **cov_of; /* [set.n_rows] of the fit without the row;
                                     NULL: not predicted */
} study;

static bool wanted(const study *s, const sc_valid_row *r)
{
    return (!s->o->family || sc_glob(s->o->family, r->family)) &&
           (!s->o->where || sc_glob(s->o->where, r->id));
}

/* The order of the fits: each uses the parameters of those before it. */
static const sc_param_set sets[] = {SC_SET_STEP, SC_SET_PROGRAM, SC_SET_GRAPH};

/* The result of a fit without rows: centres, and the covariance of priors. */
static sc_status prior(sc_param_set which, sc_arena *a, sc_fit_result *out,
                       sc_err *err)
{
    sc_param *p = SC_NEW_N(a, sc_param, SC_N_PARAMS);
    if (!p) return sc_error_nomem(err);
    uint32_t n = calib_fit_free(which, p);
    double *cov = SC_NEW_N(a, double, (size_t)n *n + 1);
    if (!cov) return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++)
        cov[i * n + i] = sc_params[p[i]].sd * sc_params[p[i]].sd;
    *out = (sc_fit_result){.n_free = n, .free = p, .covariance = cov};
    return SC_OK;
}

/* Fits a set without its rows called `name`, if it has some; without any row
 * the parameters are at their centres. */
static sc_status refit_set(study *s, sc_param_set which, const char *name,
                           sc_cost *cost, sc_covariance *cov, sc_arena *a,
                           sc_err *err)
{
    uint32_t n, left = 0;
    const calib_fit_row *row = calib_fit_rows(&s->set, which, &n);
    sc_fit_result *fit = SC_NEW(a, sc_fit_result);
    bool *use = SC_NEW_N(a, bool, (size_t)n + 1);
    if (!use || !fit) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        use[i] = strcmp(s->label(row[i].row), name) != 0;
        left += use[i];
    }
    if (left == n) return SC_OK;
    calib_fit_centre(which, cost);
    if (left == 0)
        SC_TRY(prior(which, a, fit, err));
    else
        SC_TRY(calib_fit_set_of(which, &s->set, use, cost, fit, a, err));
    return calib_covariance_of(cov, fit, a, cov, err);
}

/* Fits each set that has rows called `name` without these rows. */
static sc_status refit(study *s, const char *name, sc_cost *cost,
                       sc_covariance *cov, sc_arena *a, sc_err *err)
{
    for (size_t k = 0; k < SC_COUNT(sets); k++)
        SC_TRY(refit_set(s, sets[k], name, cost, cov, a, err));
    return SC_OK;
}

/* Predicts the i-th row with its interval and traits. */
static sc_status predict_row(study *s, uint32_t i, calib_run *run,
                             const sc_cost *cost, const sc_covariance *cov,
                             sc_arena *a, sc_arena *scratch, sc_valid_row *out,
                             sc_err *err)
{
    const calib_row_also also = {.interval = true, .traits = &s->traits[i]};
    SC_TRY(
        calib_row_predict(run, cost, s->o->engine, a, scratch, out, also, err));
    if (isfinite(out->predicted)) s->cov_of[i] = cov;
    return SC_OK;
}

/* Predicts the group of `name` by a fit without it; rows of the set are
 * replaced. */
static sc_status without(study *s, const char *name, sc_arena *a,
                         sc_arena *scratch, sc_err *err)
{
    sc_cost cost = *s->start;
    sc_covariance *cov = SC_NEW(a, sc_covariance);
    if (!cov) return sc_error_nomem(err);
    if (s->start->cov) *cov = *s->start->cov;
    SC_TRY(refit(s, name, &cost, cov, a, err));
    for (uint32_t i = 0; i < s->set.n_rows; i++) {
        sc_valid_row *r = &s->set.rows[i];
        if (r->reason || strcmp(s->label(r), name) != 0 || !wanted(s, r))
            continue;
        sc_valid_row held;
        calib_run run = s->run[i];
        if (s->label == family_of)
            SC_TRY(sc_software_unread(run.sw, a, &run.sw, err));
        SC_TRY(predict_row(s, i, &run, &cost, cov, a, scratch, &held, err));
        held.median = r->median;
        held.counted = r->counted && !held.reason;
        held.unfitted = r->unfitted;
        *r = held;
    }
    return SC_OK;
}

/* The number of rows that fits of the sets use, and each of them. */
static uint32_t fitted(const study *s)
{
    uint32_t n, all = 0;
    for (size_t k = 0; k < SC_COUNT(sets); k++) {
        (void)calib_fit_rows(&s->set, sets[k], &n);
        all += n;
    }
    return all;
}

static const sc_valid_row *fitted_row(const study *s, uint32_t i)
{
    uint32_t n;
    for (size_t k = 0;; k++) {
        const calib_fit_row *row = calib_fit_rows(&s->set, sets[k], &n);
        if (i < n) return row[i].row;
        i -= n;
    }
}

static sc_status each_group(study *s, sc_arena *a, sc_err *err)
{
    sc_arena scratch;
    sc_arena_init(&scratch, a->limit);
    sc_status st = SC_OK;
    for (uint32_t i = 0; i < fitted(s) && st == SC_OK; i++) {
        const char *name = s->label(fitted_row(s, i));
        bool first = true, any = false;
        for (uint32_t j = 0; j < fitted(s); j++) {
            const sc_valid_row *r = fitted_row(s, j);
            if (strcmp(s->label(r), name) != 0) continue;
            if (j < i) first = false;
            if (wanted(s, r)) any = true;
        }
        if (first && any) st = without(s, name, a, &scratch, err);
        sc_progress_tell(s->o->progress, "refits without each group", i + 1,
                         fitted(s));
    }
    sc_arena_free(&scratch);
    return st;
}

/* Predicts the memory of each group by what the other rows show. */
static sc_status memory_groups(study *s, sc_arena *a, sc_err *err)
{
    uint32_t n = s->set.n_rows;
    sc_valid_row *rows = SC_NEW_N(a, sc_valid_row, (size_t)n + 1);
    if (!rows) return sc_error_nomem(err);
    memcpy(rows, s->set.rows, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = s->label(&rows[i]);
        bool first = true, any = false;
        for (uint32_t j = 0; j < n; j++) {
            const sc_valid_row *r = &rows[j];
            bool known = isfinite(r->mem_measured) || r->outcome;
            if (strcmp(s->label(r), name) != 0) continue;
            if (j < i) first = false;
            if (!s->run[j].reason && known && wanted(s, r)) any = true;
        }
        if (first && any)
            SC_TRY(calib_memory_without(s->run, n, s->label, name, s->o,
                                        s->start, a, rows, err));
    }
    s->set.rows = rows;
    return SC_OK;
}

/* The whole fit is one without the rows that no fit uses. */
static sc_status unfitted_rows(study *s, sc_arena *a, sc_err *err)
{
    sc_arena scratch;
    sc_arena_init(&scratch, a->limit);
    sc_status st = SC_OK;
    for (uint32_t i = 0; i < s->set.n_rows && st == SC_OK; i++) {
        sc_valid_row *r = &s->set.rows[i], own = {0};
        if (!r->counted || !r->unfitted || s->cov_of[i] || !wanted(s, r))
            continue;
        st = predict_row(s, i, &s->run[i], s->start, s->start->cov, a, &scratch,
                         &own, err);
        r->low = own.low;
        r->high = own.high;
    }
    sc_arena_free(&scratch);
    return st;
}

/* Makes room for the traits of all rows. */
static sc_status want_traits(study *s, sc_arena *a, sc_err *err)
{
    s->traits = SC_NEW_N(a, sc_traits, (size_t)s->set.n_rows + 1);
    s->cov_of = SC_NEW_N(a, const sc_covariance *, (size_t)s->set.n_rows + 1);
    return s->traits && s->cov_of ? SC_OK : sc_error_nomem(err);
}

/* Lists the counted rows with their traits. */
static sc_status held_rows(const study *s, sc_arena *a, calib_held **out,
                           uint32_t *n, sc_err *err)
{
    calib_held *h = SC_NEW_N(a, calib_held, (size_t)s->set.n_rows + 1);
    *n = 0;
    if (!h) return sc_error_nomem(err);
    for (uint32_t i = 0; i < s->set.n_rows; i++) {
        if (!s->set.rows[i].counted || !s->cov_of[i]) continue;
        h[*n] = (calib_held){&s->set.rows[i], s->traits[i], s->cov_of[i], NULL};
        ++*n;
    }
    *out = h;
    return SC_OK;
}

sc_status calib_leave_families(calib_run *run, uint32_t n, const sc_cost *start,
                               const sc_progress *progress, sc_arena *a,
                               calib_fit_set *set, sc_effects *effects,
                               sc_err *err)
{
    const sc_validate_opts o = {.engine = SC_ENGINE_FAST, .progress = progress};
    study s = {.run = run, .o = &o, .start = start, .label = family_of};
    calib_held *h = NULL;
    uint32_t n_held = 0;
    SC_TRY(calib_fit_prepare(run, n, start, a, &s.set, err));
    SC_TRY(want_traits(&s, a, err));
    SC_TRY(each_group(&s, a, err));
    *set = s.set;
    SC_TRY(held_rows(&s, a, &h, &n_held, err));
    SC_TRY(calib_nested_intervals(h, n_held, set->rows, n, a, err));
    SC_TRY(calib_effects_fit(h, n_held, NULL, a, effects, err));
    calib_deviations(h, n_held, effects);
    return SC_OK;
}

static sc_status leave_curves(const sc_csv *tables, uint32_t n_tables,
                              const char *by, const study *s, sc_arena *a,
                              sc_validation *out, sc_err *err)
{
    sc_validate_opts o = *s->o;
    o.cost = s->start;
    if (o.anchors)
        return sc_error(err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_none(),
                        "leave --anchors out",
                        "tables of collectives have no training runs");
    SC_TRY(calib_curves_leave_out(tables, n_tables, s->label, &o, a, out, err));
    out->left_out = by;
    return SC_OK;
}

/* Tables of power and of whole runs. */
static sc_status leave_others(const sc_csv *tables, uint32_t n_tables,
                              const char *by, const study *s, sc_arena *a,
                              sc_validation *out, sc_err *err)
{
    sc_validate_opts o = *s->o;
    o.cost = s->start;
    bool power = calib_power_table(&tables[0]);
    if (o.anchors || (!power && !calib_whole_table(&tables[0])))
        return sc_error(err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_none(),
                        o.anchors ? "leave --anchors out"
                                  : "leave --leave-out out",
                        "nothing is fitted to this kind of table%s",
                        o.anchors ? " with own runs" : "");
    if (!power && s->label != family_of)
        return sc_error(err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_none(),
                        "--leave-out family", "whole runs have publishers");
    if (power)
        SC_TRY(
            calib_power_leave_out(tables, n_tables, s->label, &o, a, out, err));
    else
        SC_TRY(calib_whole_validate(tables, n_tables, &o, a, out, err));
    if (!power) SC_TRY(calib_level_leave_out(out, a, err));
    out->left_out = by;
    return SC_OK;
}

sc_status sc_validate_leave_out(const sc_csv *tables, uint32_t n_tables,
                                const char *by, const sc_validate_opts *o,
                                sc_arena *a, sc_validation *out, sc_err *err)
{
    study s = {.o = o, .start = o->cost};
    calib_run *run = NULL;
    uint32_t n = 0;
    sc_cost builtin;
    calib_held *h = NULL;
    uint32_t n_held = 0;
    SC_TRY(find_label(by, a, &s.label, err));
    if (!s.start) {
        SC_TRY(sc_cost_builtin(a, &builtin, err));
        s.start = &builtin;
    }
    if (n_tables > 0 && calib_curves_table(&tables[0]))
        return leave_curves(tables, n_tables, by, &s, a, out, err);
    if (n_tables > 0 && !calib_runs_table(&tables[0]))
        return leave_others(tables, n_tables, by, &s, a, out, err);
    SC_TRY(calib_runs_read(tables, n_tables, a, &run, &n, err));
    s.run = run;
    SC_TRY(calib_fit_prepare(run, n, s.start, a, &s.set, err));
    SC_TRY(want_traits(&s, a, err));
    SC_TRY(each_group(&s, a, err));
    SC_TRY(unfitted_rows(&s, a, err));
    if (!o->anchors) SC_TRY(memory_groups(&s, a, err));
    SC_TRY(held_rows(&s, a, &h, &n_held, err));
    sc_validation v = {.unit = "s", .rows = s.set.rows, .left_out = by};
    /* The errors of the other families are known only if each family was left
     * out in turn. */
    v.nested = s.label == family_of && !o->family && !o->where;
    if (v.nested) SC_TRY(calib_nested_intervals(h, n_held, v.rows, n, a, err));
    if (o->anchors)
        SC_TRY(calib_with_anchors(h, n_held, o->anchors, s.start, a, &v, err));
    if (!o->anchors) {
        /* `h` points to the rows of the set, which stay where they are */
        v.rows = SC_NEW_N(a, sc_valid_row, (size_t)n + 1);
        if (!v.rows) return sc_error_nomem(err);
    }
    for (uint32_t i = 0; i < n && !o->anchors; i++)
        if (wanted(&s, &s.set.rows[i])) v.rows[v.n_rows++] = s.set.rows[i];
    SC_TRY(calib_summarise(&v, a, err));
    if (!o->anchors) SC_TRY(calib_judge_picks(h, n_held, s.start, a, &v, err));
    SC_TRY(calib_summarise_parts(&v, s.label, a, err));
    *out = v;
    return SC_OK;
}
