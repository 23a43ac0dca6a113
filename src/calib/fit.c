/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levenberg-Marquardt in log parameters with priors and soft-L1 losses.
 *
 * rho(r) = 2 (sqrt(1 + (r / soft)^2) - 1): a row of weight 1 counts like a
 * measurement with standard deviation `soft` while it fits, and linearly once
 * it does not.  A step is taken only if it lowers the cost, so models that
 * jump (discrete choices) are safe; where a fine difference step stalls, a
 * coarse one looks across the jumps.
 */
#include "calib/calib.h"

#include <math.h>
#include <string.h>

enum { MAX_FREE = 64, MAX_ITERATIONS = 200, MAX_RETRIES = 14 };

typedef struct fit {
    const sc_fit_problem *p;
    sc_cost *c; /* working copy */
    uint32_t n; /* free parameters */
    double soft, prior;
    double x[MAX_FREE], x0[MAX_FREE], lo[MAX_FREE], hi[MAX_FREE];
    double *r, *trial;            /* [n_rows] residuals */
    double *j;                    /* [n][n_rows] */
    double h[MAX_FREE][MAX_FREE]; /* half the Gauss-Newton Hessian */
    double g[MAX_FREE];           /* half the gradient */
} fit;

/* ---- small linear algebra --------------------------------------------------- */

/* In place lower Cholesky factor; false: not positive definite. */
static bool cholesky(uint32_t n, double a[MAX_FREE][MAX_FREE])
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k <= i; k++) {
            double s = a[i][k];
            for (uint32_t l = 0; l < k; l++) s -= a[i][l] * a[k][l];
            if (i != k) {
                a[i][k] = s / a[k][k];
                continue;
            }
            if (!(s > 0) || !isfinite(s)) return false;
            a[i][i] = sqrt(s);
        }
    }
    return true;
}

static void solve(uint32_t n, double l[MAX_FREE][MAX_FREE], double *b)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) b[i] -= l[i][k] * b[k];
        b[i] /= l[i][i];
    }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t k = i + 1; k < n; k++) b[i] -= l[k][i] * b[k];
        b[i] /= l[i][i];
    }
}

/* ---- cost -------------------------------------------------------------------- */

static double row_weight(const fit *f, uint32_t i)
{
    return f->p->weight ? f->p->weight[i] : 1;
}

static sc_status residuals(fit *f, const double *x, double *r, sc_err *err)
{
    for (uint32_t j = 0; j < f->n; j++) f->c->p[f->p->free[j]] = exp(x[j]);
    SC_TRY(f->p->model(f->p->ctx, f->c, r, err));
    for (uint32_t i = 0; i < f->p->n_rows; i++) r[i] -= f->p->log_meas[i];
    return SC_OK;
}

/* The cost is infinite if the model gives no finite number. */
static double total_cost(const fit *f, const double *x, const double *r)
{
    double sum = 0;
    for (uint32_t i = 0; i < f->p->n_rows; i++) {
        double w = row_weight(f, i), z = r[i] / f->soft;
        if (w > 0) sum += w * 2 * (sqrt(1 + z * z) - 1);
    }
    for (uint32_t j = 0; j < f->n; j++) {
        double d = (x[j] - f->x0[j]) / sc_params[f->p->free[j]].sd;
        sum += f->prior * d * d;
    }
    return isfinite(sum) ? sum : INFINITY;
}

/* Derivatives are forward differences, or backward ones next to an upper
 * bound. */
static sc_status jacobian(fit *f, double step, sc_err *err)
{
    uint32_t m = f->p->n_rows;
    double x[MAX_FREE];
    memcpy(x, f->x, sizeof(x));
    for (uint32_t j = 0; j < f->n; j++) {
        double h = f->x[j] + step > f->hi[j] ? -step : step;
        double *col = f->j + (size_t)j * m;
        x[j] = f->x[j] + h;
        SC_TRY(residuals(f, x, col, err));
        x[j] = f->x[j];
        for (uint32_t i = 0; i < m; i++) {
            col[i] = (col[i] - f->r[i]) / h;
            if (!isfinite(col[i])) col[i] = 0;
        }
    }
    return SC_OK;
}

/* Weight of row i in the quadratic model of the loss. */
static double curvature(const fit *f, uint32_t i)
{
    double z = f->r[i] / f->soft;
    return row_weight(f, i) / sqrt(1 + z * z) / (f->soft * f->soft);
}

static void normal_equations(fit *f)
{
    uint32_t m = f->p->n_rows;
    memset(f->h, 0, sizeof(f->h));
    memset(f->g, 0, sizeof(f->g));
    for (uint32_t a = 0; a < f->n; a++) {
        const double *ja = f->j + (size_t)a * m;
        for (uint32_t i = 0; i < m; i++) {
            double w = curvature(f, i) * ja[i];
            if (w == 0) continue;
            f->g[a] += w * f->r[i];
            for (uint32_t b = 0; b <= a; b++)
                f->h[a][b] += w * f->j[(size_t)b * m + i];
        }
        double sd = sc_params[f->p->free[a]].sd;
        f->h[a][a] += f->prior / (sd * sd);
        f->g[a] += f->prior * (f->x[a] - f->x0[a]) / (sd * sd);
        for (uint32_t b = 0; b < a; b++) f->h[b][a] = f->h[a][b];
    }
}

