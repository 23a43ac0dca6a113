/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of machines: their numbers, and what networks draw. */
#include "fixture.h"
#include "hw/hw_parts.h"

#include <math.h>
#include <string.h>

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%.17g is not %.17g", got, want);
}

/* 128 and 512 nodes of a SuperPOD have 48 and 192 switches of 64 ports. */
static void counts(void **state)
{
    (void)state;
    sc_hw_parts p = sc_hw_count_parts(machine("dgx-h100:128"), 64);
    near(p.hosts, 128);
    near(p.adapters, 1024);
    near(p.links, 2048);
    near(p.switches, 48);
    near(sc_hw_count_parts(machine("dgx-h100:512"), 64).switches, 192);
    /* a machine without adapters has no network of its own */
    near(sc_hw_count_parts(machine("ring4@300GB/s,50ns"), 64).links, 0);
}

/* data/hw/network.yml: parts of 400 and of 200 Gb/s. */
static void draws(void **state)
{
    (void)state;
    const sc_network_power *w = &machine("dgx-h100:128")->network_power;
    near(w->adapters_w, 1024 * 25.0);
    near(w->switches_w, 48 * 747.0);
    near(w->links_w, 2048 * 15.5);
    w = &machine("dgx-a100-80g:4")->network_power;
    near(w->adapters_w, 32 * 20.0);
    near(w->switches_w, ceil(32 / 40.0) * 253.0);
    near(w->links_w, 32 * 12.0);
    w = &machine("dgx-h100:1")->network_power;
    assert_true(w->adapters_w == 0 && w->switches_w == 0 && w->links_w == 0);
}

/* Other rates are those of the nearest row, in proportion. */
static void other_rates(void **state)
{
    (void)state;
    const sc_network_power *w =
        &machine("dgx-h100:16;nic_bw=800Gb/s")->network_power;
    near(w->adapters_w, 128 * 50.0);
    near(machine("dgx-h100:16;nic_bw=100Gb/s")->network_power.adapters_w,
         128 * 10.0);
}

/* Part of a pod has the hosts of its chips. */
static void slices(void **state)
{
    (void)state;
    near(machine("tpu-v3-pod:1024")->node_power_w, 256 * 840.0);
    near(machine("tpu-v3-pod:512")->node_power_w, 128 * 840.0);
    near(machine("dgx-h100:2")->node_power_w, 4600);
}

static uint32_t rows(const char *text)
{
    const sc_part_power *p = NULL;
    uint32_t n = 0;
    sc_err_init(&err);
    sc_status s =
        sc_part_power_read(text, strlen(text), "n.yml", &arena, &p, &n, &err);
    return s == SC_OK ? n : 0;
}

static void refuses(void **state)
{
    (void)state;
    const char *good = "rates: {a: {rate: 1Gb/s, adapter: 1W, switch: 1W, "
                       "switch_ports: 2, link: 1W}}\n";
    assert_int_equal(rows(good), 1);
    assert_int_equal(rows("rates: {}\n"), 0);
    assert_string_equal(err.d[0].msg, "rates is no map, or empty");
    assert_int_equal(rows("rates: {a: 1W}\n"), 0);
    assert_string_equal(err.d[0].msg, "\"a\" has no values");
    assert_int_equal(rows("rates: {a: {rate: 1Gb/s}}\n"), 0);
    assert_int_equal(rows("rates: {a: {rate: 1Gb/s, adapter: 1, switch: 1W, "
                          "switch_ports: 2, link: 1W}}\n"),
                     0);
    assert_int_equal(err.d[0].col, 35);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts, setup, teardown),
        cmocka_unit_test_setup_teardown(draws, setup, teardown),
        cmocka_unit_test_setup_teardown(other_rates, setup, teardown),
        cmocka_unit_test_setup_teardown(slices, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
