/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - units of streams in flight, and the host thread that posts and
 * releases their operations.
 */
#include "nccl/watch.h"

#include "nccl/comm.h"
#include "nccl/ring.h"
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

/* cudaStreamLegacy and cudaStreamPerThread */
enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 };

/* Eager units of one stream, in the order in which it reaches them. */
typedef struct queue {
    struct queue *next;
    gpu *g;
    uint64_t key;
    uint32_t number;
    unit *first, *last;
} queue;

static struct {
    pthread_mutex_t lock;
    sem_t wake, up;       /* there is work; the thread runs */
    atomic_bool sleeping; /* waits for `wake` */
    bool running;
    atomic_bool over, ended; /* the process ends; the thread has ended */
    pid_t owner;
    pthread_t thread;
    live *l;
    unit *_Atomic incoming; /* queued and not yet seen, the latest first */
    queue *queues;
    unit **captured; /* [n_captured] by their index; NULL: not seen yet */
    uint32_t n_captured;
    gpu *rings;        /* of captured units */
    unit *active;      /* started, not released */
    uint32_t n_queued; /* eager units that are not released */
    uint32_t n_queues;
    uint32_t n_flying; /* operations */
    sc_time counted;   /* time in flight that the log counts for an operation */
    sc_time reported;  /* time in flight that was reported to peers */
    sc_time poll, spin; /* interval between looks; before a release */
    sc_time last;       /* time last passed to live_poll() */
} w = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the device's clock ---------------------------------------------------------- */

/* A mark is seen at most one look after it was made, so the least of many
 * differences is that of the clocks, which drift. */
static void follow_drift(gpu *g, sc_time difference)
{
    if (w.poll > 10 * US) return;
    if (!g->n_seen++ || difference < g->least) g->least = difference;
    if (g->n_seen < 32) return;
    g->ahead = g->least;
    g->n_seen = 0;
}

static sc_time moment_of(unit *u)
{
    gpu *g = u->g;
    sc_time now = live_now(w.l);
    if (g->values) return now;
    sc_time there =
        (sc_time)atomic_load_explicit(&u->slot->time, memory_order_relaxed) *
        NS;
    follow_drift(g, now - there);
    sc_time t = there + g->ahead;
    /* It was absent at the last look and is there now. */
    sc_time moved = t > now ? now - t : t < w.last ? w.last - t : 0;
    g->ahead += moved;
    return t + moved;
}

/* The host's time when it saw the mark, without waiting for the driver. */
static bool mark_and_see(live *l, gpu *g, cudaStream_t s, nccl_slot *slot,
                         CUdeviceptr at, sc_time *seen)
{
    uint32_t was = atomic_load(&slot->started);
    kernel_op o = {.slot = at, .gen = was + 1, .flags = OP_MARK};
    if (gpu_op(g, NCCL_FLOAT32, 1, s, &o)) return false;
    for (uint32_t i = 0; i < 1U << 24; i++)
        if (atomic_load(&slot->started) != was) break;
    *seen = live_now(l);
    return g->d->stream_sync(s) == 0;
}

bool watch_calibrate(live *l, gpu *g)
{
    CUdeviceptr at = 0;
    cudaStream_t s = NULL;
    int mode = CU_CAPTURE_RELAXED;
    if (g->values || g->calibrated) return true;
    bool entered = gpu_enter(g);
    nccl_slot *slot = slot_alloc(g, &at);
    if (!slot) {
        gpu_leave(g, entered);
        return false;
    }
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    bool ok = g->d->stream_new(&s, 1) == 0;
    g->ahead = SC_TIME_MAX;
    for (int i = 0; ok && i < 16; i++) {
        sc_time seen;
        ok = mark_and_see(l, g, s, slot, at, &seen);
        if (!ok) break;
        sc_time difference = seen - (sc_time)slot->time * NS;
        if (difference < g->ahead) g->ahead = difference;
    }
    if (s) g->d->stream_free(s);
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    slot_free(slot);
    gpu_leave(g, entered);
    g->calibrated = ok;
    return ok;
}

/* ---- units that streams have reached ---------------------------------------------- */

/* A unit that its stream has reached since the last look. */
static bool has_started(unit *u)
{
    uint32_t s = atomic_load_explicit(&u->slot->started, memory_order_acquire);
    if (!u->g->values) return s == u->gen;
    if (s != 1) return false;
    atomic_store(&u->slot->started, 0);
    return true;
}

/* Into the list of those of this look, in the order in which they were
 * reached. */
static void push_started(unit *u, unit **first)
{
    u->reached = moment_of(u);
    u->active = true;
    u->next_active = w.active;
    w.active = u;
    while (*first && (*first)->reached <= u->reached)
        first = &(*first)->next_started;
    u->next_started = *first;
    *first = u;
}

/* ---- ends -------------------------------------------------------------------------- */

static void free_unit(unit *u)
{
    slot_free(u->slot);
    for (uint32_t i = 0; i < u->n; i++) {
        if (!u->captured) atomic_fetch_sub(&u->op[i].comm->open, 1);
        comm_release(u->op[i].comm);
    }
    free(u);
}

