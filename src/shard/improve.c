/* SPDX-License-Identifier: Apache-2.0 */
/*
 * improve.c - the sharder that uses predicted steps: local search from the best
 * simple plan.
 *
 * Changes concern the devices that end a phase last, or lack memory: a table or
 * part moves to another device, two tables change places, or a table is divided
 * in another way.  The first change that lowers the score is kept.  The score
 * is the estimated step, a little of the loads' squares, which tells plans with
 * equal steps apart, and the memory that devices lack.
 */
#include "shard/prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVALUATIONS 30000.0 /* of the score, on up to 16 devices */
#define EQUALIZE    1e-3    /* weight of the squares */
#define LACKS       10.0    /* seconds for a device's whole memory lacking */
#define OTHERS      8u      /* devices that may get tables */

typedef struct search {
    sc_shard_prices *p;
    sc_shard_plan *plan;
    double score, room;
    uint32_t *order; /* [n] devices by rising load */
    uint32_t left;   /* evaluations */
    sc_err *err;
} search;

static double kernels(const sc_shard_load *l)
{
    return l->forward + l->backward;
}

static sc_status score_of(const search *s, double *out)
{
    const sc_shard_load *load = s->plan->load;
    double squares = 0, most = 1e-12, lacks = 0, sums = shard_sums(s->p, load);
    SC_TRY(shard_step(s->p, load, &s->plan->step, s->err));
    for (uint32_t d = 0; d < s->p->n; d++) {
        double k = kernels(&load[d]);
        squares += k * k;
        most = fmax(most, k);
        lacks += fmax(0, shard_memory(s->p, &load[d], sums) - s->room);
    }
    *out = s->plan->step.step + EQUALIZE * squares / (most * s->p->n) +
           LACKS * lacks / s->room;
    return SC_OK;
}

static void put(search *s, uint32_t table, const sc_shard_place *x)
{
    shard_add(s->p, table, &s->plan->place[table], -1, s->plan->load);
    s->plan->place[table] = *x;
    shard_add(s->p, table, x, 1, s->plan->load);
}

/* Makes up to two changes of places at once; takes them back if the score does
 * not fall. */
static sc_status try(search *s, const uint32_t *table, const sc_shard_place *to,
                     uint32_t n, bool *better)
{
    sc_shard_place before[2];
    double score;
    *better = false;
    if (s->left == 0) return SC_OK;
    s->left--;
    for (uint32_t i = 0; i < n; i++) before[i] = s->plan->place[table[i]];
    for (uint32_t i = 0; i < n; i++) put(s, table[i], &to[i]);
    SC_TRY(score_of(s, &score));
    if (score < s->score * (1 - 1e-9)) {
        s->score = score;
        *better = true;
        return SC_OK;
    }
    for (uint32_t i = 0; i < n; i++) put(s, table[i], &before[i]);
    return SC_OK;
}

