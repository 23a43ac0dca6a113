/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: connected, loop-free, deterministic, of the right length. */
#include "hw/hw_link.h"
#include "property.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const machines[] = {
    "switch8@450GB/s",
    "ring2@1GB/s",
    "ring9@300GB/s,50ns",
    "torus4x5x3@60GB/s",
    "mesh7@10GB/s x mesh3@10GB/s",
    "fc5@100GB/s x fc3@1GB/s",
    "tree13@16GB/s x ring3@1GB/s",
    "cube8@150GB/s; device=v100",
    "cube8@80GB/s x switch3@9GB/s; nics=4; device=p100-sxm2",
    "ring4@300GB/s,50ns x fc8@200GB/s x switch4@50GB/s",
    "switch8@450GB/s x switch9@50GB/s; nics=8; rails=4; leaf=2",
    "fc6@9GB/s x switch7@5GB/s; nics=4; rails=1; leaf=3; oversubscription=3",
    "tree3@9GB/s x switch6@5GB/s; nics=7; rails=1; leaf=4",
    "ring3@9GB/s x switch5@5GB/s; nics=9; rails=3; leaf=2; pue=1.1",
    "switch1@9GB/s x switch12@5GB/s; nics=2; rails=2; leaf=5",
    "dgx1-v100:3",
    "jean-zay-a100:5",
    "selene:45",
    "dgx-h100:2048",
    "pcie-gen4:2",
    "switch6@1GB/s x ring2@1GB/s x switch3@1GB/s; nics=0",
    "fc2@9GB/s x switch24@5GB/s; rails=1; leaf=2; group=6",
    "fc4@9GB/s x switch21@5GB/s; nics=2; rails=2; leaf=2; group=4",
    "switch3@9GB/s x switch7@5GB/s; group=3; oversubscription=2",
    "fc2@9GB/s x switch22@5GB/s; rails=1; leaf=2; pod=6",
    "fc4@9GB/s x switch24@5GB/s; leaf=2; pod=8; core_oversubscription=3",
    "frontier:9408",
    "gb200-nvl72:9",
    "tpu-v5p:896",
    "tpu-v5e:512",
    "dojo-tile:3",
    "h200-nvl-pcie:3",
    "aws-p5:4"};

static sc_arena arena;
static const sc_hw *hw[SC_COUNT(machines)];

static int build_all(void **state)
{
    (void)state;
    sc_err err;
    sc_arena_init(&arena, (size_t)64 << 20);
    for (size_t i = 0; i < SC_COUNT(machines); i++) {
        sc_err_init(&err);
        if (sc_hw_build(machines[i], sc_pos_none(), &arena, &hw[i], &err) !=
            SC_OK)
            fail_msg("%s: %s", machines[i], err.d[0].msg);
    }
    return 0;
}

