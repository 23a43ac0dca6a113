/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of groups, against counting every member of every sibling. */
#include "fixture.h"
#include "hw/hw.h"
#include "property.h"

#include <stdio.h>
#include <string.h>

static void check(const sc_hw *h, uint32_t size, uint32_t stride, uint32_t m,
                  uint32_t nodes, uint32_t peers)
{
    sc_place p = sc_hw_place(h, 1, &size, &stride);
    if (p.n != size || p.m != m || p.nodes != nodes || p.peers != peers)
        fail_msg("%s, %u by %u: n %u m %u nodes %u peers %u", h->name, size,
                 stride, p.n, p.m, p.nodes, p.peers);
}

static void usual_groups(void **state)
{
    (void)state;
    const sc_hw *h = machine("dgx-a100-80g:16");
    check(h, 1, 1, 1, 1, 8);
    check(h, 8, 1, 8, 1, 1);   /* TP8 */
    check(h, 4, 1, 4, 1, 2);   /* TP4 */
    check(h, 16, 8, 1, 16, 8); /* DP16 across nodes of TP8 */
    check(h, 8, 4, 2, 4, 4);   /* DP8 of TP4 */
    check(h, 2, 64, 1, 2, 8);  /* PP2 */
    check(h, 128, 1, 8, 16, 1);
    check(h, 16, 1, 8, 2, 1); /* two nodes */
    check(h, 3, 8, 1, 3, 8);
    check(h, 6, 1, 2, 3, 4); /* siblings of 6 straddle nodes: 6, 2 + 4 */
    check(h, 3, 4, 1, 3, 8); /* 2 + 1 */
    check(h, 5, 1, 1, 5, 8);
    check(machine("dgx-h100:2048"), 2048, 8, 1, 2048, 8);
    check(machine("dgx-h100"), 6, 1, 6, 1, 2); /* one node: no network */
}

/* Some members of every group along an axis, the worst of them, by hand. */
static void some_members(void **state)
{
    (void)state;
    const sc_hw *h = machine("dgx-h100:2");

    /* Four stages of four ranks on nodes of eight: stages 0 and 1 share a node;
     * from 1 to 2, and from 0 to 3, four pairs leave it. */
    static const struct {
        uint32_t size, stride, n, at[4], m, nodes, peers;
    } row[] = {
        {4, 4, 2, {0, 1}, 2, 1, 4},
        {4, 4, 2, {1, 2}, 1, 2, 4},
        {4, 4, 2, {2, 1}, 1, 2, 4},
        {4, 4, 2, {3, 2}, 2, 1, 4},
        {4, 4, 2, {0, 3}, 1, 2, 4},
        {4, 4, 4, {0, 1, 2, 3}, 2, 2, 4},
        {4, 4, 3, {0, 1, 2}, 1, 3, 4},
        {2, 8, 2, {0, 1}, 1, 2, 8},  /* whole nodes: all eight pairs leave */
        {16, 1, 2, {7, 8}, 1, 2, 1}, /* one pipeline: one pair does */
        {16, 1, 2, {6, 7}, 2, 1, 4},
        {5, 3, 2, {1, 2}, 1, 2, 1}, /* 3 4 5 to 6 7 8: one pair leaves */
        {5, 3, 2, {2, 3}, 1, 2, 2}, /* 6 7 8 to 9 10 11: two do */
    };

    for (size_t i = 0; i < SC_COUNT(row); i++) {
        sc_place p = sc_hw_place_axis(h, row[i].size, row[i].stride, row[i].n,
                                      row[i].at);
        if (p.m != row[i].m || p.nodes != row[i].nodes ||
            p.peers != row[i].peers || p.n != row[i].n)
            fail_msg("row %zu: n %u m %u nodes %u peers %u", i, p.n, p.m,
                     p.nodes, p.peers);
    }
    uint32_t pair[] = {1, 2};
    sc_place p = sc_hw_place_axis(h, 4, 4, 2, pair);
    assert_true(p.dim_n[0] == 1 && p.dim_n[1] == 2);
}

static void two_axes(void **state)
{
    (void)state;
    const sc_hw *h = machine("dgx-a100-80g:16");
    uint32_t size[] = {4, 2, 1}, stride[] = {32, 1, 7};
    sc_place p = sc_hw_place(h, 3, size, stride);
    assert_true(p.n == 8 && p.m == 2 && p.nodes == 4 && p.peers == 4);
    assert_true(p.dim_n[0] == 2 && p.dim_n[1] == 4);
    const sc_hw *r = machine("ring4@1GB/s x fc8@1GB/s x switch4@1GB/s");
    uint32_t one = 16, two = 2;
    p = sc_hw_place(r, 1, &one, &two);
    assert_true(p.m == 16 && p.nodes == 1 && p.peers == 2);
    assert_true(p.dim_n[0] == 2 && p.dim_n[1] == 8 && p.dim_n[2] == 1);
}

/* Nodes of 72: from device 0 the members are 0 2 4 6 8, the same from 20, and
 * all of these again from 120 and 240. Of nodes 0 to 3 they hold 10, 7 (120 to
 * 128, 140 and 142), 3 (144, 146 and 148) and 10, so that no number above 1
 * divides them all, though it divides what the first and the last hold. */
static void nodes_between(void **state)
{
    (void)state;
    uint32_t size[] = {5, 2, 3}, stride[] = {2, 20, 120};
    sc_place p =
        sc_hw_place(machine("switch72@1GB/s x switch8@1GB/s"), 3, size, stride);
    assert_true(p.n == 30 && p.m == 1 && p.nodes == 30 && p.peers == 72);
}

