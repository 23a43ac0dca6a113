/* SPDX-License-Identifier: Apache-2.0 */
/* What a port carries, by fabric and by who shares it. */
#include "net/net.h"
#include "unit.h"

#include <math.h>

#define assert_near(a, b, eps) assert_true(fabs((a) - (b)) <= (eps))

static const sc_device device = {.name = "d", .arch = "ampere"};

static sc_hw node(sc_dim_kind kind, uint32_t size, double bw)
{
    sc_hw hw = {.name = "m", .device = &device, .n_devices = size};
    hw.node_size = size;
    hw.n_nodes = 1;
    hw.n_dims = 1;
    hw.dim[0] = (sc_dim){.kind = kind, .size = size, .bw = bw};
    return hw;
}

static sc_place group(uint32_t m, uint32_t nodes, uint32_t peers)
{
    sc_place at = {.n = m * nodes, .m = m, .nodes = nodes, .peers = peers};
    for (int i = 0; i < SC_HW_DIMS; i++) at.dim_n[i] = 1;
    at.dim_n[0] = m;
    at.dim_n[1] = nodes;
    return at;
}

static double inside(sc_dim_kind kind, uint32_t size, uint32_t m, sc_pattern p)
{
    sc_hw hw = node(kind, size, 100);
    sc_place at = group(m, 1, 1);
    return sc_net_bw(&hw, &at, SC_SCOPE_NODE, p);
}

static void expect(double got, double want)
{
    assert_near(got, want, 1e-9 * want);
}

static void fabrics(void **state)
{
    (void)state;
    expect(inside(SC_DIM_SWITCH, 8, 3, SC_PATTERN_NEIGHBOURS), 100);
    expect(inside(SC_DIM_SWITCH, 8, 8, SC_PATTERN_ALL_PAIRS), 100);
    expect(inside(SC_DIM_FULL, 5, 5, SC_PATTERN_NEIGHBOURS), 100);
    expect(inside(SC_DIM_FULL, 5, 2, SC_PATTERN_NEIGHBOURS), 25);
    expect(inside(SC_DIM_FULL, 5, 5, SC_PATTERN_PAIR), 25);
    expect(inside(SC_DIM_RING, 8, 8, SC_PATTERN_NEIGHBOURS), 100);
    expect(inside(SC_DIM_RING, 8, 4, SC_PATTERN_NEIGHBOURS), 50);
    expect(inside(SC_DIM_MESH, 8, 8, SC_PATTERN_NEIGHBOURS), 50);
    expect(inside(SC_DIM_TREE, 8, 8, SC_PATTERN_NEIGHBOURS), 100);
}

/* Bisection: half of each half's bytes cross the cut. */
static void all_pairs(void **state)
{
    (void)state;
    /* Ring of 8: each of 4 members sends V/2 across two cuts of bw/2 each
     * way, in V * 4 / 2 / 100; 7/8 V through the port in that time. */
    expect(inside(SC_DIM_RING, 8, 8, SC_PATTERN_ALL_PAIRS), 7.0 / 8 * 50);
    expect(inside(SC_DIM_MESH, 8, 8, SC_PATTERN_ALL_PAIRS), 7.0 / 8 * 25);
    expect(inside(SC_DIM_TREE, 8, 8, SC_PATTERN_ALL_PAIRS), 7.0 / 8 * 50);
    expect(inside(SC_DIM_TREE, 8, 2, SC_PATTERN_ALL_PAIRS), 100);
}

/* A cube mesh has no formula: coll/ searches it. */
static void cube_mesh(void **state)
{
    (void)state;
    sc_hw hw = node(SC_DIM_CUBE, 8, 6 * 22);
    sc_place at = group(8, 1, 1);
    assert_true(sc_net_bw(&hw, &at, SC_SCOPE_NODE, SC_PATTERN_NEIGHBOURS) == 0);
}

static sc_hw cluster(double oversub, uint32_t leaf)
{
    sc_hw hw = node(SC_DIM_SWITCH, 8, 300);
    hw.n_dims = 2;
    hw.n_nodes = 16;
    hw.n_devices = 128;
    hw.dim[0].latency_s = 1e-6;
    hw.dim[1] = (sc_dim){.kind = SC_DIM_SWITCH,
                         .size = 16,
                         .ports = 4,
                         .port_bw = 20,
                         .oversub = oversub,
                         .leaf = leaf,
                         .latency_s = 3e-6};
    return hw;
}

