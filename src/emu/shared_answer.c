/* SPDX-License-Identifier: Apache-2.0 */
/* shared_answer.c - answers the questions of ranks. */
#include "emu/shared_server.h"
#include "net/net_flow.h"

#include <stdio.h>
#include <string.h>

shared_cell *server_first(const server_rank *r)
{
    shared_port *p = r->port;
    uint32_t popped = atomic_load_explicit(&p->popped, memory_order_relaxed);
    uint32_t pushed = atomic_load_explicit(&p->pushed, memory_order_acquire);
    if (pushed == popped) return NULL;
    return &p->cell[p->ring[popped % SHARED_CELLS] % SHARED_CELLS];
}

/* ---- answers ---------------------------------------------------------------- */

static uint32_t cell_number(const server_rank *r, const shared_cell *c)
{
    return (uint32_t)(c - r->port->cell);
}

static void resolve(server_rank *r, shared_cell *c, shared_state state)
{
    atomic_store_explicit(&c->state, state, memory_order_release);
    r->answered = true;
}

/* Keeps the first error: the rank ends with it. */
static void fail(server_rank *r, shared_cell *c, const sc_err *err)
{
    const sc_diag *d = &err->d[0];
    bool hint = err->n && d->hint[0];
    if (!r->failed)
        snprintf(r->port->text, sizeof r->port->text, "%s%s%s",
                 err->n ? d->msg : "out of memory", hint ? "; " : "",
                 hint ? d->hint : "");
    r->failed = true;
    resolve(r, c, CELL_FAILED);
}

static void list_remove(uint16_t *list, uint32_t *n, uint32_t at)
{
    memmove(list + at, list + at + 1, (*n - at - 1) * sizeof *list);
    --*n;
}

/* Tells the rank that its operation is done, or has failed. */
static void tell(server_rank *r, const shared_cell *c)
{
    shared_port *p = r->port;
    uint32_t n = atomic_load_explicit(&p->ended, memory_order_relaxed);
    p->done[n % SHARED_CELLS] = cell_number(r, c);
    atomic_store_explicit(&p->ended, n + 1, memory_order_release);
}

/* Continues the awaits for the cell; SC_EMU_NO_CELL: those that give up. */
static void release(server_rank *r, uint32_t cell, sc_time t)
{
    for (uint32_t i = 0; i < r->n_awaits;) {
        shared_cell *a = &r->port->cell[r->await[i]];
        if (cell == SC_EMU_NO_CELL ? a->end > t : a->other != cell) {
            i++;
            continue;
        }
        a->end = t;
        resolve(r, a, CELL_DONE);
        list_remove(r->await, &r->n_awaits, i);
        r->blocked = false;
        if (t > r->bound) r->bound = t;
    }
}

static void ended(server_rank *r, shared_cell *c, sc_time begin, sc_time end)
{
    c->begin = begin;
    c->end = end;
    resolve(r, c, CELL_DONE);
    tell(r, c);
    release(r, cell_number(r, c), end);
}

sc_time server_gives_up(const server_rank *r)
{
    sc_time by = SC_TIME_MAX;
    for (uint32_t i = 0; i < r->n_awaits; i++) {
        sc_time end = r->port->cell[r->await[i]].end;
        if (end < by) by = end;
    }
    return by;
}

void server_give_up(sc_emu_shared *s, sc_time by)
{
    for (uint32_t k = 0; k < s->n; k++)
        release(&s->rank[k], SC_EMU_NO_CELL, by);
}

static server_rank *find_rank(sc_emu_shared *s, uint32_t rank)
{
    uint32_t i = 0;
    while (i + 1 < s->n && s->rank[i].rank != rank) i++;
    return &s->rank[i];
}

sc_status server_advance(sc_emu_shared *s, sc_time t, sc_err *err)
{
    const sc_emu_end *ends;
    uint32_t n = sc_emu_advance(s->emu, t, &ends);
    if (n == SC_FLOW_NONE) return sc_emu_failed(s->emu, err);
    for (uint32_t i = 0; i < n; i++) {
        server_rank *r = find_rank(s, ends[i].rank);
        for (uint32_t k = 0; k < r->n_flying; k++) {
            shared_cell *c = &r->port->cell[r->flying[k]];
            if (c->ticket != ends[i].ticket) continue;
            list_remove(r->flying, &r->n_flying, k);
            if (c->op.coll == SC_RECV) {
                c->op.peer = ends[i].from;
                c->op.tag = ends[i].tag;
                c->op.bytes = ends[i].bytes;
                c->op.seq = ends[i].seq;
            }
            ended(r, c, ends[i].begin, ends[i].end);
            break;
        }
    }
    return SC_OK;
}

void server_wake(sc_emu_shared *s)
{
    atomic_store_explicit(&s->head->next, sc_emu_next(s->emu),
                          memory_order_relaxed);
    for (uint32_t i = 0; i < s->n; i++) {
        server_rank *r = &s->rank[i];
        if (!r->answered) continue;
        r->answered = false;
        atomic_fetch_add(&r->port->answers, 1);
        if (atomic_load(&r->port->sleepers)) shared_wake(&r->port->answers);
    }
}

/* ---- questions -------------------------------------------------------------- */

static void post(sc_emu_shared *s, server_rank *r, shared_cell *c)
{
    sc_err_init(&s->err);
    c->op.rank = r->rank;
    if (sc_emu_post(s->emu, &c->op, c->t, &c->ticket, &s->err) != SC_OK) {
        fail(r, c, &s->err);
        tell(r, c);
    } else
        r->flying[r->n_flying++] = (uint16_t)cell_number(r, c);
}

