/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual.h - time calls answered with virtual time, which is anchored at the
 * real times at which the process was loaded.
 *
 * Who waits with a time limit waits for something that may come from outside at
 * any real time, so he really waits; the limit is one of virtual time:
 *
 *   - The main thread's sleep puts the clock forward at once, unless other
 *     threads are at work; then it lasts until they have used so much CPU time.
 *   - The main thread's limit passes when the clock has come to it, or when it
 *     really waited for so long while nobody was at work; then the clock is put
 *     forward.
 *   - Other threads (watchdogs, loaders) never move the clock: their limits pass
 *     when the clock has come to them or after as much real time.
 *
 * Calls from inside the interposers are theirs and go to the system.
 */
#ifndef CLOCK_VIRTUAL_H
#define CLOCK_VIRTUAL_H

#include "common/clock.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

/* Times of day don't fit sc_time. */
typedef int64_t clock_ns;

#define CLOCK_S 1000000000LL

/* The functions of the system that are answered for here. */
typedef struct clock_functions {
    int (*clock_gettime)(clockid_t, struct timespec *);
    int (*clock_nanosleep)(clockid_t, int, const struct timespec *,
                           struct timespec *);
    int (*nanosleep)(const struct timespec *, struct timespec *);
    int (*pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
                   const sigset_t *);
    int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *,
                 const sigset_t *);
    int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
    int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *,
                          const struct timespec *);
    int (*cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                          const struct timespec *);
    int (*sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
    int (*mutex_clocklock)(pthread_mutex_t *, clockid_t,
                           const struct timespec *);
} clock_functions;

const clock_functions *clock_system(void);

/* Whether the calling thread sees virtual time. */
bool clock_is_virtual(void);
/* Virtual time as the clock `id` would tell it; false: it is no clock that
 * is answered for. */
bool clock_read(clockid_t id, clock_ns *out);

clock_ns clock_of(const struct timespec *t);
struct timespec clock_timespec(clock_ns t);
/* CLOCK_MONOTONIC in so long, for waits of the system. */
struct timespec clock_in(clock_ns t);

/* A wait with a limit. */
typedef struct clock_limit {
    clock_ns due;   /* virtual time when it passes */
    clock_ns least; /* real time that it may last though the clock stands */
    clock_ns cpu;   /* of other threads, when the present slice began */
    clock_ns slice; /* real time when it began */
    clock_ns idle;  /* real time in a row in which nobody was at work */
    bool main;
} clock_limit;

void clock_limit_in(clock_limit *l, clock_ns relative);
/* At an absolute time of clock `id`. */
void clock_limit_at(clock_limit *l, clockid_t id, const struct timespec *t);
/* How long really to wait next; 0: it has passed. */
clock_ns clock_limit_slice(clock_limit *l);
/* A slice is over and nothing came.  True: the limit has passed. */
bool clock_limit_passed(clock_limit *l);

/* Sleeps until then. */
void clock_sleep(clock_limit *l);

#endif
