/* SPDX-License-Identifier: Apache-2.0 */
/* several.c - some real ranks of a world of 8, which their launcher owns. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALONE(bytes) (100 * US + (sc_time)(bytes)*1000)

static live_ticket post(live *l, const live_op *op)
{
    return live_post(l, op, live_now(l));
}

static uint64_t peer_value(live *l, live_ticket k, uint32_t rank)
{
    size_t len;
    const void *p = live_peer(l, k, rank, &len);
    uint64_t v;
    PROBE(p && len == sizeof v);
    memcpy(&v, p, sizeof v);
    return v;
}

static void check_sum(live *l, const live_op *op, uint64_t i)
{
    uint32_t n = live_config(l)->n_real;
    uint64_t mine = i * 100 + live_rank(l) + 1, sum = 0, want = 0;
    live_ticket k = post(l, op);
    live_push(l, k, &mine, sizeof mine);
    live_wait(l, k);
    for (uint32_t r = 0; r < n; r++) {
        sum += peer_value(l, k, r);
        want += i * 100 + r + 1;
    }
    live_drop(l, k);
    PROBE(sum == want);
}

static void check_broadcast(live *l, uint32_t g, uint64_t i)
{
    live_op op = {.coll = SC_BROADCAST, .group = g, .peer = 1, .bytes = 8};
    uint64_t mine = live_rank(l) * 1000 + i;
    size_t len;
    live_ticket k = post(l, &op);
    if (live_rank(l) == 1) live_push(l, k, &mine, sizeof mine);
    live_wait(l, k);
    PROBE(peer_value(l, k, 1) == 1000 + i);
    PROBE(!live_peer(l, k, 0, &len) && len == 0);
    live_drop(l, k);
}

static void check_gather(live *l, uint32_t g)
{
    live_op op = {.coll = SC_GATHER, .group = g, .peer = 0, .bytes = 80};
    uint64_t mine = 7 + live_rank(l);
    live_ticket k = post(l, &op);
    live_push(l, k, &mine, sizeof mine);
    live_wait(l, k);
    for (uint32_t r = 0; live_rank(l) == 0 && r < live_config(l)->n_real; r++)
        PROBE(peer_value(l, k, r) == 7 + r);
    live_drop(l, k);
}

/* To the next one, from the one before. */
static void check_ring(live *l, uint32_t g, uint64_t i)
{
    uint32_t n = live_config(l)->n_real, me = live_rank(l);
    live_op send = {.coll = SC_SEND,
                    .group = g,
                    .peer = (me + 1) % n,
                    .bytes = 8,
                    .async = true};
    live_op recv = send;
    recv.coll = SC_RECV;
    recv.peer = (me + n - 1) % n;
    uint64_t mine = 10 * me + i;
    live_ticket s = post(l, &send), r = post(l, &recv);
    live_push(l, s, &mine, sizeof mine);
    live_wait(l, r);
    PROBE(peer_value(l, r, recv.peer) == 10 * recv.peer + i);
    live_drop(l, r);
    live_wait(l, s);
    live_drop(l, s);
}

static void sums(live *l)
{
    uint32_t g = live_group(l, NULL, 0, 0), pair[3] = {0, 1, 7};
    live_op all = {.coll = SC_ALL_REDUCE, .group = g, .bytes = 8};
    live_op quiet = {
        .coll = SC_ALL_GATHER, .group = g, .bytes = 8, .silent = true};
    for (uint64_t i = 0; i < 200; i++) {
        check_sum(l, &all, i);
        check_sum(l, &quiet, i);
        check_broadcast(l, g, i);
        check_ring(l, g, i);
    }
    check_gather(l, g);
    if (live_rank(l) < 2) {
        uint32_t sub = live_group(l, pair, 3, 0);
        PROBE(sub != g);
        probe_run(l, SC_BARRIER, 0);
    } else {
        probe_run(l, SC_BARRIER, 0);
    }
}

/* A larger and larger buffer: room for it is found, and found again. */
static void buffers(live *l)
{
    uint32_t g = live_group(l, NULL, 0, 0);
    static unsigned char data[1 << 20];
    live_op op = {.coll = SC_ALL_GATHER, .group = g, .bytes = 8};
    for (uint32_t i = 0; i < 60; i++) {
        size_t len = (size_t)17000 * (i % 20 + 1), got;
        memset(data, (int)(live_rank(l) * 50 + i), len);
        live_ticket k = post(l, &op);
        live_push(l, k, data, len);
        live_wait(l, k);
        for (uint32_t r = 0; r < live_config(l)->n_real; r++) {
            const unsigned char *p = live_peer(l, k, r, &got);
            PROBE(p && got == len);
            PROBE(p[0] == (unsigned char)(r * 50 + i) && p[len - 1] == p[0]);
        }
        live_drop(l, k);
    }
}

/* The last one decides; the others wait for it, all for the network. */
static void steps(live *l)
{
    uint32_t n = live_config(l)->n_real, me = live_rank(l);
    sc_time t = 0;
    for (uint32_t i = 0; i < 30; i++) {
        if (i % 3 == 0) probe_nap();
        probe_work((10 + (me + i) % n) * US);
        probe_run(l, SC_ALL_REDUCE, 1000 * i);
        t += (10 + n - 1) * US + ALONE(1000 * i);
        PROBE_EQ(live_now(l), t);
    }
}

/* Pairs of their own, tests, times that depend on who shares the network when:
 * the same ones on every run. */
