/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What-if is monotone: with less bandwidth, more latency, a slower straggler or
 * a longer stall no program ends earlier.
 *
 * That holds where operations do not meet on a link (each is waited for before
 * the next one), and where those that do are waited for together, as gradients
 * are: what comes later then only moves the last end back.  Where a program
 * waits for one and goes on while the other still moves it need not: the other
 * one late, the first one has the link for itself.  A real network is like
 * that, too.  Of such programs only less bandwidth is asked.  An operation alone
 * may not quite fill its link, so that it matters a little how many end alone:
 * a thousandth is let pass where several are in flight.
 */
#include "emu/emu.h"
#include "net/net_flow.h"
#include "property.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACTIONS  40
#define GROUPS   5
#define OPEN     6 /* operations that have not been waited for */
#define US       1000000LL
#define ROUNDING (2 * ACTIONS) /* ps: a start and an end of each */

typedef struct machine {
    const char *spec;
    sc_emu_delay_kind delay;
} machine;

static const machine machines[] = {
    {"dgx-h100:4", SC_EMU_DELAY_ANALYTIC},
    {"switch1@100GB/s,1us x switch8@1GB/s,20us", SC_EMU_DELAY_ANALYTIC},
    {"dgx-a100-80g:2", SC_EMU_DELAY_ANALYTIC},
};

static sc_arena keep;
static sc_emu_config conf[SC_COUNT(machines)];

typedef enum kind { COMPUTE, POST, WAIT } kind;

typedef struct action {
    kind kind;
    sc_time d;
    uint32_t group, k; /* k: which of the open ones */
    sc_coll coll;
    uint64_t bytes;
    uint32_t peer; /* position in the group */
} action;

typedef enum style {
    BLOCKING, /* every operation is waited for at once */
    STEPS,    /* several of one kind and size, then all are waited for */
    FREE      /* any order */
} style;

typedef struct program {
    const sc_emu_config *c;
    style style;
    uint32_t n;
    action a[ACTIONS];
    uint32_t n_whatif;
    sc_emu_whatif what[6];
} program;

/* ---- drawing ------------------------------------------------------------- */

static void draw_group(const program *g, uint32_t i, uint32_t *rank,
                       uint32_t *n)
{
    uint32_t world = g->c->world, node = g->c->hw->node_size;
    static const uint32_t odd[3] = {0, 1, 5};
    uint32_t stride = i == 1 ? node : 1;
    *n = i == 0 ? world : i == 1 ? world / node : i == 2 ? world / 2 : 2;
    for (uint32_t k = 0; k < *n; k++) rank[k] = k * stride;
    if (i != 4) return;
    *n = 3;
    memcpy(rank, odd, sizeof odd);
}

static action draw_action(prop *p)
{
    static const sc_coll colls[] = {
        SC_ALL_REDUCE, SC_ALL_GATHER, SC_REDUCE_SCATTER, SC_BROADCAST,
        SC_ALL_TO_ALL, SC_BARRIER,    SC_SEND,           SC_RECV};
    action a = {.kind = (kind)prop_below(p, 3)};
    a.d = (sc_time)prop_below(p, 2000) * US;
    a.k = (uint32_t)prop_below(p, OPEN);
    a.group = (uint32_t)prop_below(p, GROUPS);
    a.coll = colls[prop_below(p, SC_COUNT(colls))];
    a.bytes = prop_below(p, 2) ? prop_below(p, 20) << 20 : prop_below(p, 4096);
    a.peer = 1;
    return a;
}

static sc_emu_whatif draw_what(prop *p, uint32_t world)
{
    sc_emu_whatif w = {.what = (sc_emu_what)prop_below(p, SC_EMU_FAIL)};
    w.rank = 1 + (uint32_t)prop_below(p, world - 1);
    w.at = prop_below(p, 8);
    switch (w.what) {
    case SC_EMU_LATENCY_ADD: w.value = 1e-4 * prop_unit(p); break;
    case SC_EMU_LATENCY_TIMES: w.value = 0.5 + 3 * prop_unit(p); break;
    case SC_EMU_BANDWIDTH_TIMES: w.value = 0.2 + 2 * prop_unit(p); break;
    case SC_EMU_STALL: w.value = 1e-3 * prop_unit(p); break;
    case SC_EMU_JITTER: w.value = 0.1 * prop_unit(p); break;
    default: w.value = 0.5 + prop_unit(p); break;
    }
    return w;
}

