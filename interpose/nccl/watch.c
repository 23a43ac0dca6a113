/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/watch.h"

#include "nccl/comm.h"
#include "nccl/slot.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS ((sc_time)1000)
#define US (1000 * NS)

/* Eager units of one stream: it comes to them in this order. */
typedef struct queue {
    struct queue *next;
    gpu *g;
    cudaStream_t stream;
    uint32_t number;
    unit *first, *last;
    unit *active; /* started, not released */
} queue;

static struct {
    pthread_mutex_t lock;
    sem_t wake, up; /* something to do; the thread runs */
    bool sleeping;  /* waits for `wake` */
    bool running;
    atomic_bool over, ended; /* the process ends; the thread has ended */
    pid_t owner;
    pthread_t thread;
    live *l;
    queue *queues;
    unit *captured;
    uint32_t n_queued; /* eager units that are not released */
    uint32_t n_queues;
    sc_time poll, spin; /* between two looks; before a release */
    sc_time last;       /* what live_poll() was last told */
    unit **started;     /* of this look */
    sc_time *when;
    uint32_t room;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the device's clock ---------------------------------------------------------- */

static sc_time moment_of(unit *u, sc_time now)
{
    gpu *g = u->g;
    if (g->values) return now;
    sc_time t =
        (sc_time)atomic_load_explicit(&u->slot->time, memory_order_relaxed) *
            NS +
        g->ahead;
    /* It was not there at the last look and is at this one: what contradicts
     * that is the clocks' drift. */
    sc_time moved = t > now ? now - t : t < w.last ? w.last - t : 0;
    g->ahead += moved;
    return t + moved;
}

static bool mark_and_wait(gpu *g, cudaStream_t s, CUdeviceptr at)
{
    uint32_t gen = 0;
    void *args[] = {&at, &gen};
    return gpu_launch(g, g->fixed[KERNEL_MARK], 1, 1, s, args) == 0 &&
           g->d->stream_sync(s) == 0;
}

bool watch_calibrate(live *l, gpu *g)
{
    CUdeviceptr at = 0;
    cudaStream_t s = NULL;
    int mode = CU_CAPTURE_RELAXED;
    if (g->values || g->calibrated) return true;
    nccl_slot *slot = slot_take(g, &at);
    if (!slot) return false;
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    bool ok = g->d->stream_new(&s, 1) == 0;
    sc_time least = SC_TIME_MAX;
    for (int i = 0; ok && i < 8; i++) {
        sc_time t0 = live_now(l);
        ok = mark_and_wait(g, s, at);
        sc_time t1 = live_now(l);
        if (!ok || t1 - t0 >= least) continue;
        least = t1 - t0;
        g->ahead = t0 + least / 2 - (sc_time)slot->time * NS;
    }
    if (s) g->d->stream_free(s);
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    slot_give(slot);
    g->calibrated = ok;
    return ok;
}

/* ---- what the streams have come to ------------------------------------------------ */

/* A unit that its stream has come to since the last look. */
static bool has_started(unit *u)
{
    uint32_t s = atomic_load_explicit(&u->slot->started, memory_order_acquire);
    if (u->g->values) {
        if (s != 1) return false;
        atomic_store(&u->slot->started, 0);
        return true;
    }
    if (!u->captured) return s == u->gen;
    if (s == u->gen) return false;
    u->gen = s;
    return true;
}

static bool push_started(unit *u, sc_time t, uint32_t *n)
{
    if (*n == w.room) {
        uint32_t room = w.room ? 2 * w.room : 64;
        unit **s = realloc(w.started, room * sizeof *s);
        if (s) w.started = s;
        sc_time *t2 = realloc(w.when, room * sizeof *t2);
        if (t2) w.when = t2;
        if (!s || !t2) live_die(w.l, "out of memory");
        w.room = room;
    }
    uint32_t i = (*n)++;
    for (; i > 0 && w.when[i - 1] > t; i--) { /* few: by insertion */
        w.started[i] = w.started[i - 1];
        w.when[i] = w.when[i - 1];
    }
    w.started[i] = u;
    w.when[i] = t;
    return true;
}

static uint32_t look(sc_time now)
{
    uint32_t n = 0;
    for (queue *q = w.queues; q; q = q->next) {
        unit *u = q->first;
        if (!u || q->active == u || !has_started(u)) continue;
        q->active = u;
        push_started(u, moment_of(u, now), &n);
    }
    for (unit *u = w.captured; u; u = u->next)
        if (has_started(u)) push_started(u, moment_of(u, now), &n);
    return n;
}

/* ---- ends -------------------------------------------------------------------------- */

static void free_unit(unit *u)
{
    for (uint32_t i = 0; i < u->n; i++)
        if (u->op[i].comm) comm_release(u->op[i].comm);
    free(u);
}

static void take_out(unit *u)
{
    queue *q = w.queues;
    while (q && (q->g != u->g || q->stream != u->stream)) q = q->next;
    if (!q) return;
    for (unit **p = &q->first, *before = NULL; *p; p = &(*p)->next) {
        if (*p == u) {
            *p = u->next;
            if (q->last == u) q->last = before;
            w.n_queued--;
            break;
        }
        before = *p;
    }
    if (q->active == u) q->active = NULL;
}

/* The stream goes on. */
static void release(unit *u)
{
    uint32_t to = u->g->values ? 1 : u->gen;
    atomic_store_explicit(&u->slot->released, to, memory_order_release);
    if (u->captured) return;
    take_out(u);
    slot_give(u->slot);
    free_unit(u);
}

static unit *flying(live_ticket k, uint32_t *at)
{
    unit *lists[2] = {NULL, w.captured};
    for (queue *q = w.queues; q; q = q->next) {
        lists[0] = q->active;
        if (!q->active) continue;
        for (*at = 0; *at < q->active->n; ++*at)
            if (q->active->op[*at].flying && q->active->op[*at].ticket == k)
                return q->active;
    }
    for (unit *u = lists[1]; u; u = u->next)
        for (*at = 0; u->left && *at < u->n; ++*at)
            if (u->op[*at].flying && u->op[*at].ticket == k) return u;
    return NULL;
}

static void land(unit *u, uint32_t i)
{
    u->op[i].flying = false;
    if (--u->left == 0) release(u);
}

static void post(unit *u, sc_time t)
{
    u->left = 0;
    for (uint32_t i = 0; i < u->n; i++) {
        unit_op *o = &u->op[i];
        o->flying = !u->canceled && !atomic_load(&o->comm->aborted);
        if (!o->flying) continue;
        o->ticket = live_post(w.l, &o->op, t);
        u->left++;
    }
    if (!u->left) release(u);
}

/* All that has ended by now; returns when to look again at the latest. */
static sc_time settle(sc_time now)
{
    live_ended ended[32];
    sc_time next = SC_TIME_MAX;
    uint32_t n;
    do {
        n = live_poll(w.l, now, ended, 32, &next);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at = 0;
            unit *u = flying(ended[i].ticket, &at);
            if (u) land(u, at);
            live_resumed(w.l, ended[i].ticket, 0, live_now(w.l));
        }
    } while (n == 32);
    w.last = now;
    return next;
}

