/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies on devices of several kinds: pools of stages and of replicas, and
 * stages that two devices hold. */
#include "hw/build.h"
#include "prediction.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 4000 };

static sc_status mixed(const char *over, sc_prediction *p)
{
    static const char cluster[] = "rails: 8\ngroups:\n"
                                  "  - {node: dgx-h100, nodes: 1}\n"
                                  "  - {node: dgx-a100-80g, nodes: 1}\n";
    char text[TEXT];
    sc_strategy *s = SC_NEW(&f.a, sc_strategy);
    const sc_hw *hw = NULL;
    sc_inputs in;
    sc_job job;
    sc_job_init(&job);
    sc_err_init(&f.err);
    job.brief = true;
    job.tree = s;
    job.model = "gpt3-xl";
    job.cluster = "dgx-h100:2";
    job.software = "default";
    snprintf(text, sizeof text, "%s%s",
             strstr(over, "batch:") ? ""
                                    : "batch: {global: 32, micro: 2, seq: "
                                      "1024}\n",
             over);
    assert_int_equal(
        sc_strategy_read(text, strlen(text), "s.yml", &f.a, s, &f.err), SC_OK);
    assert_int_equal(sc_strategy_to_job(s, NULL, &job, &f.a, &f.err), SC_OK);
    assert_int_equal(sc_predict_load(&job, &f.a, &in, &f.err), SC_OK);
    assert_int_equal(hw_build_text(cluster, sizeof cluster - 1, "c.yml", NULL,
                                   &f.a, &hw, &f.err),
                     SC_OK);
    return sc_predict(&job, hw, in.model, in.sw, in.cost, &f.a, p, &f.err);
}

/* FLOP of all kernels on a device. */
static double work_of(const sc_prediction *p, uint32_t device)
{
    const sc_graph *e = &p->net->plan.step;
    double sum = 0;
    for (sc_op i = 0; i < e->n_ops; i++)
        if (e->cls[sc_op_place(e, i)] == device) sum += e->flops[i];
    return sum;
}

#define STAGES "mesh: {pp: 2, dp: 8}\n"
#define POOLS                                                \
    "pools:\n  - {name: new, device: h100-sxm, stages: 1}\n" \
    "  - {name: old, device: a100-sxm-80g, stages: 1}\n"

#define OLD(layers) \
    "rules:\n  - {match: layers." layers ", devices: pool.old}\n"

/* A pool says what its stages run on, a rule what runs on a pool; without
 * rules, stages on unequal devices are cut so that none is much slower. */
static void pools_of_stages(void **state)
{
    (void)state;
    sc_prediction even, balanced, pools, halves, cut;
    assert_int_equal(mixed(STAGES "pipeline: {cuts: [12, 12]}\n", &even),
                     SC_OK);
    assert_int_equal(mixed(STAGES, &balanced), SC_OK);
    assert_int_equal(mixed(STAGES POOLS, &pools), SC_OK);
    assert_true(balanced.step_time_s < even.step_time_s);
    assert_true(pools.step_time_s == balanced.step_time_s);
    assert_int_equal(mixed(STAGES POOLS OLD("12-23"), &halves), SC_OK);
    assert_int_equal(mixed(STAGES POOLS OLD("16-23"), &cut), SC_OK);
    assert_true(cut.step_time_s < halves.step_time_s);
    assert_true(work_of(&cut, 0) > 1.3 * work_of(&halves, 0));
    assert_int_equal(
        mixed(STAGES "pools:\n  - {name: a, device: h100-sxm, stages: 2}\n",
              &pools),
        SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_CONFLICT);
    assert_int_equal(f.err.d[0].line, 4);
}

/* Slow replicas have fewer micro-batches: as many as given, or as many as let
 * the slowest end first.  The step is that replica's. */
