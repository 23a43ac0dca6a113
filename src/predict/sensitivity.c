/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sensitivity.c - finds what a predicted step depends on most, and what would
 * have to change for it to take another time. Parameters and properties of the
 * machine are changed one at a time, and the fast engine runs the same
 * configuration again.
 */
#include "hw/hw_moved.h"
#include "predict/net.h"

#include <math.h>
#include <string.h>

static const double up = 1.1; /* the change whose effect is measured */

static sc_status clock_of(const sc_prediction *p, const sc_run *run,
                          sc_arena *a, sc_net_clock *out, sc_err *err)
{
    const sc_net_step *g = p->net;
    sc_net_run job = *g->job;
    sc_net_plan plan;
    if (g->layers) {
        predict_memo memo = {
            .a = a, .model = run->model, .sw = run->sw, .hw = run->hw};
        const net_layers x = {run, &memo};
        return predict_net_layers(&x, run->ga, a, out, NULL, err);
    }
    job.hw = run->hw;
    job.cost = run->cost;
    job.unfold = false;
    SC_TRY(sc_net_plan_compile(&job, a, &plan, err));
    return sc_net_plan_clock(&plan, g->slow, false, a, out, err);
}

/* A prediction's step by the fast engine with the machine and parameters of
 * `run`. Without layers, links are not shared. */
static sc_status step_of(const sc_prediction *p, const sc_run *run, sc_arena *a,
                         double *step_s, sc_err *err)
{
    const sc_net_step *g = p->net;
    sc_net_clock clock = {0};
    sc_arena_mark mark = sc_arena_save(a);
    sc_status s = clock_of(p, run, a, &clock, err);
    sc_arena_restore(a, mark);
    double by = exp(p->level);
    *step_s = by * sc_time_to_s(clock.makespan) + p->step_time_s -
              by * sc_time_to_s(g->run.makespan) - by * g->fixed_s +
              by * predict_net_fixed(run, g->job->rules);
    return s;
}

/* ---- what is changed ----------------------------------------------------- */

/* Peak and rates, which sc_predict_inputs() changes. */
#define N_INPUTS ((int)SC_HW_NIC_BW + 1)

/* A run with one change. */
typedef struct moved {
    sc_run run;
    sc_cost cost;
} moved;

static void begin(const sc_prediction *p, moved *m)
{
    m->run = p->run;
    m->run.hw = p->net->job->hw;
    m->cost = *m->run.cost;
    m->run.cost = &m->cost;
}

/* Multiplies a parameter (0..SC_N_PARAMS), or a property numbered after
 * them, by `by` and computes the step. */
static sc_status step_with(const sc_prediction *p, int what, double by,
                           sc_arena *a, double *step_s, sc_err *err)
{
    moved m;
    begin(p, &m);
    sc_arena_mark mark = sc_arena_save(a);
    if (what < (int)SC_N_PARAMS)
        m.cost.p[what] *= by;
    else
        SC_TRY(sc_hw_moved(m.run.hw, (sc_hw_property)(what - (int)SC_N_PARAMS),
                           by, a, &m.run.hw, err));
    sc_status s = step_of(p, &m.run, a, step_s, err);
    sc_arena_restore(a, mark);
    return s;
}

/* The step without any change. */
static sc_status base_of(const sc_prediction *p, sc_arena *a, double *step_s,
                         sc_err *err)
{
    moved m;
    begin(p, &m);
    return step_of(p, &m.run, a, step_s, err);
}

/* ---- how much it matters ------------------------------------------------- */

/* Keeps the largest in descending order; equal ones in order of the table. */
static void keep(sc_sensitivity x, sc_sensitivity *out, uint32_t *n)
{
    uint32_t at = *n;
    while (at > 0 && fabs(x.change) > fabs(out[at - 1].change)) at--;
    if (at == SC_SENSITIVITY_MAX) return;
    if (*n < SC_SENSITIVITY_MAX) (*n)++;
    for (uint32_t i = *n - 1; i > at; i--) out[i] = out[i - 1];
    out[at] = x;
}

static const double least = 1e-4; /* smaller changes are not reported */

sc_status sc_predict_sensitivity(const sc_prediction *p, sc_arena *a,
                                 sc_sensitivity out[SC_SENSITIVITY_MAX],
                                 uint32_t *n, sc_err *err)
{
    double base = 0;
    uint32_t found = 0;
    sc_sensitivity most[SC_SENSITIVITY_MAX];
    SC_TRY(base_of(p, a, &base, err));
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        double v = p->run.cost->p[i], step;
        /* At its upper limit a parameter is lowered instead. */
        bool down = v * up > sc_params[i].hi;
        if (!(v > 0) || (down ? v / up : v * up) < sc_params[i].lo) continue;
        SC_TRY(step_with(p, i, down ? 1 / up : up, a, &step, err));
        double change = down ? base / step - 1 : step / base - 1;
        if (fabs(change) < least) continue;
        keep((sc_sensitivity){sc_params[i].name, change}, most, &found);
    }
    for (uint32_t i = 0; i < found; i++) out[i] = most[i];
    *n = found;
    return SC_OK;
}

/* ---- shares of all parameters -------------------------------------------- */

/* A parameter is changed by this fraction: enough to exceed the jumps in the
 * prices of single kernels. */
static const double nudge = 0.01;

/* Smaller shares are dropped: the largest standard error of a parameter makes
 * them 0.5 % of the step. */
