/* SPDX-License-Identifier: Apache-2.0 */
/* anchor.c - conditions parameters and levels on own measured runs. */
#include "cost/anchor.h"

#include <math.h>
#include <string.h>

/* The covariance of similar jobs falls by e over traits that differ by
 * 1 / RATE: names that differ count 1, sizes the logarithm of their ratio.
 * Rates from 0.15 to 0.5 fit the held-out errors equally well. */
static const double rate = 0.4;

/* An anchor counts in full up to this many standard deviations, and beyond it
 * as if its noise were larger (Huber's function). */
static const double huber = 1.0;

enum { MAX_FAR = 40 }; /* anchors that are made noisier */

const char *const sc_trait_name_names[] = {"release", "device", "recipe",
                                           "model_name", NULL};
const char *const sc_trait_size_names[] = {
    "devices",           "parameters",       "sequence",
    "tokens_per_device", "micro_batch",      "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel",
    "zero_stage",        "recompute_kind",   NULL};

const sc_param anchor_network[] = {SC_P_NET_W, SC_P_A2A_NET, SC_P_A2A_NET_RCCL,
                                   SC_P_EP_NET};
const uint32_t anchor_n_network = SC_COUNT(anchor_network);

/* ---- covariances --------------------------------------------------------- */

static double sq(double x)
{
    return x * x;
}

static double variance(const sc_anchors *s, sc_effect e)
{
    return sq(s->effects.sd[e]);
}

static double between(const sc_anchors *s, sc_param p, sc_param q)
{
    int i = s->index[p], j = s->index[q];
    return i < 0 || j < 0 ? 0 : s->cov.of_log[(size_t)i * s->cov.n + (size_t)j];
}

double anchor_by_parameters(const sc_anchors *s, const sc_traits *x,
                            const sc_traits *y)
{
    double sum = 0;
    for (uint32_t i = 0; i < x->n_shares; i++)
        for (uint32_t j = 0; j < y->n_shares; j++)
            sum += x->share[i].share * y->share[j].share *
                   between(s, x->share[i].param, y->share[j].param);
    return sum * variance(s, SC_EFFECT_PARAMETERS) +
           x->network * y->network * variance(s, SC_EFFECT_NETWORK);
}

static bool same(const sc_traits *x, const sc_traits *y, sc_trait_name k)
{
    return strcmp(x->name[k], y->name[k]) == 0;
}

static double distance(const sc_traits *x, const sc_traits *y)
{
    double d = 0;
    for (int k = 0; k < (int)SC_N_TRAIT_NAMES; k++)
        d += !same(x, y, (sc_trait_name)k);
    for (int k = 0; k < (int)SC_N_TRAIT_SIZES; k++)
        d += fabs(log(x->size[k] / y->size[k]));
    return d;
}

/* By levels, where both jobs have devices and programs of the fit. */
static double by_seen(const sc_anchors *s, const sc_traits *x,
                      const sc_traits *y)
{
    double v = variance(s, SC_EFFECT_SITE);
    if (same(x, y, SC_TRAIT_RELEASE)) v += variance(s, SC_EFFECT_RELEASE);
    if (same(x, y, SC_TRAIT_DEVICE)) v += variance(s, SC_EFFECT_DEVICE);
    v += variance(s, SC_EFFECT_SIMILAR) * exp(-rate * distance(x, y));
    if (x->key == y->key) v += variance(s, SC_EFFECT_JOB);
    return v;
}

/* What an unseen device or program adds to the variance: its interval is
 * `unseen` times as wide. */
static double by_unseen(const sc_anchors *s, const sc_traits *t)
{
    double all = by_seen(s, t, t) + anchor_by_parameters(s, t, t);
    return t->unseen && s->unseen > 1 ? (sq(s->unseen) - 1) * all : 0;
}

