/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - operations from their post to their end. */
#include "torch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS ((sc_time)1000000000) /* ps */
#define US ((sc_time)1000000)

/* How often the completer looks: for operations that end at a known time and
 * for those of several real ranks; on the virtual clock, whether the program
 * waits. */
#define LOOK_PS   (1 * MS)
#define SHARED_PS (100 * US)
#define SLEEP_PS  (40 * US)
/* A program that sleeps for this long in another call than for a lock only
 * waits. */
#define LONG_PS (20 * MS)

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t posted;
    torch_op *first, *last; /* without an owner */
    bool sleeps;            /* the completer, in `posted` */
    bool stopped;
    _Atomic bool used;
} the = {.mutex = PTHREAD_MUTEX_INITIALIZER,
         .posted = PTHREAD_COND_INITIALIZER};

static bool is_virtual(const live *l)
{
    return live_config(l)->clock == SC_EMU_VIRTUAL;
}

/* ---- the list ------------------------------------------------------------- */

/* Under the mutex, as own(). */
static void link_op(torch_op *o)
{
    o->before = the.last;
    *(the.last ? &the.last->next : &the.first) = o;
    the.last = o;
    if (the.sleeps) pthread_cond_signal(&the.posted);
}

static void own(torch_op *o)
{
    *(o->before ? &o->before->next : &the.first) = o->next;
    *(o->next ? &o->next->before : &the.last) = o->before;
    o->next = o->before = NULL;
    o->owned = true;
}

/* ---- one operation -------------------------------------------------------- */

static torch_op *new_op(live *l, const live_members *m, const torch_call *c)
{
    uint32_t n = c->n_in + c->n_out;
    torch_op *o = live_alloc(l, 1, sizeof *o + n * sizeof *o->block);
    if (c->n_in) memcpy(o->block, c->in, c->n_in * sizeof *c->in);
    if (c->n_out) memcpy(o->block + c->n_in, c->out, c->n_out * sizeof *c->out);
    o->data = (live_host){.in = {.list = o->block, .n = c->n_in},
                          .out = {.list = o->block + c->n_in, .n = c->n_out},
                          .type = (sc_emu_type)c->type,
                          .reduce = (sc_emu_reduce)c->reduce};
    o->x = (live_moves){.l = l,
                        .m = m,
                        .coll = (sc_coll)c->coll,
                        .root = torch_partner(l, m, c),
                        .bytes = c->bytes,
                        .by = &live_in_host,
                        .arg = &o->data};
    return o;
}

torch_op *stepcast_torch_post(const live_members *m, const torch_call *c)
{
    live *l = live_get();
    live_enter(l);
    if (!atomic_exchange(&the.used, true)) live_uses(l, SC_EMU_API_GLOO);
    torch_op *o = new_op(l, m, c);
    live_op op = {.coll = o->x.coll,
                  .group = m->group,
                  .peer =
                      o->x.root == TORCH_ANY ? SC_EMU_ANY : m->rank[o->x.root],
                  .bytes = c->bytes,
                  .tag = c->tag,
                  .cuts = true,
                  .stream = c->stream,
                  .async = true};
    /* Another real rank must not wait for the data while the completer waits
     * for that rank to come to this time. */
    pthread_mutex_lock(&the.mutex);
    sc_time now = live_now(l);
    o->by = now + c->timeout * MS;
    o->ticket = live_post(l, &op, now);
    if (o->x.coll == SC_SEND)
        torch_send(o);
    else if (o->x.coll != SC_RECV)
        live_moves_push(&o->x, o->ticket);
    link_op(o);
    pthread_mutex_unlock(&the.mutex);
    live_leave(l);
    return o;
}

static void fill(torch_op *o)
{
    if (o->filled) return;
    o->filled = true;
    if (o->x.coll == SC_RECV)
        o->status = torch_receive(o);
    else if (o->x.coll != SC_SEND && !live_moves_fill(&o->x, o->ticket))
        o->status = TORCH_NO_REDUCTION;
}

/* With one real rank, data move while the operation takes its time. */
static void fill_ahead(torch_op *o)
{
    live *l = o->x.l;
    if (is_virtual(l) || o->filled || sc_coll_is_message(o->x.coll) ||
        !live_moves_alone(&o->x))
        return;
    sc_time from = live_now(l);
    fill(o);
    live_spent(l, o->ticket, live_now(l) - from);
}

/* Real clock: the completer spends the CPU time of operations in flight, whether
 * the program waits or computes, a little at a time; false: there is nothing to
 * do. */
static bool spend(live *l, sc_time most)
{
    for (torch_op *o = the.first; o; o = o->next) {
        if (o->spent) continue;
        live_ticket k = o->ticket;
        o->spent = true; /* unless there is more */
        pthread_mutex_unlock(&the.mutex);
        bool some = live_burn(l, k, most) > 0;
        pthread_mutex_lock(&the.mutex);
        for (o = the.first; some && o; o = o->next)
            if (o->ticket == k) o->spent = false;
        return true;
    }
    return false;
}

