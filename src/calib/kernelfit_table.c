/* SPDX-License-Identifier: Apache-2.0 */
/* kernelfit_table.c - the table of corrections of a form. */
#include "calib/kernelfit.h"

#include <math.h>
#include <string.h>

/* Found with five folds on the A100 and H100 tables of 16-bit products:
 * between 0.03 and 0.2 the error of the shapes left out does not change. */
#define SMOOTH 0.06 /* weight of a squared second difference */
#define SMALL  0.01 /* weight of a squared correction */
/* Weight of a squared first difference, for kernels over rows: their tables have
 * fewer sizes than they are asked for, and a slope at the edge would go on. */
#define FLAT   0.02
#define SCALE  0.08
#define ROUNDS 4
#define STEPS  400

typedef struct corner {
    uint32_t index[8 * KERNELFIT_PARTS];
    double weight[8 * KERNELFIT_PARTS];
    uint32_t n;
} corner;

typedef struct system {
    const sc_form_table *t;
    uint32_t size; /* of the table */
    corner *row;   /* [n] */
    double *target, *w;
    uint32_t n;
    double flat;
} system;

double kernelfit_robust(double r)
{
    return 1 / sqrt(1 + r * r / (SCALE * SCALE));
}

static uint32_t size_of(const sc_form_table *t)
{
    return t->count[0] * t->count[1] * t->count[2];
}

/* The logarithm of a sum of kernels changes with the correction of each in
 * proportion to its part of the time. */
static void corners_of(const kernelfit_sample *s, const sc_form_table *t,
                       corner *out)
{
    double sum = 0;
    out->n = 0;
    for (uint32_t i = 0; i < s->n; i++) sum += s->physical[i];
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t *index = out->index + out->n;
        double *weight = out->weight + out->n;
        sc_form_corners(t, s->use[i].at, index, weight);
        for (int j = 0; j < 8; j++) weight[j] *= s->physical[i] / sum;
        out->n += 8;
    }
}

static double log_physical(const kernelfit_sample *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++) sum += s->physical[i];
    return log(sum);
}

static double at(const corner *c, const double *x)
{
    double sum = 0;
    for (uint32_t j = 0; j < c->n; j++) sum += c->weight[j] * x[c->index[j]];
    return sum;
}

double kernelfit_log_time(const kernelfit_sample *s, const sc_form_table *t,
                          const double *log)
{
    corner c;
    corners_of(s, t, &c);
    return log_physical(s) + at(&c, log);
}

/* out += SMOOTH D'D x along one axis, D the second differences. */
static void add_smooth(const sc_form_table *t, int axis, const double *x,
                       double *out)
{
    uint32_t stride = 1, n = size_of(t);
    for (int i = 2; i > axis; i--) stride *= t->count[i];
    for (uint32_t i = 0; i < n; i++) {
        if (i / stride % t->count[axis] + 2 >= t->count[axis]) continue;
        const double *v = x + i;
        double d = SMOOTH * (v[0] - 2 * v[stride] + v[2 * (size_t)stride]);
        out[i] += d;
        out[i + stride] -= 2 * d;
        out[i + 2 * (size_t)stride] += d;
    }
}

/* out += s->flat D'D x along one axis, D the first differences. */
static void add_flat(const system *s, int axis, const double *x, double *out)
{
    const sc_form_table *t = s->t;
    uint32_t stride = 1, n = size_of(t);
    for (int i = 2; i > axis; i--) stride *= t->count[i];
    for (uint32_t i = 0; i < n; i++) {
        if (i / stride % t->count[axis] + 1 >= t->count[axis]) continue;
        double d = s->flat * (x[i] - x[i + stride]);
        out[i] += d;
        out[i + stride] -= d;
    }
}

static void apply(const system *s, const double *x, double *out)
{
    for (uint32_t i = 0; i < s->size; i++) out[i] = SMALL * x[i];
    for (int axis = 0; axis < 3; axis++) add_smooth(s->t, axis, x, out);
    for (int axis = 0; axis < 3 && s->flat > 0; axis++)
        add_flat(s, axis, x, out);
    for (uint32_t i = 0; i < s->n; i++) {
        const corner *c = &s->row[i];
        double v = s->w[i] * at(c, x);
        for (uint32_t j = 0; j < c->n; j++)
            out[c->index[j]] += c->weight[j] * v;
    }
}

