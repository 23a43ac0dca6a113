/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - jobs that run side by side on one machine. */
#include "report/origin.h"
#include "report/report_jobs.h"
#include "report/report_row.h"

#include <math.h>
#include <string.h>

#define LISTED     100  /* links in JSON */
#define TEXT_LINKS 5    /* in the text */
#define NAME       20   /* columns of the name of a job */
#define PLACE_COST 1e-3 /* a placement that costs less is not named */
#define UNEQUAL    1e-3 /* nor is a smaller range of steps */

/* Appends "0..3, 8, 10..14/2". */
static void put_units(const sc_jobs_part *job, sc_text *out)
{
    const uint32_t *u = job->unit;
    for (uint32_t i = 0; i < job->n_units;) {
        uint32_t end = i + 1, step = 1;
        if (end < job->n_units && u[end] > u[i]) step = u[end] - u[i];
        while (end < job->n_units && u[end] - u[end - 1] == step) end++;
        /* two numbers are no row unless they follow each other */
        if (end - i == 2 && step > 1) end = i + 1;
        sc_text_add(out, "%s%u", i ? ", " : "", u[i]);
        if (end - i > 1) sc_text_add(out, "..%u", u[end - 1]);
        if (end - i > 1 && step > 1) sc_text_add(out, "/%u", step);
        i = end;
    }
}

static double slowdown(const sc_jobs_part *job)
{
    return job->step_s / job->alone_s;
}

static bool has_leaves(const sc_jobs_result *r)
{
    return sc_hw_leaf_units(r->hw) < sc_hw_units(r->hw);
}

static void table(const sc_report_jobs *s, sc_text *out)
{
    const sc_jobs_result *r = s->r;
    int name = 3;
    for (uint32_t j = 0; j < r->n_jobs; j++) {
        int n = (int)strlen(r->job[j].of->name);
        if (n > name) name = n < NAME ? n : NAME;
    }
    sc_text_add(out, "\n  %-*s  %6ss", name, "job", sc_hw_unit_name(r->hw));
    if (has_leaves(r)) sc_text_add(out, "  leaves");
    sc_text_add(out,
                "    predict     packed      alone     beside  slowdown\n");
    for (uint32_t j = 0; j < r->n_jobs; j++) {
        const sc_jobs_part *job = &r->job[j];
        bool packed = !isnan(job->packed_s);
        sc_text_add(out, "  %-*.*s  %7u", name, NAME, job->of->name,
                    job->n_units);
        if (has_leaves(r)) sc_text_add(out, "  %6u", job->n_leaves);
        sc_text_add(out, "  %9s  %9s  %9s  %9s  %8.3f\n",
                    report_seconds(job->p.step_time_s).s,
                    packed ? report_seconds(job->packed_s).s : "-",
                    report_seconds(job->alone_s).s,
                    report_seconds(job->step_s).s, slowdown(job));
    }
}

/* ---- why ------------------------------------------------------------------ */

static sc_cat longest_wait(const sc_jobs_part *job)
{
    sc_cat most = SC_CAT_OTHER;
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        if (job->waits_s[c] > job->waits_s[most]) most = (sc_cat)c;
    return most;
}

static void put_why(const sc_report_jobs *s, const sc_jobs_part *job,
                    sc_text *out)
{
    char name[96];
    sc_cat cat = longest_wait(job);
    const char *what = sc_cat_names[cat];
    report_word word = report_category(cat);
    if (job->n_links == 0) {
        sc_text_add(out, "; waits for no other job");
        return;
    }
    const sc_jobs_link *l = &s->r->link[job->link[0]];
    sc_hw_link_name(s->r->hw, l->link, name, sizeof name);
    sc_text_add(out, "; %s exchanges take %s longer in a step, mostly on %s",
                strncmp(what, "exposed_", 8) == 0 ? word.s + 8 : word.s,
                report_seconds(job->waits_s[cat]).s, name);
    if (l->alike > 1)
        sc_text_add(out, " and %u link%s like it", l->alike - 1,
                    l->alike > 2 ? "s" : "");
}

