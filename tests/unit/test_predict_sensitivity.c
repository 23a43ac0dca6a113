/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to explain a measurement does: the parameter or the machine
 * changed by that factor gives the measured step. */
#include "predict/predict.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static struct {
    sc_arena a;
    sc_err err;
    double gamma; /* 0: none is given */
} f;

static void near(double got, double want, double off)
{
    if (!(fabs(got - want) <= off)) fail_msg("%.9g, not %.9g", got, want);
}

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&f.a, 0);
    sc_err_init(&f.err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&f.a);
    return 0;
}

/* A machine whose every rate is a factor of the usual one. */
static sc_prediction predict(double link, double nic, const char *parameter,
                             double by)
{
    sc_job job;
    sc_inputs in;
    sc_prediction p = {0};
    sc_job_init(&job);
    job.model = "megatron-22b";
    job.cluster = sc_sprintf(
        &f.a, "switch4@%.9gGB/s x switch4@%.9gGB/s; device=a100-sxm-80g",
        100 * link, 10 * nic);
    job.tp = 4;
    job.pp = 1;
    job.gbs = 32;
    job.mbs = 2;
    job.recompute = SC_RC_FULL;
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    if (f.gamma > 0) job.gamma = f.gamma;
    assert_int_equal(sc_predict_load(&job, &f.a, &in, &f.err), SC_OK);
    if (parameter) in.cost->p[sc_param_find(parameter)] *= by;
    /* the line names the rate of the links together, the device of each */
    sc_hw *hw = SC_NEW(&f.a, sc_hw);
    sc_device *d = SC_NEW(&f.a, sc_device);
    *hw = *in.hw;
    *d = *hw->device;
    d->link_bw *= link;
    hw->device = d;
    in.hw = hw;
    assert_int_equal(
        sc_predict(&job, in.hw, in.model, in.sw, in.cost, &f.a, &p, &f.err),
        SC_OK);
    return p;
}

static void inputs_explain(void **state)
{
    (void)state;
    static const double ratio[] = {1.25, 0.9};
    uint32_t checked = 0;
    for (size_t k = 0; k < SC_COUNT(ratio); k++) {
        sc_input in[SC_INPUTS_MAX];
        uint32_t n = 0;
        sc_prediction p = predict(1, 1, NULL, 1), q;
        assert_int_equal(sc_predict_inputs(&p, ratio[k], &f.a, in, &n, &f.err),
                         SC_OK);
        assert_true(n >= 3);
        for (uint32_t i = 0; i < n; i++) {
            if (i) assert_true(fabs(in[i].change) <= fabs(in[i - 1].change));
            assert_true(in[i].change < 0); /* more of it is faster */
            bool link = strcmp(in[i].name, "link bandwidth") == 0;
            bool nic = strcmp(in[i].name, "NIC bandwidth") == 0;
            if (!link && !nic) continue;
            q = predict(link ? 1.1 : 1, nic ? 1.1 : 1, NULL, 1);
            near(q.step_time_s / p.step_time_s - 1, in[i].change, 1e-6);
            if (isnan(in[i].factor)) continue;
            assert_true((in[i].factor < 1) == (ratio[k] > 1));
            q = predict(link ? in[i].factor : 1, nic ? in[i].factor : 1, NULL,
                        1);
            near(q.step_time_s / p.step_time_s, ratio[k], 2e-3);
            checked++;
        }
    }
    assert_true(checked >= 2);
}

static void parameters_explain(void **state)
{
    (void)state;
    sc_sensitivity s[SC_SENSITIVITY_MAX];
    sc_prediction p = predict(1, 1, NULL, 1);
    uint32_t n = 0, checked = 0;
    assert_int_equal(sc_predict_sensitivity(&p, &f.a, s, &n, &f.err), SC_OK);
    assert_int_equal(n, SC_SENSITIVITY_MAX);
    for (uint32_t i = 0; i < n; i++) {
        double factor = NAN;
        const sc_param_info *info = &sc_params[sc_param_find(s[i].parameter)];
        assert_int_equal(
            sc_predict_what_if(&p, s[i].parameter, 1.02, &f.a, &factor, &f.err),
            SC_OK);
        if (isnan(factor)) continue;
        double v = p.run.cost->p[sc_param_find(s[i].parameter)] * factor;
        assert_true(v >= info->lo && v <= info->hi);
        sc_prediction q = predict(1, 1, s[i].parameter, factor);
        near(q.step_time_s / p.step_time_s, 1.02, 2e-3);
        checked++;
    }
    assert_true(checked >= 3);
}