double anchor_by_levels(const sc_anchors *s, const sc_traits *x,
                        const sc_traits *y)
{
    double v = by_seen(s, x, y);
    if (x->unseen && y->unseen && same(x, y, SC_TRAIT_RELEASE) &&
        same(x, y, SC_TRAIT_DEVICE))
        v += sqrt(by_unseen(s, x) * by_unseen(s, y));
    for (uint32_t i = 0; i < s->n && x->key == y->key; i++)
        if (s->a[i].traits.key == x->key) v += s->own[i];
    return v;
}

double sc_anchors_cov(const sc_anchors *s, const sc_traits *x,
                      const sc_traits *y)
{
    return anchor_by_parameters(s, x, y) + anchor_by_levels(s, x, y);
}

/* ---- linear algebra ------------------------------------------------------ */

bool anchor_factor(double *a, uint32_t n, double least)
{
    for (size_t i = 0; i < n; i++) {
        double all = a[i * n + i];
        for (size_t k = 0; k <= i; k++) {
            double sum = a[i * n + k], pivot = a[k * n + k];
            for (size_t l = 0; l < k; l++) sum -= a[i * n + l] * a[k * n + l];
            if (i == k && sum <= least * all && least > 0) sum = 0;
            if (i == k && !(sum > 0 && isfinite(sum)) &&
                !(sum == 0 && least > 0))
                return false;
            if (i == k)
                a[i * n + k] = sqrt(sum);
            else
                a[i * n + k] = pivot > 0 ? sum / pivot : 0;
        }
    }
    return true;
}

void anchor_solve(const double *l, uint32_t n, double *b)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) b[i] -= l[i * n + k] * b[k];
        b[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++) b[i] -= l[k * n + i] * b[k];
        b[i] /= l[i * n + i];
    }
}

static sc_status factored(double *a, uint32_t n, sc_err *err)
{
    if (anchor_factor(a, n, 0)) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(),
                    "are their shares those of predictions?",
                    "the covariance of the own runs is not positive definite");
}

/* ---- the anchors --------------------------------------------------------- */

static double residual(const sc_anchor *x)
{
    return log(x->measured_s / x->predicted_s);
}

/* Runs of the same job are one anchor: the mean, weighted by precision. */
static void join(sc_anchor *to, const sc_anchor *x)
{
    double u = 1 / sq(to->noise), v = 1 / sq(x->noise);
    to->measured_s =
        exp((u * log(to->measured_s) + v * log(x->measured_s)) / (u + v));
    to->noise = sqrt(1 / (u + v));
}

static sc_status keep(const sc_anchor *x, sc_anchors *s, sc_err *err)
{
    if (!(x->measured_s > 0) || !(x->predicted_s > 0) || !(x->noise > 0) ||
        !isfinite(residual(x)))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_file(x->id), NULL,
                        "the anchor's times must be positive");
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->a[i].traits.key != x->traits.key) continue;
        join(&s->a[i], x);
        return SC_OK;
    }
    if (s->n == SC_ANCHORS_MAX)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                        "keep those that are like the jobs to predict",
                        "there are more than %d own runs", SC_ANCHORS_MAX);
    s->a[s->n++] = *x;
    return SC_OK;
}

/* Factors the covariance of the measurements, and solves for the residuals. */
static sc_status condition(sc_anchors *s, sc_err *err)
{
    size_t n = s->n;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i; k++)
            s->chol[i * n + k] = s->chol[k * n + i] =
                sc_anchors_cov(s, &s->a[i].traits, &s->a[k].traits);
        s->chol[i * n + i] += sq(s->a[i].noise);
        s->alpha[i] = residual(&s->a[i]);
    }
    SC_TRY(factored(s->chol, s->n, err));
    anchor_solve(s->chol, s->n, s->alpha);
    return SC_OK;
}

/* Element (i, i) of the inverse, by the solution for a unit vector. */
static double precision_of(const sc_anchors *s, uint32_t i, double *room)
{
    memset(room, 0, s->n * sizeof *room);
    room[i] = 1;
    anchor_solve(s->chol, s->n, room);
    return room[i];
}