/* The first of its queue. */
static void remove_first(queue *q)
{
    q->first = q->first->next;
    if (!q->first) q->last = NULL;
    w.n_queued--;
}

/* ---- queues ------------------------------------------------------------------------ */

static queue *queue_of(gpu *g, uint64_t key)
{
    for (queue *q = w.queues; q; q = q->next)
        if (q->g == g && q->key == key) return q;
    queue *q = live_alloc(w.l, 1, sizeof *q);
    q->g = g;
    q->key = key;
    q->number = ++w.n_queues; /* 0 is the host */
    q->next = w.queues;
    w.queues = q;
    return q;
}

static void enqueue_captured(unit *u)
{
    if (u->index >= w.n_captured) {
        uint32_t n = w.n_captured ? 2 * w.n_captured : 1024;
        while (n <= u->index) n *= 2;
        unit **larger = realloc(w.captured, n * sizeof(unit *));
        if (!larger) live_die(w.l, "out of memory");
        for (uint32_t i = w.n_captured; i < n; i++) larger[i] = NULL;
        w.captured = larger;
        w.n_captured = n;
    }
    w.captured[u->index] = u;
    gpu *g = w.rings;
    while (g && g != u->g) g = g->next_ring;
    if (g) return;
    u->g->next_ring = w.rings;
    w.rings = u->g;
}

static void enqueue(unit *u)
{
    queue *q = u->queue = queue_of(u->g, u->key);
    for (uint32_t i = 0; i < u->n; i++) u->op[i].op.stream = q->number;
    u->next = NULL;
    if (u->captured) {
        enqueue_captured(u);
        return;
    }
    if (q->last)
        q->last->next = u;
    else
        q->first = u;
    q->last = u;
    w.n_queued++;
}

/* Units that were reached since the last look, in order. */
static void drain(void)
{
    unit *late = atomic_exchange(&w.incoming, NULL), *first = NULL;
    while (late) {
        unit *u = late;
        late = u->next;
        u->next = first;
        first = u;
    }
    while (first) {
        unit *u = first;
        first = u->next;
        enqueue(u);
    }
}

/* Those of a device that writes no ring are all looked at. */
static void look_at_captured(gpu *g, unit **first)
{
    if (g->values) {
        for (uint32_t i = 0; i < w.n_captured; i++) {
            unit *u = w.captured[i];
            if (u && u->g == g && has_started(u)) push_started(u, first);
        }
        return;
    }
    uint32_t index;
    while (ring_read(g, &index)) {
        if (index >= w.n_captured || !w.captured[index]) drain();
        unit *u = index < w.n_captured ? w.captured[index] : NULL;
        if (!u) continue;
        u->gen = atomic_load(&u->slot->started);
        push_started(u, first);
    }
}

/* The first of the units that streams have reached since the last look. */
static unit *look(void)
{
    unit *first = NULL;
    for (queue *q = w.queues; q; q = q->next) {
        while (q->first && atomic_load(&q->first->dropped)) {
            unit *u = q->first;
            remove_first(q);
            free_unit(u);
        }
        unit *u = q->first;
        if (u && !u->active && has_started(u)) push_started(u, &first);
    }
    for (gpu *g = w.rings; g; g = g->next_ring) look_at_captured(g, &first);
    return first;
}

/* ---- release ---------------------------------------------------------------------- */

/* Releases the stream. */
static void release(unit *u)
{
    uint32_t to = u->g->values ? 1 : u->gen;
    unit **at = &w.active;
    while (*at != u) at = &(*at)->next_active;
    *at = u->next_active;
    u->active = false;
    atomic_store_explicit(&u->slot->released, to, memory_order_release);
    if (u->captured) return;
    remove_first(u->queue);
    free_unit(u);
}

static unit *flying(live_ticket k, uint32_t *at)
{
    for (unit *u = w.active; u; u = u->next_active)
        for (*at = 0; *at < u->n; ++*at)
            if (u->op[*at].flying && u->op[*at].ticket == k) return u;
    return NULL;
}

/* Peers that mirror this rank count the time in which anything was in flight as
 * waiting, because what else the device did then is unknown. */
static void report_waited(sc_time t)
{
    if (w.n_flying && t > w.reported) live_waited(w.l, w.reported, t);
    if (t > w.reported) w.reported = t;
}

/* Of the time since the post, the part that belongs to no earlier operation. */
static sc_time share_of(const unit_op *o, sc_time now)
{
    sc_time from = o->post > w.counted ? o->post : w.counted;
    if (now <= from) return 0;
    w.counted = now;
    return now - from;
}

static void land(unit *u, uint32_t i)
{
    u->op[i].flying = false;
    w.n_flying--;
    if (--u->left == 0) release(u);
}

