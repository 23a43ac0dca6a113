/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of collectives: equations by hand, choices, limits, refusals. */
#include "cost/cost.h"
#include "prediction.h"

#include <math.h>
#include <string.h>

static const sc_hw *machine(const char *spec)
{
    const sc_hw *hw = NULL;
    sc_status s = sc_hw_build(spec, sc_pos_none(), &f.a, &hw, &f.err);
    if (s != SC_OK) print_message("%s: %s\n", spec, f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
    return hw;
}

/* m neighbours in each of `nodes` nodes. */
static sc_place place(const sc_hw *hw, uint32_t m, uint32_t nodes)
{
    const uint32_t size[] = {m, nodes}, stride[] = {1, hw->node_size};
    return sc_hw_place(hw, 2, size, stride);
}

static sc_coll_price price(const sc_hw *hw, sc_coll coll, double bytes,
                           sc_place at, int algorithm)
{
    sc_coll_price p;
    assert_int_equal(
        sc_cost_coll(&f.cost, hw, coll, bytes, &at, algorithm, &p, &f.err),
        SC_OK);
    return p;
}

/* Kept prices are those of the first call, also after others have taken their
 * place, and only for the machine and the parameters of the memo. */
static void kept_prices(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-h100:2"), *slow = machine("dgx1-v100:2");
    sc_cost other = f.cost;
    sc_coll_memo *memo = sc_coll_memo_new(&f.a, &f.cost, hw, 512);
    assert_non_null(memo);
    other.p[SC_P_LINK_HOPPER] /= 2;
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 2000; i++) {
            const sc_cost *c = i % 7 ? &f.cost : &other;
            const sc_hw *on = i % 5 ? hw : slow;
            sc_coll coll = i % 2 ? SC_ALL_REDUCE : SC_ALL_GATHER;
            sc_place at = place(on, i % 3 ? 8 : 4, 1 + i % 2);
            double bytes = 1000.0 * i;
            sc_coll_price p, kept;
            assert_int_equal(
                sc_cost_coll(c, on, coll, bytes, &at, -1, &p, &f.err), SC_OK);
            assert_int_equal(
                sc_cost_coll_kept(memo, c, on, coll, bytes, &at, &kept, &f.err),
                SC_OK);
            assert_true(p.seconds == kept.seconds && p.bound == kept.bound &&
                        p.nic_bytes == kept.nic_bytes &&
                        p.channels == kept.channels);
        }
}

static void nothing_costs_nothing(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:2");
    for (int i = 0; i < SC_N_PRICED_COLLS; i++) {
        sc_coll coll = sc_priced_colls[i];
        sc_coll_price p = price(hw, coll, 0, place(hw, 8, 2), -1);
        assert_true(p.seconds == 0 && p.port_bytes == 0 && p.nic_bytes == 0);
        p = price(hw, coll, 1e9, place(hw, 1, 1), -1);
        assert_true(p.seconds == 0 && p.channels == 0);
    }
}

/* Seconds to fill a pipeline of `full` seconds. */
static double ramp(double full, double t)
{
    return full * t * t / (full * full + t * t);
}

/* Section "ring, Simple" and "ring, LL" of the model, A100 on NVSwitch. */
static void ring_equation(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:1");
    const double *p = f.cost.p;
    double b = 300e9 * p[SC_P_LINK_AMPERE] * (1 - p[SC_P_PAIR_LOSS] / 64);
    sc_coll_price big = price(hw, SC_ALL_REDUCE, 1e9, place(hw, 8, 1), -1);
    near(big.seconds, p[SC_P_BASE_SIMPLE_AMPERE] + 14 * p[SC_P_HOP_SIMPLE] +
                          ramp(p[SC_P_RING_RAMP], 1.75e9 / b) + 1.75e9 / b);
    assert_string_equal(big.protocol, "Simple");
    near(big.port_bytes, 1.75e9);
    assert_true(big.nic_bytes == 0);
    assert_int_equal(big.channels, 24);
    sc_coll_price tiny = price(hw, SC_ALL_REDUCE, 1024, place(hw, 8, 1), -1);
    near(tiny.seconds, p[SC_P_BASE_LL_AMPERE] + 14 * p[SC_P_HOP_LL_AMPERE] +
                           1792 / (b * p[SC_P_LL_FRACTION]));
    assert_string_equal(tiny.protocol, "LL");
    assert_int_equal(tiny.channels, 1);
}

