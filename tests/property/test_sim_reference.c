/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against the slow reference, op by op, to the picosecond. */
#include "graph_check.h"
#include "random_graph.h"
#include "reference_sim.h"
#include "unit.h"

#include <stdio.h>

static bool same(prop *p, const sc_graph *g, const sc_result *x,
                 const sc_result *y)
{
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (x->start[i] == y->start[i] && x->end[i] == y->end[i] &&
            x->cause[i] == y->cause[i])
            continue;
        if (prop_reporting(p))
            printf("op %u: [%lld, %lld) after %d, reference [%lld, %lld) "
                   "after %d\n",
                   i, (long long)x->start[i], (long long)x->end[i],
                   (int)x->cause[i], (long long)y->start[i],
                   (long long)y->end[i], (int)y->cause[i]);
        return false;
    }
    for (uint32_t c = 0; c < g->n_classes; c++)
        if (x->finish[c] != y->finish[c]) return false;
    return x->makespan == y->makespan;
}

static bool show(prop *p, const sc_graph *g)
{
    if (!prop_reporting(p)) return false;
    sc_text t;
    sc_text_init(&t);
    sc_graph_write(g, &t);
    printf("%s", t.buf);
    sc_text_free(&t);
    return false;
}

static bool run_both(prop *p, sc_arena *a, bool rates)
{
    sc_err err;
    sc_graph g;
    sc_result fast, slow;
    sc_sim_opts o;
    sc_err_init(&err);
    sc_sim_opts_init(&o);
    if (rates) random_rates(p, &o);
    if (!random_graph(p, 40, a, &g, &err)) return false;
    if (sc_sim_run(&g, &o, a, &fast, &err)) return show(p, &g);
    if (!reference_run(&g, &o, a, &slow)) return show(p, &g);
    return same(p, &g, &fast, &slow) || show(p, &g);
}

static bool equal_times(prop *p, void *rates)
{
    sc_arena a;
    sc_arena_init(&a, 0);
    bool ok = run_both(p, &a, rates != NULL);
    sc_arena_free(&a);
    return ok;
}

static void test_sweep(void **state)
{
    (void)state;
    assert_true(prop_check("sweep equals reference", 1500, equal_times, NULL));
}

static void test_events(void **state)
{
    (void)state;
    int yes = 1;
    assert_true(prop_check("events equal reference", 3000, equal_times, &yes));
}

/* Both paths on graphs where the event loop has nothing to slow down: a rate
 * that only one stream knows never applies, and is forced to be looked at by
 * an op that comes last. */
static bool sweep_equals_events(prop *p, void *ctx)
{
    (void)ctx;
    sc_arena a;
    sc_arena_init(&a, 0);
    sc_err err;
    sc_graph g;
    sc_result sweep, events;
    sc_sim_opts one, slow;
    sc_err_init(&err);
    sc_sim_opts_init(&one);
    sc_sim_opts_init(&slow);
    slow.rate[SC_OP_MEM][SC_OP_COMPUTE] = 0.5;
    bool ok = random_graph(p, 200, &a, &g, &err);
    for (sc_op i = 0; ok && i < g.n_ops; i++) {
        /* no MEM op ever takes time, so that the rate never applies */
        if (g.kind[i] == SC_OP_MEM) g.work[i] = 0;
    }
    ok = ok && !sc_sim_run(&g, &one, &a, &sweep, &err) &&
         !sc_sim_run(&g, &slow, &a, &events, &err) &&
         same(p, &g, &sweep, &events);
    sc_arena_free(&a);
    return ok;
}

static void test_paths(void **state)
{
    (void)state;
    assert_true(
        prop_check("sweep equals events", 500, sweep_equals_events, NULL));
}

/* Ops that are on one class each run as if each named a list of classes. */
static bool one_equals_several(prop *p, void *rates)
{
    sc_arena a;
    sc_arena_init(&a, 0);
    sc_err err;
    sc_graph g, several;
    sc_result x, y;
    sc_sim_opts o;
    sc_err_init(&err);
    sc_sim_opts_init(&o);
    if (rates) random_rates(p, &o);
    bool ok = random_graph(p, 60, &a, &g, &err);
    several = g;
    several.cls_head = SC_NEW_N(&a, uint32_t, (size_t)g.n_ops + 1);
    ok = ok && several.cls_head;
    for (uint32_t i = 0; ok && i <= g.n_ops; i++) several.cls_head[i] = i;
    ok = ok && !graph_check(&several, &err) &&
         !sc_sim_run(&g, &o, &a, &x, &err) &&
         !sc_sim_run(&several, &o, &a, &y, &err) && same(p, &g, &x, &y) &&
         x.n_events == y.n_events;
    sc_arena_free(&a);
    return ok;
}

static void test_several(void **state)
{
    (void)state;
    int yes = 1;
    assert_true(prop_check("one class equals a list in the sweep", 1000,
                           one_equals_several, NULL));
    assert_true(prop_check("one class equals a list in events", 2000,
                           one_equals_several, &yes));
}

/* Every part of a breakdown is time, and the parts sum to `until`. */
static bool sums(prop *p, void *ctx)
{
    (void)ctx;
    sc_arena a;
    sc_arena_init(&a, 0);
    sc_err err;
    sc_graph g;
    sc_result r;
    sc_sim_opts o;
    sc_err_init(&err);
    sc_sim_opts_init(&o);
    random_rates(p, &o);
    bool ok =
        random_graph(p, 40, &a, &g, &err) && !sc_sim_run(&g, &o, &a, &r, &err);
    for (uint32_t c = 0; ok && c < g.n_classes; c++) {
        sc_time part[SC_N_CATS], sum = 0;
        sc_time until = prop_below(p, 2)
                            ? r.makespan + (sc_time)prop_below(p, 9)
                            : (sc_time)prop_below(p, (uint64_t)r.makespan + 1);
        sc_result_breakdown(&g, &r, c, until, part);
        for (int k = 0; k < SC_N_CATS; k++) {
            ok = ok && part[k] >= 0;
            sum += part[k];
        }
        ok = ok && sum == until;
    }
    if (!ok && prop_reporting(p)) show(p, &g);
    sc_arena_free(&a);
    return ok;
}

static void test_breakdown(void **state)
{
    (void)state;
    assert_true(prop_check("breakdown sums", 1000, sums, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep), cmocka_unit_test(test_events),
        cmocka_unit_test(test_paths), cmocka_unit_test(test_several),
        cmocka_unit_test(test_breakdown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
