/* SPDX-License-Identifier: Apache-2.0 */
/* What a program has bounds what is inferred and what options may say; habits
 * give way where they don't fit. */
#include "prediction.h"

#include <string.h>

static void ask(const char *model, const char *cluster, const char *software)
{
    sc_job_init(&f.job);
    f.job.model = model;
    f.job.cluster = cluster;
    f.job.software = software;
    f.job.engine = SC_ENGINE_FAST;
    f.job.brief = true;
}

static sc_status predict(void)
{
    sc_err_init(&f.err);
    return sc_predict_job(&f.job, &f.a, &f.p, &f.err);
}

static void succeed(void)
{
    sc_status s = predict();
    if (s != SC_OK) print_message("%s\n", f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
}

static bool assumed(const char *word)
{
    for (uint32_t i = 0; i < f.p.n_assumptions; i++)
        if (strstr(f.p.assumptions[i], word)) return true;
    return false;
}

/* LLM Foundry shards and does nothing else; DDP does not even that; torchtitan
 * has a split by tensors, but FSDP alone is faster here, and fits. */
static void inside(void **state)
{
    (void)state;
    ask("mpt-30b", "dgx-h100:8", "llm-foundry-2023");
    succeed();
    assert_true(f.p.fits);
    assert_int_equal(sc_run_dp(&f.p.run), 64);
    assert_int_equal(f.p.run.zero, 3);
    ask("llama3-70b", "dgx-h100:8", "pytorch-ddp");
    succeed();
    assert_false(f.p.fits);
    assert_int_equal(sc_run_dp(&f.p.run), 64);
    assert_int_equal(f.p.run.zero, 0);
    assert_int_equal(f.p.run.mbs, 1); /* what needs the least memory */
    ask("llama3-70b", "dgx-h100:8", "torchtitan");
    succeed();
    assert_true(f.p.fits);
    assert_int_equal(f.p.run.zero, 3);
    ask("gpt3-175b", "tpu-v5p:256", "mlperf-maxtext");
    succeed();
    assert_int_equal(f.p.run.size[SC_AX_PP], 1);
    ask("llama3-70b", "dgx-h100:8", "megatron-deepspeed-2022");
    f.job.pp = 4;
    succeed();
    assert_int_equal(f.p.run.vpp, 1);
    assert_false(f.p.run.sp);
}

static void outside(void **state)
{
    (void)state;

    static const struct {
        const char *software, *place, *what;
        sc_job job;
    } bad[] = {
        {"llm-foundry", "--tp 2", "llm-foundry-2023 has no tp", {.tp = 2}},
        {"llm-foundry", "--pp 4", "llm-foundry-2023 has no pp", {.pp = 4}},
        {"megatron-lm-2022", "--cp 2", "megatron-lm-2022 has no cp", {.cp = 2}},
        {"pytorch-ddp",
         "--fsdp",
         "pytorch-ddp has no ZeRO stage 3",
         {.fsdp = true}},
        {"torchtitan",
         "--zero 1",
         "torchtitan-2025 has no ZeRO stage 1",
         {.zero = 1}},
        {"megatron-core",
         "--schedule dualpipe",
         "megatron-core has no schedule dualpipe",
         {.schedule = SC_SCH_DUALPIPE}},
        {"megatron-deepspeed",
         "--vp 2",
         "megatron-deepspeed-2022 has no schedule interleaved",
         {.vpp = 2}},
        {"torchtitan",
         "--recompute selective",
         "torchtitan-2025 has no recompute selective",
         {.recompute = SC_RC_SELECTIVE}},
        {"torchtitan",
         "--cp-comm ulysses",
         "torchtitan-2025 has no context parallelism by ulysses",
         {.cp_comm = SC_CP_ULYSSES}},
        {"megatron-lm-2021",
         "--sp",
         "megatron-lm-2021 has no sequence parallelism",
         {.sp = 1}},
    };

    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        const sc_job *b = &bad[i].job;
        ask("llama3-8b", "dgx-h100:2", bad[i].software);
        f.job.tp = b->tp;
        f.job.pp = b->pp;
        f.job.cp = b->cp;
        f.job.vpp = b->vpp;
        f.job.fsdp = b->fsdp;
        if (b->zero) f.job.zero = b->zero;
        if (b->schedule) f.job.schedule = b->schedule;
        if (b->recompute) f.job.recompute = b->recompute;
        if (b->cp_comm) f.job.cp_comm = b->cp_comm;
        if (b->sp) f.job.sp = b->sp;
        assert_int_equal(predict(), SC_EINPUT);
        assert_string_equal(f.err.d[0].file, bad[i].place);
        assert_string_equal(f.err.d[0].msg, bad[i].what);
        assert_non_null(f.err.d[0].hint);
        /* of a program that nobody named no option is refused for that */
        f.job.software = NULL;
        sc_status s = predict();
        for (uint32_t k = 0; s != SC_OK && k < f.err.n; k++)
            assert_null(strstr(f.err.d[k].msg, " has no "));
    }
}

/* The same question asked again with everything said, also of a program that
 * does not have it. */
