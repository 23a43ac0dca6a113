/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mock/mock.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SEMS 64

typedef struct waiter {
    struct waiter *next;
    bool (*ready)(void *);
    void *arg;
    int64_t wake; /* INT64_MAX: not by time */
    bool over;
} waiter;

typedef struct sema {
    sem_t *of;
    unsigned value;
} sema;

pthread_mutex_t mock_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static waiter *waiters;
static int running; /* threads that are not blocked here */
static int64_t now_ns = 1000000000;
static sema sems[SEMS];
static bool real_time;
static pthread_key_t key;
static _Thread_local bool known;

bool mock_virtual(void)
{
    return !real_time;
}

static int64_t kernel_clock(clockid_t id)
{
    struct timespec t;
    syscall(SYS_clock_gettime, id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t mock_time(void)
{
    return real_time ? kernel_clock(CLOCK_MONOTONIC) : now_ns;
}

static void kernel_sleep(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    syscall(SYS_nanosleep, &t, NULL);
}

static void next_time(int64_t *least);

/* All threads are blocked: time goes on until one is not. */
static void advance(void)
{
    while (running == 0) {
        int64_t least = INT64_MAX;
        mock_move();
        mock_wake();
        if (running) return;
        next_time(&least);
        for (waiter *w = waiters; w; w = w->next)
            if (w->wake < least) least = w->wake;
        if (least == INT64_MAX) return; /* a thread that is not known here */
        if (least > now_ns) now_ns = least;
    }
}

extern CUstream mock_streams;

static void next_time(int64_t *least)
{
    for (CUstream s = mock_streams; s; s = s->next)
        if (s->first && s->first->kind == ITEM_WORK && s->first->begun &&
            s->first->end < *least)
            *least = s->first->end;
}

void mock_wake(void)
{
    bool any = false;
    for (waiter *w = waiters; w; w = w->next) {
        if (w->over || !(now_ns >= w->wake || w->ready(w->arg))) continue;
        w->over = true;
        running++;
        any = true;
    }
    for (waiter **p = &waiters; *p;) {
        if ((*p)->over)
            *p = (*p)->next;
        else
            p = &(*p)->next;
    }
    if (any) pthread_cond_broadcast(&moved);
}

static void gone(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mock_lock);
    running--;
    advance();
    pthread_mutex_unlock(&mock_lock);
}

static void meet(void)
{
    if (known || real_time) return;
    known = true;
    pthread_setspecific(key, &known);
    pthread_mutex_lock(&mock_lock);
    running++;
    pthread_mutex_unlock(&mock_lock);
}

void mock_block(bool (*ready)(void *), void *arg, int64_t wake)
{
    waiter w = {waiters, ready, arg, wake, false};
    mock_move();
    if (real_time) {
        while (!ready(arg) && mock_time() < wake) {
            pthread_mutex_unlock(&mock_lock);
            kernel_sleep(5000);
            pthread_mutex_lock(&mock_lock);
            mock_move();
        }
        return;
    }
    if (!known) {
        known = true;
        pthread_setspecific(key, &known);
        running++;
    }
    if (now_ns >= wake || ready(arg)) return;
    waiters = &w;
    running--;
    advance();
    while (!w.over) pthread_cond_wait(&moved, &mock_lock);
}

static void *engine(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mock_lock);
        mock_move();
        pthread_mutex_unlock(&mock_lock);
        kernel_sleep(2000);
    }
    return NULL;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t t;
    real_time = getenv("MOCK_REAL") != NULL;
    pthread_key_create(&key, gone);
    if (real_time && pthread_create(&t, NULL, engine, NULL) == 0)
        pthread_detach(t);
    /* Not by the key: the main thread's end is the process's. */
    known = true;
    running = 1;
}

/* ---- the tests' ---------------------------------------------------------------------- */

int64_t mock_now(void)
{
    pthread_mutex_lock(&mock_lock);
    int64_t t = mock_time();
    pthread_mutex_unlock(&mock_lock);
    return t;
}

static bool never(void *unused)
{
    (void)unused;
    return false;
}

void mock_host_work(int64_t ns)
{
    if (real_time) {
        kernel_sleep(ns);
        return;
    }
    pthread_mutex_lock(&mock_lock);
    mock_block(never, NULL, now_ns + ns);
    pthread_mutex_unlock(&mock_lock);
}

/* ---- in libc's place ------------------------------------------------------------------- */

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (real_time || (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME))
        return (int)syscall(SYS_clock_gettime, id, t);
    meet();
    pthread_mutex_lock(&mock_lock);
    t->tv_sec = now_ns / 1000000000;
    t->tv_nsec = now_ns % 1000000000;
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

int nanosleep(const struct timespec *t, struct timespec *rest)
{
    if (real_time) return (int)syscall(SYS_nanosleep, t, rest);
    meet();
    mock_host_work((int64_t)t->tv_sec * 1000000000 + t->tv_nsec);
    return 0;
}

static sema *sema_of(sem_t *s)
{
    for (int i = 0; i < SEMS; i++) {
        if (!sems[i].of) sems[i].of = s;
        if (sems[i].of == s) return &sems[i];
    }
    abort();
}

static bool take(void *arg)
{
    sema *s = arg;
    if (!s->value) return false;
    s->value--;
    return true;
}

int sem_init(sem_t *s, int shared, unsigned value)
{
    (void)shared;
    pthread_mutex_lock(&mock_lock);
    sema_of(s)->value = value;
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

int sem_post(sem_t *s)
{
    meet();
    pthread_mutex_lock(&mock_lock);
    sema_of(s)->value++;
    if (!real_time) mock_wake();
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

int sem_wait(sem_t *s)
{
    meet();
    pthread_mutex_lock(&mock_lock);
    sema *x = sema_of(s);
    if (real_time) {
        while (!take(x)) {
            pthread_mutex_unlock(&mock_lock);
            kernel_sleep(20000);
            pthread_mutex_lock(&mock_lock);
        }
    } else {
        mock_block(take, x, INT64_MAX);
    }
    pthread_mutex_unlock(&mock_lock);
    return 0;
}
