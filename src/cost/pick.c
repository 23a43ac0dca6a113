/* SPDX-License-Identifier: Apache-2.0 */
/* pick.c - the probability that a predicted job is the fastest of several. */
#include "cost/pick.h"

#include "base/random.h"
#include "base/stats.h"
#include "cost/anchor.h"

#include <math.h>
#include <string.h>

/* Steps whose logarithms differ by less are equally fast. */
static const double equal = 1e-9;

/* Less than this fraction of a variance is rounding. */
static const double rounding = 1e-11;

typedef struct study {
    sc_pick_row *row;
    uint32_t n;
    double *cov;  /* [n * n] without noise */
    double *l;    /* [n * n] with noise, factored */
    double *time; /* [n] expected step */
    double least; /* expected smallest step */
} study;

/* ---- two rows ------------------------------------------------------------ */

/* The probability that a normal variable with this deviation around `mean` is
 * positive. */
static double above(double mean, double sd)
{
    if (sd > equal) return sc_normal_below(mean / sd);
    return fabs(mean) < equal ? 0.5 : mean > 0;
}

/* X_i are normal: E[exp(X_i), X_i < X_k] = E[exp(X_i)] times a probability
 * under the mean that is shifted by the covariances with X_i. */
static void pair(study *x, double noise)
{
    double v = noise * noise, between = x->cov[1];
    double own[2] = {x->cov[0] + v, x->cov[3] + v};
    double sd = sqrt(fmax(0, own[0] + own[1] - 2 * between));
    x->least = 0;
    for (int i = 0; i < 2; i++) {
        double ahead = log(x->row[1 - i].step_s / x->row[i].step_s);
        x->time[i] = x->row[i].step_s * exp(own[i] / 2);
        x->row[i].p_best = above(ahead, sd);
        x->least += x->time[i] * above(ahead + between - own[i], sd);
    }
}

/* ---- draws --------------------------------------------------------------- */

/* A draw of the logarithms of all rows around their predictions. */
static void drawn(const study *x, uint64_t state, double *z, double *v)
{
    size_t n = x->n;
    for (size_t i = 0; i < n; i += 2) {
        double two[2];
        sc_normal_pair(&state, two);
        z[i] = two[0];
        if (i + 1 < n) z[i + 1] = two[1];
    }
    for (size_t i = 0; i < n; i++) {
        v[i] = 0;
        for (size_t k = 0; k <= i; k++) v[i] += x->l[i * n + k] * z[k];
    }
}

/* Counts one draw; `sign` -1 is its mirror image, which cancels errors of the
 * means. */
static void count(study *x, const double *v, double sign, double *log_time)
{
    double least = INFINITY;
    uint32_t ties = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        log_time[i] = log(x->row[i].step_s) + sign * v[i];
        least = fmin(least, log_time[i]);
        x->time[i] += exp(log_time[i]);
    }
    for (uint32_t i = 0; i < x->n; i++) ties += log_time[i] < least + equal;
    for (uint32_t i = 0; i < x->n; i++)
        if (log_time[i] < least + equal) x->row[i].p_best += 1.0 / ties;
    x->least += exp(least);
}

static sc_status draws(study *x, const sc_pick_opts *o, sc_arena *a,
                       sc_err *err)
{
    uint32_t pairs = ((o->draws ? o->draws : SC_PICK_DRAWS) + 1) / 2;
    uint64_t seed = sc_mix(o->seed + 1); /* next seeds share no draws */
    double *z = SC_NEW_N(a, double, x->n), *v = SC_NEW_N(a, double, x->n);
    double *log_time = SC_NEW_N(a, double, x->n);
    if (!z || !v || !log_time) return sc_error_nomem(err);
    for (uint32_t i = 0; i < x->n; i++) x->row[i].p_best = x->time[i] = 0;
    x->least = 0;
    for (uint32_t d = 0; d < pairs; d++) {
        drawn(x, sc_mix(seed + d), z, v);
        count(x, v, 1, log_time);
        count(x, v, -1, log_time);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        x->row[i].p_best /= 2.0 * pairs;
        x->time[i] /= 2.0 * pairs;
    }
    x->least /= 2.0 * pairs;
    return SC_OK;
}

/* ---- judgement ----------------------------------------------------------- */

static sc_status check(const sc_pick_row *rows, uint32_t n, sc_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(rows[i].step_s > 0) || !isfinite(rows[i].step_s))
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "the step of row %u is not positive", i + 1);
    if (n > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(), NULL,
                    "there is no row to choose");
}

static sc_status prepare(study *x, const sc_cost *cost, double noise,
                         sc_arena *a, sc_err *err)
{
    size_t n = x->n;
    sc_anchors *none = SC_NEW(a, sc_anchors);
    const sc_traits **t = SC_NEW_N(a, const sc_traits *, n);
    x->cov = SC_NEW_N(a, double, n *n);
    x->l = SC_NEW_N(a, double, n *n);
    x->time = SC_NEW_N(a, double, n);
    if (!none || !t || !x->cov || !x->l || !x->time) return sc_error_nomem(err);
    *none = sc_anchors_none(&cost->held.effects, cost->held.unseen, cost->cov);
    for (size_t i = 0; i < n; i++) t[i] = x->row[i].traits;
    SC_TRY(sc_anchors_left(cost->anchors ? cost->anchors : none, t, x->n, a,
                           x->cov, err));
    memcpy(x->l, x->cov, n * n * sizeof *x->l);
    for (size_t i = 0; i < n; i++) x->l[i * n + i] += noise * noise;
    if (anchor_factor(x->l, x->n, rounding)) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(),
                    "are their shares those of predictions?",
                    "the covariance of the rows is not finite");
}

static void regrets(study *x, sc_pick *out)
{
    for (uint32_t i = 0; i < x->n; i++) {
        x->row[i].regret_expected = fmax(0, x->time[i] / x->least - 1);
        if (x->time[i] < x->time[out->best]) out->best = i;
    }
    out->regret = x->row[out->best].regret_expected;
}

sc_status sc_pick_judge(const sc_cost *cost, sc_pick_row *rows, uint32_t n,
                        const sc_pick_opts *o, sc_arena *a, sc_pick *out,
                        sc_err *err)
{
    sc_arena_mark mark = sc_arena_save(a);
    study x = {.row = rows, .n = n};
    *out = (sc_pick){0};
    SC_TRY(check(rows, n, err));
    SC_TRY(prepare(&x, cost, o->noise, a, err));
    if (n == 2)
        pair(&x, o->noise);
    else
        SC_TRY(draws(&x, o, a, err));
    regrets(&x, out);
    if (o->settle && n > 1)
        SC_TRY(pick_settle(rows, n, x.cov, x.least, a, out, err));
    sc_arena_restore(a, mark);
    return SC_OK;
}
