/* SPDX-License-Identifier: Apache-2.0 */
/* The executor against the slow reference, and what every execution obeys. */
#include "random_graph.h"
#include "reference_exec.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct world {
    sc_arena a;
    sc_err err;
    sc_graph x;
    sc_sim_opts o;
    sc_result r;
} world;

static bool begin(prop *p, world *w, bool traffic, bool honest)
{
    sc_arena_init(&w->a, 0);
    sc_err_init(&w->err);
    sc_sim_opts_init(&w->o);
    if (traffic &&
        sc_hw_build("switch4@1GB/s", sc_pos_none(), &w->a, &w->o.hw, &w->err))
        return false;
    if (prop_below(p, 2)) random_rates(p, &w->o);
    if (prop_below(p, 2)) w->o.gamma = prop_unit(p);
    return random_exec(p, 24, traffic, honest, &w->a, &w->x, &w->err) &&
           sc_sim_run(&w->x, &w->o, &w->a, &w->r, &w->err) == SC_OK;
}

static bool finish(prop *p, world *w, bool ok)
{
    if (!ok && prop_reporting(p)) {
        if (w->err.n) printf("%s\n", w->err.d[0].msg);
        for (sc_op i = 0; i < w->x.n_ops; i++)
            printf("op %u kind %u stream %u on %u from %u: work %lld latency "
                   "%lld bytes %llu traffic %d [%lld, %lld)\n",
                   i, w->x.kind[i], w->x.stream[i],
                   sc_op_place(&w->x, i + 1) - sc_op_place(&w->x, i),
                   w->x.cls[sc_op_place(&w->x, i)], (long long)w->x.work[i],
                   (long long)w->x.latency[i],
                   (unsigned long long)w->x.bytes[i], (int)w->x.traffic[i],
                   (long long)w->r.start[i], (long long)w->r.end[i]);
    }
    sc_arena_free(&w->a);
    return ok;
}

/* Rounding to picoseconds, by as many ops as may follow each other. */
static bool near(sc_time a, sc_time b)
{
    return llabs(a - b) <= 2000 + (a + b) / 1000000000;
}

static bool equals_reference(prop *p, void *traffic)
{
    world w;
    sc_result slow;
    bool ok = begin(p, &w, traffic != NULL, false) &&
              reference_exec(&w.x, &w.o, &w.a, &slow);
    for (sc_op i = 0; ok && i < w.x.n_ops; i++) {
        ok = near(w.r.start[i], slow.start[i]) && near(w.r.end[i], slow.end[i]);
        if (!ok && prop_reporting(p))
            printf("op %u: [%lld, %lld), reference [%lld, %lld)\n", i,
                   (long long)w.r.start[i], (long long)w.r.end[i],
                   (long long)slow.start[i], (long long)slow.end[i]);
    }
    return finish(p, &w, ok);
}

static void test_overlap(void **state)
{
    (void)state;
    assert_true(
        prop_check("overlap equals reference", 2000, equals_reference, NULL));
}

static void test_links(void **state)
{
    (void)state;
    int yes = 1;
    assert_true(
        prop_check("links equal reference", 3000, equals_reference, &yes));
}

/* ---- conservation -------------------------------------------------------- */

/* Bytes of op `i` over a link. */
static double bytes_on(const sc_graph *x, sc_op i, uint64_t link)
{
    double share = 0;
    if (x->traffic[i] == SC_NONE) return 0;
    const sc_traffic *t = &x->traffics[x->traffic[i]];
    for (uint32_t k = 0; k < t->n; k++)
        if (t->link[k] == link) share += t->share[k];
    return share * (double)x->bytes[i];
}

/* Between any two moments a link carries, of what runs within, no more than
 * fits. */
static bool fits(const world *w, uint64_t link, double bw)
{
    const sc_result *r = &w->r;
    for (sc_op i = 0; i < w->x.n_ops; i++) {
        for (sc_op j = 0; j < w->x.n_ops; j++) {
            double bytes = 0;
            sc_time from = r->start[i] + w->x.latency[i], to = r->end[j];
            if (to < from) continue;
            for (sc_op k = 0; k < w->x.n_ops; k++)
                if (r->start[k] + w->x.latency[k] >= from && r->end[k] <= to)
                    bytes += bytes_on(&w->x, k, link);
            if (bytes > bw * sc_time_to_s(to - from) * (1 + 1e-9) + 1e-3)
                return false;
        }
    }
    return true;
}

