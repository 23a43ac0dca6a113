/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whichever ranks of a program are real, the others running their traces: every
 * call of a real rank ends at the same time as if all were real.
 *
 * Programs are drawn as a list of events in an order in which they can happen
 * (computation, a message, a collective of some ranks); each rank does those
 * that it takes part in, one after the other, so no program has a deadlock.
 */
#include "emu_world.h"
#include "property.h"
#include "small_workload.h"

#include <stdlib.h>

#define MOST   5  /* ranks */
#define EVENTS 60 /* of the program */

typedef struct program {
    sw s;
    uint32_t n;
    uint32_t members[SW_GROUPS][MOST];
    bool shares; /* messages share links */
} program;

static program g;

/* A node of the rank, after its last one; NULL: it has enough. */
static bool room(uint32_t rank)
{
    return g.s.n[rank] + 1 < SW_NODES;
}

static void chained(uint32_t rank, sw_node *x)
{
    if (g.s.n[rank] > 1) sw_after(x, g.s.n[rank] - 2);
}

static void draw_message(prop *p)
{
    uint32_t from = (uint32_t)prop_below(p, g.n);
    uint32_t to = (from + 1 + (uint32_t)prop_below(p, g.n - 1)) % g.n;
    uint64_t bytes = 1 + prop_below(p, 100000);
    if (!room(from) || !room(to)) return;
    chained(from, sw_pair(&g.s, from, SC_TASK_SEND, to, bytes, 0));
    chained(to, sw_pair(&g.s, to, SC_TASK_RECV, from, bytes, 0));
}

static void draw_collective(prop *p)
{
    static const sc_coll kinds[] = {SC_ALL_REDUCE, SC_ALL_GATHER,
                                    SC_REDUCE_SCATTER, SC_BARRIER};
    uint32_t group = SC_TASK_WORLD, n = 0, who[MOST];
    sc_coll coll = kinds[prop_below(p, SC_COUNT(kinds))];
    uint64_t bytes = coll == SC_BARRIER ? 0 : 64 * (1 + prop_below(p, 1000));
    uint64_t mask = prop_below(p, 1u << g.n);
    for (uint32_t r = 0; r < g.n; r++)
        if (mask >> r & 1) who[n++] = r;
    if (n < 2) { /* all */
        n = g.n;
        for (uint32_t r = 0; r < n; r++) who[r] = r;
    } else if (n < g.n) {
        if (g.s.n_groups == SW_GROUPS) return;
        memcpy(g.members[g.s.n_groups], who, sizeof who);
        group = sw_group(&g.s, n, g.members[g.s.n_groups]);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!room(who[i])) return;
    for (uint32_t i = 0; i < n; i++)
        chained(who[i], sw_coll(&g.s, who[i], coll, bytes, group));
}

static void draw(prop *p)
{
    memset(&g, 0, sizeof g);
    g.n = 2 + (uint32_t)prop_below(p, MOST - 1);
    g.s.n_ranks = g.n;
    g.shares = prop_below(p, 2);
    uint64_t n = 1 + prop_below(p, EVENTS);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t what = prop_below(p, 4);
        uint32_t r = (uint32_t)prop_below(p, g.n);
        if (what == 0 && room(r))
            chained(r, sw_comp(&g.s, r, (sc_time)(1 + prop_below(p, 50)) * US));
        else if (what < 3)
            draw_message(p);
        else
            draw_collective(p);
    }
    /* No trace begins again while others are at their first round. */
    for (uint32_t r = 0; r < g.n; r++)
        chained(r, sw_coll(&g.s, r, SC_BARRIER, 0, SC_TASK_WORLD));
}

/* ---- runs ---------------------------------------------------------------- */

typedef struct runner {
    uint32_t rank, at; /* its next node */
    sc_time clock;
    bool waits;
    uint64_t ticket;
    sc_time end[SW_NODES]; /* of each call */
} runner;

