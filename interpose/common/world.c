/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - passes operations to the world and ends back. */
#include "common/world.h"

#include "common/moves.h"

#include <stdlib.h>
#include <string.h>

/* A sleeping rank asks for the others' clocks once in this time. */
#define AHEAD_PS (SC_PS_PER_S / 10)

/* Errors of the world end the process. */
static void check(live *l, sc_status s)
{
    if (s != SC_OK) live_die_err(l, &l->err);
}

static sc_err *fresh(live *l)
{
    sc_err_init(&l->err);
    return &l->err;
}

void world_open(live *l, const char *path)
{
    world_of_rank *w = live_alloc(NULL, 1, sizeof *w);
    l->w = w;
    exchange_open(l);
    sc_status s =
        path ? sc_emu_port_open(path, l->rank, &l->arena, &w->port, fresh(l))
             : sc_emu_port_alone(&l->config, &l->arena, &w->port, fresh(l));
    if (s != SC_OK) live_die_err(NULL, &l->err);
    l->next = sc_emu_port_next(w->port);
}

void world_leave(live *l)
{
    sc_emu_port_leave(l->w->port);
}

/* ---- operations ---------------------------------------------------------- */

void live_slot_log(live *l, const live_slot *s, sc_time end, sc_time resumed)
{
    if (s->log == UINT64_MAX || !l->log) return;
    /* A receive from any rank without a message names this rank. */
    uint32_t peer = s->op.peer == SC_EMU_ANY ? l->rank : s->op.peer;
    sc_emu_record r = {.coll = (uint8_t)s->op.coll,
                       .flags = (uint8_t)((s->op.async ? SC_EMU_ASYNC : 0) |
                                          (s->op.device ? SC_EMU_DEVICE : 0) |
                                          (s->held ? SC_EMU_HELD : 0) |
                                          (s->canceled ? SC_EMU_CANCELED : 0)),
                       .group = s->op.group,
                       .peer = peer,
                       .stream = (uint8_t)s->op.stream,
                       .tag = s->op.tag,
                       .bytes = s->op.bytes,
                       .post = s->post,
                       .begin = s->begin,
                       .end = end,
                       .waited = s->waited,
                       .resumed = resumed};
    sc_emu_log_set(l->log, s->log, &r);
}

static sc_emu_op op_of(const live *l, const live_slot *s)
{
    return (sc_emu_op){.coll = s->op.coll,
                       .group = s->op.group,
                       .rank = l->rank,
                       .peer = s->op.peer,
                       .bytes = s->op.bytes,
                       .seq = s->op.seq,
                       .tag = s->op.tag,
                       .take = s->op.take,
                       .eager = s->op.eager,
                       .cuts = s->op.cuts};
}

/* What it exchanges is known, so that data may be pushed. */
void live_world_note(live *l, live_slot *s)
{
    if (s->noted) return;
    const exchange_of *x = exchange_note(l, s);
    s->noted = true;
    s->exchanges = x != NULL;
    /* The receiver finds the data of a message by the sender's number; silent
     * operations are told apart by it. */
    if (x && (s->op.coll == SC_SEND || s->op.silent)) s->op.seq = x->key.seq;
}

void live_world_post(live *l, live_slot *s, sc_time t)
{
    sc_emu_cell cell;
    live_world_note(l, s);
    if (s->op.silent && !s->exchanges) { /* there is no other real member */
        live_slot_move(l, s, SLOT_ENDED);
        return;
    }
    sc_emu_op op = op_of(l, s);
    check(l,
          sc_emu_port_post(l->w->port, &op, s->op.silent, t, &cell, fresh(l)));
    live_slot_move(l, s, SLOT_FLYING);
    live_index_add(l, cell, s);
    l->next = sc_emu_port_next(l->w->port);
    atomic_fetch_add(&l->era, 1);
}

static void end_slot(live *l, live_slot *s, sc_time begin, sc_time end)
{
    s->begin = begin;
    s->end = end;
    live_slot_move(l, s, SLOT_ENDED);
    if (s->dropped) live_slot_done(l, s, end);
}

