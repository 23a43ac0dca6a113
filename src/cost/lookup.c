/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c - which rows look-ups read, and how many of them a cache serves. */
#include "cost/cost_lookup.h"

#include <math.h>

#define SECTOR 32.0 /* bytes that memory and cache exchange at least */

/* Part of the last-level cache that rows get, beside indices and results
 * (Lin et al. 2022, heuristic look-up model). */
#define ROWS_PART 0.9

/* Warps that a multiprocessor holds: 64 on NVIDIA's devices for data centres
 * since Kepler (CUDA C++ Programming Guide, compute capabilities). */
#define WARPS 64.0

#define BIN_POINTS 4  /* groups per bin of a histogram */
#define HEAD       16 /* rows of Zipf's law that are groups of their own */

/* ---- laws */

static void add(sc_row_law *l, double rows, double weight, double rate)
{
    if (!(rows > 0) || !(weight > 0)) return;
    sc_assert(l->n < SC_ROW_GROUPS);
    double decay = l->drawn ? -log1p(-fmin(rate, 1 - 1e-12)) : rate;
    double own = l->drawn ? decay : fmax(0, decay - 1);
    l->group[l->n++] = (sc_row_group){rows, weight, decay, own, rate};
}

static void uniform(sc_row_law *l, double rows)
{
    add(l, rows, 1, fmin(1, 1 / rows));
}

/* Sum of i^-s over first <= i <= last, by the midpoint rule from rank 16 on. */
static double block(double s, double first, double last)
{
    double a = first - 0.5, b = last + 0.5;
    if (first == last) return pow(first, -s);
    if (fabs(s - 1) < 1e-9) return log(b / a);
    return (pow(b, 1 - s) - pow(a, 1 - s)) / (1 - s);
}

/* The first rows one by one, then blocks whose lengths are a geometric row. */
static void zipf(sc_row_law *l, double s, double rows, double parts)
{
    double all = 0, head = fmin(HEAD, floor(rows));
    double blocks = SC_ROW_GROUPS - HEAD - 8;
    double ratio = fmax(1.2, pow(rows / HEAD, 1 / blocks));
    for (int pass = 0; pass < 2; pass++) {
        double sum = 0;
        for (double first = 1, last; first <= rows; first = last + 1) {
            last = first <= head ? first : fmin(rows, floor(first * ratio));
            double n = last - first + 1, w = block(s, first, last);
            sum += w;
            if (pass == 1)
                add(l, n / parts, w / all, fmin(1, w / all / n * parts));
        }
        all = sum;
    }
}

static double limited(double a, double b)
{
    if (a * b <= 0) return 0;
    return fabs(a) < fabs(b) ? a : b;
}

/* Within a bin the density over the logarithm of the reuse factor is linear,
 * with the smaller of the slopes to both neighbours. */
static void reuse(sc_row_law *l, const sc_access *x, double lookups,
                  double scale)
{
    const double *f = x->fraction;
    for (int bin = 0; bin < SC_REUSE_BINS; bin++) {
        int points = bin < 2 ? 1 : BIN_POINTS;
        double before = bin > 0 ? f[bin - 1] : 0;
        double after = bin + 1 < SC_REUSE_BINS ? f[bin + 1] : 0;
        double slope = limited(f[bin] - before, after - f[bin]);
        for (int i = 0; i < points; i++) {
            double at = (i + 0.5) / points - 0.5;
            double k = points == 1 ? bin + 1 : exp2(bin - 0.5 + at);
            double w = (f[bin] + slope * at) / points;
            k = fmin(k * scale, lookups);
            add(l, lookups * w / k, w, k);
        }
    }
}

/* Rows that do not fit into the table are looked up more often instead. */
static void fit_rows(sc_row_law *l, double rows)
{
    double sum = 0;
    for (uint32_t i = 0; i < l->n; i++) sum += l->group[i].rows;
    if (sum <= rows) return;
    double factor = sum / rows;
    for (uint32_t i = 0; i < l->n; i++) {
        sc_row_group *g = &l->group[i];
        g->rows /= factor;
        g->rate *= factor;
        g->decay = g->rate;
        g->own = fmax(0, g->rate - 1);
    }
}

/* The histogram is that of `all` look-ups of the part.  A smaller batch is a
 * random part of them; in a larger one each row occurs more often. */
