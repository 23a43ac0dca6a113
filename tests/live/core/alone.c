/* SPDX-License-Identifier: Apache-2.0 */
/* alone.c - one real rank among emulated ones. */
#include "probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The delay model of the tests: an operation takes 100 us and 1 us per 1000
 * bytes alone. */
#define ALONE(bytes) (100 * US + (sc_time)(bytes)*1000)

static void none(live *l)
{
    PROBE(!l);
}

/* Prints nothing, does nothing else: who is it? */
static void hold(live *l)
{
    PROBE(l);
    printf("%u of %u\n", live_rank(l), live_world(l));
    fflush(stdout);
    char c;
    PROBE(read(STDIN_FILENO, &c, 1) >= 0);
}

static void real_clock(live *l)
{
    for (int i = 0; i < 20; i++) {
        sc_time from = live_now(l);
        probe_run(l, SC_ALL_REDUCE, 1000 * (uint64_t)i);
        PROBE(live_now(l) - from >= ALONE(1000 * i));
    }
    live_ticket k = probe_post(l, SC_ALL_REDUCE, 300000000);
    sc_time from = live_now(l);
    PROBE(!live_test(l, k));
    PROBE(!live_wait_by(l, k, from + 300 * US));
    PROBE(live_now(l) >= from + 300 * US);
    while (!live_test(l, k)) {
    }
    PROBE(live_now(l) >= from + 300000 * US);
    PROBE(live_test(l, k)); /* gone */
    live_serve(l, probe_post(l, SC_BARRIER, 0));
}

static void virtual_clock(live *l)
{
    sc_time t = 0;
    PROBE_EQ(live_now(l), 0);
    for (int i = 0; i < 5; i++) {
        probe_work(70 * US);
        t += 70 * US;
        PROBE_EQ(live_now(l), t);
        probe_run(l, SC_ALL_REDUCE, 50000);
        t += ALONE(50000);
        PROBE_EQ(live_now(l), t);
    }
    /* hidden behind work, entirely and in part */
    live_ticket k = probe_post(l, SC_ALL_REDUCE, 50000);
    probe_work(1000 * US);
    live_wait(l, k);
    PROBE_EQ(live_now(l), t += 1000 * US);
    k = probe_post(l, SC_ALL_REDUCE, 50000);
    probe_work(110 * US);
    PROBE(!live_test(l, k));
    live_wait(l, k);
    PROBE_EQ(live_now(l), t + ALONE(50000));
    t += ALONE(50000);
    /* given up, and then waited for */
    k = probe_post(l, SC_ALL_REDUCE, 50000);
    PROBE(!live_wait_by(l, k, t + 20 * US));
    PROBE_EQ(live_now(l), t + 20 * US);
    PROBE(live_wait_by(l, k, SC_TIME_MAX));
    PROBE_EQ(live_now(l), t + ALONE(50000));
}

/* Three times as slow, while its peers are as they were. */
static void slow(live *l)
{
    for (sc_time t = 0; t < 10 * ALONE(50000);) {
        probe_work(70 * US);
        t += 210 * US;
        PROBE_EQ(live_now(l), t);
        live_ticket k = probe_post(l, SC_ALL_REDUCE, 50000);
        PROBE(!live_wait_by(l, k, t + 10 * US));
        PROBE_EQ(live_now(l), t + 10 * US);
        live_wait(l, k);
        PROBE_EQ(live_now(l), t += ALONE(50000));
    }
    sc_time before = live_now(l);
    pid_t child = fork();
    PROBE(child >= 0);
    if (child == 0) {
        probe_work(US);
        _exit(live_now(l) < before);
    }
    int status;
    PROBE(waitpid(child, &status, 0) == child && status == 0);
}

/* A program that only tests does not test for ever, nor past the end. */
static void polling(live *l)
{
    live_ticket k = probe_post(l, SC_ALL_REDUCE, 50000);
    uint32_t n = 0;
    while (!live_test(l, k)) n++;
    PROBE(n > 2 && n < 1000);
    PROBE_EQ(live_now(l), ALONE(50000));
}

/* A reading of the CPU time that is too small, as after an interrupt between
 * two readings, never shows a time before the end of what was waited for. */
static void unsteady(live *l)
{
    probe_run(l, SC_ALL_REDUCE, 50000);
    probe_work(-30 * US);
    PROBE_EQ(live_now(l), ALONE(50000));
    probe_run(l, SC_ALL_REDUCE, 50000);
    PROBE_EQ(live_now(l), 2 * ALONE(50000));
}

static void weak(live *l)
{
    live_set_progress(l, true);
    live_ticket a = probe_post(l, SC_ALL_REDUCE, 50000);
    probe_work(1000 * US);
    live_wait(l, a); /* begins only now */
    PROBE_EQ(live_now(l), 1000 * US + ALONE(50000));
    sc_time t = live_now(l);
    a = probe_post(l, SC_ALL_REDUCE, 50000);
    probe_work(10 * US);
    probe_run(l, SC_ALL_REDUCE, 0); /* inside, all of them go on */
    probe_work(1000 * US);
    sc_time before = live_now(l);
    live_wait(l, a);
    PROBE_EQ(live_now(l), before);
    PROBE(before > t + 1000 * US + ALONE(0));
}

static void cancel(live *l)
{
    live_ticket a = probe_post(l, SC_ALL_REDUCE, 50000);
    live_cancel(l, a);
    live_wait(l, a);
    PROBE_EQ(live_now(l), 0);
    live_forget(l, probe_post(l, SC_ALL_REDUCE, 50000));
    probe_run(l, SC_ALL_REDUCE, 50000);
    PROBE(live_now(l) >= ALONE(50000));
}

