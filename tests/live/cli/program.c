/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - a rank that does what its words say, one after the other:
 *
 *   all_reduce BYTES, all_gather BYTES, barrier    and waits for it
 *   start BYTES        an all-reduce that is not waited for until
 *   finish             waits for it
 *   compute MS         burns so much CPU time
 *   times N ... end    repeats
 *   as RANK WORD [X]   only that rank does
 *   abort, segv, hang, exit CODE, fork (a child that only sleeps)
 */
#include "common/live.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct program {
    live *l;
    uint32_t world; /* the group of all ranks */
    char **word;
    int n, at;
    live_ticket started;
} program;

static long next_number(program *p)
{
    return p->at < p->n ? strtol(p->word[p->at++], NULL, 10) : 0;
}

static live_ticket post(program *p, sc_coll coll, bool async)
{
    live_op op = {.coll = coll,
                  .group = p->world,
                  .bytes = coll == SC_BARRIER ? 0 : (uint64_t)next_number(p),
                  .async = async};
    return live_post(p->l, &op, live_now(p->l));
}

static void collective(program *p, sc_coll coll)
{
    live_enter(p->l);
    live_wait(p->l, post(p, coll, false));
    live_leave(p->l);
}

static void compute(long ms)
{
    struct timespec t;
    int64_t end = 0, now;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        now = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
        if (!end) end = now + ms * 1000;
    } while (now < end);
}

static void run(program *p);

static void times(program *p)
{
    long n = next_number(p);
    for (int from = p->at; n > 0; n--) {
        p->at = from;
        run(p);
    }
}

static void leave_child(void)
{
    if (fork() == 0)
        for (;;) pause();
}

/* False: it is no word of the first kind. */
static bool talk(program *p, const char *w)
{
    if (strcmp(w, "all_reduce") == 0)
        collective(p, SC_ALL_REDUCE);
    else if (strcmp(w, "all_gather") == 0)
        collective(p, SC_ALL_GATHER);
    else if (strcmp(w, "barrier") == 0)
        collective(p, SC_BARRIER);
    else if (strcmp(w, "start") == 0)
        p->started = post(p, SC_ALL_REDUCE, true);
    else if (strcmp(w, "finish") == 0)
        live_wait(p->l, p->started);
    else
        return false;
    return true;
}

static void one(program *p, const char *w)
{
    if (talk(p, w)) return;
    if (strcmp(w, "compute") == 0) {
        compute(next_number(p));
    } else if (strcmp(w, "times") == 0) {
        times(p);
    } else if (strcmp(w, "exit") == 0) {
        exit((int)next_number(p));
    } else if (strcmp(w, "fork") == 0) {
        leave_child();
    } else if (strcmp(w, "abort") == 0) {
        abort();
    } else if (strcmp(w, "segv") == 0) {
        raise(SIGSEGV);
    } else if (strcmp(w, "hang") == 0) {
        for (;;) pause();
    } else {
        fprintf(stderr, "no such word: %s\n", w);
        exit(2);
    }
}

/* "as 8 abort": others step over it. */
static void as(program *p)
{
    bool mine = next_number(p) == (long)live_rank(p->l);
    const char *w = p->word[p->at++];
    bool takes = strcmp(w, "compute") == 0 || strcmp(w, "exit") == 0 ||
                 strcmp(w, "all_reduce") == 0 || strcmp(w, "all_gather") == 0;
    if (mine)
        one(p, w);
    else
        p->at += takes;
}

static void run(program *p)
{
    while (p->at < p->n) {
        const char *w = p->word[p->at++];
        if (strcmp(w, "end") == 0) return;
        if (strcmp(w, "as") == 0)
            as(p);
        else
            one(p, w);
    }
}

int main(int argc, char **argv)
{
    program p = {.l = live_get(), .word = argv, .n = argc, .at = 1};
    if (!p.l) {
        fprintf(stderr, "not under stepcast emulate\n");
        return 2;
    }
    p.world = live_group(p.l, NULL, live_world(p.l), 0);
    run(&p);
    return 0;
}