static void why(const sc_report_jobs *s, const sc_jobs_part *job, sc_text *out)
{
    double cost = job->alone_s / job->packed_s - 1;
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "%s%s ", sc_hw_unit_name(s->r->hw),
                job->n_units > 1 ? "s" : "");
    put_units(job, &t);
    if (fabs(cost) >= PLACE_COST)
        sc_text_add(&t, "; alone %.1f %% %s than packed", 100 * fabs(cost),
                    cost > 0 ? "slower" : "faster");
    put_why(s, job, &t);
    if (job->most_s > job->least_s * (1 + UNEQUAL))
        sc_text_add(&t, "; steps from %s to %s", report_seconds(job->least_s).s,
                    report_seconds(job->most_s).s);
    report_line(out, job->of->name, "%s", t.buf);
    out->failed |= t.failed;
    sc_text_free(&t);
}

static void links(const sc_report_jobs *s, sc_text *out)
{
    const sc_jobs_result *r = s->r;
    if (r->n_links == 0) return;
    sc_text_add(out,
                "\n  shared links, averaged over steps\n      used   alike");
    for (uint32_t j = 0; j < r->n_jobs; j++)
        sc_text_add(out, "  %10.10s", r->job[j].of->name);
    sc_text_add(out, "  link\n");
    for (uint32_t i = 0; i < r->n_links && i < TEXT_LINKS; i++) {
        const sc_jobs_link *l = &r->link[i];
        char name[96];
        sc_hw_link_name(r->hw, l->link, name, sizeof name);
        sc_text_add(out, "  %6.1f %%  %6u", 100 * l->fraction, l->alike);
        for (uint32_t j = 0; j < r->n_jobs; j++)
            sc_text_add(out, "  %8.1f %%", 100 * l->load[j] / l->bw);
        sc_text_add(out, "  %s\n", name);
    }
}

/* Whether predictions divide by an oversubscription that rings do not meet. */
static bool predicts_more(const sc_jobs_result *r)
{
    bool more = false;
    for (uint32_t j = 0; j < r->n_jobs; j++)
        more |= r->job[j].p.step_time_s > 1.01 * r->job[j].packed_s;
    return more && r->hw->dim[r->hw->n_dims - 1].oversub > 1;
}

static void head(const sc_report_jobs *s, sc_text *out)
{
    const sc_jobs_result *r = s->r;
    uint32_t used = 0;
    for (uint32_t j = 0; j < r->n_jobs; j++) used += r->job[j].n_units;
    report_line(out, "mix", "%u job%s on %u of %u %ss of %s", r->n_jobs,
                r->n_jobs == 1 ? "" : "s", used, sc_hw_units(r->hw),
                sc_hw_unit_name(r->hw), s->machine);
    report_line(out, "slowdown",
                "%.3f: steps beside the others over steps alone, mean by "
                "weight",
                r->slowdown);
}

void sc_report_jobs_text(const sc_report_jobs *s, sc_text *out)
{
    head(s, out);
    table(s, out);
    sc_text_add(out, "\n");
    for (uint32_t j = 0; j < s->r->n_jobs; j++) why(s, &s->r->job[j], out);
    if (predicts_more(s->r))
        report_line(out, "predict",
                    "has other steps: it supposes that all traffic between "
                    "leaves crosses oversubscribed links");
    links(s, out);
}

/* ---- JSON ----------------------------------------------------------------- */

static void put_link_name(const sc_jobs_result *r, uint32_t link, sc_json *j)
{
    char name[96];
    sc_hw_link_name(r->hw, r->link[link].link, name, sizeof name);
    sc_json_put_string(j, "link", name);
}

