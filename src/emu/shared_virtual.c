/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_virtual.c - the order of events on the virtual clock.
 *
 * A running rank can ask for anything from its bound on, which is the time of
 * its last question. The next step is the earliest of: the world's next event,
 * the first question in a ring, the time at which an await gives up. It is
 * performed once no running rank has an earlier bound. A question also waits
 * while a bound is equal, because another question for the same time may come
 * first (by rank).
 */
#include "emu/shared_server.h"

/* A rank that was silent for this long is checked: it computes if it used this
 * much CPU time. */
#define SILENT_PS (SC_PS_PER_S / 2)
#define WORK_PS   (SC_PS_PER_S / 200)

static bool is_gone(const server_rank *r)
{
    return atomic_load(&r->port->gone) || atomic_load(&r->port->attached) == 2;
}

/* Whether it may still make an unknown request. */
static bool runs(const server_rank *r)
{
    return !r->blocked && !r->idle && !is_gone(r);
}

typedef struct horizon {
    sc_time bound;    /* the earliest bound of running ranks without a
                         request */
    sc_time question; /* the first one */
    uint32_t rank;    /* whose */
    sc_time give_up;  /* of the first await */
    sc_time event;    /* of the world */
} horizon;

static horizon look(sc_emu_shared *s)
{
    horizon h = {SC_TIME_MAX, SC_TIME_MAX, UINT32_MAX, SC_TIME_MAX,
                 sc_emu_next(s->emu)};
    for (uint32_t i = 0; i < s->n; i++) {
        const server_rank *r = &s->rank[i];
        const shared_cell *c = server_first(r);
        if (c && (h.rank == UINT32_MAX || c->t < h.question)) {
            h.question = c->t;
            h.rank = i;
        }
        if (!c && runs(r) && r->bound < h.bound) h.bound = r->bound;
        sc_time by = server_gives_up(r);
        if (by < h.give_up) h.give_up = by;
    }
    return h;
}

/* A rank that waits by other means may still come: while there is one, the time
 * limit of an await is one of real time. */
static bool may_give_up(const sc_emu_shared *s, sc_time by)
{
    bool silent = false, late = false;
    for (uint32_t i = 0; i < s->n; i++) {
        const server_rank *r = &s->rank[i];
        silent = silent || (r->idle && !is_gone(r));
        for (uint32_t k = 0; k < r->n_awaits; k++)
            if (r->port->cell[r->await[k]].end == by)
                late = late || shared_now() - r->since >= by - r->bound;
    }
    return !silent || late;
}

sc_status server_step(sc_emu_shared *s, bool *done, sc_err *err)
{
    horizon h = look(s);
    *done = true;
    if (h.event != SC_TIME_MAX && h.event <= h.question &&
        h.event <= h.give_up && h.event <= h.bound)
        return server_advance(s, h.event, err);
    if (h.rank != UINT32_MAX && h.question <= h.give_up &&
        (h.question < h.bound || h.bound == SC_TIME_MAX)) {
        server_serve(s, h.rank);
        return SC_OK;
    }
    if (h.give_up != SC_TIME_MAX && h.give_up <= h.bound &&
        h.give_up < h.question && h.give_up < h.event &&
        may_give_up(s, h.give_up)) {
        server_give_up(s, h.give_up);
        return SC_OK;
    }
    *done = false;
    return SC_OK;
}

/* CPU time of the rank's process; -1: unknown. */
static sc_time cpu_of(const server_rank *r)
{
    clockid_t clock;
    struct timespec t;
    pid_t pid = atomic_load(&r->port->pid);
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 ||
        clock_gettime(clock, &t) != 0)
        return -1;
    return (sc_time)t.tv_sec * SC_PS_PER_S + (sc_time)t.tv_nsec * 1000;
}

void server_look_after(sc_emu_shared *s)
{
    horizon h = look(s);
    sc_time now = shared_now();
    if (h.bound == SC_TIME_MAX) return;
    for (uint32_t i = 0; i < s->n; i++) {
        server_rank *r = &s->rank[i];
        if (!runs(r) || r->bound != h.bound || server_first(r)) continue;
        if (now - r->since < SILENT_PS) continue;
        sc_time cpu = cpu_of(r), used = cpu - r->cpu;
        bool known = cpu >= 0 && r->cpu >= 0;
        r->cpu = cpu;
        r->since = now;
        if (cpu < 0 || (known && used < WORK_PS))
            r->idle = true;
        else if (known)
            r->bound += (sc_time)((double)used * r->factor);
    }
}
