/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - predicts jobs, runs them alone and side by side, and compares. */
#include "base/stats.h"
#include "jobs/combine.h"
#include "jobs/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 4 /* most runs until every job has run long enough */

/* ---- one job -------------------------------------------------------------- */

/* Places errors of options in the job's part of the file. */
static sc_status locate(const sc_jobs_entry *job, uint32_t from, sc_status s,
                        sc_err *err)
{
    for (uint32_t i = from; s != SC_OK && i < err->n; i++) {
        sc_diag *d = &err->d[i];
        char key[64];
        if (d->line > 0) continue;
        snprintf(key, sizeof key, "%s",
                 strncmp(d->file, "--", 2) == 0 ? d->file + 2 : "");
        key[strcspn(key, " ")] = '\0';
        sc_pos pos = sc_jobs_pos(job, key);
        if (!pos.file) continue;
        snprintf(d->file, sizeof d->file, "%s", pos.file);
        d->line = pos.line;
        d->col = pos.col;
    }
    return s;
}

static sc_status does_not_fit(const sc_jobs_part *job, sc_err *err)
{
    const sc_prediction *p = &job->p;
    double most = 0;
    char hint[120] = "";
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (p->memory[i].peak > most) most = p->memory[i].peak;
    if (p->n_suggestions > 0 && p->suggestion[0].fits)
        snprintf(hint, sizeof hint, "predicted alone, it fits with %.90s",
                 p->suggestion[0].change);
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_jobs_pos(job->of, NULL),
                    hint[0] ? hint : "give it more nodes",
                    "job %.40s does not fit in memory: %.1f of %.1f GiB",
                    job->of->name, most / SC_GIB,
                    p->memory_capacity_bytes / SC_GIB);
}

/* Predicts a job on its units alone, as `stepcast predict` does. */
static sc_status predict(sc_jobs_part *job, const sc_hw *hw, sc_arena *a,
                         sc_hw_part *part, sc_err *err)
{
    const sc_inputs *in = &job->in;
    const sc_node *at = job->of->nodes;
    SC_TRY(sc_hw_part_of(hw, job->unit, job->n_units, at->pos, a, part, err));
    SC_TRY(sc_predict(&job->job, part->hw, in->model, in->sw, in->cost, a,
                      &job->p, err));
    if (!job->p.fits) return does_not_fit(job, err);
    sc_job_resolve(&job->job, &job->p.run, &job->job);
    return SC_OK;
}

static sc_status lower(const sc_jobs_part *job, const sc_hw *hw,
                       const sc_hw_part *part, const sc_jobs_opts *o,
                       sc_arena *a, sc_site_step *out, sc_err *err)
{
    sc_net_site *site = SC_NEW(a, sc_net_site);
    if (!site) return sc_error_nomem(err);
    *site = (sc_net_site){hw, part->device, o->seed, o->even};
    return sc_predict_site(&job->of->job, &job->p, part->apart, site, a, out,
                           err);
}

static sc_status run_alone(const sc_jobs_part *job, const sc_site_step *step,
                           sc_arena *a, jobs_line *l, sc_result *r,
                           double *step_s, sc_err *err)
{
    sc_graph g;
    sc_sim_opts o;
    *l = (jobs_line){.step = step, .name = job->of->name, .n = 1};
    SC_TRY(jobs_combine(l, 1, a, &g, &o, err));
    SC_TRY(sc_sim_run(&g, &o, a, r, err));
    *step_s = sc_time_to_s(r->end[l->end[0]] - r->end[l->begin[0]]);
    return SC_OK;
}

/* Whether the units are the first ones of the machine. */
static bool is_packed(const sc_jobs_part *job)
{
    for (uint32_t i = 0; i < job->n_units; i++)
        if (job->unit[i] != i) return false;
    return true;
}

