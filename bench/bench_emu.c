/* SPDX-License-Identifier: Apache-2.0 */
/* bench_emu.c - what an emulated world costs per operation of a real rank, per
 * group, and to begin. */
#include "bench.h"
#include "emu/emu.h"
#include "net/net_flow.h"

#define WORLD  65536u
#define GROUPS (WORLD / 8)

typedef struct bench_world {
    sc_arena keep, a;
    sc_err err;
    sc_emu_config c;
    sc_emu *e;
    uint32_t group; /* other than the world */
    sc_time t;
} bench_world;

static void need(bench_world *w, bool ok)
{
    if (!ok) bench_fail(w->err.n ? w->err.d[0].msg : "out of memory");
}

static void begin(bench_world *w, const char *cluster, int64_t world,
                  const char **what_if)
{
    sc_emu_options o = {.cluster = cluster,
                        .world_size = world,
                        .what_if = what_if,
                        .clock = SC_EMU_VIRTUAL,
                        .siblings = true};
    *w = (bench_world){.t = 0};
    sc_arena_init(&w->keep, 0);
    sc_arena_init(&w->a, 0);
    sc_err_init(&w->err);
    need(w, sc_emu_resolve(&o, &w->keep, &w->c, &w->err) == SC_OK);
}

static void open_world(bench_world *w)
{
    uint32_t rank[16];
    for (uint32_t i = 0; i < 16; i++) rank[i] = i * w->c.hw->node_size;
    need(w, sc_emu_new(&w->c, &w->a, &w->e, &w->err) == SC_OK);
    need(w, sc_emu_group(w->e, rank, w->c.hw->n_nodes < 16 ? 1 : 16, 0,
                         &w->group, &w->err) == SC_OK);
}

static void finish(bench_world *w)
{
    sc_arena_free(&w->keep);
    sc_arena_free(&w->a);
}

static void post(bench_world *w, uint32_t group, uint64_t bytes)
{
    uint64_t ticket;
    sc_emu_op op = {.coll = SC_ALL_REDUCE, .group = group, .bytes = bytes};
    need(w, sc_emu_post(w->e, &op, w->t, &ticket, &w->err) == SC_OK);
}

/* Until `n` have ended; the program waits for the last one. */
static void wait_for(bench_world *w, uint32_t n)
{
    sc_time from = w->t;
    for (uint32_t k = 0; k < n;) {
        const sc_emu_end *end;
        uint32_t ends = sc_emu_advance(w->e, sc_emu_next(w->e), &end);
        need(w, ends != SC_FLOW_NONE);
        k += ends;
        if (ends > 0) w->t = end[ends - 1].end;
    }
    sc_emu_waited(w->e, 0, from, w->t);
}

static void blocking(void *ctx, uint64_t n)
{
    bench_world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        w->t += 10000000;
        post(w, 0, 4096);
        wait_for(w, 1);
    }
    bench_keep((double)w->t);
}

/* Eight at once, of two groups. */
static void eight(void *ctx, uint64_t n)
{
    bench_world *w = ctx;
    for (uint64_t i = 0; i < n; i += 8) {
        for (uint32_t k = 0; k < 8; k++) {
            w->t += 10000000;
            post(w, k % 2 ? w->group : 0, 1 << 20);
        }
        wait_for(w, 8);
    }
    bench_keep((double)w->t);
}

static void worlds(void *ctx, uint64_t n)
{
    bench_world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        sc_arena_reset(&w->a);
        open_world(w);
        post(w, 0, 1 << 20);
        post(w, w->group, 1 << 20);
        wait_for(w, 2);
    }
    bench_keep((double)w->t);
}

/* Those of every node of a large world. */
static void groups(void *ctx, uint64_t n)
{
    bench_world *w = ctx;
    uint32_t rank[8], group = 0;
    sc_arena_reset(&w->a);
    need(w, sc_emu_new(&w->c, &w->a, &w->e, &w->err) == SC_OK);
    for (uint64_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < 8; k++)
            rank[k] = (uint32_t)(i % GROUPS) * 8 + k;
        need(w, sc_emu_group(w->e, rank, 8, 0, &group, &w->err) == SC_OK);
    }
    bench_keep((double)group);
}

void bench_main(void)
{
    static const char *changes[] = {"jitter=0.05", "straggler=5:1.2",
                                    "straggler=9:1.1", "stall=7:1ms@100", NULL};
    bench_world w;
    begin(&w, "dgx-h100:16", 128, NULL);
    open_world(&w);
    bench_case("emu.blocking", blocking, &w, 1000000);
    bench_case("emu.eight", eight, &w, 200000);
    finish(&w);
    begin(&w, "dgx-h100:16", 128, changes);
    open_world(&w);
    bench_case("emu.changes", blocking, &w, 1000000);
    finish(&w);
    begin(&w, "dgx-h100:8192", WORLD, NULL);
    bench_case("emu.groups", groups, &w, GROUPS);
    bench_case("emu.world", worlds, &w, 4);
    finish(&w);
}
