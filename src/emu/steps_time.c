/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_time.c - how many repetitions of a sequence of operations make a step,
 * from what the program does around them.
 *
 * Operations say where a step ends only if they differ.  Six buckets of one
 * size are six equal all-reduces, and so are six steps of one all-reduce.  Two
 * things tell them apart, the first that does is taken:
 *
 * 1. Operations in flight.  A program that posts six operations, then waits for
 *    them, comes to every sixth repetition with nothing in flight.  The smallest
 *    m is taken for which 9 of 10 such repetitions are followed by another one m
 *    later, where there are m or more of every 8.
 *
 * 2. Program time: what passes from one repetition to the next without what the
 *    program waited.  An optimizer, a forward pass or a data loader stand once
 *    in a step.  Of the logarithm x of that time, what m classes (repetitions k
 *    of equal k mod m) explain is tested by the F statistic of a one-way
 *    analysis of variance.  Times of a real machine have outliers: x is taken
 *    in units of its own spread (median absolute deviation, at least 5%) around
 *    its median and cut at 4 of them, so that a single one weighs no more than
 *    a true pause, and only what comes again at the same place in the cycle
 *    counts.  m is significant if chance gives as much less than once in
 *    10^4 / (number of m tried) cases, and some class takes 10% longer than
 *    another.  Classes of m/2 explain half of what those of m do, classes of 2m
 *    no more: the smallest significant m is taken that explains 0.8 of what the
 *    best does (variance within classes, without bias).  A cycle can be part of
 *    a longer one (forward and backward pass of a layer, layers of a step), so
 *    the same is asked of units of m repetitions, until nothing is significant.
 *
 * Every cycle has to be seen 4 times.  Of longer runs the last 16384 repetitions
 * are looked at, which bounds the work; cycles up to a quarter of that are found.
 *
 * What it can't know: a pause of the program at every tenth step (an evaluation
 * without operations, a checkpoint) looks like a step of ten layers.  A step
 * whose pause is less than a tenth of a layer's time looks like its layers.
 */
#include "emu/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEEN   4u     /* times a cycle */
#define WINDOW 16384u /* repetitions */
#define CHANCE 1e-4
#define DOUBT  0.02   /* of that likelihood by chance: not sure */
#define CUT    4.0    /* spreads */
#define SPREAD 0.05   /* least, of log time */
#define EFFECT 0.0953 /* log 1.1 */
#define ENOUGH 0.8    /* of what the best explains */
#define AGAIN  0.9    /* of repetitions that come with nothing in flight */
#define SPARSE 8u     /* cycles per such repetition */

typedef struct clock_of {
    const sc_emu_run *r;
    sc_time *own; /* [n_records] program time at each post: without waits */
    bool *quiet;  /* [n_records] nothing was in flight */
    double *x, *gap, *sorted, *sum; /* [n] */
} clock_of;

/* ---- the program's own time ------------------------------------------------- */

typedef struct wait_end {
    sc_time at, waited;
} wait_end;

