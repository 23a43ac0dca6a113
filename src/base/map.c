/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - open addressing with linear probing, at most half full. */
#include "base/map.h"

#include "base/assert.h"
#include "base/util.h"

#include <string.h>

#define FIRST_SLOTS 32

static void put(sc_map *m, struct sc_map_slot s)
{
    uint32_t i = (uint32_t)s.hash & (m->cap - 1);
    while (m->slot[i].value) i = (i + 1) & (m->cap - 1);
    m->slot[i] = s;
}

bool sc_map_reserve(sc_map *m, sc_arena *a, uint32_t n)
{
    sc_map old = *m;
    uint32_t cap = old.cap ? old.cap : FIRST_SLOTS;
    while (cap / 2 < n && cap <= UINT32_MAX / 2) cap *= 2;
    if (cap / 2 < n) return false;
    if (cap == old.cap) return true;
    struct sc_map_slot *slot = SC_NEW_N(a, struct sc_map_slot, cap);
    if (slot == NULL) return false;
    m->slot = slot;
    m->cap = cap;
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slot[i].value) put(m, old.slot[i]);
    return true;
}

static bool add(sc_map *m, sc_arena *a, struct sc_map_slot s)
{
    if (2 * m->n >= m->cap && !sc_map_reserve(m, a, m->n + 1)) return false;
    sc_assert(s.value && 2 * m->n < m->cap);
    put(m, s);
    m->n++;
    return true;
}

bool sc_map_add(sc_map *m, sc_arena *a, uint64_t hash, uint32_t number)
{
    uintptr_t value = (uintptr_t)number + 1;
    return add(m, a, (struct sc_map_slot){.hash = hash, .value = value});
}

bool sc_map_add_ptr(sc_map *m, sc_arena *a, uint64_t hash, void *p)
{
    return add(m, a, (struct sc_map_slot){.hash = hash, .pointer = p});
}

/* A later slot moves to the free one if the free one lies between the slot for
 * its hash and its present slot. */
static void remove_value(sc_map *m, uint64_t hash, uintptr_t value)
{
    uint32_t mask = m->cap - 1, i = (uint32_t)hash & mask;
    while (m->slot[i].value != value || m->slot[i].hash != hash) {
        sc_assert(m->slot[i].value); /* it was added */
        i = (i + 1) & mask;
    }
    for (uint32_t k = (i + 1) & mask; m->slot[k].value; k = (k + 1) & mask) {
        uint32_t wanted = (uint32_t)m->slot[k].hash & mask;
        if (((k - wanted) & mask) < ((k - i) & mask)) continue;
        m->slot[i] = m->slot[k];
        i = k;
    }
    m->slot[i] = (struct sc_map_slot){.hash = 0};
    m->n--;
}

void sc_map_remove(sc_map *m, uint64_t hash, uint32_t number)
{
    remove_value(m, hash, (uintptr_t)number + 1);
}

void sc_map_remove_ptr(sc_map *m, uint64_t hash, const void *p)
{
    remove_value(m, hash, (uintptr_t)p);
}

void sc_map_clear(sc_map *m)
{
    if (m->n > 0) memset(m->slot, 0, m->cap * sizeof *m->slot);
    m->n = 0;
}

static uint64_t hash_of(const char *name)
{
    return sc_hash(name, strlen(name), 0);
}

uint32_t sc_map_name(const sc_map *m, const char *const *names,
                     const char *name)
{
    uint32_t at = 0, i;
    do i = sc_map_next(m, hash_of(name), &at);
    while (i != SC_MAP_END && strcmp(names[i], name) != 0);
    return i;
}

bool sc_map_add_name(sc_map *m, sc_arena *a, const char *name, uint32_t number)
{
    return sc_map_add(m, a, hash_of(name), number);
}
