/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - the program around the scenarios: probe NAME. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic sc_time cpu;

static sc_time scripted(void)
{
    return atomic_load(&cpu);
}

/* What interposers do takes no CPU time. */
static sc_time nothing(void)
{
    return 0;
}

void probe_work(sc_time ps)
{
    atomic_fetch_add(&cpu, ps);
}

void probe_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s does not hold\n", file, line, what);
    exit(1);
}

void probe_equal(sc_time x, sc_time y, const char *what, const char *file,
                 int line)
{
    if (x == y) return;
    fprintf(stderr, "%s:%d: %s: %lld and %lld ps\n", file, line, what,
            (long long)x, (long long)y);
    exit(1);
}

void probe_nap(void)
{
    uint64_t state = (uint64_t)live_clock_mono() ^ (uint64_t)getpid();
    long us = (long)sc_random_below(&state, 3000);
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

live_ticket probe_post(live *l, sc_coll coll, uint64_t bytes)
{
    live_op op = {.coll = coll,
                  .group = live_group(l, NULL, 0, 0),
                  .bytes = bytes,
                  .async = true};
    return live_post(l, &op, live_now(l));
}

void probe_run(live *l, sc_coll coll, uint64_t bytes)
{
    live_op op = {
        .coll = coll, .group = live_group(l, NULL, 0, 0), .bytes = bytes};
    live_enter(l);
    live_wait(l, live_post(l, &op, live_now(l)));
    live_leave(l);
}

static const probe_scenario *find(const probe_scenario *s, const char *name)
{
    while (s->name && strcmp(s->name, name) != 0) s++;
    return s->name ? s : NULL;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const probe_scenario *s = find(probe_alone, name);
    if (!s) s = find(probe_several, name);
    if (!s) {
        fprintf(stderr, "usage: probe SCENARIO\n");
        return 2;
    }
    live_clock_source(&(live_cpu){scripted, nothing});
    s->run(live_get());
    return 0;
}
