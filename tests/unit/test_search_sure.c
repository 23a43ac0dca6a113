/* SPDX-License-Identifier: Apache-2.0 */
/* test_search_sure.c - the best rows of a search, judged among each other. */
#include "search/search_sure.h"
#include "unit.h"

#include <math.h>

static sc_arena a;
static sc_err e;
static sc_job job;
static sc_inputs in;
static sc_search_jobs jobs;
static sc_search_result found;
static sc_prediction *best;

static int setup(void **state)
{
    (void)state;
    sc_arena_init(&a, 0);
    sc_err_init(&e);
    sc_job_init(&job);
    job.model = "gpt3-6.7b";
    job.cluster = "dgx-a100:2";
    job.gbs = 64;
    job.cp = job.vpp = 1;
    job.zero = 1;
    assert_int_equal(sc_predict_load(&job, &a, &in, &e), SC_OK);
    assert_int_equal(sc_search_jobs_open(&job, &in, NULL, 0, &a, &jobs, &e),
                     SC_OK);
    const sc_search_options o = {
        .top = 6, .threads = 1, .kinds = true, .keep_free = 0.08};
    assert_int_equal(sc_search_run(&jobs, &o, &a, &found, &e), SC_OK);
    assert_int_equal(found.n_best, 6);
    best = SC_NEW_N(&a, sc_prediction, found.n_best);
    for (uint32_t i = 0; i < found.n_best; i++) {
        sc_job own;
        sc_search_row_job(&jobs, &found.best[i], &own);
        own.engine = SC_ENGINE_FAST;
        own.brief = true;
        assert_int_equal(
            sc_predict(&own, in.hw, in.model, in.sw, in.cost, &a, &best[i], &e),
            SC_OK);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sc_arena_free(&a);
    return 0;
}

/* Exactly one row is the best. Measuring more leaves less regret, and the
 * choice has the least of all rows. */
static void judged(void **state)
{
    (void)state;
    sc_search_sure x;
    double sum = 0;
    assert_int_equal(
        sc_search_judge(&found, SC_GOAL_STEP_TIME, best, &a, &x, &e), SC_OK);
    assert_int_equal(x.n, found.n_best);
    for (uint32_t i = 0; i < x.n; i++) {
        sum += x.row[i].p_best;
        assert_true(x.row[i].regret_expected >= x.pick.regret);
    }
    assert_true(fabs(sum - 1) < 1e-9);
    assert_true(x.pick.n_settle > 0);
    double left = x.pick.regret;
    for (uint32_t i = 0; i < x.pick.n_settle; i++) {
        assert_true(x.pick.settle[i].row < x.n);
        assert_true(x.pick.settle[i].regret < left);
        left = x.pick.settle[i].regret;
    }
}

/* A factor on all steps changes no order. */
static void scaled(void **state)
{
    (void)state;
    sc_search_sure x, y;
    assert_int_equal(
        sc_search_judge(&found, SC_GOAL_STEP_TIME, best, &a, &x, &e), SC_OK);
    for (uint32_t i = 0; i < found.n_best; i++) found.best[i].score *= 128;
    assert_int_equal(sc_search_judge(&found, SC_GOAL_COST, best, &a, &y, &e),
                     SC_OK);
    for (uint32_t i = 0; i < found.n_best; i++) {
        found.best[i].score /= 128;
        assert_true(fabs(x.row[i].p_best - y.row[i].p_best) < 1e-3);
    }
}

/* A row that is half as long as all others is surely the best, and there is
 * nothing to measure. */
static void clear(void **state)
{
    (void)state;
    sc_search_sure x;
    found.best[2].score /= 2;
    assert_int_equal(
        sc_search_judge(&found, SC_GOAL_STEP_TIME, best, &a, &x, &e), SC_OK);
    found.best[2].score *= 2;
    assert_int_equal(x.pick.best, 2);
    assert_true(x.row[2].p_best > 0.999);
    assert_int_equal(x.pick.n_settle, 0);
}

static void energy(void **state)
{
    (void)state;
    sc_search_sure x;
    assert_int_equal(sc_search_judge(&found, SC_GOAL_ENERGY, best, &a, &x, &e),
                     SC_OK);
    assert_int_equal(x.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judged), cmocka_unit_test(scaled),
        cmocka_unit_test(clear), cmocka_unit_test(energy)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
