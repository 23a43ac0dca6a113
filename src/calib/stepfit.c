/* SPDX-License-Identifier: Apache-2.0 */
/* stepfit.c - fits the parameters of steps, programs and operator networks to
 * measured runs. */
#include "calib/stepfit.h"

#include "calib/row.h"
#include "calib/stats.h"

#include <math.h>
#include <string.h>

/* ---- preparation -------------------------------------------------------------- */

/* Copies the result of an earlier row with the same network and configuration.
 * Rows of transformers are predicted each, because their notes may differ. */
static bool same_graph(const calib_run *run, uint32_t i, sc_valid_row *rows,
                       sc_run *choice)
{
    if (run[i].reason || !run[i].model->net) return false;
    for (uint32_t j = 0; j < i; j++) {
        if (run[j].reason || run[j].config_key != run[i].config_key) continue;
        rows[i] = rows[j];
        choice[i] = choice[j];
        rows[i].id = run[i].id;
        rows[i].measured = rows[i].median = run[i].measured;
        rows[i].error = rows[i].predicted / run[i].measured - 1;
        rows[i].mem_measured = run[i].mem_measured;
        rows[i].counted = false;
        return rows[j].reason == NULL && !run[i].unscored;
    }
    return false;
}

static sc_status predict_all(calib_run *run, sc_arena *a, sc_arena *scratch,
                             calib_fit_set *set, sc_err *err)
{
    for (uint32_t i = 0; i < set->n_rows; i++) {
        if (same_graph(run, i, set->rows, set->choice)) continue;
        SC_TRY(calib_row_predict(
            &run[i], &set->at, SC_ENGINE_FAST, a, scratch, &set->rows[i],
            (calib_row_also){.choice = &set->choice[i]}, err));
    }
    return calib_mark_repeats(set->rows, set->n_rows, a, err);
}

sc_status calib_fit_prepare(calib_run *run, uint32_t n, const sc_cost *at,
                            sc_arena *a, calib_fit_set *out, sc_err *err)
{
    calib_fit_set set = {.at = *at, .n_rows = n};
    set.choice = SC_NEW_N(a, sc_run, n);
    set.rows = SC_NEW_N(a, sc_valid_row, n);
    set.fit = SC_NEW_N(a, calib_fit_row, n);
    set.net = SC_NEW_N(a, calib_fit_row, n);
    set.program = SC_NEW_N(a, calib_fit_row, n);
    if (!set.choice || !set.rows || !set.fit || !set.net || !set.program)
        return sc_error_nomem(err);
    sc_arena scratch;
    sc_arena_init(&scratch, a->limit);
    sc_status s = predict_all(run, a, &scratch, &set, err);
    sc_arena_free(&scratch);
    SC_TRY(s);
    for (uint32_t i = 0; i < n; i++) {
        if (!set.rows[i].counted) continue;
        const calib_fit_row f = {
            .row = &set.rows[i], .run = &run[i], .choice = &set.choice[i]};
        bool net = run[i].model->net != NULL;
        set.rows[i].unfitted = run[i].sw->unfitted;
        if (run[i].sw->n_fitted > 0 && !net) set.program[set.n_programs++] = f;
        if (set.rows[i].unfitted) continue;
        if (net)
            set.net[set.n_graphs++] = f;
        else
            set.fit[set.n++] = f;
    }
    *out = set;
    return SC_OK;
}

/* ---- shares -------------------------------------------------------------------- */

/* A parameter is changed by this fraction to find its effect: enough to exceed
 * the jumps in the prices of single kernels. */
#define NUDGE 0.01

typedef struct prober {
    calib_fit_row *f;
    const sc_cost *at;
    double step_s; /* at `at` */
    sc_arena *scratch;
} prober;

static double nudge(const sc_cost *at, sc_param p)
{
    return at->p[p] * (1 + NUDGE) > sc_params[p].hi ? -NUDGE : NUDGE;
}

static sc_status price(const prober *b, const sc_cost *c, double *step,
                       sc_err *err)
{
    return calib_row_price(b->f->run, b->f->choice, c, b->scratch, step, err);
}

