/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - posts, waits, tests. */
#include "common/inside.h"

/* Weak progress: a message up to this size starts at once. */
#define EAGER_BYTES 4096
/* Virtual clock: the least and the most that an unsuccessful test advances the
 * clock. */
#define POLL_PS     250000LL
#define POLL_MAX_PS 1000000000LL

void live_enter(live *l)
{
    live_clock_enter(l->virt);
}

void live_leave(live *l)
{
    sc_time own = live_clock_leave(l->virt);
    if (own > 0)
        atomic_fetch_add_explicit(&l->overhead, own, memory_order_relaxed);
}

sc_time live_now(live *l)
{
    return (l->virt ? live_clock_virtual() : live_clock_mono()) - l->start;
}

void live_set_progress(live *l, bool weak)
{
    pthread_mutex_lock(&l->mutex);
    if (l->config.progress == SC_EMU_PROGRESS_AUTO) l->weak = weak;
    pthread_mutex_unlock(&l->mutex);
}

static bool is_held(const live *l, const live_op *op)
{
    if (!l->weak || !op->async || op->device) return false;
    bool message = op->coll == SC_SEND || op->coll == SC_RECV;
    /* Operations do not overtake each other. */
    return !message || op->bytes > EAGER_BYTES || l->held.first != LIVE_NONE;
}

/* Probes, and messages of a rank to itself, take nothing of a network. */
static bool is_logged(const live *l, const live_op *op)
{
    bool message = sc_coll_is_message(op->coll);
    bool probes = op->take == SC_EMU_PROBE || op->take == SC_EMU_CLAIM;
    return l->log && !op->silent &&
           !(message && (probes || op->peer == l->rank));
}

static void post(live *l, live_slot *s, sc_time t)
{
    s->held = is_held(l, &s->op);
    if (is_logged(l, &s->op)) {
        sc_emu_record r = {0};
        s->log = sc_emu_log_add(l->log, &r);
        live_slot_log(l, s, SC_TIME_MAX, SC_TIME_MAX);
    }
    if (s->held) {
        live_world_note(l, s);
        live_slot_move(l, s, SLOT_HELD);
        return;
    }
    live_world_release(l, t);
    live_world_post(l, s, t);
    if (l->n_waiting > 0) pthread_cond_broadcast(&l->moved);
}

live_ticket live_post(live *l, const live_op *op, sc_time t)
{
    live_ticket k;
    live_begin(l);
    live_slot *s = live_slot_new(l, &k);
    s->op = *op;
    s->post = s->begin = s->end = t;
    s->waits_before = l->waits;
    s->log = UINT64_MAX;
    post(l, s, t);
    live_end(l);
    return k;
}

/* A program that polls must still make progress: each failed test advances the
 * virtual clock by a doubling step, never beyond the next end. */
static void poll_costs(live *l, sc_time now)
{
    bool idle = now - l->polled_at < POLL_PS;
    sc_time step = idle ? 2 * l->poll_step : 0;
    if (step < POLL_PS) step = POLL_PS;
    if (step > POLL_MAX_PS) step = POLL_MAX_PS;
    l->poll_step = step;
    if (l->next > now && step > l->next - now) step = l->next - now;
    live_clock_forward(l->start + now + step);
    l->polled_at = now + step;
}

bool live_test(live *l, live_ticket k)
{
    live_begin(l);
    live_slot *s = live_slot_find(l, k);
    bool done = true;
    if (s) {
        sc_time now = live_now(l);
        live_world_release(l, now);
        live_world_look(l, now);
        done = live_slot_ended(s);
        if (done)
            live_slot_done(l, s, now);
        else if (l->virt)
            poll_costs(l, now);
    }
    live_end(l);
    return done;
}

bool live_test_now(live *l, live_ticket k)
{
    live_begin(l);
    live_world_release(l, live_now(l));
    live_world_settle(l);
    bool done = live_test(l, k);
    live_end(l);
    return done;
}

bool live_has_ended(live *l, live_ticket k, sc_time *next)
{
    live_begin(l);
    const live_slot *s = live_slot_find(l, k);
    sc_time now = live_now(l);
    live_world_release(l, now);
    live_world_look(l, now);
    bool ended = !s || live_slot_ended(s);
    *next = l->next;
    live_end(l);
    return ended;
}

void live_spent(live *l, live_ticket k, sc_time ps)
{
    pthread_mutex_lock(&l->mutex);
    live_slot *s = live_slot_find(l, k);
    if (s) s->spent += ps;
    pthread_mutex_unlock(&l->mutex);
}

void live_forget(live *l, live_ticket k)
{
    live_begin(l);
    live_slot *s = live_slot_find(l, k);
    if (s) {
        sc_time now = live_now(l);
        live_world_release(l, now);
        live_world_look(l, now);
        s->dropped = true;
        if (live_slot_ended(s)) live_slot_done(l, s, s->end);
    }
    live_end(l);
}

bool live_cancel(live *l, live_ticket k)
{
    bool canceled = false;
    live_begin(l);
    live_slot *s = live_slot_find(l, k);
    if (s && s->state == SLOT_FLYING) live_world_look(l, live_now(l));
    if (s && !live_slot_ended(s)) {
        /* What ended meanwhile took a message, say, which would be lost. */
        canceled = s->state != SLOT_FLYING || live_world_cancel(l, s);
        if (canceled) {
            s->canceled = true;
            live_slot_done(l, s, live_now(l));
        }
        if (l->n_waiting > 0) pthread_cond_broadcast(&l->moved);
    }
    live_end(l);
    return canceled;
}

bool live_ends_now(live *l, live_ticket k)
{
    return live_test_now(l, k) || (!live_cancel(l, k) && live_test(l, k));
}

/* ---- device streams --------------------------------------------------------------- */

uint32_t live_poll(live *l, sc_time now, live_ended *out, uint32_t cap,
                   sc_time *next)
{
    uint32_t n = 0;
    live_begin(l);
    while (l->polled.first != LIVE_NONE) {
        live_slot *s = live_slot_at(l, l->polled.first);
        live_slot_done(l, s, s->end);
    }
    live_world_release(l, now);
    live_world_look(l, now);
    uint32_t i = l->ended.first;
    while (i != LIVE_NONE && n < cap) {
        live_slot *s = live_slot_at(l, i);
        i = s->next;
        if (!s->op.async || s->end > now) continue;
        out[n++] = (live_ended){live_slot_ticket(s), s->begin, s->end};
        live_slot_move(l, s, SLOT_POLLED);
    }
    *next = n == cap ? now : l->next;
    live_end(l);
    return n;
}

void live_resumed(live *l, live_ticket k, sc_time waited, sc_time at)
{
    live_begin(l);
    live_slot *s = live_slot_find(l, k);
    if (s && live_slot_ended(s)) {
        s->waited += waited;
        if (s->op.device) {
            l->totals.late += at > s->end ? at - s->end : 0;
            l->totals.n_late++;
        }
        live_slot_done(l, s, at);
    }
    live_end(l);
}
