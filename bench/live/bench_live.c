/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_live.c - a collective of a live program where the modelled time is 0:
 * what is left is what interposition adds.  Once with the world in the process,
 * once with two real ranks (two threads here) in a launcher.
 */
#include "bench.h"
#include "common/inside.h"
#include "emu/emu_shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "bench-live-XXXXXX";

static void in_folder(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text)
{
    char path[64];
    in_folder(path, sizeof path, name);
    if (sc_file_write(path, text, strlen(text), NULL) != SC_OK)
        bench_fail("a file can't be written");
}

static void clean(void)
{
    static const char *const names[] = {"times.yml", "emulate.yml", "log.0",
                                        "rank.0", "shared"};
    char path[64];
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        in_folder(path, sizeof path, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void)
{
    char text[256];
    if (!mkdtemp(folder)) bench_fail("no folder");
    atexit(clean);
    write_file("times.yml", "ranks: 8\ndefault: {alpha: 0us, beta: 1TB/s}\n");
    snprintf(text, sizeof text,
             "cluster: 'ring8@100GB/s,1us'\nworld-size: 8\n"
             "delay-model: 'alpha-beta:%s/times.yml'\n",
             folder);
    write_file("emulate.yml", text);
}

/* ---- one real rank ---------------------------------------------------------- */

static void collective(void *ctx, uint64_t n)
{
    live *l = ctx;
    live_op op = {.coll = SC_ALL_REDUCE, .group = live_group(l, NULL, 0, 0)};
    for (uint64_t i = 0; i < n; i++) {
        live_enter(l);
        live_wait(l, live_post(l, &op, live_now(l)));
        live_leave(l);
    }
}

/* One that is under way: what a test costs that finds nothing. */
static void test(void *ctx, uint64_t n)
{
    live *l = ctx;
    live_op op = {.coll = SC_ALL_REDUCE,
                  .group = live_group(l, NULL, 0, 0),
                  .bytes = (uint64_t)1 << 50,
                  .async = true};
    live_ticket k = live_post(l, &op, live_now(l));
    for (uint64_t i = 0; i < n; i++) live_test(l, k);
    live_cancel(l, k);
}

static void one_rank(void)
{
    setenv("STEPCAST_EMULATE", folder, 1);
    setenv("STEPCAST_RANK", "0", 1);
    live *l = live_get();
    if (!l) bench_fail("no rank");
    bench_case("live_collective", collective, l, 100000);
    bench_calls("live_collective", collective, l, 200000);
    bench_case("live_test", test, l, 100000);
}

/* ---- two real ranks ----------------------------------------------------------- */

typedef struct pair {
    sc_emu_shared *world;
    sc_emu_port *port[2];
    uint64_t n; /* operations of the other rank */
    sc_time start;
} pair;

static void *serve(void *arg)
{
    pair *p = arg;
    sc_emu_serve_world(p->world, NULL);
    return NULL;
}

static void operate(pair *p, uint32_t rank, uint64_t n)
{
    sc_emu_port *port = p->port[rank];
    sc_emu_op op = {.coll = SC_ALL_REDUCE, .rank = rank};
    for (uint64_t i = 0; i < n; i++) {
        bool done = false;
        sc_time begin, end;
        sc_emu_cell k;
        sc_time now = live_clock_mono() - p->start;
        if (sc_emu_port_post(port, &op, false, now, &k, NULL) != SC_OK)
            bench_fail("an operation can't be posted");
        while (!done) {
            uint32_t seen = sc_emu_port_seen(port);
            if (sc_emu_port_done(port, k, &done, &begin, &end, NULL) != SC_OK)
                bench_fail("the world is no more");
            if (!done) sc_emu_port_sleep(port, seen, SC_TIME_MAX);
        }
        sc_emu_port_free(port, k);
    }
}

/* So that operate() can be timed call by call, the other rank has as many. */
static void one_operation(void *ctx, uint64_t n)
{
    operate(ctx, 0, n);
}

static void *other(void *arg)
{
    pair *p = arg;
    operate(p, 1, p->n);
    return NULL;
}

static void shared_collective(void *ctx, uint64_t n)
{
    pair *p = ctx;
    pthread_t thread;
    p->n = n;
    if (pthread_create(&thread, NULL, other, p) != 0) bench_fail("no thread");
    operate(p, 0, n);
    pthread_join(thread, NULL);
}

static void shared_calls(pair *p, uint64_t n)
{
    pthread_t thread;
    if (bench_only_counts()) return;
    p->n = n;
    if (pthread_create(&thread, NULL, other, p) != 0) bench_fail("no thread");
    bench_calls("live_shared_collective", one_operation, p, n);
    pthread_join(thread, NULL);
}

static void two_ranks(void)
{
    sc_arena a;
    sc_emu_config c;
    pair p = {0};
    pthread_t thread;
    char path[64], model[96];
    const char *ranks[2] = {"0-1", NULL};
    in_folder(path, sizeof path, "shared");
    snprintf(model, sizeof model, "alpha-beta:%s/times.yml", folder);
    sc_emu_options o = {.cluster = "ring8@100GB/s,1us",
                        .world_size = 8,
                        .ranks = ranks,
                        .delay_model = model,
                        .peer_data = "mirror",
                        .peers = "mirror"};
    sc_arena_init(&a, 0);
    if (sc_emu_resolve(&o, &a, &c, NULL) != SC_OK ||
        sc_emu_shared_new(path, &c, &a, &p.world, NULL) != SC_OK ||
        sc_emu_port_open(path, 0, &a, &p.port[0], NULL) != SC_OK ||
        sc_emu_port_open(path, 1, &a, &p.port[1], NULL) != SC_OK ||
        pthread_create(&thread, NULL, serve, &p) != 0)
        bench_fail("no shared world");
    p.start = sc_emu_port_start(p.port[0]);
    bench_case("live_shared_collective", shared_collective, &p, 5000);
    shared_calls(&p, 20000);
    sc_emu_shared_stop(p.world);
    pthread_join(thread, NULL);
    sc_emu_shared_close(p.world);
    sc_arena_free(&a);
}

void bench_main(void)
{
    make_folder();
    one_rank();
    two_ranks();
}