/* Parameters that together change nothing are dropped together. A part of a sum
 * grows either in proportion to p or in proportion to 1 / p. */
static sc_status probe(prober *b, const sc_param *p, uint32_t n, sc_err *err)
{
    sc_cost c = *b->at;
    double step;
    for (uint32_t j = 0; j < n; j++) c.p[p[j]] *= 1 + nudge(b->at, p[j]);
    if (n == 0) return SC_OK;
    SC_TRY(price(b, &c, &step, err));
    if (step == b->step_s) return SC_OK;
    if (n > 1) {
        SC_TRY(probe(b, p, n / 2, err));
        return probe(b, p + n / 2, n - n / 2, err);
    }
    double h = nudge(b->at, p[0]), more = step / b->step_s - 1;
    bool grows = (more > 0) == (h > 0);
    b->f->share[b->f->n_shares++] =
        (calib_share){p[0], grows ? more / h : -more / (1 / (1 + h) - 1)};
    return SC_OK;
}

static bool has_share(const calib_fit_row *f, sc_param p)
{
    for (uint32_t j = 0; j < f->n_shares; j++)
        if (f->share[j].param == p) return true;
    return false;
}

/* Most parameters concern other devices and precisions. Parameters on which the
 * row `before` (NULL: none) depends are varied one by one; the others are
 * varied together first. */
static sc_status find_shares(calib_fit_row *f, const calib_fit_row *before,
                             const sc_param *p, uint32_t n, const sc_cost *at,
                             sc_arena *a, sc_arena *scratch, sc_err *err)
{
    prober b = {.f = f, .at = at, .scratch = scratch};
    sc_param others[SC_N_PARAMS];
    uint32_t n_others = 0;
    if (f->share) return SC_OK;
    SC_TRY(price(&b, at, &b.step_s, err));
    f->log_pred = log(b.step_s);
    f->share = SC_NEW_N(a, calib_share, (size_t)n + 1);
    if (!f->share) return sc_error_nomem(err);
    for (uint32_t j = 0; j < n; j++) {
        if (before && has_share(before, p[j]))
            SC_TRY(probe(&b, &p[j], 1, err));
        else
            others[n_others++] = p[j];
    }
    return probe(&b, others, n_others, err);
}

/* The estimate is at least a twentieth of the step, so that it stays
 * positive. */
static double price_near(const calib_fit_row *f, const sc_cost *at,
                         const sc_cost *c)
{
    double step = 1;
    for (uint32_t j = 0; j < f->n_shares; j++) {
        double s = f->share[j].share;
        double r = c->p[f->share[j].param] / at->p[f->share[j].param];
        step += s > 0 ? s * (r - 1) : -s * (1 / r - 1);
    }
    return f->log_pred + log(fmax(step, 0.05));
}

/* ---- fit ------------------------------------------------------------------- */

typedef struct context {
    const sc_cost *at;
    calib_fit_row **row; /* [n] those in use */
    uint32_t n;
    sc_arena scratch; /* of price_exactly() */
} context;

static sc_status price_all(void *ctx, const sc_cost *c, double *log_pred,
                           sc_err *err)
{
    context *k = ctx;
    (void)err;
    for (uint32_t i = 0; i < k->n; i++)
        log_pred[i] = price_near(k->row[i], k->at, c);
    return SC_OK;
}

static sc_status price_exactly(void *ctx, const sc_cost *c, double *log_pred,
                               sc_err *err)
{
    context *k = ctx;
    for (uint32_t i = 0; i < k->n; i++) {
        double step;
        SC_TRY(calib_row_price(k->row[i]->run, k->row[i]->choice, c,
                               &k->scratch, &step, err));
        log_pred[i] = log(step);
    }
    return SC_OK;
}

double calib_family_weight(double rows)
{
    return CALIB_FAMILY_WEIGHT * fmin(1, rows / CALIB_FAMILY_FULL) / rows;
}

static double family_weight(const context *k, uint32_t i)
{
    double rows = 0;
    for (uint32_t j = 0; j < k->n; j++)
        rows += strcmp(k->row[j]->row->family, k->row[i]->row->family) == 0;
    return calib_family_weight(rows);
}

