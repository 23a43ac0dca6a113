/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on cases counted by hand. */
#include "fixture.h"
#include "graph/graph.h"
#include "sim/run.h"
#include "sim/sim_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GB 1000000000ull

static const uint32_t dev[] = {0, 1, 2, 3};
static sc_graph_builder *b;
static sc_sim_opts o;
static sc_graph x;
static sc_result r;

/* `n` devices, nothing shared, nothing slowed. */
static void begin(uint32_t n)
{
    b = sc_graph_builder_new(&arena);
    for (uint32_t d = 0; d < n; d++)
        sc_graph_add_class(b, sc_sprintf(&arena, "gpu%u", d), d, 1);
    sc_sim_opts_init(&o);
}

static sc_op_desc op(sc_op_kind kind, sc_stream_kind stream, sc_time work,
                     uint32_t first, uint32_t n)
{
    return (sc_op_desc){.name = "op",
                        .kind = (uint8_t)kind,
                        .stream = (uint8_t)stream,
                        .work = work,
                        .traffic = SC_NONE,
                        .dev = dev + first,
                        .n_dev = n};
}

static sc_op add(sc_op_kind kind, sc_stream_kind stream, sc_time work,
                 uint32_t first, uint32_t n)
{
    sc_op_desc desc = op(kind, stream, work, first, n);
    return sc_graph_add_op(b, &desc);
}

static sc_op compute(sc_time work, uint32_t d)
{
    return add(SC_OP_COMPUTE, SC_S_COMPUTE, work, d, 1);
}

static void run(void)
{
    if (sc_graph_build(b, &arena, &x, &err) ||
        sc_sim_run(&x, &o, &arena, &r, &err))
        no_error();
}

static void at(sc_op i, sc_time start, sc_time end)
{
    if (r.start[i] != start || r.end[i] != end)
        fail_msg("op %u runs [%lld, %lld), not [%lld, %lld)", i,
                 (long long)r.start[i], (long long)r.end[i], (long long)start,
                 (long long)end);
}

/* A collective starts when the last of its devices is free. */
static void meets(void **state)
{
    (void)state;
    begin(2);
    compute(10, 0);
    compute(25, 1);
    sc_op all = add(SC_OP_COLL, SC_S_COMPUTE, 5, 0, 2);
    compute(1, 0);
    run();
    at(all, 25, 30);
    at(3, 30, 31);
    assert_int_equal(r.cause[all], 1);
    assert_true(r.makespan == 31 && r.finish[0] == 31 && r.finish[1] == 30);
    sc_time part[SC_N_CATS];
    sc_result_breakdown(&x, &r, 0, 40, part);
    assert_true(part[SC_CAT_COMPUTE] == 16 && part[SC_CAT_BUBBLE] == 24);
}

/* 100 beside 40 at half rate each: both share 80, 60 are left alone. */
static void slows(void **state)
{
    (void)state;
    begin(2);
    o.rate[SC_OP_COMPUTE][SC_OP_COLL] = 0.5;
    o.rate[SC_OP_COLL][SC_OP_COMPUTE] = 0.5;
    compute(100, 0);
    add(SC_OP_COLL, SC_S_COMM, 40, 0, 2);
    run();
    at(1, 0, 80);
    at(0, 0, 140);
    assert_true(r.overlapped[0] == 40 && r.overlapped[1] == 40);
    assert_true(r.shared[0] == 0 && r.shared[1] == 0);
}

/* Gamma is for gradients only, whatever the rates say of collectives. */
static void gamma_is_for_gradients(void **state)
{
    (void)state;
    begin(2);
    o.rate[SC_OP_COMPUTE][SC_OP_COLL] = 0.5;
    o.gamma = 0.25;
    compute(100, 0);
    add(SC_OP_COLL, SC_S_GRAD, 40, 0, 1);
    compute(100, 1);
    add(SC_OP_COLL, SC_S_COMM, 50, 1, 1);
    run();
    at(1, 0, 50);
    at(0, 0, 110);
    at(3, 0, 50);
    at(2, 0, 125);
}

static sc_op transfer(uint32_t traffic, uint64_t bytes, sc_time work,
                      sc_time latency, uint32_t first)
{
    sc_op_desc desc = op(SC_OP_P2P, SC_S_P2P, work, first, 1);
    desc.traffic = traffic;
    desc.bytes = bytes;
    desc.latency = latency;
    return sc_graph_add_op(b, &desc);
}

static uint32_t traffic(uint64_t link, double share)
{
    uint64_t *l = SC_NEW(&arena, uint64_t);
    double *s = SC_NEW(&arena, double);
    *l = link;
    *s = share;
    return sc_graph_add_traffic(b, &(sc_traffic){1, l, s});
}

/* Two transfers that each fill a link: the second and the rest of the first
 * take turns at half rate. */
