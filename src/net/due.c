/* SPDX-License-Identifier: Apache-2.0 */
/* due.c - the tree of times: grows it, and finds the times that are due. */
#include "net/due.h"

#include <string.h>

static uint32_t nodes(uint32_t n)
{
    return (n + DUE_FAN - 1) / DUE_FAN;
}

bool due_grow(net_due *d, uint32_t n, sc_arena *a)
{
    net_due new = {.cap = nodes(n) * DUE_FAN};
    uint32_t size = new.cap;
    for (uint32_t k = 0;; k++) {
        /* rounded up to sixteens, so that every node has all its children */
        uint32_t room = size == 1 ? 1 : nodes(size) * DUE_FAN;
        new.levels = k + 1;
        new.at[k] = SC_NEW_N(a, sc_time, room);
        new.marked[k] = k > 0 ? SC_NEW_N(a, uint8_t, room) : NULL;
        if (new.at[k] == NULL || (k > 0 && new.marked[k] == NULL)) return false;
        for (uint32_t i = 0; i < room; i++) new.at[k][i] = SC_TIME_MAX;
        if (size == 1) break;
        size = nodes(size);
    }
    new.list = SC_NEW_N(a, uint32_t, nodes(new.cap));
    if (new.list == NULL) return false;
    if (d->cap > 0) memcpy(new.at[0], d->at[0], d->cap * sizeof(sc_time));
    *d = new;
    for (uint32_t i = 0; i < d->cap; i += DUE_FAN) due_mark(d, i);
    due_resolve(d);
    return true;
}

static uint32_t find_below(const net_due *d, uint32_t k, uint32_t node,
                           sc_time t, uint32_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = node * DUE_FAN; i < (node + 1) * DUE_FAN; i++) {
        if (d->at[k - 1][i] > t) continue;
        if (k == 1)
            out[n++] = i;
        else
            n += find_below(d, k - 1, i, t, out + n);
    }
    return n;
}

uint32_t due_find(const net_due *d, sc_time t, uint32_t *out)
{
    return find_below(d, d->levels - 1, 0, t, out);
}