/* ---- steps --------------------------------------------------------------------- */

static bool pinned(const fit *f, uint32_t j)
{
    return (f->x[j] >= f->hi[j] && f->g[j] < 0) ||
           (f->x[j] <= f->lo[j] && f->g[j] > 0);
}

/* Computes a damped step to `x`. Parameters whose step would cross a bound do
 * not move. */
static bool propose(const fit *f, double lambda, double *x)
{
    double a[MAX_FREE][MAX_FREE], b[MAX_FREE];
    for (uint32_t i = 0; i < f->n; i++) {
        bool fixed = pinned(f, i);
        b[i] = fixed ? 0 : -f->g[i];
        for (uint32_t k = 0; k < f->n; k++) {
            bool off = fixed || pinned(f, k);
            a[i][k] = off ? (i == k ? 1 : 0) : f->h[i][k];
        }
        if (!fixed) a[i][i] *= 1 + lambda;
    }
    if (!cholesky(f->n, a)) return false;
    solve(f->n, a, b);
    for (uint32_t i = 0; i < f->n; i++) {
        double v = f->x[i] + b[i];
        x[i] = v < f->lo[i] ? f->lo[i] : v > f->hi[i] ? f->hi[i] : v;
    }
    return true;
}

/* Takes one step that lowers the cost; *moved is false if no damping gives
 * one. */
static sc_status improve(fit *f, double *lambda, double *cost, bool *moved,
                         sc_err *err)
{
    double x[MAX_FREE] = {0};
    *moved = false;
    for (int t = 0; t < MAX_RETRIES && !*moved; t++) {
        double c = INFINITY;
        if (propose(f, *lambda, x)) {
            SC_TRY(residuals(f, x, f->trial, err));
            c = total_cost(f, x, f->trial);
        }
        if (c >= *cost) {
            *lambda = *lambda * 4 + 1e-9;
            continue;
        }
        memcpy(f->x, x, f->n * sizeof(*x));
        memcpy(f->r, f->trial, f->p->n_rows * sizeof(*f->r));
        *cost = c;
        *lambda /= 5;
        *moved = true;
    }
    return SC_OK;
}

static sc_status descend(fit *f, double step, double *cost,
                         uint32_t *iterations, sc_err *err)
{
    double lambda = 1e-3;
    bool moved = true;
    while (moved && *iterations < MAX_ITERATIONS) {
        double before = *cost;
        ++*iterations;
        SC_TRY(jacobian(f, step, err));
        normal_equations(f);
        SC_TRY(improve(f, &lambda, cost, &moved, err));
        if (before - *cost <= 1e-9 * (1 + before)) break;
    }
    return SC_OK;
}

/* ---- the result ------------------------------------------------------------------ */

/* The effective number of rows that determine parameter j: (sum a)^2 / sum a^2
 * over the curvatures a of the rows' losses. */
static double effective_rows(const fit *f, uint32_t j)
{
    uint32_t m = f->p->n_rows;
    double s1 = 0, s2 = 0;
    for (uint32_t i = 0; i < m; i++) {
        double d = f->j[(size_t)j * m + i];
        double a = curvature(f, i) * d * d;
        s1 += a;
        s2 += a * a;
    }
    return s2 > 0 ? s1 * s1 / s2 : 0;
}

/* `covariance` is [n * n]. */
static void describe(const fit *f, double *covariance, sc_fit_result *out)
{
    double l[MAX_FREE][MAX_FREE];
    memcpy(l, f->h, sizeof(l));
    bool ok = cholesky(f->n, l);
    for (uint32_t j = 0; j < f->n; j++) {
        sc_param p = f->p->free[j];
        double e[MAX_FREE] = {0};
        e[j] = 1;
        if (ok) solve(f->n, l, e);
        for (uint32_t k = 0; k < f->n; k++)
            covariance[(size_t)j * f->n + k] = ok ? e[k] : NAN;
        out->se_log[p] = ok ? sqrt(e[j]) : NAN;
        out->rows[p] = effective_rows(f, j);
    }
}

static sc_status check(const sc_fit_problem *p, sc_err *err)
{
    if (p->n_free > MAX_FREE)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                        "fix some of them", "%u free parameters, at most %d",
                        p->n_free, MAX_FREE);
    if (p->n_rows == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(), NULL,
                        "there is no row to fit on");
    for (uint32_t j = 0; j < p->n_free; j++) {
        const sc_param_info *i = &sc_params[p->free[j]];
        if (!(i->sd > 0) || !(i->centre > 0) || !(i->hi > 0))
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "parameter %s is fixed or not positive: it can't "
                            "be fitted",
                            i->name);
    }
    return SC_OK;
}

