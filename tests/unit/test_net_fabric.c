/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over machines: links, latencies, collisions and their avoidance. */
#include "fixture.h"
#include "net/flow.h"
#include "net/net_fabric.h"

#include <math.h>
#include <stdlib.h>

static sc_fabric *fabric(const char *spec, sc_fabric_opts o)
{
    sc_fabric *f = NULL;
    if (sc_fabric_new(machine(spec), &o, &arena, &f, &err) != SC_OK) no_error();
    return f;
}

static uint32_t post(sc_fabric *f, uint32_t src, uint32_t dst, uint64_t bytes,
                     uint64_t label)
{
    sc_message m = {.src = src, .dst = dst, .bytes = bytes, .label = label};
    return sc_fabric_post(f, &m, 0);
}

/* When the last one ends. */
static sc_time run(sc_fabric *f)
{
    sc_flows *x = sc_fabric_flows(f);
    sc_time t, last = 0;
    const sc_flow_end *e;
    while ((t = sc_flows_next(x)) != SC_TIME_MAX) {
        assert_true(sc_flows_advance(x, t, &e) != SC_FLOW_NONE);
        last = t;
    }
    return last;
}

static const sc_fabric_opts plain;

static void alone(void **state)
{
    (void)state;

    static const struct {
        const char *spec;
        uint32_t src, dst;
        double us; /* of latency, then of a megabyte */
        double rate_us;
    } c[] = {{"switch8@100GB/s,1us", 0, 5, 1, 10},
             {"fc5@100GB/s,1us", 0, 3, 1, 40},
             {"ring8@100GB/s,1us", 1, 7, 2, 20},
             {"mesh8@100GB/s,1us", 1, 7, 6, 20},
             {"torus4x4@100GB/s,1us", 0, 15, 2, 20},
             {"mesh3@50GB/s,1us x mesh4@100GB/s,2us", 0, 11, 8, 40},
             {"switch4@100GB/s,1us x switch4@50GB/s,3us", 0, 12, 3, 20},
             {"switch4@100GB/s,1us x switch4@50GB/s,3us", 0, 13, 4, 20},
             {"switch4@100GB/s,1us x switch4@50GB/s,3us; leaf=1", 0, 12, 6, 20},
             {"switch1@100GB/s,1us x switch8@50GB/s,3us; leaf=1; pod=2", 0, 6,
              9, 20}};

    for (size_t i = 0; i < SC_COUNT(c); i++) {
        sc_fabric *f = fabric(c[i].spec, plain);
        assert_true(post(f, c[i].src, c[i].dst, 1000000, 0) != SC_FLOW_NONE);
        double us = (double)run(f) * 1e-6, expected = c[i].us + c[i].rate_us;
        if (fabs(us / expected - 1) > 1e-9)
            fail_msg("%s: %g us, not %g", c[i].spec, us, expected);
    }
    sc_fabric *f = fabric(c[0].spec, plain);
    assert_true(post(f, 3, 3, 1000000, 0) != SC_FLOW_NONE);
    assert_true(run(f) == 0);
    assert_int_equal(post(f, 3, 8, 1, 0), SC_FLOW_NONE);
}

static void part_of_rates(void **state)
{
    (void)state;
    sc_fabric_opts o = {.fraction = {0.5, 0.8}};
    sc_fabric *f = fabric("switch4@100GB/s x switch4@50GB/s", o);
    post(f, 0, 1, 1000000, 0);
    assert_true(run(f) == 20 * 1000 * 1000);
    f = fabric("switch4@100GB/s x switch4@50GB/s", o);
    post(f, 0, 4, 1000000, 0);
    assert_true(run(f) == 25 * 1000 * 1000);
}

/* Everyone sends one message to the node of another leaf, over as many spines
 * as would do: hashes collide, a look at the loads does not. */
static sc_time shift(sc_fabric *f)
{
    for (uint32_t i = 0; i < 8; i++) post(f, i, 8 + i, 1000000, 0);
    return run(f);
}

static void collisions(void **state)
{
    (void)state;
    static const char spec[] = "switch1@100GB/s x switch16@50GB/s; leaf=8";
    sc_time free_of = 20 * 1000 * 1000;
    uint32_t hit = 0, n = 50;
    for (uint64_t seed = 0; seed < n; seed++) {
        sc_fabric_opts o = {.seed = seed};
        sc_time t = shift(fabric(spec, o));
        assert_true(t % free_of == 0);
        hit += t > free_of;
        assert_true(t == shift(fabric(spec, o)));
    }
    assert_true(hit > n * 9 / 10); /* 8! / 8^8 of all hashes are free of them */
    hit = 0;
    for (uint64_t seed = 0; seed < n; seed++) {
        sc_fabric_opts o = {.rule = SC_ROUTE_ADAPTIVE, .seed = seed};
        sc_time t = shift(fabric(spec, o));
        hit += t > free_of;
    }
    assert_true(hit < n / 2); /* 16 draws do not find all 8 spines for each */
}

