/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over machines: links, latencies, collisions and their avoidance. */
#include <stepcast/net_fabric.h>

#include "fixture.h"

#include <math.h>

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
    sc_fabric_opts o = {.share = {0.5, 0.8}};
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(alone), TEST(part_of_rates),
                                       TEST(collisions), TEST(labels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
