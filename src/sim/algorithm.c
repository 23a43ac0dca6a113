/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algorithm.c - which messages a member sends in one phase, and when.
 *
 * Ring, direct and halving-doubling are one mechanism: a packet enters the
 * memory bus when the phase starts and for every message received; when a
 * packet has left the bus (reduced, if the phase reduces), the next message is
 * sent.  The phase ends when everything is sent and all packets that may be
 * under way at once have left the bus.  The double binary tree (Sanders et al.,
 * 2009) passes whole chunks from the leaves to the root and back.
 */
#include "sim/world.h"

#include <math.h>

static const sim_phase *phase_of(const sim_stream *s)
{
    return &s->phases[s->phase];
}

static uint32_t around(const sim_phase *p, uint32_t place, uint64_t off,
                       bool back)
{
    uint32_t n = p->n, o = (uint32_t)(off % n);
    return back ? (place + n - o) % n : (place + o) % n;
}

uint64_t sim_phase_leaves(const sim_phase *p)
{
    if (p->kind == SC_COLL_TREE) return p->size;
    if (p->op == SC_ALL_GATHER) return p->size * p->n;
    return p->op == SC_REDUCE_SCATTER ? p->size / p->n : p->size;
}

/* ---- packets ----------------------------------------------------------- */

static uint32_t parallel(const sim_phase *p)
{
    return p->kind == SC_COLL_DIRECT ? p->window : 1;
}

static bool reduces(const sim_phase *p)
{
    return p->op == SC_REDUCE_SCATTER || p->op == SC_ALL_REDUCE;
}

static uint32_t messages(const sim_world *w, const sim_phase *p)
{
    uint32_t n = p->n;
    if (p->kind == SC_COLL_HALVING) return p->n_steps;
    if (p->op == SC_ALL_REDUCE) return 2 * (n - 1);
    if (p->op == SC_ALL_TO_ALL && p->kind == SC_COLL_RING &&
        w->rules->ring_all_to_all_single)
        return (uint32_t)((uint64_t)n * (n - 1) / 2);
    return n - 1;
}

/* Packet k of a phase; in the all-to-all of a ring, each step moves one part
 * less if a step moves all data that continues. */
static uint64_t packet_size(const sim_world *w, const sim_phase *p, uint32_t k)
{
    if (p->kind == SC_COLL_HALVING)
        return p->step_size[k < p->n_steps ? k : p->n_steps];
    if (p->op == SC_ALL_TO_ALL && p->kind == SC_COLL_RING &&
        !w->rules->ring_all_to_all_single)
        return p->message * (k < p->n - 1 ? p->n - 1 - k : 1);
    return p->message;
}

/* The number of packets after the first that may be reduced, before the two
 * kinds alternate. */
static uint32_t round_length(const sim_phase *p)
{
    if (p->kind == SC_COLL_HALVING) return (uint32_t)(log2(p->n) - 1);
    if (p->kind == SC_COLL_DIRECT && !p->local) return p->window;
    return (p->n - 1) * parallel(p);
}

/* Whether the message that packet k follows is reduced: every one that brings
 * a part of a sum. */
static bool brings_part(const sim_phase *p, uint32_t k)
{
    uint32_t parts =
        p->kind == SC_COLL_HALVING ? (uint32_t)log2(p->n) : p->n - 1;
    return reduces(p) && k >= parallel(p) && k < parallel(p) + parts;
}

static void insert(sim_world *w, sim_stream *s)
{
    const sim_phase *p = phase_of(s);
    if (s->fresh == 0 && s->rest == 0) {
        s->fresh = parallel(p);
        s->rest = round_length(p);
        s->toggle = !s->toggle;
    }
    uint32_t k = s->inserted++;
    uint64_t size = packet_size(w, p, k);
    bool out = s->fresh > 0, reduce = false, back = false;
    if (out) {
        s->fresh--;
    } else {
        reduce =
            p->op == SC_REDUCE_SCATTER || (p->op == SC_ALL_REDUCE && s->toggle);
        back = s->rest > parallel(p);
        s->rest--;
    }
    if (!w->rules->reduce_next_message) {
        reduce = brings_part(p, k);
        if (reduce) size = packet_size(w, p, k - parallel(p));
    }
    sim_bundle(w, s, out, reduce, back, size);
}

