/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - waits with a time limit: for descriptors, conditions, locks. */
#include "virtual.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <threads.h>

/* All functions are the library's, in the place of the system's. */
#pragma GCC visibility push(default)

/* ---- descriptors ---------------------------------------------------------------- */

static bool is_limited(const struct timespec *t)
{
    return t && (t->tv_sec > 0 || t->tv_nsec > 0) && clock_is_virtual();
}

int ppoll(struct pollfd *fd, nfds_t n, const struct timespec *t,
          const sigset_t *mask)
{
    clock_limit l;
    clock_ns slice;
    if (!is_limited(t)) return clock_system()->ppoll(fd, n, t, mask);
    clock_limit_in(&l, clock_of(t));
    while ((slice = clock_limit_slice(&l)) > 0) {
        struct timespec s = clock_timespec(slice);
        int rc = clock_system()->ppoll(fd, n, &s, mask);
        if (rc != 0) return rc;
        if (clock_limit_passed(&l)) break;
    }
    return 0;
}

int poll(struct pollfd *fd, nfds_t n, int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return ppoll(fd, n, ms < 0 ? NULL : &t, NULL);
}

int epoll_pwait(int fd, struct epoll_event *event, int n, int ms,
                const sigset_t *mask)
{
    clock_limit l;
    clock_ns slice;
    if (ms <= 0 || !clock_is_virtual())
        return clock_system()->epoll_pwait(fd, event, n, ms, mask);
    clock_limit_in(&l, ms * (CLOCK_S / 1000));
    while ((slice = clock_limit_slice(&l)) > 0) {
        int part = (int)(slice / (CLOCK_S / 1000)) + 1;
        int rc = clock_system()->epoll_pwait(fd, event, n, part, mask);
        if (rc != 0) return rc;
        if (clock_limit_passed(&l)) break;
    }
    return 0;
}

int epoll_wait(int fd, struct epoll_event *event, int n, int ms)
{
    return epoll_pwait(fd, event, n, ms, NULL);
}

/* The descriptor sets of a call, which every slice overwrites. */
typedef struct sets {
    fd_set *at[3], kept[3];
} sets;

static void keep(sets *s)
{
    for (int i = 0; i < 3; i++)
        if (s->at[i]) s->kept[i] = *s->at[i];
}

static void restore(sets *s)
{
    for (int i = 0; i < 3; i++)
        if (s->at[i]) *s->at[i] = s->kept[i];
}

int pselect(int n, fd_set *r, fd_set *w, fd_set *x, const struct timespec *t,
            const sigset_t *mask)
{
    clock_limit l;
    clock_ns slice;
    sets s = {.at = {r, w, x}};
    if (!is_limited(t) || n > FD_SETSIZE)
        return clock_system()->pselect(n, r, w, x, t, mask);
    clock_limit_in(&l, clock_of(t));
    keep(&s);
    while ((slice = clock_limit_slice(&l)) > 0) {
        struct timespec part = clock_timespec(slice);
        restore(&s);
        int rc = clock_system()->pselect(n, r, w, x, &part, mask);
        if (rc != 0) return rc;
        if (clock_limit_passed(&l)) break;
    }
    return 0;
}

int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x,
           struct timeval *restrict limit)
{
    struct timespec t;
    if (!limit) return pselect(n, r, w, x, NULL, NULL);
    /* As the system does, more than a second of microseconds is taken. */
    t = (struct timespec){.tv_sec = limit->tv_sec + limit->tv_usec / 1000000,
                          .tv_nsec = limit->tv_usec % 1000000 * 1000};
    return pselect(n, r, w, x, &t, NULL);
}

/* ---- conditions ------------------------------------------------------------------- */

/* Waits for one slice only: the caller has to check its condition again,
 * because a signal between two slices would be lost. */
int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t id,
                           const struct timespec *t)
{
    clock_limit l;
    clock_ns now;
    if (!clock_read(id, &now))
        return clock_system()->cond_clockwait(c, m, id, t);
    clock_limit_at(&l, id, t);
    clock_ns slice = clock_limit_slice(&l);
    if (slice <= 0) return ETIMEDOUT;
    if (l.least > slice) slice = l.least;
    struct timespec at = clock_in(slice);
    int rc = clock_system()->cond_clockwait(c, m, CLOCK_MONOTONIC, &at);
    if (rc != ETIMEDOUT) return rc;
    return clock_limit_passed(&l) ? ETIMEDOUT : 0;
}

/* A time of day and a time since boot are too different to be confused. */
static clockid_t clock_meant(const struct timespec *t)
{
    clock_ns day;
    if (!clock_read(CLOCK_REALTIME, &day)) return CLOCK_REALTIME;
    return clock_of(t) > day / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                           const struct timespec *t)
{
    if (!clock_is_virtual()) return clock_system()->cond_timedwait(c, m, t);
    return pthread_cond_clockwait(c, m, clock_meant(t), t);
}

int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m,
                  const struct timespec *restrict t)
{
    int rc = pthread_cond_clockwait((pthread_cond_t *)c, (pthread_mutex_t *)m,
                                    CLOCK_REALTIME, t);
    return rc == 0           ? thrd_success
           : rc == ETIMEDOUT ? thrd_timedout
                             : thrd_error;
}

/* ---- locks -------------------------------------------------------------------------- */

int sem_clockwait(sem_t *s, clockid_t id, const struct timespec *t)
{
    clock_limit l;
    clock_ns now, slice;
    if (!clock_read(id, &now)) return clock_system()->sem_clockwait(s, id, t);
    if (sem_trywait(s) == 0) return 0;
    clock_limit_at(&l, id, t);
    while ((slice = clock_limit_slice(&l)) > 0) {
        struct timespec at = clock_in(slice);
        int rc = clock_system()->sem_clockwait(s, CLOCK_MONOTONIC, &at);
        if (rc == 0 || errno != ETIMEDOUT) return rc;
        if (clock_limit_passed(&l)) break;
    }
    errno = ETIMEDOUT;
    return -1;
}

int sem_timedwait(sem_t *s, const struct timespec *t)
{
    return sem_clockwait(s, CLOCK_REALTIME, t);
}

int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t id,
                            const struct timespec *t)
{
    clock_limit l;
    clock_ns now, slice;
    if (!clock_read(id, &now)) return clock_system()->mutex_clocklock(m, id, t);
    int rc = pthread_mutex_trylock(m);
    if (rc != EBUSY) return rc;
    clock_limit_at(&l, id, t);
    while ((slice = clock_limit_slice(&l)) > 0) {
        struct timespec at = clock_in(slice);
        rc = clock_system()->mutex_clocklock(m, CLOCK_MONOTONIC, &at);
        if (rc != ETIMEDOUT) return rc;
        if (clock_limit_passed(&l)) break;
    }
    return ETIMEDOUT;
}

int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *t)
{
    return pthread_mutex_clocklock(m, CLOCK_REALTIME, t);
}
