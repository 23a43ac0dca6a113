/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and steps of each algorithm on cases worked out by hand. */
#include "coll/coll.h"
#include "hw/hw_nccl.h"
#include "unit.h"

#include <math.h>

#define assert_near(a, b, eps) assert_true(fabs((a) - (b)) <= (eps))

static const sc_device device = {.name = "d", .arch = "hopper"};

/* Nodes of eight on a switch that multicasts. */
static sc_hw machine(uint32_t nodes)
{
    sc_hw hw = {.name = "m", .device = &device, .node_size = 8};
    hw.n_devices = 8 * nodes;
    hw.n_nodes = nodes;
    hw.n_dims = 2;
    hw.dim[0] = (sc_dim){.kind = SC_DIM_SWITCH, .size = 8, .multicast = true};
    hw.dim[1] = (sc_dim){.kind = SC_DIM_SWITCH, .size = nodes, .ports = 8};
    return hw;
}

static sc_place group(uint32_t m, uint32_t nodes)
{
    sc_place at = {.n = m * nodes, .m = m, .nodes = nodes, .peers = 1};
    for (int i = 0; i < SC_HW_DIMS; i++) at.dim_n[i] = 1;
    at.dim_n[0] = m;
    at.dim_n[1] = nodes;
    return at;
}

static bool run(int algorithm, sc_coll coll, double bytes, uint32_t m,
                uint32_t nodes, sc_phases *out)
{
    sc_hw hw = machine(nodes);
    sc_place at = group(m, nodes);
    return sc_algorithm_phases(algorithm, coll, bytes, &at, &hw, out);
}

static void expect(const sc_phase *p, sc_scope scope, uint32_t steps,
                   double bytes)
{
    assert_int_equal(p->scope, scope);
    assert_int_equal(p->steps, steps);
    assert_near(p->bytes, bytes, 1e-9 * bytes);
}

