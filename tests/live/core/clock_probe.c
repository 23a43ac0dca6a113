/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_probe.c - a program that asks for the time and waits with limits, with
 * the clock's library preloaded.  Limits pass not before their time, and what
 * comes before them is not missed.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
#define S  (1000 * MS)

#define CHECK(x)                                                              \
    do {                                                                      \
        if (!(x)) {                                                           \
            fprintf(stderr, "clock_probe.c:%d: %s does not hold\n", __LINE__, \
                    #x);                                                      \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static int64_t ns(const struct timespec *t)
{
    return t->tv_sec * S + t->tv_nsec;
}

static int64_t now(clockid_t id)
{
    struct timespec t;
    CHECK(clock_gettime(id, &t) == 0);
    return ns(&t);
}

static struct timespec in(clockid_t id, int64_t dt)
{
    int64_t t = now(id) + dt;
    return (struct timespec){.tv_sec = t / S, .tv_nsec = t % S};
}

static int64_t system_now(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return ns(&t);
}

static void clocks_agree(void)
{
    struct timeval tv;
    struct timespec t;
    int64_t day = now(CLOCK_REALTIME);
    CHECK(gettimeofday(&tv, NULL) == 0);
    CHECK(tv.tv_sec * S + tv.tv_usec * 1000 - day < S);
    CHECK(time(NULL) - day / S <= 1);
    CHECK(timespec_get(&t, TIME_UTC) == TIME_UTC && ns(&t) - day < S);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    CHECK(llabs(ns(&t) - day) < 60 * S); /* anchored */
    CHECK(now(CLOCK_MONOTONIC_COARSE) >= now(CLOCK_MONOTONIC) - S);
    CHECK(now(CLOCK_PROCESS_CPUTIME_ID) < 60 * S);
}

/* Hours of it take no time. */
static void sleeps(void)
{
    int64_t from = now(CLOCK_MONOTONIC), day = now(CLOCK_REALTIME);
    int64_t real = system_now();
    CHECK(sleep(3600) == 0);
    CHECK(now(CLOCK_MONOTONIC) - from >= 3600 * S);
    CHECK(now(CLOCK_REALTIME) - day >= 3600 * S);
    from = now(CLOCK_MONOTONIC);
    struct timespec at = in(CLOCK_MONOTONIC, 3600 * S);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == 0);
    CHECK(now(CLOCK_MONOTONIC) >= ns(&at));
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == 0);
    CHECK(usleep(250000) == 0 &&
          nanosleep(&(struct timespec){1, 0}, NULL) == 0);
    CHECK(now(CLOCK_MONOTONIC) >= ns(&at) + 5 * S / 4);
    CHECK(nanosleep(&(struct timespec){-1, 0}, NULL) != 0 && errno == EINVAL);
    CHECK(system_now() - real < 3600 * S);
}

static void descriptors(void)
{
    int p[2], e = epoll_create1(0);
    fd_set set;
    CHECK(pipe(p) == 0 && e >= 0);
    struct pollfd fd = {.fd = p[0], .events = POLLIN};
    struct epoll_event ev = {.events = EPOLLIN};
    CHECK(epoll_ctl(e, EPOLL_CTL_ADD, p[0], &ev) == 0);
    struct timeval limit = {.tv_usec = 30000};
    int64_t t = now(CLOCK_MONOTONIC);
    CHECK(poll(&fd, 1, 0) == 0);
    CHECK(poll(&fd, 1, 30) == 0);
    CHECK(now(CLOCK_MONOTONIC) - t >= 30 * MS);
    FD_ZERO(&set);
    FD_SET(p[0], &set);
    CHECK(select(p[0] + 1, &set, NULL, NULL, &limit) == 0);
    CHECK(now(CLOCK_MONOTONIC) - t >= 60 * MS);
    FD_SET(p[0], &set);
    limit = (struct timeval){.tv_usec = 1500000};
    CHECK(select(p[0] + 1, &set, NULL, NULL, &limit) == 0);
    CHECK(now(CLOCK_MONOTONIC) - t >= 1560 * MS);
    t += 1500 * MS;
    CHECK(epoll_wait(e, &ev, 1, 30) == 0);
    CHECK(now(CLOCK_MONOTONIC) - t >= 90 * MS);
    CHECK(write(p[1], "x", 1) == 1);
    FD_SET(p[0], &set);
    limit = (struct timeval){.tv_sec = 1000};
    CHECK(poll(&fd, 1, 1000000) == 1 && poll(&fd, 1, -1) == 1);
    CHECK(select(p[0] + 1, &set, NULL, NULL, &limit) == 1);
    CHECK(FD_ISSET(p[0], &set));
    CHECK(epoll_wait(e, &ev, 1, 1000000) == 1);
    CHECK(now(CLOCK_MONOTONIC) - t < 900 * S);
    close(p[0]);
    close(p[1]);
    close(e);
}

/* ---- threads --------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static bool told;

static void *work(void *arg)
{
    volatile unsigned n = 0;
    int64_t t = now(CLOCK_THREAD_CPUTIME_ID);
    while (now(CLOCK_THREAD_CPUTIME_ID) - t < 50 * MS) n++;
    pthread_mutex_lock(&mutex);
    told = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    sem_post(&sem);
    return arg;
}

static void limits_pass(void)
{
    struct timespec at = in(CLOCK_REALTIME, 30 * MS);
    pthread_mutex_lock(&mutex);
    int rc = 0;
    while (rc == 0) rc = pthread_cond_timedwait(&cond, &mutex, &at);
    CHECK(rc == ETIMEDOUT && now(CLOCK_REALTIME) >= ns(&at));
    CHECK(pthread_cond_timedwait(&cond, &mutex, &at) == ETIMEDOUT);
    at = in(CLOCK_MONOTONIC, 30 * MS);
    for (rc = 0; rc == 0;)
        rc = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &at);
    CHECK(rc == ETIMEDOUT && now(CLOCK_MONOTONIC) >= ns(&at));
    at = in(CLOCK_REALTIME, 30 * MS);
    CHECK(pthread_mutex_timedlock(&mutex, &at) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_mutex_timedlock(&mutex, &at) == 0);
    pthread_mutex_unlock(&mutex);
    at = in(CLOCK_REALTIME, 30 * MS);
    CHECK(sem_timedwait(&sem, &at) != 0 && errno == ETIMEDOUT);
    CHECK(now(CLOCK_REALTIME) >= ns(&at));
}

/* What another thread does in its time comes before a limit that is later. */
static void work_counts(void)
{
    pthread_t t;
    int64_t from = now(CLOCK_MONOTONIC);
    struct timespec at = in(CLOCK_REALTIME, 1000 * S);
    CHECK(pthread_create(&t, NULL, work, NULL) == 0);
    pthread_mutex_lock(&mutex);
    int rc = 0;
    while (!told && rc == 0) rc = pthread_cond_timedwait(&cond, &mutex, &at);
    CHECK(told && rc == 0);
    pthread_mutex_unlock(&mutex);
    CHECK(sem_timedwait(&sem, &at) == 0);
    CHECK(pthread_join(t, NULL) == 0);
    int64_t used = now(CLOCK_MONOTONIC) - from;
    CHECK(used >= 50 * MS && used < 900 * S);
}

/* A watchdog's sleeps don't move the clock of the program. */
static void *watchdog(void *arg)
{
    for (int i = 0; i < 20; i++) usleep(2000);
    return arg;
}

static void watched(void)
{
    pthread_t t;
    int64_t from = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    CHECK(pthread_create(&t, NULL, watchdog, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
    CHECK(now(CLOCK_MONOTONIC) - from <=
          now(CLOCK_PROCESS_CPUTIME_ID) - cpu + MS / 10);
}

static void forked(void)
{
    int64_t t = now(CLOCK_MONOTONIC);
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(now(CLOCK_MONOTONIC) >= t);
        sleep(1);
        CHECK(now(CLOCK_MONOTONIC) >= t + S);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* In no rank, calls are the system's, which takes microseconds of more than a
 * second. */
static void no_rank(void)
{
    int p[2];
    fd_set set;
    struct timeval limit = {.tv_usec = 1500000};
    CHECK(pipe(p) == 0 && write(p[1], "x", 1) == 1);
    FD_ZERO(&set);
    FD_SET(p[0], &set);
    CHECK(select(p[0] + 1, &set, NULL, NULL, &limit) == 1);
}

static void outside(void)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        unsetenv("STEPCAST_EMULATE");
        execl("/proc/self/exe", "clock_probe", "outside", (char *)NULL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "outside") == 0) {
        no_rank();
        return 0;
    }
    CHECK(sem_init(&sem, 0, 0) == 0);
    clocks_agree();
    sleeps();
    descriptors();
    limits_pass();
    work_counts();
    watched();
    forked();
    outside();
    puts("time");
    return 0;
}
