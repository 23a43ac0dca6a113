/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the machine's clock and the virtual clock.
 *
 * The virtual clock is the CPU time of the process without that of the
 * interposers, times the rank's factor as a straggler, plus waits. It belongs
 * to the process, not to a rank: the library that answers time calls reads it
 * before the first collective is called.
 */
#include "common/inside.h"

#include <time.h>

/* Readings of two clocks that are this close belong together. */
#define PAIR_PS    3000000LL
#define PAIR_TRIES 4

static sc_time read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (sc_time)t.tv_sec * SC_PS_PER_S + (sc_time)t.tv_nsec * 1000;
}

static sc_time cpu_process(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static sc_time cpu_thread(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static struct {
    live_cpu cpu;
    _Atomic sc_time skipped; /* put forward */
    _Atomic sc_time own;     /* CPU time of the interposers */
    _Atomic sc_time last;    /* latest time that was returned */
    _Atomic double factor;   /* 0: 1 */
    _Atomic sc_time
        slow;        /* CPU time of the program from which the factor holds */
    sc_time at_fork; /* CPU time of the parent */
} the = {.cpu = {cpu_process, cpu_thread}};

static _Thread_local struct {
    uint32_t depth;
    sc_time since;  /* CPU time at the outermost enter */
    sc_time waited; /* since then */
} mine;

void live_clock_source(const live_cpu *cpu)
{
    the.cpu = *cpu;
}

sc_time live_clock_mono(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* CPU time of the process; *thread: that of the thread at the same moment.
 * An interrupt between the two readings counts in only one of them. */
static sc_time cpu_both(sc_time *thread)
{
    sc_time before = the.cpu.thread(), process, after;
    for (int tries = 0;; tries++) {
        process = the.cpu.process();
        after = the.cpu.thread();
        if (after - before <= PAIR_PS || tries == PAIR_TRIES) break;
        before = after;
    }
    *thread = after;
    return process;
}

/* CPU time of the program. */
static sc_time cpu_program(void)
{
    sc_time thread, own = atomic_load(&the.own);
    if (mine.depth == 0) return the.cpu.process() - own;
    sc_time process = cpu_both(&thread);
    return process - own - (thread - mine.since);
}

static sc_time unbounded(void)
{
    sc_time t = cpu_program();
    double factor = atomic_load(&the.factor);
    if (factor > 0) {
        sc_time from = atomic_load(&the.slow);
        t = from + (sc_time)((double)(t - from) * factor);
    }
    return t + atomic_load(&the.skipped);
}

void live_clock_slow(double factor)
{
    atomic_store(&the.slow, cpu_program());
    atomic_store(&the.factor, factor);
}

/* The clock has shown `t`, or later. */
static sc_time shown(sc_time t)
{
    sc_time last = atomic_load(&the.last);
    while (t > last)
        if (atomic_compare_exchange_weak(&the.last, &last, t)) return t;
    return last;
}

sc_time live_clock_virtual(void)
{
    /* The CPU time that another thread uses inside is known only when it
     * leaves: the clock then stands still until time has caught up. */
    return shown(unbounded());
}

void live_clock_forward(sc_time t)
{
    /* Needed even while the clock stands still, or it would not reach `t`. */
    sc_time now = unbounded();
    if (t > now) atomic_fetch_add(&the.skipped, t - now);
    shown(t);
}

void live_clock_enter(bool virt)
{
    if (mine.depth++ > 0) return;
    mine.waited = 0;
    mine.since = virt ? the.cpu.thread() : live_clock_mono();
}

sc_time live_clock_leave(bool virt)
{
    if (--mine.depth > 0) return 0;
    sc_time now = virt ? the.cpu.thread() : live_clock_mono();
    sc_time own = now - mine.since;
    if (virt) atomic_fetch_add(&the.own, own);
    own -= mine.waited;
    return own > 0 ? own : 0;
}

bool live_clock_inside(void)
{
    return mine.depth > 0;
}

void live_clock_waited(sc_time ps)
{
    mine.waited += ps;
}

void live_clock_burn(sc_time ps)
{
    sc_time until = the.cpu.thread() + ps;
    while (the.cpu.thread() < until) {
    }
}

void live_clock_fork(int stage)
{
    if (stage == 0) the.at_fork = the.cpu.process();
    /* The child's CPU time begins at 0. */
    if (stage == 1) atomic_fetch_sub(&the.own, the.at_fork);
}
