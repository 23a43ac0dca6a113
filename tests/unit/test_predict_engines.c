/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of networks by either engine, and of many micro-batches by a few. */
#include "fixture.h"
#include "predict/predict.h"

#include <math.h>
#include <string.h>

static sc_prediction predict(const char *model, const char *mesh, int64_t gbs,
                             sc_engine engine, bool each)
{
    sc_strategy *s = SC_NEW(&arena, sc_strategy);
    sc_prediction p;
    sc_inputs in;
    sc_job job;
    assert_non_null(s);
    sc_job_init(&job);
    job.model = model;
    job.cluster = "dgx-h100:2";
    if (strncmp(model, "resnet", 6) != 0) job.software = "default";
    job.seq = strncmp(model, "gpt", 3) == 0 ? 1024 : 0;
    job.mbs = 1;
    job.gbs = gbs;
    job.engine = (int)engine;
    job.each = each;
    (void)sc_strategy_read(mesh, strlen(mesh), "s.yml", &arena, s, &err);
    no_error();
    (void)sc_strategy_to_job(s, NULL, &job, &arena, &err);
    no_error();
    job.tree = s;
    (void)sc_predict_load(&job, &arena, &in, &err);
    no_error();
    if (sc_predict(&job, in.hw, in.model, in.sw, in.cost, &arena, &p, &err))
        fail_msg("%s: %s", model, err.d[0].msg);
    return p;
}

static void near(double is, double want, double share)
{
    if (fabs(is / want - 1) > share) fail_msg("%.9g, not %.9g", is, want);
}

static const struct {
    const char *model, *mesh;
    int64_t gbs;
} jobs[] = {
    {"gpt2", "mesh: {pp: 4, y: 1, dp: 4}\npipeline: {schedule: 1f1b}\n", 1200},
    {"gpt2",
     "mesh: {pp: 2, dp: 8}\npipeline: {schedule: interleaved, virtual: 3}\n",
     1600},
    {"gpt2", "mesh: {pp: 4, dp: 4}\npipeline: {schedule: gpipe}\n", 2400},
    {"gpt2", "mesh: {x: 1, dp: 16}\npreset: {zero: 3}\n", 16 * 300},
    {"resnet50", "mesh: {dp: 16}\n", 16 * 300},
};

/* Every further round of micro-batches takes as long: a step from two short
 * ones is that of all operations, parts and memory included.  Where each keeps
 * its own memory, tensors grow by the same each; what the allocator holds
 * beside them does so about. */
static void many_micro_batches(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(jobs); i++) {
        sc_prediction s = predict(jobs[i].model, jobs[i].mesh, jobs[i].gbs,
                                  SC_ENGINE_EVENT, false);
        sc_prediction w = predict(jobs[i].model, jobs[i].mesh, jobs[i].gbs,
                                  SC_ENGINE_EVENT, true);
        assert_true(s.net->plan.step.n_ops < w.net->plan.step.n_ops / 4);
        near(s.step_time_s, w.step_time_s, 1e-4);
        for (uint32_t c = 0; c < SC_N_CATS; c++)
            if (fabs(s.time_breakdown_s[c] - w.time_breakdown_s[c]) >
                1e-4 * w.step_time_s)
                fail_msg("%s: %s %g, not %g", jobs[i].model, sc_cat_names[c],
                         s.time_breakdown_s[c], w.time_breakdown_s[c]);
        for (uint32_t d = 0; d < w.n_stages; d++)
            near(s.memory[d].peak, w.memory[d].peak,
                 strstr(jobs[i].mesh, "gpipe") ? 1e-2 : 1e-3);
    }
}

/* The fast engine: nearly the same step, with its parts and its memory. */
static void either_engine(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(jobs); i++) {
        double sum = 0;
        sc_prediction e = predict(jobs[i].model, jobs[i].mesh, jobs[i].gbs,
                                  SC_ENGINE_EVENT, false);
        sc_prediction f = predict(jobs[i].model, jobs[i].mesh, jobs[i].gbs,
                                  SC_ENGINE_FAST, false);
        assert_true(f.net->fast && !e.net->fast);
        near(e.other_engine_s, f.step_time_s, 1e-9);
        near(f.step_time_s, e.step_time_s, 0.01);
        for (uint32_t c = 0; c < SC_N_CATS; c++) sum += f.time_breakdown_s[c];
        near(sum, f.step_time_s, 1e-9);
        assert_int_equal(f.fits, e.fits);
        for (uint32_t d = 0; d < e.n_stages; d++)
            near(f.memory[d].peak, e.memory[d].peak, 0.1);
    }
}

