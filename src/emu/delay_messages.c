/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_messages.c - models chunk and flow: groups, flights and the clock.
 *
 * The siblings of a group send the same messages at the same time.  An
 * operation ends with the last message of the group itself.
 */
#include "emu/delay_messages.h"

#include "base/nodes.h"

#include <string.h>

sc_status delay_messages_new(emu_delay *d, sc_err *err)
{
    delay_messages *x = SC_NEW(d->a, delay_messages);
    if (x == NULL) return sc_error_nomem(err);
    double share = d->what.bandwidth;
    sc_fabric_opts o = {.seed = d->c->seed, .fraction = {share, share}};
    x->steps = d->c->delay == SC_EMU_DELAY_CHUNK;
    if (x->steps) {
        SC_TRY(sc_fabric_new(d->c->hw, &o, d->a, &x->fabric, err));
        d->flows = sc_fabric_flows(x->fabric);
    } else {
        SC_TRY(delay_flights_init(&x->flights, share, d->a, err));
        d->flows = x->flights.flows;
    }
    d->messages = x;
    return SC_OK;
}

sc_time msg_latency(const emu_delay *d, sc_time nominal)
{
    return delay_scaled(nominal, d->what.latency) + d->what.hop;
}

/* ---- groups */

static bool fill(const emu_group *g, const sc_hw *hw, msg_group *out,
                 sc_arena *a, sc_arena *tmp)
{
    uint32_t n = g->n, s_n = g->siblings == NULL ? 1 : g->n_siblings;
    *out = (msg_group){.n = n, .siblings = s_n};
    out->rank = SC_NEW_N(a, uint32_t, (size_t)n * s_n);
    out->at = SC_NEW_N(a, uint32_t, n);
    uint32_t *r = SC_NEW_N(tmp, uint32_t, n);
    sc_nodes by;
    if (!sc_nodes_init(&by, tmp, n, hw->n_nodes)) return false;
    if (!out->rank || !out->at || !r) return false;
    for (uint32_t s = s_n; s-- > 0;) {
        for (uint32_t i = 0; i < n; i++)
            r[i] = g->siblings == NULL ? delay_rank(g, i)
                                       : g->siblings[(size_t)s * n + i];
        sc_nodes_sort(&by, r, n, hw->node_size);
        /* unequal nodes: 0 */
        out->m = by.least == by.most ? by.least : 0;
        for (uint32_t i = 0; i < n; i++)
            out->rank[(size_t)s * n + i] = r[by.order[i]];
    }
    for (uint32_t i = 0; i < n; i++) out->at[by.order[i]] = i;
    return true;
}

#define MOST_RANKS 65536u

static sc_status group_of(emu_delay *d, emu_group *g, msg_group **out,
                          sc_err *err)
{
    /* all operations of a group share one record */
    void **kept = &g->delay[0];
    if (g->n > MOST_RANKS / (g->siblings == NULL ? 1 : g->n_siblings))
        return sc_error(
            err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file("--delay-model"),
            "use --delay-model analytic for groups of this size",
            "%u groups of %u ranks are too many for a model of messages",
            g->n_siblings, g->n);
    if (*kept == NULL) {
        sc_arena tmp;
        sc_arena_init(&tmp, 0);
        msg_group *m = SC_NEW(d->a, msg_group);
        bool ok = m != NULL && fill(g, d->c->hw, m, d->a, &tmp);
        sc_arena_free(&tmp);
        if (!ok) return sc_error_nomem(err);
        *kept = m;
    }
    *out = *kept;
    return SC_OK;
}

/* ---- flights */

static msg_flight *take_flight(delay_messages *x, sc_arena *a)
{
    msg_flight *f = x->free_flight;
    if (f != NULL)
        x->free_flight = f->next;
    else if ((f = SC_NEW(a, msg_flight)) == NULL)
        return NULL;
    f->prev = NULL;
    f->next = x->flight;
    if (x->flight != NULL) x->flight->prev = f;
    x->flight = f;
    f->msgs = NULL;
    return f;
}

