/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - threads that wait for an operation.
 *
 * Real clock: a thread sleeps until shortly before anything may end, and spins
 * for the rest; a post or a cancellation wakes it, because due times then move.
 * Virtual clock: the world advances until the operation has ended, and then the
 * clock does.
 */
#include "common/world.h"

#include <sys/prctl.h>
#include <time.h>

/* A sleep ends late in proportion to its length: about 5 us after 50 us, 50 us
 * after 5 ms on an idle core. A long one is split in two, and the last part is
 * spun. */
#define SPIN_PS 60000000LL
#define FAR_PS  400000000LL
#define NEAR_PS 250000000LL

bool live_slot_ended(const live_slot *s)
{
    return s->state == SLOT_ENDED || s->state == SLOT_POLLED;
}

/* The program has the result at `resumed`, unless it does not wait for any. */
void live_slot_done(live *l, live_slot *s, sc_time resumed)
{
    live_slot_log(l, s, live_slot_ended(s) ? s->end : SC_TIME_MAX,
                  s->dropped ? 0 : resumed);
    live_slot_free(l, s);
    if (!l->log) return;
    l->totals.now = resumed;
    l->totals.overhead =
        atomic_load_explicit(&l->overhead, memory_order_relaxed);
    sc_emu_log_totals(l->log, &l->totals);
}

/* Sleeps without the mutex until `t` of CLOCK_MONOTONIC or until woken, with a
 * timer slack of 0. */
static void sleep_until(live *l, sc_time t)
{
    struct timespec at = {.tv_sec = t / SC_PS_PER_S,
                          .tv_nsec = t % SC_PS_PER_S / 1000};
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1);
    l->n_waiting++;
    pthread_cond_timedwait(&l->moved, &l->mutex, &at);
    l->n_waiting--;
    if (slack > 1) prctl(PR_SET_TIMERSLACK, slack);
}

/* The same until due times may have moved. */
static void spin_until(live *l, sc_time t)
{
    uint32_t era = atomic_load(&l->era);
    pthread_mutex_unlock(&l->mutex);
    while (live_clock_mono() < t &&
           atomic_load_explicit(&l->era, memory_order_relaxed) == era) {
    }
    pthread_mutex_lock(&l->mutex);
}

/* Sleeps until about `t`; it is `now`. */
static void pause_until(live *l, sc_time now, sc_time t)
{
    if (t - now > FAR_PS)
        sleep_until(l, l->start + t - NEAR_PS);
    else if (t - now > SPIN_PS)
        sleep_until(l, l->start + t - SPIN_PS);
    else
        spin_until(l, l->start + t);
}

/* Traces of scouts are those of another run, in which ranks may have exchanged
 * other messages. */
static bool traces_differ(const live *l)
{
    for (uint32_t i = 0; i < l->config.n_whatif; i++)
        if (l->config.whatif[i].what == SC_EMU_FAIL) return false;
    return l->config.peer_tags && sc_emu_port_is_alone(l->w->port);
}

void live_report_stuck(live *l, const live_slot *s, bool still)
{
    static const char differ[] =
        "; the traces of scouts are of other messages than those of this run: "
        "make all ranks real (--ranks all)";
    bool dies = traces_differ(l);
    sc_text why;
    sc_text_init(&why);
    live_world_why(l, s, &why);
    if (why.len > 0 && still && dies)
        live_die(l, "%s waits for ever: %s%s", sc_coll_names[s->op.coll],
                 why.buf, differ);
    if (why.len > 0 && !still)
        live_warn(l, "%s waits: %s%s", sc_coll_names[s->op.coll], why.buf,
                  dies ? differ : "");
    sc_text_free(&why);
}

/* Returns the present time. */
static sc_time wait_real(live *l, live_ticket k, sc_time now, sc_time by)
{
    sc_time stuck = now + LIVE_STUCK_PS;
    bool still = false;
    for (;; now = live_now(l)) {
        live_slot *s = live_slot_find(l, k);
        live_world_look(l, now);
        if (!s || live_slot_ended(s) || now >= by) return now;
        sc_time next = l->next < by ? l->next : by;
        if (next == SC_TIME_MAX && now >= stuck) {
            live_report_stuck(l, s, still);
            stuck = still ? SC_TIME_MAX / 2 : now + LIVE_STILL_PS;
            still = true;
        }
        if (next > stuck) next = stuck;
        if (sc_emu_port_is_alone(l->w->port))
            pause_until(l, now, next);
        else
            live_world_sleep(l, k, by, stuck - now);
    }
}

