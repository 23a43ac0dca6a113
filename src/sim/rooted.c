/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rooted.c - broadcast, reduce, gather, scatter and barrier as messages.
 *
 * Broadcast and reduce pass one dimension after the other; in each, a chunk
 * goes down a chain of its members in as many pieces as there are members,
 * each passed on (or added to) as it comes: about twice the chunk's time for
 * any number of members.  Members of lines that the root's data does not pass
 * are done at once.  Gather and scatter are messages to and from the root,
 * which sends no faster than its port.  A barrier lets each member hear of all
 * others in ceil(log2 n) rounds (Hensgen, Finkel and Manber, 1988).
 */
#include "sim/world.h"

static const sim_phase *phase_of(const sim_stream *s)
{
    return &s->coll->schedule->phase[s->phase];
}

/* The member's part of the phase.  A chain that runs backwards is the mirrored
 * schedule of its mirrored members. */
typedef struct part {
    const sc_coll_schedule *s;
    const sc_coll_phase *p;
    uint32_t member, sends, expects;
    bool back;
} part;

static uint32_t turned(const sc_coll_phase *p, uint32_t member, bool back)
{
    uint32_t place = sc_coll_place(p, member);
    if (!back) return member;
    return member - place * p->stride + (p->n - place) % p->n * p->stride;
}

static part part_of(const sim_stream *s)
{
    const sim_phase *q = phase_of(s);
    part x = {.back = q->kind == SC_COLL_CHAIN && s->reverse[s->phase]};
    x.s = &q->rooted[x.back];
    x.p = &x.s->phase[0];
    x.member = turned(x.p, s->member, x.back);
    x.sends = sc_coll_sends(x.s, x.p, x.member);
    x.expects = sc_coll_expects(x.s, x.p, x.member);
    return x;
}

static uint32_t place_of(const part *x, uint32_t member)
{
    return sc_coll_place(x->p, turned(x->p, member, x->back));
}

static void receive(sim_world *w, sim_stream *s, const part *x, uint32_t k)
{
    uint32_t from = sc_coll_from(x->s, x->p, x->member, k);
    sim_transfer_receive(w, s, place_of(x, from));
}

/* After what a port needs for the message that was just sent. */
static void go_on(sim_world *w, sim_stream *s, uint32_t to, uint64_t size)
{
    const sim_phase *p = phase_of(s);
    uint32_t member = s->member - s->place * p->stride + to * p->stride;
    sc_time t = sim_wire_serial(w, s->rank->id,
                                sim_comm_rank(w, s->coll->comm, member), size);
    sim_later(w, s->rank, t, SIM_CALL_BUNDLE, s, size, 0);
}

void sim_rooted_start(sim_world *w, sim_stream *s)
{
    part x = part_of(s);
    if (x.sends == 0 && x.expects == 0) {
        sim_later(w, s->rank, 0, SIM_CALL_BUNDLE, s, 0, 0);
    } else if (x.sends > 0 && sc_coll_needs(x.s, x.p, x.member, 0) == 0) {
        sim_bundle(w, s, true, false, false, phase_of(s)->message);
    } else {
        for (uint32_t k = 0; k < x.expects; k++) receive(w, s, &x, k);
    }
}

/* Sends the next message.  A source goes on when its port is free, others when
 * they have received the next. */
void sim_rooted_bundle(sim_world *w, sim_stream *s)
{
    uint64_t size = phase_of(s)->message;
    part x = part_of(s);
    if (x.sends == 0) {
        if (++s->left_bus >= x.expects) sim_stream_leave(w, s);
        return;
    }
    if (s->sent == x.sends) {
        sim_stream_leave(w, s);
        return;
    }
    uint32_t k = s->sent++;
    uint32_t to = place_of(&x, sc_coll_to(x.s, x.p, x.member, k));
    sim_transfer_send(w, s, to, size);
    if (x.p->pattern == SC_COLL_ROUNDS)
        receive(w, s, &x, k);
    else if (x.expects == 0 && x.p->coll != SC_GATHER)
        go_on(w, s, to, size);
    else if (s->sent == x.sends)
        sim_stream_leave(w, s);
}

void sim_rooted_receive(sim_world *w, sim_stream *s)
{
    part x = part_of(s);
    bool more = x.p->pattern == SC_COLL_CHAIN && x.sends > 0;
    sim_bundle(w, s, false, x.p->coll == SC_REDUCE, more, phase_of(s)->message);
}

/* ---- schedules --------------------------------------------------------- */

/* Adds the one phase of `one`, over lines of members `stride` apart. */
static sim_phase *add(sim_world *w, sim_schedule *schedule,
                      sc_coll_schedule *one, uint32_t stride)
{
    sim_phase *p = &schedule->phase[schedule->n_phases++];
    sc_coll_schedule *both = SC_NEW_N(w->a, sc_coll_schedule, 2);
    if (!both) {
        w->status = sc_error_nomem(w->err);
        return p;
    }
    one->phase[0].stride = stride;
    both[0] = both[1] = *one;
    both[1].root = turned(&one->phase[0], one->root, true);
    p->rooted = both;
    p->op = (uint8_t)one->phase[0].coll;
    p->kind = (uint8_t)one->phase[0].pattern;
    p->n = one->phase[0].n;
    p->stride = stride;
    p->size = schedule->chunk;
    p->message = schedule->chunk;
    return p;
}

static void chains(sim_world *w, const sim_comm *c, sim_schedule *schedule)
{
    sc_coll op = (sc_coll)schedule->coll;
    uint32_t stride[SC_HW_DIMS], at = 1;
    for (uint32_t i = 0; i < w->n_dims; i++) {
        stride[i] = at;
        at *= c->flat ? 1 : c->along[i];
    }
    uint32_t n_dims = c->flat ? 1 : w->n_dims;
    for (uint32_t k = 0; k < n_dims; k++) {
        uint32_t i = op == SC_REDUCE ? k : n_dims - 1 - k;
        uint32_t n = c->flat ? c->n : c->along[i];
        sc_coll_schedule one;
        if (n < 2) continue;
        sc_coll_schedule_ring(op, (sc_coll_group){n, 0, schedule->root}, n,
                              &one);
        sim_phase *p = add(w, schedule, &one, c->flat ? 1 : stride[i]);
        p->dim = (uint8_t)i;
        p->local = c->flat;
        p->message = (schedule->chunk + n - 1) / n;
    }
}

void sim_rooted_schedule(sim_world *w, const sim_comm *c,
                         sim_schedule *schedule)
{
    sc_coll op = (sc_coll)schedule->coll;
    sc_coll_group g = {c->n, 0, schedule->root};
    sc_coll_schedule one;
    if (c->n < 2) return;
    if (op == SC_BROADCAST || op == SC_REDUCE) {
        chains(w, c, schedule);
    } else if (op == SC_GATHER || op == SC_SCATTER) {
        sc_coll_schedule_direct(op, g, &one);
        sim_phase *p = add(w, schedule, &one, 1);
        if (op == SC_SCATTER) p->message = schedule->chunk / c->n;
        p->local = c->flat;
    } else {
        sc_coll_schedule_rounds(SC_BARRIER, g, &one);
        add(w, schedule, &one, 1)->message = one.bytes;
        schedule->n_streams = 1;
    }
}