static void give_back(delay_messages *x, msg_flight *f)
{
    *(f->prev == NULL ? &x->flight : &f->prev->next) = f->next;
    if (f->next != NULL) f->next->prev = f->prev;
    f->next = x->free_flight;
    x->free_flight = f;
}

static msg *take_msg(delay_messages *x, sc_arena *a)
{
    msg *m = x->free;
    if (m != NULL) {
        x->free = m->next;
        return m;
    }
    m = SC_NEW(a, msg);
    msg **all = sc_grow(a, x->msg, x->n_msgs, &x->msg_cap, 64, sizeof *all);
    if (m == NULL || all == NULL) return NULL;
    x->msg = all;
    m->id = x->n_msgs;
    x->msg[x->n_msgs++] = m;
    return m;
}

static void free_msg(delay_messages *x, msg *m)
{
    *(m->prev == NULL ? &m->flight->msgs : &m->prev->next) = m->next;
    if (m->next != NULL) m->next->prev = m->prev;
    m->next = x->free;
    x->free = m;
}

msg *msg_record(emu_delay *d, msg_flight *f, const msg *key)
{
    msg *m = take_msg(d->messages, d->a);
    if (m == NULL) return NULL;
    uint32_t id = m->id;
    *m = *key;
    m->id = id;
    m->flight = f;
    m->prev = NULL;
    m->next = f->msgs;
    if (f->msgs != NULL) f->msgs->prev = m;
    f->msgs = m;
    return m;
}

sc_status msg_send(emu_delay *d, msg_flight *f, const msg *key,
                   const sc_flow *flow, sc_time t, sc_err *err)
{
    msg *m = msg_record(d, f, key);
    sc_flow tagged = *flow;
    if (m == NULL) return sc_error_nomem(err);
    tagged.tag = m->id;
    m->flow = sc_flows_post(d->flows, &tagged, t);
    return m->flow == SC_FLOW_NONE ? sc_error_nomem(err) : SC_OK;
}

/* ---- states */

bool msg_states(msg_flight *f, uint32_t siblings, uint32_t members, sc_arena *a)
{
    uint64_t own =
        (uint64_t)f->schedule.chunks * f->schedule.n_phases * members;
    uint64_t n = own * siblings;
    if (n > f->room) {
        f->state = SC_NEW_N(a, msg_state, n);
        f->room = f->state == NULL ? 0 : n;
    }
    if (f->state == NULL) return false;
    memset(f->state, 0, n * sizeof *f->state);
    f->members = members;
    f->left = n;
    f->own = own;
    return true;
}

bool msg_ready(const msg_flight *f, const msg *at, uint32_t member)
{
    msg before = *at;
    if (at->chunk >= f->schedule.chunks || at->phase >= f->schedule.n_phases)
        return false;
    if (at->phase > 0) {
        before.phase--;
        if (!msg_state_of(f, &before, member)->done) return false;
        before.phase++;
    }
    if (at->chunk == 0) return true;
    before.chunk--;
    return msg_state_of(f, &before, member)->done;
}

void msg_done(msg_flight *f, const msg *at, uint32_t member)
{
    msg_state_of(f, at, member)->done = true;
    f->left--;
    f->own -= at->sibling == 0;
}

/* ---- operations */

/* SEND and RECV are one message for each sibling.  A message to oneself, or in
 * a group of one, ends at once. */
static sc_status post_pair(emu_delay *d, msg_flight *f, const msg *of,
                           sc_time t, sc_err *err)
{
    const msg_group *g = f->group;
    f->left = f->own = 1;
    f->members = 0;
    if (!d->messages->steps) return msg_flow_pair(d, f, of, t, err);
    for (uint32_t s = 0; s < g->siblings; s++) {
        const uint32_t *r = g->rank + (size_t)s * g->n;
        msg m = *of;
        sc_message to = {.src = r[m.src], .dst = r[m.dst]};
        sc_fabric_path path;
        m.sibling = s;
        if (!sc_fabric_route(d->messages->fabric, &to, &path))
            return sc_error_nomem(err);
        sc_time latency = m.src == m.dst ? 0 : msg_latency(d, path.latency);
        sc_flow flow = {.links = path.links,
                        .n_links = path.n,
                        .bytes = f->schedule.bytes,
                        .weight = 1,
                        .latency =
                            latency > f->credit ? latency - f->credit : 0};
        SC_TRY(msg_send(d, f, &m, &flow, t, err));
    }
    f->left = g->siblings;
    return SC_OK;
}

