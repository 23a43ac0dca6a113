/* SPDX-License-Identifier: Apache-2.0 */
/* Links that collectives load. */
#include "cost/cost_traffic.h"
#include "fixture.h"
#include "hw/hw_link.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const sc_hw *hw;
static sc_traffic t;

static void traffic(sc_coll coll, const uint32_t *rank, uint32_t n_groups,
                    uint32_t size)
{
    sc_traffic_groups of = {rank, n_groups, size};
    if (sc_traffic_of(hw, coll, &of, 1, &arena, &t, &err)) no_error();
}

/* Ranks 0 to n - 1, and with a step. */
static const uint32_t *ranks(uint32_t n, uint32_t step)
{
    uint32_t *r = SC_NEW_N(&arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) r[i] = i * step;
    return r;
}

static double on(uint64_t link)
{
    for (uint32_t k = 0; k < t.n; k++)
        if (t.link[k] == link) return t.share[k];
    return 0;
}

/* All shares of links whose name has `text`; how many there are. */
static double sum(const char *text, uint32_t *n)
{
    double all = 0;
    char name[80];
    *n = 0;
    for (uint32_t k = 0; k < t.n; k++) {
        sc_hw_link_name(hw, t.link[k], name, sizeof name);
        if (!strstr(name, text)) continue;
        all += t.share[k];
        (*n)++;
    }
    return all;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

static double carried(const sc_traffic *of, const hw_map *map, uint64_t first)
{
    double all = 0;
    for (uint32_t k = 0; k < of->n; k++)
        if (hw_link_bundle(map, of->link[k]).first == first)
            all += of->share[k];
    return all;
}

/* Even routes load all links of a bundle with what hashed routes load on some,
 * and other links as these do. */
static void even_routes(void **state)
{
    (void)state;
    static const char *const spec[] = {
        "dgx-h100:16; leaf=4; oversubscription=2",
        "dgx-h100:16; leaf=2; pod=4; core_oversubscription=2",
        "dgx-h100:16; leaf=2; group=4", "tpu-v4:64"};
    for (size_t i = 0; i < SC_COUNT(spec); i++) {
        sc_traffic hashed, even;
        hw = machine(spec[i]);
        hw_map map = hw_map_of(hw);
        const sc_traffic_groups of = {ranks(hw->n_devices, 1), 1,
                                      hw->n_devices};
        if (sc_traffic_all(hw, SC_ALL_TO_ALL, &of, 1, false, &arena, &hashed,
                           &err) ||
            sc_traffic_all(hw, SC_ALL_TO_ALL, &of, 1, true, &arena, &even,
                           &err))
            no_error();
        assert_true(even.n >= hashed.n);
        for (uint32_t k = 0; k < even.n; k++) {
            hw_bundle b = hw_link_bundle(&map, even.link[k]);
            double all = carried(&hashed, &map, b.first);
            assert_true(k == 0 || even.link[k] > even.link[k - 1]);
            assert_true(fabs(even.share[k] * (double)b.n / all - 1) < 1e-9);
        }
    }
}

/* Every port sends and receives what the bus factor says. */
static void rings(void **state)
{
    (void)state;
    static const sc_coll coll[] = {SC_ALL_REDUCE, SC_ALL_GATHER,
                                   SC_REDUCE_SCATTER, SC_ALL_TO_ALL};
    hw = machine("switch8@100GB/s");
    for (size_t c = 0; c < SC_COUNT(coll); c++) {
        traffic(coll[c], ranks(8, 1), 1, 8);
        assert_int_equal(t.n, 16);
        for (uint32_t k = 0; k < 16; k++)
            assert_true(near(t.share[k], sc_coll_bus_factor(coll[c], 8)));
    }
    traffic(SC_ALL_REDUCE, ranks(8, 1), 4, 2); /* four pairs */
    assert_int_equal(t.n, 16);
    assert_true(near(on(3), 1));
    traffic(SC_ALL_REDUCE, ranks(8, 1), 1, 1);
    assert_int_equal(t.n, 0);
}

static void chains(void **state)
{
    (void)state;
    uint32_t n;
    hw = machine("switch8@100GB/s");
    traffic(SC_BROADCAST, ranks(4, 1), 1, 4); /* 0 > 1 > 2 > 3 */
    assert_int_equal(t.n, 6);
    assert_true(on(0) == 1 && on(1) == 0 && on(6) == 0 && on(7) == 1);
    traffic(SC_REDUCE, ranks(4, 1), 1, 4); /* 1 > 2 > 3 > 0 */
    assert_true(on(0) == 0 && on(1) == 1 && on(6) == 1 && on(3) == 0);
    traffic(SC_SENDRECV, ranks(2, 5), 1, 2);
    assert_int_equal(t.n, 2);
    assert_true(on(0) == 1 && on(11) == 1);
    traffic(SC_SENDRECV, ranks(4, 1), 1, 4); /* to the next */
    assert_true(near(sum("dim0", &n), 8) && n == 8);
}

/* Rings leave and enter a node once each, by another device. */
static void nodes(void **state)
{
    (void)state;
    uint32_t n;
    hw = machine("dgx-a100-80g:4");
    traffic(SC_ALL_REDUCE, ranks(32, 1), 1, 32);
    double factor = sc_coll_bus_factor(SC_ALL_REDUCE, 32);
    assert_true(near(sum(">leaf", &n), 4 * factor));
    assert_int_equal(n, 32);
    assert_true(near(sum(">switch", &n), 32 * factor * 7 / 8));
    assert_int_equal(n, 32);
    /* members in any order */
    uint32_t mixed[32];
    for (uint32_t i = 0; i < 32; i++) mixed[i] = i % 4 * 8 + i / 4;
    traffic(SC_ALL_REDUCE, mixed, 1, 32);
    assert_true(near(sum(">leaf", &n), 4 * factor));
    assert_true(near(sum(">switch", &n), 32 * factor * 7 / 8));
    /* across nodes, a group for every device */
    for (uint32_t i = 0; i < 32; i++) mixed[i] = i % 4 * 8 + i / 4;
    traffic(SC_ALL_GATHER, mixed, 8, 4);
    assert_true(near(sum(">leaf", &n), 32 * 0.75) && n == 32);
    assert_true(sum(">switch", &n) == 0);
    /* nodes with two, two and one member: one ring */
    static const uint32_t uneven[] = {0, 1, 8, 9, 16};
    traffic(SC_ALL_REDUCE, uneven, 1, 5);
    assert_true(near(sum(">leaf", &n), 3 * 1.6) && n == 3);
    assert_true(near(sum(">switch", &n), 4 * 0.8));
}

/* Whose rings are searched: no link of a cube mesh that has only one NVLink
 * carries more than a double one. */
static void cube(void **state)
{
    (void)state;
    hw = machine("dgx1-v100");
    traffic(SC_ALL_REDUCE, ranks(8, 1), 1, 8);
    double most = 0, bw = sc_hw_link_bw(hw, t.link[0]);
    for (uint32_t k = 0; k < t.n; k++) {
        double load = t.share[k] / sc_hw_link_bw(hw, t.link[k]);
        most = fmax(most, load);
        bw = fmin(bw, sc_hw_link_bw(hw, t.link[k]));
    }
    /* six rings of 25 GB/s */
    assert_true(near(most * bw, sc_coll_bus_factor(SC_ALL_REDUCE, 8) / 6));
    sc_traffic again = t;
    traffic(SC_ALL_REDUCE, ranks(8, 1), 1, 8); /* remembered */
    assert_int_equal(t.n, again.n);
    for (uint32_t k = 0; k < t.n; k++)
        assert_true(t.link[k] == again.link[k] && t.share[k] == again.share[k]);
}

static void large(void **state)
{
    (void)state;
    uint32_t n = 16384, other;
    hw = machine("dgx-h100:2048");
    uint32_t *r = SC_NEW_N(&arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) r[i] = i % 2048 * 8 + i / 2048;
    traffic(SC_ALL_REDUCE, r, 8, 2048);
    sc_traffic rails = t;
    traffic(SC_ALL_REDUCE, ranks(n, 1), 1, n);
    assert_true(rails.n > 0 && rails.n <= 100 && t.n > 0 && t.n <= 100);
    traffic(SC_ALL_TO_ALL, ranks(n, 1), 64, 256);
    assert_true(t.n <= 128 * 4);
    assert_true(sum(">leaf", &other) > 0);
    /* what loads the same links keeps the same ones */
    other = 0;
    traffic(SC_ALL_GATHER, r, 8, 2048);
    assert_int_equal(t.n, rails.n);
    for (uint32_t k = 0; k < t.n; k++) other += t.link[k] == rails.link[k];
    assert_int_equal(other, t.n);
}

/* Some distances between members stand for all, and 8 links for those like
 * them. */
static void exchange(void **state)
{
    (void)state;
    uint32_t n;
    hw = machine("dgx-h100:32");
    traffic(SC_ALL_TO_ALL, ranks(256, 1), 1, 256);
    double out = sum(">leaf", &n);
    assert_true(n >= 8 && n <= 24);
    /* 248 of 256 parts of each leave their node */
    assert_true(fabs(out / n * 256 / 248 - 1) < 0.01);
    /* of up to 65 members every pair counts */
    traffic(SC_ALL_TO_ALL, ranks(32, 1), 1, 32);
    out = sum(">leaf", &n);
    assert_true(n == 32 && near(out / n, 24.0 / 32));
}

static void refuses(void **state)
{
    (void)state;
    hw = machine("switch8@100GB/s");
    sc_traffic_groups of = {ranks(3, 4), 1, 3};
    assert_int_equal(sc_traffic_of(hw, SC_ALL_REDUCE, &of, 1, &arena, &t, &err),
                     SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "rank 8"));
}