/* The step on the first units of the machine. */
static sc_status packed(sc_jobs_part *job, const sc_hw *hw,
                        const sc_jobs_opts *o, sc_arena *a, sc_err *err)
{
    sc_hw_part part;
    sc_site_step step;
    jobs_line l;
    sc_result r;
    sc_err none;
    job->packed_s = job->alone_s;
    if (is_packed(job)) return SC_OK;
    job->packed_s = NAN;
    uint32_t *unit = SC_NEW_N(a, uint32_t, job->n_units);
    if (!unit) return sc_error_nomem(err);
    for (uint32_t i = 0; i < job->n_units; i++) unit[i] = i;
    sc_err_init(&none);
    if (sc_hw_part_of(hw, unit, job->n_units, sc_pos_none(), a, &part, &none) ||
        part.hw->device != job->p.run.hw->device)
        return SC_OK;
    SC_TRY(lower(job, hw, &part, o, a, &step, err));
    return run_alone(job, &step, a, &l, &r, &job->packed_s, err);
}

static sc_status prepare(jobs_run *x, uint32_t j, sc_err *err)
{
    sc_jobs_part *job = &x->job[j];
    jobs_alone *alone = &x->alone[j];
    sc_hw_part part;
    job->job = job->of->job;
    SC_TRY(predict(job, x->hw, x->a, &part, err));
    SC_TRY(lower(job, x->hw, &part, x->o, x->a, &alone->step, err));
    SC_TRY(run_alone(job, &alone->step, x->a, &alone->line, &alone->run,
                     &job->alone_s, err));
    return packed(job, x->hw, x->o, x->a, err);
}

/* ---- all jobs ------------------------------------------------------------- */

static sc_status too_many(const jobs_run *x, uint64_t n, sc_err *err)
{
    uint32_t most = 0;
    for (uint32_t j = 0; j < x->n; j++)
        if (x->line[j].n > x->line[most].n) most = j;
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                    sc_jobs_pos(x->job[most].of, NULL),
                    "use fewer steps, or jobs whose steps differ less",
                    "%u steps of job %.40s meet %u of the longest: %llu "
                    "operations, more than %llu",
                    x->line[most].n, x->job[most].of->name, x->o->steps,
                    (unsigned long long)n, (unsigned long long)SC_JOBS_OPS);
}

/* Sets the numbers of steps so that every job runs until the longest has run its
 * steps, if they take as long as `step_s`. */
static sc_status count_steps(jobs_run *x, const double *step_s, sc_err *err)
{
    double until = 0;
    uint64_t ops = 0;
    for (uint32_t j = 0; j < x->n; j++)
        until = fmax(until, x->job[j].of->start_s + x->o->steps * step_s[j]);
    for (uint32_t j = 0; j < x->n; j++) {
        double n = ceil((until - x->job[j].of->start_s) / step_s[j] - 1e-6);
        jobs_line *l = &x->line[j];
        l->n = (uint32_t)fmin(fmax(n, x->line[j].n), 1e9);
        ops += l->n * ((uint64_t)l->step->graph.n_ops + 3);
    }
    return ops > SC_JOBS_OPS ? too_many(x, ops, err) : SC_OK;
}

/* The time during which all jobs run steps. */
static void window(const jobs_run *x, sc_time *from, sc_time *to)
{
    *from = 0;
    *to = SC_TIME_MAX;
    for (uint32_t j = 0; j < x->n; j++) {
        const jobs_line *l = &x->line[j];
        sc_time begin = x->run.end[l->begin[0]];
        sc_time end = x->run.end[l->end[l->n - 1]];
        if (begin > *from) *from = begin;
        if (end < *to) *to = end;
    }
}

/* Measures the steps of a job that lie in the window; false: there is none. */
static bool measure(jobs_run *x, uint32_t j, sc_time from, sc_time to)
{
    const jobs_line *l = &x->line[j];
    sc_jobs_part *job = &x->job[j];
    x->n_steps[j] = 0;
    for (uint32_t s = 0; s < l->n; s++) {
        sc_time begin = x->run.end[l->begin[s]], end = x->run.end[l->end[s]];
        if (begin < from || end > to) continue;
        if (x->n_steps[j] == 0) x->first[j] = s;
        x->took[x->n_steps[j]++] = sc_time_to_s(end - begin);
    }
    job->n_steps = x->n_steps[j];
    if (job->n_steps == 0) return false;
    double *sorted = x->took;
    job->step_s = sc_quantile(sorted, job->n_steps, 0.5);
    job->least_s = sorted[0];
    job->most_s = sorted[job->n_steps - 1];
    return true;
}

