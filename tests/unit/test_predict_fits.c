/* SPDX-License-Identifier: Apache-2.0 */
/* The probability that a run fits, and the memory with which it counts as
 * fitting. */
#include "predict/internal.h"
#include "prediction.h"

#include <math.h>

static sc_cost with(double low, double high)
{
    sc_cost c;
    sc_cost_centres(&c);
    c.held.memory.low = low;
    c.held.memory.high = high;
    return c;
}

static void quantiles(void **state)
{
    (void)state;
    sc_cost c = with(-0.05, 0.1);
    assert_true(fabs(predict_fits_probability(&c, 1) - 0.5) < 1e-12);
    assert_true(fabs(predict_fits_probability(&c, exp(-0.1)) - 0.9) < 1e-9);
    assert_true(fabs(predict_fits_probability(&c, exp(0.05)) - 0.1) < 1e-9);
    assert_true(predict_fits_probability(&c, 0) == 1);
    assert_true(predict_fits_probability(&c, INFINITY) == 0);
}

static void limit(void **state)
{
    (void)state;
    sc_cost c = with(-0.05, 0.1);
    double most = predict_most_full(&c);
    assert_true(most > 1 && most < exp(0.05));
    assert_true(fabs(predict_fits_probability(&c, most) - SC_MAY_FIT) < 1e-9);
}

/* Without a spread the capacity decides. */
static void no_spread(void **state)
{
    (void)state;
    sc_cost c = with(0, 0);
    assert_true(predict_most_full(&c) == 1);
    assert_true(predict_fits_probability(&c, 1) == 1);
    assert_true(predict_fits_probability(&c, 1.001) == 0);
}

/* A run that leaves stages without any part of the model usually fails. */
static void idle_stages(void **state)
{
    (void)state;
    sc_run r = {.size = {1, 1, 1, 1, 1}, .vpp = 1};
    sc_cost c = with(-0.05, 0.1);
    sc_software sw = {.stage_split = SC_SPLIT_COST, .idle_stages = 0.01};
    load_run(&r, "switch64@450GB/s,1us; device=h100-sxm", "llama3-8b", NULL);
    r.cost = &c;
    r.sw = &sw;
    r.size[SC_AX_PP] = 16;
    assert_true(fabs(predict_fits_run(&r, 1) - 0.5) < 1e-12);
    r.size[SC_AX_PP] = 64;
    assert_true(fabs(predict_fits_run(&r, 1) - 0.005) < 1e-12);
    sw.stage_split = SC_SPLIT_BALANCED;
    assert_true(fabs(predict_fits_run(&r, 1) - 0.5) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles),
        cmocka_unit_test(limit),
        cmocka_unit_test(no_spread),
        cmocka_unit_test_setup_teardown(idle_stages, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