static void nothing_explains(void **state)
{
    (void)state;
    sc_prediction p = predict(1, 1, NULL, 1);
    double factor = 0;
    assert_int_equal(
        sc_predict_what_if(&p, "NIC bandwidth", 0.01, &f.a, &factor, &f.err),
        SC_OK);
    assert_true(isnan(factor));
    assert_int_equal(
        sc_predict_what_if(&p, "no such", 1.1, &f.a, &factor, &f.err), SC_OK);
    assert_true(isnan(factor));
    assert_int_equal(
        sc_predict_what_if(&p, "device peak", 1, &f.a, &factor, &f.err), SC_OK);
    near(factor, 1, 1e-2);
}

/* Of a network, whose step knows links that are shared. */
static sc_prediction network(const char *name, double by)
{
    sc_inputs in;
    sc_job job;
    sc_prediction p;
    sc_job_init(&job);
    job.model = "resnet50";
    job.cluster = "dgx-h100:2";
    job.gbs = 512;
    job.mbs = 32;
    job.brief = true;
    assert_int_equal(sc_predict_load(&job, &f.a, &in, &f.err), SC_OK);
    if (name) in.cost->p[sc_param_find(name)] *= by;
    assert_int_equal(
        sc_predict(&job, in.hw, in.model, in.sw, in.cost, &f.a, &p, &f.err),
        SC_OK);
    return p;
}

static void networks_explain(void **state)
{
    (void)state;
    sc_sensitivity s[SC_SENSITIVITY_MAX];
    sc_input in[SC_INPUTS_MAX];
    sc_prediction p = network(NULL, 1);
    uint32_t n = 0, checked = 0;
    assert_int_equal(sc_predict_sensitivity(&p, &f.a, s, &n, &f.err), SC_OK);
    assert_int_equal(n, SC_SENSITIVITY_MAX);
    for (uint32_t i = 0; i < n; i++) {
        double factor = NAN;
        sc_prediction q = network(s[i].parameter, 1.1);
        near(q.step_time_s / p.step_time_s - 1, s[i].change, 2e-3);
        assert_int_equal(
            sc_predict_what_if(&p, s[i].parameter, 1.02, &f.a, &factor, &f.err),
            SC_OK);
        if (isnan(factor)) continue;
        q = network(s[i].parameter, factor);
        near(q.step_time_s / p.step_time_s, 1.02, 3e-3);
        checked++;
    }
    assert_true(checked >= 3);
    assert_int_equal(sc_predict_inputs(&p, 1.05, &f.a, in, &n, &f.err), SC_OK);
    assert_true(n >= 2);
    for (uint32_t i = 0; i < n; i++) assert_true(in[i].change < 0);
}

/* A parameter moved is the same as a prediction with it moved, also where gamma
 * says how overlap slows kernels. */
static void as_predicted_anew(void **state)
{
    (void)state;
    static const double gammas[] = {0, 3};
    for (size_t k = 0; k < SC_COUNT(gammas); k++) {
        sc_sensitivity s[SC_SENSITIVITY_MAX];
        uint32_t n, compared = 0;
        f.gamma = gammas[k];
        sc_prediction p = predict(1, 1, NULL, 1);
        assert_int_equal(sc_predict_sensitivity(&p, &f.a, s, &n, &f.err),
                         SC_OK);
        for (uint32_t i = 0; i < n; i++) {
            int which = sc_param_find(s[i].parameter);
            assert_true(which >= 0);
            double value = p.run.cost->p[which];
            if (value * 1.1 > sc_params[which].hi) continue;
            sc_prediction moved = predict(1, 1, s[i].parameter, 1.1);
            near(s[i].change, moved.step_time_s / p.step_time_s - 1, 1e-9);
            compared++;
        }
        assert_true(compared > 0);
    }
    f.gamma = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(inputs_explain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters_explain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_explains, set_up, tear_down),
        cmocka_unit_test_setup_teardown(networks_explain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(as_predicted_anew, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
