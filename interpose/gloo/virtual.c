/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual.c - advances the virtual clock, which stands still while all threads
 * wait.
 *
 * The participants are the program's threads that use c10d, and c10d's workers.
 * A worker that handles an operation sleeps here until the operation has ended;
 * the program sleeps in a condition variable of C++ (Work::wait(),
 * Future::wait(), chains of futures), whose functions are therefore interposed.
 * When all of them sleep, the next end in the world is the next event: the
 * clock advances to it, and the thread that sleeps for this operation wakes.
 *
 * Ends that passed while the program computed are reported when it next calls
 * c10d or sleeps, one after the other, so that a worker's next operation begins
 * where the previous one ended. A program that waits by other means (a lock of
 * Python) is detected by its threads' state.
 */
#define _GNU_SOURCE
#include "inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef enum role { ROLE_NONE, ROLE_PROGRAM, ROLE_WORKER } role;

typedef struct sleeper {
    role role;
    int tid;
    const void *in;  /* condition variable it sleeps in */
    bool woken;      /* and has been notified */
    gloo_call *call; /* operation that it sleeps for */
    bool ended;      /* the operation has ended */
    bool timed_out;  /* the sleeper's time limit has passed */
    sc_time by;
    pthread_cond_t wake;
    struct sleeper *next;
} sleeper;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;
static sleeper *all;
static uint32_t awake[3]; /* by role */
static sc_time reached;   /* of the world */
static _Atomic bool on;   /* there are participants */
static bool real_clock; /* the clock is not advanced, ends are only reported */

/* Ends for which no thread sleeps yet: sends and receives. */
static struct {
    live_ticket ticket;
    sc_time end;
} * early;

static uint32_t n_early, cap_early;

static _Thread_local sleeper self;
static pthread_key_t leave_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- participants -------------------------------------------------------- */

static void part(void *arg)
{
    sleeper *s = arg;
    pthread_mutex_lock(&mutex);
    for (sleeper **at = &all; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            awake[s->role]--;
            break;
        }
    s->role = ROLE_NONE;
    pthread_cond_broadcast(&settled);
    pthread_mutex_unlock(&mutex);
}

static void forked(void)
{
    atomic_store(&on, false);
    self.role = ROLE_NONE;
}

static void set_up(void)
{
    pthread_key_create(&leave_key, part);
    pthread_atfork(NULL, NULL, forked);
}

static void join(live *l, role r)
{
    if (self.role != ROLE_NONE) return;
    real_clock = live_config(l)->clock != SC_EMU_VIRTUAL;
    if (real_clock && r != ROLE_PROGRAM) return;
    pthread_once(&once, set_up);
    pthread_setspecific(leave_key, &self);
    pthread_mutex_lock(&mutex);
    self = (sleeper){.role = r, .tid = gettid(), .next = all};
    pthread_cond_init(&self.wake, NULL);
    all = &self;
    awake[r]++;
    pthread_mutex_unlock(&mutex);
    atomic_store(&on, true);
}

/* ---- the next event ---------------------------------------------------- */

static void wake(sleeper *s, bool ended)
{
    s->ended = ended;
    s->timed_out = !ended;
    awake[s->role]++;
    pthread_cond_signal(&s->wake);
}

static void keep(live *l, const live_ended *e)
{
    if (n_early == cap_early) {
        cap_early = cap_early ? 2 * cap_early : 64;
        early = realloc(early, cap_early * sizeof *early);
        if (!early) live_die(l, "gloo: out of memory");
    }
    early[n_early].ticket = e->ticket;
    early[n_early++].end = e->end;
}

static bool pop_early(live_ticket k, sc_time *end)
{
    for (uint32_t i = 0; i < n_early; i++)
        if (early[i].ticket == k) {
            *end = early[i].end;
            early[i] = early[--n_early];
            return true;
        }
    return false;
}