/* Delivers what the world has answered. */
static bool deliver(live *l)
{
    sc_emu_port *p = l->w->port;
    sc_emu_cell cell;
    bool any = false, done;
    sc_time begin, end;
    while (sc_emu_port_told(p, &cell)) {
        live_slot *s = live_index_find(l, cell);
        if (!s) continue; /* cancelled */
        check(l, sc_emu_port_done(p, cell, &done, &begin, &end, fresh(l)));
        if (!done) continue; /* of an earlier use of the cell */
        live_index_remove(l, cell);
        if (s->op.coll == SC_RECV) {
            const sc_emu_op *message = sc_emu_port_op(p, cell);
            exchange_matched(l, s, message);
            s->op.peer = message->peer;
            s->op.bytes = message->bytes;
            if (s->exchanges) s->op.tag = message->tag;
        }
        sc_emu_port_free(p, cell);
        end_slot(l, s, begin, end);
        any = true;
    }
    l->next = sc_emu_port_next(p);
    return any;
}

void live_world_look(live *l, sc_time now)
{
    check(l, sc_emu_port_look(l->w->port, now, fresh(l)));
    check(l, sc_emu_port_failed(l->w->port, fresh(l)));
    if (deliver(l) && l->n_waiting > 0) pthread_cond_broadcast(&l->moved);
}

void live_world_settle(live *l)
{
    check(l, sc_emu_port_settle(l->w->port, live_now(l), fresh(l)));
}

void live_world_release(live *l, sc_time now)
{
    while (l->held.first != LIVE_NONE)
        live_world_post(l, live_slot_at(l, l->held.first), now);
}

bool live_world_cancel(live *l, live_slot *s)
{
    sc_emu_port *p = l->w->port;
    bool canceled;
    check(l, sc_emu_port_cancel(p, (sc_emu_cell)s->ticket, live_now(l),
                                &canceled, fresh(l)));
    deliver(l);
    atomic_fetch_add(&l->era, 1);
    return canceled;
}

void live_world_waited(live *l, sc_time from, sc_time to)
{
    if (to <= from) return;
    check(l, sc_emu_port_waited(l->w->port, from, to, fresh(l)));
}

sc_time live_world_cpu(live *l, const live_slot *s)
{
    sc_emu_op op = op_of(l, s);
    sc_time cpu;
    uint64_t key[3] = {(uint64_t)op.coll, op.group, op.bytes};
    uint64_t hash = sc_hash(key, sizeof key, 1);
    world_cpu *c = &l->w->cpu[hash % SC_COUNT(l->w->cpu)];
    if (c->key == hash) return c->cpu;
    check(l, sc_emu_port_cpu(l->w->port, &op, live_now(l), &cpu, fresh(l)));
    *c = (world_cpu){hash, cpu};
    return cpu;
}

void live_world_why(live *l, const live_slot *s, sc_text *out)
{
    if (s->state != SLOT_FLYING) return;
    check(l, sc_emu_port_why(l->w->port, (sc_emu_cell)s->ticket, live_now(l),
                             out, fresh(l)));
}

/* ---- waits --------------------------------------------------------------- */

static void sleep_once(live *l, uint32_t seen, sc_time at_most)
{
    sc_emu_port *p = l->w->port;
    pthread_mutex_unlock(&l->mutex);
    sc_emu_port_sleep(p, seen, at_most);
    pthread_mutex_lock(&l->mutex);
}

void live_world_sleep(live *l, live_ticket k, sc_time by, sc_time at_most)
{
    uint32_t seen = sc_emu_port_seen(l->w->port);
    live_world_look(l, live_now(l));
    live_slot *s = live_slot_find(l, k);
    if (!s || live_slot_ended(s)) return;
    sc_time now = live_now(l);
    if (by != SC_TIME_MAX && by - now < at_most) at_most = by - now;
    if (at_most > 0) sleep_once(l, seen, at_most);
}

/* False: the await has not ended after `at_most` of real time. */
static bool ends_within(live *l, sc_emu_cell await, sc_time at_most)
{
    sc_emu_port *p = l->w->port;
    bool done = false;
    sc_time begin, end, until = live_clock_mono() + at_most;
    for (;;) {
        uint32_t seen = sc_emu_port_seen(p);
        check(l, sc_emu_port_done(p, await, &done, &begin, &end, fresh(l)));
        sc_time left = SC_TIME_MAX;
        if (at_most != SC_TIME_MAX) left = until - live_clock_mono();
        if (done || left <= 0) return done;
        sleep_once(l, seen, left);
    }
}

