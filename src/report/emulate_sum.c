/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_sum.c - sums up the logs of a run. */
#include "report/emulate_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct adding {
    sc_arena *a;
    sc_report_emu_sum *sum;
    uint32_t cap;
    sc_map index; /* calls */
} adding;

static uint64_t hash_of(const sc_report_calls *k)
{
    const uint64_t key[] = {(uint64_t)k->coll, k->group_size, k->bytes};
    return sc_hash(key, sizeof key, 0);
}

static bool same(const sc_report_calls *x, const sc_report_calls *y)
{
    return x->coll == y->coll && x->group_size == y->group_size &&
           x->bytes == y->bytes;
}

static sc_report_calls *row_of(adding *d, const sc_report_calls *k)
{
    uint64_t hash = hash_of(k);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&d->index, hash, &at)) != SC_MAP_END)
        if (same(&d->sum->calls[i], k)) return &d->sum->calls[i];
    sc_report_calls *calls = sc_grow(d->a, d->sum->calls, d->sum->n_calls,
                                     &d->cap, 16, sizeof *calls);
    if (!calls) return NULL;
    d->sum->calls = calls;
    if (!sc_map_add(&d->index, d->a, hash, d->sum->n_calls)) return NULL;
    calls[d->sum->n_calls] = *k;
    return &calls[d->sum->n_calls++];
}

static bool add_run(adding *d, const sc_emu_run *r)
{
    for (uint64_t i = 0; i < r->n_records; i++) {
        const sc_emu_record *x = &r->record[i];
        uint32_t size = x->group < r->n_groups ? r->group[x->group].n : 0;
        sc_report_calls key = {
            .coll = (sc_coll)x->coll, .group_size = size, .bytes = x->bytes};
        sc_report_calls *row = row_of(d, &key);
        if (!row) return false;
        row->count++;
        row->waited += x->waited;
        if (x->flags & SC_EMU_DEVICE) row->device = d->sum->device = true;
        if (x->end == SC_TIME_MAX) {
            d->sum->n_open++;
            continue;
        }
        row->ended++;
        row->modelled += x->end - x->begin;
    }
    d->sum->n_ops += r->n_records;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const sc_report_calls *x = a, *y = b;
    if (x->modelled != y->modelled) return x->modelled > y->modelled ? -1 : 1;
    if (x->coll != y->coll) return x->coll < y->coll ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->group_size > y->group_size) - (x->group_size < y->group_size);
}

/* ---- steps --------------------------------------------------------------- */

/* The first step of a rank includes work that is done only once. */
static uint32_t first_step(const sc_report_real *k)
{
    return k->n_steps > 1 ? 1 : 0;
}

/* The part of the program's waiting time before all members had arrived. */
static sc_time for_ranks(const sc_emu_record *o)
{
    sc_time from = o->resumed - o->waited;
    if (o->waited == 0 || o->begin <= from) return 0;
    return o->begin - from < o->waited ? o->begin - from : o->waited;
}

/* `late`: grows by the time that was spent waiting for ranks. */
static sc_time waited_in(const sc_emu_run *r, const sc_emu_step *s,
                         sc_time *late)
{
    sc_time t = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        t += r->record[s->first + i].waited;
        *late += for_ranks(&r->record[s->first + i]);
    }
    return t;
}

/* With several streams, records are in the order of posts, which is nearly
 * that of their times. A record that begins before the counted time adds
 * nothing. */
sc_time report_emulate_in_flight(const sc_emu_run *r, const sc_emu_step *s)
{
    sc_time t = 0, to = s->begin;
    for (uint64_t i = 0; i < s->n; i++) {
        const sc_emu_record *x = &r->record[s->first + i];
        sc_time from = x->flags & SC_EMU_DEVICE ? x->post : x->begin;
        if (from < to) from = to;
        sc_time end = x->end < s->end ? x->end : s->end;
        if (end <= from) continue;
        t += end - from;
        to = end;
    }
    return t;
}

/* What a rank computed in each step.  Ranks differ by what they do, so the
 * spread of each is its own. */