/* The operation has ended; advances the clock to its end. */
static bool report(live *l, const live_ended *e)
{
    for (sleeper *s = all; s; s = s->next) {
        if (!s->call || s->ended || s->call->ticket != e->ticket) continue;
        sc_time now = live_now(l);
        live_wait_until(l, e->end);
        s->call->end = e->end;
        live_resumed(l, e->ticket, e->end > now ? e->end - now : 0,
                     e->end > now ? e->end : now);
        wake(s, true);
        return true;
    }
    keep(l, e);
    return false;
}

/* No operation ends before the time limit of one: its thread gives up. */
static bool expire(live *l, sc_time next, sc_time now, bool forward)
{
    sleeper *first = NULL;
    for (sleeper *s = all; s; s = s->next)
        if (s->call && !s->ended && !s->timed_out && s->by < next &&
            (!first || s->by < first->by))
            first = s;
    if (!first || (!forward && first->by > now)) return false;
    live_wait_until(l, first->by);
    wake(first, false);
    return true;
}

/* Several real ranks: only their launcher knows when time can pass; it reports
 * the operation that was posted first. */
static bool step_shared(live *l)
{
    sleeper *first = NULL;
    for (sleeper *s = all; s; s = s->next)
        if (s->call && !s->ended && !s->timed_out &&
            (!first || s->call->number < first->call->number))
            first = s;
    if (!first) return false;
    bool ended = live_wait_by(l, first->call->ticket, first->by);
    first->call->end = live_now(l);
    wake(first, ended);
    return true;
}

/* Reports the earliest unreported end up to `now` or, with `forward`, at any
 * time. False: there is none. */
static bool step(live *l, bool forward)
{
    live_ended e;
    if (live_config(l)->n_real > 1) return forward && step_shared(l);
    sc_time next = SC_TIME_MAX, now = live_now(l);
    for (;;) {
        if (live_poll(l, reached, &e, 1, &next) == 1) {
            if (report(l, &e)) return true;
            continue;
        }
        if (expire(l, next, now, forward)) return true;
        if (next == SC_TIME_MAX || (next > now && !forward)) return false;
        reached = next;
    }
}

static void go_on(live *l)
{
    if (awake[ROLE_PROGRAM] + awake[ROLE_WORKER] == 0) step(l, true);
    if (awake[ROLE_WORKER] == 0) pthread_cond_broadcast(&settled);
}

static struct timespec after_ms(int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(ms * 1000000);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

void gloo_virtual_catch_up(live *l)
{
    join(l, ROLE_PROGRAM);
    if (real_clock) return;
    struct timespec limit =
        after_ms(200); /* a worker may be waiting for this lock */
    pthread_mutex_lock(&mutex);
    int late = 0;
    do {
        while (awake[ROLE_WORKER] > 0 && !late)
            late = pthread_cond_timedwait(&settled, &mutex, &limit);
    } while (!late && step(l, false));
    pthread_mutex_unlock(&mutex);
}

/* ---- sleep for an operation ---------------------------------------------- */

/* Whether the thread runs or is runnable. */
static bool runs(const sleeper *s)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", s->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'R';
}

/* The program's threads sleep in a function that is not interposed. */
static bool sleeps_elsewhere(void)
{
    if (awake[ROLE_WORKER] > 0) return false;
    for (const sleeper *s = all; s; s = s->next)
        if (s->role == ROLE_PROGRAM && !(s->in && !s->woken) && !s->call &&
            runs(s))
            return false;
    return true;
}

bool gloo_virtual_wait(gloo_call *c, sc_time by)
{
    join(c->l, ROLE_PROGRAM); /* workers have joined before */
    pthread_mutex_lock(&mutex);
    if (pop_early(c->ticket, &c->end)) {
        live_wait_until(c->l, c->end);
        pthread_mutex_unlock(&mutex);
        return true;
    }
    self.call = c;
    self.ended = self.timed_out = false;
    self.by = by;
    awake[self.role]--;
    go_on(c->l);
    for (int idle = 0; !self.ended && !self.timed_out;) {
        struct timespec limit = after_ms(20);
        if (pthread_cond_timedwait(&self.wake, &mutex, &limit) == 0) {
            idle = 0;
            continue;
        }
        /* The program may poll a future repeatedly. */
        if (awake[ROLE_WORKER] == 0 && step(c->l, false)) continue;
        idle = sleeps_elsewhere() ? idle + 1 : 0;
        if (idle < 3) continue;
        step(c->l, true);
        idle = 0;
    }
    self.call = NULL;
    bool ended = self.ended;
    pthread_mutex_unlock(&mutex);
    return ended;
}