/* Messages of one label go together; labels spread them. */
static void labels(void **state)
{
    (void)state;
    sc_fabric *f =
        fabric("switch1@100GB/s x switch16@50GB/s; leaf=8; nics=4", plain);
    sc_message m = {.src = 0, .dst = 9, .bytes = 1};
    sc_fabric_path a, b;
    uint32_t other = 0;
    assert_true(sc_fabric_route(f, &m, &a));
    assert_true(sc_fabric_route(f, &m, &b));
    assert_true(a.links == b.links && a.n == b.n);
    for (m.label = 1; m.label < 20; m.label++) {
        assert_true(sc_fabric_route(f, &m, &b));
        assert_int_equal(a.n, b.n);
        other += a.links[1] != b.links[1];
    }
    assert_true(other > 0);
    for (uint32_t k = 0; k < a.n; k++) {
        char name[64];
        sc_hw_link_name(machine("switch1@100GB/s x switch16@50GB/s; leaf=8; "
                                "nics=4"),
                        sc_fabric_link(f, a.links[k]), name, sizeof name);
        assert_true(name[0] == 'd');
    }
}

#define ROUNDS 6

/* Every device sends uneven messages to random others, one after another. */
static uint64_t wander(const char *spec, sc_fabric_opts o, bool whole,
                       sc_time *end)
{
    sc_fabric *f = fabric(spec, o);
    sc_flows *x = sc_fabric_flows(f);
    const sc_flow_end *e;
    uint32_t n = machine(spec)->n_devices, sent = n;
    uint64_t seed[256], total = (uint64_t)n * ROUNDS;
    x->solve_all = whole;
    assert_true(n <= 256);
    for (uint32_t d = 0; d < n; d++) seed[d] = d;
    for (uint32_t d = 0; d < n; d++) {
        sc_message m = {.src = d, .dst = (d + 1) % n, .bytes = 1000, .tag = d};
        assert_true(sc_fabric_post(f, &m, 0) != SC_FLOW_NONE);
    }
    for (sc_time t; (t = sc_flows_next(x)) != SC_TIME_MAX;) {
        uint32_t k = sc_flows_advance(x, t, &e);
        for (uint32_t i = 0; i < k; i++) {
            uint32_t d = (uint32_t)(e[i].tag % n);
            end[e[i].tag] = t;
            sc_message m = {.src = d, .tag = e[i].tag + n};
            if (m.tag >= total) continue;
            m.dst = (uint32_t)sc_random_below(&seed[d], n);
            m.bytes = 1000000 + sc_random_below(&seed[d], 1000000);
            m.weight = 1 + 0.37 * (double)(d % 3);
            assert_true(sc_fabric_post(f, &m, t) != SC_FLOW_NONE);
            sent++;
        }
    }
    assert_int_equal(sent, total);
    return sc_flows_rated(x);
}

/* On whole machines: rating what changes gives the times of rating all. */
static void part_is_whole(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "torus4x4x4@50GB/s,1us",
        "mesh8@50GB/s,10ns x mesh6@40GB/s,10ns",
        "dgx-h100:8",
        "switch1@9GB/s x switch64@50GB/s,1us; leaf=8; oversubscription=2",
        ("fc2@90GB/s x switch48@50GB/s,1us; rails=1; leaf=4; pod=16; "
         "core_oversubscription=2"),
        "fc4@50GB/s x switch32@25GB/s; rails=1; leaf=4; group=8"};
    static sc_time part[256 * ROUNDS], whole[256 * ROUNDS];
    for (size_t i = 0; i < SC_COUNT(specs); i++)
        for (int rule = SC_ROUTE_ECMP; rule <= SC_ROUTE_ADAPTIVE; rule++) {
            sc_fabric_opts o = {.rule = (sc_route_rule)rule, .seed = 3};
            uint32_t n = machine(specs[i])->n_devices;
            uint64_t some = wander(specs[i], o, false, part);
            uint64_t all = wander(specs[i], o, true, whole);
            assert_true(some < all);
            for (uint32_t k = 0; k < n * ROUNDS; k++)
                if (llabs((long long)(part[k] - whole[k])) >
                    1 + whole[k] / 1000000000)
                    fail_msg("%s, rule %d: %lld, not %lld", specs[i], rule,
                             (long long)part[k], (long long)whole[k]);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(alone), TEST(part_of_rates),
                                       TEST(collisions), TEST(labels),
                                       TEST(part_is_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