static sc_status init(fit *f, const sc_fit_problem *p, const sc_cost *start,
                      sc_arena *a, sc_err *err)
{
    f->p = p;
    f->n = p->n_free;
    f->soft = p->soft > 0 ? p->soft : 0.08;
    f->prior = p->prior_weight > 0 ? p->prior_weight : 1;
    f->c = SC_NEW(a, sc_cost);
    f->r = SC_NEW_N(a, double, p->n_rows);
    f->trial = SC_NEW_N(a, double, p->n_rows);
    f->j = SC_NEW_N(a, double, (size_t)p->n_rows *(f->n ? f->n : 1));
    if (!f->c || !f->r || !f->trial || !f->j) return sc_error_nomem(err);
    *f->c = *start;
    for (uint32_t j = 0; j < f->n; j++) {
        const sc_param_info *i = &sc_params[p->free[j]];
        f->x0[j] = log(i->centre);
        f->hi[j] = log(i->hi);
        f->lo[j] = i->lo > 0 ? log(i->lo) : f->x0[j] - 14;
        double v = start->p[p->free[j]];
        double x = v > 0 ? log(v) : f->x0[j];
        f->x[j] = x < f->lo[j] ? f->lo[j] : x > f->hi[j] ? f->hi[j] : x;
    }
    return SC_OK;
}

static sc_status run(fit *f, double *covariance, sc_fit_result *res,
                     sc_err *err)
{
    static const double steps[] = {1e-3, 0.1, 0.02};
    SC_TRY(residuals(f, f->x, f->r, err));
    double cost = total_cost(f, f->x, f->r);
    res->cost_before = cost;
    if (!isfinite(cost))
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "the model gives no number where a fit starts");
    for (size_t s = 0; s < SC_COUNT(steps) && f->n > 0; s++)
        SC_TRY(descend(f, steps[s], &cost, &res->iterations, err));
    res->cost_after = cost;
    SC_TRY(jacobian(f, steps[0], err));
    normal_equations(f);
    describe(f, covariance, res);
    return SC_OK;
}

/* Tries values of parameter j up to two widths above its centre, and keeps the
 * best. */
static sc_status scan(fit *f, uint32_t j, double *cost, sc_err *err)
{
    enum { VALUES = 9 };

    double sd = sc_params[f->p->free[j]].sd, best = f->x[j];
    for (int k = 0; k < VALUES; k++) {
        double x = f->x0[j] + 2 * sd * k / (VALUES - 1);
        if (x > f->hi[j]) break;
        f->x[j] = x;
        SC_TRY(residuals(f, f->x, f->trial, err));
        double c = total_cost(f, f->x, f->trial);
        if (c >= *cost) continue;
        *cost = c;
        best = x;
    }
    f->x[j] = best;
    return SC_OK;
}

sc_status sc_fit_scan(const sc_fit_problem *p, sc_cost *inout, sc_arena *a,
                      sc_err *err)
{
    SC_TRY(check(p, err));
    sc_arena_mark mark = sc_arena_save(a);
    fit *f = SC_NEW(a, fit);
    if (!f) return sc_error_nomem(err);
    SC_TRY(init(f, p, inout, a, err));
    SC_TRY(residuals(f, f->x, f->r, err));
    double cost = total_cost(f, f->x, f->r);
    for (uint32_t j = 0; j < f->n; j++) SC_TRY(scan(f, j, &cost, err));
    for (uint32_t j = 0; j < f->n; j++) inout->p[p->free[j]] = exp(f->x[j]);
    sc_arena_restore(a, mark);
    return SC_OK;
}

sc_status sc_fit(const sc_fit_problem *p, sc_cost *inout, sc_fit_result *out,
                 sc_arena *a, sc_err *err)
{
    SC_TRY(check(p, err));
    sc_param *free = SC_NEW_N(a, sc_param, (size_t)p->n_free + 1);
    double *cov = SC_NEW_N(a, double, (size_t)p->n_free * p->n_free + 1);
    if (!free || !cov) return sc_error_nomem(err);
    memcpy(free, p->free, p->n_free * sizeof *free);
    sc_arena_mark mark = sc_arena_save(a);
    fit *f = SC_NEW(a, fit);
    sc_fit_result *res = SC_NEW(a, sc_fit_result);
    if (!f || !res) return sc_error_nomem(err);
    SC_TRY(init(f, p, inout, a, err));
    SC_TRY(run(f, cov, res, err));
    for (uint32_t j = 0; j < f->n; j++) inout->p[p->free[j]] = exp(f->x[j]);
    memcpy(res->value, inout->p, sizeof(res->value));
    res->n_free = p->n_free;
    res->free = free;
    res->covariance = cov;
    *out = *res;
    sc_arena_restore(a, mark);
    return SC_OK;
}
