/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual.h - time calls answered with virtual time.
 *
 * Virtual time is anchored at the real time at which the process was loaded. A
 * wait with a time limit waits for an event that may arrive at any real time,
 * so it waits in real time, but its limit is in virtual time:
 *
 * - A sleep of the main thread advances the clock at once, unless other threads
 * compute; then it lasts until they have used this CPU time.
 *
 * - A limit of the main thread passes when the clock has reached it, or after
 * this real time without computing threads; then the clock is advanced.
 *
 * - Other threads (watchdogs, loaders) never advance the clock: their limits
 * pass when the clock has reached them or after this real time.
 *
 * Calls from inside the interposers go to the system.
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

/* Times of day exceed sc_time. */
typedef int64_t clock_ns;

#define CLOCK_S 1000000000LL

/* The system's functions that are replaced here. */
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
/* Virtual time as read from clock `id`; false: that clock is not replaced. */
bool clock_read(clockid_t id, clock_ns *out);

clock_ns clock_of(const struct timespec *t);
struct timespec clock_timespec(clock_ns t);
/* CLOCK_MONOTONIC after that long, for waits of the system. */
struct timespec clock_in(clock_ns t);

/* A wait with a limit. */
typedef struct clock_limit {
    clock_ns due; /* virtual time when it passes */
    /* real time that it may last while the clock stands still */
    clock_ns least;
    clock_ns cpu;   /* CPU time of other threads at the start of the slice */
    clock_ns slice; /* real time when it began */
    clock_ns idle;  /* uninterrupted real time without work */
    bool main, sleeps;
} clock_limit;

void clock_limit_in(clock_limit *l, clock_ns relative);
/* At an absolute time of clock `id`. */
void clock_limit_at(clock_limit *l, clockid_t id, const struct timespec *t);
/* Real time to wait next; 0: the limit has passed. */
clock_ns clock_limit_slice(clock_limit *l);
/* Call after a slice in which nothing arrived. True: the limit has passed. */
bool clock_limit_passed(clock_limit *l);

/* Sleeps until then. */
void clock_sleep(clock_limit *l);

#endif
