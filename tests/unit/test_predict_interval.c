/* SPDX-License-Identifier: Apache-2.0 */
/* Which held-out errors the interval of a prediction is made of. */
#include "predict/predict.h"
#include "prediction.h"

#include <math.h>
#include <string.h>

static const sc_counted archs[] = {{"ampere", 5}, {"volta", 0}};
static const sc_counted programs[] = {{"megatron-bridge-25.09", 5}};

/* Every kind another interval, encoders below and experts above the rest. */
static void intervals(sc_held_out *h)
{
    static const double low[] = {-0.11, -0.4, -0.12, -0.1, -0.6};
    static const double high[] = {0.2, 0.21, 0.3, 0.1, 0.6};
    sc_held_out_none(h);
    for (int k = 0; k < (int)SC_N_KINDS; k++)
        h->kind[k] = (sc_interval){low[k], high[k], 30, 3};
    h->all = (sc_interval){-0.2, 0.2, 120, 5};
    h->unseen = 1.5;
    h->arch = archs;
    h->n_archs = SC_COUNT(archs);
    h->program = programs;
    h->n_programs = SC_COUNT(programs);
}

static void predict(const char *model, const char *cluster,
                    const char *software)
{
    f.job.model = model;
    f.job.cluster = cluster;
    f.job.software = software;
    f.job.gbs = 64;
    sc_status s = sc_predict_load(&f.job, &f.a, &f.in, &f.err);
    if (s == SC_OK) {
        intervals(&f.in.cost->held);
        s = sc_predict(&f.job, f.in.hw, f.in.model, f.in.sw, f.in.cost, &f.a,
                       &f.p, &f.err);
    }
    if (s != SC_OK) fail_msg("%s", f.err.d[0].msg);
}

static bool said(const char *const *text, uint32_t n, const char *part)
{
    for (uint32_t i = 0; i < n; i++)
        if (strstr(text[i], part)) return true;
    return false;
}

static double deviation(void)
{
    const sc_held_out *h = &f.in.cost->held;
    return sc_effects_deviation(&h->effects, h->unseen, f.in.cost->cov,
                                &f.p.traits);
}

/* The ends, in standard deviations of the job. */
static void ends(double low, double high)
{
    double sd = deviation();
    assert_true(sd > 0.1);
    near(f.p.step_time_low_s, f.p.step_time_s * exp(low * sd));
    near(f.p.step_time_high_s, f.p.step_time_s * exp(high * sd));
}

static void of_the_models_kind(void **state)
{
    (void)state;
    static const char program[] = "megatron-bridge-25.09";
    predict("gpt2-xl", "dgx-a100-80g:1", program);
    ends(-0.1, 0.1);
    assert_true(
        said(f.p.assumptions, f.p.n_assumptions, "dense models in 3 families"));
    assert_true(
        said(f.p.assumptions, f.p.n_assumptions, "errors of 30 measured runs"));
    assert_false(said(f.p.warnings, f.p.n_warnings, "is in the fit"));
    predict("mixtral-8x7b", "dgx-a100-80g:4", program);
    /* Messages between nodes whose network is not calibrated widen it. */
    assert_true(log(f.p.step_time_low_s / f.p.step_time_s) <
                -0.12 * deviation());
    assert_true(log(f.p.step_time_high_s / f.p.step_time_s) >
                0.3 * deviation());
    predict("bert-large", "dgx-a100-80g:1", program);
    ends(-0.4, 0.21);
    sc_transformer t = f.in.model->t;
    t.lora = 16; /* whatever else it is */
    sc_model m = {.t = t};
    assert_int_equal(sc_predict_kind(&m), SC_KIND_ADAPTERS);
    /* a profile that varies one with rows */
    predict("gpt2-xl", "dgx-a100-80g:1", "nemo-2024");
    ends(-0.1, 0.1);
}

/* The interval of a step, as a logarithm from end to end. */
static double width(void)
{
    return log(f.p.step_time_high_s / f.p.step_time_low_s);
}

/* The less a step waits for an uncalibrated network, the narrower it is; a
 * network that is calibrated adds nothing. */
static void grows_with_the_network(void **state)
{
    (void)state;
    static const char *const machines[] = {
        "dgx-a100-80g:4;nic_bw=400Gb/s", "dgx-a100-80g:4;nic_bw=100Gb/s",
        "dgx-a100-80g:4;nic_bw=25Gb/s", "dgx-a100-80g:4;nic_bw=2Gb/s"};
    double last = 0;
    for (size_t i = 0; i < SC_COUNT(machines); i++) {
        f.job.tp = 8;
        f.job.pp = 1;
        predict("llama3-8b", machines[i], "megatron-bridge-25.09");
        double waits = f.p.time_breakdown_s[SC_CAT_DP] / f.p.step_time_s;
        /* tp stays inside the node, so that only dp waits */
        double own = waits * log(f.in.cost->p[SC_P_INTERVAL_NETWORK]);
        near(width(), 2 * hypot(0.1 * deviation(), own));
        assert_true(width() > last);
        last = width();
    }
    assert_true(last > 0.3);
}

static void widest_where_no_run_is_like_it(void **state)
{
    (void)state;

    static const struct {
        const char *cluster, *software, *warning, *other;
    } unseen[] = {
        {"dgx-h100:1", "nemo-2024", "step on hopper devices", "step of"},
        {"dgx1-v100:1", "nemo-2024", "step on volta devices", "step of"},
        {"dgx-a100-80g:1", "megatron-core", "step of megatron-core", "step on"},
    };

    for (size_t i = 0; i < SC_COUNT(unseen); i++) {
        predict("gpt2-xl", unseen[i].cluster, unseen[i].software);
        ends(-0.4, 0.3);
        assert_true(said(f.p.warnings, f.p.n_warnings, unseen[i].warning));
        assert_false(said(f.p.warnings, f.p.n_warnings, unseen[i].other));
        assert_true(said(f.p.assumptions, f.p.n_assumptions, "widened 1.5x"));
    }
}

/* Without held-out errors there is no interval, and nobody is told of one. */
static void nothing_known(void **state)
{
    (void)state;
    sc_job_init(&f.job);
    predict("gpt2-xl", "dgx-a100-80g:1", "nemo-2024");
    sc_held_out_none(&f.in.cost->held);
    assert_int_equal(sc_predict(&f.job, f.in.hw, f.in.model, f.in.sw, f.in.cost,
                                &f.a, &f.p, &f.err),
                     SC_OK);
    assert_true(f.p.step_time_s > 0);
    assert_true(isnan(f.p.step_time_low_s) && isnan(f.p.step_time_high_s));
    assert_false(said(f.p.assumptions, f.p.n_assumptions, "interval"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_the_models_kind), TEST(grows_with_the_network),
        TEST(widest_where_no_run_is_like_it), TEST(nothing_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