static void rings(void **state)
{
    (void)state;
    sc_phases ph;
    assert_true(run(SC_ALGO_RING, SC_ALL_REDUCE, 800, 8, 1, &ph));
    assert_int_equal(ph.n, 1);
    expect(&ph.p[0], SC_SCOPE_NODE, 14, 1400);
    assert_true(run(SC_ALGO_RING, SC_ALL_GATHER, 800, 8, 1, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 7, 700);
    assert_true(run(SC_ALGO_RING, SC_REDUCE_SCATTER, 800, 1, 8, &ph));
    assert_int_equal(ph.n, 1);
    expect(&ph.p[0], SC_SCOPE_NET, 7, 700);
    /* 16 members on two nodes: 30 steps, two of them across. */
    assert_true(run(SC_ALGO_RING, SC_ALL_REDUCE, 1600, 8, 2, &ph));
    assert_int_equal(ph.n, 2);
    expect(&ph.p[0], SC_SCOPE_NODE, 28, 3000 * 7.0 / 8);
    expect(&ph.p[1], SC_SCOPE_NET, 2, 3000);
    assert_true(ph.p[1].overlaps);
    assert_false(run(SC_ALGO_RING, SC_ALL_TO_ALL, 800, 8, 1, &ph));
}

static void trees(void **state)
{
    (void)state;
    sc_phases ph;
    assert_true(run(SC_ALGO_TREE, SC_ALL_REDUCE, 100, 8, 2, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 14, 200);
    expect(&ph.p[1], SC_SCOPE_NET, 2, 100);
    assert_true(run(SC_ALGO_TREE, SC_ALL_REDUCE, 100, 8, 5, &ph));
    expect(&ph.p[1], SC_SCOPE_NET, 4, 200);
    assert_true(run(SC_ALGO_TREE, SC_BROADCAST, 100, 1, 4, &ph));
    assert_int_equal(ph.n, 1);
    expect(&ph.p[0], SC_SCOPE_NET, 2, 100);
    assert_false(run(SC_ALGO_TREE, SC_ALL_GATHER, 100, 8, 2, &ph));
}

static void hierarchies(void **state)
{
    (void)state;
    sc_phases ph;
    assert_true(run(SC_ALGO_HIERARCHICAL, SC_ALL_REDUCE, 800, 8, 4, &ph));
    assert_int_equal(ph.n, 3);
    expect(&ph.p[0], SC_SCOPE_NODE, 7, 700);
    expect(&ph.p[1], SC_SCOPE_NET, 6, 1200);
    expect(&ph.p[2], SC_SCOPE_NODE, 7, 700);
    assert_true(run(SC_ALGO_HIERARCHICAL, SC_ALL_GATHER, 800, 8, 4, &ph));
    assert_int_equal(ph.n, 2);
    expect(&ph.p[0], SC_SCOPE_NET, 3, 600);
    expect(&ph.p[1], SC_SCOPE_NODE, 7, 700);
}

static void direct_exchanges(void **state)
{
    (void)state;
    sc_phases ph;
    /* Each of 16 keeps 1/16, sends 7/16 inside and 8/16 across. */
    assert_true(run(SC_ALGO_DIRECT, SC_ALL_TO_ALL, 1600, 8, 2, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 1, 700);
    expect(&ph.p[1], SC_SCOPE_NET, 1, 8 * 800);
    assert_true(ph.p[1].overlaps);
    assert_true(run(SC_ALGO_DIRECT, SC_SENDRECV, 50, 1, 2, &ph));
    assert_int_equal(ph.n, 1);
    expect(&ph.p[0], SC_SCOPE_NET, 1, 50);
    assert_true(run(SC_ALGO_DIRECT, SC_SENDRECV, 50, 2, 1, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 1, 50);
    assert_true(run(SC_ALGO_DIRECT, SC_BROADCAST, 50, 4, 1, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 1, 150);
}

static void in_switch(void **state)
{
    (void)state;
    sc_phases ph;
    assert_true(run(SC_ALGO_NVLS, SC_ALL_REDUCE, 800, 8, 1, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 1, 900);
    assert_true(run(SC_ALGO_NVLS, SC_ALL_GATHER, 800, 8, 1, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 1, 700);
    assert_true(run(SC_ALGO_NVLS_TREE, SC_ALL_REDUCE, 800, 8, 4, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 1, 900);
    expect(&ph.p[1], SC_SCOPE_NET, 4, 1600);
    assert_true(run(SC_ALGO_NVLS_TREE, SC_ALL_REDUCE, 800, 8, 2, &ph));
    expect(&ph.p[1], SC_SCOPE_NET, 2, 800); /* each tree's root takes half */
    assert_false(run(SC_ALGO_NVLS_TREE, SC_ALL_REDUCE, 800, 8, 1, &ph));
    assert_false(run(SC_ALGO_NVLS_TREE, SC_ALL_GATHER, 800, 8, 4, &ph));
    assert_false(run(SC_ALGO_NVLS, SC_ALL_REDUCE, 800, 8, 4, &ph));
    assert_false(run(SC_ALGO_NVLS, SC_ALL_GATHER, 800, 8, 4, &ph));
    assert_false(run(SC_ALGO_NVLS, SC_ALL_REDUCE, 800, 2, 1, &ph));
    sc_hw plain = machine(1);
    sc_place at = group(8, 1);
    plain.dim[0].multicast = false;
    assert_false(
        sc_algorithm_phases(SC_ALGO_NVLS, SC_ALL_REDUCE, 8, &at, &plain, &ph));
}

/* The network's switches reduce: a node sends V once, however many there are. */
static void in_the_network(void **state)
{
    (void)state;
    static const sc_nccl_options sharp = {.collnet = true};
    sc_hw hw = machine(16);
    sc_place at = group(8, 16);
    sc_phases ph;
    assert_false(sc_algorithm_phases(SC_ALGO_COLLNET, SC_ALL_REDUCE, 800, &at,
                                     &hw, &ph));
    hw.nccl_options = &sharp;
    assert_true(sc_algorithm_phases(SC_ALGO_COLLNET, SC_ALL_REDUCE, 800, &at,
                                    &hw, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 2, 1400);
    expect(&ph.p[1], SC_SCOPE_NET, 2, 800);
    assert_true(
        sc_algorithm_phases(SC_ALGO_NVLS, SC_ALL_REDUCE, 800, &at, &hw, &ph));
    expect(&ph.p[0], SC_SCOPE_NODE, 1, 900);
    expect(&ph.p[1], SC_SCOPE_NET, 2, 800);
    assert_true(
        sc_algorithm_phases(SC_ALGO_NVLS, SC_ALL_GATHER, 800, &at, &hw, &ph));
    expect(&ph.p[1], SC_SCOPE_NET, 1, 750);
    assert_false(sc_algorithm_phases(SC_ALGO_COLLNET, SC_ALL_GATHER, 800, &at,
                                     &hw, &ph));
}

static void aggregated_trees(void **state)
{
    (void)state;
    sc_phases ph;
    assert_true(run(SC_ALGO_PAT, SC_ALL_GATHER, 800, 1, 8, &ph));
    assert_int_equal(ph.n, 1);
    expect(&ph.p[0], SC_SCOPE_NET, 3, 700);
    assert_true(run(SC_ALGO_PAT, SC_REDUCE_SCATTER, 800, 1, 5, &ph));
    expect(&ph.p[0], SC_SCOPE_NET, 3, 640);
    assert_false(run(SC_ALGO_PAT, SC_ALL_REDUCE, 800, 1, 8, &ph));
    assert_false(run(SC_ALGO_PAT, SC_ALL_GATHER, 800, 2, 8, &ph));
}

static void nothing_moves(void **state)
{
    (void)state;
    for (int a = 0; a < SC_N_ALGOS; a++) {
        sc_phases ph = {.n = 7};
        assert_true(run(a, SC_ALL_REDUCE, 100, 1, 1, &ph));
        assert_int_equal(ph.n, 0);
        ph.n = 7;
        assert_true(run(a, SC_ALL_REDUCE, 0, 8, 2, &ph));
        assert_int_equal(ph.n, 0);
    }
}

static void names(void **state)
{
    (void)state;
    uint32_t n;
    const sc_algorithm *table = sc_algorithms(&n);
    assert_int_equal(n, SC_N_ALGOS);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(sc_algorithm_find(table[i].name), (int)i);
    assert_int_equal(sc_algorithm_find("rings"), -1);
}

static void bus_factors(void **state)
{
    (void)state;
    assert_near(sc_coll_bus_factor(SC_ALL_REDUCE, 8), 1.75, 0);
    assert_near(sc_coll_bus_factor(SC_ALL_GATHER, 8), 0.875, 0);
    assert_near(sc_coll_bus_factor(SC_BROADCAST, 8), 1, 0);
    assert_near(sc_coll_bus_factor(SC_ALL_REDUCE, 1), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings),
        cmocka_unit_test(trees),
        cmocka_unit_test(hierarchies),
        cmocka_unit_test(direct_exchanges),
        cmocka_unit_test(in_switch),
        cmocka_unit_test(in_the_network),
        cmocka_unit_test(aggregated_trees),
        cmocka_unit_test(nothing_moves),
        cmocka_unit_test(names),
        cmocka_unit_test(bus_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