typedef struct shape {
    uint64_t size[3], stride[3], n, block;
    uint32_t axes;
} shape;

/* Draws nested axes: gaps and sizes from the inside out. */
static shape draw_shape(prop *p)
{
    shape s = {.n = 1, .block = 1, .axes = (uint32_t)prop_below(p, 3) + 1};
    for (uint32_t i = 0; i < s.axes; i++) {
        s.stride[i] = s.block * (prop_below(p, 5) + 1);
        s.size[i] = prop_below(p, 5) + 1;
        if (s.size[i] == 1) s.stride[i] = s.block;
        s.block = s.stride[i] * s.size[i];
        s.n *= s.size[i];
    }
    return s;
}

static bool is_member(const shape *s, uint64_t offset)
{
    for (uint32_t i = s->axes; i-- > 0;)
        offset -= offset / s->stride[i] % s->size[i] * s->stride[i];
    return offset == 0;
}

static bool is_first(const shape *s, uint64_t offset)
{
    for (uint32_t i = 0; i < s->axes; i++)
        if (offset / s->stride[i] % s->size[i] != 0) return false;
    return true;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* gcd of the shares of all nodes in all siblings of the first blocks. */
static uint64_t slow_share(const shape *s, uint64_t node_size, uint64_t blocks)
{
    uint64_t share = 0;
    for (uint64_t b = 0; b < blocks; b++)
        for (uint64_t f = 0; f < s->block; f++) {
            if (!is_first(s, f)) continue;
            uint64_t in_node[256] = {0}, low = (b * s->block) / node_size;
            for (uint64_t o = f; o < s->block; o++)
                if (is_member(s, o - f))
                    in_node[(b * s->block + o) / node_size - low]++;
            for (int i = 0; i < 256; i++) share = gcd(share, in_node[i]);
        }
    return share;
}

static bool like_counting(prop *p, void *ctx)
{
    static const char *const specs[] = {
        "fc6@1GB/s x switch64@1GB/s", "fc8@1GB/s x switch64@1GB/s",
        "ring2@1GB/s x fc6@1GB/s x switch64@1GB/s"};
    static const uint32_t node_size[] = {6, 8, 12};
    const sc_hw **hw = ctx;
    size_t i = (size_t)prop_below(p, 3);
    shape s = draw_shape(p);
    if (s.block > 64 * node_size[i] || s.block > 240) return true;
    if (hw[i] == NULL) hw[i] = machine(specs[i]);
    uint32_t size[3], stride[3], product = 1;
    for (uint32_t k = 0; k < s.axes; k++) {
        size[k] = (uint32_t)s.size[k];
        stride[k] = (uint32_t)s.stride[k];
    }
    sc_place at = sc_hw_place(hw[i], s.axes, size, stride);
    for (uint32_t d = 0; d < SC_HW_DIMS; d++) product *= at.dim_n[d];
    uint64_t blocks = 64ull * node_size[i] / s.block;
    uint64_t want = slow_share(&s, node_size[i], blocks);
    bool ok = at.n == s.n && at.m == want && at.m * at.nodes == at.n &&
              product == at.n && at.peers == (node_size[i] + at.m - 1) / at.m;
    if (!ok && prop_reporting(p))
        printf("%s: m %u, counted %llu\n", specs[i], at.m,
               (unsigned long long)want);
    return ok;
}

static void random_groups(void **state)
{
    (void)state;
    const sc_hw *hw[3] = {NULL, NULL, NULL};
    assert_true(prop_check("hw places", 3000, like_counting, hw));
}

/* Nodes between neighbours of a group: its innermost hops between nodes. */
static void reach(void **state)
{
    (void)state;
    static const uint32_t pair[] = {0, 1}, ranks[] = {0, 8, 40, 72};
    const sc_hw *h = machine("switch8@300GB/s x switch16@50GB/s");
    uint32_t size = 4, stride = 32;
    assert_int_equal(sc_hw_place(h, 1, &size, &stride).reach, 4);
    assert_int_equal(sc_hw_place_axis(h, size, stride, 2, pair).reach, 4);
    size = 16, stride = 4; /* two members in each of eight nodes */
    assert_int_equal(sc_hw_place(h, 1, &size, &stride).reach, 0);
    const uint32_t sizes[] = {8, 4}, strides[] = {1, 16};
    assert_int_equal(sc_hw_place(h, 2, sizes, strides).reach, 2);
    assert_int_equal(sc_hw_place_ranks(h, 4, ranks).reach, 1);
    assert_int_equal(sc_hw_place_ranks(h, 2, &ranks[2]).reach, 4);
    assert_int_equal(sc_hw_place_ranks(h, 1, ranks).reach, 0);
}

/* A million members cost no time to speak of and no memory. */
static void large_group(void **state)
{
    (void)state;
    const sc_hw *h = machine("switch12@1GB/s x switch100000000@1GB/s");
    uint32_t size = 1000000, stride = 7;
    size_t used = arena.used;
    sc_place p = sc_hw_place(h, 1, &size, &stride);
    assert_true(p.n == size && p.m * p.nodes == size && p.m == 1);
    assert_int_equal(arena.used, used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_groups),  cmocka_unit_test(two_axes),
        cmocka_unit_test(nodes_between), cmocka_unit_test(some_members),
        cmocka_unit_test(random_groups), cmocka_unit_test(large_group),
        cmocka_unit_test(reach)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
