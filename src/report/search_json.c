/* SPDX-License-Identifier: Apache-2.0 */
/* search_json.c - writes the result of a search as stepcast.search/1. */
#include "report/search.h"

#include <math.h>
#include <string.h>

static sc_status command(const sc_report_search *r, const sc_search_row *row,
                         sc_arena *a, sc_json *j, sc_err *err)
{
    const char *options = report_search_options(r, row, a);
    sc_job none;
    sc_job_init(&none);
    const char *asked = sc_job_options(&none, r->asked, a);
    if (!options || !asked) return sc_error_nomem(err);
    const char *all = sc_sprintf(a, "stepcast predict %s%s%s", asked,
                                 *asked ? " " : "", options);
    if (!all) return sc_error_nomem(err);
    sc_json_put_string(j, "command", all);
    return SC_OK;
}

/* The values of all axes of a row. */
static void choices(const sc_report_search *r, const sc_search_row *row,
                    sc_json *j)
{
    sc_json_key(j, "config");
    sc_json_begin(j, '{');
    for (uint32_t i = 0; i < r->jobs->n; i++) {
        const sc_search_option *o = &r->jobs->option[i];
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

static void point(const sc_search_row *row, sc_json *j)
{
    sc_json_put_double(j, "step_time_s", row->point.step_s);
    sc_json_put_double(j, "peak", row->point.peak);
    sc_json_put_double(j, "memory_fraction", row->point.full);
}

static sc_status best(const sc_report_search *r, const sc_report_origin *origin,
                      sc_arena *a, sc_json *j, sc_err *err)
{
    const sc_search_result *f = r->found;
    sc_json_key(j, "best");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < f->n_best; i++) {
        sc_job job;
        const char *why = "";
        sc_search_row_job(r->jobs, &f->best[i], &job);
        sc_json_begin(j, '{');
        point(&f->best[i], j);
        choices(r, &f->best[i], j);
        SC_TRY(command(r, &f->best[i], a, j, err));
        if (i + 1 < f->n_best)
            why = report_search_why(&r->best[i], &r->best[i + 1], a);
        if (!why) return sc_error_nomem(err);
        sc_json_put_string(j, "why", why);
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
    const sc_search_result *f = r->found;
    sc_json_key(j, "front");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < f->n_front; i++) {
        sc_json_begin(j, '{');
        point(&f->front[i], j);
        choices(r, &f->front[i], j);
        SC_TRY(command(r, &f->front[i], a, j, err));
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
            if (!none) choices(r, row, j);
            sc_json_end(j, '}');
        }
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
    counts(r, out);
    SC_TRY(best(r, origin, a, out, err));
    SC_TRY(front(r, a, out, err));
    per_axis(r, out);
    sc_json_end(out, '}');
    return SC_OK;
}
