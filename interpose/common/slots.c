/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.c - operations that the program knows: pages of slots that never move,
 * lists through them, and a hash from the world's tickets to slots.
 */
#include "common/inside.h"

#include <stdlib.h>
#include <string.h>

live_slot *live_slot_at(const live *l, uint32_t i)
{
    return &l->page[i / LIVE_PAGE][i % LIVE_PAGE];
}

static slot_list *list_of(live *l, unsigned state)
{
    switch (state) {
    case SLOT_FREE: return &l->unused;
    case SLOT_HELD: return &l->held;
    case SLOT_ENDED: return &l->ended;
    case SLOT_POLLED: return &l->polled;
    default: return NULL;
    }
}

static void list_unlink(live *l, slot_list *list, live_slot *s)
{
    if (s->prev == LIVE_NONE)
        list->first = s->next;
    else
        live_slot_at(l, s->prev)->next = s->next;
    if (s->next == LIVE_NONE)
        list->last = s->prev;
    else
        live_slot_at(l, s->next)->prev = s->prev;
}

static void list_append(live *l, slot_list *list, live_slot *s)
{
    uint32_t i = s->self;
    s->prev = list->last;
    s->next = LIVE_NONE;
    if (list->last == LIVE_NONE)
        list->first = i;
    else
        live_slot_at(l, list->last)->next = i;
    list->last = i;
}

void live_slot_move(live *l, live_slot *s, slot_state to)
{
    slot_list *from = list_of(l, s->state), *into = list_of(l, to);
    if (from) list_unlink(l, from, s);
    s->state = (uint8_t)to;
    if (into) list_append(l, into, s);
}

static bool more_slots(live *l)
{
    uint32_t pages = l->n_slots / LIVE_PAGE;
    live_slot **page = realloc(l->page, (pages + 1) * sizeof *page);
    if (!page) return false;
    l->page = page;
    page[pages] = calloc(LIVE_PAGE, sizeof **page);
    if (!page[pages]) return false;
    l->n_slots += LIVE_PAGE;
    for (uint32_t i = 0; i < LIVE_PAGE; i++) {
        live_slot *s = &page[pages][i];
        s->self = pages * LIVE_PAGE + i;
        s->gen = 1;
        list_append(l, &l->unused, s);
    }
    return true;
}

live_slot *live_slot_new(live *l, live_ticket *k)
{
    if (l->unused.first == LIVE_NONE && !more_slots(l))
        live_die(l, "out of memory");
    live_slot *s = live_slot_at(l, l->unused.first);
    list_unlink(l, &l->unused, s);
    uint32_t self = s->self, gen = s->gen;
    *s = (live_slot){.self = self, .gen = gen, .state = SLOT_NEW};
    *k = live_slot_ticket(s);
    return s;
}

live_ticket live_slot_ticket(const live_slot *s)
{
    return (live_ticket)s->gen << 32 | s->self;
}

live_slot *live_slot_find(live *l, live_ticket k)
{
    uint32_t i = (uint32_t)k;
    if (i >= l->n_slots) return NULL;
    live_slot *s = live_slot_at(l, i);
    bool there = s->state != SLOT_FREE && s->gen == (uint32_t)(k >> 32);
    return there ? s : NULL;
}

void live_slot_free(live *l, live_slot *s)
{
    if (s->state == SLOT_FLYING) live_index_remove(l, s->ticket);
    live_slot_move(l, s, SLOT_FREE);
    s->gen++;
}

/* ---- from the world's tickets ---------------------------------------------- */

void live_index_add(live *l, uint64_t ticket, live_slot *s)
{
    if (!sc_map_set(&l->by_ticket, &l->arena, ticket, s->self))
        live_die(l, "out of memory");
    s->ticket = ticket;
}

live_slot *live_index_find(const live *l, uint64_t ticket)
{
    uint32_t i = sc_map_get(&l->by_ticket, ticket);
    return i == SC_MAP_END ? NULL : live_slot_at(l, i);
}

void live_index_remove(live *l, uint64_t ticket)
{
    const live_slot *s = live_index_find(l, ticket);
    if (s) sc_map_remove(&l->by_ticket, sc_mix(ticket), s->self);
}
