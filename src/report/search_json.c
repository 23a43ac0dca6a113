/* SPDX-License-Identifier: Apache-2.0 */
/* search_json.c - writes the result of a search as stepcast.search/1. */
#include "report/search.h"

#include <math.h>
#include <string.h>

static sc_status command(const sc_report_search *r, const sc_search_jobs *jobs,
                         const sc_search_row *row, sc_arena *a, sc_json *j,
                         sc_err *err)
{
    sc_job none, job, asked = *r->asked;
    sc_job_init(&none);
    sc_search_row_job(jobs, row, &job);
    asked.cluster = job.cluster; /* predict compares several */
    const char *same = sc_job_options(&none, &asked, a);
    const char *options = sc_job_options(&asked, &job, a);
    if (!options || !same) return sc_error_nomem(err);
    const char *all = sc_sprintf(a, "stepcast predict %s%s%s", same,
                                 *same ? " " : "", options);
    if (!all) return sc_error_nomem(err);
    sc_json_put_string(j, "command", all);
    return SC_OK;
}

/* The values of all axes of a row. */
static void choices(const sc_search_jobs *jobs, const sc_search_row *row,
                    sc_json *j)
{
    sc_json_key(j, "config");
    sc_json_begin(j, '{');
    for (uint32_t i = 0; i < jobs->n; i++) {
        const sc_search_option *o = &jobs->option[i];
        char buf[64];
        if (o->axis.value[row->digit[i]] == SC_SEARCH_AS_GIVEN) continue;
        sc_search_option_print(o, row->digit[i], buf, sizeof buf);
        if (o->key->type == SC_T_INT)
            sc_json_key(j, o->key->name),
                sc_json_int(j, o->axis.value[row->digit[i]]);
        else
            sc_json_put_string(j, o->key->name, buf);
    }
    sc_json_end(j, '}');
}

sc_status report_search_row_json(const sc_report_search *r,
                                 const sc_search_jobs *jobs,
                                 const sc_search_row *row, sc_arena *a,
                                 sc_json *j, sc_err *err)
{
    choices(jobs, row, j);
    return command(r, jobs, row, a, j, err);
}

static void point(const sc_search_row *row, sc_json *j)
{
    sc_json_put_double(j, "step_time_s", row->point.step_s);
    sc_json_put_double(j, "peak", row->point.peak);
    sc_json_put_double(j, "memory_fraction", row->point.full);
    sc_json_put_double(j, "memory_margin", 1 - row->point.full);
}

/* What is made small, if it is not the step. */
static void objective(const sc_report_search *r, const sc_search_row *row,
                      sc_json *j)
{
    if (r->goal != SC_GOAL_STEP_TIME)
        sc_json_put_double(j, sc_search_goal_names[r->goal],
                           sc_search_goal_value(r->goal, row->score));
}

static void smaller(const sc_report_search *r, uint32_t i, sc_json *j)
{
    sc_json_key(j, "if_out_of_memory");
    sc_json_begin(j, '[');
    for (uint32_t k = 0; i < r->n_smaller && k < r->smaller[i].n; k++) {
        const sc_suggestion *s = &r->smaller[i].change[k];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "change", s->change);
        sc_json_put_double(j, "step_time_s", s->step_time_s);
        sc_json_put_double(j, "peak", s->peak);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static sc_status best(const sc_report_search *r, const sc_report_origin *origin,
                      sc_arena *a, sc_json *j, sc_err *err)
{
    const sc_search_result *f = r->found;
    sc_json_key(j, "best");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < f->n_best; i++) {
        sc_job job;
        const char *why = report_search_why(r, i, a, err);
        sc_search_row_job(r->jobs, &f->best[i], &job);
        sc_json_begin(j, '{');
        point(&f->best[i], j);
        objective(r, &f->best[i], j);
        SC_TRY(report_search_row_json(r, r->jobs, &f->best[i], a, j, err));
        if (!why) return sc_error_nomem(err);
        sc_json_put_string(j, "why", why);
        smaller(r, i, j);
        report_search_sure_row_json(r, i, j);
        sc_json_key(j, "result");
        sc_report_prediction_json(&job, &r->best[i], NAN, origin, j);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    return SC_OK;
}

static sc_status front(const sc_report_search *r, sc_arena *a, sc_json *j,
                       sc_err *err)
{
    sc_search_member *m;
    uint32_t n;
    SC_TRY(report_search_front(r, a, &m, &n, err));
    sc_json_key(j, "front");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) {
        sc_json_begin(j, '{');
        point(m[i].row, j);
        sc_json_put_uint(j, "devices", (uint64_t)m[i].at[SC_DIM_DEVICES]);
        if (!r->sizes) objective(r, m[i].row, j);
        SC_TRY(report_search_row_json(r, m[i].jobs, m[i].row, a, j, err));
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    return SC_OK;
}

static void per_axis(const sc_report_search *r, sc_json *j)
{
    sc_json_key(j, "per_axis");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < r->jobs->n; i++) {
        const sc_search_option *o = &r->jobs->option[i];
        for (uint32_t k = 0; k < o->axis.n; k++) {
            const sc_search_row *row = &r->found->per_axis[i][k];
            char buf[64];
            sc_search_option_print(o, k, buf, sizeof buf);
            sc_json_begin(j, '{');
            sc_json_put_string(j, "axis", o->key->name);
            sc_json_put_string(j, "value", buf);
            bool none = isinf(row->point.step_s);
            sc_json_key(j, "best_time_s");
            if (none)
                sc_json_null(j);
            else
                sc_json_double(j, row->point.step_s);
            if (!none) choices(r->jobs, row, j);
            sc_json_end(j, '}');
        }
    }
    sc_json_end(j, ']');
}

