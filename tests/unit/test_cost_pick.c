/* SPDX-License-Identifier: Apache-2.0 */
/* The probability of being the fastest, against closed forms. */
#include "base/stats.h"
#include "cost/cost_pick.h"
#include "unit.h"

#include <math.h>
#include <string.h>

enum { MOST = 6 };

static sc_arena arena;
static sc_err err;
static sc_cost cost;
static sc_traits traits[MOST];
static sc_pick_row rows[MOST];
static sc_pick pick;

static int setup(void **state)
{
    (void)state;
    sc_arena_init(&arena, (size_t)64 << 20);
    sc_err_init(&err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

static void near(double got, double want, double by)
{
    if (!(fabs(got - want) <= by)) fail_msg("%.17g is not %.17g", got, want);
}

/* Jobs that differ only in the number of devices, of which only these effects
 * are not 0. */
static void jobs(const double *step, uint32_t n, double site, double own)
{
    sc_cost_centres(&cost);
    cost.anchors = NULL;
    cost.cov = NULL;
    memset(&cost.held.effects, 0, sizeof cost.held.effects);
    cost.held.effects.sd[SC_EFFECT_SITE] = site;
    cost.held.effects.sd[SC_EFFECT_JOB] = own;
    cost.held.unseen = 1;
    for (uint32_t i = 0; i < n; i++) {
        traits[i] = (sc_traits){.key = i + 1};
        for (int k = 0; k < (int)SC_N_TRAIT_NAMES; k++) traits[i].name[k] = "a";
        for (int k = 0; k < (int)SC_N_TRAIT_SIZES; k++) traits[i].size[k] = 1;
        traits[i].size[SC_SIZE_DEVICES] = i + 1;
        rows[i] = (sc_pick_row){.step_s = step[i], .traits = &traits[i]};
    }
}

static void judge(uint32_t n, sc_pick_opts o)
{
    sc_err_init(&err);
    if (sc_pick_judge(&cost, rows, n, &o, &arena, &pick, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
}

static void equal_jobs(void **state)
{
    (void)state;
    const double step[] = {2, 2, 2, 2};
    for (uint32_t n = 2; n <= 4; n++) {
        for (int alike = 0; alike < 2; alike++) {
            double sum = 0;
            jobs(step, n, alike ? 0.1 : 0, alike ? 0 : 0.1);
            judge(n, (sc_pick_opts){.seed = 7});
            for (uint32_t i = 0; i < n; i++) {
                near(rows[i].p_best, 1.0 / n, n == 2 || alike ? 1e-9 : 0.012);
                sum += rows[i].p_best;
                if (alike) near(rows[i].regret_expected, 0, 1e-9);
            }
            near(sum, 1, 1e-9);
        }
    }
}

/* What both share decides nothing. */
static void correlated(void **state)
{
    (void)state;
    const double step[] = {1.01, 1, 1.02, 1.5};
    for (uint32_t n = 2; n <= 4; n++) {
        jobs(step, n, 0.3, 0);
        judge(n, (sc_pick_opts){.settle = true});
        assert_int_equal(pick.best, 1);
        assert_int_equal(pick.n_settle, 0);
        for (uint32_t i = 0; i < n; i++) {
            near(rows[i].p_best, i == 1, 1e-12);
            near(rows[i].regret_expected, step[i] - 1, 1e-9);
        }
    }
}

/* A third row that is never the fastest changes nothing, so draws give the
 * closed form of two: the difference of logarithms has the deviation
 * sd sqrt(2). */
static void independent(void **state)
{
    (void)state;
    const double step[] = {1, 1.05, 100}, sd = 0.06;
    double d = sd * sqrt(2), apart = log(1.05), mean = exp(sd * sd / 2);
    double p = sc_normal_below(apart / d);
    double least = mean * (sc_normal_below((apart - sd * sd) / d) +
                           1.05 * sc_normal_below((-apart - sd * sd) / d));
    for (uint32_t n = 2; n <= 3; n++) {
        jobs(step, n, 0.2, sd);
        judge(n, (sc_pick_opts){.seed = 1});
        near(rows[0].p_best, p, n == 2 ? 1e-12 : 0.01);
        near(rows[1].p_best, 1 - p, n == 2 ? 1e-12 : 0.01);
        near(rows[0].regret_expected, mean / least - 1, n == 2 ? 1e-12 : 1e-3);
        near(rows[1].regret_expected, 1.05 * mean / least - 1,
             n == 2 ? 1e-12 : 1e-3);
    }
    near(rows[2].p_best, 0, 0);
}

/* Noise of the measurements makes the order less sure. */
static void noise(void **state)
{
    (void)state;
    const double step[] = {1, 1.02};
    jobs(step, 2, 0.2, 0);
    judge(2, (sc_pick_opts){.noise = 0.015});
    near(rows[0].p_best, sc_normal_below(log(1.02) / (0.015 * sqrt(2))), 1e-12);
}

/* A seed gives the same bytes, another one other draws. */
static void seeds(void **state)
{
    (void)state;
    const double step[] = {1, 1.01, 1.02};
    double first[3];
    jobs(step, 3, 0.1, 0.05);
    judge(3, (sc_pick_opts){.seed = 5});
    for (int i = 0; i < 3; i++) first[i] = rows[i].p_best;
    judge(3, (sc_pick_opts){.seed = 6});
    assert_true(first[0] != rows[0].p_best);
    near(rows[0].p_best, first[0], 0.02);
    judge(3, (sc_pick_opts){.seed = 5});
    for (int i = 0; i < 3; i++) assert_true(first[i] == rows[i].p_best);
}

/* An own run of the second job that was faster than predicted makes that job
 * likely; what it teaches of the site changes nothing. */
static void own_run(void **state)
{
    (void)state;
    const double step[] = {1, 1.03}, sd = 0.05, slow = -0.08;
    sc_anchors s;
    jobs(step, 2, 0.1, sd);
    judge(2, (sc_pick_opts){0});
    double before = rows[1].p_best;
    sc_anchor a = {.id = "run",
                   .measured_s = 1.03 * exp(slow),
                   .predicted_s = 1.03,
                   .moved_s = NAN,
                   .noise = SC_ANCHOR_NOISE,
                   .traits = traits[1]};
    if (sc_anchors_fit(&a, 1, &cost, NULL, &arena, &s, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    for (int i = 0; i < 2; i++)
        rows[i].step_s = step[i] * exp(sc_anchors_effect(&s, &traits[i]));
    cost.anchors = &s;
    judge(2, (sc_pick_opts){0});
    /* by hand: the site and the first job are as before, given the run */
    double v = 0.01 + sd * sd, n2 = SC_ANCHOR_NOISE * SC_ANCHOR_NOISE;
    double k[2] = {0.01 / (v + n2), v / (v + n2)};
    double apart = log(1.03) + (k[1] - k[0]) * slow;
    double left = 2 * sd * sd - sd * sd * sd * sd / (v + n2);
    near(rows[1].p_best, sc_normal_below(-apart / sqrt(left)), 1e-9);
    assert_true(rows[1].p_best > before + 0.05);
}

/* Two uncertain rows at the top and one that is known to be slow: one of the
 * two is worth a run, and knowing one row exactly is worth what a normal
 * difference gives. */
static void settle(void **state)
{
    (void)state;
    const double step[] = {1, 1, 2}, sd = 0.1;
    jobs(step, 3, 0, sd);
    judge(3, (sc_pick_opts){.settle = true});
    assert_int_equal(pick.n_settle, 2);
    assert_int_not_equal(pick.settle[0].row, 2);
    assert_int_not_equal(pick.settle[1].row, 2);
    assert_int_not_equal(pick.settle[0].row, pick.settle[1].row);
    assert_true(pick.settle[0].regret < 0.6 * pick.regret);
    assert_true(pick.settle[1].regret < pick.settle[0].regret);
    /* E[min(A, B w)] for a row with expected step A and one measured */
    double mean = exp(sd * sd / 2), s2 = sd * sd * sd * sd;
    double seen = sqrt(s2 / (sd * sd + SC_ANCHOR_NOISE * SC_ANCHOR_NOISE));
    double value = mean - mean * 2 * sc_normal_below(-seen / 2);
    double d = sd * sqrt(2), least = mean * 2 * sc_normal_below(-sd * sd / d);
    near(pick.settle[0].regret, mean / least - 1 - value / least, 1e-3);
}

static void refused(void **state)
{
    (void)state;
    const double step[] = {1, NAN};
    const sc_pick_opts o = {0};
    jobs(step, 2, 0.1, 0.1);
    assert_int_equal(sc_pick_judge(&cost, rows, 2, &o, &arena, &pick, &err),
                     SC_EINPUT);
    assert_int_equal(sc_pick_judge(&cost, rows, 0, &o, &arena, &pick, &err),
                     SC_EINPUT);
    jobs(step, 1, 0.1, 0.1);
    judge(1, o);
    near(rows[0].p_best, 1, 0);
    near(rows[0].regret_expected, 0, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(correlated, setup, teardown),
        cmocka_unit_test_setup_teardown(independent, setup, teardown),
        cmocka_unit_test_setup_teardown(noise, setup, teardown),
        cmocka_unit_test_setup_teardown(seeds, setup, teardown),
        cmocka_unit_test_setup_teardown(own_run, setup, teardown),
        cmocka_unit_test_setup_teardown(settle, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