static void hopper_reduces_in_the_switch(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-h100:2");
    sc_coll_price p = price(hw, SC_ALL_REDUCE, 1e9, place(hw, 8, 1), -1);
    assert_int_equal(p.algorithm, SC_ALGO_NVLS);
    near(p.port_bytes, 1.125e9);
    assert_int_equal(p.channels, 16);
    /* busbw = 2 (n - 1) / (n + 1) L, less the fixed part. */
    double bus = 1.75e9 / p.seconds;
    double law = 14.0 / 9 * 450e9 * f.cost.p[SC_P_NVLS];
    assert_true(bus < law && bus > 0.85 * law);
    p = price(hw, SC_ALL_REDUCE, 4096, place(hw, 8, 1), -1);
    assert_int_equal(p.algorithm, SC_ALGO_RING);
    p = price(hw, SC_ALL_REDUCE, 1e9, place(hw, 2, 1), -1);
    assert_int_equal(p.algorithm, SC_ALGO_RING);
    /* Ampere switches can't. */
    hw = machine("dgx-a100-80g:1");
    p = price(hw, SC_ALL_REDUCE, 1e9, place(hw, 8, 1), -1);
    assert_int_equal(p.algorithm, SC_ALGO_RING);
}

/* Chunks grow with the size, and with them the rate. */
static void in_switch_equation(void **state)
{
    (void)state;

    static const struct {
        double bytes, chunk;
    } sizes[] = {{1 << 20, 16384},
                 {1 << 25, 32768},
                 {1 << 28, 65536},
                 {2147483648.0, 131072}};

    const sc_hw *hw = machine("dgx-h100:1");
    const double *p = f.cost.p;
    double a = 450e9 * p[SC_P_NVLS] * 8 / 9;
    for (size_t i = 0; i < SC_COUNT(sizes); i++) {
        double sync = 1 + p[SC_P_NVLS_CHUNK] / sizes[i].chunk;
        double t = sizes[i].bytes / a * sync;
        double fill = ramp(p[SC_P_NVLS_PIPE] / 450e9 / p[SC_P_NVLS], t);
        near(price(hw, SC_ALL_REDUCE, sizes[i].bytes, place(hw, 8, 1),
                   SC_ALGO_NVLS)
                 .seconds,
             p[SC_P_NVLS_BASE] + sc_net_latency(hw, SC_SCOPE_NODE) + fill + t);
    }
}

/* Eight data-parallel groups share eight NICs: each gets one. */
static void siblings_share_the_nics(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:16");
    sc_place rail = place(hw, 1, 16);
    assert_int_equal(rail.peers, 8);
    double t = price(hw, SC_ALL_GATHER, 1e9, rail, -1).seconds;
    double wire = 15.0 / 16 * 1e9 / (25e9 * f.cost.p[SC_P_NET_W]);
    assert_true(t > wire && t < 1.05 * wire);
    rail.peers = 1;
    double alone = price(hw, SC_ALL_GATHER, 1e9, rail, -1).seconds;
    assert_true(alone < t);
}