static void mixed(live *l)
{
    uint32_t me = live_rank(l), g = live_group(l, NULL, 0, 0);
    uint32_t own[2] = {me, 7};
    uint32_t sub = live_group(l, own, 2, 0);
    uint64_t state = me + 1;
    for (uint32_t i = 0; i < 40; i++) {
        live_op big = {.coll = SC_ALL_REDUCE,
                       .group = sub,
                       .bytes = 1000 * sc_random_below(&state, 500),
                       .async = true};
        live_ticket k = post(l, &big);
        probe_work((sc_time)sc_random_below(&state, 300) * US);
        if (i % 4 == me % 4) probe_nap();
        if (i % 5 == 0)
            while (!live_test(l, k)) {
            }
        live_op all = {
            .coll = SC_ALL_REDUCE, .group = g, .bytes = 10000, .async = i % 2};
        live_ticket a = post(l, &all);
        if (i % 3 == 0) live_wait_by(l, a, live_now(l) + 50 * US);
        live_wait(l, k);
        live_wait(l, a);
        printf("%u %lld\n", i, (long long)live_now(l));
    }
}

static void real_clock(live *l)
{
    for (int i = 0; i < 50; i++) {
        sc_time from = live_now(l);
        probe_run(l, SC_ALL_REDUCE, 1000);
        PROBE(live_now(l) - from >= ALONE(1000));
    }
}

/* Rank 1 ends without a word: for the others, it never comes. */
static void leaver(live *l)
{
    probe_run(l, SC_ALL_REDUCE, 0);
    if (live_rank(l) == 1) _exit(0);
    live_ticket k = probe_post(l, SC_ALL_REDUCE, 0);
    sc_time by = live_now(l) + SC_PS_PER_S / 10;
    PROBE(!live_wait_by(l, k, by));
    PROBE(live_now(l) >= by);
    live_cancel(l, k);
}

/* A pipeline that is far ahead: thousands of messages at once. */
static void many(live *l)
{
    enum { N = 5000 };

    static live_ticket k[N];
    uint64_t v = 0;
    uint32_t g = live_group(l, NULL, 0, 0);
    live_op op = {.coll = live_rank(l) == 0 ? SC_SEND : SC_RECV,
                  .group = g,
                  .peer = 1 - live_rank(l),
                  .bytes = 8,
                  .async = true};
    if (live_rank(l) == 1) probe_nap();
    for (uint64_t i = 0; i < N; i++) {
        k[i] = post(l, &op);
        v = i * i;
        if (live_rank(l) == 0) live_push(l, k[i], &v, sizeof v);
    }
    for (uint64_t i = 0; i < N; i++) {
        live_wait(l, k[i]);
        if (live_rank(l) == 1) PROBE(peer_value(l, k[i], 0) == i * i);
        live_drop(l, k[i]);
    }
    live_cancel(l, probe_post(l, SC_ALL_REDUCE, 0));
    for (uint64_t i = 0; i < 200; i++) check_ring(l, g, i);
}

/* Rank 0 computes while rank 1 is served; how often that took far longer. */
static uint32_t spin(live *l)
{
    uint32_t own[2] = {live_rank(l), 7}, late = 0;
    uint32_t n = live_rank(l) == 0 ? 20 : 200;
    live_op op = {.coll = SC_ALL_REDUCE,
                  .group = live_group(l, own, 2, 0),
                  .bytes = 1000};
    probe_run(l, SC_BARRIER, 0);
    for (uint32_t i = 0; i < n; i++) {
        sc_time from = live_now(l);
        if (live_rank(l) == 0)
            while (live_now(l) < from + 20000 * US) {
            }
        from = live_now(l);
        live_wait(l, post(l, &op));
        PROBE(live_now(l) > from);
        late += live_now(l) > from + 5000 * US;
    }
    probe_run(l, SC_BARRIER, 0);
    return late;
}

static void spins(live *l)
{
    spin(l); /* on one core: late is who waits for it */
}

static void spins_apart(live *l)
{
    PROBE(spin(l) <= 5);
}

/* Whoever comes last is told. */
static void differ(live *l)
{
    probe_post(l, SC_ALL_REDUCE, live_rank(l) == 1 ? 1000 : 2000);
    live_ticket k = probe_post(l, SC_ALL_REDUCE, 0);
    live_wait_by(l, k, live_now(l) + SC_PS_PER_S / 2);
}

/* Rank 1 waits for something outside that rank 0 does only behind operations of
 * its own. */
static void outside(live *l)
{
    const char *folder = getenv("STEPCAST_EMULATE");
    char path[4096];
    snprintf(path, sizeof path, "%s/outside", folder);
    uint32_t own[2] = {live_rank(l), 7};
    uint32_t sub = live_group(l, own, 2, 0);
    live_op op = {.coll = SC_ALL_REDUCE, .group = sub, .bytes = 1000};
    if (live_rank(l) == 0) {
        live_wait(l, post(l, &op));
        FILE *f = fopen(path, "w");
        PROBE(f && fclose(f) == 0);
    } else {
        while (access(path, F_OK) != 0) probe_nap();
    }
    probe_run(l, SC_ALL_REDUCE, 0);
}

const probe_scenario probe_several[] = {
    {"sums", sums},     {"buffers", buffers},         {"steps", steps},
    {"mixed", mixed},   {"several", real_clock},      {"leaver", leaver},
    {"differ", differ}, {"outside", outside},         {"many", many},
    {"spins", spins},   {"spins-apart", spins_apart}, {NULL, NULL}};