/* Finds the anchor that is furthest from what the others predict, in standard
 * deviations *z. With `all`, the anchors' own z are set. */
static uint32_t furthest(sc_anchors *s, bool all, double *room, double *sd,
                         double *z)
{
    uint32_t at = 0;
    *z = -1;
    for (uint32_t i = 0; i < s->n; i++) {
        double v = 1 / precision_of(s, i, room);
        double zi = s->alpha[i] * sqrt(v);
        if (all) s->a[i].z = zi;
        if (fabs(zi) <= *z || (!all && s->own[i] > 0)) continue;
        *z = fabs(zi);
        *sd = sqrt(v);
        at = i;
    }
    return at;
}

/* Anchors far from what the others and the prior predict are taken for
 * properties of their job alone, so that their pull on other jobs is
 * bounded. */
static sc_status bound(sc_anchors *s, double *room, sc_err *err)
{
    double z, sd = 0;
    (void)furthest(s, true, room, &sd, &z);
    for (int k = 0; k < MAX_FAR; k++) {
        uint32_t i = furthest(s, false, room, &sd, &z);
        if (z <= huber) break;
        s->own[i] = sq(sd) * (z / huber - 1);
        SC_TRY(condition(s, err));
    }
    return SC_OK;
}

static void moves(sc_anchors *s)
{
    memset(s->move, 0, sizeof s->move);
    s->network = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const sc_traits *t = &s->a[i].traits;
        s->network += variance(s, SC_EFFECT_NETWORK) * t->network * s->alpha[i];
        for (uint32_t k = 0; k < t->n_shares; k++)
            for (uint32_t j = 0; j < s->cov.n; j++)
                s->move[s->cov.param[j]] +=
                    variance(s, SC_EFFECT_PARAMETERS) * s->alpha[i] *
                    t->share[k].share *
                    between(s, t->share[k].param, s->cov.param[j]);
    }
}

sc_anchors sc_anchors_none(const sc_effects *e, double unseen,
                           const sc_covariance *cov)
{
    sc_anchors s = {.effects = *e, .unseen = unseen};
    for (int k = 0; k < (int)SC_N_PARAMS; k++) s.index[k] = -1;
    if (!cov) return s;
    s.cov = *cov;
    for (uint32_t j = 0; j < cov->n; j++) s.index[cov->param[j]] = (int)j;
    return s;
}

double sc_effects_deviation(const sc_effects *e, double unseen,
                            const sc_covariance *cov, const sc_traits *t)
{
    sc_anchors s = sc_anchors_none(e, unseen, cov);
    return sqrt(sc_anchors_cov(&s, t, t) + sq(SC_ANCHOR_NOISE));
}

sc_status sc_anchors_fit(const sc_anchor *list, uint32_t n, const sc_cost *base,
                         const sc_covariance *cov, sc_arena *a, sc_anchors *out,
                         sc_err *err)
{
    size_t room = n < SC_ANCHORS_MAX ? n : SC_ANCHORS_MAX;
    sc_anchors *s = out;
    *s = sc_anchors_none(&base->held.effects, base->held.unseen, cov);
    s->base_hash = base->hash;
    memcpy(s->base, base->p, sizeof s->base);
    s->a = SC_NEW_N(a, sc_anchor, room + 1);
    s->own = SC_NEW_N(a, double, room + 1);
    s->weight = SC_NEW_N(a, double, room + 1);
    s->alpha = SC_NEW_N(a, double, room + 1);
    s->chol = SC_NEW_N(a, double, room *room + 1);
    double *work = SC_NEW_N(a, double, room + 1);
    if (!s->a || !s->own || !s->weight || !s->alpha || !s->chol || !work)
        return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) SC_TRY(keep(&list[i], s, err));
    SC_TRY(condition(s, err));
    SC_TRY(bound(s, work, err));
    moves(s);
    memcpy(s->weight, s->alpha, s->n * sizeof *s->weight);
    return SC_OK;
}

/* Smaller moves of a parameter's logarithm are not made. */
static const double least = 1e-4;

