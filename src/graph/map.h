/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - from strings to numbers, open addressing, fixed capacity.
 * Keys are borrowed.
 */
#ifndef GRAPH_MAP_H
#define GRAPH_MAP_H

#include <stepcast/base.h>

typedef struct graph_map_slot {
    const char *key; /* NULL: free */
    uint32_t len, value;
} graph_map_slot;

typedef struct graph_map {
    graph_map_slot *slot;
    uint64_t mask;
} graph_map;

/* For at most n keys; false when out of memory. */
bool graph_map_init(graph_map *m, sc_arena *a, uint32_t n);
/* The slot of a key, or the free slot where it belongs. */
graph_map_slot *graph_map_find(const graph_map *m, const char *key, size_t len);
/* Adds a key; the slot of an equal key if there is one, else NULL. */
graph_map_slot *graph_map_add(graph_map *m, const char *key, size_t len,
                              uint32_t value);

#endif
