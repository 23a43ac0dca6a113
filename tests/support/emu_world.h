/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_world.h - an emulated world whose operations take a time that a test can
 * count: 10 us and a microsecond per 1000 bytes, each one alone.  The delay
 * model is a plug-in, so that only the world itself is under test.
 */
#ifndef TESTS_EMU_WORLD_H
#define TESTS_EMU_WORLD_H

#include "emu/emu.h"
#include "fixture.h"
#include "net/net_flow.h"

#include <stdio.h>
#include <string.h>

#define US      1000000LL /* ps */
#define MS      (1000 * US)
#define LATENCY (10 * US)

/* ---- the plug-in ----------------------------------------------------------- */

#define PLUG_MAX 4096

typedef struct plug_op {
    uint64_t id;
    int64_t end;
} plug_op;

static plug_op plug[PLUG_MAX];
static uint32_t plug_n;
static stepcast_delay_op plug_last; /* as it was posted */
static uint32_t plug_pair[2];       /* its first two members */

static inline int64_t plug_takes(uint64_t bytes)
{
    return LATENCY + (int64_t)bytes * US / 1000;
}

static inline int plug_post(const stepcast_delay_op *op, int64_t t)
{
    if (plug_n == PLUG_MAX || op->bytes == 666) return 1;
    plug_last = *op;
    plug_pair[0] = op->rank[0];
    plug_pair[1] = op->rank[op->n > 1];
    plug[plug_n++] = (plug_op){op->id, t + plug_takes(op->bytes)};
    return 0;
}

static inline uint32_t plug_first(void)
{
    uint32_t k = 0;
    for (uint32_t i = 1; i < plug_n; i++)
        if (plug[i].end < plug[k].end) k = i;
    return k;
}

static inline int64_t plug_next(void)
{
    return plug_n ? plug[plug_first()].end : INT64_MAX;
}

static inline uint32_t plug_advance(int64_t t, uint64_t *id, int64_t *end,
                                    uint32_t cap)
{
    uint32_t n = 0;
    while (n < cap && plug_n > 0) {
        uint32_t k = plug_first();
        if (plug[k].end > t) break;
        id[n] = plug[k].id;
        end[n++] = plug[k].end;
        plug[k] = plug[--plug_n];
    }
    return n;
}

static const stepcast_delay_plugin plug_in = {plug_post, plug_next,
                                              plug_advance};

/* ---- worlds ---------------------------------------------------------------- */

typedef struct asked {
    const char *cluster, *ranks; /* NULL: rank 0 */
    uint32_t world;
    const char *whatif[8];
    bool no_siblings, real_clock;
    uint64_t seed;
} asked;

static inline sc_emu_config config_of(const asked *q)
{
    static const char *ranks[2];
    static const char *whatif[9];
    sc_emu_options o = {0};
    sc_emu_config c;
    if (sc_schema_defaults(sc_emu_keys, &o, &arena, &err) != SC_OK) no_error();
    ranks[0] = q->ranks;
    memcpy(whatif, q->whatif, sizeof q->whatif);
    o.cluster = q->cluster ? q->cluster : "dgx-h100:8";
    o.world_size = q->world ? q->world : 8;
    o.ranks = q->ranks ? ranks : NULL;
    o.what_if = whatif;
    o.delay_model = "./test.so";
    o.siblings = !q->no_siblings;
    o.clock = q->real_clock ? SC_EMU_REAL : SC_EMU_VIRTUAL;
    o.seed = (int64_t)q->seed;
    if (sc_emu_resolve(&o, &arena, &c, &err) != SC_OK) no_error();
    c.plugin = &plug_in;
    return c;
}

static inline sc_emu *world_of(const asked *q)
{
    sc_emu_config c = config_of(q);
    sc_emu *e = NULL;
    plug_n = 0;
    if (sc_emu_new(&c, &arena, &e, &err) != SC_OK) no_error();
    return e;
}

static inline uint32_t group_of(sc_emu *e, const uint32_t *rank, uint32_t n)
{
    uint32_t g = UINT32_MAX;
    if (sc_emu_group(e, rank, n, 0, &g, &err) != SC_OK) no_error();
    return g;
}

/* ---- operations -------------------------------------------------------------- */

static inline uint64_t call(sc_emu *e, sc_emu_op op, sc_time t)
{
    uint64_t ticket = UINT64_MAX;
    if (sc_emu_post(e, &op, t, &ticket, &err) != SC_OK) no_error();
    return ticket;
}

static inline uint64_t all_reduce(sc_emu *e, uint32_t group, uint32_t rank,
                                  uint64_t bytes, sc_time t)
{
    return call(e,
                (sc_emu_op){.coll = SC_ALL_REDUCE,
                            .group = group,
                            .rank = rank,
                            .bytes = bytes},
                t);
}

/* The next ends, all at one time. */
static inline uint32_t ends_of(sc_emu *e, const sc_emu_end **ends)
{
    uint32_t n = 0;
    for (sc_time t; n == 0 && (t = sc_emu_next(e)) != SC_TIME_MAX;) {
        n = sc_emu_advance(e, t, ends);
        assert_true(n != SC_FLOW_NONE);
    }
    return n;
}

/* The one post that ends next. */
static inline sc_emu_end end_of(sc_emu *e, uint64_t ticket)
{
    const sc_emu_end *end = NULL;
    assert_int_equal(ends_of(e, &end), 1);
    assert_true(end->ticket == ticket);
    return *end;
}

/* Blocking: calls at `t`, waits, and says so. */
static inline sc_emu_end block(sc_emu *e, sc_emu_op op, sc_time t)
{
    sc_emu_end x = end_of(e, call(e, op, t));
    sc_emu_waited(e, op.rank, t, x.end);
    return x;
}

#endif
