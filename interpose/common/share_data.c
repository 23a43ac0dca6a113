/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_data.c - data of real ranks: contributions, their receivers, and the
 * operations that they belong to.
 */
#include "common/share_in.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The longest time between a rank's post and its contribution. */
#define LATE_PS SC_PS_PER_S

/* ---- which operation ----------------------------------------------------- */

static share_count *find_count(live *l, const sc_emu_key *k)
{
    live_share *h = l->share;
    uint64_t v[3] = {k->group, k->from, k->to};
    uint64_t hash = sc_hash(v, sizeof v, 0);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&h->by_key, hash, &at)) != SC_MAP_END) {
        const sc_emu_key *key = &h->count[i].key;
        if (key->group == k->group && key->from == k->from && key->to == k->to)
            return &h->count[i];
    }
    i = h->by_key.n;
    share_count *all =
        sc_grow(&l->arena, h->count, i, &h->cap_counts, 32, sizeof *all);
    if (!all || !sc_map_add(&h->by_key, &l->arena, hash, i))
        live_die(l, "out of memory");
    h->count = all;
    h->count[i] = (share_count){.key = *k};
    return &h->count[i];
}

static uint64_t next_of(live *l, const sc_emu_key *k)
{
    return find_count(l, k)->n++;
}

static bool is_member(const share_group_of *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->n_real; i++)
        if (g->real[i] == rank) return true;
    return false;
}

/* ---- operations by ticket ------------------------------------------------ */

static share_given *find_given(const live_share *h, live_ticket k)
{
    uint32_t i = sc_map_get(&h->by_ticket, k);
    return i == SC_MAP_END ? NULL : &h->given[i];
}

static void add_given(live *l, share_given *v, live_ticket k)
{
    live_share *h = l->share;
    v->ticket = k;
    if (!sc_map_set(&h->by_ticket, &l->arena, k, (uint32_t)(v - h->given)))
        live_die(l, "out of memory");
}

static void forget_given(live_share *h, share_given *v)
{
    sc_map_remove(&h->by_ticket, sc_mix(v->ticket), (uint32_t)(v - h->given));
    v->ticket = 0;
}

/* Twice the room, or the first. */
static void more_given(live *l)
{
    live_share *h = l->share;
    share_given *old = h->given;
    uint32_t n_old = h->given_cap, n = n_old ? 2 * n_old : 256;
    h->given = calloc(n, sizeof *h->given);
    sc_map_clear(&h->by_ticket);
    if (!h->given) live_die(l, "out of memory");
    h->given_cap = n;
    for (uint32_t i = 0; i < n_old; i++) {
        uint32_t from = (h->n_given + i) % n_old; /* the oldest first */
        h->given[i] = old[from];
        if (old[from].ticket) add_given(l, &h->given[i], old[from].ticket);
    }
    h->n_given = n_old;
    free(old);
}

/* Makes room for the next one. Data that no rank requests would never be
 * dropped, so the oldest entry is replaced. */
static share_given *next_given(live *l)
{
    live_share *h = l->share;
    bool full =
        h->given_cap == 0 || h->given[h->n_given % h->given_cap].ticket != 0;
    if (full && h->given_cap < SHARE_GIVEN) more_given(l);
    share_given *v = &h->given[h->n_given++ % h->given_cap];
    if (v->ticket) forget_given(h, v);
    return v;
}

share_given *share_note(live *l, const live_slot *s)
{
    const share_group_of *g = share_group_at(l, s->op.group);
    bool message = sc_coll_is_message(s->op.coll), send = s->op.coll == SC_SEND;
    if (g->n_real < 2 || (message && !is_member(g, s->op.peer))) return NULL;
    share_given *v = next_given(l);
    add_given(l, v, live_slot_ticket(s));
    v->op = s->op;
    /* Silent operations are counted separately. */
    v->key.group = 2 * s->op.group + s->op.silent;
    v->key.from = !message ? SC_EMU_NO_CELL : send ? l->rank : s->op.peer;
    v->key.to = !message ? SC_EMU_NO_CELL : send ? s->op.peer : l->rank;
    v->key.seq = next_of(l, &v->key);
    return v;
}

void share_hold(live *l, live_slot *s)
{
    share_note(l, s);
    s->noted = true;
}

/* ---- senders and receivers ----------------------------------------------- */

static bool gives(const live_op *op, uint32_t me, uint32_t from, uint32_t to)
{
    switch (op->coll) {
    case SC_BARRIER: return false;
    case SC_SEND: return from == me && to == op->peer;
    case SC_RECV: return from == op->peer && to == me;
    default: break;
    }
    if (op->bytes == 0 && !op->silent) return false;
    switch (op->coll) {
    case SC_BROADCAST:
    case SC_SCATTER: return from == op->peer;
    case SC_REDUCE:
    case SC_GATHER: return to == op->peer || from == to;
    default: return true;
    }
}

void share_push(live *l, live_ticket k, const void *data, size_t len)
{
    live_share *h = l->share;
    share_given *v = find_given(h, k);
    if (!v) return;
    const share_group_of *g = share_group_at(l, v->op.group);
    uint32_t readers = 0;
    for (uint32_t i = 0; i < g->n_real; i++)
        readers += gives(&v->op, l->rank, l->rank, g->real[i]);
    if (readers == 0) return;
    sc_err_init(&l->err);
    if (sc_emu_port_push(h->port, &v->key, data, len, readers, &l->err) !=
        SC_OK)
        live_die_err(l, &l->err);
    if (v->op.coll == SC_SEND) forget_given(h, v); /* all is done */
}

const void *share_peer(live *l, live_ticket k, uint32_t rank, size_t *len)
{
    live_share *h = l->share;
    const share_given *v = find_given(h, k);
    *len = 0;
    if (!v || !gives(&v->op, l->rank, rank, l->rank)) return NULL;
    sc_emu_key key = v->key;
    sc_time until = live_clock_mono() + LATE_PS;
    for (;;) {
        const void *p = sc_emu_port_peek(h->port, rank, &key, len);
        if (p || rank == l->rank || live_clock_mono() > until) return p;
        /* The data that a rank pushed before it ended are still available. */
        if (sc_emu_port_is_gone(h->port, rank))
            return sc_emu_port_peek(h->port, rank, &key, len);
        pthread_mutex_unlock(&l->mutex);
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        pthread_mutex_lock(&l->mutex);
    }
}

/* Contributions that were dropped before they arrived. */
static void pay_debts(live_share *h)
{
    uint32_t n = h->n_debts < SHARE_DEBTS ? h->n_debts : SHARE_DEBTS, left = 0;
    for (uint32_t i = 0; i < n; i++) {
        share_debt *d = &h->debt[i];
        if (d->open && sc_emu_port_drop(h->port, d->rank, &d->key))
            d->open = false;
        left += d->open;
    }
    if (left == 0) h->n_debts = 0;
}

void share_drop(live *l, live_ticket k)
{
    live_share *h = l->share;
    share_given *v = find_given(h, k);
    if (!v) return;
    const share_group_of *g = share_group_at(l, v->op.group);
    if (h->n_debts) pay_debts(h);
    for (uint32_t i = 0; i < g->n_real; i++) {
        uint32_t from = g->real[i];
        if (!gives(&v->op, l->rank, from, l->rank)) continue;
        if (sc_emu_port_drop(h->port, from, &v->key) || from == l->rank)
            continue;
        h->debt[h->n_debts++ % SHARE_DEBTS] = (share_debt){v->key, from, true};
    }
    forget_given(h, v);
}