static void partners(const sim_stream *s, const sim_phase *p, uint32_t k,
                     uint32_t *to, uint32_t *from)
{
    bool back = s->reverse[s->phase];
    uint64_t off = 1;
    if (p->kind == SC_COLL_HALVING) {
        off = p->step_off[k];
        bool down = off != 0 && s->place / off % 2 == 1;
        *to = *from = around(p, s->place, off, down);
        return;
    }
    if (p->kind == SC_COLL_DIRECT) off = 1 + k % (p->n - 1);
    *to = around(p, s->place, off, back);
    *from = around(p, s->place, off, !back);
}

static void send_next(sim_world *w, sim_stream *s, const sim_phase *p)
{
    if (s->inserted == s->sent || s->to_send == 0 || s->idle == 0) return;
    uint32_t to, from, k = s->sent;
    partners(s, p, k, &to, &from);
    uint64_t size = packet_size(w, p, k);
    sim_transfer_send(w, s, to, size);
    sim_transfer_receive(w, s, from);
    s->to_send--;
    s->sent++;
    s->idle--;
}

/* The second exchange of a direct all-reduce needs the whole sum. */
static bool sum_incomplete(const sim_world *w, const sim_stream *s,
                           const sim_phase *p)
{
    uint32_t n = p->n - 1;
    if (w->rules->early_second_exchange) return s->received < n;
    return s->left_bus < parallel(p) + n;
}

static void packet_left(sim_world *w, sim_stream *s)
{
    const sim_phase *p = phase_of(s);
    uint32_t times = 1;
    s->idle++;
    s->left_bus++;
    if (p->kind == SC_COLL_DIRECT && p->op == SC_ALL_REDUCE &&
        s->to_send <= p->n - 1) {
        if (sum_incomplete(w, s, p)) return;
        times = parallel(p);
    }
    while (times-- > 0) send_next(w, s, p);
    if (s->to_send == 0 && s->idle == (int32_t)parallel(p))
        sim_stream_leave(w, s);
}

/* ---- double binary tree ------------------------------------------------ */

enum { AT_START, SEND_UP, WAIT_TWO, WAIT_ONE, WAIT_DOWN, SEND_DOWN, AT_END };

static void exchange_up(sim_world *w, sim_stream *s, const sc_tree_node *t)
{
    uint64_t size = phase_of(s)->message;
    s->state = WAIT_DOWN;
    sim_transfer_send(w, s, t->parent, size);
    sim_transfer_receive(w, s, t->parent);
}

static void leaf_run(sim_world *w, sim_stream *s, const sc_tree_node *t)
{
    uint64_t size = phase_of(s)->message;
    switch (s->state) {
    case AT_START:
        s->state = SEND_UP;
        sim_bundle(w, s, true, false, false, size);
        break;
    case SEND_UP: exchange_up(w, s, t); break;
    case WAIT_DOWN:
        s->state = AT_END;
        sim_bundle(w, s, false, false, false, size);
        break;
    default: sim_stream_leave(w, s); break;
    }
}

static void root_run(sim_world *w, sim_stream *s, const sc_tree_node *t)
{
    uint64_t size = phase_of(s)->message;
    uint32_t child = t->child[0];
    switch (s->state) {
    case AT_START:
        s->state = WAIT_ONE;
        sim_transfer_receive(w, s, child);
        break;
    case WAIT_ONE:
        s->state = SEND_DOWN;
        sim_bundle(w, s, false, true, true, size);
        break;
    default:
        sim_transfer_send(w, s, child, size);
        sim_stream_leave(w, s);
        break;
    }
}

static void inner_received(sim_world *w, sim_stream *s, uint64_t size)
{
    bool reduce = true;
    switch (s->state) {
    case WAIT_TWO: s->state = WAIT_ONE; break;
    case WAIT_ONE: s->state = SEND_UP; break;
    default: /* the result, which is only copied */
        s->state = SEND_DOWN;
        reduce = w->rules->reduce_next_message;
        break;
    }
    sim_bundle(w, s, false, reduce, true, size);
}

