/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greedy.c - sharders that place whole tables one by one.
 *
 * Greedy ones take tables by falling cost and give each to the device with the
 * least cost so far among those that have room, or with the most room if none
 * has (costs: Zha et al., DreamShard, NeurIPS 2022).
 */
#include "shard/prices.h"

#include <math.h>
#include <stdlib.h>

typedef struct item {
    uint32_t table;
    double cost, bytes;
} item;

static double cost_of(sc_shard_prices *p, sc_sharder sharder, uint32_t table)
{
    const sc_shard_table *t = &p->job->table[table];
    const shard_part *x = shard_part_of(p, table, 0);
    sc_lookups look = shard_lookups(p, table, 0);
    sc_row_law law;
    switch (sharder) {
    case SC_SHARD_SIZE: return t->rows * t->width;
    case SC_SHARD_LOOKUP: return t->width * t->pooling;
    case SC_SHARD_NORM:
        sc_row_law_of(&look, &law);
        return t->width * sc_row_law_unique(&law, law.count) / p->job->batch;
    case SC_SHARD_SIZE_LOOKUP:
        return t->width * t->pooling * log10(fmax(2, t->rows));
    default: return x->forward + x->backward;
    }
}

/* By falling cost, equal ones by number. */
static int by_cost(const void *x, const void *y)
{
    const item *a = x, *b = y;
    if (a->cost != b->cost) return a->cost < b->cost ? 1 : -1;
    return (a->table > b->table) - (a->table < b->table);
}

static uint32_t roomiest(const double *used, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t d = 1; d < n; d++)
        if (used[d] < used[best]) best = d;
    return best;
}

static uint32_t cheapest(const double *cost, const double *used, uint32_t n,
                         double bytes, double room)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t d = 0; d < n; d++) {
        if (used[d] + bytes > room) continue;
        if (best == UINT32_MAX || cost[d] < cost[best] ||
            (cost[d] == cost[best] && used[d] < used[best]))
            best = d;
    }
    return best == UINT32_MAX ? roomiest(used, n) : best;
}

/* A random device among those with room. */
static uint32_t any(const double *used, uint32_t n, double bytes, double room,
                    uint64_t *seed)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < n; d++) count += used[d] + bytes <= room;
    if (count == 0) return roomiest(used, n);
    uint64_t chosen = sc_random_below(seed, count);
    uint32_t d = 0;
    for (;; d++)
        if (used[d] + bytes <= room && chosen-- == 0) return d;
}

static uint32_t device_of(const sc_shard_prices *p, sc_sharder sharder,
                          uint32_t i)
{
    uint32_t chunk = (p->job->n_tables + p->n - 1) / p->n;
    return sharder == SC_SHARD_CHUNK ? i / chunk : i % p->n;
}

sc_status shard_simple(sc_shard_prices *p, sc_sharder sharder,
                       sc_shard_plan *inout, sc_err *err)
{
    uint32_t n = p->job->n_tables, d;
    item *all = SC_NEW_N(p->a, item, n);
    double *cost = SC_NEW_N(p->a, double, p->n);
    double *used = SC_NEW_N(p->a, double, p->n);
    double room = sc_shard_room(p);
    uint64_t seed = p->job->seed;
    if (!all || !cost || !used) return sc_error_nomem(err);
    bool greedy = sharder > SC_SHARD_RANDOM;
    for (uint32_t t = 0; t < n; t++) {
        double bytes = shard_part_of(p, t, 0)->memory;
        all[t] = (item){t, greedy ? cost_of(p, sharder, t) : 0, bytes};
    }
    if (greedy) qsort(all, n, sizeof *all, by_cost);
    for (uint32_t i = 0; i < n; i++) {
        const item *x = &all[i];
        if (greedy)
            d = cheapest(cost, used, p->n, x->bytes, room);
        else if (sharder == SC_SHARD_RANDOM)
            d = any(used, p->n, x->bytes, room, &seed);
        else
            d = device_of(p, sharder, i);
        cost[d] += x->cost;
        used[d] += x->bytes;
        inout->place[x->table] = (sc_shard_place){
            .split = SC_SHARD_TABLE, .parts = 1, .device = {d}};
    }
    return shard_estimate(p, inout, err);
}