static void draw(prop *p, program *g, bool free)
{
    *g = (program){.c = &conf[prop_below(p, SC_COUNT(machines))]};
    g->style = (style)prop_below(p, free ? 3 : 2);
    g->n = (uint32_t)prop_below(p, ACTIONS);
    for (uint32_t i = 0; i < g->n; i++) {
        const action *last = i ? &g->a[i - 1] : NULL;
        g->a[i] = draw_action(p);
        if (g->style != STEPS || !last || last->kind == WAIT) continue;
        g->a[i].group = last->group;
        g->a[i].coll = last->coll;
        g->a[i].bytes = last->bytes;
    }
    g->n_whatif = (uint32_t)prop_below(p, 4);
    for (uint32_t i = 0; i < g->n_whatif; i++)
        g->what[i] = draw_what(p, g->c->world);
}

/* ---- running ------------------------------------------------------------- */

typedef struct run {
    sc_arena a;
    sc_err err;
    sc_emu *e;
    sc_time now;
    uint32_t n_open;
    uint64_t open[OPEN];
    sc_time end[OPEN];                      /* SC_TIME_MAX: not yet */
    uint32_t group[GROUPS], second[GROUPS]; /* its member number 1 */
} run;

static void advance(run *r, sc_time t)
{
    const sc_emu_end *end;
    uint32_t n = sc_emu_advance(r->e, t, &end);
    if (n == SC_FLOW_NONE) abort();
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < r->n_open; k++)
            if (r->open[k] == end[i].ticket) r->end[k] = end[i].end;
}

static void wait_for(run *r, uint32_t k)
{
    sc_time from = r->now;
    while (r->end[k] == SC_TIME_MAX) advance(r, sc_emu_next(r->e));
    if (r->end[k] > r->now) r->now = r->end[k];
    sc_emu_waited(r->e, 0, from, r->now);
    r->n_open--;
    r->open[k] = r->open[r->n_open];
    r->end[k] = r->end[r->n_open];
}

static void post(run *r, const action *a)
{
    sc_emu_op op = {.coll = a->coll,
                    .group = r->group[a->group],
                    .peer = r->second[a->group],
                    .bytes = a->bytes};
    while (sc_emu_next(r->e) <= r->now) advance(r, sc_emu_next(r->e));
    if (r->n_open == OPEN) return;
    if (sc_emu_post(r->e, &op, r->now, &r->open[r->n_open], &r->err)) abort();
    r->end[r->n_open++] = SC_TIME_MAX;
}

static sc_time time_of(const program *g, const sc_emu_whatif *what, uint32_t n)
{
    run r = {.now = 0};
    sc_emu_config c = *g->c;
    uint32_t rank[64], size;
    c.whatif = what;
    c.n_whatif = n;
    sc_arena_init(&r.a, 0);
    sc_err_init(&r.err);
    if (sc_emu_new(&c, &r.a, &r.e, &r.err)) abort();
    for (uint32_t i = 0; i < GROUPS; i++) {
        draw_group(g, i, rank, &size);
        if (sc_emu_group(r.e, rank, size, 0, &r.group[i], &r.err)) abort();
        r.second[i] = rank[1];
    }
    for (uint32_t i = 0; i < g->n; i++) {
        const action *a = &g->a[i];
        if (a->kind == COMPUTE) r.now += a->d;
        if (a->kind == POST) post(&r, a);
        if (g->style == FREE && a->kind == WAIT && r.n_open)
            wait_for(&r, a->k % r.n_open);
        if (g->style == BLOCKING || (g->style == STEPS && a->kind == WAIT))
            while (r.n_open) wait_for(&r, 0);
    }
    while (r.n_open) wait_for(&r, 0);
    sc_arena_free(&r.a);
    return r.now;
}

/* ---- the property -------------------------------------------------------- */

