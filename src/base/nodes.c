/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c - sorts the members of a group by node. */
#include "base/nodes.h"

bool sc_nodes_init(sc_nodes *x, sc_arena *a, uint32_t members, uint32_t nodes)
{
    *x = (sc_nodes){.order = SC_NEW_N(a, uint32_t, members),
                    .first = SC_NEW_N(a, uint32_t, (size_t)members + 1),
                    .number = SC_NEW_N(a, uint32_t, nodes)};
    return x->order && x->first && x->number;
}

/* Counts the members of each node into `first`. */
static void count(sc_nodes *x, const uint32_t *rank, uint32_t n, uint32_t size)
{
    x->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *number = &x->number[rank[i] / size];
        if (*number == 0) {
            x->first[x->n] = 0;
            *number = ++x->n;
        }
        x->first[*number - 1]++;
    }
}

void sc_nodes_sort(sc_nodes *x, const uint32_t *rank, uint32_t n, uint32_t size)
{
    uint32_t at = 0;
    count(x, rank, n, size);
    x->least = n;
    x->most = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t members = x->first[k];
        if (members < x->least) x->least = members;
        if (members > x->most) x->most = members;
        x->first[k] = at;
        at += members;
    }
    for (uint32_t i = 0; i < n; i++)
        x->order[x->first[x->number[rank[i] / size] - 1]++] = i;
    for (uint32_t k = x->n; k > 0; k--) x->first[k] = x->first[k - 1];
    x->first[0] = 0;
    for (uint32_t i = 0; i < n; i++) x->number[rank[i] / size] = 0;
}