static double dot(const double *x, const double *y, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Conjugate gradients, from the present x. */
static void solve(const system *s, double *x, double *work)
{
    uint32_t n = s->size;
    double *r = work, *p = work + n, *ap = work + 2 * (size_t)n;
    memset(r, 0, n * sizeof *r);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < s->row[i].n; j++)
            r[s->row[i].index[j]] +=
                s->row[i].weight[j] * s->w[i] * s->target[i];
    apply(s, x, ap);
    for (uint32_t i = 0; i < n; i++) p[i] = r[i] -= ap[i];
    double rr = dot(r, r, n), least = 1e-14 * rr;
    for (int step = 0; step < STEPS && rr > least; step++) {
        apply(s, p, ap);
        double alpha = rr / dot(p, ap, n), before = rr;
        for (uint32_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
        }
        rr = dot(r, r, n);
        for (uint32_t i = 0; i < n; i++) p[i] = r[i] + rr / before * p[i];
    }
}

sc_status kernelfit_table(const kernelfit_sample *sample, uint32_t n,
                          int without, const sc_form_table *t, double *log_,
                          sc_arena *a, sc_err *err)
{
    system s = {.t = t, .size = size_of(t)};
    double *work = SC_NEW_N(a, double, 3 * (size_t)s.size);
    s.row = SC_NEW_N(a, corner, n);
    s.target = SC_NEW_N(a, double, n);
    s.w = SC_NEW_N(a, double, n);
    if (!work || !s.row || !s.target || !s.w) return sc_error_nomem(err);
    double *base = SC_NEW_N(a, double, n);
    if (!base) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        if (sample[i].fold == without) continue;
        corners_of(&sample[i], t, &s.row[s.n]);
        s.target[s.n] = log(sample[i].seconds) - log_physical(&sample[i]);
        base[s.n] = s.w[s.n] = sample[i].weight;
        s.n++;
    }
    if (n && sc_form_is_rows(sample[0].use[0].kind)) s.flat = FLAT;
    memset(log_, 0, s.size * sizeof *log_);
    for (int round = 0; round < ROUNDS; round++) {
        solve(&s, log_, work);
        for (uint32_t i = 0; i < s.n; i++)
            s.w[i] =
                base[i] * kernelfit_robust(at(&s.row[i], log_) - s.target[i]);
    }
    return SC_OK;
}

/* ---- monotone ---------------------------------------------------------------- */

typedef struct line {
    double *value;
    const double *weight, *rise;
    uint32_t n;
    size_t stride;
} line;

#define MOST 64

/* Pool adjacent violators (Ayer et al. 1955): the closest values that, with
 * `rise`, do not fall. */
static void repair(const line *l)
{
    double mean[MOST], mass[MOST];
    uint32_t size[MOST], blocks = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        mean[blocks] = l->value[i * l->stride] + l->rise[i * l->stride];
        mass[blocks] = l->weight[i * l->stride];
        size[blocks++] = 1;
        while (blocks > 1 && mean[blocks - 2] > mean[blocks - 1]) {
            double m = mass[blocks - 2] + mass[blocks - 1];
            mean[blocks - 2] = (mean[blocks - 2] * mass[blocks - 2] +
                                mean[blocks - 1] * mass[blocks - 1]) /
                               m;
            mass[blocks - 2] = m;
            size[blocks - 2] += size[blocks - 1];
            blocks--;
        }
    }
    for (uint32_t b = 0, i = 0; b < blocks; b++)
        for (uint32_t j = 0; j < size[b]; j++, i++)
            l->value[i * l->stride] = mean[b] - l->rise[i * l->stride];
}

/* One axis after another, several times: the result does not fall along the
 * last one and hardly along the others. */
void kernelfit_monotone(const sc_form_table *t, const double *rise,
                        const double *weight, double *log)
{
    uint32_t n = size_of(t);
    for (int round = 0; round < 3 * 20; round++) {
        int axis = round % 3;
        uint32_t stride = 1;
        for (int i = 2; i > axis; i--) stride *= t->count[i];
        for (uint32_t i = 0; i < n; i++) {
            if (i / stride % t->count[axis] != 0) continue;
            double *value = &log[i];
            line l = {value, weight + i, rise + (size_t)axis * n + i,
                      t->count[axis], stride};
            repair(&l);
        }
    }
}