/* Along one side after the other, half of it in either order and either way
 * round: 3/8 and 3/32 of V on the sides of a square of 16. */
static void torus(void **state)
{
    (void)state;
    uint32_t n;
    hw = machine("torus4x4@100GB/s");
    traffic(SC_ALL_GATHER, ranks(16, 1), 1, 16);
    assert_int_equal(t.n, 64);
    for (uint32_t k = 0; k < t.n; k++)
        assert_true(near(t.share[k], (3.0 / 8 + 3.0 / 32) / 2));
    traffic(SC_ALL_REDUCE, ranks(16, 1), 1, 16);
    assert_true(near(t.share[0], 3.0 / 8 + 3.0 / 32));
    /* Two columns of four, four apart: across with what each has, a quarter of
     * V in the end, by four links; then the rest along the columns. */
    hw = machine("torus8x4@100GB/s");
    traffic(SC_REDUCE_SCATTER, ranks(8, 4), 1, 8);
    assert_true(near(sum("dim0", &n), 8 * (1.0 / 4) / 2 * 4));
    assert_true(near(sum("dim1", &n), 8 * 3.0 / 4));
    /* No box: neighbours in their order. */
    traffic(SC_REDUCE_SCATTER, (const uint32_t[]){0, 1, 8}, 1, 3);
    assert_true(near(sum("dim0", &n) + sum("dim1", &n), 4 * 2.0 / 3));
    /* What a root sends goes round once. */
    hw = machine("torus4x4@100GB/s");
    traffic(SC_BROADCAST, ranks(16, 1), 1, 16);
    assert_true(near(sum("", &n), 3 * 4 + 3 * 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(even_routes, setup, teardown),
        cmocka_unit_test_setup_teardown(rings, setup, teardown),
        cmocka_unit_test_setup_teardown(chains, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(cube, setup, teardown),
        cmocka_unit_test_setup_teardown(large, setup, teardown),
        cmocka_unit_test_setup_teardown(exchange, setup, teardown),
        cmocka_unit_test_setup_teardown(torus, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
