/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/map.h"

#include <string.h>

bool graph_map_init(graph_map *m, sc_arena *a, uint32_t n)
{
    uint64_t size = 8;
    while (size < (uint64_t)n + n / 2) size *= 2;
    m->mask = size - 1;
    m->slot = SC_NEW_N(a, graph_map_slot, (size_t)size);
    return m->slot != NULL;
}

graph_map_slot *graph_map_find(const graph_map *m, const char *key, size_t len)
{
    for (uint64_t h = sc_hash(key, len, 0);; h++) {
        graph_map_slot *s = &m->slot[h & m->mask];
        if (!s->key) return s;
        if (s->len == len && memcmp(s->key, key, len) == 0) return s;
    }
}

graph_map_slot *graph_map_add(graph_map *m, const char *key, size_t len,
                              uint32_t value)
{
    graph_map_slot *s = graph_map_find(m, key, len);
    if (s->key) return s;
    s->key = key;
    s->len = (uint32_t)len;
    s->value = value;
    return NULL;
}