static void histogram(sc_row_law *l, const sc_lookups *of, double parts)
{
    double all = fmax(1, of->access->lookups / parts);
    double scale = fmax(1, l->count / all);
    double lookups = all * scale;
    reuse(l, of->access, lookups, scale);
    fit_rows(l, fmax(1, of->rows / parts));
    for (uint32_t i = 0; i < l->n; i++) l->group[i].rate /= lookups;
}

void sc_row_law_of(const sc_lookups *l, sc_row_law *out)
{
    double parts = fmax(1, l->parts), rows = fmax(1, l->rows);
    const sc_access *x = l->access;
    out->n = 0;
    out->drawn = !x || x->kind != SC_ACCESS_REUSE;
    out->count = fmax(1, l->count / parts);
    out->row_bytes = SECTOR * ceil(fmax(1, l->row_bytes) / SECTOR);
    if (!x || x->kind == SC_ACCESS_UNIFORM)
        uniform(out, fmax(1, rows / parts));
    else if (x->kind == SC_ACCESS_ZIPF)
        zipf(out, x->exponent, rows, parts);
    else
        histogram(out, l, parts);
}

/* ---- windows */

/* The length of a window of `t` look-ups. */
static double length(const sc_row_law *l, double t)
{
    if (l->drawn) return t;
    /* a row with reuse k has the rate k / lookups */
    double lookups = l->group[0].decay / l->group[0].rate;
    return -log1p(-fmin(t / lookups, 1 - 1e-12));
}

double sc_row_law_unique(const sc_row_law *l, double t)
{
    double x = length(l, t), sum = 0;
    for (uint32_t i = 0; i < l->n; i++)
        sum += l->group[i].rows * -expm1(-l->group[i].decay * x);
    return sum;
}

/* Mean probability that a look-up finds its row in a window of `t` look-ups, or
 * in all those before it if they are fewer. */
static double hits(const sc_row_law *l, double t)
{
    double x = length(l, t), sum = 0, n = l->count;
    for (uint32_t i = 0; i < l->n; i++) {
        const sc_row_group *g = &l->group[i];
        double first = t + expm1(-g->decay * x) / g->rate;
        double later = (n - t) * -expm1(-g->own * x);
        sum += g->weight * fmax(0, first + later);
    }
    return fmin(1, sum / n);
}

static double held(const sc_row_law *const *law, uint32_t n, double part)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum +=
            law[i]->row_bytes * sc_row_law_unique(law[i], part * law[i]->count);
    return sum;
}

/* The part of the batch whose rows fill the cache.  Between the bounds, bytes
 * are interpolated on the logarithms; every third step halves instead. */
static double filled_by(const sc_row_law *const *law, uint32_t n, double bytes)
{
    double lo = 1e-15, hi = 1;
    double at_hi = held(law, n, hi), at_lo = held(law, n, lo);
    if (at_hi <= bytes) return 1;
    if (!(at_lo < bytes)) return lo;
    for (int i = 0; i < 90 && hi > lo * (1 + 1e-6); i++) {
        double part = log(bytes / at_lo) / log(at_hi / at_lo);
        if (i % 3 == 2) part = 0.5;
        part = fmin(0.99, fmax(0.01, part));
        double mid = lo * pow(hi / lo, part), at = held(law, n, mid);
        if (fabs(at - bytes) < 1e-5 * bytes) return mid;
        if (at > bytes)
            hi = mid, at_hi = at;
        else
            lo = mid, at_lo = at;
    }
    return sqrt(lo * hi);
}

void sc_lookup_hits(const sc_row_law *const *law, uint32_t n, double bytes,
                    double *hit)
{
    double part = bytes > 0 ? filled_by(law, n, bytes) : 0;
    for (uint32_t i = 0; i < n; i++)
        hit[i] = part > 0 ? hits(law[i], part * law[i]->count) : 0;
}

/* ---- devices */

double sc_lookup_cache(uint64_t l2_bytes)
{
    return ROWS_PART * (double)l2_bytes;
}

double sc_lookup_together(uint32_t units, double samples, uint32_t tables)
{
    double running = ceil(WARPS * units / fmax(1, samples));
    return fmax(1, fmin(tables ? tables : 1, running));
}
