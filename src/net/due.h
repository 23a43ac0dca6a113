/* SPDX-License-Identifier: Apache-2.0 */
/*
 * due.h - the minimum of many times, of which most can change at once.
 *
 * A tree of minima has 16 children per node, over an array of times. A change
 * marks the leaf's parent. due_resolve() updates marked nodes level by level,
 * so n changes cost about n comparisons instead of n log n.
 */
#ifndef NET_DUE_H
#define NET_DUE_H

#include "base/base.h"

#define DUE_FAN    16u
#define DUE_LEVELS 9

typedef struct net_due {
    sc_time *at[DUE_LEVELS];     /* [0]: the times; the last array has one
                                    element */
    uint8_t *marked[DUE_LEVELS]; /* from level 1 on */
    uint32_t *list;              /* marked nodes of level 1 */
    uint32_t n_marked, cap, levels;
} net_due;

static inline void due_mark(net_due *d, uint32_t i)
{
    uint32_t node = i / DUE_FAN;
    if (d->marked[1][node]) return;
    d->marked[1][node] = 1;
    d->list[d->n_marked++] = node;
}

static inline void due_set(net_due *d, uint32_t i, sc_time t)
{
    d->at[0][i] = t;
    due_mark(d, i);
}

static inline sc_time due_least(const sc_time *t)
{
    sc_time a = t[0], b = t[1];
    for (unsigned k = 2; k < DUE_FAN; k += 2) {
        a = t[k] < a ? t[k] : a;
        b = t[k + 1] < b ? t[k + 1] : b;
    }
    return a < b ? a : b;
}

/* The earliest time. */
static inline sc_time due_resolve(net_due *d)
{
    uint32_t n = d->n_marked;
    for (uint32_t k = 1; k < d->levels && n > 0; k++) {
        uint32_t up = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t node = d->list[i], parent = node / DUE_FAN;
            sc_time t = due_least(&d->at[k - 1][(size_t)node * DUE_FAN]);
            d->marked[k][node] = 0;
            if (t == d->at[k][node]) continue;
            d->at[k][node] = t;
            if (k + 1 == d->levels || d->marked[k + 1][parent]) continue;
            d->marked[k + 1][parent] = 1;
            d->list[up++] = parent;
        }
        n = up;
    }
    d->n_marked = 0;
    return d->at[d->levels - 1][0];
}

/* Makes room for `n` times; new ones are SC_TIME_MAX. The tree is then
 * resolved. */
bool due_grow(net_due *d, uint32_t n, sc_arena *a);

/* Appends the indices of all times up to `t` to `out`; `d` has to be
 * resolved. */
uint32_t due_find(const net_due *d, sc_time t, uint32_t *out);

#endif
