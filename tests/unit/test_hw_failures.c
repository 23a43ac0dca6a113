/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of failures: the built-in ones, and what a file may say. */
#include "fixture.h"
#include "hw/hw_failures.h"

#include <math.h>
#include <string.h>

static const sc_failures *table(const char *name)
{
    const sc_failures *f = NULL;
    (void)sc_failures_find(name, sc_pos_none(), &arena, &f, &err);
    no_error();
    return f;
}

static const sc_failures *text(const char *yml)
{
    const sc_failures *f = NULL;
    (void)sc_failures_read(yml, strlen(yml), "f.yml", &arena, &f, &err);
    return f;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * want))
        fail_msg("%.17g is not %.17g", got, want);
}

/* The machine that was observed has the failures that were observed. */
static void observed(void **state)
{
    (void)state;
    const double day = 86400;
    const sc_failures *f = table("llama3");
    const sc_hw *hw = machine("dgx-h100:2048");
    near(sc_failures_rate(f, hw, false) * 54 * day, 419);
    near(sc_failures_planned(f, hw) * 54 * day, 47);
    double gpu = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        assert_non_null(f->failure[i].source);
        if (f->failure[i].of <= SC_COMP_DEVICE_MEMORY)
            gpu += f->failure[i].rate;
    }
    near(gpu * 16384 * 54 * day, 148 + 72 + 19 + 17 + 6 + 6);
    /* Kokolis et al. print the mean time between failures of 16,384 devices. */
    double rate = sc_failures_rate(table("rsc1"), hw, false);
    assert_true(fabs(1 / rate / 3600 - 1.8) < 0.05);
}

/* Failures grow with the parts that fail. */
static void scaled(void **state)
{
    (void)state;
    const sc_failures *f = table("llama3");
    double one = sc_failures_rate(f, machine("dgx-h100:128"), true);
    near(sc_failures_rate(f, machine("dgx-h100:256"), true), 2 * one);
    near(sc_hw_count(machine("dgx-h100:4"), SC_COMP_ADAPTER), 32);
    near(sc_hw_count(machine("dgx-h100:4"), SC_COMP_HOST), 4);
    assert_true(sc_hw_count(machine("tpu-v4-pod:64"), SC_COMP_NETWORK) == 0);
    /* hosts of an NVL72 rack have 4 devices each */
    near(sc_hw_count(machine("gb200-nvl72:2"), SC_COMP_HOST), 36);
    assert_true(sc_component_replaced(SC_COMP_ADAPTER));
    assert_false(sc_component_replaced(SC_COMP_SOFTWARE));
}

static void all(void **state)
{
    (void)state;
    const char **names;
    uint32_t n;
    assert_int_equal(sc_failures_list(&arena, &names, &n, &err), SC_OK);
    assert_true(n >= 5);
    for (uint32_t i = 0; i < n; i++) {
        const sc_failures *f = table(names[i]);
        assert_true(f->n > 0 && f->restart_s > 0 && f->repair_s > 0);
        assert_string_equal(f->name, names[i]);
        for (uint32_t k = 0; k < f->n; k++)
            assert_non_null(f->failure[k].source);
    }
}

static void files(void **state)
{
    (void)state;
    const sc_failures *f =
        text("observed: 10d\nhosts: 5\nrestart: 3min\nslow_hosts: 2\n"
             "slow_time: 1h\nslowdown: 1.5\nhost:\n  any: 4\n");
    no_error();
    near(f->failure[0].rate, 4.0 / 5 / 864000);
    near(f->slow_rate, 2.0 / 5 / 864000);
    near(f->restart_s, 180);
    assert_null(f->failure[0].source);
    assert_null(text("observed: 10d\ndevice: {x: 1}\nhost: {y: 1}\n"));
    assert_int_equal(err.n, 2);
    assert_string_equal(err.d[0].hint, "give devices: how many were observed");
    assert_int_equal(err.d[1].line, 3);
    sc_err_init(&err);
    assert_null(text("- 1\n"));
    sc_err_init(&err);
    assert_null(text("observed: 1d\nhosts: 1\nslow_hosts: 1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(observed, setup, teardown),
        cmocka_unit_test_setup_teardown(scaled, setup, teardown),
        cmocka_unit_test_setup_teardown(all, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