void live_world_await(live *l, live_ticket k, sc_time by)
{
    sc_emu_port *p = l->w->port;
    live_slot *s = live_slot_find(l, k);
    if (!s || s->state != SLOT_FLYING) return;
    sc_emu_cell cell;
    check(l, sc_emu_port_await(p, (sc_emu_cell)s->ticket, live_now(l), by,
                               &cell, fresh(l)));
    static const sc_time patience[] = {LIVE_STUCK_PS, LIVE_STILL_PS,
                                       SC_TIME_MAX};
    for (uint32_t i = 0; !ends_within(l, cell, patience[i]); i++) {
        s = live_slot_find(l, k);
        if (s && s->state == SLOT_FLYING) live_report_stuck(l, s, i > 0);
    }
    sc_emu_port_free(p, cell);
    if (deliver(l) && l->n_waiting > 0) pthread_cond_broadcast(&l->moved);
}

/* A rank that sleeps until `t` must not go far ahead of others: what it sleeps
 * for may be their work. Libraries make thousands of short sleeps when they are
 * loaded. */
void live_clock_sleep(sc_time t)
{
    live *l = live_is_open() ? live_get() : NULL;
    if (l && l->virt && !sc_emu_port_is_alone(l->w->port) &&
        t - atomic_load(&l->w->slept) > AHEAD_PS) {
        sc_emu_cell cell;
        live_begin(l);
        check(l, sc_emu_port_await(l->w->port, SC_EMU_NO_CELL, live_now(l),
                                   t - l->start, &cell, fresh(l)));
        ends_within(l, cell, SC_TIME_MAX);
        sc_emu_port_free(l->w->port, cell);
        atomic_store(&l->w->slept, t);
        live_end(l);
    }
    live_clock_forward(t);
}

void live_step(live *l)
{
    live_begin(l);
    if (l->log) sc_emu_log_step(l->log, live_now(l));
    live_end(l);
}

/* ---- groups -------------------------------------------------------------- */

/* Writes the group to the log. */
static void name_group(live *l, uint32_t group, const uint32_t *rank,
                       uint32_t n)
{
    uint32_t *all = NULL;
    if (!rank) {
        n = l->world;
        rank = all = live_alloc(l, n, sizeof *all);
        for (uint32_t i = 0; i < n; i++) all[i] = i;
    }
    sc_emu_log_group(l->log, group, rank, n);
    free(all);
}

/* Real members, in the group's order. */
static void fill_group(live *l, world_group *g, const uint32_t *rank,
                       uint32_t n)
{
    g->real = live_alloc(l, l->config.n_real, sizeof *g->real);
    g->n_real = live_members_real(l, rank, n, g->real);
    for (uint32_t i = 0; rank && i < g->n_real; i++)
        g->real[i] = rank[g->real[i]];
}

/* Room for a group, which is empty if it is new. */
static world_group *room_for(live *l, uint32_t group)
{
    world_of_rank *w = l->w;
    if (group < w->n_groups) return &w->group[group];
    world_group *v = realloc(w->group, (group + 1) * sizeof *v);
    if (!v) live_die(l, "out of memory");
    memset(v + w->n_groups, 0, (group + 1 - w->n_groups) * sizeof *v);
    w->group = v;
    w->n_groups = group + 1;
    return &v[group];
}

const world_group *world_group_at(const live *l, uint32_t group)
{
    static const world_group none = {0};
    return group < l->w->n_groups ? &l->w->group[group] : &none;
}

uint32_t live_group(live *l, const uint32_t *rank, uint32_t n,
                    uint64_t instance)
{
    uint32_t group, n_real;
    live_begin(l);
    check(l, sc_emu_port_group(l->w->port, rank, n, instance, live_now(l),
                               &group, &n_real, fresh(l)));
    world_group *g = room_for(l, group);
    if (!g->real) {
        fill_group(l, g, rank, n);
        name_group(l, group, rank, n);
    }
    live_end(l);
    return group;
}
