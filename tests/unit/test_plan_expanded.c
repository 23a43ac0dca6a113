/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expanded memory: the derived checks of COMET (arXiv 2211.16648), what goes
 * there, and what it costs by both engines.
 */
#include "plan/plan_strategy.h"
#include "predict/predict.h"
#include "prediction.h"

#include <math.h>
#include <stdio.h>

/* ---- COMET's tables ------------------------------------------------------- */

/* Bytes of states per device of Transformer-1T's blocks by ZeRO stage: 2 per
 * weight, 2 per gradient, 12 of the optimizer. */
static double states_of(uint32_t tp, uint32_t pp, uint32_t dp, int zero)
{
    sc_run r = {.size = {[SC_AX_PP] = pp,
                         [SC_AX_DP] = dp,
                         [SC_AX_CP] = 1,
                         [SC_AX_EP] = 1,
                         [SC_AX_TP] = tp,
                         [SC_AX_REP] = 1},
                .vpp = 1,
                .mbs = 1,
                .ga = pp,
                .gbs = (uint64_t)dp * pp,
                .seq = 2048,
                .sp = tp > 1,
                .zero = zero,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16};
    sc_segment *k;
    load_run(&r, "dgx-a100-80g:128", "megatron-1t", "megatron-core");
    sc_plan p = priced(&r, &k);
    const sc_segment *block = &k[1];
    double layers = (double)p.stage[0].blocks;
    return layers * (2 * block->params_kept + 2 * block->grads_kept +
                     12 * block->optim_kept);
}

/* The table of model states in GB: Z0 = 16 P / MP, Z1 = P (4 + 12 / DP) / MP, Z2
 * = P (2 + 14 / DP) / MP, Z3 = 16 P / (MP DP), P = 1.0066755584e12. */
static void comet_states(void **state)
{
    (void)state;

    static const struct {
        uint32_t tp, pp, dp;
        double gb[4];
    } row[] = {{8, 1, 128, {2013.4, 515.1, 265.4, 15.7}},
               {8, 2, 64, {1006.7, 263.5, 139.6, 15.7}},
               {8, 4, 32, {503.3, 137.6, 76.7, 15.7}},
               {8, 8, 16, {251.7, 74.7, 45.2, 15.7}},
               {8, 16, 8, {125.8, 43.3, 29.5, 15.7}},
               {8, 128, 1, {15.7, 15.7, 15.7, 15.7}}};

    for (size_t i = 0; i < SC_COUNT(row); i++)
        for (int zero = 0; zero < 4; zero++) {
            double gb = states_of(row[i].tp, row[i].pp, row[i].dp, zero) / 1e9;
            if (fabs(gb / row[i].gb[zero] - 1) > 0.005)
                fail_msg("MP %u, ZeRO-%d: %.1f GB, not %.1f",
                         row[i].tp * row[i].pp, zero, gb, row[i].gb[zero]);
        }
}

/* The table of hybrid bandwidths: 80 GB at 2039 GB/s, the rest of a footprint in
 * expanded memory; both in turn. */
static void comet_bandwidth(void **state)
{
    (void)state;
    static const double expanded[] = {100, 250, 500, 1000, 2039};

    static const struct {
        double footprint, bw[5];
    } row[] = {{120, {273, 602, 1006, 1514, 2039}},
               {160, {191, 445, 803, 1342, 2039}},
               {264, {140, 341, 648, 1183, 2039}},
               {500, {118, 291, 569, 1089, 2039}}};

    for (size_t i = 0; i < SC_COUNT(row); i++)
        for (size_t k = 0; k < SC_COUNT(expanded); k++) {
            double away = 1 - 80 / row[i].footprint;
            double bw = sc_hw_hybrid_bw(2039, expanded[k], away, true);
            assert_true(fabs(bw - row[i].bw[k]) <= 0.51);
            assert_true(sc_hw_hybrid_bw(2039, expanded[k], away, false) >= bw);
        }
}

/* ---- the machine ---------------------------------------------------------- */

static const sc_hw *machine(const char *spec)
{
    const sc_hw *hw;
    sc_status s = sc_hw_build(spec, sc_pos_none(), &f.a, &hw, &f.err);
    if (s != SC_OK) fail_msg("%s: %s", spec, f.err.d[0].msg);
    return hw;
}

