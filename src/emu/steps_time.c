/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_time.c - how many repetitions of a sequence of operations make a step,
 * from what the program does around them.
 *
 * Operations show where a step ends only if they differ.  Six buckets of one
 * size are six equal all-reduces, and so are six steps of one all-reduce.  Two
 * things tell them apart; the first that does is taken:
 *
 * 1. Operations in flight.  A program that posts six operations and then waits
 *    for them reaches every sixth repetition with nothing in flight.  The
 *    smallest m is taken for which 9 of 10 such repetitions are followed by
 *    another one m later, where at least m of every 8 are such repetitions.
 *
 * 2. Program time: the time from one repetition to the next without what the
 *    program waited.  An optimizer, a forward pass or a data loader comes once
 *    in a step, so if m repetitions make a step, the longest times have the same
 *    place in every m.  Of n times, t are the longest, and `of` have one place.
 *    If the program had no cycle, every choice of t of n would be as likely, and
 *    j or more of them would have that place with the hypergeometric chance
 *      sum over i >= j of  C(of, i) C(n - of, t - i) / C(n, t)
 *    (Fisher's exact test: R. A. Fisher, The Logic of Inductive Inference, 1935).
 *    It assumes no distribution of the times.  The m whose place is least likely
 *    is taken if that chance times the number of places tried (Bonferroni) is at
 *    most CHANCE.  A multiple of the cycle has fewer times in one place and a
 *    divisor has shorter ones among them, so both are more likely than the cycle.
 *    A cycle can be part of a longer one (halves of a layer, layers of a step),
 *    so the same is asked of units of m repetitions, until nothing is found from
 *    one unit to the next nor from middle to middle.
 *
 * The result is not sure if some place is less likely than DOUBT; or if times
 * vary so much that a pause which makes a time twice as long as the shorter ones
 * (their lower quartile) would not be as unlikely as that; or if operations are in
 * flight without a rule.
 *
 * Every cycle has to be seen 4 times.  Of longer runs the last 16384 repetitions
 * are looked at, which bounds the work.  A pause of the program at every tenth
 * step (an evaluation without operations, a checkpoint) looks like a step of ten
 * layers; --step-collectives says otherwise.
 */
#include "emu/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEEN   ((uint64_t)4) /* times a cycle */
#define WINDOW 16384u        /* repetitions */
#define CHANCE 1e-3
#define DOUBT  0.1
#define EFFECT 1.1 /* times that differ less have no cycle */
#define AGAIN  0.9 /* of repetitions that come with nothing in flight */
#define SPARSE 8u  /* cycles per such repetition */

typedef struct timed {
    double time;
    uint32_t at; /* index in x */
} timed;

typedef struct clock_of {
    const sc_emu_run *r;
    sc_time *own;  /* [n_records] program time at each post: without waits */
    bool *quiet;   /* [n_records] nothing was in flight */
    double *x;     /* [n] times in seconds */
    timed *sorted; /* [n] the longest first */
    double *log_factorial; /* [n + 1] */
    uint32_t *count;       /* [n] of the longest, at each place */
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

static int longer_first(const void *a, const void *b)
{
    const timed *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sets `sorted` from the first n of x. */
static void sort(clock_of *c, uint64_t n)
{
    for (uint64_t k = 0; k < n; k++)
        c->sorted[k] = (timed){c->x[k], (uint32_t)k};
    qsort(c->sorted, n, sizeof *c->sorted, longer_first);
}

static double log_choose(const clock_of *c, uint64_t n, uint64_t k)
{
    return c->log_factorial[n] - c->log_factorial[k] - c->log_factorial[n - k];
}

/* -log of a bound of the chance that j or more of the t longest of n times are
 * among `of` of them: the terms of the sum shrink at least as fast as the first
 * two. */
static double unlikeliness(const clock_of *c, uint64_t n, uint64_t t,
                           uint64_t of, uint64_t j)
{
    if (j * n <= t * of) return 0;
    double ratio = (double)(of - j) * (double)(t - j) / (double)(j + 1) /
                   (double)(n - of - t + j + 1);
    return log_choose(c, n, t) - log_choose(c, of, j) -
           log_choose(c, n - of, t - j) + log1p(-ratio);
}

typedef struct best_place {
    uint64_t m;
    double unlikely, tried;
} best_place;

/* Places [from, to) of m, which have `of` times each. */
static void places(clock_of *c, uint64_t n, uint64_t m, uint64_t from,
                   uint64_t to, best_place *best)
{
    uint64_t of = (n - from + m - 1) / m, counted = 0;
    double least = EFFECT * c->sorted[3 * n / 4].time;
    memset(c->count, 0, m * sizeof *c->count);
    for (uint64_t t = of; t <= (n + 1) / 2; t *= 2) {
        uint32_t most = 0;
        for (; counted < t; counted++)
            c->count[c->sorted[counted].at % (uint32_t)m]++;
        for (uint64_t r = from; r < to; r++)
            if (c->count[r] > most) most = c->count[r];
        best->tried += (double)(to - from);
        if (c->sorted[t / 2].time < least) continue;
        double u = unlikeliness(c, n, t, of, most);
        if (u <= best->unlikely) continue;
        best->unlikely = u;
        best->m = m;
    }
}

/* Whether a pause that makes a time twice as long as the shorter ones, seen SEEN
 * times, would be so unlikely. */
static bool would_be_seen(const clock_of *c, uint64_t n, double unlikely)
{
    uint64_t t = 0;
    while (t < n && c->sorted[t].time > 2 * c->sorted[3 * n / 4].time) t++;
    t += SEEN;
    return 2 * t <= n &&
           unlikeliness(c, n, t, n / (n / SEEN), SEEN) >= unlikely;
}

/* The cycle of the first n of x; 1: none.  *doubt: perhaps there is one. */
static uint64_t cycle(clock_of *c, uint64_t n, bool *doubt)
{
    best_place best = {.m = 1};
    if (n < 2 * SEEN) return 1;
    sort(c, n);
    for (uint64_t m = 2; m <= n / SEEN; m++) {
        if (n % m > 0) places(c, n, m, 0, n % m, &best);
        places(c, n, m, n % m, m, &best);
    }
    if (best.unlikely >= log(best.tried / CHANCE)) return best.m;
    double doubtful = log(best.tried / DOUBT);
    if (best.unlikely >= doubtful || !would_be_seen(c, n, doubtful))
        *doubt = true;
    return 1;
}

/* Program time from each of the last n + 1 repetitions to the next, or from the
 * middle of each. */
static void times(clock_of *c, const steps_unit *u, uint64_t n, bool middle)
{
    const uint64_t *at = u->at + (u->n - 1 - n);
    uint64_t by = at[1] - at[0];
    for (uint64_t k = 1; k < n; k++)
        if (at[k + 1] - at[k] < by) by = at[k + 1] - at[k];
    by = middle && at[n] + by / 2 < c->r->n_records ? by / 2 : 0;
    for (uint64_t k = 0; k < n; k++)
        c->x[k] = sc_time_to_s(c->own[at[k + 1] + by] - c->own[at[k] + by]);
}

/* ---- steps ------------------------------------------------------------------ */

/* Which of the repetitions k mod m a step begins with: that with the longest
 * time before it (mean of ranks), of those that most often come with nothing in
 * flight. */
static uint64_t first_of(clock_of *c, const steps_unit *u, uint64_t m)
{
    uint64_t n = u->n, best = 0;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t i = u->at[k];
        c->x[k] = i > 0 ? sc_time_to_s(c->own[i] - c->own[i - 1]) : 0;
    }
    sort(c, n);
    for (uint64_t k = 0; k < n; k++) c->x[c->sorted[k].at] = (double)(n - k);
    double most = -HUGE_VAL;
    for (uint64_t r = 0; r < m; r++) {
        double rank = 0, quiet = 0, of = 0;
        for (uint64_t k = r; k < n; k += m) {
            of++;
            rank += c->x[k];
            quiet += c->quiet[u->at[k]];
        }
        double value = rank / of + (quiet > of / 2 ? (double)n : 0);
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
        times(c, u, n, false);
        m = cycle(c, n, &doubt);
        if (m == 1 && u->many > 1) {
            times(c, u, n, true);
            m = cycle(c, n, &doubt);
        }
        if (doubt && m == 1) u->sure = false;
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
    c.log_factorial = SC_NEW_N(a, double, u->n + 1);
    c.sorted = SC_NEW_N(a, timed, u->n);
    c.count = SC_NEW_N(a, uint32_t, u->n);
    if (!w || !c.own || !c.quiet || !c.x || !c.log_factorial || !c.sorted ||
        !c.count)
        return sc_error_nomem(err);
    for (uint64_t k = 2; k <= u->n; k++)
        c.log_factorial[k] = c.log_factorial[k - 1] + log((double)k);
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