static sc_status run_all(jobs_run *x, sc_err *err)
{
    uint32_t most = 1;
    sc_time from, to;
    bool all = true;
    SC_TRY(jobs_combine(x->line, x->n, x->a, &x->graph, &x->opts, err));
    SC_TRY(sc_sim_run(&x->graph, &x->opts, x->a, &x->run, err));
    for (uint32_t j = 0; j < x->n; j++)
        if (x->line[j].n > most) most = x->line[j].n;
    if (!(x->took = SC_NEW_N(x->a, double, most))) return sc_error_nomem(err);
    window(x, &from, &to);
    for (uint32_t j = 0; j < x->n; j++) all &= measure(x, j, from, to);
    x->long_enough = all;
    return SC_OK;
}

/* The mean step of a job in the whole run. */
static double mean_step(const jobs_run *x, uint32_t j)
{
    const jobs_line *l = &x->line[j];
    sc_time took = x->run.end[l->end[l->n - 1]] - x->run.end[l->begin[0]];
    return sc_time_to_s(took) / l->n;
}

/* Whether the job with the fewest measured steps of the longest has enough. */
static bool enough(const jobs_run *x, const double *step_s)
{
    uint32_t longest = 0;
    for (uint32_t j = 1; j < x->n; j++)
        if (step_s[j] > step_s[longest]) longest = j;
    return x->long_enough && x->n_steps[longest] + 1 >= x->o->steps;
}

static sc_status run_rounds(jobs_run *x, sc_err *err)
{
    double *step_s = SC_NEW_N(x->a, double, x->n);
    if (!step_s) return sc_error_nomem(err);
    for (uint32_t j = 0; j < x->n; j++) step_s[j] = x->job[j].alone_s;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        SC_TRY(count_steps(x, step_s, err));
        sc_arena_mark mark = sc_arena_save(x->a);
        SC_TRY(run_all(x, err));
        for (uint32_t j = 0; j < x->n; j++) step_s[j] = mean_step(x, j);
        if (enough(x, step_s)) return SC_OK;
        if (round + 1 < ROUNDS) sc_arena_restore(x->a, mark);
    }
    for (uint32_t j = 0; j < x->n; j++) (void)measure(x, j, 0, SC_TIME_MAX);
    return SC_OK;
}

static void sum_up(const jobs_run *x, sc_jobs_result *out)
{
    double sum = 0, weights = 0;
    for (uint32_t j = 0; j < x->n; j++) {
        const sc_jobs_part *job = &x->job[j];
        sum += job->of->weight * job->step_s / job->alone_s;
        weights += job->of->weight;
    }
    out->slowdown = sum / weights;
    out->n_ops = x->graph.n_ops;
    out->n_events = x->run.n_events;
}

sc_status sc_jobs_run(sc_jobs_part *job, uint32_t n_jobs, const sc_hw *hw,
                      const sc_jobs_opts *o, sc_arena *a, sc_jobs_result *out,
                      sc_err *err)
{
    jobs_run x = {.job = job, .n = n_jobs, .hw = hw, .o = o, .a = a};
    sc_jobs_result r = {.hw = hw, .n_jobs = n_jobs, .job = job};
    x.alone = SC_NEW_N(a, jobs_alone, n_jobs);
    x.line = SC_NEW_N(a, jobs_line, n_jobs);
    x.n_steps = SC_NEW_N(a, uint32_t, n_jobs);
    x.first = SC_NEW_N(a, uint32_t, n_jobs);
    if (!x.alone || !x.line || !x.n_steps || !x.first)
        return sc_error_nomem(err);
    for (uint32_t j = 0; j < n_jobs; j++) {
        uint32_t from = err->n;
        SC_TRY(locate(job[j].of, from, prepare(&x, j, err), err));
        x.line[j] = (jobs_line){.step = &x.alone[j].step,
                                .name = job[j].of->name,
                                .n = 1,
                                .start = sc_time_from_s(job[j].of->start_s)};
    }
    SC_TRY(run_rounds(&x, err));
    SC_TRY(jobs_links(&x, &r, err));
    sum_up(&x, &r);
    *out = r;
    return SC_OK;
}