static void keys(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:2; expanded_memory=500GB; "
                              "expanded_bw=60GB/s; expanded_latency=1us; "
                              "expanded_pool=8");
    assert_true(hw->expanded.bytes == 500e9 && hw->expanded.bw == 60e9);
    assert_true(hw->expanded.latency_s == 1e-6 && hw->expanded.pool == 8);
    assert_true(hw->hash != machine("dgx-a100-80g:2")->hash);
    assert_true(machine("dgx-a100-80g:2")->expanded.bytes == 0);
    assert_int_equal(
        machine("dgx-a100-80g:1; expanded_memory=1GB; expanded_bw=1GB/s; "
                "expanded_pool=64")
            ->expanded.pool,
        8);
    assert_true(
        machine("switch8@300GB/s; expanded_memory=1TB; expanded_bw=1GB/s")
            ->expanded.bytes == 1e12);
}

/* A pool's bandwidth is divided among its devices, at most those of the machine,
 * and each has no more than its own. */
static void shares(void **state)
{
    (void)state;

    static const struct {
        const char *keys;
        double bw;
    } row[] = {{"expanded_pool=8; expanded_pool_bw=1TB/s", 60e9},
               {"expanded_pool=8; expanded_pool_bw=400GB/s", 50e9},
               {"expanded_pool=16; expanded_pool_bw=400GB/s", 25e9},
               {"expanded_pool=64; expanded_pool_bw=400GB/s", 25e9},
               {"expanded_pool_bw=40GB/s", 40e9}};

    for (size_t i = 0; i < SC_COUNT(row); i++) {
        const char *spec = sc_sprintf(&f.a,
                                      "dgx-a100-80g:2; expanded_memory=500GB; "
                                      "expanded_bw=60GB/s; %s",
                                      row[i].keys);
        assert_true(machine(spec)->expanded.bw == row[i].bw);
    }
}

/* Memory is full when one of both is. */
static void spread(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-80g:1; expanded_memory=160GiB; "
                              "expanded_bw=100GB/s"),
                *out;
    const double gib = 1024.0 * 1024 * 1024;
    assert_int_equal(
        sc_hw_spread(hw, 0.5, true, sc_pos_none(), &f.a, &out, &f.err), SC_OK);
    near((double)out->device->mem_bytes, 160 * gib);
    near(out->device->mem_bw, 1 / (0.5 / hw->device->mem_bw + 0.5 / 100e9));
    assert_int_equal(
        sc_hw_spread(hw, 0.8, false, sc_pos_none(), &f.a, &out, &f.err), SC_OK);
    near((double)out->device->mem_bytes, 200 * gib);
    near(out->device->mem_bw, 100e9 / 0.8);
    assert_true(out->hash != hw->hash);
    assert_int_equal(
        sc_hw_spread(hw, 0, true, sc_pos_none(), &f.a, &out, &f.err), SC_OK);
    assert_ptr_equal(out, hw);
}

/* ---- what goes there ------------------------------------------------------ */

static sc_prediction predicted(const char *cluster, sc_job *job)
{
    sc_prediction p;
    job->cluster = cluster;
    job->brief = true;
    sc_err_init(&f.err);
    sc_status s = sc_predict_job(job, &f.a, &p, &f.err);
    if (s != SC_OK) fail_msg("%s: %s", cluster, f.err.d[0].msg);
    return p;
}

#define SMALL "dgx-a100-80g:1; expanded_memory=400GB; expanded_bw=100GB/s"

static sc_job eight(void)
{
    sc_job j;
    sc_job_init(&j);
    j.model = "llama3-8b";
    j.tp = j.pp = 1;
    j.mbs = 1;
    j.gbs = 64;
    j.seq = 4096;
    j.zero = 1;
    j.recompute = SC_RC_FULL;
    return j;
}