static void streams(live *l)
{
    live_ended e[4];
    sc_time next;
    live_ticket a = probe_post(l, SC_ALL_REDUCE, 50000);
    sc_time now = 10 * US;
    for (; live_poll(l, now, e, 4, &next) == 0; now = next) {
        PROBE(next > now);
        PROBE(next <= ALONE(50000));
    }
    PROBE_EQ(now, ALONE(50000));
    PROBE(e[0].ticket == a);
    PROBE_EQ(e[0].begin, 0);
    PROBE_EQ(e[0].end, ALONE(50000));
    live_resumed(l, a, 3 * US, e[0].end + US);
    PROBE(live_poll(l, now, e, 4, &next) == 0);
    PROBE_EQ(next, SC_TIME_MAX);
    for (int i = 0; i < 6; i++) probe_post(l, SC_ALL_REDUCE, 0);
    uint32_t n = 0, got = 4;
    for (now = SC_PS_PER_S; got == 4; n += got)
        got = live_poll(l, now, e, 4, &next);
    PROBE(n == 6);
}

static void forks(live *l)
{
    probe_run(l, SC_ALL_REDUCE, 0);
    sc_time before = live_clock_virtual();
    pid_t child = fork();
    PROBE(child >= 0);
    if (child == 0) _exit(live_get() || live_clock_virtual() < before);
    int status;
    PROBE(waitpid(child, &status, 0) == child && status == 0);
    probe_run(l, SC_ALL_REDUCE, 0);
    PROBE(live_get() == l);
}

static void talk(live *l)
{
    live_warn(l, "%s", "this is odd");
    live_warn(l, "%s", "this is odd");
    live_passed(l);
    printf("said");
    live_die(l, "no way %d", 7);
}

/* A rank that never comes: the wait is the program's to end. */
static void failing(live *l)
{
    live_ticket k = probe_post(l, SC_ALL_REDUCE, 0);
    PROBE(!live_wait_by(l, k, SC_PS_PER_S));
    PROBE_EQ(live_now(l), SC_PS_PER_S);
    live_cancel(l, k);
}

static void *other_thread(void *arg)
{
    live *l = arg;
    for (int i = 0; i < 200; i++) probe_run(l, SC_ALL_REDUCE, 10);
    return NULL;
}

static void threads(live *l)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        PROBE(pthread_create(&t[i], NULL, other_thread, l) == 0);
    for (int i = 0; i < 4; i++) PROBE(pthread_join(t[i], NULL) == 0);
    PROBE(live_now(l) >= 200 * ALONE(10));
}

static void sent(live *l)
{
    PROBE(!live_last_sent(l, 3));
    live_sent(l, "abc", 3);
    live_sent(l, "1234", 4);
    live_sent(l, "xyz", 3);
    PROBE(memcmp(live_last_sent(l, 3), "xyz", 3) == 0);
    PROBE(memcmp(live_last_sent(l, 4), "1234", 4) == 0);
    PROBE(!live_last_sent(l, 5));
    live_op op = {.coll = SC_ALL_GATHER, .silent = true, .bytes = 100};
    live_wait(l, live_post(l, &op, live_now(l)));
    PROBE_EQ(live_now(l), 0);
    sc_emu_data *d = live_data(l);
    PROBE(d == live_data(l) && d->kind == SC_EMU_DATA_MIRROR);
}

static long resident_kb(void)
{
    char line[200];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    PROBE(f);
    while (kb < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0) kb = strtol(line + 6, NULL, 10);
    fclose(f);
    return kb;
}

/* Most of the world is a number. */
static void large(live *l)
{
    uint32_t n = live_world(l), *v = malloc(n * sizeof *v);
    PROBE(v && n >= 4096);
    for (uint32_t i = 0; i < n / 8; i++) v[i] = 8 * i;
    live_op op = {.coll = SC_ALL_REDUCE,
                  .group = live_group(l, v, n / 8, 0),
                  .bytes = 1 << 20};
    live_wait(l, live_post(l, &op, live_now(l)));
    probe_run(l, SC_BROADCAST, 1000);
    free(v);
    PROBE(live_now(l) > 0);
    PROBE(resident_kb() < 50 * 1024);
}

/* What a worker of torchrun sees. */
static void environment(live *l)
{
    static const char *const names[] = {"RANK", "WORLD_SIZE", "MASTER_PORT",
                                        "LOCAL_RANK"};
    (void)l;
    for (size_t i = 0; i < SC_COUNT(names); i++)
        printf("%s=%s ", names[i], getenv(names[i]) ? getenv(names[i]) : "-");
    if (getenv("PROBE_AGENT")) {
        fflush(stdout);
        unsetenv("PROBE_AGENT");
        setenv("RANK", "0", 1);
        setenv("WORLD_SIZE", "1", 1);
        setenv("MASTER_PORT", "9", 1);
        setenv("LOCAL_RANK", "0", 1);
        setenv("TORCHELASTIC_RUN_ID", "other", 1);
        execl("/proc/self/exe", "probe", "environment", (char *)NULL);
    }
}

const probe_scenario probe_alone[] = {
    {"none", none},         {"hold", hold},
    {"real", real_clock},   {"virtual", virtual_clock},
    {"slow", slow},         {"polling", polling},
    {"weak", weak},         {"cancel", cancel},
    {"streams", streams},   {"forks", forks},
    {"talk", talk},         {"failing", failing},
    {"threads", threads},   {"sent", sent},
    {"large", large},       {"environment", environment},
    {"unsteady", unsteady}, {NULL, NULL}};
