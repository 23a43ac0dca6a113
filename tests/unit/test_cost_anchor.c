/* SPDX-License-Identifier: Apache-2.0 */
/* Posteriors of own runs, worked by hand. */
#include "cost/cost_anchor.h"
#include "prediction.h"

#include <math.h>
#include <string.h>

static const double noise = SC_ANCHOR_NOISE;

static void close_to(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9)) fail_msg("%.17g is not %.17g", got, want);
}

/* Covariance of two parameters with correlation 1/2. */
static const sc_param params[] = {SC_P_SUSTAINED_AMPERE, SC_P_STEP_FIXED};
static const double of_log[] = {0.04, 0.01, 0.01, 0.01};
static const sc_covariance cov = {2, params, of_log};

/* A job that shares nothing with one of another name. */
static sc_traits job(const char *name, uint64_t key)
{
    sc_traits t = {.key = key};
    for (int k = 0; k < (int)SC_N_TRAIT_NAMES; k++) t.name[k] = name;
    for (int k = 0; k < (int)SC_N_TRAIT_SIZES; k++) t.size[k] = 1;
    return t;
}

static sc_anchor run(const sc_traits *t, double log_error)
{
    return (sc_anchor){.id = "run",
                       .measured_s = exp(log_error),
                       .predicted_s = 1,
                       .moved_s = NAN,
                       .noise = noise,
                       .traits = *t};
}

/* Effects that are all nothing but one. */
static sc_cost only(sc_effect e, double sd)
{
    sc_cost c;
    sc_cost_centres(&c);
    for (int k = 0; k < (int)SC_N_EFFECTS; k++) c.held.effects.sd[k] = 1e-9;
    c.held.effects.sd[e] = sd;
    c.held.unseen = 1;
    return c;
}