/* What leaves the device's memory arrives in the other. */
static void bytes(void **state)
{
    (void)state;
    sc_job j = eight();
    j.offload = 0;
    j.optimizer_tier = SC_TIER_DEVICE;
    sc_stage_memory none = predicted(SMALL, &j).memory[0];
    j.optimizer_tier = SC_TIER_EXPANDED;
    sc_stage_memory states = predicted(SMALL, &j).memory[0];
    assert_true(none.expanded == 0 && none.expanded_capacity == 400e9);
    near_by(states.expanded, none.optimizer, 1e-6);
    assert_true(states.optimizer == 0 && states.weights == none.weights);
    j.optimizer_tier = SC_TIER_DEVICE;
    j.offload_weights = 1;
    j.offload_to = SC_OFFLOAD_EXPANDED;
    sc_stage_memory weights = predicted(SMALL, &j).memory[0];
    near_by(weights.expanded, none.weights, 0.01);
    assert_true(weights.weights < 0.2 * none.weights);
    j.engine = SC_ENGINE_FAST;
    sc_stage_memory fast = predicted(SMALL, &j).memory[0];
    near_by(fast.expanded, weights.expanded, 0.01);
    near_by(fast.peak, weights.peak, 0.04);
    j.engine = SC_ENGINE_EVENT;
    j.offload_weights = 0;
    j.offload = 0.5;
    j.recompute = SC_RC_NONE;
    sc_stage_memory half = predicted(SMALL, &j).memory[0];
    j.engine = SC_ENGINE_FAST;
    near_by(predicted(SMALL, &j).memory[0].expanded, half.expanded, 0.12);
    assert_true(half.expanded > 0.3 * half.activations);
}

/* A device updates states where they are, in 24 of 28 bytes per element. */
static void update(void **state)
{
    (void)state;
    sc_job j = eight();
    j.offload = 0;
    j.optimizer_tier = SC_TIER_EXPANDED;
    for (int e = 0; e < 2; e++) {
        j.engine = e ? SC_ENGINE_FAST : SC_ENGINE_EVENT;
        sc_prediction p = predicted(SMALL, &j);
        double states = p.memory[0].expanded / 12 * 24;
        near_by(p.time_breakdown_s[SC_CAT_OPTIMIZER], states / 100e9, 0.03);
    }
}

/* Copies of weights hide behind kernels unless the other memory is too slow:
 * each is read once a pass. */
static void copies(void **state)
{
    (void)state;
    static const char *const slow =
        "dgx-a100-80g:1; expanded_memory=400GB; expanded_bw=20GB/s";
    sc_job j = eight();
    j.offload = 0;
    double none = predicted(SMALL, &j).step_time_s;
    j.offload_weights = 1;
    j.offload_to = SC_OFFLOAD_EXPANDED;
    double hidden = predicted(SMALL, &j).step_time_s;
    assert_true(hidden > none && hidden < 1.04 * none);
    sc_prediction p = predicted(slow, &j);
    /* 8 micro-batches, two passes; a table is not copied to look rows up */
    double least = 8 * 2 * 0.93 * p.memory[0].expanded / 20e9;
    assert_true(p.step_time_s > least && p.step_time_s < 1.3 * least);
    for (int i = 0; i < 9; i++) { /* both copies beside each other */
        double s[2];
        j.recompute = SC_RC_NONE;
        j.zero = i % 3;
        j.offload = i / 3 / 2.0;
        j.offload_weights = (i + 1) % 3 / 2.0;
        for (int e = 0; e < 2; e++) {
            j.engine = e ? SC_ENGINE_FAST : SC_ENGINE_EVENT;
            s[e] = predicted("dgx-a100-80g:1; expanded_memory=400GB; "
                             "expanded_bw=30GB/s",
                             &j)
                       .step_time_s;
        }
        if (fabs(s[1] / s[0] - 1) > 0.12)
            fail_msg("case %d: event %g s, fast %g s", i, s[0], s[1]);
    }
}

/* Updated weights are copied to the memory that keeps them, after an update by the
 * device or beside one by the host; gradients for the host queue behind them. */