static void shares(void **state)
{
    (void)state;
    begin(3);
    o.hw = machine("switch4@1GB/s");
    uint32_t t = traffic(2, 1);
    transfer(t, GB, SC_PS_PER_S, 0, 0);
    sc_op wait = compute(SC_PS_PER_S / 2, 1);
    sc_op second = transfer(t, GB, SC_PS_PER_S, 0, 1);
    sc_graph_add_dep(b, wait, second);
    transfer(traffic(4, 1), GB, SC_PS_PER_S, 0, 2); /* elsewhere */
    run();
    at(0, 0, SC_PS_PER_S * 3 / 2);
    at(second, SC_PS_PER_S / 2, SC_PS_PER_S * 2);
    at(3, 0, SC_PS_PER_S);
    assert_true(r.shared[0] == SC_PS_PER_S / 2 && r.overlapped[0] == 0);
    assert_int_equal(r.n_links, 2);
    assert_true(r.link[0] == 2 && r.link_bytes[0] == 2e9);
    assert_true(r.link[1] == 4 && r.link_bytes[1] == 1e9);
    sc_rules private = *sc_rules_find(NULL);
    private.links_private = true;
    o.rules = &private;
    assert_int_equal(sc_sim_run(&x, &o, &arena, &r, &err), SC_OK);
    at(0, 0, SC_PS_PER_S);
}

/* Prices of a third of the link: three fit, and take exactly their price; of
 * four each gets a quarter, but only while they move. */
static void latency_does_not_share(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        begin(4);
        o.hw = machine("switch4@1GB/s");
        uint32_t t = traffic(0, 0.5);
        sc_time work = 12345678 + 3600000000;
        for (uint32_t d = 0; d < n; d++)
            transfer(t, 2400000, work, 12345678, d);
        run();
        sc_time longer = n < 4 ? 0 : 1200000000;
        assert_true(llabs(r.end[0] - work - longer) <= (n < 3 ? 0 : 2));
        assert_true(r.shared[0] == r.end[0] - work);
    }
}

/* An op that waits on links is told apart from one beside others. */
static void tells_why(void **state)
{
    (void)state;
    begin(2);
    o.hw = machine("switch4@1GB/s");
    o.rate[SC_OP_P2P][SC_OP_COMPUTE] = 0.5;
    uint32_t t = traffic(2, 1);
    /* alone on its link, at half rate for 1 s of 2 */
    compute(SC_PS_PER_S, 0);
    transfer(t, GB, SC_PS_PER_S, 0, 0);
    run();
    at(1, 0, SC_PS_PER_S * 3 / 2);
    assert_true(r.overlapped[1] == SC_PS_PER_S / 2 && r.shared[1] == 0);
    /* two, one of which leaves the other more than half */
    begin(2);
    o.hw = machine("switch4@1GB/s");
    o.rate[SC_OP_P2P][SC_OP_COMPUTE] = 0.25;
    t = traffic(2, 1);
    compute(4 * SC_PS_PER_S, 0);
    transfer(t, GB, SC_PS_PER_S, 0, 0);
    transfer(t, 3 * GB, 3 * SC_PS_PER_S, 0, 1);
    run();
    at(1, 0, 4 * SC_PS_PER_S);
    at(2, 0, 4 * SC_PS_PER_S);
    assert_true(r.overlapped[1] == 3 * SC_PS_PER_S && r.shared[1] == 0);
    assert_true(r.shared[2] == SC_PS_PER_S && r.overlapped[2] == 0);
    /* half of it slowed for 1 s by a kernel, the other half shares for 1 s */
    begin(2);
    o.hw = machine("switch4@1GB/s");
    o.rate[SC_OP_P2P][SC_OP_COMPUTE] = 0.5;
    t = traffic(2, 1);
    compute(SC_PS_PER_S, 0);
    sc_op wait = compute(SC_PS_PER_S, 1), late;
    transfer(t, GB, SC_PS_PER_S, 0, 0);
    late = transfer(t, GB / 2, SC_PS_PER_S / 2, 0, 1);
    sc_graph_add_dep(b, wait, late);
    run();
    at(2, 0, 2 * SC_PS_PER_S);
    assert_true(r.shared[2] == SC_PS_PER_S / 2);
    assert_true(r.overlapped[2] == SC_PS_PER_S / 2);
}

/* Kernels of each class are slowed as its own options say. */
static void classes_slow_by_their_own_rates(void **state)
{
    (void)state;
    begin(3);
    sc_sim_opts half = o;
    half.rate[SC_OP_COMPUTE][SC_OP_COLL] = 0.5;
    const sc_sim_opts *const of[] = {&o, &half, &half};
    sc_op a[3];
    for (uint32_t d = 0; d < 3; d++) {
        a[d] = compute(100, d);
        add(SC_OP_COLL, SC_S_COMM, 100, d, 1);
    }
    sc_sim_opts all = o;
    all.of_class = of;
    if (sc_graph_build(b, &arena, &x, &err) ||
        sc_sim_run(&x, &all, &arena, &r, &err))
        no_error();
    at(a[0], 0, 100);
    at(a[1], 0, 150);
    at(a[2], 0, 150);
}

/* A link above the leaves slows a collective whose price leaves it out; others
 * are filled by it. */
