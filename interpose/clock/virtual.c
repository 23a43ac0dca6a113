/* SPDX-License-Identifier: Apache-2.0 */
/* virtual.c - virtual time, and when time limits pass. */
#include "virtual.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Other threads count as computing if they use more than a 20th of the time. */
#define WORK 20
/* The main thread's sleep checks for this long whether other threads
 * compute. */
#define LOOK 100000LL
#define NAP  20000LL
/* The longest slice: several threads may use CPU time faster than real time
 * passes. */
#define SLICE (CLOCK_S / 20)

#define N_ANSWERED 6

/* Emulated clocks, and their readings at virtual time `zero`. */
static struct {
    atomic_bool ready;
    clock_ns zero;
    clock_ns anchor[N_ANSWERED];
} the;

static const clockid_t answered[N_ANSWERED] = {
    CLOCK_REALTIME,        CLOCK_MONOTONIC,        CLOCK_MONOTONIC_RAW,
    CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};

/* ---- the system ---------------------------------------------------------- */

static clock_functions found;

static const struct name {
    const char *name;
    void *at;
} names[] = {{"clock_gettime", &found.clock_gettime},
             {"clock_nanosleep", &found.clock_nanosleep},
             {"nanosleep", &found.nanosleep},
             {"pselect", &found.pselect},
             {"ppoll", &found.ppoll},
             {"epoll_pwait", &found.epoll_pwait},
             {"pthread_cond_timedwait", &found.cond_timedwait},
             {"pthread_cond_clockwait", &found.cond_clockwait},
             {"sem_clockwait", &found.sem_clockwait},
             {"pthread_mutex_clocklock", &found.mutex_clocklock}};

/* May run before this library's constructor, and in several threads, which all
 * find the same. */
const clock_functions *clock_system(void)
{
    static atomic_bool done;
    if (atomic_load_explicit(&done, memory_order_acquire)) return &found;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *at = dlsym(RTLD_NEXT, names[i].name);
        if (!at) abort(); /* unknown C library */
        memcpy(names[i].at, &at, sizeof at);
    }
    atomic_store_explicit(&done, true, memory_order_release);
    return &found;
}

static clock_ns system_time(clockid_t id)
{
    struct timespec t;
    clock_system()->clock_gettime(id, &t);
    return clock_of(&t);
}

clock_ns clock_of(const struct timespec *t)
{
    /* Clamps times in the far future. */
    if (t->tv_sec > INT64_MAX / CLOCK_S / 2) return INT64_MAX / 2;
    return (clock_ns)t->tv_sec * CLOCK_S + (clock_ns)t->tv_nsec;
}

struct timespec clock_timespec(clock_ns t)
{
    return (struct timespec){.tv_sec = t / CLOCK_S, .tv_nsec = t % CLOCK_S};
}

struct timespec clock_in(clock_ns t)
{
    return clock_timespec(system_time(CLOCK_MONOTONIC) + t);
}

/* ---- virtual time -------------------------------------------------------- */

static clock_ns virtual_now(void)
{
    return live_clock_virtual() / 1000;
}

static void start(void)
{
    for (int i = 0; i < N_ANSWERED; i++)
        the.anchor[i] = system_time(answered[i]);
    the.zero = virtual_now();
    atomic_store(&the.ready, true);
}

/* A launcher that starts the ranks by itself lives in real time, as its other
 * processes do. */
__attribute__((constructor)) static void loaded(void)
{
    if (!getenv("STEPCAST_EMULATE")) return;
    if (getenv("STEPCAST_RANK"))
        start();
    else
        live_clock_on_rank(start);
}

bool clock_is_virtual(void)
{
    return atomic_load_explicit(&the.ready, memory_order_acquire) &&
           !live_clock_inside();
}

static int clock_index(clockid_t id)
{
    int i = 0;
    while (i < N_ANSWERED && answered[i] != id) i++;
    return i;
}

bool clock_read(clockid_t id, clock_ns *out)
{
    int i = clock_index(id);
    if (i == N_ANSWERED || !clock_is_virtual()) return false;
    *out = the.anchor[i] + virtual_now() - the.zero;
    return true;
}

/* ---- limits -------------------------------------------------------------- */

static bool is_main(void)
{
    return syscall(SYS_gettid) == getpid();
}

/* CPU time of all other threads. */
static clock_ns cpu_of_others(void)
{
    return system_time(CLOCK_PROCESS_CPUTIME_ID) -
           system_time(CLOCK_THREAD_CPUTIME_ID);
}

static void begin(clock_limit *l, clock_ns now, clock_ns due)
{
    *l = (clock_limit){.due = due, .least = due - now, .main = is_main()};
}

void clock_limit_in(clock_limit *l, clock_ns relative)
{
    clock_ns now = virtual_now();
    begin(l, now, now + relative);
}

void clock_limit_at(clock_limit *l, clockid_t id, const struct timespec *t)
{
    int i = clock_index(id);
    begin(l, virtual_now(), clock_of(t) - the.anchor[i] + the.zero);
}

clock_ns clock_limit_slice(clock_limit *l)
{
    clock_ns left = l->due - virtual_now();
    if (left <= 0) return 0;
    l->cpu = cpu_of_others();
    l->slice = system_time(CLOCK_MONOTONIC);
    return left < SLICE ? left : SLICE;
}

bool clock_limit_passed(clock_limit *l)
{
    clock_ns real = system_time(CLOCK_MONOTONIC) - l->slice;
    bool work = cpu_of_others() - l->cpu > real / WORK;
    l->idle = l->main && work ? 0 : l->idle + real;
    if (virtual_now() >= l->due) return true;
    if (l->idle < l->least) return false;
    if (l->main && l->due < SC_TIME_MAX / 1000)
        (l->sleeps ? live_clock_sleep : live_clock_forward)(l->due * 1000);
    return true;
}

void clock_sleep(clock_limit *l)
{
    clock_ns slice;
    l->sleeps = true;
    if (l->main && l->least > LOOK) l->least = LOOK;
    while ((slice = clock_limit_slice(l)) > 0) {
        if (l->main && slice > NAP) slice = NAP;
        struct timespec t = clock_timespec(slice);
        clock_system()->nanosleep(&t, NULL);
        if (clock_limit_passed(l)) break;
    }
}