sc_status delay_messages_post(emu_delay *d, const emu_flight *op, sc_time t,
                              sc_time credit, sc_err *err)
{
    delay_messages *x = d->messages;
    msg_group *g = NULL;
    SC_TRY(group_of(d, op->group, &g, err));
    msg_flight *f = take_flight(x, d->a);
    if (f == NULL) return sc_error_nomem(err);
    f->tag = op->tag;
    f->group = g;
    f->credit = credit;
    f->schedule = (sc_coll_schedule){.coll = op->coll, .bytes = op->bytes};
    if (g->n < 2 || sc_coll_is_message(op->coll)) {
        msg m = {.flight = f};
        if (sc_coll_is_message(op->coll)) {
            m.src = g->at[op->root];
            m.dst = g->at[op->to];
        }
        return post_pair(d, f, &m, t, err);
    }
    sc_coll_schedule_usual(op->coll, op->bytes,
                           (sc_coll_group){g->n, g->m, g->at[op->root]},
                           &f->schedule);
    sc_status s =
        x->steps ? msg_steps_post(d, f, t, err) : msg_flow_post(d, f, t, err);
    if (s != SC_OK && f->msgs == NULL) give_back(x, f);
    return s;
}

/* ---- the clock */

/* Handles an arrival; returns whether the operation itself has ended. */
static sc_status arrive(emu_delay *d, const sc_flow_end *e, sc_err *err)
{
    delay_messages *x = d->messages;
    uint64_t id = e->tag;
    if (!x->steps) {
        id = x->flights.flight[e->tag]->tag;
        delay_flights_free(&x->flights, (uint32_t)e->tag);
    }
    msg *m = x->msg[id];
    msg_flight *f = m->flight;
    uint64_t own = f->own;
    msg at = *m;
    free_msg(x, m);
    if (f->members == 0) { /* an operation without phases */
        f->left--;
        f->own -= at.sibling == 0;
    } else if (x->steps) {
        SC_TRY(msg_steps_end(d, &at, e->t, err));
    } else {
        SC_TRY(msg_flow_end(d, &at, e->t, err));
    }
    if (own > 0 && f->own == 0) {
        if (!delay_ends(d, x->n_ends + 1)) return sc_error_nomem(err);
        d->end[x->n_ends++] = (emu_delay_end){f->tag, e->t};
    }
    if (f->left == 0) give_back(x, f);
    return SC_OK;
}

uint32_t delay_messages_advance(emu_delay *d, sc_time t,
                                const emu_delay_end **ends)
{
    delay_messages *x = d->messages;
    const sc_flow_end *end;
    uint32_t n;
    x->n_ends = 0;
    /* messages that an arrival enables leave at that time */
    for (bool more = true; more;) {
        sc_time next = sc_flows_next(d->flows);
        more = next <= t;
        sc_time to = more ? next : t;
        n = x->steps ? sc_flows_advance(d->flows, to, &end)
                     : delay_flights_advance(&x->flights, to, &end);
        if (n == SC_FLOW_NONE) return n;
        for (uint32_t k = 0; k < n; k++)
            if (arrive(d, &end[k], NULL) != SC_OK) return SC_FLOW_NONE;
    }
    *ends = d->end;
    return x->n_ends;
}

void delay_messages_cancel(emu_delay *d, uint64_t tag)
{
    delay_messages *x = d->messages;
    msg_flight *f = x->flight;
    while (f != NULL && (f->tag != tag || f->own == 0)) f = f->next;
    if (f == NULL) return;
    while (f->msgs != NULL) {
        if (x->steps)
            sc_flows_cancel(d->flows, f->msgs->flow);
        else
            delay_flights_cancel(&x->flights, f->msgs->flow);
        free_msg(x, f->msgs);
    }
    give_back(x, f);
}
