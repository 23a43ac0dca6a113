/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a layer keeps for its backward pass, against table 2 of Korthikanti et
 * al. 2022: s tokens, b samples, h width, a heads, t tensor parallel.
 */
#include <stepcast/predict.h>

#include "prediction.h"

#include <math.h>
#include <stdio.h>

static sc_run run_of(const char *model, const char *software, uint32_t tp,
                     uint32_t pp)
{
    sc_run r = {.size = {pp, 1, 1, 1, tp},
                .vpp = 1,
                .mbs = 4,
                .ga = 8,
                .gbs = 32,
                .seq = 2048,
                .precision = SC_FP16};
    char spec[32];
    snprintf(spec, sizeof spec, "a100-sxm-80g:%u", tp * pp);
    load_run(&r, spec, model, software);
    return r;
}

static sc_plan plan_of(const sc_run *r, sc_block blocks[3])
{
    sc_plan p = built(r);
    for (uint32_t l = 0; l < 3; l++)
        assert_int_equal(sc_block_price(&p, l, &f.a, &blocks[l], &f.err),
                         SC_OK);
    return p;
}

static void korthikanti(void **state)
{
    (void)state;
    static const uint32_t degree[] = {1, 2, 4, 8};
    for (size_t i = 0; i < SC_COUNT(degree); i++) {
        sc_run r = run_of("gpt3-6.7b", "megatron-lm-2022", degree[i], 1);
        double t = degree[i], s = 2048, b = 4;
        double h = (double)r.model->t.hidden, a = (double)r.model->t.heads;
        double sbh = s * b * h, as_h = a * s / h;
        sc_block k[3];
        plan_of(&r, k);
        near(k[1].saved, sbh * (10 + 24 / t + 5 * as_h / t));
        r.recompute = SC_RC_SELECTIVE;
        plan_of(&r, k);
        near(k[1].saved, sbh * (10 + 24 / t));
        r.recompute = SC_RC_FULL;
        plan_of(&r, k);
        near(k[1].saved, 2 * sbh);
        r.sp = true;
        r.recompute = SC_RC_NONE;
        plan_of(&r, k);
        near(k[1].saved, sbh / t * (34 + 5 * as_h));
        r.recompute = SC_RC_SELECTIVE;
        plan_of(&r, k);
        near(k[1].saved, 34 * sbh / t);
    }
}

/* Fused attention keeps no scores: what is left is linear in the sequence. */
static void fused_attention_is_linear(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-6.7b", "megatron-core", 1, 1);
    sc_block one[3], two[3];
    plan_of(&r, one);
    r.seq *= 2;
    plan_of(&r, two);
    near(two[1].saved, 2 * one[1].saved);
    r.mbs *= 2;
    plan_of(&r, one);
    near(one[1].saved, 2 * two[1].saved);
    sc_run unfused = run_of("gpt3-6.7b", "megatron-lm-2022", 1, 1);
    plan_of(&unfused, one);
    unfused.seq *= 2;
    plan_of(&unfused, two);
    assert_true(two[1].saved > 2.5 * one[1].saved);
}

static sc_stage_memory *memory(const sc_run *r)
{
    sc_block k[3];
    sc_plan p = plan_of(r, k);
    sc_stage_memory *m = SC_NEW_N(&f.a, sc_stage_memory, r->size[SC_AX_PP]);
    assert_non_null(m);
    assert_int_equal(sc_predict_memory(&p, k, &f.a, m, &f.err), SC_OK);
    return m;
}

/* Mixed-precision Adam: 2 + 4 + 12 bytes per parameter. */
static void model_state(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-6.7b", "megatron-lm-2022", 1, 1);
    double n = (double)r.model->params;
    const sc_stage_memory *m = memory(&r);
    near(m->weights, 2 * n);
    near(m->gradients, 4 * n);
    near(m->optimizer, 12 * n);
    near(m->allocated, m->weights + m->gradients + m->optimizer +
                           m->activations + m->communication + m->other);
    assert_true(m->peak >= m->allocated);
    r.forward_only = true;
    m = memory(&r);
    near(m->weights, 2 * n);
    assert_true(m->gradients == 0 && m->optimizer == 0);
}

