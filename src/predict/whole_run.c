/* SPDX-License-Identifier: Apache-2.0 */
/* whole_run.c - a run of many tokens: its steps, and what failures add to them. */
#include "predict/internal.h"

#include <math.h>
#include <stdio.h>

#define DAY  86400.0
#define HOUR 3600.0

/* Simulated runs, fewer if they have many failures; and the seed, so that a
 * prediction is the same whenever it is made. */
enum { RUNS = 1000, FEWEST_RUNS = 50, MOST_FAILURES = 4000000, SEED = 1 };

/* Waits for repairs that are accepted if nothing is said, as a fraction. */
#define USUAL_WAITS 0.001

static sc_pos option(const sc_job *job, sc_arena *a)
{
    return sc_pos_option(a, "--failures", job->failure_table);
}

/* ---- options ------------------------------------------------------------- */

sc_status predict_check_run(const sc_job *job, sc_arena *a, sc_err *err)
{
    static const char *const need[] = {"--restart", "--repair", "--spares",
                                       "--availability"};
    const bool given[] = {job->restart_s > 0, job->repair_s > 0,
                          job->spares != SC_INFER, job->availability > 0};
    for (size_t i = 0; i < SC_COUNT(need) && !job->failure_table; i++)
        if (given[i])
            return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(need[i]),
                            "add --failures NAME", "no failures are given");
    if (job->electricity >= 0 && !job->purchase)
        return sc_error(err, SC_EINPUT, SC_C_MISSING,
                        sc_pos_file("--electricity"), "add --purchase NAME",
                        "a rented device includes its energy");
    if (!job->failure_table) return SC_OK;
    if (job->tokens == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, option(job, a),
                        "add --tokens N", "the length of the run is not known");
    if (job->spares != SC_INFER && job->availability > 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_file("--availability"), "leave out one of them",
                        "--spares states the number of spare nodes");
    return SC_OK;
}

bool sc_job_fails(const sc_job *job)
{
    return job->failure_table != NULL;
}

/* ---- the job ------------------------------------------------------------- */

/* A step of the prediction has its part of job->checkpoint_every. */
static sc_goodput_job job_of(const sc_job *job, const sc_prediction *p,
                             const sc_failures *f)
{
    const sc_hw *hw = p->run.hw;
    const sc_net_save *c = &p->net->plan.save;
    double every = c->every;
    double step = p->step_time_s,
           save = c->copy_s + (c->async ? 0 : c->write_s);
    if (every > 0) {
        save = fmin(save, every * step);
        step -= save / every;
    }
    return (sc_goodput_job){
        .work_s = p->whole_run.steps * step,
        .step_s = step,
        .failure_rate = sc_failures_rate(f, hw, false),
        .replaced_rate = sc_failures_rate(f, hw, true),
        .planned_rate = sc_failures_planned(f, hw),
        .save_s = save,
        .lag_s = c->async
                     ? fmin(c->write_s, every > 0 ? every * step : INFINITY)
                     : 0,
        .every_s = every * step,
        .restart_s = job->restart_s > 0 ? job->restart_s : f->restart_s,
        .repair_s = job->repair_s > 0 ? job->repair_s : f->repair_s,
        .slow_rate = f->slow_rate * sc_hw_count(hw, SC_COMP_HOST),
        .slow_s = f->slow_s,
        .slowdown = fmax(1, f->slowdown)};
}

static sc_status complete(const sc_job *job, sc_failing_run *x, sc_arena *a,
                          sc_err *err)
{
    double waits = job->availability > 0 ? 1 - job->availability : USUAL_WAITS;
    if (x->job.restart_s <= 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, option(job, a),
                        "add --restart TIME",
                        "the table does not say how long a restart takes");
    if (x->job.replaced_rate > 0 && x->job.repair_s <= 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, option(job, a),
                        "add --repair TIME",
                        "the table does not say how long a repair takes");
    x->job.spares = job->spares == SC_INFER ? sc_goodput_spares(&x->job, waits)
                                            : (uint32_t)job->spares;
    if (sc_goodput_expect(&x->job, &x->expected) == SC_OK) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, option(job, a),
                    "fewer devices, a shorter --restart or checkpoints more "
                    "often",
                    "the run never ends: it fails every %.3g s, a restart "
                    "takes %.3g s",
                    1 / x->job.failure_rate, x->job.restart_s);
}

/* ---- notes --------------------------------------------------------------- */

static sc_status notes(const sc_job *job, const sc_failing_run *x,
                       sc_prediction *p, sc_arena *a, sc_err *err)
{
    const sc_net_save *c = &p->net->plan.save;
    char restart[32], repair[32];
    sc_unit_print_short(x->job.restart_s, SC_U_TIME, restart, sizeof restart);
    sc_unit_print_short(x->job.repair_s, SC_U_TIME, repair, sizeof repair);
    if (c->every <= 0) {
        SC_TRY(predict_assume(
            p,
            sc_sprintf(a,
                       "a checkpoint of %.4g GB every %.0f steps, where "
                       "the run is shortest: %.3g s to copy to the "
                       "host, %.3g s to write (%.4g GB/s)%s",
                       c->bytes / 1e9, x->steps_between, c->copy_s, c->write_s,
                       c->bytes / c->write_s / 1e9,
                       c->async ? ", while training goes on" : ""),
            a, err));
    }
    if (job->restart_s <= 0)
        SC_TRY(predict_assume(
            p,
            sc_sprintf(a, "a restart takes %s (%s)", restart, x->table->name),
            a, err));
    if (x->job.replaced_rate <= 0) return SC_OK;
    if (job->repair_s <= 0)
        SC_TRY(
            predict_assume(p,
                           sc_sprintf(a, "a failed node is repaired in %s (%s)",
                                      repair, x->table->name),
                           a, err));
    if (job->spares == SC_INFER)
        SC_TRY(predict_assume(
            p,
            sc_sprintf(
                a, "%u spare node%s: the fewest for an availability of %g %%",
                x->job.spares, x->job.spares == 1 ? "" : "s",
                100 * (job->availability > 0 ? job->availability
                                             : 1 - USUAL_WAITS)),
            a, err));
    return SC_OK;
}

