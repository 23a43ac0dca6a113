/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a validation table, checked against values worked by hand. */
#include "calib/stats.h"
#include "fixture.h"

#include <math.h>
#include <string.h>

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12)) fail_msg("%.17g is not %.17g", got, want);
}

static void quantiles(void **state)
{
    (void)state;
    double v[] = {5, 1, 4, 2, 3};
    near(sc_quantile(v, 5, 0.5), 3);
    near(sc_quantile(v, 5, 0.9), 4.6);
    near(sc_quantile(v, 5, 0), 1);
    near(sc_quantile(v, 5, 1), 5);
    double two[] = {2, 1};
    near(sc_quantile(two, 2, 0.5), 1.5);
    assert_true(isnan(sc_quantile(v, 0, 0.5)));
    near(calib_mean(v, 5), 3);
    assert_true(isnan(calib_mean(v, 0)));
}

static void kendall(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4}, up[] = {2, 3, 5, 9}, down[] = {4, 3, 2, 1};
    double one_swap[] = {1, 3, 2, 4}, flat[] = {7, 7, 7, 7};
    near(calib_kendall(x, up, 4), 1);
    near(calib_kendall(x, down, 4), -1);
    near(calib_kendall(x, one_swap, 4), 4.0 / 6);
    assert_true(isnan(calib_kendall(x, flat, 4)));
    assert_true(isnan(calib_kendall(x, up, 1)));
    /* one tie in y: 5 concordant pairs, of 6 and of 5 untied */
    double tied[] = {1, 2, 2, 3};
    near(calib_kendall(x, tied, 4), 5 / sqrt(30));
    near(calib_kendall(tied, x, 4), 5 / sqrt(30));
    near(calib_kendall(tied, tied, 4), 1);
    assert_true(isnan(calib_kendall(flat, x, 4)));
}

static void regret(void **state)
{
    (void)state;
    double measured[] = {10, 8, 12};
    double right[] = {11, 9, 13}, wrong[] = {7, 9, 8}, tie[] = {5, 9, 5};
    near(calib_regret(measured, right, 3), 0);
    near(calib_regret(measured, wrong, 3), 0.25);
    near(calib_regret(measured, tie, 3), 0.5); /* the slower of the two */
    assert_true(isnan(calib_regret(measured, right, 0)));
}

static sc_valid_row row(const char *family, const char *device, double measured,
                        double predicted, uint64_t config, uint64_t group)
{
    return (sc_valid_row){.id = "r",
                          .family = family,
                          .device = device,
                          .model = "m",
                          .measured = measured,
                          .predicted = predicted,
                          .error = predicted / measured - 1,
                          .mem_measured = NAN,
                          .mem_predicted = NAN,
                          .config_key = config,
                          .group_key = group};
}

static void repetitions_count_once(void **state)
{
    (void)state;
    sc_valid_row rows[] = {
        row("f", "d", 10, 11, 1, 0), row("f", "d", 14, 11, 1, 0),
        row("f", "d", 11, 11, 1, 0), row("f", "d", 20, 19, 2, 0),
        row("f", "d", 12, 11, 1, 0)};
    rows[4].reason = "no"; /* does not take part */
    assert_int_equal(calib_mark_repeats(rows, 5, &arena, &err), SC_OK);
    assert_true(rows[0].counted && rows[3].counted);
    assert_false(rows[1].counted || rows[2].counted || rows[4].counted);
    near(rows[0].median, 11);
    near(rows[3].median, 20);
    sc_validation v = {.n_rows = 5, .rows = rows};
    assert_int_equal(calib_summarise(&v, &arena, &err), SC_OK);
    near(v.mape, 0.5 * (0 + 0.05));
    assert_int_equal(v.skipped, 1);
}

static const sc_valid_group *find(const sc_validation *v, const char *family,
                                  const char *device)
{
    for (uint32_t i = 0; i < v->n_groups; i++) {
        const sc_valid_group *g = &v->groups[i];
        bool same_device = device ? g->device && !strcmp(g->device, device)
                                  : g->device == NULL;
        if (!strcmp(g->family, family) && same_device) return g;
    }
    fail_msg("no group %s %s", family, device ? device : "(all)");
    return NULL;
}