/* May free the unit. */
static void post(unit *u)
{
    const sc_time t = u->reached;
    u->left = 0;
    for (uint32_t i = 0; i < u->n; i++) {
        unit_op *o = &u->op[i];
        o->flying = !atomic_load(&o->comm->aborted);
        if (!o->flying) continue;
        report_waited(t);
        o->post = t;
        o->ticket = live_post(w.l, &o->op, t);
        exchange_push(w.l, o->ticket, o->comm, &o->x);
        w.n_flying++;
        u->left++;
    }
    if (!u->left) release(u);
}

/* Handles all that has ended by now; returns when to look again at the
 * latest. */
static sc_time resolve(sc_time now)
{
    live_ended ended[32];
    sc_time next = SC_TIME_MAX;
    uint32_t n;
    do {
        n = live_poll(w.l, now, ended, 32, &next);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at = 0;
            unit *u = flying(ended[i].ticket, &at);
            sc_time waited = 0, seen = live_now(w.l);
            if (u) {
                report_waited(seen);
                waited = share_of(&u->op[at], seen);
                exchange_pull(w.l, ended[i].ticket, u->op[at].comm,
                              &u->op[at].x);
                land(u, at);
            }
            live_resumed(w.l, ended[i].ticket, waited, seen);
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

static void sleep_until_queued(void)
{
    atomic_store(&w.sleeping, true);
    pthread_mutex_unlock(&w.lock);
    bool none = !atomic_load(&w.incoming) && !atomic_load(&w.over);
    /* The thread that clears `sleeping` also posts. */
    if (none || !atomic_exchange(&w.sleeping, false)) sem_wait(&w.wake);
    pthread_mutex_lock(&w.lock);
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
        drain();
        if (!w.n_queued && !w.rings) {
            sleep_until_queued();
            continue;
        }
        sc_time now = live_now(w.l);
        for (unit *u = look(), *following; u; u = following) {
            following = u->next_started;
            post(u);
        }
        sc_time next = resolve(now);
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

/* Nothing on the device waits any longer. The ending thread may hold the lock,
 * or be this thread, so it is not waited for then. */
static void at_exit(void)
{
    if (getpid() != w.owner) return;
    atomic_store(&w.over, true);
    slot_release_all();
    if (pthread_equal(pthread_self(), w.thread)) return;
    if (atomic_exchange(&w.sleeping, false)) sem_post(&w.wake);
    for (int i = 0; i < 1000 && !atomic_load(&w.ended); i++) nap();
    if (atomic_load(&w.ended)) pthread_join(w.thread, NULL);
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

static atomic_uint n_indices; /* of captured units */

/* ---- calls of other files ----------------------------------------------------------- */

uint64_t watch_stream_key(cudaStream_t s)
{
    static atomic_uint_fast64_t threads;
    static _Thread_local uint64_t own;
    uint64_t handle = (uint64_t)(uintptr_t)s;
    if (handle == STREAM_LEGACY) return 0; /* the same as NULL */
    if (handle != STREAM_PER_THREAD) return handle;
    if (!own) own = atomic_fetch_add(&threads, 1) + 1;
    return UINT64_MAX - own;
}

bool watch_idle(void)
{
    pthread_mutex_lock(&w.lock);
    bool idle = !atomic_load(&w.incoming) && !w.n_queued && !w.active;
    pthread_mutex_unlock(&w.lock);
    return idle;
}

unit *watch_alloc(gpu *g, cudaStream_t s, uint32_t n, bool captured)
{
    unit *u = calloc(1, sizeof *u + n * sizeof u->op[0]);
    if (!u) return NULL;
    u->g = g;
    u->stream = s;
    u->key = watch_stream_key(s);
    u->n = n;
    u->captured = captured;
    bool counted = captured && !g->values;
    if (captured) u->index = atomic_fetch_add(&n_indices, 1);
    if (counted) u->count = ring_count(g);
    u->slot = counted && !u->count ? NULL : slot_alloc(g, &u->at);
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
    for (uint32_t i = 0; i < u->n; i++)
        if (!u->captured) atomic_fetch_add(&u->op[i].comm->open, 1);
    u->next = atomic_load(&w.incoming);
    while (!atomic_compare_exchange_weak(&w.incoming, &u->next, u)) continue;
    if (atomic_exchange(&w.sleeping, false)) sem_post(&w.wake);
}

void watch_drop(unit *u)
{
    atomic_store(&u->dropped, true);
}

static void abort_unit(unit *u, const struct ncclComm *c)
{
    bool hit = false;
    for (uint32_t i = 0; i < u->n; i++) {
        if (u->op[i].comm != c || !u->op[i].flying) continue;
        if (!live_cancel(w.l, u->op[i].ticket))
            live_forget(w.l, u->op[i].ticket);
        exchange_drop(w.l, u->op[i].ticket, &u->op[i].x);
        u->op[i].flying = false;
        u->left--;
        w.n_flying--;
        hit = true;
    }
    if (hit && !u->left) release(u);
}

void watch_abort(struct ncclComm *c)
{
    atomic_store(&c->aborted, true);
    pthread_mutex_lock(&w.lock);
    drain();
    for (unit *u = w.active, *next; u; u = next) {
        next = u->next_active;
        abort_unit(u, c);
    }
    pthread_mutex_unlock(&w.lock);
}