static void copies_of_updates(void **state)
{
    (void)state;
    static const int zero[] = {0, 1, 3},
                     tiers[] = {SC_TIER_DEVICE, SC_TIER_EXPANDED, SC_TIER_CPU},
                     to[] = {SC_OFFLOAD_CPU, SC_OFFLOAD_EXPANDED,
                             SC_OFFLOAD_NVME};
    sc_job j = eight();
    j.gbs = 8;
    for (uint32_t i = 0; i < 3 * 3 * 3 * 2; i++) {
        double s[2];
        j.zero = zero[i % 3];
        j.optimizer_tier = tiers[i / 3 % 3];
        j.offload_to = to[i / 9 % 3];
        j.offload_weights = i / 27 ? 0.5 : 1;
        j.offload = 0;
        for (int e = 0; e < 2; e++) {
            j.engine = e ? SC_ENGINE_FAST : SC_ENGINE_EVENT;
            s[e] = predicted("dgx-a100-80g:1; expanded_memory=400GB; "
                             "expanded_bw=20GB/s",
                             &j)
                       .step_time_s;
        }
        if (fabs(s[1] / s[0] - 1) > 0.06)
            fail_msg("case %u: event %g s, fast %g s", i, s[0], s[1]);
    }
}

/* With equal bandwidths capacity is free (COMET's check b), and a faster memory
 * is never worse. */
static void equal_is_free(void **state)
{
    (void)state;
    sc_job j = eight();
    double none = predicted("dgx-a100-80g:1", &j).step_time_s, before = 0;
    static const char *const machines[] = {
        "dgx-a100-80g:1; expanded_memory=1TB; expanded_bw=2039GB/s",
        "dgx-a100-80g:1; expanded_memory=1TB; expanded_bw=1000GB/s",
        "dgx-a100-80g:1; expanded_memory=1TB; expanded_bw=250GB/s"};
    j.expanded_fraction = 0.5;
    j.expanded_access = SC_ACCESS_IN_TURN;
    for (size_t i = 0; i < SC_COUNT(machines); i++) {
        double s = predicted(machines[i], &j).step_time_s;
        if (i == 0) near_by(s, none, 1e-9);
        assert_true(s >= before);
        before = s;
    }
    assert_true(before > 1.2 * none);
}

/* What does not fit goes there by itself, least used bytes first. */
static void by_itself(void **state)
{
    (void)state;
    sc_job j;
    sc_job_init(&j);
    j.model = "llama3-70b";
    j.gbs = 32;
    sc_prediction none = predicted("dgx-a100-80g:1", &j);
    assert_false(none.fits);
    sc_prediction p = predicted("dgx-a100-80g:1; expanded_memory=1TB; "
                                "expanded_bw=100GB/s",
                                &j);
    assert_true(p.fits && p.run.optim_tier == SC_TIER_EXPANDED);
    assert_true(p.memory[0].expanded > 0);
    /* too little of it is no help */
    p = predicted("dgx-a100-80g:1; expanded_memory=1GB; expanded_bw=100GB/s",
                  &j);
    assert_false(p.fits);
    j.offload = 0;
    j.optimizer_tier = SC_TIER_DEVICE;
    p = predicted("dgx-a100-80g:1; expanded_memory=1TB; expanded_bw=100GB/s",
                  &j);
    assert_true(!p.fits && p.memory[0].expanded == 0);
}

/* Look-ups read rows where the table is, and nothing copies the table. */
static void tables(void **state)
{
    (void)state;
    static const char *const slow =
        "dgx-a100-80g:1; expanded_memory=400GB; expanded_bw=1GB/s";
    sc_job j;
    sc_job_init(&j);
    j.model = "dlrm-dcnv2";
    j.gbs = 65536;
    j.mbs = 8192;
    sc_prediction none = predicted("dgx-a100-80g:1", &j);
    j.offload_weights = 1;
    j.offload_to = SC_OFFLOAD_EXPANDED;
    sc_prediction p = predicted(SMALL, &j);
    assert_true(p.memory[0].expanded > 12e9 &&
                p.memory[0].weights < 0.1 * none.memory[0].weights);
    double copy = p.memory[0].expanded / 100e9;
    assert_true(p.step_time_s > none.step_time_s && p.step_time_s < copy);
    /* 214 rows of 256 bytes for each of 65,536 samples on 8 devices */
    double rows = 214.0 * 256 * 65536 / 8;
    double more = predicted(slow, &j).time_breakdown_s[SC_CAT_COMPUTE];
    assert_true(more > 0.5 * rows / 1e9 && more < 1.6 * rows / 1e9);
}

