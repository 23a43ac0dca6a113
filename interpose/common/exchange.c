/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - data of real ranks: contributions, their receivers, and the
 * operations that they belong to.
 */
#include "common/moves.h"
#include "common/world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The longest time between a rank's post and its contribution. */
#define LATE_PS    SC_PS_PER_S
#define REMEMBERED 65536u /* operations, at most */
#define DEBTS      1024

/* A contribution that has not arrived and is no longer wanted. */
typedef struct debt {
    sc_emu_key key;
    uint32_t rank;
    bool open;
} debt;

/* Counts of operations of a group, or messages of a pair. */
typedef struct count_of {
    sc_emu_key key; /* seq 0 */
    uint64_t n;
} count_of;

struct live_exchange {
    count_of *count; /* [by_key.n] */
    sc_map by_key;   /* counts by group, from and to */
    uint32_t cap_counts;
    exchange_of *known; /* [cap] ring; the oldest one goes first */
    sc_map by_ticket;   /* of `known` */
    uint32_t n, cap;
    debt debt[DEBTS];
    uint32_t n_debts;
};

void exchange_open(live *l)
{
    l->x = live_alloc(NULL, 1, sizeof *l->x);
}

/* ---- which operation ----------------------------------------------------- */

static count_of *find_count(live *l, const sc_emu_key *k)
{
    live_exchange *h = l->x;
    uint64_t v[3] = {k->group, k->from, k->to};
    uint64_t hash = sc_hash(v, sizeof v, 0);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&h->by_key, hash, &at)) != SC_MAP_END) {
        const sc_emu_key *key = &h->count[i].key;
        if (key->group == k->group && key->from == k->from && key->to == k->to)
            return &h->count[i];
    }
    i = h->by_key.n;
    count_of *all =
        sc_grow(&l->arena, h->count, i, &h->cap_counts, 32, sizeof *all);
    if (!all || !sc_map_add(&h->by_key, &l->arena, hash, i))
        live_die(l, "out of memory");
    h->count = all;
    h->count[i] = (count_of){.key = *k};
    return &h->count[i];
}

static uint64_t next_of(live *l, const sc_emu_key *k)
{
    return find_count(l, k)->n++;
}

static bool is_member(const world_group *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->n_real; i++)
        if (g->real[i] == rank) return true;
    return false;
}

/* ---- operations by ticket ------------------------------------------------ */

static exchange_of *find_known(const live_exchange *h, live_ticket k)
{
    uint32_t i = sc_map_get(&h->by_ticket, k);
    return i == SC_MAP_END ? NULL : &h->known[i];
}

static void add_known(live *l, exchange_of *v, live_ticket k)
{
    live_exchange *h = l->x;
    v->ticket = k;
    if (!sc_map_set(&h->by_ticket, &l->arena, k, (uint32_t)(v - h->known)))
        live_die(l, "out of memory");
}

static void forget_known(live_exchange *h, exchange_of *v)
{
    sc_map_remove(&h->by_ticket, sc_mix(v->ticket), (uint32_t)(v - h->known));
    v->ticket = 0;
}

/* Twice the room, or the first. */
static void more_known(live *l)
{
    live_exchange *h = l->x;
    exchange_of *old = h->known;
    uint32_t n_old = h->cap, n = n_old ? 2 * n_old : 256;
    h->known = live_alloc(l, n, sizeof *h->known);
    sc_map_clear(&h->by_ticket);
    h->cap = n;
    for (uint32_t i = 0; i < n_old; i++) {
        uint32_t from = (h->n + i) % n_old; /* the oldest first */
        h->known[i] = old[from];
        if (old[from].ticket) add_known(l, &h->known[i], old[from].ticket);
    }
    h->n = n_old;
    free(old);
}

/* Makes room for the next one. Data that no rank requests would never be
 * dropped, so the oldest entry is replaced. */
static exchange_of *next_known(live *l)
{
    live_exchange *h = l->x;
    bool full = h->cap == 0 || h->known[h->n % h->cap].ticket != 0;
    if (full && h->cap < REMEMBERED) more_known(l);
    exchange_of *v = &h->known[h->n++ % h->cap];
    if (v->ticket) forget_known(h, v);
    return v;
}

