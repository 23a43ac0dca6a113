/* SPDX-License-Identifier: Apache-2.0 */
/* What no prediction may break, and that breaking it is noticed. */
#include "predict/internal.h"
#include "predict/predict.h"
#include "prediction.h"

#include <math.h>
#include <string.h>

static void load(const char *model, const char *cluster, const char *software)
{
    f.job.model = model;
    f.job.cluster = cluster;
    f.job.software = software;
    assert_int_equal(sc_predict_load(&f.job, &f.a, &f.in, &f.err), SC_OK);
}

static sc_status predict(void)
{
    sc_err_init(&f.err);
    return sc_predict(&f.job, f.in.hw, f.in.model, f.in.sw, f.in.cost, &f.a,
                      &f.p, &f.err);
}

static void succeed(void)
{
    sc_status s = predict();
    if (s != SC_OK) print_message("%s\n", f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
}

static void layout(int64_t tp, int64_t pp, int64_t dp, int64_t gbs, int64_t mbs)
{
    f.job.tp = tp;
    f.job.pp = pp;
    f.job.dp = dp;
    f.job.gbs = gbs;
    f.job.mbs = mbs;
    f.job.seq = 2048;
    f.job.recompute = SC_RC_NONE;
}

/* No rate makes kernels faster than the peak; if they were, it would be an
 * internal error, not a number. */
static void impossible_rates(void **state)
{
    (void)state;
    for (int engine = SC_ENGINE_EVENT; engine <= SC_ENGINE_FAST; engine++) {
        load("gpt3-6.7b", "dgx-a100-80g:1", "megatron-core");
        layout(1, 1, 8, 64, 8);
        f.job.engine = engine;
        f.in.cost->p[SC_P_SUSTAINED_AMPERE] = 3;
        succeed();
        const sc_device *d = f.p.run.hw->device;
        double most = f.p.step_time_s * d->peak[SC_BF16];
        assert_int_equal(predict_bounds(&f.p, most, &f.err), SC_OK);
        assert_int_equal(predict_bounds(&f.p, 1.001 * most, &f.err), SC_EBUG);
        assert_int_equal(f.err.d[0].code, SC_C_BUG);
        assert_non_null(strstr(f.err.d[0].msg, "peak"));
    }
}

/* A refused result is not written. */
static void nothing_is_written(void **state)
{
    (void)state;
    sc_prediction before;
    load("gpt3-6.7b", "dgx-a100-80g:1", "megatron-core");
    layout(1, 1, 8, 64, 8);
    memset(&f.p, 0x5a, sizeof f.p);
    memcpy(&before, &f.p, sizeof before);
    f.in.cost->p[SC_P_STEP_FIXED] = INFINITY;
    assert_int_equal(predict(), SC_EBUG);
    assert_memory_equal(&f.p, &before, sizeof before);
}

static void is_a_bug(const char *what)
{
    sc_err_init(&f.err);
    assert_int_equal(predict_bounds(&f.p, 0, &f.err), SC_EBUG);
    assert_non_null(strstr(f.err.d[0].msg, what));
}

/* A prediction that was changed: seconds that no part has, or memory that does
 * not hold the weights. */
static void parts_that_do_not_fit(void **state)
{
    (void)state;
    load("gpt3-6.7b", "dgx-a100-80g:1", "megatron-core");
    layout(1, 1, 8, 64, 8);
    succeed();
    assert_int_equal(predict_bounds(&f.p, 0, &f.err), SC_OK);
    f.p.time_breakdown_s[SC_CAT_COMPUTE] *= 1.001;
    is_a_bug("the parts of the step sum to");
    f.p.time_breakdown_s[SC_CAT_COMPUTE] /= 1.001;
    f.p.memory[0].peak = 0.9 * f.p.memory[0].weights;
    is_a_bug("memory of stage 0 is below its weights");
    f.p.step_time_s = 0;
    is_a_bug("step time is 0 s");
}

typedef struct setting {
    const char *model, *cluster, *software;
    int64_t tp, pp, dp, gbs, mbs, vpp;
    int zero;
} setting;

static const setting settings[] = {
    {"gpt3-175b", "dgx-a100-80g:64", "megatron-lm-2022", 8, 8, 8, 512, 1, 4, 0},
    {"llama3-70b", "dgx-h100:16", NULL, 8, 4, 4, 128, 1, 1, 1},
    {"llama3-8b", "dgx-h100:1", "torchtitan-2024", 1, 1, 8, 8, 1, 1, 3},
    {"gpt2-xl", "dgx1-v100:2", "megatron-lm-2021", 1, 2, 8, 64, 1, 1, 0},
    {"llama2-7b", "dgx-a100-40g:2", "llm-foundry-2023", 1, 1, 16, 64, 2, 1, 3},
};

static void set(const setting *s)
{
    sc_job_init(&f.job);
    load(s->model, s->cluster, s->software);
    layout(s->tp, s->pp, s->dp, s->gbs, s->mbs);
    f.job.vpp = s->vpp;
    f.job.zero = s->zero;
    f.job.seq = 1024;
}

static void parts_sum(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(settings); i++)
        for (int engine = SC_ENGINE_EVENT; engine <= SC_ENGINE_FAST; engine++) {
            double sum = 0;
            set(&settings[i]);
            f.job.engine = engine;
            succeed();
            for (uint32_t c = 0; c < SC_N_CATS; c++) {
                assert_true(f.p.time_breakdown_s[c] >= 0);
                sum += f.p.time_breakdown_s[c];
            }
            assert_true(fabs(sum - f.p.step_time_s) <= 1e-9 * f.p.step_time_s);
            assert_true(f.p.time_breakdown_s[SC_CAT_COMPUTE] > 0);
        }
}

