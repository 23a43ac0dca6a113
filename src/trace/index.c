/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - chains by hash. */
#include "trace/index.h"

#include <string.h>

void index_clear(trace_index *x)
{
    if (x->n > 0) memset(x->head, 0xFF, x->n_heads * sizeof *x->head);
    x->n = 0;
}

static uint32_t same(const trace_index *x, uint32_t i, uint64_t hash)
{
    while (i != INDEX_NONE && x->hash[i] != hash) i = x->next[i];
    return i;
}

uint32_t index_first(const trace_index *x, uint64_t hash)
{
    if (x->n == 0) return INDEX_NONE;
    return same(x, x->head[hash & (x->n_heads - 1)], hash);
}

uint32_t index_after(const trace_index *x, uint32_t i)
{
    return same(x, x->next[i], x->hash[i]);
}

static void link_in(trace_index *x, uint32_t i)
{
    uint32_t *head = &x->head[x->hash[i] & (x->n_heads - 1)];
    x->next[i] = *head;
    *head = i;
}

static bool more_heads(trace_index *x)
{
    uint32_t n = x->n_heads ? 2 * x->n_heads : 64;
    uint32_t *head = n == 0 ? NULL : SC_NEW_N(x->a, uint32_t, n);
    if (head == NULL) return false;
    memset(head, 0xFF, n * sizeof *head);
    x->head = head;
    x->n_heads = n;
    for (uint32_t i = 0; i < x->n; i++) link_in(x, i);
    return true;
}

uint32_t index_add(trace_index *x, uint64_t hash)
{
    uint64_t *h = sc_grow(x->a, x->hash, x->n, &x->cap, 64, sizeof *h);
    if (h == NULL) return INDEX_NONE;
    x->hash = h;
    uint32_t *next =
        sc_grow(x->a, x->next, x->n, &x->cap_next, 64, sizeof *next);
    if (next == NULL) return INDEX_NONE;
    x->next = next;
    if (x->n == x->n_heads && !more_heads(x)) return INDEX_NONE;
    x->hash[x->n] = hash;
    link_in(x, x->n);
    return x->n++;
}