static void pools_of_replicas(void **state)
{
    (void)state;
#define REPLICAS "mesh: {dp: 16}\npools:\n"
    sc_prediction even, dealt, given;
    assert_int_equal(mixed("mesh: {dp: 16}\nbatch: {global: 256, "
                           "micro: 2, seq: 1024}\n",
                           &even),
                     SC_OK);
    assert_int_equal(
        mixed("batch: {global: 256, micro: 2, seq: 1024}\n" REPLICAS
              "  - {name: new, device: h100-sxm, replicas: 8}\n"
              "  - {name: old, device: a100-sxm-80g, replicas: 8}\n",
              &dealt),
        SC_OK);
    assert_true(dealt.step_time_s < 0.9 * even.step_time_s);
    assert_true(dealt.run.gbs == 256 && even.run.gbs == 256);
    assert_true(fabs(dealt.model_tflops_per_device * dealt.step_time_s /
                         (even.model_tflops_per_device * even.step_time_s) -
                     1) < 1e-9);
    assert_int_equal(
        mixed("batch: {global: 256, micro: 2, seq: 1024}\n" REPLICAS
              "  - {name: new, device: h100-sxm, replicas: 8,"
              " micro_batches: 8}\n"
              "  - {name: old, device: a100-sxm-80g, replicas: 8,"
              " micro_batches: 8}\n",
              &given),
        SC_OK);
    assert_true(given.run.ga == 8 && given.step_time_s > dealt.step_time_s);
    assert_int_equal(
        mixed("batch: {global: 256, micro: 2, seq: 1024}\n" REPLICAS
              "  - {name: new, device: h100-sxm, replicas: 8,"
              " micro_batches: 9}\n"
              "  - {name: old, device: a100-sxm-80g, replicas: 8,"
              " micro_batches: 8}\n",
              &given),
        SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_CONFLICT);
    assert_int_equal(
        mixed(REPLICAS "  - {name: new, device: h100-sxm, replicas: 8}\n"
                       "  - {name: old, device: a100-sxm-80g, replicas: 8}\n"
                       "rules: [{match: embedding, devices: pool.new}]\n",
              &given),
        SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_UNSUPPORTED);
}

/* ---- two holders of a stage ------------------------------------------------- */

/* Both update with the gradients of all replicas of both: the sum over dp is
 * done before theirs, theirs before either updates. */
static void holders_sum_gradients(void **state)
{
    (void)state;
    sc_prediction p;
    assert_int_equal(mixed("mesh: {pp: 2, dp: 8}\n"
                           "preset: {zero: 0}\n"
                           "pipeline: {schedule: dualpipe}\n",
                           &p),
                     SC_OK);
    const sc_graph *e = &p.net->plan.step;
    const sc_result *r = &p.net->run;
    sc_time first = INT64_MAX, last = 0, reduced = 0, update = INT64_MAX;
    uint32_t sums = 0, updates = 0;
    uint64_t bytes = 0;
    for (sc_op i = 0; i < e->n_ops; i++) {
        bool sum = strcmp(e->name[i], "gradient sum of DualPipe replicas") == 0;
        if (sum) {
            sums++;
            bytes += e->bytes[i];
            assert_int_equal(sc_op_place(e, i + 1) - sc_op_place(e, i), 2);
            first = r->start[i] < first ? r->start[i] : first;
            last = r->end[i] > last ? r->end[i] : last;
        } else if (e->cat[i] == SC_CAT_DP && r->end[i] > reduced) {
            reduced = r->end[i];
        } else if (e->cat[i] == SC_CAT_OPTIMIZER) {
            updates++;
            update = r->start[i] < update ? r->start[i] : update;
        }
    }
    assert_int_equal(sums, 2);
    assert_true(updates >= 2);
    assert_true(update >= last);
    /* four bytes of every gradient; both ends hold the embedding, whose gradient
     * one of the two sums includes */
    double each = (double)bytes / (double)p.run.model->params;
    if (fabs(each / 4 - 1) > 0.01) fail_msg("%g bytes each", each);
    assert_true(reduced > 0 && last >= reduced);
    assert_true(first < last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pools_of_stages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pools_of_replicas, set_up, tear_down),
        cmocka_unit_test_setup_teardown(holders_sum_gradients, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