/* How many evaluated points have a step of that length. */
static void steps(const sc_search_result *f, sc_json *j)
{
    sc_json_key(j, "histogram");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < SC_SEARCH_BUCKETS; i++) {
        if (f->steps[i] == 0) continue;
        sc_json_begin(j, '{');
        sc_json_put_double(j, "from_s", sc_search_bucket(i));
        sc_json_put_double(j, "to_s", sc_search_bucket(i + 1));
        sc_json_put_uint(j, "points", f->steps[i]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void counts(const sc_report_search *r, sc_json *j)
{
    const sc_search_result *f = r->found;
    double gap = report_search_gap(f);
    sc_json_put_uint(j, "space", f->points);
    sc_json_key(j, "infeasible");
    sc_json_begin(j, '{');
    for (uint32_t i = 0; i < f->n_reasons; i++)
        sc_json_put_uint(j, f->reason[i].name, f->reason[i].n);
    sc_json_end(j, '}');
    if (r->relief) {
        sc_json_key(j, "host_memory");
        sc_json_begin(j, '{');
        sc_json_put_string(j, "options", r->relief);
        sc_json_key(j, "fits");
        sc_json_bool(j, r->relieved);
        sc_json_end(j, '}');
    }
    sc_json_put_uint(j, "evaluated", f->evaluated);
    sc_json_put_uint(j, "pruned_by_bound", f->pruned);
    sc_json_put_uint(j, "not_reached", f->left);
    sc_json_key(j, "optimal");
    if (f->left == 0)
        sc_json_string(j, "proved");
    else if (isnan(gap))
        sc_json_null(j);
    else
        sc_json_double(j, gap);
    sc_json_put_double(j, "wall_s", r->wall_s);
    sc_json_put_double(j, "cpu_s", r->cpu_s);
    sc_json_put_double(j, "configs_per_s",
                       r->wall_s > 0 ? (double)f->evaluated / r->wall_s : 0);
}

sc_status sc_report_search_json(const sc_report_search *r,
                                const sc_report_origin *origin, sc_arena *a,
                                sc_json *out, sc_err *err)
{
    sc_json_begin(out, '{');
    sc_json_put_string(out, "schema", "stepcast.search/1");
    sc_json_put_string(out, "objective", sc_search_goal_names[r->goal]);
    counts(r, out);
    if (r->sizes) SC_TRY(report_search_sizes_json(r, a, out, err));
    if (r->machines) SC_TRY(report_search_machines_json(r, a, out, err));
    SC_TRY(best(r, origin, a, out, err));
    SC_TRY(report_search_settle_json(r, a, out, err));
    if (r->jobs) SC_TRY(front(r, a, out, err));
    if (r->jobs) per_axis(r, out);
    report_search_tornado_json(r, out);
    steps(r->found, out);
    sc_json_end(out, '}');
    return SC_OK;
}
