/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters whose nodes differ: a step is as slow as with the slowest of them
 * everywhere, fits only where it fits in the smallest, and never faster. */
#include <stepcast/predict.h>

#include "fixture.h"
#include "hw/build.h"

#include <math.h>
#include <string.h>

/* A step on the machine of a cluster file with this text. */
static sc_prediction predict(const char *text)
{
    const sc_hw *hw = NULL;
    sc_prediction p;
    sc_inputs in;
    sc_job job;
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100";
    job.tp = 8;
    job.gbs = 64;
    job.mbs = 1;
    job.brief = true;
    (void)sc_predict_load(&job, &arena, &in, &err);
    no_error();
    (void)hw_build_text(text, strlen(text), "c.yml", &arena, &hw, &err);
    no_error();
    (void)sc_predict(&job, hw, in.model, in.sw, in.cost, &arena, &p, &err);
    no_error();
    return p;
}

static void other_adapters(void **state)
{
    (void)state;
    sc_prediction fast = predict("node: dgx-h100\nrails: 4\nnodes: 4\n");
    sc_prediction slow = predict(
        "node: dgx-h100\nrails: 4\nnodes: 4\nnics: 4\nnic_bw: 100Gb/s\n");
    sc_prediction mixed =
        predict("node: dgx-h100\nrails: 4\ngroups:\n  - {nodes: 3}\n"
                "  - {nodes: 1, nics: 4, nic_bw: 100Gb/s}\n");
    assert_true(slow.step_time_s > fast.step_time_s * 1.01);
    assert_true(fabs(mixed.step_time_s / slow.step_time_s - 1) < 1e-9);
}

static void other_devices(void **state)
{
    (void)state;
    sc_prediction slow = predict("node: dgx-a100-80g\nnodes: 4\n");
    sc_prediction fast = predict("node: dgx-h100\nnodes: 4\n");
    sc_prediction mixed = predict("rails: 8\nleaf: 20\ngroups:\n"
                                  "  - {node: dgx-h100, nodes: 2}\n"
                                  "  - {node: dgx-a100-80g, nodes: 2}\n");
    assert_true(fast.step_time_s < slow.step_time_s);
    /* by no more than the adapters' rates differ from those of one vendor */
    assert_true(mixed.step_time_s > fast.step_time_s);
    assert_true(fabs(mixed.step_time_s / slow.step_time_s - 1) < 0.02);
    assert_int_equal(mixed.run.hw->n_groups, 2);
}

/* 40 GB beside 80: what fits is what fits in 40. */
static void smallest_memory(void **state)
{
    (void)state;
    sc_prediction mixed = predict("rails: 8\ngroups:\n"
                                  "  - {node: dgx-a100-80g, nodes: 2}\n"
                                  "  - {node: dgx-a100-40g, nodes: 2}\n");
    assert_true(mixed.run.hw->device->mem_bytes == 40ull << 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(other_adapters, setup, teardown),
        cmocka_unit_test_setup_teardown(other_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(smallest_memory, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