/* The rendezvous of a silent collective; created if needed. */
static server_rendezvous *find_rendezvous(sc_emu_shared *s,
                                          const shared_cell *c)
{
    for (uint32_t i = 0; i < s->n_rendezvous; i++) {
        server_rendezvous *m = &s->rendezvous[i];
        if (m->group == c->op.group && m->seq == c->op.bytes) return m;
    }
    server_rendezvous *v = sc_grow(s->a, s->rendezvous, s->n_rendezvous,
                                   &s->cap_rendezvous, 8, sizeof *v);
    if (!v) return NULL;
    s->rendezvous = v;
    v += s->n_rendezvous;
    /* A reused entry keeps its memory. */
    uint32_t *who = s->n_rendezvous < s->n_made
                        ? v->who
                        : SC_NEW_N(s->a, uint32_t, s->n + 2);
    if (!who) return NULL;
    if (s->n_rendezvous == s->n_made) s->n_made++;
    s->n_rendezvous++;
    *v = (server_rendezvous){c->op.group, c->op.bytes, INT64_MIN, who, 0};
    return v;
}

static void rendezvous(sc_emu_shared *s, uint32_t rank, shared_cell *c)
{
    server_rank *r = &s->rank[rank];
    c->op.rank = r->rank;
    server_rendezvous *m = find_rendezvous(s, c);
    if (!m) {
        sc_err_init(&s->err);
        fail(r, c, &s->err);
        return;
    }
    m->who[m->n_who++] = rank << 16 | cell_number(r, c);
    if (c->t > m->t) m->t = c->t;
    if (m->n_who < sc_emu_group_real(s->emu, m->group)) return;
    for (uint32_t i = 0; i < m->n_who; i++) {
        server_rank *other = &s->rank[m->who[i] >> 16];
        ended(other, &other->port->cell[m->who[i] & 0xffff], m->t, m->t);
    }
    server_rendezvous done = *m; /* keeps its room */
    *m = s->rendezvous[--s->n_rendezvous];
    s->rendezvous[s->n_rendezvous] = done;
}

static void group(sc_emu_shared *s, uint32_t rank, shared_cell *c)
{
    server_rank *r = &s->rank[rank];
    const uint32_t *list = c->other ? shared_list_at(s->head, rank) : NULL;
    sc_err_init(&s->err);
    if (c->other > s->head->world ||
        sc_emu_group(s->emu, list, c->other, c->ticket, &c->reply[0],
                     &s->err) != SC_OK) {
        fail(r, c, &s->err);
        return;
    }
    c->reply[1] = sc_emu_group_real(s->emu, c->reply[0]);
    resolve(r, c, CELL_DONE);
}

static void why(sc_emu_shared *s, server_rank *r, shared_cell *c)
{
    sc_text t;
    const shared_cell *o = &r->port->cell[c->other % SHARED_CELLS];
    sc_text_init(&t);
    if (o->kind == SHARED_POST) sc_emu_why(s->emu, o->ticket, &t);
    if (!r->failed) snprintf(r->port->text, sizeof r->port->text, "%s", t.buf);
    sc_text_free(&t);
    resolve(r, c, CELL_DONE);
}

static void cancel(sc_emu_shared *s, server_rank *r, shared_cell *c)
{
    uint32_t other = c->other % SHARED_CELLS;
    shared_cell *o = &r->port->cell[other];
    bool open =
        atomic_load_explicit(&o->state, memory_order_relaxed) == CELL_ASKED;
    for (uint32_t k = 0; k < r->n_flying; k++)
        if (r->flying[k] == other) {
            sc_emu_cancel(s->emu, o->ticket);
            list_remove(r->flying, &r->n_flying, k);
            break;
        }
    if (open) {
        release(r, other, c->t);
        resolve(r, o, CELL_FREE);
    }
    c->reply[0] = open;
    resolve(r, c, CELL_DONE);
}

static void await(server_rank *r, shared_cell *c)
{
    const shared_cell *o = &r->port->cell[c->other % SHARED_CELLS];
    if (atomic_load_explicit(&o->state, memory_order_relaxed) != CELL_ASKED) {
        resolve(r, c, CELL_DONE);
        return;
    }
    r->await[r->n_awaits++] = (uint16_t)cell_number(r, c);
    r->blocked = true;
}

static void answer(sc_emu_shared *s, uint32_t rank, shared_cell *c)
{
    server_rank *r = &s->rank[rank];
    switch ((shared_kind)c->kind) {
    case SHARED_POST: post(s, r, c); break;
    case SHARED_JOIN: rendezvous(s, rank, c); break;
    case SHARED_GROUP: group(s, rank, c); break;
    case SHARED_CPU:
        c->op.rank = r->rank;
        c->end = sc_emu_cpu(s->emu, &c->op);
        resolve(r, c, CELL_DONE);
        break;
    case SHARED_WHY: why(s, r, c); break;
    case SHARED_LOOK: resolve(r, c, CELL_DONE); break;
    case SHARED_WAITED:
        sc_emu_waited(s->emu, r->rank, c->begin, c->end);
        resolve(r, c, CELL_FREE);
        break;
    case SHARED_CANCEL: cancel(s, r, c); break;
    case SHARED_AWAIT: await(r, c); break;
    }
}

void server_serve(sc_emu_shared *s, uint32_t rank)
{
    server_rank *r = &s->rank[rank];
    shared_cell *c = server_first(r);
    if (!r->known) server_keep_up(r);
    if (c->t > r->bound) r->bound = c->t;
    r->idle = false;
    if (s->fd >= 0) r->since = shared_now(); /* several ranks */
    r->cpu = -1;
    atomic_fetch_add_explicit(&r->port->popped, 1, memory_order_release);
    answer(s, rank, c);
}
