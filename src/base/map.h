/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - the hash map: values by hash, with open addressing.
 *
 * A value is a number or a pointer; one map holds values of one of the two.
 * Keys stay with the caller, who compares them:
 *
 *   uint32_t at = 0, i;
 *   do i = sc_map_next(&m, hash, &at);
 *   while (i != SC_MAP_END && !same_key(&thing[i], key));
 *
 * A key of 64 bits needs no comparison, because sc_mix() maps it one to one
 * to a hash: sc_map_get() and sc_map_set().  The memory comes from an arena
 * and grows with the map.
 */
#ifndef SC_BASE_MAP_H
#define SC_BASE_MAP_H

#include "base/arena.h"
#include "base/random.h"

#define SC_MAP_END UINT32_MAX

typedef struct sc_map { /* all zero: empty */

    struct sc_map_slot {
        uint64_t hash;

        union {
            uintptr_t value; /* number + 1; 0: free */
            void *pointer;
        };
    } * slot; /* [cap] */

    uint32_t n, cap; /* cap: 0, or a power of two of at least 2 * n */
} sc_map;

/* The slot of the next value with this hash; NULL after the last. `*at` is 0
 * before the first call. No value may be added between two calls. */
static inline const struct sc_map_slot *sc_map_walk(const sc_map *m,
                                                    uint64_t hash, uint32_t *at)
{
    while (m->cap) {
        const struct sc_map_slot *s =
            &m->slot[((uint32_t)hash + (*at)++) & (m->cap - 1)];
        if (!s->value) break;
        if (s->hash == hash) return s;
    }
    return NULL;
}

/* The next number with this hash; SC_MAP_END after the last. */
static inline uint32_t sc_map_next(const sc_map *m, uint64_t hash, uint32_t *at)
{
    const struct sc_map_slot *s = sc_map_walk(m, hash, at);
    return s ? (uint32_t)(s->value - 1) : SC_MAP_END;
}

/* The next pointer with this hash; NULL after the last. */
static inline void *sc_map_next_ptr(const sc_map *m, uint64_t hash,
                                    uint32_t *at)
{
    const struct sc_map_slot *s = sc_map_walk(m, hash, at);
    return s ? s->pointer : NULL;
}

/* Lists all pointers in an unspecified order; `*i` is 0 before the first. NULL
 * ends. */
static inline void *sc_map_each_ptr(const sc_map *m, uint32_t *i)
{
    while (*i < m->cap) {
        void *p = m->slot[(*i)++].pointer;
        if (p) return p;
    }
    return NULL;
}

/* Adds a value; a hash may have several. False if out of memory. */
bool sc_map_add(sc_map *m, sc_arena *a, uint64_t hash, uint32_t number);
bool sc_map_add_ptr(sc_map *m, sc_arena *a, uint64_t hash, void *p);

/* Removes a value that was added with this hash. */
void sc_map_remove(sc_map *m, uint64_t hash, uint32_t number);
void sc_map_remove_ptr(sc_map *m, uint64_t hash, const void *p);

/* Removes all values and keeps the memory. */
void sc_map_clear(sc_map *m);

/* Reserves memory for `n` values, so that adding them can't fail. */
bool sc_map_reserve(sc_map *m, sc_arena *a, uint32_t n);

/* The number that belongs to a key of 64 bits; SC_MAP_END if there is none. */
static inline uint32_t sc_map_get(const sc_map *m, uint64_t key)
{
    uint32_t at = 0;
    return sc_map_next(m, sc_mix(key), &at);
}

/* Adds a key that is not in the map yet. */
static inline bool sc_map_set(sc_map *m, sc_arena *a, uint64_t key,
                              uint32_t number)
{
    return sc_map_add(m, a, sc_mix(key), number);
}

/* The number of a name that equals one of `names`; SC_MAP_END if none does. */
uint32_t sc_map_name(const sc_map *m, const char *const *names,
                     const char *name);
bool sc_map_add_name(sc_map *m, sc_arena *a, const char *name, uint32_t number);
#endif