static void waits_json(const sc_report_jobs *s, const sc_jobs_part *job,
                       sc_json *j)
{
    sc_json_key(j, "waits_s");
    sc_json_begin(j, '{');
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        if (job->waits_s[c] > 0)
            sc_json_put_double(j, sc_cat_names[c], job->waits_s[c]);
    sc_json_end(j, '}');
    sc_json_key(j, "waits_for");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < job->n_links; i++) {
        sc_json_begin(j, '{');
        put_link_name(s->r, job->link[i], j);
        sc_json_put_double(j, "seconds", job->link_s[i]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void texts(const char *key, const char **text, uint32_t n, sc_json *j)
{
    sc_json_key(j, key);
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) sc_json_string(j, text[i]);
    sc_json_end(j, ']');
}

static sc_status job_json(const sc_report_jobs *s, const sc_jobs_part *job,
                          sc_arena *a, sc_json *j, sc_err *err)
{
    const char *options = sc_job_options(s->asked, &job->job, a);
    if (!options) return sc_error_nomem(err);
    sc_json_begin(j, '{');
    sc_json_put_string(j, "name", job->of->name);
    sc_json_put_double(j, "weight", job->of->weight);
    sc_json_put_string(j, "options", options);
    sc_json_key(j, "nodes");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < job->n_units; i++) sc_json_uint(j, job->unit[i]);
    sc_json_end(j, ']');
    sc_json_put_uint(j, "leaves", job->n_leaves);
    sc_json_put_double(j, "predicted_s", job->p.step_time_s);
    sc_json_put_double(j, "packed_s", job->packed_s);
    sc_json_put_double(j, "alone_s", job->alone_s);
    sc_json_put_double(j, "step_time_s", job->step_s);
    sc_json_put_double(j, "step_least_s", job->least_s);
    sc_json_put_double(j, "step_most_s", job->most_s);
    sc_json_put_uint(j, "steps", job->n_steps);
    sc_json_put_double(j, "slowdown", slowdown(job));
    waits_json(s, job, j);
    texts("assumptions", job->p.assumptions, job->p.n_assumptions, j);
    texts("warnings", job->p.warnings, job->p.n_warnings, j);
    sc_json_end(j, '}');
    return SC_OK;
}

static void links_json(const sc_report_jobs *s, sc_json *j)
{
    const sc_jobs_result *r = s->r;
    sc_json_key(j, "links");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < r->n_links && (s->all_links || i < LISTED); i++) {
        const sc_jobs_link *l = &r->link[i];
        sc_json_begin(j, '{');
        put_link_name(r, i, j);
        sc_json_put_uint(j, "alike", l->alike);
        sc_json_put_double(j, "bytes_per_s", l->bw);
        sc_json_put_double(j, "utilization", l->fraction);
        sc_json_key(j, "jobs");
        sc_json_begin(j, '[');
        for (uint32_t k = 0; k < r->n_jobs; k++) {
            if (!(l->load[k] > 0)) continue;
            sc_json_begin(j, '{');
            sc_json_put_string(j, "name", r->job[k].of->name);
            sc_json_put_double(j, "utilization", l->load[k] / l->bw);
            sc_json_end(j, '}');
        }
        sc_json_end(j, ']');
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void origin(const sc_report_jobs *s, sc_json *j)
{
    sc_json_key(j, "run");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "ops", s->r->n_ops);
    sc_json_put_uint(j, "events", s->r->n_events);
    sc_json_put_double(j, "wall_s", s->wall_s);
    sc_json_put_uint(j, "peak_rss_bytes", s->peak_rss_bytes);
    sc_json_end(j, '}');
    report_provenance(j);
    sc_json_put_uint(j, "seed", s->opts->seed);
    report_hex(j, "cluster_hash", s->r->hw->hash);
    report_inputs(s->input, s->n_inputs, j);
    sc_json_end(j, '}');
}

sc_status sc_report_jobs_json(const sc_report_jobs *s, sc_arena *a, sc_json *j,
                              sc_err *err)
{
    const sc_jobs_result *r = s->r;
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.mix/1");
    sc_json_put_string(j, "machine", s->machine);
    sc_json_put_string(j, "unit", sc_hw_unit_name(r->hw));
    sc_json_put_uint(j, "units", sc_hw_units(r->hw));
    sc_json_put_uint(j, "units_per_leaf", sc_hw_leaf_units(r->hw));
    sc_json_put_string(j, "routes", s->opts->even ? "even" : "hashed");
    sc_json_put_double(j, "slowdown", r->slowdown);
    sc_json_key(j, "jobs");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < r->n_jobs; i++)
        SC_TRY(job_json(s, &r->job[i], a, j, err));
    sc_json_end(j, ']');
    links_json(s, j);
    origin(s, j);
    sc_json_end(j, '}');
    return SC_OK;
}