static sc_emu_op op_of(sc_emu *e, uint32_t rank, const sw_node *x)
{
    sc_emu_op op = {.rank = rank, .bytes = x->size, .cuts = true};
    if (x->kind == SC_TASK_COLL) {
        const sc_rank_group *m =
            x->group == SC_TASK_WORLD ? NULL : &g.s.group[x->group];
        op.coll = (sc_coll)x->coll;
        op.group = m ? group_of(e, m->rank, m->n) : 0;
        if (op.coll == SC_ALL_GATHER) op.bytes *= m ? m->n : g.n;
    } else {
        op.coll = x->kind == SC_TASK_SEND ? SC_SEND : SC_RECV;
        op.peer = x->peer;
    }
    return op;
}

/* Runs the node of a rank that does not wait. */
static void step(sc_emu *e, runner *r)
{
    const sw_node *x = &g.s.node[r->rank][r->at];
    if (x->kind == SC_TASK_COMP) {
        r->clock += x->duration;
        r->at++;
        return;
    }
    r->ticket = call(e, op_of(e, r->rank, x), r->clock);
    r->waits = true;
}

static void deliver(sc_emu *e, runner *r, uint32_t n, sc_time t)
{
    const sc_emu_end *end;
    uint32_t n_ends = sc_emu_advance(e, t, &end);
    for (uint32_t i = 0; i < n_ends && n_ends != SC_FLOW_NONE; i++)
        for (uint32_t k = 0; k < n; k++) {
            if (!r[k].waits || r[k].ticket != end[i].ticket) continue;
            r[k].end[r[k].at++] = end[i].end;
            r[k].clock = end[i].end;
            r[k].waits = false;
        }
}

/* False: the program stopped. */
static bool run(runner *r, uint32_t n, const char *ranks)
{
    asked q = {.cluster = "switch8@1GB/s,3us", .world = g.n, .ranks = ranks};
    sc_emu_config c = config_of(&q);
    sc_emu *e;
    c.peers = &g.s.w;
    if (g.shares) {
        c.delay = SC_EMU_DELAY_ANALYTIC;
        c.plugin = NULL;
    }
    plug_n = 0;
    if (sc_emu_new(&c, &arena, &e, &err) != SC_OK) no_error();
    for (;;) {
        runner *first = NULL;
        bool all = true;
        for (uint32_t k = 0; k < n; k++) {
            bool done = r[k].at == g.s.n[r[k].rank];
            all = all && done;
            if (!done && !r[k].waits && (!first || r[k].clock < first->clock))
                first = &r[k];
        }
        if (all) return true;
        sc_time next = sc_emu_next(e);
        if (first && first->clock <= next)
            step(e, first);
        else if (next != SC_TIME_MAX)
            deliver(e, r, n, next);
        else
            return false;
    }
}

static bool same_times(prop *p, void *ctx)
{
    (void)ctx;
    static runner all[MOST], some[MOST];
    char ranks[4 * MOST] = "";
    memset(all, 0, sizeof all);
    memset(some, 0, sizeof some);
    sc_arena_reset(&arena);
    draw(p);
    sw_build(&g.s, &arena);
    for (uint32_t r = 0; r < g.n; r++) all[r].rank = r;
    snprintf(ranks, sizeof ranks, "0-%u", g.n - 1);
    bool ok = run(all, g.n, ranks);
    uint64_t mask = 1 + prop_below(p, (1u << g.n) - 1);
    uint32_t n = 0;
    ranks[0] = '\0';
    for (uint32_t r = 0; r < g.n; r++) {
        if (!(mask >> r & 1)) continue;
        some[n++].rank = r;
        snprintf(ranks + strlen(ranks), sizeof ranks - strlen(ranks), "%s%u",
                 n > 1 ? "," : "", r);
    }
    ok = ok && run(some, n, ranks);
    if (!ok && prop_reporting(p)) print_error("ranks %s: it stopped\n", ranks);
    for (uint32_t k = 0; ok && k < n; k++)
        for (uint32_t i = 0; i < g.s.n[some[k].rank]; i++) {
            sc_time a = all[some[k].rank].end[i], b = some[k].end[i];
            if (llabs(a - b) <= (g.shares ? EVENTS : 0)) continue;
            if (prop_reporting(p))
                print_error("ranks %s real: call %u of rank %u ends at %lld, "
                            "with all real at %lld\n",
                            ranks, i, some[k].rank, (long long)b, (long long)a);
            return false;
        }
    return ok;
}

static void any_subset(void **state)
{
    (void)state;
    assert_true(prop_check("any ranks real", 2000, same_times, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_subset, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
