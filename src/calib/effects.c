/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effects.c - estimates the standard deviations of what held-out errors have in
 * common (cost/cost_anchor.h) by their likelihood.
 *
 * Families are independent. The errors of one family are normal with mean 0
 * and the covariance that sc_anchors_cov() gives their traits, which is a sum
 * of one matrix for each effect.
 */
#include "calib/effects.h"

#include "calib/stepfit.h"

#include <math.h>
#include <string.h>

/* ---- rows ---------------------------------------------------------------- */

sc_status calib_covariance_of(const sc_covariance *from,
                              const sc_fit_result *fit, sc_arena *a,
                              sc_covariance *out, sc_err *err)
{
    size_t n = from->n;
    double *cell = SC_NEW_N(a, double, n *n + 1);
    int at[SC_N_PARAMS];
    if (!cell) return sc_error_nomem(err);
    memcpy(cell, from->of_log, n * n * sizeof *cell);
    for (int k = 0; k < (int)SC_N_PARAMS; k++) at[k] = -1;
    for (size_t i = 0; i < n; i++) at[from->param[i]] = (int)i;
    for (uint32_t i = 0; i < fit->n_free; i++)
        for (uint32_t k = 0; k < fit->n_free; k++) {
            double c = fit->covariance[(size_t)i * fit->n_free + k];
            int x = at[fit->free[i]], y = at[fit->free[k]];
            if (x >= 0 && y >= 0 && isfinite(c))
                cell[(size_t)x * n + (size_t)y] = c;
        }
    *out = (sc_covariance){from->n, from->param, cell};
    return SC_OK;
}

sc_status calib_keep_traits(const sc_traits *t, sc_arena *a, sc_traits *out,
                            sc_err *err)
{
    sc_share *share = SC_NEW_N(a, sc_share, (size_t)t->n_shares + 1);
    sc_traits x = *t;
    if (!share) return sc_error_nomem(err);
    if (t->n_shares) memcpy(share, t->share, t->n_shares * sizeof *share);
    x.share = share;
    for (int k = 0; k < (int)SC_N_TRAIT_NAMES; k++) {
        x.name[k] = sc_strdup(a, t->name[k]);
        if (!x.name[k]) return sc_error_nomem(err);
    }
    *out = x;
    return SC_OK;
}

/* ---- likelihood ---------------------------------------------------------- */

typedef struct family {
    uint32_t n;
    double weight, *r;          /* [n] errors */
    double *part[SC_N_EFFECTS]; /* [n * n] covariance for a deviation of 1 */
} family;

typedef struct study {
    family *f;
    uint32_t n;
    double *l, *z; /* room for the largest family */
} study;

static double clipped(const sc_valid_row *r)
{
    double e = log(r->median / r->predicted);
    return fmax(-CALIB_EFFECTS_CLIP, fmin(CALIB_EFFECTS_CLIP, e));
}

static bool same_family(const calib_held *x, const char *name)
{
    return strcmp(x->row->family, name) == 0;
}

/* The covariance of two rows by one effect alone. */
static void only(sc_effect e, const calib_held *x, sc_anchors *s)
{
    s->unseen = 1;
    s->n = 0;
    s->cov = *x->cov;
    for (int k = 0; k < (int)SC_N_PARAMS; k++) s->index[k] = -1;
    for (uint32_t i = 0; i < s->cov.n; i++) s->index[s->cov.param[i]] = (int)i;
    memset(&s->effects, 0, sizeof s->effects);
    s->effects.sd[e] = 1;
}

static sc_status read_family(const calib_held *h, uint32_t n, uint32_t first,
                             sc_anchors *s, sc_arena *a, family *f, sc_err *err)
{
    const char *name = h[first].row->family;
    const calib_held **m = SC_NEW_N(a, const calib_held *, n);
    if (!m) return sc_error_nomem(err);
    for (uint32_t i = first; i < n; i++)
        if (same_family(&h[i], name) && !h[i].row->unfitted) m[f->n++] = &h[i];
    f->weight =
        calib_family_weight(f->n) / CALIB_FAMILY_WEIGHT * CALIB_FAMILY_FULL;
    f->r = SC_NEW_N(a, double, f->n);
    if (!f->r) return sc_error_nomem(err);
    for (uint32_t i = 0; i < f->n; i++) f->r[i] = clipped(m[i]->row);
    for (int e = 0; e < (int)SC_N_EFFECTS; e++) {
        f->part[e] = SC_NEW_N(a, double, (size_t)f->n * f->n);
        if (!f->part[e]) return sc_error_nomem(err);
        only((sc_effect)e, m[0], s);
        for (size_t i = 0; i < f->n; i++)
            for (size_t k = 0; k <= i; k++)
                f->part[e][i * f->n + k] =
                    sc_anchors_cov(s, &m[i]->traits, &m[k]->traits);
    }
    return SC_OK;
}