static void finish(torch_op *o, bool ended)
{
    if (ended || !live_cancel(o->x.l, o->ticket)) {
        if (!ended) live_forget(o->x.l, o->ticket);
        fill(o);
        return;
    }
    o->status = TORCH_TIMED_OUT;
    live_drop(o->x.l, o->ticket);
}

int stepcast_torch_wait(torch_op *o, int64_t timeout)
{
    live *l = o->x.l;
    live_enter(l);
    pthread_mutex_lock(&the.mutex);
    bool mine = !o->owned;
    if (mine) own(o);
    pthread_mutex_unlock(&the.mutex);
    if (mine) {
        fill_ahead(o);
        sc_time by = timeout < 0 ? o->by : live_now(l) + timeout * MS;
        finish(o, live_wait_by(l, o->ticket, by));
    }
    live_leave(l);
    return mine ? (int)o->status : TORCH_OWNED;
}

/* ---- the thread that completes futures ------------------------------------ */

/* Until something is posted. On the real clock this is not the library's time;
 * on the virtual one the wait would then be the program's. */
static void sleep_until(live *l, const struct timespec *t)
{
    if (!is_virtual(l)) live_leave(l);
    the.sleeps = true;
    if (t)
        pthread_cond_timedwait(&the.posted, &the.mutex, t);
    else
        pthread_cond_wait(&the.posted, &the.mutex);
    the.sleeps = false;
    if (!is_virtual(l)) live_enter(l);
}

static void pause_for(live *l, sc_time ps)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ns = t.tv_nsec + ps / 1000;
    t.tv_sec += ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    sleep_until(l, &t);
}

/* The first operation that has ended or timed out, with its new owner. `next`:
 * nothing happens to the others before. */
static torch_op *take(live *l, sc_time *next)
{
    const sc_time now = live_now(l);
    *next = SC_TIME_MAX;
    for (torch_op *o = the.first; o; o = o->next) {
        sc_time end;
        bool ended = live_has_ended(l, o->ticket, &end);
        if (ended || o->by <= now) {
            own(o);
            if (ended) live_serve(l, o->ticket);
            if (ended && is_virtual(l)) live_wait(l, o->ticket);
            finish(o, ended);
            return o;
        }
        if (end < *next) *next = end;
        if (o->by < *next) *next = o->by;
    }
    return NULL;
}

/* Waits as the program would for the first operation, at most until any ends
 * at `next`, which passes at once; with several real ranks only the launcher
 * knows when that is. Returns the operation if it has ended or timed out. */
static torch_op *wait_for_first(live *l, sc_time next)
{
    torch_op *o = the.first;
    if (live_config(l)->n_real == 1 && next < o->by) {
        if (!live_wait_by(l, o->ticket, next)) return NULL;
        own(o);
        finish(o, true);
        return o;
    }
    own(o);
    pthread_mutex_unlock(&the.mutex);
    finish(o, live_wait_by(l, o->ticket, o->by));
    pthread_mutex_lock(&the.mutex);
    return o;
}

/* Without the mutex, for which a thread may sleep. */
static bool program_sleeps(bool *lock)
{
    pthread_mutex_unlock(&the.mutex);
    bool all = torch_all_sleep(lock);
    pthread_mutex_lock(&the.mutex);
    return all && the.first;
}

/* Virtual clock, which stands still while the program waits: it advances to the
 * next end. */
static torch_op *look_virtual(live *l, sc_time next)
{
    static sc_time asleep; /* for so long */
    bool lock;
    pause_for(l, SLEEP_PS);
    if (!program_sleeps(&lock)) {
        asleep = 0;
        return NULL;
    }
    asleep += SLEEP_PS;
    if (asleep < (lock ? 2 * SLEEP_PS : LONG_PS)) return NULL;
    asleep = 0;
    return wait_for_first(l, next);
}

/* Real clock: sleeps until something may end, and notes whether the program
 * waits meanwhile. */
static void look_real(live *l, sc_time next, bool *idle)
{
    bool lock, was = *idle;
    for (torch_op *o = the.first; o; o = o->next) fill_ahead(o);
    *idle = program_sleeps(&lock);
    if (*idle != was) live_idle(l, *idle);
    sc_time now = live_now(l),
            most = live_config(l)->n_real > 1 ? SHARED_PS : LOOK_PS;
    if (next > now && next - now < most) most = next - now;
    if (next > now && !spend(l, most)) pause_for(l, most);
}

torch_op *stepcast_torch_next(void)
{
    live *l = live_get();
    bool idle = false;
    torch_op *o = NULL;
    live_enter(l);
    pthread_mutex_lock(&the.mutex);
    for (sc_time next; the.stopped || !(o = take(l, &next));) {
        if (the.stopped || !the.first) {
            if (idle) live_idle(l, idle = false);
            sleep_until(l, NULL);
        } else if (!is_virtual(l)) {
            look_real(l, next, &idle);
        } else if ((o = look_virtual(l, next))) {
            break;
        }
    }
    if (idle) live_idle(l, false);
    pthread_mutex_unlock(&the.mutex);
    return o;
}

void stepcast_torch_stop(void)
{
    pthread_mutex_lock(&the.mutex);
    the.stopped = true;
    pthread_mutex_unlock(&the.mutex);
}