static void resolved(void **state)
{
    (void)state;
    sc_job again;
    ask("gpt2", "dgx-a100-80g", NULL);
    f.job.schedule = SC_SCH_ZB_H1;
    f.job.pp = 2;
    succeed();
    double was = f.p.step_time_s;
    sc_job_resolve(&f.job, &f.p.run, &again);
    assert_null(again.software); /* again that of the devices */
    f.job = again;
    succeed();
    assert_true(f.p.step_time_s == was);
    ask("gpt2", "dgx-a100-80g", NULL);
    succeed();
    sc_job_resolve(&f.job, &f.p.run, &again);
    assert_string_equal(again.software, "megatron-core");
}

/* As many micro-batches as stages where that fits, and others where not; where
 * the pipeline is open too nothing but the step counts. */
static void habits(void **state)
{
    (void)state;
    ask("llama3-8b", "dgx-h100:2", "torchtitan");
    f.job.pp = 4;
    f.job.tp = 1;
    f.job.vpp = 1;
    f.job.gbs = 64;
    f.job.schedule = SC_SCH_1F1B;
    succeed();
    assert_true(f.p.fits && f.p.run.ga == 4);
    assert_true(assumed("as many micro-batches as stages"));
    f.job.gbs = 96; /* four of six samples would not fit */
    succeed();
    assert_true(f.p.fits && f.p.run.ga != 4);
    assert_false(assumed("as many micro-batches as stages"));
    ask("llama3-405b", "dgx-h100:64", "torchtitan");
    succeed();
    assert_true(f.p.fits);
}

/* Sequences that are long are split over ranks. */
static void contexts(void **state)
{
    (void)state;
    ask("llama3-8b", "dgx-h100:8", NULL);
    f.job.seq = 131072;
    succeed();
    double best = f.p.step_time_s;
    assert_true(f.p.run.size[SC_AX_CP] > 1 && assumed("cp "));
    f.job.cp = 1;
    succeed();
    assert_true(f.p.step_time_s > 1.05 * best);
    ask("llama3-8b", "dgx-h100:8", "megatron-lm-2022");
    f.job.seq = 131072;
    succeed();
    assert_int_equal(f.p.run.size[SC_AX_CP], 1);
}

/* A list that a profile states is whole, one that it does not is its base's. */
static void profiles(void **state)
{
    (void)state;
    const sc_software *sw = NULL;
    sc_err_init(&f.err);
    assert_int_equal(sc_software_find("torchtitan-2025", NULL, sc_pos_none(),
                                      &f.a, &sw, &f.err),
                     SC_OK);
    assert_int_equal(sw->zero_stages, 1u << 0 | 1u << 2 | 1u << 3);
    assert_true(sw->schedules >> SC_SCH_ZB_V & 1);
    assert_false(sw->base->schedules >> SC_SCH_ZB_V & 1);
    assert_int_equal(sw->recomputes, sw->base->recomputes);
    assert_false(sw->open);
    assert_int_equal(
        sc_software_find("nemo", NULL, sc_pos_none(), &f.a, &sw, &f.err),
        SC_OK);
    assert_string_equal(sw->name, "nemo-2024");
    assert_int_equal(
        sc_software_find(NULL, NULL, sc_pos_none(), &f.a, &sw, &f.err), SC_OK);
    assert_true(sw->open);
}

static double step_of(const char *mesh)
{
    sc_strategy *s = SC_NEW(&f.a, sc_strategy);
    assert_int_equal(
        sc_strategy_read(mesh, strlen(mesh), "s.yml", &f.a, s, &f.err), SC_OK);
    f.job.tree = s;
    f.job.gbs = 8;
    succeed();
    f.job.tree = NULL;
    return f.p.step_time_s;
}

/* 8 volumes on 16 devices are halved where that is faster; of small images, of
 * which there are edges rather than insides, devices stay idle. */
static void positions(void **state)
{
    (void)state;
    ask("unet3d", "dgx-h100:2", "mlperf-mxnet");
    f.job.gbs = 8;
    succeed();
    assert_true(assumed("positions of a sample are split over 2 ranks"));
    assert_false(assumed("idle"));
    double split = f.p.step_time_s;
    assert_true(split == step_of("mesh: {dp: 8, spatial: 2}\n"));
    f.job.cluster = "dgx-h100:1";
    assert_true(split < step_of("mesh: {dp: 8}\n"));
    /* batches that are chosen differ: what counts is the time of a sample */
    ask("unet3d", "dgx-h100:2", "mlperf-mxnet");
    f.job.dp = 8;
    succeed();
    assert_true(assumed("positions of a sample are split over 2 ranks"));
    ask("resnet50", "dgx-h100:1", "mlperf-mxnet");
    f.job.gbs = 1;
    succeed();
    assert_true(assumed("7 of 8 devices are idle"));
    assert_int_equal(f.p.net->plan.job->strategy->n_axes, 1);
    ask("unet3d", "dgx-h100:2", "pytorch-ddp");
    f.job.gbs = 8;
    succeed();
    assert_true(assumed("8 of 16 devices are idle"));
    ask("resnet50", "dgx-h100:2", "mlperf-mxnet");
    f.job.gbs = 8;
    succeed();
    assert_true(assumed("8 of 16 devices are idle"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(inside),   TEST(outside),  TEST(resolved), TEST(habits),
        TEST(contexts), TEST(profiles), TEST(positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