static double across(const sc_hw *hw, uint32_t m, uint32_t nodes,
                     uint32_t peers)
{
    sc_place at = group(m, nodes, peers);
    return sc_net_bw(hw, &at, SC_SCOPE_NET, SC_PATTERN_NEIGHBOURS);
}

static void between_nodes(void **state)
{
    (void)state;
    sc_hw hw = cluster(1, 0);
    expect(across(&hw, 8, 2, 1), 80);
    expect(across(&hw, 1, 2, 8), 10);
    expect(across(&hw, 1, 2, 0), 80);
    assert_true(across(&hw, 8, 1, 1) == 0);
    sc_place one = group(1, 2, 8);
    assert_true(sc_net_bw(&hw, &one, SC_SCOPE_NODE, SC_PATTERN_PAIR) == 0);
    hw = cluster(2, 4);
    expect(across(&hw, 8, 4, 1), 80);
    expect(across(&hw, 8, 5, 1), 40);
    /* two members with nodes between them: the part of hops that leave leaves */
    static const double bw[] = {10, 10, 10, 10 / 1.5, 5, 5};
    for (uint32_t reach = 0; reach < SC_COUNT(bw); reach++) {
        sc_place at = group(1, 2, 8);
        at.reach = reach;
        expect(sc_net_bw(&hw, &at, SC_SCOPE_NET, SC_PATTERN_PAIR), bw[reach]);
    }
    assert_true(sc_net_latency(&hw, SC_SCOPE_NODE) == 1e-6);
    assert_true(sc_net_latency(&hw, SC_SCOPE_NET) == 3e-6);
}

static void host_links_limit(void **state)
{
    (void)state;
    sc_device narrow = device;
    narrow.host_bw = 16;
    sc_hw hw = cluster(1, 0);
    hw.device = &narrow;
    expect(across(&hw, 1, 2, 1), 16);
    expect(across(&hw, 8, 2, 1), 80);
}

static double with_pattern(const sc_hw *hw, uint32_t m, sc_pattern p)
{
    sc_place at = group(m, 2, 1);
    return sc_net_bw(hw, &at, SC_SCOPE_NET, p);
}

/* Rails meet at the spines only; without rails a leaf joins all. */
static void other_rails(void **state)
{
    (void)state;
    sc_hw hw = cluster(4, 0);
    expect(with_pattern(&hw, 8, SC_PATTERN_OTHER_RAILS), 80);
    hw.dim[1].rails = 4;
    expect(with_pattern(&hw, 8, SC_PATTERN_OTHER_RAILS), 20);
    expect(with_pattern(&hw, 8, SC_PATTERN_NEIGHBOURS), 80);
    hw.dim[1].oversub = 1;
    expect(with_pattern(&hw, 8, SC_PATTERN_OTHER_RAILS), 80);
}

/* One member of a node sends: it has its own adapters, or a share of one. */
static void one_sends(void **state)
{
    (void)state;
    sc_hw hw = cluster(1, 0);
    expect(with_pattern(&hw, 8, SC_PATTERN_PAIR), 20);
    hw.dim[1].ports = 16;
    expect(with_pattern(&hw, 8, SC_PATTERN_PAIR), 40);
    sc_place shared = group(1, 2, 8);
    hw.dim[1].ports = 4;
    expect(sc_net_bw(&hw, &shared, SC_SCOPE_NET, SC_PATTERN_PAIR), 10);
}

static void without_ports(void **state)
{
    (void)state;
    sc_hw hw = cluster(1, 0);
    hw.dim[1].ports = 0;
    hw.dim[1].bw = 7;
    expect(across(&hw, 8, 2, 1), 56);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fabrics),          cmocka_unit_test(all_pairs),
        cmocka_unit_test(cube_mesh),        cmocka_unit_test(between_nodes),
        cmocka_unit_test(host_links_limit), cmocka_unit_test(without_ports),
        cmocka_unit_test(other_rails),      cmocka_unit_test(one_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