static void sort_devices(search *s)
{
    const sc_shard_load *l = s->plan->load;
    for (uint32_t i = 0; i < s->p->n; i++) {
        uint32_t d = i, at = i;
        for (; at > 0 && kernels(&l[s->order[at - 1]]) > kernels(&l[d]); at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = d;
    }
}

static int part_on(const sc_shard_place *x, uint32_t device)
{
    for (int i = 0; i < x->parts; i++)
        if (x->device[i] == device) return i;
    return -1;
}

/* ---- changes of one table */

static sc_status move(search *s, uint32_t table, uint32_t from, bool *better)
{
    const sc_shard_place *now = &s->plan->place[table];
    int part = part_on(now, from);
    uint32_t n = s->p->n < 2 * OTHERS ? s->p->n : OTHERS;
    for (uint32_t i = 0; i < n && part >= 0; i++) {
        sc_shard_place x = *now;
        if (part_on(now, s->order[i]) >= 0) continue;
        x.device[part] = s->order[i];
        SC_TRY(try(s, &table, &x, 1, better));
        if (*better) return SC_OK;
    }
    return SC_OK;
}

static sc_status divide(search *s, uint32_t table, bool *better)
{
    uint32_t now = shard_variant(&s->plan->place[table]);
    for (uint32_t v = 0; v < SHARD_VARIANTS; v++) {
        sc_shard_place x;
        if (v == now || !shard_possible(s->p, table, v)) continue;
        shard_variant_of(v, &x);
        for (uint32_t i = 0; i < x.parts; i++) x.device[i] = s->order[i];
        SC_TRY(try(s, &table, &x, 1, better));
        if (*better) return SC_OK;
    }
    return SC_OK;
}

/* With a whole table of one of the less loaded devices. */
static sc_status exchange(search *s, uint32_t table, uint32_t from,
                          bool *better)
{
    const sc_shard_place *now = &s->plan->place[table];
    const sc_shard_load *load = s->plan->load;
    uint32_t limit = s->order[(s->p->n < 2 * OTHERS ? s->p->n : OTHERS) - 1];
    if (now->split != SC_SHARD_TABLE) return SC_OK;
    for (uint32_t u = 0; u < s->p->job->n_tables; u++) {
        const sc_shard_place *other = &s->plan->place[u];
        uint32_t d = other->device[0];
        bool near = kernels(&load[d]) <= kernels(&load[limit]);
        if (other->split != SC_SHARD_TABLE || !near || d == from) continue;
        const uint32_t both[] = {table, u};
        const sc_shard_place to[] = {*other, *now};
        SC_TRY(try(s, both, to, 2, better));
        if (*better) return SC_OK;
    }
    return SC_OK;
}

/* ---- starts */

/* Tables that no device has room for are divided by rows as far as possible,
 * because dividing one of several does not yet make the others fit. */
static void divide_large(search *s)
{
    for (uint32_t t = 0; t < s->p->job->n_tables; t++) {
        sc_shard_place x;
        uint32_t v = 3;
        if (shard_part_of(s->p, t, 0)->memory <= s->room) continue;
        while (v > 0 && !shard_possible(s->p, t, v)) v--;
        shard_variant_of(v, &x);
        sort_devices(s);
        for (uint32_t i = 0; i < x.parts; i++) x.device[i] = s->order[i];
        put(s, t, &x);
    }
}

typedef struct small {
    uint32_t table;
    double rows;
} small;

static int by_rows(const void *x, const void *y)
{
    const small *a = x, *b = y;
    if (a->rows != b->rows) return a->rows > b->rows ? 1 : -1;
    return (a->table > b->table) - (a->table < b->table);
}

/* Puts the tables with the fewest rows on every device, 1, 2, 4 ... of them,
 * because one alone seldom shortens the slowest device's exchange.  Keeps the
 * number with the least score. */
static sc_status spread_small(search *s, sc_arena *a)
{
    uint32_t n = s->p->job->n_tables, at = 0, kept = 0;
    small *all = SC_NEW_N(a, small, n);
    sc_shard_place *before = SC_NEW_N(a, sc_shard_place, n), data;
    double score;
    if (!all || !before) return sc_error_nomem(s->err);
    for (uint32_t t = 0; t < n; t++)
        all[t] = (small){t, s->p->job->table[t].rows};
    qsort(all, n, sizeof *all, by_rows);
    memcpy(before, s->plan->place, n * sizeof *before);
    shard_variant_of(SHARD_VARIANTS - 1, &data);
    for (uint32_t end = 1; at < n; end = end < n / 2 ? 2 * end : n) {
        for (; at < end; at++) put(s, all[at].table, &data);
        SC_TRY(score_of(s, &score));
        if (score >= s->score) continue;
        s->score = score;
        kept = at;
    }
    while (at-- > kept) put(s, all[at].table, &before[all[at].table]);
    return SC_OK;
}

/* ---- rounds */

static sc_status change(search *s, uint32_t table, uint32_t from, bool *better)
{
    SC_TRY(move(s, table, from, better));
    if (!*better) SC_TRY(exchange(s, table, from, better));
    if (!*better) SC_TRY(divide(s, table, better));
    return SC_OK;
}

/* Tables with a part on the device, and tables on all devices. */
static sc_status relieve(search *s, uint32_t from, bool *any)
{
    for (uint32_t t = 0; t < s->p->job->n_tables && s->left > 0; t++) {
        const sc_shard_place *x = &s->plan->place[t];
        bool better = false;
        if (x->split != SC_SHARD_DATA && part_on(x, from) < 0) continue;
        SC_TRY(change(s, t, from, &better));
        *any |= better;
        if (better) sort_devices(s);
    }
    return SC_OK;
}

/* The devices with the longest kernels, the most sums, row numbers and
 * bytes. */
static uint32_t critical(const search *s, uint32_t *out)
{
    uint32_t n = 0, most[5] = {0};
    const sc_shard_load *l = s->plan->load;
    for (uint32_t d = 1; d < s->p->n; d++) {
        if (l[d].forward > l[most[0]].forward) most[0] = d;
        if (l[d].backward > l[most[1]].backward) most[1] = d;
        if (l[d].sends > l[most[2]].sends) most[2] = d;
        if (l[d].indices > l[most[3]].indices) most[3] = d;
        if (l[d].tables > l[most[4]].tables) most[4] = d;
    }
    for (uint32_t i = 0; i < SC_COUNT(most); i++) {
        uint32_t k = 0;
        while (k < n && out[k] != most[i]) k++;
        if (k == n) out[n++] = most[i];
    }
    return n;
}

sc_status shard_improve(sc_shard_prices *p, sc_arena *a, sc_shard_plan *inout,
                        sc_err *err)
{
    double most = EVALUATIONS * fmin(1, 16.0 / p->n);
    search s = {.p = p,
                .plan = inout,
                .room = sc_shard_room(p),
                .order = SC_NEW_N(a, uint32_t, p->n),
                .left = (uint32_t)most,
                .err = err};
    if (!s.order) return sc_error_nomem(err);
    divide_large(&s);
    SC_TRY(score_of(&s, &s.score));
    if (p->n > 1) SC_TRY(spread_small(&s, a));
    for (bool any = p->n > 1; any && s.left > 0;) {
        uint32_t device[5], n = critical(&s, device);
        any = false;
        sort_devices(&s);
        for (uint32_t i = 0; i < n; i++) SC_TRY(relieve(&s, device[i], &any));
    }
    return shard_estimate(p, inout, err);
}

sc_status sc_shard_plan_of(sc_shard_prices *p, sc_sharder sharder, sc_arena *a,
                           sc_shard_plan *out, sc_err *err)
{
    SC_TRY(shard_plan_new(p, a, out, err));
    if (sharder != SC_SHARD_BEST) return shard_simple(p, sharder, out, err);
    sc_shard_plan x;
    SC_TRY(shard_plan_new(p, a, &x, err));
    for (int i = 0; i < SC_SHARD_BEST; i++) {
        SC_TRY(shard_simple(p, (sc_sharder)i, &x, err));
        bool faster = x.step.step < out->step.step;
        if (i == 0 || (x.fits && (!out->fits || faster)))
            shard_plan_copy(p, &x, out);
    }
    return shard_improve(p, a, out, err);
}