static int drop_all(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

static bool same(hw_vertex a, hw_vertex b)
{
    return a.kind == b.kind && a.id == b.id &&
           (a.kind == HW_V_DEVICE || a.dim == b.dim);
}

/* Consecutive links share a vertex, no vertex is met twice. */
static bool route_is_path(const sc_hw *h, uint32_t src, uint32_t dst,
                          const uint64_t *links, uint32_t n)
{
    hw_vertex seen[256] = {{HW_V_DEVICE, 0, src}};
    const hw_map map = hw_map_of(h);
    for (uint32_t i = 0; i < n; i++) {
        hw_link l;
        if (links[i] >= sc_hw_n_links(h) || !hw_link_get(&map, links[i], &l))
            return false;
        if (!same(l.from, seen[i]) || !(l.bw > 0)) return false;
        if (l.bw != sc_hw_link_bw(h, links[i])) return false;
        for (uint32_t j = 0; j <= i; j++)
            if (same(seen[j], l.to)) return false;
        seen[i + 1] = l.to;
    }
    return same(seen[n], (hw_vertex){HW_V_DEVICE, 0, dst});
}

static bool a_route(prop *p, void *ctx)
{
    (void)ctx;
    size_t i = (size_t)prop_below(p, SC_COUNT(machines));
    const sc_hw *h = hw[i];
    uint32_t src = (uint32_t)prop_below(p, h->n_devices);
    uint32_t dst = (uint32_t)prop_below(p, h->n_devices);
    uint64_t seed = prop_below(p, UINT64_MAX), links[200], again[200];
    uint32_t n = sc_hw_route(h, src, dst, seed, links, 200);
    bool ok = n < 200 && (n == 0) == (src == dst);
    ok = ok && sc_hw_route(h, src, dst, seed, again, 200) == n &&
         memcmp(links, again, n * sizeof links[0]) == 0;
    ok = ok && sc_hw_route(h, src, dst, seed, NULL, 0) == n;
    ok = ok && route_is_path(h, src, dst, links, n);
    if (!ok && prop_reporting(p))
        printf("%s: %u to %u, %u links\n", machines[i], src, dst, n);
    return ok;
}

static void routes_are_paths(void **state)
{
    (void)state;
    assert_true(prop_check("hw routes", 20000, a_route, NULL));
}

/* Every link is decoded, joins two places, and has a name of its own (a ring
 * of two has two links each way). */
static void links_are_dense(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(machines); i++) {
        uint64_t n = sc_hw_n_links(hw[i]);
        const hw_map map = hw_map_of(hw[i]);
        hw_link l;
        assert_int_equal(map.n_links, n);
        for (uint64_t k = 0; k < n && k < 20000; k++) {
            assert_true(hw_link_get(&map, k, &l));
            assert_false(same(l.from, l.to));
            assert_true(l.bw > 0);
            char name[100];
            sc_hw_link_name(hw[i], k, name, sizeof name);
            assert_true(strlen(name) > 8);
        }
        assert_false(hw_link_get(&map, n, &l));
        assert_true(sc_hw_link_bw(hw[i], n) == 0);
    }
}

/* On small machines all routes together use every link there is, except
 * links that only serve ties or unused NICs. */
static void all_pairs_cover_links(void **state)
{
    (void)state;
    static const size_t full[] = {0, 2, 3, 4, 5, 7, 16, 21, 23};
    for (size_t i = 0; i < SC_COUNT(full); i++) {
        const sc_hw *h = hw[full[i]];
        uint64_t n = sc_hw_n_links(h), links[200];
        char *used = calloc(n, 1);
        assert_non_null(used);
        for (uint32_t s = 0; s < h->n_devices; s++)
            for (uint32_t d = 0; d < h->n_devices; d++)
                for (uint64_t seed = 0; seed < 8; seed++) {
                    uint32_t k = sc_hw_route(h, s, d, seed, links, 200);
                    for (uint32_t j = 0; j < k; j++) used[links[j]] = 1;
                }
        for (uint64_t k = 0; k < n; k++)
            if (!used[k]) {
                char name[100];
                sc_hw_link_name(h, k, name, sizeof name);
                fail_msg("%s: no route uses %s", machines[full[i]], name);
            }
        free(used);
    }
}

static const sc_hw *machine(const char *spec)
{
    const sc_hw *h = NULL;
    sc_err err;
    sc_err_init(&err);
    if (sc_hw_build(spec, sc_pos_none(), &arena, &h, &err) != SC_OK)
        fail_msg("%s: %s", spec, err.d[0].msg);
    return h;
}

