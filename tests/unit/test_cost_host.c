/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of MPI libraries between hosts, against sums by hand. */
#include "cost/cost_host.h"
#include "fixture.h"

#include <math.h>

static sc_place first(uint32_t nodes, uint32_t m)
{
    return (sc_place){.n = nodes * m, .m = m, .nodes = nodes, .peers = 1};
}

static void us(sc_host_price p, double want)
{
    if (fabs(p.seconds * 1e6 - want) > 1e-6 * want)
        fail_msg("%.9g us != %.9g us", p.seconds * 1e6, want);
}

/* 0.5 us and 5 GB/s in a node, sums of 5 GB/s; 8 adapters of 50 GB/s and
 * 1.1 us between nodes. */
static void by_hand(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-h100:4");
    sc_place node = first(1, 8), four = first(4, 1), all = first(4, 8);
    us(sc_cost_host(hw, SC_SEND, 5000, &(sc_place){.n = 2, .m = 2, .nodes = 1}),
       0.5 + 1);
    us(sc_cost_host(hw, SC_SEND, 50000,
                    &(sc_place){.n = 2, .m = 1, .nodes = 2}),
       1.1 + 1);
    us(sc_cost_host(hw, SC_BARRIER, 0, &all), 3 * 0.5 + 2 * 1.1);
    /* recursive doubling of few bytes */
    us(sc_cost_host(hw, SC_ALL_REDUCE, 50, &node), 3 * (0.5 + 0.01 + 0.01));
    us(sc_cost_host(hw, SC_BROADCAST, 50, &four), 2 * (1.1 + 0.001));
    /* Rabenseifner of many: 2 (1 - 1/n) V over the link, (1 - 1/n) V summed */
    us(sc_cost_host(hw, SC_ALL_REDUCE, 8e6, &node),
       2 * 3 * 0.5 + 7e6 / 5e3 * 3);
    us(sc_cost_host(hw, SC_ALL_GATHER, 8e6, &node), 3 * 0.5 + 7e6 / 5e3);
    us(sc_cost_host(hw, SC_ALL_REDUCE, 8e6, &(sc_place){.n = 1}), 0);
}

/* More bytes, nodes or siblings never take less. */
static void orders(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-h100:4");
    for (int c = 0; c < SC_N_CALLED_COLLS; c++)
        for (double b = 1; b < 1e9; b *= 3) {
            sc_place at = first(4, 8), shared = at, part = first(2, 8);
            shared.peers = 4;
            sc_host_price p = sc_cost_host(hw, (sc_coll)c, b, &at);
            assert_true(p.hops > 0 && p.latency > 0 && p.latency <= p.seconds);
            assert_true(sc_cost_host(hw, (sc_coll)c, 3 * b, &at).seconds >=
                        p.seconds);
            assert_true(sc_cost_host(hw, (sc_coll)c, b, &shared).seconds >=
                        p.seconds);
            /* more of an all-to-all stays inside of fewer nodes, whose copies
             * are slower than the network */
            assert_true(c == SC_ALL_TO_ALL ||
                        sc_cost_host(hw, (sc_coll)c, b, &part).seconds <=
                            p.seconds);
        }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(by_hand),
        TEST(orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