/* Whether the slot's operation moves data between real ranks, or may do so. */
static bool exchanges(const live *l, const live_slot *s)
{
    const world_group *g = world_group_at(l, s->op.group);
    if (!sc_coll_is_message(s->op.coll)) return g->n_real > 1;
    if (s->op.peer == SC_EMU_ANY || is_member(g, s->op.peer)) return true;
    return s->op.coll == SC_RECV && live_scout_sends(l, s->op.peer);
}

exchange_of *exchange_note(live *l, const live_slot *s)
{
    if (!exchanges(l, s)) return NULL;
    exchange_of *v = next_known(l);
    add_known(l, v, live_slot_ticket(s));
    v->op = s->op;
    /* Silent operations are counted separately. */
    v->key = (sc_emu_key){.group = 2 * s->op.group + s->op.silent,
                          .from = SC_EMU_NO_CELL,
                          .to = SC_EMU_NO_CELL};
    if (s->op.coll == SC_RECV) return v; /* its message tells */
    if (s->op.coll == SC_SEND) {
        v->key.from = l->rank;
        v->key.to = s->op.peer;
    }
    v->key.seq = next_of(l, &v->key);
    return v;
}

void exchange_matched(live *l, const live_slot *s, const sc_emu_op *message)
{
    if (!s->exchanges) return;
    exchange_of *v = find_known(l->x, live_slot_ticket(s));
    if (!v) return;
    v->op.peer = message->peer;
    v->op.tag = message->tag;
    v->op.bytes = message->bytes;
    v->op.seq = message->seq;
    v->key.from = message->peer;
    v->key.to = l->rank;
    v->key.seq = message->seq;
}

bool live_matched(live *l, live_ticket k, live_message *out)
{
    pthread_mutex_lock(&l->mutex);
    const exchange_of *v = find_known(l->x, k);
    bool there = v && v->op.coll == SC_RECV && v->key.to == l->rank;
    if (there)
        *out = (live_message){v->op.peer, v->op.tag, v->op.bytes, v->op.seq};
    pthread_mutex_unlock(&l->mutex);
    return there;
}

/* ---- senders and receivers ----------------------------------------------- */

static bool gives(const world_group *g, const live_op *op, uint32_t me,
                  uint32_t from, uint32_t to)
{
    switch (op->coll) {
    case SC_SEND: return from == me && to == op->peer;
    case SC_RECV:
        return from == op->peer && to == me &&
               (op->take == SC_EMU_TAKE || op->take == SC_EMU_CLAIMED);
    default: return live_moves_gives(op, g->real, g->n_real, from, to);
    }
}

static void push(live *l, live_ticket k, const void *data, size_t len)
{
    live_exchange *h = l->x;
    exchange_of *v = find_known(h, k);
    if (!v) return;
    const world_group *g = world_group_at(l, v->op.group);
    uint32_t readers = 0;
    for (uint32_t i = 0; i < g->n_real; i++)
        readers += gives(g, &v->op, l->rank, l->rank, g->real[i]);
    if (readers == 0) return;
    sc_err_init(&l->err);
    if (sc_emu_port_push(l->w->port, &v->key, data, len, readers, &l->err) !=
        SC_OK)
        live_die_err(l, &l->err);
    if (v->op.coll == SC_SEND) forget_known(h, v); /* all is done */
}

static const void *peer(live *l, live_ticket k, uint32_t rank, size_t *len)
{
    live_exchange *h = l->x;
    const exchange_of *v = find_known(h, k);
    *len = 0;
    if (!v) return NULL;
    const world_group *g = world_group_at(l, v->op.group);
    if (!is_member(g, rank) || !gives(g, &v->op, l->rank, rank, l->rank))
        return NULL;
    sc_emu_key key = v->key;
    sc_time until = live_clock_mono() + LATE_PS;
    for (;;) {
        const void *p = sc_emu_port_peek(l->w->port, rank, &key, len);
        if (p || rank == l->rank || live_clock_mono() > until) return p;
        /* The data that a rank pushed before it ended are still available. */
        if (sc_emu_port_is_gone(l->w->port, rank))
            return sc_emu_port_peek(l->w->port, rank, &key, len);
        pthread_mutex_unlock(&l->mutex);
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        pthread_mutex_lock(&l->mutex);
    }
}