static void lengths(void **state)
{
    (void)state;
    uint64_t links[64];
    char name[100];
    assert_int_equal(sc_hw_route(machine("ring9@1GB/s"), 1, 8, 0, links, 64),
                     2);
    assert_int_equal(sc_hw_route(machine("mesh9@1GB/s"), 1, 8, 0, links, 64),
                     7);
    const sc_hw *v = machine("dgx1-v100");
    assert_int_equal(sc_hw_route(v, 0, 3, 0, links, 64), 1);
    assert_true(sc_hw_link_bw(v, links[0]) == 50e9);
    assert_int_equal(sc_hw_route(v, 0, 1, 0, links, 64), 1);
    assert_true(sc_hw_link_bw(v, links[0]) == 25e9);
    assert_int_equal(sc_hw_route(v, 0, 5, 0, links, 64), 2);
    /* same rail: two ports; other rail: NVSwitch first; other unit: spine */
    const sc_hw *h = machine("dgx-h100:64");
    assert_int_equal(sc_hw_route(h, 3, 8 + 3, 0, links, 64), 2);
    assert_int_equal(sc_hw_route(h, 3, 8 + 4, 0, links, 64), 4);
    assert_int_equal(sc_hw_route(h, 3, 8 * 40 + 3, 0, links, 64), 4);
    sc_hw_route(h, 3, 8 + 3, 0, links, 64);
    sc_hw_link_name(h, links[0], name, sizeof name);
    assert_string_equal(name, "dim1:device3>leaf0.3");
    /* two devices share a NIC: host links before and after */
    const sc_hw *j = machine("jean-zay:2");
    assert_int_equal(sc_hw_route(j, 1, 8 + 6, 0, links, 64), 4);
    sc_hw_link_name(j, links[1], name, sizeof name);
    assert_string_equal(name, "dim1:nic0.0>leaf0.0");
    /* under one host bridge, or under two */
    const sc_hw *t = machine("pcie-gen3");
    assert_int_equal(sc_hw_route(t, 0, 3, 0, links, 64), 2);
    assert_int_equal(sc_hw_route(t, 0, 4, 0, links, 64), 3);
}

/* Different seeds spread over the spines; leaf to spine capacity is the
 * nodes' divided by the oversubscription. */
static void spines(void **state)
{
    (void)state;
    const sc_hw *h = machine("switch8@1GB/s x switch8@4GB/s; nics=8; rails=2; "
                             "leaf=4; oversubscription=3");
    const hw_map map = hw_map_of(h);
    const hw_net t = map.net;
    assert_int_equal(t.groups, 2);
    assert_true(fabs((double)t.spines * t.spine_bw * 3 / (16 * 4e9) - 1) <
                1e-12);
    uint64_t links[64], seen = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        assert_int_equal(sc_hw_route(h, 0, 32, seed, links, 64), 4);
        hw_link l;
        assert_true(hw_link_get(&map, links[1], &l));
        assert_int_equal(l.to.kind, HW_V_SPINE);
        seen |= (uint64_t)1 << l.to.id;
    }
    assert_int_equal(seen, ((uint64_t)1 << t.spines) - 1);
}

/* Three tiers: what leaves a pod is divided twice, and every pair of pods is
 * joined by every core of its plane. */
static void cores(void **state)
{
    (void)state;
    const sc_hw *h =
        machine("switch4@9GB/s x switch24@5GB/s,1us; nics=4; rails=2; leaf=2; "
                "pod=8; oversubscription=2; core_oversubscription=2");
    const hw_map map = hw_map_of(h);
    const hw_net t = map.net;
    uint64_t links[64], seen = 0;
    assert_true(t.pods == 3 && t.spines == 2 && t.cores == 2);
    /* 8 nodes of 4 NICs enter a pod */
    assert_true(fabs((double)(t.rails * t.spines * t.cores) * t.core_bw * 4 /
                         (8 * 4 * 5e9) -
                     1) < 1e-12);
    assert_int_equal(sc_hw_route(h, 0, 4, 1, links, 64), 2);  /* one leaf */
    assert_int_equal(sc_hw_route(h, 0, 12, 1, links, 64), 4); /* one pod */
    for (uint64_t seed = 0; seed < 200; seed++) {
        double latency = 0;
        assert_int_equal(sc_hw_route(h, 0, 92, seed, links, 64), 6);
        hw_link l;
        assert_true(hw_link_get(&map, links[2], &l));
        assert_int_equal(l.to.kind, HW_V_CORE);
        seen |= (uint64_t)1 << l.to.id;
        for (int i = 0; i < 6; i++) latency += sc_hw_link_latency(h, links[i]);
        assert_true(fabs(latency - 3e-6) < 1e-15);
    }
    assert_int_equal(seen, 15); /* of one rail */
}