static sc_time wait_virtual(live *l, live_ticket k, sc_time now, sc_time by)
{
    live_world_await(l, k, by);
    const live_slot *s = live_slot_find(l, k);
    if (s && live_slot_ended(s)) return now > s->end ? now : s->end;
    return s && by > now ? by : now;
}

/* The part of the operation's CPU time for which the processor was free, because
 * the program has waited for others since its post. Each wait is used once. */
static sc_time spent_in_waits(live *l, const live_slot *s, sc_time cpu)
{
    if (l->wait_used < s->waits_before) l->wait_used = s->waits_before;
    sc_time unused = l->waits - l->wait_used;
    if (cpu > unused) cpu = unused;
    if (cpu <= 0) return 0;
    l->wait_used += cpu;
    return cpu;
}

/* Spends at most so much of the operation's CPU time; returns what it spent. */
static sc_time burn(live *l, live_slot *s, sc_time most)
{
    if (s->burnt || s->op.silent) return 0;
    sc_time left = live_world_cpu(l, s) - s->spent;
    sc_time before = spent_in_waits(l, s, left);
    s->spent += before;
    left -= before;
    sc_time part = left < most ? left : most;
    s->burnt = part == left;
    if (part <= 0) return 0;
    s->spent += part;
    if (l->virt) {
        live_clock_forward(live_clock_virtual() + part);
        return part;
    }
    pthread_mutex_unlock(&l->mutex);
    live_clock_burn(part);
    pthread_mutex_lock(&l->mutex);
    return part;
}

/* Accounts for the wait for `s` from `from` to `now`, which has ended or was
 * given up. */
static void account(live *l, live_slot *s, sc_time from, sc_time now,
                    bool program)
{
    if (program && now > from) {
        live_world_waited(l, from, now);
        s->waited += now - from;
    }
    if (!program && l->idle >= 0) {
        sc_time since = l->idle_reported > s->post ? l->idle_reported : s->post;
        if (now > since) s->waited += now - since;
        l->idle_reported = now;
    }
    if (l->virt)
        live_clock_forward(l->start + now);
    else
        live_clock_waited(now - from); /* late releases are recorded */
    if (!live_slot_ended(s)) return;
    if (s->end >= from && !s->op.silent) {
        l->totals.late += now > s->end ? now - s->end : 0;
        l->totals.n_late++;
    }
    live_slot_done(l, s, now);
}

/* `program`: the program itself waits, not a thread on its behalf. */
static bool wait_for(live *l, live_ticket k, sc_time by, bool program)
{
    live_begin(l);
    bool done = true;
    live_slot *s = live_slot_find(l, k);
    if (s) {
        sc_time from = live_now(l), now = from;
        live_world_release(l, from);
        if (burn(l, s, SC_TIME_MAX) > 0) now = live_now(l);
        const sc_time idle = now;
        now = l->virt ? wait_virtual(l, k, now, by) : wait_real(l, k, now, by);
        if (program && now > idle) l->waits += now - idle;
        s = live_slot_find(l, k);
        if (s) {
            done = live_slot_ended(s);
            account(l, s, from, now, program);
        }
    }
    live_end(l);
    return done;
}

void live_wait(live *l, live_ticket k)
{
    wait_for(l, k, SC_TIME_MAX, true);
}

bool live_wait_by(live *l, live_ticket k, sc_time by)
{
    return wait_for(l, k, by, true);
}

void live_serve(live *l, live_ticket k)
{
    if (l->virt)
        live_burn(l, k, SC_TIME_MAX);
    else
        wait_for(l, k, SC_TIME_MAX, false);
}

sc_time live_burn(live *l, live_ticket k, sc_time most)
{
    live_begin(l);
    live_slot *s = live_slot_find(l, k);
    sc_time part = s ? burn(l, s, most) : 0;
    live_end(l);
    return part;
}

void live_waited(live *l, sc_time from, sc_time to)
{
    pthread_mutex_lock(&l->mutex);
    live_world_waited(l, from, to);
    pthread_mutex_unlock(&l->mutex);
}

void live_idle(live *l, bool waits)
{
    pthread_mutex_lock(&l->mutex);
    sc_time now = live_now(l);
    if (!waits && l->idle >= 0) live_world_waited(l, l->idle, now);
    l->idle = waits ? now : -1;
    l->idle_reported = now;
    pthread_mutex_unlock(&l->mutex);
}
