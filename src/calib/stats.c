/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - computes errors, order and regret of predictions. */
#include "calib/stats.h"

#include "calib/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrays ----------------------------------------------------------------- */

double calib_mean(const double *v, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += v[i];
    return n ? sum / n : NAN;
}

static int sign(double x)
{
    return (x > 0) - (x < 0);
}

double calib_kendall(const double *x, const double *y, uint32_t n)
{
    double score = 0, in_x = 0, in_y = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++) {
            int dx = sign(x[i] - x[j]), dy = sign(y[i] - y[j]);
            score += dx * dy;
            in_x += dx != 0;
            in_y += dy != 0;
        }
    }
    return in_x > 0 && in_y > 0 ? score / sqrt(in_x * in_y) : NAN;
}

double calib_regret(const double *measured, const double *predicted, uint32_t n)
{
    if (n == 0) return NAN;
    uint32_t chosen = 0;
    double best = measured[0];
    for (uint32_t i = 1; i < n; i++) {
        if (measured[i] < best) best = measured[i];
        if (predicted[i] < predicted[chosen] ||
            (predicted[i] == predicted[chosen] &&
             measured[i] > measured[chosen]))
            chosen = i;
    }
    return measured[chosen] / best - 1;
}

/* ---- repetitions -------------------------------------------------------------- */

static bool comparable(const sc_valid_row *r)
{
    return r->reason == NULL && isfinite(r->measured) && isfinite(r->predicted);
}

sc_status calib_mark_repeats(sc_valid_row *rows, uint32_t n, sc_arena *a,
                             sc_err *err)
{
    double *v = SC_NEW_N(a, double, n);
    if (!v) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        sc_valid_row *r = &rows[i];
        r->counted = comparable(r);
        r->median = r->measured;
        for (uint32_t j = 0; j < i && r->counted; j++)
            if (rows[j].counted && rows[j].config_key == r->config_key)
                r->counted = false;
        if (!r->counted) continue;
        uint32_t m = 0;
        for (uint32_t j = i; j < n; j++)
            if (comparable(&rows[j]) && rows[j].config_key == r->config_key)
                v[m++] = rows[j].measured;
        r->median = sc_quantile(v, m, 0.5);
    }
    return SC_OK;
}

bool calib_inside(const sc_valid_row *r)
{
    return r->low <= r->median && r->median <= r->high;
}

/* ---- groups ------------------------------------------------------------------- */

typedef struct scratch {
    double *ape, *err, *mem, *x, *y; /* [rows] each */
} scratch;

static bool in_group(const sc_valid_row *r, const sc_valid_group *g)
{
    return strcmp(r->family, g->family) == 0 &&
           (g->device == NULL || strcmp(r->device, g->device) == 0);
}

/* Collects the members of the set whose first row is `i`; 0 if an earlier row
 * is in the same set. */
static uint32_t collect_set(const sc_validation *v, const sc_valid_group *g,
                            uint32_t i, scratch *s)
{
    uint32_t m = 0;
    for (uint32_t j = 0; j < v->n_rows; j++) {
        const sc_valid_row *r = &v->rows[j];
        if (!r->counted || r->group_key != v->rows[i].group_key ||
            !in_group(r, g))
            continue;
        if (j < i) return 0;
        s->x[m] = r->median;
        s->y[m++] = r->predicted;
    }
    return m;
}

/* Computes the order within each set of rows with equal group_key. Tau
 * counts all pairs of all sets, so a set of three rows counts less than one
 * of twenty. */
static void judge_order(const sc_validation *v, scratch *s, sc_valid_group *g)
{
    double tau = 0, pairs = 0, sum = 0, worst = NAN;
    uint32_t sets = 0;
    g->kendall_tau = g->regret = g->regret_max = NAN;
    if (v->kernels) return;
    for (uint32_t i = 0; i < v->n_rows; i++) {
        if (!v->rows[i].counted || !in_group(&v->rows[i], g)) continue;
        uint32_t m = collect_set(v, g, i, s);
        if (m < CALIB_ORDER_ROWS) continue;
        double t = calib_kendall(s->x, s->y, m), weight = m * (m - 1.0) / 2;
        double regret = calib_regret(s->x, s->y, m);
        if (isfinite(t)) {
            tau += t * weight;
            pairs += weight;
        }
        sum += regret;
        sets++;
        if (!(regret <= worst)) worst = regret;
    }
    g->kendall_tau = pairs > 0 ? tau / pairs : NAN;
    g->regret = sets ? sum / sets : NAN;
    g->regret_max = worst;
}

/* Whether an earlier row repeats the configuration with the same outcome. */
static bool repeats(const sc_validation *v, uint32_t i)
{
    const sc_valid_row *r = &v->rows[i];
    for (uint32_t j = 0; j < i; j++)
        if (v->rows[j].config_key == r->config_key &&
            v->rows[j].outcome == r->outcome &&
            isfinite(v->rows[j].fits_probability))
            return true;
    return false;
}

static void count_fit(const sc_validation *v, uint32_t i, sc_valid_fits *f)
{
    const sc_valid_row *r = &v->rows[i];
    if (!r->outcome || !isfinite(r->fits_probability) || repeats(v, i)) return;
    bool ran = r->outcome == CALIB_RAN;
    f->rows++;
    f->right += ran == r->fits;
    f->refused += ran && !r->fits;
    f->accepted += !ran && r->fits;
    f->squares += pow(r->fits_probability - ran, 2);
    uint32_t bin = (uint32_t)fmin(SC_FITS_BINS - 1,
                                  floor(SC_FITS_BINS * r->fits_probability));
    f->of_bin[bin]++;
    f->ran[bin] += ran;
}