/* What is printed belongs together. */
static void rates_belong_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(settings); i++) {
        set(&settings[i]);
        f.job.price = 1e-3;
        succeed();
        const sc_run *r = &f.p.run;
        double n = r->hw->n_devices, t = f.p.step_time_s;
        double flops = sc_model_flops(r->model, r->gbs, r->seq, false);
        double peak = r->hw->device->peak[r->precision];
        assert_true(fabs(f.p.mfu * peak * n * t / flops - 1) < 1e-9);
        assert_true(f.p.mfu < 1 && f.p.hfu >= f.p.mfu && f.p.hfu < 1);
        assert_true(fabs(f.p.tokens_per_s * t - (double)(r->gbs * r->seq)) <
                    1e-3);
        assert_true(f.p.step_time_low_s < t && t < f.p.step_time_high_s);
        assert_true(fabs(f.p.cost_usd_per_step - 1e-3 * n * t) < 1e-9 * n * t);
        /* between idle and the power limit of everything */
        double watts = f.p.energy_j_per_step / t / n;
        assert_true(watts > 0.35 * r->hw->device->power_w);
        assert_true(watts < 3 * r->hw->device->power_w);
        assert_true(fabs(f.p.other_engine_s / t - 1) < 0.05);
    }
}

/* Gradients over a slow network: a faster one helps, and never hurts. */
static void faster_networks(void **state)
{
    (void)state;
    static const char *const net[] = {"10Gb/s", "25Gb/s", "100Gb/s", "400Gb/s",
                                      "1600Gb/s"};
    double last = INFINITY, first = 0;
    for (size_t i = 0; i < SC_COUNT(net); i++) {
        char *spec = sc_sprintf(&f.a,
                                "switch8@450GB/s,1us x switch4@%s,5us; "
                                "device=h100-sxm",
                                net[i]);
        load("llama3-8b", spec, "megatron-lm-2022");
        layout(8, 1, 4, 16, 1);
        succeed();
        assert_true(f.p.step_time_s <= last);
        last = f.p.step_time_s;
        if (i == 0) first = last;
    }
    assert_true(last < 0.6 * first);
}

static void faster_devices(void **state)
{
    (void)state;
    load("gpt3-6.7b", "dgx-a100-80g:1", "megatron-core");
    layout(8, 1, 1, 8, 1);
    succeed();
    double a100 = f.p.step_time_s;
    load("gpt3-6.7b", "dgx-h100:1", "megatron-core");
    succeed();
    assert_true(f.p.step_time_s < a100);
}

/* Twice the batch is at least as much work; a longer step, not twice as long
 * since the bubble and what happens once per step are shared. */
static void more_work_takes_longer(void **state)
{
    (void)state;
    load("llama3-70b", "dgx-h100:16", NULL);
    layout(8, 4, 4, 128, 1);
    f.job.vpp = 1;
    succeed();
    double once = f.p.step_time_s;
    f.job.gbs = 256;
    succeed();
    assert_true(f.p.step_time_s > 1.7 * once && f.p.step_time_s < 2 * once);
}

static void conditions_slow(void **state)
{
    (void)state;
    load("gpt3-6.7b", "dgx-a100-80g:1", "megatron-deepspeed-2022");
    layout(1, 1, 8, 64, 4);
    succeed();
    double plain = f.p.step_time_s;
    f.job.numa_unbound = true;
    succeed();
    double factor = 1 + f.in.cost->p[SC_P_NUMA];
    assert_true(fabs(f.p.step_time_s / plain - factor) < 1e-6);
    f.job.numa_unbound = false;
    f.job.launch_blocking = true;
    succeed();
    assert_true(f.p.step_time_s > plain);
    assert_true(f.p.time_breakdown_s[SC_CAT_HOST] > 0);
}

/* Unfolding runs every rank: the same step, slowly. */
static void symmetry_changes_nothing(void **state)
{
    (void)state;
    load("llama3-8b", "dgx-h100:2", "megatron-lm-2022");
    layout(4, 2, 2, 16, 1);
    f.job.vpp = 1;
    f.job.zero = 0;
    f.job.brief = true;
    succeed();
    double folded = f.p.step_time_s;
    f.job.no_symmetry = true;
    succeed();
    assert_true(fabs(f.p.step_time_s - folded) < 1e-7);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(impossible_rates),      TEST(nothing_is_written),
        TEST(parts_that_do_not_fit), TEST(parts_sum),
        TEST(rates_belong_together), TEST(faster_networks),
        TEST(faster_devices),        TEST(more_work_takes_longer),
        TEST(conditions_slow),       TEST(symmetry_changes_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