static sc_anchors fitted(const sc_anchor *a, uint32_t n, const sc_cost *base)
{
    sc_anchors s;
    sc_err_init(&f.err);
    if (sc_anchors_fit(a, n, base, &cov, &f.a, &s, &f.err) != SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    /* without an effect of jobs, levels can't be told from each other */
    if (n == 1 && sc_anchors_level(&s, &f.a, &f.err) != SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    return s;
}

/* A level that all own runs share: the posterior of a normal mean. */
static void one_level(void **state)
{
    (void)state;
    const double sd = 0.1, r = 0.05;
    sc_traits t[3] = {job("a", 1), job("b", 2), job("c", 3)};
    sc_anchor a[2] = {run(&t[0], r), run(&t[1], r)};
    sc_cost base = only(SC_EFFECT_SITE, sd);
    for (uint32_t n = 1; n <= 2; n++) {
        sc_anchors s = fitted(a, n, &base);
        double left = 1 / (1 / (sd * sd) + n / (noise * noise));
        double mean = left * n * r / (noise * noise);
        close_to(sc_anchors_effect(&s, &t[2]), mean);
        if (n == 1) close_to(sc_anchors_level_of(&s, &t[2]), mean);
        close_to(sc_anchors_narrow(&s, &t[2], &f.a),
                 sqrt((left + noise * noise) / (sd * sd + noise * noise)));
        assert_true(s.move[SC_P_SUSTAINED_AMPERE] == 0);
    }
}

/* A level of a release reaches no other release. */
static void other_release(void **state)
{
    (void)state;
    sc_traits t[2] = {job("a", 1), job("b", 2)};
    sc_anchor a = run(&t[0], 0.05);
    sc_cost base = only(SC_EFFECT_RELEASE, 0.1);
    sc_anchors s = fitted(&a, 1, &base);
    close_to(sc_anchors_level_of(&s, &t[1]), 0);
    close_to(sc_anchors_narrow(&s, &t[1], &f.a), 1);
    t[1].name[SC_TRAIT_RELEASE] = "a";
    assert_true(sc_anchors_level_of(&s, &t[1]) > 0.045);
    assert_true(sc_anchors_narrow(&s, &t[1], &f.a) < 0.3);
}

/* A parameter moves by its covariance with what the run depends on. */
static void parameters(void **state)
{
    (void)state;
    const sc_share share = {SC_P_SUSTAINED_AMPERE, -0.5};
    sc_traits t = job("a", 1);
    t.share = &share;
    t.n_shares = 1;
    sc_anchor a = run(&t, 0.02);
    sc_cost base = only(SC_EFFECT_PARAMETERS, 1), moved = base;
    sc_anchors s = fitted(&a, 1, &base);
    double all = 0.25 * 0.04 + noise * noise;
    close_to(s.move[SC_P_SUSTAINED_AMPERE], -0.5 * 0.04 * 0.02 / all);
    close_to(s.move[SC_P_STEP_FIXED], -0.5 * 0.01 * 0.02 / all);
    sc_anchors_move(&s, &moved);
    close_to(moved.p[SC_P_SUSTAINED_AMPERE],
             base.p[SC_P_SUSTAINED_AMPERE] * exp(-0.5 * 0.04 * 0.02 / all));
    assert_true(moved.p[SC_P_SUSTAINED_HOPPER] ==
                base.p[SC_P_SUSTAINED_HOPPER]);
    close_to(sc_anchors_level_of(&s, &t), 0); /* nothing is left for levels */
}

/* Far runs keep their own job's time and pull others by a bounded amount. */
static void far_run(void **state)
{
    (void)state;
    sc_traits t[2] = {job("a", 1), job("b", 2)};
    sc_anchor a[2] = {run(&t[0], 0.7), run(&t[0], 1.4)};
    sc_cost base = only(SC_EFFECT_SITE, 0.1);
    base.held.effects.sd[SC_EFFECT_JOB] = 0.05;
    sc_anchors s = fitted(&a[0], 1, &base), more = fitted(&a[1], 1, &base);
    assert_true(fabs(sc_anchors_level_of(&s, &t[0]) - 0.7) < 0.01);
    assert_true(sc_anchors_level_of(&s, &t[1]) < 0.1);
    close_to(sc_anchors_level_of(&s, &t[1]), sc_anchors_level_of(&more, &t[1]));
    assert_true(s.a[0].z > SC_ANCHOR_FAR);
}

static void same_job(void **state)
{
    (void)state;
    sc_traits t = job("a", 1);
    sc_anchor a[2] = {run(&t, 0.02), run(&t, 0.04)};
    sc_cost base = only(SC_EFFECT_SITE, 0.1);
    sc_anchors s = fitted(a, 2, &base);
    assert_int_equal(s.n, 1);
    close_to(log(s.a[0].measured_s), 0.03);
    close_to(s.a[0].noise, noise / sqrt(2));
}

static void refused(void **state)
{
    (void)state;
    sc_traits t = job("a", 1);
    sc_anchors s;
    sc_cost base = only(SC_EFFECT_SITE, 0.1);
    sc_anchor a = run(&t, NAN);
    sc_err_init(&f.err);
    assert_int_equal(sc_anchors_fit(&a, 1, &base, &cov, &f.a, &s, &f.err),
                     SC_EINPUT);
}

/* A profile means what was written, and only with its fit. */
static void profile(void **state)
{
    (void)state;
    const sc_share share[] = {{SC_P_SUSTAINED_AMPERE, -0.7},
                              {SC_P_SUSTAINED_HOPPER, 0}};
    sc_traits t[2] = {job("a \"b\"", 1), job("c", 2)};
    sc_covariance all;
    sc_anchors s;
    sc_text out;
    sc_cost c, base;
    sc_text_init(&out);
    t[0].share = share;
    t[0].n_shares = 2;
    t[0].network = 0.1;
    sc_anchor a[2] = {run(&t[0], 0.1), run(&t[1], 0.03)};
    sc_err_init(&f.err);
    assert_int_equal(sc_cost_builtin(&f.a, &base, &f.err), SC_OK);
    assert_int_equal(sc_covariance_builtin(&f.a, &all, &f.err), SC_OK);
    assert_int_equal(sc_anchors_fit(a, 2, &base, &all, &f.a, &s, &f.err),
                     SC_OK);
    assert_int_equal(sc_anchors_level(&s, &f.a, &f.err), SC_OK);
    assert_int_equal(sc_anchors_write(&s, "# test\n", &f.a, &out, &f.err),
                     SC_OK);
    c = base;
    if (sc_cost_read(out.buf, out.len, "p.yml", &f.a, &c, &f.err) != SC_OK)
        fail_msg("%s\n%s", f.err.d[0].msg, out.buf);
    assert_non_null(c.anchors);
    assert_int_equal(c.anchors->n, 2);
    assert_true(fabs(sc_anchors_effect(c.anchors, &t[1]) /
                         sc_anchors_effect(&s, &t[1]) -
                     1) < 1e-3);
    assert_true(fabs(sc_anchors_level_of(c.anchors, &t[1]) /
                         sc_anchors_level_of(&s, &t[1]) -
                     1) < 1e-3);
    assert_true(c.p[SC_P_SUSTAINED_AMPERE] < base.p[SC_P_SUSTAINED_AMPERE]);
    assert_string_equal(c.anchors->a[0].traits.name[0], "a \"b\"");
    c = base;
    c.hash++;
    assert_int_equal(sc_cost_read(out.buf, out.len, "p.yml", &f.a, &c, &f.err),
                     SC_EINPUT);
    sc_text_free(&out);
}

static void covariance_file(void **state)
{
    (void)state;
    const char *text =
        "covariance:\n  sustained_ampere: {standard_error: 0.1}\n"
        "  gone: {standard_error: 1, sustained_ampere: 0.5}\n"
        "  sustained_hopper: {standard_error: 0.2, "
        "sustained_ampere: -0.5}\n";
    sc_covariance c;
    int at[2] = {-1, -1};
    sc_err_init(&f.err);
    assert_int_equal(
        sc_covariance_read(text, strlen(text), "c.yml", &f.a, &c, &f.err),
        SC_OK);
    for (uint32_t i = 0; i < c.n; i++) {
        if (c.param[i] == SC_P_SUSTAINED_AMPERE) at[0] = (int)i;
        if (c.param[i] == SC_P_SUSTAINED_HOPPER) at[1] = (int)i;
        if (c.param[i] == SC_P_TRAFFIC) /* not in the file: its prior */
            close_to(c.of_log[i * c.n + i], 0.0625);
    }
    assert_true(at[0] >= 0 && at[1] >= 0);
    close_to(c.of_log[(size_t)at[0] * c.n + (size_t)at[0]], 0.01);
    close_to(c.of_log[(size_t)at[0] * c.n + (size_t)at[1]], -0.01);
    const char *bad = "covariance: {sustained_ampere: {standard_error: 0.1, "
                      "sustained_hopper: 2}}";
    assert_int_equal(
        sc_covariance_read(bad, strlen(bad), "c.yml", &f.a, &c, &f.err),
        SC_EINPUT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(one_level),  TEST(other_release),
                                       TEST(parameters), TEST(far_run),
                                       TEST(same_job),   TEST(refused),
                                       TEST(profile),    TEST(covariance_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