/* ---- the thread -------------------------------------------------------------------- */

static void rest(sc_time next)
{
    sc_time now = live_now(w.l), until = now + w.poll;
    if (next != SC_TIME_MAX && next - w.spin < until) until = next - w.spin;
    if (until <= now) return;
    sc_time ns = (until - now + NS - 1) / NS;
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static void *watch(void *unused)
{
    (void)unused;
    /* The kernel may wake it this late, in ns; usual are 50 us. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    prctl(PR_SET_NAME, "stepcast-nccl");
    sem_post(&w.up);
    pthread_mutex_lock(&w.lock);
    while (!atomic_load(&w.over)) {
        if (!w.n_queued && !w.captured) {
            w.sleeping = true;
            pthread_mutex_unlock(&w.lock);
            sem_wait(&w.wake);
            pthread_mutex_lock(&w.lock);
            continue;
        }
        sc_time now = live_now(w.l);
        uint32_t n = look(now);
        for (uint32_t i = 0; i < n; i++) post(w.started[i], w.when[i]);
        sc_time next = settle(now);
        pthread_mutex_unlock(&w.lock);
        rest(next);
        pthread_mutex_lock(&w.lock);
    }
    pthread_mutex_unlock(&w.lock);
    atomic_store(&w.ended, true);
    return NULL;
}

static void nap(void)
{
    const struct timespec t = {0, 100000};
    nanosleep(&t, NULL);
}

/* Nothing on the device waits any longer.  Whoever ends the process may hold
 * the lock, or be the thread itself: it is not waited for then. */
static void at_exit(void)
{
    if (getpid() != w.owner) return;
    atomic_store(&w.over, true);
    slot_release_all();
    if (pthread_equal(pthread_self(), w.thread)) return;
    sem_post(&w.wake);
    for (int i = 0; i < 1000 && !atomic_load(&w.ended); i++) nap();
    slot_release_all();
}

static sc_time setting(const char *name, sc_time usual)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (!text || !*text) return usual;
    double us = strtod(text, &end);
    if (*end || !(us >= 0) || us > 1e6) {
        live_warn(w.l, "%s=%s: microseconds are expected", name, text);
        return usual;
    }
    return (sc_time)(us * (double)US);
}

bool watch_start(live *l, const char **why)
{
    pthread_mutex_lock(&w.lock);
    bool ok = w.running, started = false;
    if (!ok) {
        w.l = l;
        w.owner = getpid();
        w.poll = setting("STEPCAST_NCCL_POLL_US", 5 * US);
        w.spin = setting("STEPCAST_NCCL_SPIN_US", 60 * US);
        ok = sem_init(&w.wake, 0, 0) == 0 && sem_init(&w.up, 0, 0) == 0 &&
             pthread_create(&w.thread, NULL, watch, NULL) == 0;
        w.running = started = ok;
        if (ok)
            atexit(at_exit);
        else
            *why = "no thread can be started";
    }
    pthread_mutex_unlock(&w.lock);
    if (started) sem_wait(&w.up);
    return ok;
}

/* ---- what callers do ---------------------------------------------------------------- */

static queue *queue_of(gpu *g, cudaStream_t s)
{
    for (queue *q = w.queues; q; q = q->next)
        if (q->g == g && q->stream == s) return q;
    queue *q = calloc(1, sizeof *q);
    if (!q) live_die(w.l, "out of memory");
    q->g = g;
    q->stream = s;
    q->number = w.n_queues++;
    q->next = w.queues;
    w.queues = q;
    return q;
}

uint32_t watch_stream(gpu *g, cudaStream_t s)
{
    pthread_mutex_lock(&w.lock);
    uint32_t number = queue_of(g, s)->number;
    pthread_mutex_unlock(&w.lock);
    return number;
}

unit *watch_take(gpu *g, cudaStream_t s, uint32_t n, bool captured)
{
    unit *u = calloc(1, sizeof *u + n * sizeof u->op[0]);
    if (!u) return NULL;
    u->g = g;
    u->stream = s;
    u->n = n;
    u->captured = captured;
    u->slot = slot_take(g, &u->at);
    if (!u->slot) {
        free(u);
        return NULL;
    }
    u->gen = atomic_load(&u->slot->started);
    if (!g->values && !captured) u->gen++;
    return u;
}

void watch_queue(unit *u)
{
    pthread_mutex_lock(&w.lock);
    if (u->captured) {
        u->next = w.captured;
        w.captured = u;
    } else {
        queue *q = queue_of(u->g, u->stream);
        if (q->last)
            q->last->next = u;
        else
            q->first = u;
        q->last = u;
        w.n_queued++;
    }
    bool wake = w.sleeping;
    w.sleeping = false;
    pthread_mutex_unlock(&w.lock);
    if (wake) sem_post(&w.wake);
}

void watch_drop(unit *u)
{
    pthread_mutex_lock(&w.lock);
    if (u->captured) {
        unit **p = &w.captured;
        while (*p && *p != u) p = &(*p)->next;
        if (*p) *p = u->next;
    } else {
        take_out(u);
    }
    slot_give(u->slot);
    free_unit(u);
    pthread_mutex_unlock(&w.lock);
}

static void abort_unit(unit *u, const struct ncclComm *c)
{
    bool hit = false;
    for (uint32_t i = 0; i < u->n; i++) {
        if (u->op[i].comm != c || !u->op[i].flying) continue;
        live_cancel(w.l, u->op[i].ticket);
        u->op[i].flying = false;
        u->left--;
        hit = true;
    }
    if (hit && !u->left) release(u);
}

void watch_abort(struct ncclComm *c)
{
    atomic_store(&c->aborted, true);
    pthread_mutex_lock(&w.lock);
    for (queue *q = w.queues; q; q = q->next)
        if (q->active) abort_unit(q->active, c);
    for (unit *u = w.captured; u; u = u->next) abort_unit(u, c);
    pthread_mutex_unlock(&w.lock);
}

uint32_t watch_open(struct ncclComm *c)
{
    uint32_t n = 0;
    pthread_mutex_lock(&w.lock);
    for (queue *q = w.queues; q; q = q->next)
        for (unit *u = q->first; u; u = u->next)
            for (uint32_t i = 0; i < u->n; i++)
                if (u->op[i].comm == c) {
                    n++;
                    break;
                }
    pthread_mutex_unlock(&w.lock);
    return n;
}