static double step_of(const sc_job *job)
{
    sc_prediction p;
    sc_inputs in;
    (void)sc_predict_load(job, &arena, &in, &err);
    no_error();
    (void)sc_predict(job, in.hw, in.model, in.sw, in.cost, &arena, &p, &err);
    no_error();
    return p.step_time_s;
}

/* A brief job with 64 samples of 1,024 tokens, without recomputation. */
static sc_job short_job(const char *model, const char *cluster,
                        const char *software, sc_engine engine)
{
    sc_job job;
    sc_job_init(&job);
    job.model = model;
    job.cluster = cluster;
    job.software = software;
    job.engine = (int)engine;
    job.mbs = 1;
    job.gbs = 64;
    job.seq = 1024;
    job.recompute = SC_RC_NONE;
    job.brief = true;
    return job;
}

/* A step of two stages of a pipeline over two nodes with slow adapters. */
static double on_slow_network(sc_engine engine, int schedule, int64_t vpp,
                              const char *software)
{
    sc_job job =
        short_job("gpt2-medium", "dgx-h100:2;nic_bw=1GB/s", software, engine);
    job.schedule = schedule;
    job.vpp = vpp;
    job.pp = 2;
    job.tp = 1;
    job.zero = 0;
    return step_of(&job);
}

/* A stage whose send blocks it starts its next pass later: the fast engine
 * counts that as the events do. */
static void sends_block(void **state)
{
    (void)state;
    const char *sw = "megatron-lm-2021";
    near(on_slow_network(SC_ENGINE_FAST, SC_SCH_INTERLEAVED, 3, sw),
         on_slow_network(SC_ENGINE_EVENT, SC_SCH_INTERLEAVED, 3, sw), 0.01);
}

typedef struct overlapping {
    const char *model, *software, *cluster;
    int64_t tp, pp, ep;
    int zero;
} overlapping;

static double overlapped_s(const overlapping *o, sc_engine engine)
{
    sc_job job = short_job(o->model, o->cluster, o->software, engine);
    job.tp = o->tp;
    job.pp = o->pp;
    job.ep = o->ep;
    job.vpp = 1;
    job.zero = o->zero;
    return step_of(&job);
}

/* What programs overlap, and what they exchange after the backward pass, is the
 * same in both engines. */
static void overlaps(void **state)
{
    (void)state;

    static const overlapping all[] = {
        {"gpt2-medium", "megatron-bridge-2026", "dgx-h100:2", 4, 1, 1, 0},
        {"gpt2-medium", "megatron-core", "dgx-h100:2", 4, 2, 1, 0},
        {"gpt2-medium", "maxtext-2025", "dgx-h100:2", 2, 1, 1, 3},
        {"gpt2-medium", "torchtitan", "dgx-h100:2", 2, 2, 1, 0},
        {"deepseek-v2-lite", "megatron-bridge-2026-mxfp8", "dgx-b200:2", 1, 1,
         8, 0},
        {"gpt2-medium", "megatron-deepspeed-2022", "dgx-a100-80g:4", 4, 2, 1,
         0}};

    for (size_t i = 0; i < SC_COUNT(all); i++)
        near(overlapped_s(&all[i], SC_ENGINE_FAST),
             overlapped_s(&all[i], SC_ENGINE_EVENT), 0.01);
}

/* The two devices that hold a stage of DualPipe sum its gradients over the slow
 * network.  Both hold the embedding and the head, so the weight that these share
 * crosses the network once. */
static void dualpipe_sums(void **state)
{
    (void)state;
    double fast =
        on_slow_network(SC_ENGINE_FAST, SC_SCH_DUALPIPE, 0, "default");
    near(fast, on_slow_network(SC_ENGINE_EVENT, SC_SCH_DUALPIPE, 0, "default"),
         0.01);
    /* of 355 million parameters 4 bytes each, at 1 GB/s at most */
    assert_true(fast > 4 * 354e6 / 1e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_micro_batches, setup, teardown),
        cmocka_unit_test_setup_teardown(either_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(sends_block, setup, teardown),
        cmocka_unit_test_setup_teardown(overlaps, setup, teardown),
        cmocka_unit_test_setup_teardown(dualpipe_sums, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