static void groups(void **state)
{
    (void)state;
    /* one comparable set of four rows over two devices' families */
    sc_valid_row rows[] = {
        row("a", "x", 10, 11, 1, 7), row("a", "x", 20, 18, 2, 7),
        row("a", "x", 30, 33, 3, 7), row("a", "y", 10, 10.5, 4, 8),
        row("b", "x", 5, NAN, 5, 9), row("a", "y", 10, 12, 6, 8)};
    rows[4].reason = "unknown device";
    rows[0].mem_measured = 100;
    rows[0].mem_predicted = 110;
    rows[1].mem_measured = 100;
    rows[1].mem_predicted = 70;
    sc_validation v = {.n_rows = 6, .rows = rows};
    assert_int_equal(calib_mark_repeats(rows, 6, &arena, &err), SC_OK);
    assert_int_equal(calib_summarise(&v, &arena, &err), SC_OK);
    assert_int_equal(v.n_groups, 5); /* a/x a/y b/x, a, b */
    const sc_valid_group *ax = find(&v, "a", "x"), *a = find(&v, "a", NULL);
    assert_int_equal(ax->rows, 3);
    near(ax->mape, 0.1);
    near(ax->bias, 0.1 / 3);
    near(ax->kendall_tau, 1);
    near(ax->regret, 0);
    near(ax->mem_mape, 0.2);
    near(ax->mem_max, 0.3);
    assert_int_equal(a->rows, 5);
    near(a->mape, (0.3 + 0.05 + 0.2) / 5);
    near(a->median_ape, 0.1);
    near(a->p90_ape, 0.1 + 0.6 * 0.1);
    const sc_valid_group *ay = find(&v, "a", "y"), *b = find(&v, "b", NULL);
    assert_true(isnan(ay->kendall_tau)); /* two rows are no order */
    assert_true(isnan(ay->mem_mape) && isnan(ay->mem_max));
    assert_int_equal(b->skipped, 1);
    assert_true(isnan(b->mape) && isnan(b->p90_ape));
}

static void order_over_sets(void **state)
{
    (void)state;
    sc_valid_row rows[] = {
        row("a", "x", 1, 1, 1, 1),   row("a", "x", 2, 2, 2, 1),
        row("a", "x", 3, 3, 3, 1),   row("a", "x", 4, 4, 7, 1),
        row("a", "x", 10, 12, 4, 2), row("a", "x", 11, 11, 5, 2),
        row("a", "x", 12, 10, 6, 2)};
    sc_validation v = {.n_rows = 7, .rows = rows};
    assert_int_equal(calib_mark_repeats(rows, 7, &arena, &err), SC_OK);
    assert_int_equal(calib_summarise(&v, &arena, &err), SC_OK);
    const sc_valid_group *g = find(&v, "a", NULL);
    near(g->kendall_tau, (6.0 - 3.0) / 9); /* six pairs right, three wrong */
    near(g->regret, 0.1);
    near(g->regret_max, 0.2);
}

static void empty(void **state)
{
    (void)state;
    sc_validation v = {.n_rows = 0};
    assert_int_equal(calib_mark_repeats(NULL, 0, &arena, &err), SC_OK);
    assert_int_equal(calib_summarise(&v, &arena, &err), SC_OK);
    assert_int_equal(v.n_groups, 0);
    assert_true(isnan(v.mape) && isnan(v.median_ape));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(quantiles, setup, teardown),
        cmocka_unit_test_setup_teardown(kendall, setup, teardown),
        cmocka_unit_test_setup_teardown(regret, setup, teardown),
        cmocka_unit_test_setup_teardown(repetitions_count_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(groups, setup, teardown),
        cmocka_unit_test_setup_teardown(order_over_sets, setup, teardown),
        cmocka_unit_test_setup_teardown(empty, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