static void several_nodes(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:16");
    sc_place at = place(hw, 8, 16);
    sc_coll_price small = price(hw, SC_ALL_REDUCE, 65536, at, -1);
    assert_int_equal(small.algorithm, SC_ALGO_TREE);
    /* NIC bytes: the tree's 2 V or the ring's 2 (n - 1) / n V. */
    sc_coll_price big = price(hw, SC_ALL_REDUCE, 4e9, at, -1);
    assert_true(big.nic_bytes >= 2 * 127.0 / 128 * 4e9 * (1 - 1e-12));
    assert_true(big.seconds > big.nic_bytes / 200e9);
    /* Another form of the ring moves no more and takes longer steps. */
    sc_coll_price two = price(hw, SC_ALL_REDUCE, 4e9, at, SC_ALGO_HIERARCHICAL);
    assert_int_equal(two.algorithm, SC_ALGO_HIERARCHICAL);
    assert_true(two.nic_bytes < big.nic_bytes);
}

static void all_to_all_is_bound_by_its_slower_side(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:4");
    sc_coll_price p = price(hw, SC_ALL_TO_ALL, 1e9, place(hw, 8, 4), -1);
    double wire = 1e9 * 24 / 32 / (25e9 * f.cost.p[SC_P_A2A_NET]);
    assert_true(p.seconds > wire && p.seconds < wire * 1.01);
    p = price(hw, SC_ALL_TO_ALL, 1e9, place(hw, 8, 1), -1);
    double port = 1e9 * 7 / 8 / (300e9 * f.cost.p[SC_P_P2P_FRACTION]);
    assert_true(p.seconds > port && p.seconds < port * 1.15);
}

static void transfers(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:2");
    sc_place next = place(hw, 1, 2), beside = place(hw, 2, 1);
    double far = price(hw, SC_SENDRECV, 64e6, next, -1).seconds;
    double close = price(hw, SC_SENDRECV, 64e6, beside, -1).seconds;
    double wire = 64e6 / (25e9 * f.cost.p[SC_P_NET_W]);
    assert_true(far >= wire && far < 1.01 * wire);
    assert_true(close < far / 5);
    near(price(hw, SC_SENDRECV, 1e-6, beside, -1).seconds,
         f.cost.p[SC_P_P2P_T0] + sc_net_latency(hw, SC_SCOPE_NODE));
}

static void host_links_are_slow(void **state)
{
    (void)state;
    const sc_hw *hw = machine("pcie-gen4:1");
    sc_coll_price p = price(hw, SC_ALL_REDUCE, 1e9, place(hw, 8, 1), -1);
    double bound = 1.75e9 / hw->dim[0].bw;
    assert_true(p.seconds > 1.5 * bound && p.seconds < 2 * bound);
    for (double v = 1; v < 1e9; v *= 4) /* LL128 needs NVLink */
        assert_string_not_equal(
            price(hw, SC_ALL_REDUCE, v, place(hw, 8, 1), -1).protocol, "LL128");
}

static void generations(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:1");
    double ampere = price(hw, SC_ALL_REDUCE, 64, place(hw, 8, 1), -1).seconds;

    static const struct {
        const char *arch, *same;
    } rule[] = {{"pascal", "volta"},
                {"turing", "volta"},
                {"ada", "ampere"},
                {"zeta", "hopper"}};

    for (size_t i = 0; i < SC_COUNT(rule); i++) {
        sc_device a = *hw->device, b = *hw->device;
        sc_hw x = *hw, y = *hw;
        a.arch = rule[i].arch;
        b.arch = rule[i].same;
        x.device = &a;
        y.device = &b;
        assert_true(price(&x, SC_ALL_REDUCE, 64, place(hw, 8, 1), -1).seconds ==
                    price(&y, SC_ALL_REDUCE, 64, place(hw, 8, 1), -1).seconds);
    }
    sc_device h = *hw->device;
    sc_hw x = *hw;
    h.arch = "hopper";
    x.device = &h;
    assert_true(price(&x, SC_ALL_REDUCE, 64, place(hw, 8, 1), -1).seconds <
                ampere);
}