static bool conserves(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    bool ok = begin(p, &w, true, true);
    uint32_t used = 0;
    for (uint64_t l = 0; ok && l < REF_EXEC_LINKS; l++) {
        double bytes = 0, bw = sc_hw_link_bw(w.o.hw, l);
        for (sc_op i = 0; i < w.x.n_ops; i++) bytes += bytes_on(&w.x, i, l);
        if (bytes > 0) {
            ok = w.r.link[used] == l &&
                 fabs(w.r.link_bytes[used] / bytes - 1) < 1e-12;
            used++;
        }
        ok = ok && sc_time_to_s(w.r.makespan) * (1 + 1e-9) >= bytes / bw &&
             fits(&w, l, bw);
    }
    return finish(p, &w, ok && used == w.r.n_links);
}

static void test_conservation(void **state)
{
    (void)state;
    assert_true(prop_check("links conserve bytes", 1000, conserves, NULL));
}

/* An op takes its work and what it waited; streams run one op at a time, and
 * nothing starts before what it waits for; devices' times sum up. */
static bool obeys(prop *p, world *w)
{
    const sc_graph *x = &w->x;
    const sc_result *r = &w->r;
    for (sc_op i = 0; i < x->n_ops; i++) {
        sc_time late = r->shared[i] + r->overlapped[i];
        if (r->shared[i] < 0 || r->overlapped[i] < 0 ||
            r->end[i] - r->start[i] != x->work[i] + late)
            return false;
        for (uint32_t k = x->succ_head[i]; k < x->succ_head[i + 1]; k++)
            if (r->start[x->succ[k]] < r->end[i]) return false;
        if (r->cause[i] == SC_NONE ? r->start[i] > 0
                                   : r->end[r->cause[i]] > r->start[i])
            return false;
    }
    for (uint32_t d = 0; d < x->n_classes; d++) {
        sc_time part[SC_N_CATS], all = 0, free[SC_N_STREAMS] = {0};
        for (uint32_t k = 0; k < x->n_ops; k++) {
            sc_op i = r->order ? r->order[k] : k;
            bool here = false;
            for (uint32_t q = sc_op_place(x, i); q < sc_op_place(x, i + 1); q++)
                here = here || x->cls[q] == d;
            if (!here || x->kind[i] == SC_OP_MARK) continue;
            if (r->start[i] < free[x->stream[i]]) return false;
            free[x->stream[i]] = r->end[i];
        }
        sc_time until = prop_below(p, 2)
                            ? r->makespan + (sc_time)prop_below(p, 9)
                            : (sc_time)prop_below(p, (uint64_t)r->makespan + 1);
        sc_result_breakdown(x, r, d, until, part);
        for (int c = 0; c < SC_N_CATS; c++) {
            if (part[c] < 0) return false;
            all += part[c];
        }
        if (all != until) return false;
    }
    return true;
}

static bool is_orderly(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    bool ok = begin(p, &w, prop_below(p, 2), false);
    return finish(p, &w, ok && obeys(p, &w));
}

static void test_order(void **state)
{
    (void)state;
    assert_true(prop_check("executions are orderly", 2000, is_orderly, NULL));
}

static bool rounds_are_orderly(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    bool ok = begin(p, &w, false, false);
    w.o.rules = sc_rules_find("proteus");
    ok = ok && !sc_sim_run(&w.x, &w.o, &w.a, &w.r, &w.err);
    return finish(p, &w, ok && obeys(p, &w));
}

static void test_rounds(void **state)
{
    (void)state;
    assert_true(
        prop_check("rounds are orderly", 1500, rounds_are_orderly, NULL));
}

/* Links that no op fills change nothing: events give what the sweep gives. */
static bool idle_links(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    sc_result sweep;
    bool ok = begin(p, &w, true, true);
    sc_sim_opts_init(&w.o);
    ok = ok && !sc_sim_run(&w.x, &w.o, &w.a, &sweep, &w.err) &&
         !sc_hw_build("switch4@1000GB/s", sc_pos_none(), &w.a, &w.o.hw,
                      &w.err) &&
         !sc_sim_run(&w.x, &w.o, &w.a, &w.r, &w.err);
    for (sc_op i = 0; ok && i < w.x.n_ops; i++)
        ok = w.r.start[i] == sweep.start[i] && w.r.end[i] == sweep.end[i] &&
             w.r.cause[i] == sweep.cause[i];
    return finish(p, &w, ok && w.r.makespan == sweep.makespan);
}

static void test_paths(void **state)
{
    (void)state;
    assert_true(
        prop_check("idle links change nothing", 1000, idle_links, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap),      cmocka_unit_test(test_links),
        cmocka_unit_test(test_conservation), cmocka_unit_test(test_order),
        cmocka_unit_test(test_rounds),       cmocka_unit_test(test_paths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
