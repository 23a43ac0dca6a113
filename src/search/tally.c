/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - the best points, the front, the best of each value, reasons. */
#include "search/tally.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int sc_search_row_order(const sc_search_row *x, const sc_search_row *y,
                        uint32_t n)
{
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    for (uint32_t i = 0; i < n; i++)
        if (x->digit[i] != y->digit[i])
            return x->digit[i] < y->digit[i] ? -1 : 1;
    return 0;
}

bool search_tally_init(search_tally *t, const sc_search_jobs *jobs,
                       const sc_search_options *o, sc_arena *a)
{
    *t = (search_tally){.jobs = jobs,
                        .a = a,
                        .top = o->top,
                        .only_best = o->only_best,
                        .keeps = o->keep != NULL,
                        .scored = o->goal != SC_GOAL_STEP_TIME,
                        .kind = o->kinds ? jobs->kind : UINT64_MAX,
                        .best = SC_NEW_N(a, sc_search_row, o->top + 1),
                        .per_axis = SC_NEW_N(a, sc_search_row *, jobs->n)};
    if (!t->best || !t->per_axis) return false;
    for (uint32_t i = 0; i < jobs->n; i++) {
        t->per_axis[i] = SC_NEW_N(a, sc_search_row, jobs->option[i].axis.n);
        if (!t->per_axis[i]) return false;
    }
    search_tally_clear(t);
    return true;
}

static void clear_counts(search_tally *t)
{
    t->evaluated = t->pruned = 0;
    t->n_reasons = 0;
    memset(t->steps, 0, sizeof t->steps);
    sc_store_block_clear(&t->rows);
}

void search_tally_clear(search_tally *t)
{
    clear_counts(t);
    t->n_best = t->n_front = 0;
    for (uint32_t i = 0; i < t->jobs->n; i++)
        for (uint32_t k = 0; k < t->jobs->option[i].axis.n; k++)
            t->per_axis[i][k].score = t->per_axis[i][k].point.step_s = INFINITY;
}

static bool sooner(const search_tally *t, const sc_search_row *x,
                   const sc_search_row *y)
{
    return sc_search_row_order(x, y, t->jobs->n) < 0;
}

static bool alike(const search_tally *t, const sc_search_row *x,
                  const sc_search_row *y)
{
    for (uint32_t i = 0; i < t->jobs->n; i++)
        if (t->kind >> i & 1 && x->digit[i] != y->digit[i]) return false;
    return true;
}

/* Removes the row of the same kind.  False: it is not slower than `row`. */
static bool drop_alike(search_tally *t, const sc_search_row *row)
{
    uint32_t i = 0;
    while (i < t->n_best && !alike(t, row, &t->best[i])) i++;
    if (i == t->n_best) return true;
    if (!sooner(t, row, &t->best[i])) return false;
    t->n_best--;
    memmove(&t->best[i], &t->best[i + 1], (t->n_best - i) * sizeof *t->best);
    return true;
}

/* A kind that is not among the best is slower than `top` other kinds, whose
 * rows only get faster: so the best of each kind are exact. */
void search_tally_add_best(search_tally *t, const sc_search_row *row)
{
    if (t->n_best == t->top && !sooner(t, row, &t->best[t->top - 1])) return;
    if (!drop_alike(t, row)) return;
    uint32_t i = t->n_best;
    while (i > 0 && sooner(t, row, &t->best[i - 1])) i--;
    if (t->n_best < t->top) t->n_best++;
    memmove(&t->best[i + 1], &t->best[i],
            (t->n_best - 1 - i) * sizeof *t->best);
    t->best[i] = *row;
}

/* Rows of the front that are not slower and need no more memory leave no place
 * for `row`; those that it dominates leave. Of equal rows the first in the
 * order of points stays. */
void search_tally_add_front(search_tally *t, const sc_search_row *row)
{
    uint32_t i = 0, n = 0;
    while (i < t->n_front && sooner(t, &t->front[i], row)) i++;
    if (i > 0 && t->front[i - 1].point.peak <= row->point.peak) return;
    sc_search_row *all =
        sc_grow(t->a, t->front, t->n_front, &t->cap_front, 16, sizeof *all);
    if (!all) {
        t->failed = true;
        return;
    }
    t->front = all;
    memmove(&all[i + 1], &all[i], (t->n_front - i) * sizeof *all);
    all[i] = *row;
    t->n_front++;
    for (uint32_t k = n = i + 1; k < t->n_front; k++)
        if (all[k].point.peak < row->point.peak) all[n++] = all[k];
    t->n_front = n;
}

