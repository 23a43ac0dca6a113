/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick_settle.c - the runs whose measurement would improve a choice most.
 *
 * A measurement of row j moves the logarithm of the expected step of row i by
 * b_i w, where w is a standard normal number and b_i the covariance of i and j
 * over the deviation of the measurement. After it, the row is chosen that is
 * lowest at this w. The rows are lines in w, so the choice is their lower
 * envelope, and the expected step of the choice is a sum over its pieces.
 */
#include "base/stats.h"
#include "cost/pick.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32, OUTCOMES = 64 };

/* Rows that are less likely to be the best are not proposed. */
static const double likely = 0.01;

/* A measurement that saves less of the step is not worth it. */
static const double worth = 1e-4;

typedef struct line {
    double at, slope; /* at w = 0 */
} line;

typedef struct study {
    uint32_t n;
    double *cov;  /* [n * n] with the rows that are already chosen measured */
    double *mean; /* [n_outcomes * n] of the logarithms, for each outcome of
                     these measurements */
    uint32_t n_outcomes;
    uint32_t *order; /* [n] by falling slope */
    double *slope;   /* [n] */
    line *hull;      /* [n] */
    double *from;    /* [n] where a line of the hull begins */
} study;

/* ---- the envelope -------------------------------------------------------- */

static void slopes(study *x, uint32_t j)
{
    size_t n = x->n;
    double sd = sqrt(x->cov[j * n + j] + SC_ANCHOR_NOISE * SC_ANCHOR_NOISE);
    for (size_t i = 0; i < n; i++) x->slope[i] = x->cov[i * n + j] / sd;
}

typedef struct ranked {
    double slope;
    uint32_t row;
} ranked;

static int falling(const void *p, const void *q)
{
    const ranked *x = (const ranked *)p, *y = (const ranked *)q;
    if (x->slope != y->slope) return x->slope < y->slope ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static void sort(study *x, ranked *r)
{
    for (uint32_t i = 0; i < x->n; i++) r[i] = (ranked){x->slope[i], i};
    qsort(r, x->n, sizeof *r, falling);
    for (uint32_t i = 0; i < x->n; i++) x->order[i] = r[i].row;
}

/* The lines that are lowest somewhere, from w = -infinity on. */
static uint32_t envelope(study *x, const double *mean)
{
    uint32_t m = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t i = x->order[k];
        double b = x->slope[i];
        double left = x->cov[(size_t)i * x->n + i] - b * b;
        line y = {mean[i] + left / 2, b};
        double from = -INFINITY;
        for (; m > 0; m--) {
            const line *top = &x->hull[m - 1];
            if (top->slope == y.slope) {
                if (top->at <= y.at) break;
                continue;
            }
            from = (y.at - top->at) / (top->slope - y.slope);
            if (from > x->from[m - 1]) break;
        }
        if (m > 0 && x->hull[m - 1].slope == y.slope) continue;
        x->hull[m] = y;
        x->from[m] = m > 0 ? from : -INFINITY;
        m++;
    }
    return m;
}

/* The expected step of the row that is chosen after the measurement. */
static double chosen_step(study *x, const double *mean)
{
    uint32_t m = envelope(x, mean);
    double sum = 0;
    for (uint32_t k = 0; k < m; k++) {
        double b = x->hull[k].slope;
        double to = k + 1 < m ? x->from[k + 1] : INFINITY;
        sum += exp(x->hull[k].at + b * b / 2) *
               (sc_normal_below(to - b) - sc_normal_below(x->from[k] - b));
    }
    return sum;
}

static double expected(study *x, uint32_t j, ranked *room)
{
    double sum = 0;
    slopes(x, j);
    sort(x, room);
    for (uint32_t k = 0; k < x->n_outcomes; k++)
        sum += chosen_step(x, &x->mean[(size_t)k * x->n]);
    return sum / x->n_outcomes;
}

/* ---- one run after the other --------------------------------------------- */

/* The run is taken as measured: the covariance falls, and each outcome moves the
 * means. Outcomes are the quantiles of a normal number, in another order for
 * each run. */
static void measured(study *x, uint32_t j, uint32_t round)
{
    size_t n = x->n;
    slopes(x, j);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            x->cov[i * n + k] -= x->slope[i] * x->slope[k];
    for (uint32_t k = OUTCOMES; k-- > 0;) {
        uint32_t from = x->n_outcomes == 1 ? 0 : k;
        uint32_t q = round == 0 ? k : (k * 27 + 5) % OUTCOMES;
        double w = sc_normal_max((q + 0.5) / OUTCOMES, 1);
        for (size_t i = 0; i < n; i++)
            x->mean[k * n + i] = x->mean[from * n + i] + x->slope[i] * w;
    }
    x->n_outcomes = OUTCOMES;
}

/* The most likely rows, at most MOST. */
static uint32_t likely_rows(const sc_pick_row *rows, uint32_t n, uint32_t *out)
{
    uint32_t m = 0;
    for (; m < MOST; m++) {
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++) {
            bool taken = rows[i].p_best < likely;
            for (uint32_t k = 0; k < m && !taken; k++) taken = out[k] == i;
            if (!taken && (best == n || rows[i].p_best > rows[best].p_best))
                best = i;
        }
        if (best == n) break;
        out[m] = best;
    }
    return m;
}

static sc_status start(study *x, const sc_pick_row *rows, sc_arena *a,
                       sc_err *err)
{
    size_t n = x->n;
    x->mean = SC_NEW_N(a, double, OUTCOMES *n);
    x->order = SC_NEW_N(a, uint32_t, n);
    x->slope = SC_NEW_N(a, double, n);
    x->hull = SC_NEW_N(a, line, n);
    x->from = SC_NEW_N(a, double, n);
    if (!x->mean || !x->order || !x->slope || !x->hull || !x->from)
        return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) x->mean[i] = log(rows[i].step_s);
    x->n_outcomes = 1;
    return SC_OK;
}

sc_status pick_settle(const sc_pick_row *rows, uint32_t n, double *cov,
                      double least, sc_arena *a, sc_pick *out, sc_err *err)
{
    study x = {.n = n, .cov = cov};
    uint32_t list[MOST], m = likely_rows(rows, n, list);
    ranked *room = SC_NEW_N(a, ranked, n);
    if (!room) return sc_error_nomem(err);
    SC_TRY(start(&x, rows, a, err));
    double now = INFINITY, regret = out->regret;
    for (uint32_t i = 0; i < n; i++)
        now = fmin(now, rows[i].step_s * exp(cov[(size_t)i * n + i] / 2));
    for (uint32_t round = 0; round < SC_SETTLE_MAX; round++) {
        uint32_t best = n;
        double then = INFINITY;
        for (uint32_t k = 0; k < m; k++) {
            double e = expected(&x, list[k], room);
            if (e >= then) continue;
            then = e;
            best = list[k];
        }
        if (best == n || now - then < worth * least) break;
        regret = fmax(0, regret - (now - then) / least);
        now = then;
        out->settle[out->n_settle++] = (sc_settle){best, regret};
        measured(&x, best, round);
    }
    return SC_OK;
}
