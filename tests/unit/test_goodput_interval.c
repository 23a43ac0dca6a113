/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint intervals, Erlang's B, and limits of the expected time. */
#include "goodput/goodput.h"
#include "unit.h"

#include <math.h>

static void near(double got, double want, double by)
{
    if (!(fabs(got - want) <= by * fabs(want)))
        fail_msg("%.17g is not %.17g", got, want);
}

/* Daly (2006) chose his constants for an error of the expected time below 0.2 %
 * up to save = m / 2. */
static void intervals(void **state)
{
    (void)state;
    const double m = 86400;
    near(sc_interval_young(300, m), 7200, 1e-12);
    for (double save = 1e-3; save < m / 2; save *= 1.7) {
        sc_goodput_job j = {.work_s = 1e9,
                            .failure_rate = 1 / m,
                            .save_s = save,
                            .restart_s = 600};
        sc_goodput best, daly, less, more;
        double exact = sc_interval_exact(save, m);
        assert_int_equal(sc_goodput_expect(&j, &best), SC_OK);
        near(best.every_s, exact, 1e-12);
        near(best.daly_s, sc_interval_daly(save, m), 0);
        j.every_s = best.daly_s;
        sc_goodput_expect(&j, &daly);
        j.every_s = 0.9 * exact;
        sc_goodput_expect(&j, &less);
        j.every_s = 1.1 * exact;
        sc_goodput_expect(&j, &more);
        assert_true(best.total_s <= less.total_s);
        assert_true(best.total_s <= more.total_s);
        assert_true(best.total_s <= daly.total_s * (1 + 1e-12));
        near(daly.total_s, best.total_s, 2e-3);
    }
    near(sc_interval_exact(1e-6, m), sc_interval_young(1e-6, m), 1e-4);
    assert_true(sc_interval_exact(0, m) == 0);
    assert_true(sc_interval_exact(100 * m, m) <= m);
}

/* One server: load / (1 + load); tables of Erlang's B: 10 servers, 5 erlang. */
static void erlang(void **state)
{
    (void)state;
    near(sc_erlang_b(1, 0.25), 0.2, 1e-12);
    near(sc_erlang_b(10, 5), 0.018385, 1e-4);
    assert_true(sc_erlang_b(0, 3) == 1);
    assert_true(sc_erlang_b(3, 0) == 0);
    sc_goodput_job j = {.replaced_rate = 5.0 / 3600, .repair_s = 3600};
    assert_int_equal(sc_goodput_spares(&j, 0.02), 9);
    assert_int_equal(sc_goodput_spares(&j, 0.018), 10);
    assert_int_equal(sc_goodput_spares(&j, 1), 0);
}

static void limits(void **state)
{
    (void)state;
    sc_goodput g;
    sc_goodput_job j = {.work_s = 1000, .step_s = 1, .slowdown = 1};
    assert_int_equal(sc_goodput_expect(&j, &g), SC_OK);
    assert_true(g.total_s == 1000 && g.failures == 0);
    /* Without spares each broken node waits for its repair. */
    j.failure_rate = j.replaced_rate = 1e-4;
    j.save_s = 1e-9;
    j.repair_s = 5000;
    assert_int_equal(sc_goodput_expect(&j, &g), SC_OK);
    near(g.part_s[SC_GP_WAITS], 0.5 * (g.total_s - g.part_s[SC_GP_WAITS]),
         1e-9);
    j.spares = 100;
    assert_int_equal(sc_goodput_expect(&j, &g), SC_OK);
    assert_true(g.part_s[SC_GP_WAITS] < 1e-9 * g.total_s);
    /* Whole steps, and no checkpoint before the last one is complete. */
    assert_true(g.every_s == 1);
    j.lag_s = 30.5;
    assert_int_equal(sc_goodput_expect(&j, &g), SC_OK);
    assert_true(g.every_s == 31);
    /* Stopped more often than it restarts, or never through a segment. */
    j.planned_rate = 1;
    j.restart_s = 2;
    assert_int_equal(sc_goodput_expect(&j, &g), SC_NO);
    j = (sc_goodput_job){.work_s = 1e6, .failure_rate = 1, .every_s = 1e6};
    assert_int_equal(sc_goodput_expect(&j, &g), SC_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals),
        cmocka_unit_test(erlang),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