/* A dragonfly: links in a group, between groups, and what they carry. */
static void dragonfly(void **state)
{
    (void)state;
    const sc_hw *h = machine("switch2@9GB/s x switch32@4GB/s; rails=1; leaf=2; "
                             "group=8; oversubscription=2");
    const hw_map map = hw_map_of(h);
    const hw_net t = map.net;
    uint64_t links[64], seen = 0;
    assert_true(t.flies == 4 && t.switches == 4);
    /* 2 nodes of 2 NICs enter a switch, twice that leaves it to 3 others */
    assert_true(fabs(t.spine_bw * 3 / (2 * 4 * 4e9) - 1) < 1e-12);
    /* all of a group's switches together reach 3 groups at half rate */
    assert_true(fabs(t.global_bw * 4 * 3 * 2 / (16 * 4e9) - 1) < 1e-12);
    assert_int_equal(sc_hw_route(h, 0, 2, 1, links, 64), 2); /* one switch */
    assert_int_equal(sc_hw_route(h, 0, 4, 1, links, 64), 3); /* one group */
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint32_t n = sc_hw_route(h, 0, 63, seed, links, 64), global = 0;
        assert_true(n >= 3 && n <= 5);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t id = links[i] - hw_axis_of(h, 1).base;
            if (id < t.global_base) continue;
            global++;
            seen |= (uint64_t)1 << (id - t.global_base) % t.switches;
        }
        assert_int_equal(global, 1);
    }
    assert_int_equal(seen, 15);
}

/* The cube mesh is symmetric and uses all six links of each device.  Device 0
 * reaches 7 in two hops by 4 over double links, and by 3 over a double and a
 * single one, which is narrower; it reaches 5 by 1 or 4, each time over a
 * single link. */
static void cube(void **state)
{
    (void)state;
    const sc_hw *v = machine("dgx1-v100");
    const hw_map map = hw_map_of(v);
    uint64_t links[8], to_5 = 0;
    hw_link l;
    for (uint64_t seed = 0; seed < 64; seed++) {
        assert_int_equal(sc_hw_route(v, 0, 7, seed, links, 8), 2);
        assert_true(hw_link_get(&map, links[0], &l));
        assert_int_equal(l.to.id, 4);
        assert_true(sc_hw_link_bw(v, links[0]) == 50e9);
        assert_true(sc_hw_link_bw(v, links[1]) == 50e9);
        assert_int_equal(sc_hw_route(v, 0, 5, seed, links, 8), 2);
        assert_true(hw_link_get(&map, links[0], &l));
        to_5 |= (uint64_t)1 << l.to.id;
    }
    assert_int_equal(to_5, 1 << 1 | 1 << 4);
    for (uint32_t i = 0; i < 8; i++) {
        int sum = 0;
        for (int k = 0; k < HW_CUBE_DEGREE; k++) {
            hw_edge e = hw_cube[i][k];
            int back = hw_cube_edge(e.to, i);
            assert_true(back >= 0 && hw_cube[e.to][back].count == e.count);
            sum += e.count;
        }
        assert_int_equal(sum, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(routes_are_paths),
                                       cmocka_unit_test(links_are_dense),
                                       cmocka_unit_test(all_pairs_cover_links),
                                       cmocka_unit_test(lengths),
                                       cmocka_unit_test(spines),
                                       cmocka_unit_test(cores),
                                       cmocka_unit_test(dragonfly),
                                       cmocka_unit_test(cube)};
    return cmocka_run_group_tests(tests, build_all, drop_all);
}