static const double negligible = 0.005;

typedef struct prober {
    const sc_prediction *p;
    double base;
    sc_share *share;
    uint32_t n;
    sc_arena *a;
} prober;

static double nudged(const sc_cost *c, sc_param k)
{
    return c->p[k] * (1 + nudge) > sc_params[k].hi ? 1 - nudge : 1 + nudge;
}

/* Parameters that together change nothing are dropped together. */
static sc_status probe(prober *x, const sc_param *k, uint32_t n, sc_err *err)
{
    moved m;
    double step = 0;
    if (n == 0) return SC_OK;
    begin(x->p, &m);
    for (uint32_t i = 0; i < n; i++) m.cost.p[k[i]] *= nudged(&m.cost, k[i]);
    SC_TRY(step_of(x->p, &m.run, x->a, &step, err));
    if (!(step > 0) || fabs(log(step / x->base)) < negligible * nudge)
        return SC_OK;
    if (n > 1) {
        SC_TRY(probe(x, k, n / 2, err));
        return probe(x, k + n / 2, n - n / 2, err);
    }
    double by = log(nudged(x->p->run.cost, k[0]));
    x->share[x->n++] = (sc_share){k[0], log(step / x->base) / by};
    return SC_OK;
}

sc_status sc_predict_shares(sc_prediction *p, sc_arena *a, sc_err *err)
{
    prober x = {.p = p, .a = a};
    sc_param k[SC_N_PARAMS];
    uint32_t n = 0;
    double step = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++)
        if (sc_params[i].sd > 0 && p->run.cost->p[i] > 0) k[n++] = (sc_param)i;
    x.share = SC_NEW_N(a, sc_share, (size_t)n + 1);
    if (!x.share) return sc_error_nomem(err);
    SC_TRY(base_of(p, a, &x.base, err));
    SC_TRY(probe(&x, k, n, err));
    SC_TRY(step_with(p, (int)SC_N_PARAMS + SC_HW_NIC_BW, 1 - nudge, a, &step,
                     err));
    p->traits.share = x.share;
    p->traits.n_shares = x.n;
    p->traits.network = fmax(0, -log(step / x.base) / log(1 - nudge));
    return SC_OK;
}

/* ---- what would explain another step ------------------------------------- */

/* The factor in [lo, hi] with which the step takes `want`; NaN: there is none.
 * The step is monotonic in the factor except for jumps, which are detected if
 * possible. */
static sc_status solve(const sc_prediction *p, int what, double lo, double hi,
                       double want, sc_arena *a, double *out, sc_err *err)
{
    double at_lo, at_hi, mid = 1, at = 0;
    *out = NAN;
    SC_TRY(step_with(p, what, lo, a, &at_lo, err));
    SC_TRY(step_with(p, what, hi, a, &at_hi, err));
    if (!((at_lo - want) * (at_hi - want) <= 0) || at_lo == at_hi) return SC_OK;
    bool falls = at_lo > at_hi;
    for (int i = 0; i < 24 && hi / lo > 1 + 1e-6; i++) {
        mid = sqrt(lo * hi);
        SC_TRY(step_with(p, what, mid, a, &at, err));
        if ((at > want) == falls)
            lo = mid;
        else
            hi = mid;
    }
    SC_TRY(step_with(p, what, mid, a, &at, err));
    if (fabs(at / want - 1) < 1e-3) *out = mid; /* not a jump over `want` */
    return SC_OK;
}

sc_status sc_predict_what_if(const sc_prediction *p, const char *name,
                             double ratio, sc_arena *a, double *factor,
                             sc_err *err)
{
    static const double most = 4;
    double base = 0, lo = 1 / most, hi = most;
    int what = sc_param_find(name);
    for (int i = 0; what < 0 && i < N_INPUTS; i++)
        if (strcmp(name, sc_hw_property_names[i]) == 0)
            what = (int)SC_N_PARAMS + i;
    *factor = NAN;
    if (what < 0 || !(ratio > 0)) return SC_OK;
    if (what < (int)SC_N_PARAMS) {
        double v = p->run.cost->p[what];
        if (!(v > 0)) return SC_OK;
        lo = fmax(lo, sc_params[what].lo / v);
        hi = fmin(hi, sc_params[what].hi / v);
    }
    SC_TRY(base_of(p, a, &base, err));
    return solve(p, what, lo, hi, base * ratio, a, factor, err);
}

sc_status sc_predict_inputs(const sc_prediction *p, double ratio, sc_arena *a,
                            sc_input out[SC_INPUTS_MAX], uint32_t *n,
                            sc_err *err)
{
    double base = 0;
    sc_input found[N_INPUTS];
    uint32_t k = 0;
    SC_TRY(base_of(p, a, &base, err));
    for (int i = 0; i < N_INPUTS; i++) {
        double step = 0;
        sc_input x = {.name = sc_hw_property_names[i]};
        SC_TRY(step_with(p, (int)SC_N_PARAMS + i, up, a, &step, err));
        x.change = step / base - 1;
        if (fabs(x.change) < least) continue;
        SC_TRY(sc_predict_what_if(p, x.name, ratio, a, &x.factor, err));
        uint32_t at = k++;
        for (; at > 0 && fabs(x.change) > fabs(found[at - 1].change); at--)
            found[at] = found[at - 1];
        found[at] = x;
    }
    memcpy(out, found, k * sizeof *out);
    *n = k;
    return SC_OK;
}
