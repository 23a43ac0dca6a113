/* SPDX-License-Identifier: Apache-2.0 */
/* The machine for several jobs is that of an enumeration: each job is searched on
 * each machine alone. */
#include "fixture.h"
#include "search/search_mix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
    "small: {weight: 3, model: gpt3-1.3b, global-batch: 32}\n"
    "large: {model: gpt3-175b, global-batch: 16, tp: 8}\n";

static sc_job base;
static sc_mix_job *job;
static uint32_t n;

static void read_jobs(void)
{
    sc_job_init(&base);
    base.cluster = "dgx-a100:1";
    base.cp = base.vpp = 1;
    base.engine = SC_ENGINE_FAST;
    if (sc_search_mix_read(text, strlen(text), "jobs.yml", &base, &arena, &job,
                           &n, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    assert_int_equal(n, 2);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(sc_predict_load(&job[i].job, &arena, &job[i].in, &err),
                         SC_OK);
}

static void reads(void **state)
{
    (void)state;
    read_jobs();
    assert_string_equal(job[0].name, "small");
    assert_true(job[0].weight == 3 && job[1].weight == 1);
    assert_int_equal(job[0].job.gbs, 32);
    assert_int_equal(job[1].job.cp, 1);
    assert_string_equal(job[1].job.cluster, "dgx-a100:1");
}

/* The best score of a job on a machine; NaN: it does not run there. */
static double alone(const sc_mix_job *j, const char *cluster)
{
    sc_job own = j->job;
    sc_inputs in;
    sc_search_jobs jobs;
    sc_search_result f;
    const sc_search_options o = {.top = 1, .threads = 1, .keep_free = 0.08};
    own.cluster = cluster;
    assert_int_equal(sc_predict_load(&own, &arena, &in, &err), SC_OK);
    in.sw = j->in.sw;
    if (sc_search_jobs_open(&own, &in, NULL, 0, &arena, &jobs, &err) != SC_OK)
        return NAN;
    assert_int_equal(sc_search_run(&jobs, &o, &arena, &f, &err), SC_OK);
    return f.n_best ? f.best[0].score : NAN;
}

static void best(void **state)
{
    (void)state;
    static const char *const nodes[] = {"1", "2", "8", "16"};
    const sc_machine_axis axis = {.kind = SC_MACHINE_UNITS,
                                  .name = "nodes",
                                  .n = SC_COUNT(nodes),
                                  .value = nodes};
    const sc_search_limits none = {0};
    const sc_search_options o = {.top = 1, .threads = 1, .keep_free = 0.08};
    const sc_search_question q = {.limits = &none, .o = &o};
    sc_search_mix m;
    double score[SC_COUNT(nodes)][2], least[2] = {INFINITY, INFINITY};
    uint32_t both = 0;
    read_jobs();
    if (sc_search_mix_run(&q, job, n, &axis, 1, &arena, &m, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    for (uint32_t k = 0; k < SC_COUNT(nodes); k++)
        for (uint32_t i = 0; i < n; i++) {
            score[k][i] =
                alone(&job[i], sc_sprintf(&arena, "dgx-a100:%s", nodes[k]));
            least[i] = fmin(least[i], score[k][i]);
        }
    for (uint32_t k = 0; k < SC_COUNT(nodes); k++)
        both += !isnan(score[k][0]) && !isnan(score[k][1]) ? 1 : 0;
    assert_true(m.proved);
    assert_int_equal(m.n_rows, both);
    assert_true(both > 1 && both < SC_COUNT(nodes));
    for (uint32_t r = 0; r < m.n_rows; r++) {
        uint32_t k = m.row[r].of[0]->digit[0];
        double mean = (3 * score[k][0] / least[0] + score[k][1] / least[1]) / 4;
        assert_true(fabs(m.row[r].mean / mean - 1) < 1e-12);
        assert_true(r == 0 || m.row[r].mean >= m.row[r - 1].mean);
        for (uint32_t i = 0; i < n; i++)
            assert_true(m.row[r].of[i]->score == score[k][i]);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(reads), TEST(best)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