/* The program with one what-if more, and with that one a little worse. */
static bool never_earlier(prop *p, const program *g, sc_emu_whatif mild,
                          sc_emu_whatif worse)
{
    sc_emu_whatif what[8];
    uint32_t n = g->n_whatif;
    memcpy(what, g->what, sizeof g->what);
    what[n] = mild;
    sc_time t = time_of(g, what, n + 1);
    what[n] = worse;
    sc_time u = time_of(g, what, n + 1);
    sc_time few = g->style == BLOCKING ? 0 : t / 1000;
    if (u + few + ROUNDING >= t) return true;
    if (prop_reporting(p)) {
        print_error("%s: what %d of rank %u at %llu from %g to %g: %lld ps "
                    "instead of %lld\n",
                    g->c->hw->name, (int)mild.what, mild.rank,
                    (unsigned long long)mild.at, mild.value, worse.value,
                    (long long)u, (long long)t);
        for (uint32_t i = 0; i < n; i++)
            print_error("  what %d of rank %u at %llu: %g\n",
                        (int)g->what[i].what, g->what[i].rank,
                        (unsigned long long)g->what[i].at, g->what[i].value);
        for (uint32_t i = 0; i < g->n; i++)
            print_error("  %s d %lld group %u k %u %s %llu B\n",
                        g->a[i].kind == COMPUTE ? "compute"
                        : g->a[i].kind == POST  ? "post"
                                                : "wait",
                        (long long)g->a[i].d, g->a[i].group, g->a[i].k,
                        sc_coll_names[g->a[i].coll],
                        (unsigned long long)g->a[i].bytes);
    }
    return false;
}

static bool monotone(prop *p, void *ctx)
{
    const sc_emu_what *what = ctx;
    program g;
    draw(p, &g, *what == SC_EMU_BANDWIDTH_TIMES);
    sc_emu_whatif mild = {.what = *what, .value = 1};
    mild.rank = 1 + (uint32_t)prop_below(p, g.c->world - 1);
    mild.at = prop_below(p, 8);
    if (*what == SC_EMU_LATENCY_ADD || *what == SC_EMU_STALL)
        mild.value = prop_below(p, 2) ? 0 : 1e-4 * prop_unit(p);
    sc_emu_whatif worse = mild;
    double more = 1 + (prop_below(p, 2) ? 0.01 : 3) * prop_unit(p);
    if (*what == SC_EMU_BANDWIDTH_TIMES)
        worse.value /= more;
    else if (mild.value < 0.5)
        worse.value += 1e-3 * (more - 1);
    else
        worse.value *= more;
    return never_earlier(p, &g, mild, worse);
}

static void check(sc_emu_what what, const char *name)
{
    char text[60];
    snprintf(text, sizeof text, "%s never speeds up", name);
    assert_true(prop_check(text, 2000, monotone, &what));
}

static void less_bandwidth(void **state)
{
    (void)state;
    check(SC_EMU_BANDWIDTH_TIMES, "less bandwidth");
}

static void more_latency(void **state)
{
    (void)state;
    check(SC_EMU_LATENCY_ADD, "more latency");
    check(SC_EMU_LATENCY_TIMES, "longer latency");
}

static void slower_straggler(void **state)
{
    (void)state;
    check(SC_EMU_STRAGGLER, "a slower straggler");
}

static void longer_stall(void **state)
{
    (void)state;
    check(SC_EMU_STALL, "a longer stall");
}

static int resolve_all(void **state)
{
    sc_err err;
    (void)state;
    sc_arena_init(&keep, 0);
    sc_err_init(&err);
    for (size_t i = 0; i < SC_COUNT(machines); i++) {
        sc_emu_options o = {.cluster = machines[i].spec,
                            .clock = SC_EMU_VIRTUAL,
                            .siblings = true};
        const sc_hw *hw;
        if (sc_hw_build(o.cluster, sc_pos_none(), &keep, &hw, &err)) return 1;
        o.world_size = hw->n_devices;
        if (sc_emu_resolve(&o, &keep, &conf[i], &err)) return 1;
        conf[i].delay = machines[i].delay;
    }
    return 0;
}

static int drop_all(void **state)
{
    (void)state;
    sc_arena_free(&keep);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_bandwidth),
        cmocka_unit_test(more_latency),
        cmocka_unit_test(slower_straggler),
        cmocka_unit_test(longer_stall),
    };
    return cmocka_run_group_tests(tests, resolve_all, drop_all);
}