/* 1F1B: stage i holds pp - i micro-batches; the blocks' share of every stage
 * is therefore the same multiple of that. */
static void stages_hold_less_and_less(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-6.7b", "megatron-lm-2022", 1, 8);
    sc_block k[3];
    sc_plan p = plan_of(&r, k);
    const sc_stage_memory *m = memory(&r);
    for (uint32_t d = 1; d + 1 < 8; d++)
        near(m[d].activations - k[1].working, 4 * (8 - d) * k[1].saved);
    assert_int_equal(p.stage[1].blocks, 4);
    r.schedule = SC_SCH_GPIPE;
    const sc_stage_memory *g = memory(&r);
    for (uint32_t d = 1; d + 1 < 8; d++)
        near(g[d].activations - k[1].working, 4 * 8 * k[1].saved);
}

/* Interleaving costs memory: 1 + (pp - 1) / (pp vpp) of 1F1B on the first
 * stage (Korthikanti et al. 2022, section 4.2.3). */
static void interleaving_holds_more(void **state)
{
    (void)state;
    sc_run r = run_of("llama2-7b", "megatron-core", 1, 4);
    sc_block k[3];
    r.schedule = SC_SCH_INTERLEAVED;
    r.ga = 16;
    r.gbs = 64;
    r.vpp = 4;
    plan_of(&r, k);
    assert_true(k[0].saved == 0); /* a lookup keeps nothing to speak of */
    near(memory(&r)[0].activations - fmax(k[0].working, k[1].working),
         32 * k[1].saved * (1 + 3.0 / 16));
}

/* Recomputation and sharding never need more. */
static void less_is_less(void **state)
{
    (void)state;
    static const char *const sw[] = {"megatron-lm-2022", "megatron-core",
                                     "llm-foundry-2023"};
    for (size_t i = 0; i < SC_COUNT(sw); i++) {
        sc_run r = run_of("gpt3-6.7b", sw[i], 2, 2);
        double peak[3];
        for (int rc = 0; rc < 3; rc++) {
            r.recompute = (sc_recompute)rc;
            peak[rc] = memory(&r)[0].peak;
        }
        assert_true(peak[SC_RC_SELECTIVE] <= peak[SC_RC_NONE]);
        assert_true(peak[SC_RC_FULL] <= peak[SC_RC_SELECTIVE]);
        assert_true(peak[SC_RC_FULL] < peak[SC_RC_NONE]);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

/* A share of what is kept waits in host memory, but for one layer's on its way;
 * what a slow link takes beyond the layer's own time shows. */
static void offloaded(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-6.7b", "megatron-core", 1, 1);
    sc_block none[3], half[3];
    plan_of(&r, none);
    r.offload = 0.5;
    plan_of(&r, half);
    double bytes = none[1].saved / 2;
    near(half[1].saved, bytes);
    near(half[1].offloaded, bytes);
    near(half[1].working, none[1].working + bytes);
    near(half[0].saved, none[0].saved);
    double t = bytes / r.hw->device->host_bw;
    double sigma =
        r.hw->device->host_bw / (r.hw->device->mem_bw * f.cost.p[SC_P_MEM_EFF]);
    double beside = fmin(t, none[1].fwd_s);
    near(half[1].fwd_cat[SC_CAT_OFFLOAD], t - beside + sigma * beside);
    near(half[1].fwd_s, none[1].fwd_s + half[1].fwd_cat[SC_CAT_OFFLOAD]);
    near(none[1].fwd_cat[SC_CAT_OFFLOAD] + 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(korthikanti),
                                       TEST(fused_attention_is_linear),
                                       TEST(model_state),
                                       TEST(stages_hold_less_and_less),
                                       TEST(interleaving_holds_more),
                                       TEST(less_is_less),
                                       TEST(offloaded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