static int by_end(const void *a, const void *b)
{
    const wait_end *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void own_time(clock_of *c, wait_end *w)
{
    const sc_emu_run *r = c->r;
    uint64_t n = 0, k = 0;
    sc_time waited = 0, flying = 0, last = 0;
    for (uint64_t i = 0; i < r->n_records; i++)
        if (r->record[i].resumed > 0)
            w[n++] = (wait_end){r->record[i].resumed, r->record[i].waited};
    qsort(w, n, sizeof *w, by_end);
    for (uint64_t i = 0; i < r->n_records; i++) {
        const sc_emu_record *o = &r->record[i];
        for (; k < n && w[k].at <= o->post; k++) waited += w[k].waited;
        sc_time t = o->post - waited;
        /* threads that wait at once wait more than there is time */
        if (t < last) t = last;
        c->own[i] = last = t;
        c->quiet[i] = flying <= o->post;
        sc_time had = o->resumed ? o->resumed : o->end;
        if ((o->flags & SC_EMU_ASYNC) && had != SC_TIME_MAX && had > flying)
            flying = had;
    }
}

/* ---- operations in flight --------------------------------------------------- */

/* Repetitions between those that come with nothing in flight; 1: nothing is,
 * 0: there is no rule. */
static uint64_t drained(const clock_of *c, const steps_unit *u)
{
    uint64_t n_quiet = 0;
    for (uint64_t k = 0; k < u->n; k++) n_quiet += c->quiet[u->at[k]];
    if ((double)n_quiet >= 0.99 * (double)u->n) return 1;
    if (n_quiet < SEEN) return 0;
    for (uint64_t m = 2; m <= u->n / SEEN && m <= SPARSE * u->n / n_quiet;
         m++) {
        uint64_t of = 0, so = 0;
        for (uint64_t k = 0; k + m < u->n; k++) {
            if (!c->quiet[u->at[k]]) continue;
            of++;
            so += c->quiet[u->at[k + m]];
        }
        /* as many as there are by chance say nothing */
        if (of >= SEEN - 1 && (double)so >= AGAIN * (double)of &&
            2 * n_quiet <= u->n)
            return m;
    }
    return 0;
}

/* ---- program time ----------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(clock_of *c, const double *v, uint64_t n)
{
    memcpy(c->sorted, v, n * sizeof *v);
    qsort(c->sorted, n, sizeof *v, by_size);
    return c->sorted[n / 2];
}

/* Times in seconds become spreads from their median; the spread. */
static double normalize(clock_of *c, double *v, uint64_t n)
{
    double least = 0.01 * median(c, v, n) + 1e-12;
    for (uint64_t i = 0; i < n; i++) v[i] = log(v[i] + least);
    double mid = median(c, v, n);
    for (uint64_t i = 0; i < n; i++) c->sum[i] = fabs(v[i] - mid);
    double spread = 1.4826 * median(c, c->sum, n);
    if (spread < SPREAD) spread = SPREAD;
    for (uint64_t i = 0; i < n; i++)
        v[i] = fmax(-CUT, fmin(CUT, (v[i] - mid) / spread));
    return spread;
}

/* Sums of v by class; what they explain of its variance around 0. */
static double classes(const double *v, uint64_t n, uint64_t m, double *sum)
{
    double between = 0;
    uint64_t r = 0;
    memset(sum, 0, m * sizeof *sum);
    for (uint64_t k = 0; k < n; k++) {
        sum[r] += v[k];
        if (++r == m) r = 0;
    }
    for (r = 0; r < m; r++)
        between += sum[r] * sum[r] / (double)((n - r + m - 1) / m);
    return between;
}

/* The F statistic as a normal deviate (Paulson 1942). */
static double deviate(double f, double d1, double d2)
{
    double a = 2 / (9 * d1), b = 2 / (9 * d2), root = cbrt(f);
    return ((1 - b) * root - (1 - a)) / sqrt(b * root * root + a);
}

/* Of n tried, the least whose chance is below `p`. */
static double least_deviate(double p, uint64_t n)
{
    return sqrt(2 * log((double)n / p));
}

/* The classes' greatest mean; *range: less the least. */
static uint64_t longest_class(const double *sum, uint64_t n, uint64_t m,
                              double *range)
{
    double most = -HUGE_VAL, least = HUGE_VAL;
    uint64_t at = 0;
    for (uint64_t r = 0; r < m; r++) {
        double mean = sum[r] / (double)((n - r + m - 1) / m);
        if (mean > most) {
            most = mean;
            at = r;
        }
        if (mean < least) least = mean;
    }
    *range = most - least;
    return at;
}

typedef struct tried {
    double explains, deviate;
} tried;

static tried try_cycle(const clock_of *c, const double *v, uint64_t n,
                       uint64_t m, double total)
{
    double between = classes(v, n, m, c->sum);
    double d1 = (double)(m - 1), d2 = (double)(n - m);
    double within = (total - between) / d2;
    if (within < 1e-6 * total / (double)n) within = 1e-6 * total / (double)n;
    return (tried){1 - within * (double)(n - 1) / total,
                   deviate(between / d1 / within, d1, d2)};
}

/* The cycle of v[n]; 1: none.  *doubt: perhaps there is one. */
static uint64_t cycle(clock_of *c, double *v, uint64_t n, bool *doubt)
{
    uint64_t most = n / SEEN;
    double mean = 0, total = 0, best = 0, range;
    if (most < 2) return 1;
    double spread = normalize(c, v, n);
    for (uint64_t k = 0; k < n; k++) mean += v[k] / (double)n;
    for (uint64_t k = 0; k < n; k++) {
        v[k] -= mean;
        total += v[k] * v[k];
    }
    if (!(total > 0)) return 1;
    double sure = least_deviate(CHANCE, most);
    double perhaps = least_deviate(DOUBT, most);
    for (uint64_t m = 2; m <= most; m++) {
        tried t = try_cycle(c, v, n, m, total);
        if (t.deviate < perhaps) continue;
        longest_class(c->sum, n, m, &range);
        if (range * spread < EFFECT) continue;
        *doubt = true;
        if (t.deviate >= sure && t.explains > best) best = t.explains;
    }
    for (uint64_t m = 2; best > 0 && m <= most; m++) {
        tried t = try_cycle(c, v, n, m, total);
        if (t.deviate < sure || t.explains < ENOUGH * best) continue;
        longest_class(c->sum, n, m, &range);
        if (range * spread < EFFECT) continue;
        *doubt = false;
        return m;
    }
    return 1;
}

/* Program time from each of the last n + 1 repetitions to the next. */
static void times(const clock_of *c, const steps_unit *u, uint64_t n)
{
    const uint64_t *at = u->at + (u->n - 1 - n);
    for (uint64_t k = 0; k < n; k++)
        c->x[k] = sc_time_to_s(c->own[at[k + 1]] - c->own[at[k]]);
}

/* ---- steps ------------------------------------------------------------------ */

/* Which of the repetitions k mod m a step begins with: that with the longest
 * time before it, of those that most often come with nothing in flight. */
static uint64_t first_of(clock_of *c, const steps_unit *u, uint64_t m)
{
    uint64_t n = u->n, best = 0;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t i = u->at[k];
        c->gap[k] = i > 0 ? sc_time_to_s(c->own[i] - c->own[i - 1]) : 0;
    }
    normalize(c, c->gap, n);
    double most = -HUGE_VAL;
    for (uint64_t r = 0; r < m; r++) {
        double gap = 0, quiet = 0, of = (double)((n - r + m - 1) / m);
        for (uint64_t k = r; k < n; k += m) {
            gap += c->gap[k];
            quiet += c->quiet[u->at[k]];
        }
        double value = gap / of + (quiet > of / 2 ? 3 * CUT : 0);
        if (value > most) {
            most = value;
            best = r;
        }
    }
    return best;
}