/* Minus the logarithm of the likelihood of one family; infinite if the
 * covariance is singular. */
static double surprise(const study *x, const family *f, const double *var)
{
    double sum = 0, *l = x->l, *z = x->z;
    size_t n = f->n;
    for (size_t i = 0; i < n; i++) {
        z[i] = f->r[i];
        for (size_t k = 0; k <= i; k++) {
            double v = 0;
            for (int e = 0; e < (int)SC_N_EFFECTS; e++)
                v += var[e] * f->part[e][i * n + k];
            if (i == k) v += SC_ANCHOR_NOISE * SC_ANCHOR_NOISE;
            for (size_t j = 0; j < k; j++) v -= l[i * n + j] * l[k * n + j];
            if (i == k && !(v > 0)) return INFINITY;
            l[i * n + k] = i == k ? sqrt(v) : v / l[k * n + k];
            if (k < i) z[i] -= l[i * n + k] * z[k];
        }
        z[i] /= l[i * n + i];
        sum += 0.5 * z[i] * z[i] + log(l[i * n + i]);
    }
    return sum;
}

/* Standard deviation of the logarithm of each effect's prior. */
static double prior_sd(int e)
{
    return e == SC_EFFECT_PARAMETERS ? 0.7 : 1;
}

static double total(const study *x, const double *log_sd)
{
    double sum = 0, var[SC_N_EFFECTS];
    for (int e = 0; e < (int)SC_N_EFFECTS; e++) {
        double d = (log_sd[e] - log(sc_effects_usual.sd[e])) / prior_sd(e);
        sum += 0.5 * d * d;
        var[e] = exp(2 * log_sd[e]);
    }
    for (uint32_t i = 0; i < x->n; i++)
        sum += x->f[i].weight * surprise(x, &x->f[i], var);
    return sum;
}

/* Changes one deviation after the other by `step` while that lowers *least. */
static bool improve(const study *x, double step, double *v, double *least)
{
    bool better = false;
    for (int e = 0; e < 2 * (int)SC_N_EFFECTS; e++) {
        double old = v[e / 2];
        v[e / 2] += e % 2 ? -step : step;
        double sum = total(x, v);
        if (sum < *least - 1e-6) {
            *least = sum;
            better = true;
        } else {
            v[e / 2] = old;
        }
    }
    return better;
}

static void search(const study *x, double *v)
{
    static const double steps[] = {0.4, 0.2, 0.1, 0.05, 0.025};
    double least = total(x, v);
    for (size_t i = 0; i < SC_COUNT(steps); i++)
        while (improve(x, steps[i], v, &least)) continue;
}

sc_status calib_effects_fit(const calib_held *h, uint32_t n,
                            const char *without, sc_arena *a, sc_effects *out,
                            sc_err *err)
{
    sc_arena_mark mark = sc_arena_save(a);
    study x = {.f = SC_NEW_N(a, family, (size_t)n + 1)};
    sc_anchors *s = SC_NEW(a, sc_anchors);
    size_t largest = 1;
    double v[SC_N_EFFECTS];
    if (!x.f || !s) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        bool first =
            !h[i].row->unfitted && (!without || !same_family(&h[i], without));
        for (uint32_t k = 0; k < i && first; k++)
            first = h[k].row->unfitted || !same_family(&h[k], h[i].row->family);
        if (!first) continue;
        SC_TRY(read_family(h, n, i, s, a, &x.f[x.n], err));
        if (x.f[x.n].n > largest) largest = x.f[x.n].n;
        x.n++;
    }
    x.l = SC_NEW_N(a, double, largest *largest);
    x.z = SC_NEW_N(a, double, largest);
    if (!x.l || !x.z) return sc_error_nomem(err);
    for (int e = 0; e < (int)SC_N_EFFECTS; e++)
        v[e] = log(sc_effects_usual.sd[e]);
    search(&x, v);
    for (int e = 0; e < (int)SC_N_EFFECTS; e++) out->sd[e] = exp(v[e]);
    sc_arena_restore(a, mark);
    return SC_OK;
}