/* A pool of all devices holds what stages need together. */
static void pool(void **state)
{
    (void)state;
    sc_job j = eight();
    j.pp = 4;
    j.vpp = 1;
    j.tp = 2;
    j.gbs = 16;
    j.recompute = SC_RC_NONE;
    j.offload = 1;
    j.offload_to = SC_OFFLOAD_EXPANDED;
    sc_prediction p = predicted(SMALL, &j);
    double most = 0, sum = 0;
    for (uint32_t i = 0; i < p.n_stages; i++) {
        most = fmax(most, p.memory[i].expanded);
        sum += p.memory[i].expanded;
    }
    assert_true(p.fits && most > 1.15 * sum / p.n_stages);
    for (int shared = 0; shared < 2; shared++) {
        const char *spec = sc_sprintf(
            &f.a,
            "dgx-a100-80g:1; expanded_memory=%.0fB; expanded_bw=100GB/s; "
            "expanded_pool=%d",
            (most + sum / p.n_stages) / 2, shared ? 8 : 1);
        for (int e = 0; e < 2; e++) {
            j.engine = e ? SC_ENGINE_FAST : SC_ENGINE_EVENT;
            assert_int_equal(predicted(spec, &j).fits, shared);
        }
    }
}

/* By both engines a pool of little bandwidth is as slow as devices that have
 * their part of it, for copies and for updates. */
static void contention(void **state)
{
    (void)state;
    static const char *const spec =
        "dgx-a100-80g:1; expanded_memory=500GB; expanded_bw=%s";
    sc_job j = eight();
    j.offload = 1;
    j.offload_to = SC_OFFLOAD_EXPANDED;
    j.optimizer_tier = SC_TIER_EXPANDED;
    for (int e = 0; e < 2; e++) {
        j.engine = e ? SC_ENGINE_FAST : SC_ENGINE_EVENT;
        double alone =
            predicted(sc_sprintf(&f.a, spec, "60GB/s"), &j).step_time_s;
        double slow =
            predicted(sc_sprintf(&f.a, spec, "5GB/s"), &j).step_time_s;
        double shared = predicted(sc_sprintf(&f.a, spec,
                                             "60GB/s; expanded_pool=8; "
                                             "expanded_pool_bw=40GB/s"),
                                  &j)
                            .step_time_s;
        assert_true(shared == slow && slow > 1.2 * alone);
    }
}

/* ---- errors --------------------------------------------------------------- */

static void errors(void **state)
{
    (void)state;

    static const struct {
        const char *cluster;
        int to, tier;
        double offload, fraction;
        const char *text;
    } c[] = {{"dgx-a100-80g:1", SC_OFFLOAD_EXPANDED, SC_INFER, 0.5, 0,
              "the machine has no expanded memory"},
             {"dgx-a100-80g:1", SC_INFER, SC_TIER_EXPANDED, SC_INFER, 0,
              "the machine has no expanded memory"},
             {"dgx-a100-80g:1", SC_INFER, SC_INFER, SC_INFER, 0.5,
              "the machine has no expanded memory"},
             {SMALL, SC_OFFLOAD_EXPANDED, SC_INFER, 0.5, 0.5,
              "all of it is used by --expanded-fraction"},
             {"dgx-a100-80g:1; expanded_memory=1GB", SC_INFER, SC_INFER,
              SC_INFER, 0, "expanded_memory needs expanded_bw"}};

    for (size_t i = 0; i < SC_COUNT(c); i++) {
        sc_job j = eight();
        sc_prediction p;
        j.cluster = c[i].cluster;
        j.offload_to = c[i].to;
        j.optimizer_tier = c[i].tier;
        j.offload = c[i].offload;
        j.expanded_fraction = c[i].fraction;
        sc_err_init(&f.err);
        assert_int_equal(sc_predict_job(&j, &f.a, &p, &f.err), SC_EINPUT);
        assert_string_equal(f.err.d[0].msg, c[i].text);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(comet_states),  TEST(comet_bandwidth),
        TEST(keys),          TEST(spread),
        TEST(shares),        TEST(contention),
        TEST(bytes),         TEST(update),
        TEST(copies),        TEST(copies_of_updates),
        TEST(equal_is_free), TEST(by_itself),
        TEST(tables),        TEST(pool),
        TEST(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
