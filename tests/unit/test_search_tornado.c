/* SPDX-License-Identifier: Apache-2.0 */
/* Machines with one property changed are those that are named, and the changes of
 * a step are those of searches on them. */
#include "fixture.h"
#include "search/search_tornado.h"

#include <math.h>
#include <string.h>

static sc_job job;
static sc_inputs in;

static const sc_search_options options = {
    .top = 1, .threads = 1, .keep_free = 0.08, .only_best = true};

static void open_job(const char *cluster, sc_search_jobs *jobs,
                     sc_search_result *found)
{
    sc_job_init(&job);
    job.model = "gpt3-6.7b";
    job.cluster = cluster;
    job.gbs = 64;
    job.cp = job.vpp = 1;
    assert_int_equal(sc_predict_load(&job, &arena, &in, &err), SC_OK);
    assert_int_equal(
        sc_search_jobs_open(&job, &in, NULL, 0, &arena, jobs, &err), SC_OK);
    assert_int_equal(sc_search_run(jobs, &options, &arena, found, &err), SC_OK);
}

static double step_on(const char *cluster)
{
    sc_search_jobs jobs;
    sc_search_result found;
    open_job(cluster, &jobs, &found);
    return found.n_best ? found.best[0].point.step_s : NAN;
}

static const struct {
    sc_hw_property what;
    double by;
    const char *named;
} cases[] = {
    {SC_HW_NIC_BW, 0.5, "dgx-a100:2; nic_bw=100Gb/s"},
    {SC_HW_NIC_LATENCY, 2, "dgx-a100:2; nic_latency=2us"},
    {SC_HW_LINK_LATENCY, 2, "dgx-a100:2; fabric_latency=1.4us"},
    {SC_HW_MEMORY, 0.5, "dgx-a100:2; device=a100-sxm-80g*{memory=0.5}"},
    {SC_HW_MEM_BW, 1.5, "dgx-a100:2; device=a100-sxm-80g*{mem_bw=1.5}"},
    {SC_HW_PEAK, 1.5, "dgx-a100:2; device=a100-sxm-80g*{peak=1.5}"},
    {SC_HW_LINK_BW, 0.5, "dgx-a100:2; device=a100-sxm-80g*{link_bw=0.5}"},
    {SC_HW_HOST_BW, 0.5, "dgx-a100:2; device=a100-sxm-80g*{host_bw=0.5}"}};

static void moved(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100:2");
    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        const sc_hw *got, *want = machine(cases[i].named);
        assert_int_equal(
            sc_hw_moved(hw, cases[i].what, cases[i].by, &arena, &got, &err),
            SC_OK);
        const sc_device *g = got->device, *w = want->device;
        assert_true(g->mem_bytes == w->mem_bytes && g->mem_bw == w->mem_bw);
        assert_true(g->peak[SC_BF16] == w->peak[SC_BF16] &&
                    g->vector_flops == w->vector_flops);
        assert_true(g->link_bw == w->link_bw && g->host_bw == w->host_bw);
        for (uint32_t d = 0; d < got->n_dims; d++) {
            assert_true(fabs(got->dim[d].bw / want->dim[d].bw - 1) < 1e-12);
            assert_true(got->dim[d].port_bw == want->dim[d].port_bw);
            assert_true(fabs(got->dim[d].latency_s / want->dim[d].latency_s -
                             1) < 1e-12);
        }
        assert_true(got->hash != hw->hash);
    }
}

static void swings(void **state)
{
    (void)state;
    sc_search_jobs jobs;
    sc_search_result found;
    sc_search_swing s[SC_N_HW_PROPERTIES];
    uint32_t n, seen = 0;
    double base, fastest = step_on("dgx-a100:2");
    open_job("dgx-a100:2", &jobs, &found);
    const sc_search_question q = {.job = &job, .in = &in, .o = &options};
    assert_int_equal(sc_search_tornado(&q, &job, &jobs, &found.best[0], 0.5,
                                       &arena, s, &n, &base, &err),
                     SC_OK);
    assert_true(base == fastest && n > 3);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && !isnan(s[i - 1].less))
            assert_true(fmax(fabs(s[i].less), fabs(s[i].more)) <=
                        fmax(fabs(s[i - 1].less), fabs(s[i - 1].more)));
        assert_true(isnan(s[i].same_less) ||
                    s[i].less <= s[i].same_less + 1e-9);
        assert_true(s[i].more <= s[i].same_more + 1e-9);
        for (size_t k = 0; k < SC_COUNT(cases); k++) {
            double want, got = cases[k].by < 1 ? s[i].less : s[i].more;
            if (cases[k].by == 2 ||
                strcmp(s[i].name, sc_hw_property_names[cases[k].what]) != 0)
                continue;
            want = step_on(cases[k].named) / fastest - 1;
            if (fabs(got - want) > 1e-9)
                fail_msg("%s: %g, not %g", s[i].name, got, want);
            seen++;
        }
    }
    assert_true(seen >= 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(moved), TEST(swings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