static void refuses_what_cant_run(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:2");
    sc_place at = place(hw, 8, 1);
    sc_coll_price p = {.seconds = -1};
    assert_int_equal(sc_cost_coll(&f.cost, hw, SC_ALL_REDUCE, 8, &at,
                                  SC_ALGO_NVLS, &p, &f.err),
                     SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_UNSUPPORTED);
    assert_non_null(strstr(f.err.d[0].msg, "nvls"));
    assert_int_equal(sc_cost_coll(&f.cost, hw, SC_ALL_TO_ALL, 8, &at,
                                  SC_ALGO_RING, &p, NULL),
                     SC_EINPUT);
    /* No network: the same place on a machine without a path. */
    sc_hw cut = *hw;
    sc_place far = place(hw, 1, 2);
    cut.dim[1].ports = 0;
    cut.dim[1].bw = 0;
    assert_int_equal(
        sc_cost_coll(&f.cost, &cut, SC_ALL_REDUCE, 8, &far, -1, &p, NULL),
        SC_EINPUT);
    at.n = 9;
    assert_int_equal(
        sc_cost_coll(&f.cost, hw, SC_ALL_REDUCE, 8, &at, -1, &p, NULL),
        SC_EBUG);
    at = place(hw, 8, 1);
    assert_int_equal(
        sc_cost_coll(&f.cost, hw, SC_ALL_REDUCE, NAN, &at, -1, &p, NULL),
        SC_EBUG);
    assert_true(p.seconds == -1);
}

/* What `--why` prints is what was priced. */
/* NCCL 2.10's table: a tree where latency counts, the ring for large messages
 * even over two nodes, where a tree needs half the bytes but is no faster. */
static void the_table_chooses_before_hopper(void **state)
{
    (void)state;
    const sc_hw *two = machine("dgx-a100-80g:2");
    const sc_hw *many = machine("dgx-a100-80g:64");
    sc_coll_price p = price(two, SC_ALL_REDUCE, 1 << 30, place(two, 8, 2), -1);
    assert_int_equal(p.algorithm, SC_ALGO_RING);
    sc_coll_price tree =
        price(two, SC_ALL_REDUCE, 1 << 30, place(two, 8, 2), SC_ALGO_TREE);
    assert_true(tree.seconds < 1.1 * p.seconds);
    p = price(many, SC_ALL_REDUCE, 65536, place(many, 8, 64), -1);
    assert_int_equal(p.algorithm, SC_ALGO_TREE);
    const sc_hw *hopper = machine("dgx-h100:2");
    p = price(hopper, SC_ALL_REDUCE, 1 << 30, place(hopper, 8, 2), -1);
    assert_int_not_equal(p.algorithm, SC_ALGO_RING);
}

static void explains(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-h100:4");
    sc_place at = place(hw, 8, 4);
    sc_coll_price p = price(hw, SC_ALL_REDUCE, 1e9, at, -1);
    sc_text t;
    char time[32];
    sc_text_init(&t);
    sc_cost_explain_coll(&f.cost, hw, SC_ALL_REDUCE, 1e9, &at, &t);
    sc_unit_print_short(p.seconds, SC_U_TIME, time, sizeof(time));
    const char *best = strchr(t.buf, '*');
    assert_non_null(best);
    assert_non_null(strstr(best, "nvls"));
    const char *shown = strstr(best, time);
    assert_non_null(shown);
    assert_true(shown < strchr(best, '\n'));
    assert_non_null(strstr(t.buf, "ring/LL128"));
    sc_text_free(&t);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kept_prices),
        TEST(nothing_costs_nothing),
        TEST(ring_equation),
        TEST(hopper_reduces_in_the_switch),
        TEST(in_switch_equation),
        TEST(siblings_share_the_nics),
        TEST(several_nodes),
        TEST(all_to_all_is_bound_by_its_slower_side),
        TEST(transfers),
        TEST(host_links_are_slow),
        TEST(generations),
        TEST(refuses_what_cant_run),
        TEST(the_table_chooses_before_hopper),
        TEST(explains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