static sc_status computed(const sc_report_emulation *s, sc_arena *a,
                          sc_report_emu_sum *sum, sc_err *err)
{
    double *all = SC_NEW_N(a, double, sum->n_steps);
    if (!all) return sc_error_nomem(err);
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const sc_report_real *k = &s->rank[i];
        double *v = all + n;
        uint64_t own = 0;
        sc_time late = 0;
        for (uint32_t j = first_step(k); j < k->n_steps; j++) {
            const sc_emu_step *x = &k->step[j];
            v[own++] =
                sc_time_to_s(x->end - x->begin - waited_in(k->run, x, &late));
        }
        if (own == 0) continue;
        sc_sort(v, own);
        double median = sc_quantile_sorted(v, own, 0.5);
        double apart =
            sc_quantile_sorted(v, own, 0.75) - sc_quantile_sorted(v, own, 0.25);
        if (median > 0 && !(apart / median <= sum->compute_spread))
            sum->compute_spread = apart / median;
        n += own;
    }
    sc_sort(all, n);
    sum->compute_s = sc_quantile_sorted(all, n, 0.5);
    return SC_OK;
}

static sc_status steps(const sc_report_emulation *s, sc_arena *a,
                       sc_report_emu_sum *sum, sc_err *err)
{
    uint64_t n = 0;
    sc_time length = 0, waited = 0, late = 0, in_flight = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->rank[i].n_steps - first_step(&s->rank[i]);
    sum->n_steps = n;
    if (n == 0) return SC_OK;
    double *v = SC_NEW_N(a, double, n);
    if (!v) return sc_error_nomem(err);
    n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const sc_report_real *k = &s->rank[i];
        for (uint32_t j = first_step(k); j < k->n_steps; j++) {
            sc_assert(k->run != NULL);
            v[n++] = sc_time_to_s(k->step[j].end - k->step[j].begin);
            length += k->step[j].end - k->step[j].begin;
            in_flight += report_emulate_in_flight(k->run, &k->step[j]);
            waited += waited_in(k->run, &k->step[j], &late);
        }
    }
    sc_sort(v, n);
    sum->step_s = sc_quantile_sorted(v, n, 0.5);
    sum->step_q1_s = sc_quantile_sorted(v, n, 0.25);
    sum->step_q3_s = sc_quantile_sorted(v, n, 0.75);
    sum->step_max_s = v[n - 1];
    sum->step_mean_s = sc_time_to_s(length) / (double)n;
    sum->in_flight_s = sc_time_to_s(in_flight) / (double)n;
    if (sum->device) return SC_OK;
    sum->waited_s = sc_time_to_s(waited) / (double)n;
    sum->waited_for_ranks_s = sc_time_to_s(late) / (double)n;
    return computed(s, a, sum, err);
}

sc_status sc_report_emulation_sum(const sc_report_emulation *s, sc_arena *a,
                                  sc_report_emu_sum *out, sc_err *err)
{
    adding d = {.a = a, .sum = out};
    sc_time late = 0;
    uint64_t n_late = 0;
    *out = (sc_report_emu_sum){.step_s = NAN,
                               .step_q1_s = NAN,
                               .step_q3_s = NAN,
                               .step_mean_s = NAN,
                               .step_max_s = NAN,
                               .waited_for_ranks_s = NAN,
                               .in_flight_s = NAN,
                               .waited_s = NAN,
                               .compute_s = NAN,
                               .compute_spread = NAN,
                               .late_s = NAN};
    for (uint32_t i = 0; i < s->n; i++) {
        const sc_emu_run *r = s->rank[i].run;
        if (!r) continue;
        if (!add_run(&d, r)) return sc_error_nomem(err);
        out->overhead_s += sc_time_to_s(r->totals.overhead);
        out->passed += r->totals.passed;
        late += r->totals.late;
        n_late += r->totals.n_late;
    }
    if (n_late > 0) out->late_s = sc_time_to_s(late) / (double)n_late;
    if (out->n_calls > 0)
        qsort(out->calls, out->n_calls, sizeof *out->calls, by_time);
    return steps(s, a, out, err);
}