/* Contributions that were dropped before they arrived. */
static void pay_debts(live *l, live_exchange *h)
{
    uint32_t n = h->n_debts < DEBTS ? h->n_debts : DEBTS, left = 0;
    for (uint32_t i = 0; i < n; i++) {
        debt *d = &h->debt[i];
        if (d->open && sc_emu_port_drop(l->w->port, d->rank, &d->key))
            d->open = false;
        left += d->open;
    }
    if (left == 0) h->n_debts = 0;
}

static void drop(live *l, live_ticket k)
{
    live_exchange *h = l->x;
    exchange_of *v = find_known(h, k);
    if (!v) return;
    const world_group *g = world_group_at(l, v->op.group);
    if (h->n_debts) pay_debts(l, h);
    for (uint32_t i = 0; i < g->n_real; i++) {
        uint32_t from = g->real[i];
        if (!gives(g, &v->op, l->rank, from, l->rank)) continue;
        if (sc_emu_port_drop(l->w->port, from, &v->key) || from == l->rank)
            continue;
        h->debt[h->n_debts++ % DEBTS] = (debt){v->key, from, true};
    }
    forget_known(h, v);
}

void live_push(live *l, live_ticket k, const void *data, size_t len)
{
    live_begin(l);
    push(l, k, data, len);
    live_end(l);
}

const void *live_peer(live *l, live_ticket k, uint32_t rank, size_t *len)
{
    live_begin(l);
    const void *p = peer(l, k, rank, len);
    live_end(l);
    return p;
}

void live_drop(live *l, live_ticket k)
{
    live_begin(l);
    drop(l, k);
    live_end(l);
}

/* ---- groups that are known by an id ---------------------------------------- */

/* What a member says of itself. */
typedef struct member {
    uint32_t n, place;
    sc_time since;
} member;

/* Members that have joined since the last look; returns when the first did. */
static sc_time look(live *l, const sc_emu_key *key, const member *me,
                    uint32_t *rank, uint32_t *known)
{
    sc_time first = me->since;
    for (uint32_t i = 0; i < l->config.n_real; i++) {
        size_t len;
        uint32_t r = l->config.real[i];
        const member *m = sc_emu_port_peek(l->w->port, r, key, &len);
        if (!m || m->n != me->n) continue;
        *known += rank[m->place] == LIVE_NONE;
        rank[m->place] = r;
        if (m->since < first) first = m->since;
    }
    return first;
}

uint32_t live_join(live *l, uint64_t id, uint32_t n, uint32_t place,
                   uint32_t *rank, sc_time at_most)
{
    const sc_emu_key key = {LIVE_NONE, SC_EMU_NO_CELL, SC_EMU_NO_CELL, id};
    const member me = {n, place, live_clock_mono()};
    uint32_t known = 1;
    for (uint32_t i = 0; i < n; i++) rank[i] = i == place ? l->rank : LIVE_NONE;
    if (n == 1 || sc_emu_port_is_alone(l->w->port)) return 1;
    live_begin(l);
    sc_err_init(&l->err);
    /* It stays: nobody knows who will read it. */
    if (sc_emu_port_push(l->w->port, &key, &me, sizeof me, UINT32_MAX,
                         &l->err) != SC_OK)
        live_die_err(l, &l->err);
    sc_time first = look(l, &key, &me, rank, &known);
    if (me.since - first > at_most)
        live_die(l,
                 "rank %u joins a group of %u after others have stopped "
                 "waiting for it",
                 l->rank, n);
    while (known < n && live_clock_mono() - first < at_most) {
        pthread_mutex_unlock(&l->mutex);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&l->mutex);
        first = look(l, &key, &me, rank, &known);
    }
    live_end(l);
    return known;
}
