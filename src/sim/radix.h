/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix.h - radix heaps: monotone queues by due time.
 *
 * No entry is added that is due before the entry removed last. Bucket b > 0 has
 * the entries whose time differs from `now` first in bit b - 1, and bucket 0
 * those that are due now. The users define what a bucket is: slots of the graph
 * engine (sim_radix) often change their time, so their buckets are linked lists
 * and no stale entry exists; events of a simulated workload (events.h) never
 * move and lie in arrays.
 */
#ifndef SIM_RADIX_H
#define SIM_RADIX_H

#include "base/assert.h"
#include "graph/graph.h"

#include <math.h>

#define RADIX_BUCKETS 65

typedef struct radix_order {
    sc_time now;   /* time of the entry removed last */
    uint64_t full; /* bit per bucket 1..64 that is not empty */
} radix_order;

static inline unsigned radix_bucket(const radix_order *q, sc_time due)
{
    sc_assert(due >= q->now);
    uint64_t diff = (uint64_t)due ^ (uint64_t)q->now;
    return diff ? 64u - (unsigned)__builtin_clzll(diff) : 0;
}

static inline void radix_fill(radix_order *q, unsigned bucket)
{
    if (bucket) q->full |= 1ull << (bucket - 1);
}

/* The lowest non-empty bucket above 0; there is one. */
static inline unsigned radix_lowest(const radix_order *q)
{
    return (unsigned)__builtin_ctzll(q->full) + 1;
}

/* Advances the time to `now`, the least in that bucket; the caller
 * redistributes the bucket's contents. */
static inline void radix_empty(radix_order *q, unsigned bucket, sc_time now)
{
    sc_assert(now >= q->now);
    q->now = now;
    q->full &= ~(1ull << (bucket - 1));
}

/* ---- slots of the graph engine ------------------------------------------- */

typedef struct sim_slot {
    sc_time due;         /* time at which the op completes at the present
                            rate */
    sc_time since;       /* time at which that rate began */
    double left;         /* work to do at that moment, ps at full rate */
    double rate;         /* 0: just started */
    sc_op op;            /* SC_NONE: idle */
    uint32_t prev, next; /* in its bucket; SC_NONE ends */
    uint8_t bucket, queued;
    uint8_t bit, phase; /* for the user of the queue */
} sim_slot;

typedef struct sim_radix {
    sim_slot *slot;
    radix_order order;
    uint32_t head[RADIX_BUCKETS];
} sim_radix;

static inline void radix_init(sim_radix *q, sim_slot *slot)
{
    q->slot = slot;
    q->order = (radix_order){0};
    for (int b = 0; b < RADIX_BUCKETS; b++) q->head[b] = SC_NONE;
}

static inline void radix_link(sim_radix *q, uint32_t s)
{
    sim_slot *x = &q->slot[s];
    unsigned b = radix_bucket(&q->order, x->due);
    x->bucket = (uint8_t)b;
    x->queued = 1;
    x->prev = SC_NONE;
    x->next = q->head[b];
    if (x->next != SC_NONE) q->slot[x->next].prev = s;
    q->head[b] = s;
    radix_fill(&q->order, b);
}

static inline void radix_unlink(sim_radix *q, uint32_t s)
{
    sim_slot *x = &q->slot[s];
    unsigned b = x->bucket;
    x->queued = 0;
    if (x->next != SC_NONE) q->slot[x->next].prev = x->prev;
    if (x->prev != SC_NONE)
        q->slot[x->prev].next = x->next;
    else
        q->head[b] = x->next;
    if (b && q->head[b] == SC_NONE) q->order.full &= ~(1ull << (b - 1));
}

/* Moves everything that is due first to bucket 0 and `now` to its time; false
 * if the queue is empty. */
static inline bool radix_advance(sim_radix *q)
{
    if (q->head[0] != SC_NONE) return true;
    if (!q->order.full) return false;
    unsigned b = radix_lowest(&q->order);
    uint32_t s = q->head[b];
    sc_time min = q->slot[s].due;
    for (uint32_t k = s; k != SC_NONE; k = q->slot[k].next)
        if (q->slot[k].due < min) min = q->slot[k].due;
    radix_empty(&q->order, b, min);
    q->head[b] = SC_NONE;
    for (uint32_t next; s != SC_NONE; s = next) {
        next = q->slot[s].next;
        radix_link(q, s); /* into a lower bucket */
    }
    return true;
}

/* Sets a new rate from `now` on for the op in a slot; `work` is its total at
 * full rate. Ends beyond sc_time are due at its end. */
static inline void radix_retime(sim_radix *q, uint32_t s, sc_time work,
                                double rate, sc_time now)
{
    sim_slot *x = &q->slot[s];
    sc_time room = SC_TIME_MAX - now, dt = work;
    if (x->queued) radix_unlink(q, s);
    x->left -= (double)(now - x->since) * x->rate;
    if (x->rate > 0 || rate < 1) { /* else exact, also above 2^53 */
        double d = x->left > 0 ? ceil(x->left / rate) : 0;
        dt = d < (double)room ? (sc_time)d : room;
    }
    x->since = now;
    x->rate = rate;
    x->due = now + (dt < room ? dt : room);
    radix_link(q, s);
}

#endif