static void above_the_leaves(void **state)
{
    (void)state;
    for (uint32_t slow = 0; slow < 2; slow++) {
        begin(1);
        o.hw = machine("dgx-h100:4; leaf=1; oversubscription=4");
        o.slow_above = slow;
        uint64_t link[16];
        uint32_t n = sc_hw_route(o.hw, 0, 8, 1, link, 16), up = 0;
        char name[64];
        for (; up < n; up++) {
            sc_hw_link_name(o.hw, link[up], name, sizeof name);
            if (strstr(name, ">spine")) break;
        }
        assert_true(up > 0 && up < n);
        double bw = sc_hw_link_bw(o.hw, link[up]);
        /* three times what the uplink carries, of which the adapter carries
         * two thirds */
        const uint64_t both[] = {link[up], link[up - 1]};
        const double share[] = {1, sc_hw_link_bw(o.hw, link[up - 1]) / bw / 2};
        uint32_t t = sc_graph_add_traffic(b, &(sc_traffic){2, both, share});
        sc_op_desc d = op(SC_OP_COLL, SC_S_COMM, SC_PS_PER_S, 0, 1);
        d.traffic = t;
        d.bytes = (uint64_t)(3 * bw);
        sc_op i = sc_graph_add_op(b, &d);
        run();
        sc_time expected = slow ? 2 * SC_PS_PER_S : SC_PS_PER_S;
        assert_true(llabs((long long)(r.end[i] - expected)) <= 1000);
    }
}

/* A transfer priced twice as fast as its link takes what its bytes take there. */
static void link_limits(void **state)
{
    (void)state;
    begin(1);
    o.hw = machine("switch4@1GB/s");
    transfer(traffic(0, 1), GB, SC_PS_PER_S / 2, 0, 0);
    run();
    at(0, 0, SC_PS_PER_S);
    assert_int_equal(r.shared[0], SC_PS_PER_S / 2);
}

/* A result in which a transfer exceeds a link is a bug, and names both. */
static void no_link_is_exceeded(void **state)
{
    (void)state;
    sim_net net;
    begin(2);
    o.hw = machine("switch4@1GB/s");
    uint32_t t = traffic(0, 1);
    transfer(t, GB, SC_PS_PER_S, 0, 0);
    transfer(t, GB, SC_PS_PER_S, 0, 1);
    run();
    assert_int_equal(sim_net_init(&x, &o, &arena, &net, &err), SC_OK);
    assert_int_equal(sim_net_check(&net, &x, &o, &r, &err), SC_OK);
    r.end[1] = SC_PS_PER_S / 2;
    sc_err_init(&err);
    assert_int_equal(sim_net_check(&net, &x, &o, &r, &err), SC_EBUG);
    assert_int_equal(err.d[0].code, SC_C_BUG);
    assert_non_null(strstr(err.d[0].msg, "op"));
}

static void by_readiness(void **state)
{
    (void)state;
    sc_rules rules = *sc_rules_find(NULL);
    rules.ready_order = true;
    begin(2);
    o.rules = &rules;
    sc_op slow = compute(50, 1), first = compute(10, 0), next = compute(20, 0);
    sc_graph_add_dep(b, slow, first);
    run();
    at(next, 0, 20);
    at(first, 50, 60);
    assert_int_equal(r.order[2], first);
    sc_time part[SC_N_CATS];
    sc_result_breakdown(&x, &r, 0, 60, part);
    assert_true(part[SC_CAT_COMPUTE] == 30 && part[SC_CAT_BUBBLE] == 30);
}

static void refuse(const char *text)
{
    sc_err_init(&err);
    assert_true(sc_sim_run(&x, &o, &arena, &r, &err) == SC_EINPUT);
    if (!strstr(err.d[0].msg, text)) fail_msg("%s", err.d[0].msg);
}

static void refuses(void **state)
{
    (void)state;
    begin(1);
    transfer(traffic(99, 1), 1, 1, 0, 0);
    compute(SC_TIME_MAX - 1, 0);
    compute(SC_TIME_MAX - 1, 0);
    o.rate[0][0] = 0;
    assert_int_equal(sc_graph_build(b, &arena, &x, &err), SC_OK);
    refuse("rate of compute");
    sc_sim_opts_init(&o);
    o.gamma = -0.5;
    refuse("gamma");
    sc_sim_opts_init(&o);
    o.link_fraction[1] = 2;
    refuse("share of links");
    sc_sim_opts_init(&o);
    refuse("106 days");
    o.rate[SC_OP_COMPUTE][SC_OP_P2P] = 0.5;
    refuse("106 days");
    o.hw = machine("switch4@1GB/s");
    refuse("link 99");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(meets, setup, teardown),
        cmocka_unit_test_setup_teardown(slows, setup, teardown),
        cmocka_unit_test_setup_teardown(gamma_is_for_gradients, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(shares, setup, teardown),
        cmocka_unit_test_setup_teardown(latency_does_not_share, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(tells_why, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_slow_by_their_own_rates, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(above_the_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(link_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(no_link_is_exceeded, setup, teardown),
        cmocka_unit_test_setup_teardown(by_readiness, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