/* ---- the run ------------------------------------------------------------- */

static sc_status simulate(sc_failing_run *x, sc_arena *a, sc_err *err)
{
    double most = MOST_FAILURES / fmax(1, x->expected.failures);
    uint32_t n = (uint32_t)fmin(RUNS, fmax(FEWEST_RUNS, most));
    double *total = SC_NEW_N(a, double, n);
    if (!total) return sc_error_nomem(err);
    if (sc_goodput_simulate(&x->job, SEED, n, total) != SC_OK) return SC_OK;
    sc_sort(total, n);
    x->simulated = n;
    x->low_s = sc_quantile_sorted(total, n, 0.1);
    x->high_s = sc_quantile_sorted(total, n, 0.9);
    return SC_OK;
}

/* The end of an interval of a product of two independent factors, one end of
 * each of which is given over its centre. */
static double both(double x, double y)
{
    return sqrt(log(x) * log(x) + log(y) * log(y));
}

/* Failures and checkpoints take time, and power as if nothing but waiting were
 * done in restarts and waits. */
static void add(const sc_failing_run *x, sc_prediction *p)
{
    const sc_goodput *g = &x->expected;
    const double *part = g->part_s;
    double step = p->step_time_s, days = g->total_s / DAY;
    double devices =
        (double)p->run.hw->n_devices + (double)x->job.spares * x->host_size;
    double idle =
        part[SC_GP_RESTARTS] + part[SC_GP_PLANNED] + part[SC_GP_WAITS];
    double watts = p->energy_j_per_step / step;
    p->whole_run.days = days;
    p->whole_run.days_low =
        days * exp(-both(p->step_time_low_s / step, x->low_s / g->total_s));
    p->whole_run.days_high =
        days * exp(both(p->step_time_high_s / step, x->high_s / g->total_s));
    p->whole_run.device_hours = g->total_s / HOUR * devices;
    p->whole_run.energy_j =
        watts * (g->total_s - idle) + predict_idle_watts(&p->run) * idle;
    p->whole_run.cost_usd = predict_run_usd(p, x->job.spares, g->total_s);
}

static sc_status fail(const sc_job *job, sc_arena *a, sc_prediction *p,
                      sc_err *err)
{
    sc_failing_run *x = SC_NEW(a, sc_failing_run);
    if (!x) return sc_error_nomem(err);
    SC_TRY(sc_failures_find(job->failure_table, option(job, a), a, &x->table,
                            err));
    x->job = job_of(job, p, x->table);
    x->low_s = x->high_s = NAN;
    x->days_without = p->whole_run.days;
    x->host_size = p->run.hw->host_size;
    SC_TRY(complete(job, x, a, err));
    x->steps_between = round(x->expected.every_s / x->job.step_s);
    x->goodput = x->job.work_s / x->expected.total_s;
    if (!job->brief) SC_TRY(simulate(x, a, err));
    if (!job->brief) SC_TRY(notes(job, x, p, a, err));
    add(x, p);
    p->whole_run.failing = x;
    return SC_OK;
}

/* The interval is that of published runs, which has the errors of steps. */
static void publish(sc_prediction *p)
{
    const sc_run_level *l = &p->run.cost->run_level;
    double f = l->rows > 0 ? l->factor : NAN;
    p->whole_run.published.days = p->whole_run.days * f;
    p->whole_run.published.days_low = p->whole_run.days * f * exp(l->low);
    p->whole_run.published.days_high = p->whole_run.days * f * exp(l->high);
    p->whole_run.published.device_hours = p->whole_run.device_hours * f;
    p->whole_run.published.energy_j = p->whole_run.energy_j * f;
    p->whole_run.published.cost_usd = p->whole_run.cost_usd * f;
}

/* As many steps as the tokens need, all equal to the predicted one. */
sc_status predict_whole_run(const sc_job *job, double tokens, sc_arena *a,
                            sc_prediction *p, sc_err *err)
{
    double n = job->tokens > 0 ? (double)job->tokens / tokens : NAN;
    SC_TRY(predict_check_run(job, a, err));
    if (job->tokens > 0 && p->run.seq <= 1)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--tokens"),
                        "leave it out", "samples of %.60s are not tokens",
                        p->run.model->name);
    p->whole_run.steps = n;
    p->whole_run.days = n * p->step_time_s / DAY;
    p->whole_run.days_low = n * p->step_time_low_s / DAY;
    p->whole_run.days_high = n * p->step_time_high_s / DAY;
    p->whole_run.device_hours =
        n * p->step_time_s / HOUR * p->run.hw->n_devices;
    p->whole_run.energy_j = n * p->energy_j_per_step;
    p->whole_run.cost_usd = n * p->cost_usd_per_step;
    p->whole_run.failing = NULL;
    if (job->failure_table) SC_TRY(fail(job, a, p, err));
    publish(p);
    return SC_OK;
}