static void inner_run(sim_world *w, sim_stream *s, const sc_tree_node *t,
                      bool received)
{
    uint64_t size = phase_of(s)->message;
    if (s->state == AT_START) {
        s->state = WAIT_TWO;
        sim_transfer_receive(w, s, t->child[0]);
        sim_transfer_receive(w, s, t->child[1]);
    } else if (received) {
        inner_received(w, s, size);
    } else if (s->left_bus++ < 1) {
        return; /* one of two children is added */
    } else if (s->state == SEND_UP) {
        exchange_up(w, s, t);
    } else if (s->state == SEND_DOWN) {
        sim_transfer_send(w, s, t->child[0], size);
        sim_transfer_send(w, s, t->child[1], size);
        sim_stream_leave(w, s);
    }
}

static void tree_run(sim_world *w, sim_stream *s, bool received)
{
    const sim_phase *p = phase_of(s);
    sc_tree_node t =
        sc_coll_tree_at(p->n, s->place, s->reverse[s->phase] ? 2 : 1);
    if (t.parent == SC_COLL_NOBODY)
        root_run(w, s, &t);
    else if (t.child[0] == SC_COLL_NOBODY)
        leaf_run(w, s, &t);
    else
        inner_run(w, s, &t, received);
}

/* ---- entry points ------------------------------------------------------ */

/* Chains, stars and rounds. */
static bool is_rooted(const sim_phase *p)
{
    return p->kind >= SC_COLL_CHAIN;
}

void sim_alg_start(sim_world *w, sim_stream *s)
{
    const sim_phase *p = phase_of(s);
    s->sent = s->inserted = s->received = s->left_bus = 0;
    s->fresh = s->rest = 0;
    s->idle = 0;
    s->toggle = false;
    s->state = AT_START;
    if (p->kind == SC_COLL_MESSAGE) {
        sim_custom_start(w, s);
        return;
    }
    if (p->kind == SC_COLL_SWITCH) {
        sim_in_network_start(w, s);
        return;
    }
    s->place = sim_place(s, p);
    if (is_rooted(p)) {
        sim_rooted_start(w, s);
        return;
    }
    if (p->kind == SC_COLL_TREE) {
        tree_run(w, s, false);
        return;
    }
    s->to_send = messages(w, p);
    for (uint32_t i = 0; i < parallel(p); i++) insert(w, s);
}

static void sim_alg_bundle(sim_world *w, sim_stream *s)
{
    if (phase_of(s)->kind == SC_COLL_SWITCH)
        sim_in_network_bundle(w, s);
    else if (is_rooted(phase_of(s)))
        sim_rooted_bundle(w, s);
    else if (phase_of(s)->kind == SC_COLL_TREE)
        tree_run(w, s, false);
    else
        packet_left(w, s);
}

void sim_alg_receive(sim_world *w, sim_stream *s)
{
    s->received++;
    if (is_rooted(phase_of(s)))
        sim_rooted_receive(w, s);
    else if (phase_of(s)->kind == SC_COLL_TREE)
        tree_run(w, s, true);
    else
        insert(w, s);
}

/* ---- the memory bus without contention --------------------------------- */

void sim_bundle(sim_world *w, sim_stream *s, bool out, bool reduce, bool back,
                uint64_t size)
{
    const sim_phase *p = phase_of(s);
    bool fast =
        p->local && w->rules->subgroup_endpoint > 0 && p->kind != SC_COLL_TREE;
    if (w->sys->shared_bus && !fast) {
        sim_bus_request(w, s, out, reduce, back, size);
        return;
    }
    sc_time delay = fast ? w->rules->subgroup_endpoint : w->endpoint;
    sim_later(w, s->rank, delay, SIM_CALL_BUNDLE, s, size, reduce);
}

/* Two reads and a write for each byte that is added. */
void sim_bundle_call(sim_world *w, sim_rank *r, sim_call *c)
{
    if (!c->task || w->sys->local_mem_bw <= 0) {
        sim_alg_bundle(w, c->what);
        return;
    }
    double ns = (double)c->size / w->sys->local_mem_bw * 1e9;
    sim_later(w, r, 3 * sim_ns(w, ns), SIM_CALL_BUNDLE, c->what, c->size, 0);
}
