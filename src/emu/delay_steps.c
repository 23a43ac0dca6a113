/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_steps.c - model chunk: simulates every message of every step.
 *
 * A member sends its next message when the last has arrived and it has the data
 * for the next; a root sends to all members at once.  A chunk enters a phase at
 * a member that has finished the previous phase, and this phase for the
 * previous chunk.
 */
#include "emu/delay_messages.h"

#define MOST ((uint64_t)1 << 18) /* most messages of one operation */

/* Members that pass pieces on send the next piece when the last has left, not
 * when it has arrived: the latency follows the bytes. */
static bool latency_behind(const sc_coll_phase *p)
{
    return p->pattern == SC_COLL_CHAIN;
}

static sc_status send_one(emu_delay *d, msg_flight *f, const msg *key,
                          uint32_t k, sc_time t, sc_err *err)
{
    const sc_coll_phase *p = &f->schedule.phase[key->phase];
    const uint32_t *rank = f->group->rank + (size_t)key->sibling * f->group->n;
    msg m = *key;
    m.arrives = false;
    m.dst = sc_coll_to(&f->schedule, p, key->src, k);
    sc_message to = {.src = rank[m.src], .dst = rank[m.dst], .label = m.chunk};
    sc_fabric_path path;
    if (!sc_fabric_route(d->messages->fabric, &to, &path))
        return sc_error_nomem(err);
    m.latency = msg_latency(d, path.latency);
    if (m.chunk == 0 && m.phase == 0 && k == 0 &&
        sc_coll_needs(&f->schedule, p, m.src, 0) == 0)
        m.latency = m.latency > f->credit ? m.latency - f->credit : 0;
    sc_flow flow = {.links = path.links,
                    .n_links = path.n,
                    .bytes = sc_coll_bytes(&f->schedule, p, m.chunk, m.src, k),
                    .weight = 1,
                    .latency = latency_behind(p) ? 0 : m.latency};
    return msg_send(d, f, &m, &flow, t, err);
}

static sc_status go_on(emu_delay *d, msg_flight *f, msg at, sc_time t,
                       sc_err *err);

static sc_status start(emu_delay *d, msg_flight *f, msg at, sc_time t,
                       sc_err *err)
{
    if (!msg_ready(f, &at, at.src)) return SC_OK;
    msg_state_of(f, &at, at.src)->started = true;
    return go_on(d, f, at, t, err);
}

/* Sends the messages that a member can send, and starts what its last message
 * enables. */
static sc_status go_on(emu_delay *d, msg_flight *f, msg at, sc_time t,
                       sc_err *err)
{
    const sc_coll_phase *p = &f->schedule.phase[at.phase];
    msg_state *s = msg_state_of(f, &at, at.src);
    uint32_t sends = sc_coll_sends(&f->schedule, p, at.src);
    bool at_once = p->pattern == SC_COLL_STAR || p->pattern == SC_COLL_DIRECT;
    uint32_t window = at_once ? sends : 1;
    while (s->started && s->sent < sends && s->sent - s->left_port < window &&
           s->received >= sc_coll_needs(&f->schedule, p, at.src, s->sent))
        SC_TRY(send_one(d, f, &at, s->sent++, t, err));
    if (!s->started || s->done || s->left_port < sends ||
        s->received < sc_coll_expects(&f->schedule, p, at.src))
        return SC_OK;
    msg_done(f, &at, at.src);
    msg after = at, behind = at;
    after.phase++;
    behind.chunk++;
    SC_TRY(start(d, f, after, t, err));
    return start(d, f, behind, t, err);
}

sc_status msg_steps_end(emu_delay *d, const msg *m, sc_time t, sc_err *err)
{
    msg_flight *f = m->flight;
    msg src = *m, dst = *m;
    dst.src = m->dst;
    if (latency_behind(&f->schedule.phase[m->phase]) && !m->arrives) {
        sc_flow flow = {.weight = 1, .latency = m->latency};
        msg rest = *m;
        rest.arrives = true;
        SC_TRY(msg_send(d, f, &rest, &flow, t, err));
    } else {
        msg_state_of(f, m, m->dst)->received++;
        SC_TRY(go_on(d, f, dst, t, err));
    }
    if (m->arrives) return SC_OK;
    msg_state_of(f, m, m->src)->left_port++;
    return go_on(d, f, src, t, err);
}

static sc_status too_many(const msg_flight *f, uint64_t n, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                    sc_pos_file("--delay-model chunk"),
                    "use flow or analytic for groups of this size",
                    "%u x %u ranks send %llu messages in one operation, more "
                    "than %llu",
                    f->group->siblings, f->group->n, (unsigned long long)n,
                    (unsigned long long)MOST);
}

sc_status msg_steps_post(emu_delay *d, msg_flight *f, sc_time t, sc_err *err)
{
    const msg_group *g = f->group;
    uint64_t n = 0;
    for (uint32_t p = 0; p < f->schedule.n_phases; p++)
        n += (uint64_t)f->schedule.phase[p].steps * f->schedule.chunks * g->n *
             g->siblings;
    if (n > MOST) return too_many(f, n, err);
    if (!msg_states(f, g->siblings, g->n, d->a)) return sc_error_nomem(err);
    for (uint32_t s = 0; s < g->siblings; s++)
        for (uint32_t i = 0; i < g->n; i++) {
            msg at = {.flight = f, .sibling = s, .src = i};
            SC_TRY(start(d, f, at, t, err));
        }
    return SC_OK;
}
