/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - functions that read the time, and sleeps. */
#include "virtual.h"

#include <errno.h>
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

/* All functions are the library's, in the place of the system's. */
#pragma GCC visibility push(default)

int clock_gettime(clockid_t id, struct timespec *out)
{
    clock_ns t;
    if (!clock_read(id, &t)) return clock_system()->clock_gettime(id, out);
    *out = clock_timespec(t);
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *out = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}

int timespec_get(struct timespec *out, int base)
{
    if (base != TIME_UTC) return 0;
    clock_gettime(CLOCK_REALTIME, out);
    return base;
}

/* ---- sleeps ------------------------------------------------------------------- */

static bool is_valid(const struct timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *t,
                    struct timespec *left)
{
    clock_limit l;
    clock_ns now;
    if (!is_valid(t) || !clock_read(id, &now))
        return clock_system()->clock_nanosleep(id, flags, t, left);
    if (flags & TIMER_ABSTIME)
        clock_limit_at(&l, id, t);
    else
        clock_limit_in(&l, clock_of(t));
    clock_sleep(&l);
    return 0;
}

int nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!is_valid(t) || !clock_is_virtual())
        return clock_system()->nanosleep(t, left);
    return clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
}

int usleep(useconds_t us)
{
    return nanosleep(&(struct timespec){.tv_sec = us / 1000000,
                                        .tv_nsec = us % 1000000 * 1000L},
                     NULL);
}

unsigned sleep(unsigned s)
{
    struct timespec left = {0};
    if (nanosleep(&(struct timespec){.tv_sec = s}, &left) == 0) return 0;
    return (unsigned)left.tv_sec;
}

int thrd_sleep(const struct timespec *t, struct timespec *left)
{
    return nanosleep(t, left) == 0 ? 0 : errno == EINTR ? -1 : -2;
}
