/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - posts and waits if the launcher owns the world. */
#include "common/share.h"

#include "common/share_in.h"

#include <stdlib.h>
#include <string.h>

/* Errors from the launcher end the process. */
static void check(live *l, sc_status s)
{
    if (s != SC_OK) live_die_err(l, &l->err);
}

static sc_err *fresh(live *l)
{
    sc_err_init(&l->err);
    return &l->err;
}

void share_open(live *l, const char *path)
{
    live_share *s = calloc(1, sizeof *s);
    if (!s) live_fail("out of memory");
    l->share = s;
    if (sc_emu_port_open(path, l->rank, &l->arena, &s->port, fresh(l)) != SC_OK)
        live_fail_err(&l->err);
}

void share_leave(live *l)
{
    sc_emu_port_leave(l->share->port);
}

sc_time share_start(const live *l)
{
    return sc_emu_port_start(l->share->port);
}

/* ---- groups -------------------------------------------------------------- */

static bool is_real(const live *l, uint32_t rank)
{
    uint32_t i = 0;
    while (i < l->config.n_real && l->config.real[i] != rank) i++;
    return i < l->config.n_real;
}

/* Real members, in the group's order. */
static void fill_group(live *l, share_group_of *g, const uint32_t *rank,
                       uint32_t n)
{
    if (!rank) {
        rank = l->config.real;
        n = l->config.n_real;
    }
    g->real = malloc(l->config.n_real * sizeof *g->real);
    if (!g->real) live_die(l, "out of memory");
    for (uint32_t i = 0; i < n && g->n_real < l->config.n_real; i++)
        if (is_real(l, rank[i])) g->real[g->n_real++] = rank[i];
}

uint32_t share_group(live *l, const uint32_t *rank, uint32_t n,
                     uint64_t instance)
{
    live_share *s = l->share;
    uint32_t group, n_real;
    check(l, sc_emu_port_group(s->port, rank, n, instance, live_now(l), &group,
                               &n_real, fresh(l)));
    if (group >= s->n_groups) {
        share_group_of *v = realloc(s->group, (group + 1) * sizeof *v);
        if (!v) live_die(l, "out of memory");
        memset(v + s->n_groups, 0, (group + 1 - s->n_groups) * sizeof *v);
        s->group = v;
        s->n_groups = group + 1;
    }
    if (!s->group[group].real) fill_group(l, &s->group[group], rank, n);
    return group;
}

const share_group_of *share_group_at(const live *l, uint32_t group)
{
    static const share_group_of none = {0};
    return group < l->share->n_groups ? &l->share->group[group] : &none;
}

uint32_t share_group_real(const live *l, uint32_t group)
{
    return share_group_at(l, group)->n_real;
}

/* ---- operations ---------------------------------------------------------- */

void share_post(live *l, live_slot *s, sc_time t)
{
    sc_emu_op op = live_slot_op(l, s);
    sc_emu_cell cell;
    share_given *given = s->noted ? NULL : share_note(l, s);
    if (s->op.silent) {
        if (!given) { /* there is no other real member */
            live_slot_move(l, s, SLOT_ENDED);
            return;
        }
        op.bytes = given->key.seq;
    }
    check(l, sc_emu_port_post(l->share->port, &op, s->op.silent, t, &cell,
                              fresh(l)));
    live_slot_move(l, s, SLOT_FLYING);
    live_index_add(l, cell, s);
    atomic_fetch_add(&l->era, 1);
}

static void end_slot(live *l, live_slot *s)
{
    bool done;
    sc_time begin, end;
    check(l, sc_emu_port_done(l->share->port, (sc_emu_cell)s->ticket, &done,
                              &begin, &end, fresh(l)));
    if (!done) return;
    sc_emu_port_free(l->share->port, (sc_emu_cell)s->ticket);
    live_slot_end(l, live_index_remove(l, s->ticket), begin, end);
}

