/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - passes operations to the world and ends back. */
#include "common/share.h"
#include "net/net_flow.h"

#include <stdlib.h>
#include <string.h>

void live_slot_log(live *l, const live_slot *s, sc_time end, sc_time resumed)
{
    if (s->log == UINT64_MAX || !l->log) return;
    sc_emu_record r = {.coll = (uint8_t)s->op.coll,
                       .flags = (uint8_t)((s->op.async ? SC_EMU_ASYNC : 0) |
                                          (s->op.device ? SC_EMU_DEVICE : 0) |
                                          (s->canceled ? SC_EMU_CANCELED : 0)),
                       .group = s->op.group,
                       .peer = s->op.peer,
                       .stream = s->op.stream,
                       .bytes = s->op.bytes,
                       .post = s->post,
                       .begin = s->begin,
                       .end = end,
                       .waited = s->waited,
                       .resumed = resumed};
    sc_emu_log_set(l->log, s->log, &r);
}

sc_emu_op live_slot_op(const live *l, const live_slot *s)
{
    return (sc_emu_op){.coll = s->op.coll,
                       .group = s->op.group,
                       .rank = l->rank,
                       .peer = s->op.peer,
                       .bytes = s->op.bytes};
}

void live_world_post(live *l, live_slot *s, sc_time t)
{
    sc_emu_op op = live_slot_op(l, s);
    uint64_t ticket;
    if (l->share) {
        share_post(l, s, t);
        return;
    }
    sc_err_init(&l->err);
    if (sc_emu_post(l->emu, &op, t, &ticket, &l->err) != SC_OK)
        live_die_err(l, &l->err);
    live_slot_move(l, s, SLOT_FLYING);
    live_index_add(l, ticket, s);
    l->next = sc_emu_next(l->emu);
    atomic_fetch_add(&l->era, 1);
}

static void world_failed(live *l)
{
    sc_err_init(&l->err);
    sc_emu_failed(l->emu, &l->err);
    live_die_err(l, &l->err);
}

void live_slot_end(live *l, live_slot *s, sc_time begin, sc_time end)
{
    s->begin = begin;
    s->end = end;
    live_slot_move(l, s, SLOT_ENDED);
    if (s->dropped) live_slot_done(l, s, end);
}

void live_world_look(live *l, sc_time now)
{
    bool any = false;
    if (l->share) {
        share_look(l, now);
        return;
    }
    while (l->next <= now && l->next != SC_TIME_MAX) {
        const sc_emu_end *ends;
        uint32_t n = sc_emu_advance(l->emu, l->next, &ends);
        if (n == SC_FLOW_NONE) world_failed(l);
        for (uint32_t i = 0; i < n; i++) {
            live_slot *s = live_index_remove(l, ends[i].ticket);
            if (s) live_slot_end(l, s, ends[i].begin, ends[i].end);
        }
        any = any || n > 0;
        l->next = sc_emu_next(l->emu);
    }
    if (any && l->n_waiting > 0) pthread_cond_broadcast(&l->moved);
}

void live_world_release(live *l, sc_time now)
{
    while (l->held.first != LIVE_NONE)
        live_world_post(l, live_slot_at(l, l->held.first), now);
}

void live_world_cancel(live *l, live_slot *s)
{
    if (l->share) {
        share_cancel(l, s);
        return;
    }
    sc_emu_cancel(l->emu, s->ticket);
    l->next = sc_emu_next(l->emu);
    atomic_fetch_add(&l->era, 1);
}

void live_world_waited(live *l, sc_time from, sc_time to)
{
    if (to <= from) return;
    if (l->share)
        share_waited(l, from, to);
    else
        sc_emu_waited(l->emu, l->rank, from, to);
}

sc_time live_world_cpu(live *l, const live_slot *s)
{
    sc_emu_op op = live_slot_op(l, s);
    if (l->share) return share_cpu(l, s);
    return sc_emu_cpu(l->emu, &op);
}

void live_world_why(live *l, const live_slot *s, sc_text *out)
{
    if (s->state != SLOT_FLYING) return;
    if (l->share)
        share_why(l, s, out);
    else
        sc_emu_why(l->emu, s->ticket, out);
}

/* ---- groups ------------------------------------------------------------------- */

static bool is_named(live *l, uint32_t group)
{
    if (group >= l->n_named) {
        uint32_t n = group < 16 ? 32 : 2 * group;
        bool *named = realloc(l->named, n);
        if (!named) live_die(l, "out of memory");
        memset(named + l->n_named, 0, n - l->n_named);
        l->named = named;
        l->n_named = n;
    }
    bool was = l->named[group];
    l->named[group] = true;
    return was;
}

/* Writes the group to the log, once. */
static void name_group(live *l, uint32_t group, const uint32_t *rank,
                       uint32_t n)
{
    uint32_t *all = NULL;
    if (is_named(l, group)) return;
    if (!rank) {
        n = l->world;
        rank = all = malloc(n * sizeof *all);
        if (!all) live_die(l, "out of memory");
        for (uint32_t i = 0; i < n; i++) all[i] = i;
    }
    sc_emu_log_group(l->log, group, rank, n);
    free(all);
}

uint32_t live_group(live *l, const uint32_t *rank, uint32_t n,
                    uint64_t instance)
{
    uint32_t group;
    live_enter(l);
    pthread_mutex_lock(&l->mutex);
    sc_err_init(&l->err);
    if (l->share)
        group = share_group(l, rank, n, instance);
    else if (sc_emu_group(l->emu, rank, n, instance, &group, &l->err) != SC_OK)
        live_die_err(l, &l->err);
    name_group(l, group, rank, n);
    pthread_mutex_unlock(&l->mutex);
    live_leave(l);
    return group;
}

uint32_t live_group_real(live *l, uint32_t group)
{
    pthread_mutex_lock(&l->mutex);
    uint32_t n = l->share ? share_group_real(l, group)
                          : sc_emu_group_real(l->emu, group);
    pthread_mutex_unlock(&l->mutex);
    return n;
}