static void add_fits(sc_valid_fits *sum, const sc_valid_fits *f)
{
    sum->rows += f->rows;
    sum->right += f->right;
    sum->refused += f->refused;
    sum->accepted += f->accepted;
    sum->squares += f->squares;
    for (uint32_t b = 0; b < SC_FITS_BINS; b++) {
        sum->of_bin[b] += f->of_bin[b];
        sum->ran[b] += f->ran[b];
    }
}

static void judge_group(const sc_validation *v, scratch *s, sc_valid_group *g)
{
    uint32_t n = 0, n_mem = 0, inside = 0, intervals = 0;
    double bias = 0;
    g->rows = g->skipped = 0;
    g->mem_max = NAN;
    g->fits = (sc_valid_fits){0};
    for (uint32_t i = 0; i < v->n_rows; i++) {
        const sc_valid_row *r = &v->rows[i];
        if (!in_group(r, g)) continue;
        g->rows++;
        g->skipped += r->reason != NULL;
        count_fit(v, i, &g->fits);
        double mem = fabs(r->mem_predicted / r->mem_measured - 1);
        if (isfinite(mem)) {
            bias += r->mem_predicted / r->mem_measured - 1;
            s->mem[n_mem++] = mem;
            if (!(mem <= g->mem_max)) g->mem_max = mem;
        }
        if (!r->counted) continue;
        s->err[n] = r->predicted / r->median - 1;
        s->ape[n] = fabs(s->err[n]);
        inside += calib_inside(r);
        intervals += isfinite(r->low) != 0;
        n++;
    }
    g->mape = calib_mean(s->ape, n);
    g->coverage = intervals ? (double)inside / intervals : NAN;
    g->bias = calib_mean(s->err, n);
    g->median_ape = sc_quantile(s->ape, n, 0.5);
    g->p90_ape = sc_quantile(s->ape, n, 0.9);
    g->mem_mape = calib_mean(s->mem, n_mem);
    g->mem_bias = n_mem ? bias / n_mem : NAN;
    g->mem_rows = n_mem;
    judge_order(v, s, g);
}

/* Sums memory and fits of all families. */
static void sum_memory(sc_validation *v)
{
    double mape = 0, bias = 0;
    v->mem_rows = 0;
    v->fits = (sc_valid_fits){0};
    for (uint32_t k = 0; k < v->n_groups; k++) {
        const sc_valid_group *g = &v->groups[k];
        if (g->device) continue;
        add_fits(&v->fits, &g->fits);
        if (!g->mem_rows) continue;
        v->mem_rows += g->mem_rows;
        mape += g->mem_mape * g->mem_rows;
        bias += g->mem_bias * g->mem_rows;
    }
    v->mem_mape = v->mem_rows ? mape / v->mem_rows : NAN;
    v->mem_bias = v->mem_rows ? bias / v->mem_rows : NAN;
}

/* Lists the groups: by family and device, or by family alone. */
static uint32_t list_groups(const sc_validation *v, bool devices,
                            sc_valid_group *g, uint32_t n)
{
    uint32_t from = n;
    for (uint32_t i = 0; i < v->n_rows; i++) {
        const sc_valid_row *r = &v->rows[i];
        bool known = false;
        for (uint32_t k = from; k < n && !known; k++)
            known = in_group(r, &g[k]);
        if (known) continue;
        g[n].family = r->family;
        g[n].dtype = r->dtype;
        g[n++].device = devices ? r->device : NULL;
    }
    return n;
}

sc_status calib_summarise(sc_validation *out, sc_arena *a, sc_err *err)
{
    uint32_t n = out->n_rows, counted = 0, n_mem = 0, inside = 0, intervals = 0;
    double *room = SC_NEW_N(a, double, 5 * (size_t)n);
    sc_valid_group *g = SC_NEW_N(a, sc_valid_group, 2 * (size_t)n);
    if (!room || !g) return sc_error_nomem(err);
    scratch s = {room, room + n, room + 2 * (size_t)n, room + 3 * (size_t)n,
                 room + 4 * (size_t)n};
    out->groups = g;
    out->n_groups = list_groups(out, true, g, 0);
    out->n_groups = list_groups(out, false, g, out->n_groups);
    for (uint32_t k = 0; k < out->n_groups; k++) judge_group(out, &s, &g[k]);
    sum_memory(out);
    out->skipped = 0;
    for (uint32_t i = 0; i < n; i++) {
        const sc_valid_row *r = &out->rows[i];
        out->skipped += r->reason != NULL;
        double mem = fabs(r->mem_predicted / r->mem_measured - 1);
        if (isfinite(mem)) s.mem[n_mem++] = mem;
        if (!r->counted) continue;
        s.ape[counted++] = fabs(r->predicted / r->median - 1);
        inside += calib_inside(r);
        intervals += isfinite(r->low) != 0;
    }
    out->coverage = intervals ? (double)inside / intervals : NAN;
    out->mem_mape = calib_mean(s.mem, n_mem);
    out->mape = calib_mean(s.ape, counted);
    out->median_ape = sc_quantile(s.ape, counted, 0.5);
    return SC_OK;
}