void sc_anchors_move(const sc_anchors *s, sc_cost *inout)
{
    for (int k = 0; k < (int)SC_N_PARAMS; k++) {
        double by = s->move[k];
        for (uint32_t i = 0; i < anchor_n_network; i++)
            if (anchor_network[i] == (sc_param)k) by -= s->network;
        inout->p[k] = s->base[k];
        if (fabs(by) < least) continue;
        inout->p[k] =
            fmax(sc_params[k].lo, fmin(sc_params[k].hi, s->base[k] * exp(by)));
    }
    inout->hash = sc_cost_hash(inout);
}

/* log of the factor that the moved parameters give, to first order. */
static double by_moves(const sc_anchors *s, const sc_traits *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += s->alpha[i] * anchor_by_parameters(s, t, &s->a[i].traits);
    return sum;
}

void sc_anchors_predicted(sc_anchors *s, uint64_t key, double step_s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->a[i].traits.key == key) s->a[i].moved_s = step_s;
}

sc_status sc_anchors_level(sc_anchors *s, sc_arena *a, sc_err *err)
{
    size_t n = s->n;
    double *l = SC_NEW_N(a, double, n *n + 1);
    if (!l) return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) {
        sc_anchor *x = &s->a[i];
        if (!isfinite(x->moved_s))
            x->moved_s = x->predicted_s * exp(by_moves(s, &x->traits));
        double explained = log(x->moved_s / x->predicted_s);
        for (size_t k = 0; k < n; k++)
            l[i * n + k] = anchor_by_levels(s, &x->traits, &s->a[k].traits);
        s->weight[i] = residual(x) - explained - sq(x->noise) * s->alpha[i];
    }
    SC_TRY(factored(l, s->n, err));
    anchor_solve(l, s->n, s->weight);
    return SC_OK;
}

double sc_anchors_level_of(const sc_anchors *s, const sc_traits *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += s->weight[i] * anchor_by_levels(s, t, &s->a[i].traits);
    return sum;
}

double sc_anchors_effect(const sc_anchors *s, const sc_traits *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += s->alpha[i] * sc_anchors_cov(s, t, &s->a[i].traits);
    return sum;
}

double sc_anchors_narrow(const sc_anchors *s, const sc_traits *t, sc_arena *a)
{
    double *k = SC_NEW_N(a, double, 2 * (size_t)s->n + 1), *b = k + s->n;
    double noise = sq(SC_ANCHOR_NOISE), own = 0, explained = 0;
    if (!k) return 1;
    for (uint32_t i = 0; i < s->n; i++) {
        b[i] = k[i] = sc_anchors_cov(s, t, &s->a[i].traits);
        if (s->a[i].traits.key == t->key) own = s->own[i];
    }
    anchor_solve(s->chol, s->n, b);
    for (uint32_t i = 0; i < s->n; i++) explained += k[i] * b[i];
    double all = sc_anchors_cov(s, t, t) + noise;
    return sqrt(fmax(0, all - explained) / (all - own));
}

sc_status sc_anchors_left(const sc_anchors *s, const sc_traits *const *t,
                          uint32_t n, sc_arena *a, double *out, sc_err *err)
{
    size_t m = s->n;
    double *k = SC_NEW_N(a, double, m *n + 1);
    double *b = SC_NEW_N(a, double, m *n + 1);
    if (!k || !b) return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) {
        for (size_t l = 0; l < m; l++)
            b[i * m + l] = k[i * m + l] =
                sc_anchors_cov(s, t[i], &s->a[l].traits);
        anchor_solve(s->chol, s->n, &b[i * m]);
        for (size_t j = 0; j <= i; j++) {
            double v = sc_anchors_cov(s, t[i], t[j]);
            for (size_t l = 0; l < m; l++) v -= k[j * m + l] * b[i * m + l];
            if (i == j) v = fmax(0, v);
            out[i * n + j] = out[j * n + i] = v;
        }
    }
    return SC_OK;
}