static void merge(clock_of *c, steps_unit *u, uint64_t m)
{
    uint64_t n = 0;
    for (uint64_t k = first_of(c, u, m); k + m <= u->n; k += m)
        u->at[n++] = u->at[k];
    u->n = n;
    u->many *= m;
}

static void by_time(clock_of *c, steps_unit *u)
{
    for (uint64_t m = 2; m > 1 && u->n > 2;) {
        uint64_t n = u->n - 1 < WINDOW ? u->n - 1 : WINDOW;
        bool doubt = false;
        times(c, u, n);
        m = cycle(c, c->x, n, &doubt);
        if (doubt) u->sure = false;
        if (m > 1) merge(c, u, m);
    }
}

sc_status steps_unit_find(const sc_emu_run *r, sc_arena *a, steps_unit *u,
                          sc_err *err)
{
    uint64_t n = r->n_records;
    clock_of c = {.r = r};
    u->many = 1;
    u->sure = true;
    if (u->n < 2 * SEEN) return SC_OK;
    wait_end *w = SC_NEW_N(a, wait_end, n);
    c.own = SC_NEW_N(a, sc_time, n);
    c.quiet = SC_NEW_N(a, bool, n);
    c.x = SC_NEW_N(a, double, u->n);
    c.gap = SC_NEW_N(a, double, u->n);
    c.sorted = SC_NEW_N(a, double, u->n);
    c.sum = SC_NEW_N(a, double, u->n);
    if (!w || !c.own || !c.quiet || !c.x || !c.gap || !c.sorted || !c.sum)
        return sc_error_nomem(err);
    own_time(&c, w);
    uint64_t m = drained(&c, u);
    if (m > 1) {
        merge(&c, u, m);
        return SC_OK;
    }
    by_time(&c, u);
    if (m == 0 && u->many == 1) u->sure = false;
    return SC_OK;
}