void gloo_virtual_forget(live_ticket k)
{
    sc_time end;
    pthread_mutex_lock(&mutex);
    (void)pop_early(k, &end);
    pthread_mutex_unlock(&mutex);
}

/* ---- condition variables of C++ ------------------------------------------ */

#define CV_WAIT "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
#define CV_ONE  "_ZNSt18condition_variable10notify_oneEv"
#define CV_ALL  "_ZNSt18condition_variable10notify_allEv"

typedef void cv_wait_fn(void *, void *);
typedef void cv_notify_fn(void *);

void cv_wait(void *cv, void *lock) GLOO_HOOK(CV_WAIT);
void cv_notify_one(void *cv) GLOO_HOOK(CV_ONE);
void cv_notify_all(void *cv) GLOO_HOOK(CV_ALL);

static bool takes_part(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

static bool notifies(void)
{
    return takes_part() && !real_clock;
}

static void fall_asleep(live *l, const void *cv)
{
    pthread_mutex_lock(&mutex);
    self.in = cv;
    self.woken = false;
    awake[self.role]--;
    go_on(l);
    pthread_mutex_unlock(&mutex);
}

/* The notified thread and the one that wakes may differ. */
static void wake_up(const void *cv)
{
    pthread_mutex_lock(&mutex);
    self.in = NULL;
    if (!self.woken) {
        sleeper *s = all;
        while (s && !(s->in == cv && s->woken && s->role == self.role))
            s = s->next;
        if (s)
            s->woken = false;
        else
            awake[self.role]++;
    }
    self.woken = false;
    pthread_mutex_unlock(&mutex);
}

void cv_wait(void *cv, void *lock)
{
    cv_wait_fn *real = GLOO_REAL(cv_wait_fn *, LIB_CXX, CV_WAIT);
    live *l = takes_part() && self.role != ROLE_NONE ? live_get() : NULL;
    if (!l) {
        real(cv, lock);
        return;
    }
    if (real_clock) {
        bool idle = gloo_work_any();
        if (idle) live_idle(l, true);
        real(cv, lock);
        if (idle) live_idle(l, false);
        return;
    }
    fall_asleep(l, cv);
    real(cv, lock);
    wake_up(cv);
}

static void notify(const void *cv, bool everyone)
{
    pthread_mutex_lock(&mutex);
    for (sleeper *s = all; s; s = s->next) {
        if (s->in != cv || s->woken) continue;
        s->woken = true;
        awake[s->role]++;
        if (!everyone) break;
    }
    pthread_mutex_unlock(&mutex);
}

void cv_notify_one(void *cv)
{
    if (notifies()) notify(cv, false);
    GLOO_REAL(cv_notify_fn *, LIB_CXX, CV_ONE)(cv);
}

void cv_notify_all(void *cv)
{
    if (notifies()) notify(cv, true);
    GLOO_REAL(cv_notify_fn *, LIB_CXX, CV_ALL)(cv);
}

/* ---- c10d's workers ------------------------------------------------------ */

#define RUN_LOOP "_ZN4c10d16ProcessGroupGloo7runLoopEi"

typedef void run_loop_fn(void *, int);
void c10d_run_loop(void *pg, int worker) GLOO_HOOK(RUN_LOOP);

void c10d_run_loop(void *pg, int worker)
{
    live *l = live_get();
    if (l) join(l, ROLE_WORKER);
    GLOO_REAL(run_loop_fn *, LIB_TORCH, RUN_LOOP)(pg, worker);
}
