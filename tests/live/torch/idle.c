/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle.c - which of a program's threads only wait, as the system shows them:
 * background threads that serve descriptors without a time limit do not keep
 * the clock from going on.
 */
#include "torch/torch.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x)                                                            \
    do {                                                                    \
        if (!(x)) {                                                         \
            fprintf(stderr, "idle.c:%d: %s does not hold\n", __LINE__, #x); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static int ends[2]; /* of a pipe */

static void *locked(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

static void *polls(void *limit)
{
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    poll(&p, 1, *(int *)limit);
    return NULL;
}

static int of_pipe(void)
{
    int e = epoll_create1(0);
    struct epoll_event v = {.events = EPOLLIN};
    CHECK(e >= 0 && epoll_ctl(e, EPOLL_CTL_ADD, ends[0], &v) == 0);
    return e;
}

static void *epolls(void *limit)
{
    struct epoll_event v;
    int e = of_pipe();
    epoll_wait(e, &v, 1, *(int *)limit);
    close(e);
    return NULL;
}

/* What epoll_wait() becomes on the virtual clock. */
static void *epolls_with_mask(void *limit)
{
    struct epoll_event v;
    int e = of_pipe();
    epoll_pwait(e, &v, 1, *(int *)limit, NULL);
    close(e);
    return NULL;
}

/* A thread sleeps in that call, for a lock or as one that serves. */
static void sleeps_in(void *(*call)(void *), void *arg, bool serves)
{
    pthread_t t;
    bool lock, all = false;
    CHECK(pthread_create(&t, NULL, call, arg) == 0);
    for (int i = 0; i < 1000 && !(all && lock == serves); i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        all = torch_all_sleep(&lock);
    }
    CHECK(all && lock == serves);
    CHECK(write(ends[1], "x", 1) == 1);
    if (call == locked) pthread_mutex_unlock(arg);
    CHECK(pthread_join(t, NULL) == 0);
    CHECK(read(ends[0], &(char){0}, 1) == 1);
}

int main(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static int always = -1, hour = 3600000;
    if (access("/proc/self/syscall", R_OK) != 0) {
        puts("skipped: the system does not show calls");
        return 77;
    }
    CHECK(pipe(ends) == 0);
    pthread_mutex_lock(&mutex);
    sleeps_in(locked, &mutex, true);
    sleeps_in(polls, &always, true);
    sleeps_in(epolls, &always, true);
    sleeps_in(epolls_with_mask, &always, true);
    sleeps_in(polls, &hour, false);
    sleeps_in(epolls, &hour, false);
    sleeps_in(epolls_with_mask, &hour, false);
    return 0;
}