uint32_t calib_fit_free(sc_param_set set, sc_param *out)
{
    uint32_t n = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        if (sc_params[i].set != set || !(sc_params[i].sd > 0)) continue;
        out[n++] = (sc_param)i;
    }
    return n;
}

calib_fit_row *calib_fit_rows(const calib_fit_set *set, sc_param_set which,
                              uint32_t *n)
{
    switch (which) {
    case SC_SET_GRAPH: *n = set->n_graphs; return set->net;
    case SC_SET_PROGRAM: *n = set->n_programs; return set->program;
    default: *n = set->n; return set->fit;
    }
}

void calib_fit_centre(sc_param_set set, sc_cost *inout)
{
    sc_param p[SC_N_PARAMS];
    uint32_t n = calib_fit_free(set, p);
    for (uint32_t j = 0; j < n; j++) inout->p[p[j]] = sc_params[p[j]].centre;
}

static sc_status shares_of_all(context *k, const sc_param *p, uint32_t n,
                               sc_arena *a, sc_err *err)
{
    sc_arena scratch;
    sc_status s = SC_OK;
    sc_arena_init(&scratch, a->limit);
    for (uint32_t i = 0; i < k->n && s == SC_OK; i++)
        s = find_shares(k->row[i], i > 0 ? k->row[i - 1] : NULL, p, n, k->at, a,
                        &scratch, err);
    sc_arena_free(&scratch);
    return s;
}

/* The problem of fitting `which` to the rows in use; NULL: all. */
static sc_status problem_of(sc_param_set which, calib_fit_set *set,
                            const bool *use, context *k, sc_param *free_params,
                            sc_fit_problem *out, sc_arena *a, sc_err *err)
{
    uint32_t n;
    calib_fit_row *fit = calib_fit_rows(set, which, &n);
    double *log_meas = SC_NEW_N(a, double, (size_t)n + 1);
    double *weight = SC_NEW_N(a, double, (size_t)n + 1);
    *k = (context){.at = &set->at,
                   .row = SC_NEW_N(a, calib_fit_row *, (size_t)n + 1)};
    if (!k->row || !log_meas || !weight) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        if (use && !use[i]) continue;
        log_meas[k->n] = log(fit[i].row->median);
        k->row[k->n++] = &fit[i];
    }
    for (uint32_t i = 0; i < k->n; i++) weight[i] = family_weight(k, i);
    *out = (sc_fit_problem){.n_rows = k->n,
                            .n_free = calib_fit_free(which, free_params),
                            .free = free_params,
                            .log_meas = log_meas,
                            .weight = weight,
                            .model = price_all,
                            .ctx = k};
    return SC_OK;
}

sc_status calib_fit_scan(sc_param_set which, calib_fit_set *set, sc_cost *inout,
                         sc_arena *a, sc_err *err)
{
    /* Narrower priors keep a parameter near values that have an effect. */
    static const double wide = 1;
    sc_param free_params[SC_N_PARAMS];
    sc_fit_problem problem;
    context k;
    SC_TRY(problem_of(which, set, NULL, &k, free_params, &problem, a, err));
    uint32_t n = 0;
    for (uint32_t j = 0; j < problem.n_free; j++)
        if (sc_params[free_params[j]].sd >= wide)
            free_params[n++] = free_params[j];
    problem.n_free = n;
    problem.model = price_exactly;
    sc_arena_init(&k.scratch, a->limit);
    sc_status s = sc_fit_scan(&problem, inout, a, err);
    sc_arena_free(&k.scratch);
    return s;
}

sc_status calib_fit_set_of(sc_param_set which, calib_fit_set *set,
                           const bool *use, sc_cost *inout, sc_fit_result *out,
                           sc_arena *a, sc_err *err)
{
    sc_param free_params[SC_N_PARAMS];
    sc_fit_problem problem;
    context k;
    SC_TRY(problem_of(which, set, use, &k, free_params, &problem, a, err));
    SC_TRY(shares_of_all(&k, free_params, problem.n_free, a, err));
    return sc_fit(&problem, inout, out, a, err);
}