void share_look(live *l, sc_time now)
{
    live_share *s = l->share;
    uint32_t seen = sc_emu_port_seen(s->port);
    if (l->virt) check(l, sc_emu_port_look(s->port, now, fresh(l)));
    if (seen != s->seen || l->virt) {
        s->seen = seen;
        for (uint32_t i = l->flying.first; i != LIVE_NONE;) {
            live_slot *o = live_slot_at(l, i);
            i = o->next;
            end_slot(l, o);
        }
        if (l->n_waiting > 0) pthread_cond_broadcast(&l->moved);
    }
    l->next = sc_emu_port_next(s->port);
}

void share_cancel(live *l, live_slot *s)
{
    check(l, sc_emu_port_cancel(l->share->port, (sc_emu_cell)s->ticket,
                                live_now(l), fresh(l)));
}

void share_waited(live *l, sc_time from, sc_time to)
{
    check(l, sc_emu_port_waited(l->share->port, from, to, fresh(l)));
}

sc_time share_cpu(live *l, const live_slot *s)
{
    sc_emu_op op = live_slot_op(l, s);
    sc_time cpu;
    live_share *h = l->share;
    uint64_t key[3] = {(uint64_t)op.coll, op.group, op.bytes};
    uint64_t hash = sc_hash(key, sizeof key, 1);
    share_cpu_of *c = &h->cpu[hash % SC_COUNT(h->cpu)];
    if (c->key == hash) return c->cpu;
    check(l, sc_emu_port_cpu(h->port, &op, live_now(l), &cpu, fresh(l)));
    *c = (share_cpu_of){hash, cpu};
    return cpu;
}

void share_why(live *l, const live_slot *s, sc_text *out)
{
    check(l, sc_emu_port_why(l->share->port, (sc_emu_cell)s->ticket,
                             live_now(l), out, fresh(l)));
}

/* ---- waiting ------------------------------------------------------------- */

static void sleep_once(live *l, uint32_t seen, sc_time at_most)
{
    sc_emu_port *p = l->share->port;
    pthread_mutex_unlock(&l->mutex);
    sc_emu_port_sleep(p, seen, at_most);
    pthread_mutex_lock(&l->mutex);
}

static void wait_real(live *l, live_ticket k, sc_time by, sc_time at_most)
{
    uint32_t seen = sc_emu_port_seen(l->share->port);
    share_look(l, live_now(l));
    live_slot *s = live_slot_find(l, k);
    if (!s || live_slot_ended(s)) return;
    sc_time now = live_now(l);
    if (by != SC_TIME_MAX && by - now < at_most) at_most = by - now;
    if (at_most > 0) sleep_once(l, seen, at_most);
}

/* The rank is idle: informs the launcher, so that time can advance. */
static void wait_virtual(live *l, live_ticket k, sc_time by, sc_time at_most)
{
    live_share *h = l->share;
    live_slot *s = live_slot_find(l, k);
    if (!s || s->state != SLOT_FLYING) return;
    sc_emu_cell cell;
    bool done = false;
    sc_time begin, end, until = live_clock_mono() + at_most;
    check(l, sc_emu_port_await(h->port, (sc_emu_cell)s->ticket, live_now(l), by,
                               &cell, fresh(l)));
    for (bool told = false; !done;) {
        uint32_t seen = sc_emu_port_seen(h->port);
        check(l,
              sc_emu_port_done(h->port, cell, &done, &begin, &end, fresh(l)));
        if (done) break;
        sc_time left = told ? SC_TIME_MAX : until - live_clock_mono();
        if (left > 0) {
            sleep_once(l, seen, left);
            continue;
        }
        told = true;
        s = live_slot_find(l, k);
        if (s && s->state == SLOT_FLYING) live_report_stuck(l, s);
    }
    sc_emu_port_free(h->port, cell);
    s = live_slot_find(l, k);
    if (s && s->state == SLOT_FLYING) end_slot(l, s);
}

void share_wait(live *l, live_ticket k, sc_time by, sc_time at_most)
{
    if (l->virt)
        wait_virtual(l, k, by, at_most);
    else
        wait_real(l, k, by, at_most);
}