static void keep(search_tally *t, const sc_search_row *row)
{
    search_tally_add_best(t, row);
    if (t->only_best) return;
    search_tally_add_front(t, row);
    for (uint32_t i = 0; i < t->jobs->n; i++) {
        sc_search_row *best = &t->per_axis[i][row->digit[i]];
        if (best->score == INFINITY || sooner(t, row, best)) *best = *row;
    }
}

/* The bucket of a step: four for each power of two of seconds. */
static uint32_t bucket_of(double step_s)
{
    int power;
    double m = frexp(step_s, &power); /* 0.5 <= m < 1 */
    int quarter = (m >= 0x1.306fe0a31b715p-1) + (m >= 0x1.6a09e667f3bcdp-1) +
                  (m >= 0x1.ae89f995ad3adp-1);
    int at = 4 * (power - 1 + SC_SEARCH_BUCKETS / 8) + quarter;
    if (at < 0) return 0;
    return at < SC_SEARCH_BUCKETS ? (uint32_t)at : SC_SEARCH_BUCKETS - 1;
}

double sc_search_bucket(uint32_t i)
{
    static const double quarter[] = {1, 0x1.306fe0a31b715p0,
                                     0x1.6a09e667f3bcdp0, 0x1.ae89f995ad3adp0};
    return ldexp(quarter[i % 4], (int)(i / 4) - SC_SEARCH_BUCKETS / 8);
}

static void keep_row(search_tally *t, const sc_search_row *row)
{
    double score = row->score;
    if (!t->scored) score = NAN;
    sc_store_block_add(&t->rows, t->jobs->n, row->digit,
                       (uint64_t)sc_time_from_s(row->point.step_s),
                       (uint64_t)row->point.peak, score);
    t->failed = t->failed || t->rows.bytes.failed;
}

void search_tally_add(search_tally *t, const sc_search_row *row, bool may)
{
    t->evaluated++;
    t->steps[bucket_of(row->point.step_s)]++;
    if (t->keeps) keep_row(t, row);
    if (may) keep(t, row);
}

void search_tally_refuse(search_tally *t, const char *reason, uint64_t n)
{
    uint32_t i = 0;
    while (i < t->n_reasons && strcmp(t->reason[i].name, reason) != 0) i++;
    if (i == SC_SEARCH_REASONS) i--; /* the last one has the rest */
    if (i == t->n_reasons) {
        snprintf(t->reason[i].name, sizeof t->reason[i].name, "%s", reason);
        t->reason[i].n = 0;
        t->n_reasons++;
    }
    t->reason[i].n += n;
}

double search_tally_beat(const search_tally *t, const uint32_t *digit,
                         double peak)
{
    double beat = t->n_best < t->top ? INFINITY : t->best[t->top - 1].score;
    double front = INFINITY;
    for (uint32_t i = 0; i < t->jobs->n && !t->only_best; i++)
        beat = fmax(beat, t->per_axis[i][digit[i]].score);
    for (uint32_t i = 0; i < t->n_front && front == INFINITY; i++)
        if (t->front[i].point.peak <= peak) front = t->front[i].score;
    if (!t->only_best) beat = fmax(beat, front);
    return isinf(beat) ? INFINITY : beat * (1 + 1e-12);
}

void search_tally_seed(search_tally *t, const search_tally *from)
{
    clear_counts(t);
    t->n_front = 0;
    t->n_best = from->n_best;
    memcpy(t->best, from->best, from->n_best * sizeof *t->best);
    for (uint32_t i = 0; i < from->n_front; i++)
        search_tally_add_front(t, &from->front[i]);
    for (uint32_t i = 0; i < t->jobs->n; i++)
        memcpy(t->per_axis[i], from->per_axis[i],
               t->jobs->option[i].axis.n * sizeof **t->per_axis);
}

void search_tally_join(search_tally *t, const search_tally *other)
{
    t->evaluated += other->evaluated;
    t->pruned += other->pruned;
    for (uint32_t i = 0; i < SC_SEARCH_BUCKETS; i++)
        t->steps[i] += other->steps[i];
    for (uint32_t i = 0; i < other->n_reasons; i++)
        search_tally_refuse(t, other->reason[i].name, other->reason[i].n);
    for (uint32_t i = 0; i < other->n_best; i++)
        search_tally_add_best(t, &other->best[i]);
    for (uint32_t i = 0; i < other->n_front; i++)
        search_tally_add_front(t, &other->front[i]);
    for (uint32_t i = 0; i < t->jobs->n; i++)
        for (uint32_t k = 0; k < t->jobs->option[i].axis.n; k++) {
            const sc_search_row *row = &other->per_axis[i][k];
            sc_search_row *best = &t->per_axis[i][k];
            bool none = best->score == INFINITY;
            if (row->score < INFINITY && (none || sooner(t, row, best)))
                *best = *row;
        }
    t->failed = t->failed || other->failed;
}
