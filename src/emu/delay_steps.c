/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_steps.c - model chunk: every message of every step.
 *
 * A member sends its next message when the last has arrived and it has what
 * the next needs; a root sends to all at once.  A chunk enters a phase at a
 * member that has done the phase before, and this phase for the chunk before.
 */
#include "emu/delay_messages.h"

#include <string.h>

#define MOST ((uint64_t)1 << 18) /* messages of one operation */

static msg_state *state(const msg_flight *f, uint32_t s, uint32_t c, uint32_t p,
                        uint32_t i)
{
    uint64_t at = ((uint64_t)s * f->chunks + c) * f->n_phases + p;
    return &f->state[at * f->group->n + i];
}

static sc_status send_one(emu_delay *d, msg_flight *f, const msg *key,
                          uint32_t k, sc_time t, sc_err *err)
{
    const msg_phase *p = &f->phase[key->phase];
    const uint32_t *rank = f->group->rank + (size_t)key->sibling * f->group->n;
    msg m = *key;
    m.dst = msg_to(f, p, key->src, k);
    sc_message to = {.src = rank[m.src], .dst = rank[m.dst], .label = m.chunk};
    sc_fabric_path path;
    if (!sc_fabric_route(d->messages->fabric, &to, &path))
        return sc_error_nomem(err);
    sc_time latency = msg_latency(d, path.latency);
    if (key->chunk == 0 && key->phase == 0 && k == 0 &&
        msg_needs(f, p, key->src, 0) == 0)
        latency = latency > f->credit ? latency - f->credit : 0;
    sc_flow flow = {.links = path.links,
                    .n_links = path.n,
                    .bytes = msg_bytes(f, p, m.chunk, m.src, k),
                    .weight = 1,
                    .latency = latency};
    return msg_send(d, f, &m, &flow, t, err);
}

/* One state after the other: what a member that is done lets begin. */
static sc_status go_on(emu_delay *d, msg_flight *f, msg at, sc_time t,
                       sc_err *err);

static sc_status start(emu_delay *d, msg_flight *f, msg at, sc_time t,
                       sc_err *err)
{
    uint32_t s = at.sibling, c = at.chunk, p = at.phase, i = at.src;
    if (c >= f->chunks || p >= f->n_phases) return SC_OK;
    if (p > 0 && !state(f, s, c, p - 1, i)->done) return SC_OK;
    if (c > 0 && !state(f, s, c - 1, p, i)->done) return SC_OK;
    state(f, s, c, p, i)->started = true;
    return go_on(d, f, at, t, err);
}

static sc_status go_on(emu_delay *d, msg_flight *f, msg at, sc_time t,
                       sc_err *err)
{
    const msg_phase *p = &f->phase[at.phase];
    msg_state *s = state(f, at.sibling, at.chunk, at.phase, at.src);
    uint32_t sends = msg_sends(f, p, at.src);
    uint32_t window = p->pattern == MSG_STAR ? sends : 1;
    while (s->started && s->sent < sends && s->sent - s->arrived < window &&
           s->received >= msg_needs(f, p, at.src, s->sent))
        SC_TRY(send_one(d, f, &at, s->sent++, t, err));
    if (!s->started || s->done || s->arrived < sends ||
        s->received < msg_expects(f, p, at.src))
        return SC_OK;
    s->done = true;
    f->left--;
    f->own -= at.sibling == 0;
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
    state(f, m->sibling, m->chunk, m->phase, m->src)->arrived++;
    state(f, m->sibling, m->chunk, m->phase, m->dst)->received++;
    SC_TRY(go_on(d, f, src, t, err));
    return go_on(d, f, dst, t, err);
}

static sc_status too_many(const msg_flight *f, uint64_t n, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                    sc_pos_file("--delay-model chunk"),
                    "use flow or analytic for groups as large",
                    "an operation of %u groups of %u ranks is %llu messages, "
                    "more than %llu",
                    f->group->siblings, f->group->n, (unsigned long long)n,
                    (unsigned long long)MOST);
}

sc_status msg_steps_post(emu_delay *d, msg_flight *f, sc_time t, sc_err *err)
{
    const msg_group *g = f->group;
    uint64_t states = (uint64_t)f->chunks * f->n_phases * g->n * g->siblings;
    uint64_t n = 0;
    for (uint32_t p = 0; p < f->n_phases; p++)
        n += (uint64_t)f->phase[p].steps * f->chunks * g->n * g->siblings;
    if (n > MOST) return too_many(f, n, err);
    if (states > f->room) {
        f->state = SC_NEW_N(d->a, msg_state, states);
        if (f->state == NULL) return sc_error_nomem(err);
        f->room = states;
    }
    memset(f->state, 0, states * sizeof *f->state);
    f->left = states;
    f->own = states / g->siblings;
    for (uint32_t s = 0; s < g->siblings; s++)
        for (uint32_t i = 0; i < g->n; i++) {
            msg at = {.flight = f, .sibling = s, .src = i};
            SC_TRY(start(d, f, at, t, err));
        }
    return SC_OK;
}
