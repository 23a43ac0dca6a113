/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with fewer multiplications: what they execute and move, where
 * they are taken, and networks against published runs in fp32. */
#include "fixture.h"
#include "model/zoo.h"
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>

static sc_price price(const char *name, sc_kernel k)
{
    sc_cost c;
    sc_cost_centres(&c);
    return sc_cost_kernel(&c, device(name), &k);
}

/* 64 samples of 56 x 56 positions, 64 channels to 64, window 3 x 3. */
static sc_kernel conv(sc_precision p, uint8_t side)
{
    return (sc_kernel){.kind = SC_K_CONV,
                       .precision = p,
                       .batch = 1,
                       .m = 64 * 56 * 56,
                       .n = 64,
                       .k = 9 * 64,
                       .bytes = 4.0 * (2 * 64 * 56 * 56 * 64 + 9 * 64 * 64),
                       .window = {.side = side, .rows = 56, .cols = 56}};
}

/* 256 channels of 14 x 14: tiles of 4 are (4 x 4) for 14 / 4 = 3.5. */
static void executes_what_is_left(void **state)
{
    (void)state;
    sc_kernel k = conv(SC_FP32, 3);
    sc_price direct = price("p100-pcie", conv(SC_FP32, 0));
    sc_price fast = price("p100-pcie", k);
    assert_true(direct.flops == 2.0 * 64 * 3136 * 64 * 576);
    /* 16 products of 28 x 28 tiles, or 36 of 14 x 14. */
    double two = 2.0 * 16 * 64 * 784 * 64 * 64;
    double four = 2.0 * 36 * 64 * 196 * 64 * 64;
    assert_true(two == direct.flops / 2.25 && four == direct.flops / 4);
    assert_true(fast.flops == two || fast.flops == four);
    assert_true(fast.seconds < direct.seconds);
    assert_true(fast.seconds >=
                fast.flops / device("p100-pcie")->peak[SC_FP32]);
    k.m = 64 * 14 * 14;
    k.n = 256;
    k.k = 9 * 256;
    k.bytes = 4.0 * (2 * 64 * 14 * 14 * 256 + 9 * 256 * 256);
    k.window.rows = k.window.cols = 14;
    fast = price("p100-pcie", k);
    assert_true(fast.flops == 2.0 * 36 * 64 * 16 * 256 * 256);
    /* x and y once in both forms, 36 / 9 of the window and the tiles. */
    double product = 4.0 * 36 * (2 * 64 * 16 * 256 + 256 * 256);
    double moved = k.bytes + 4.0 * 36 * (256 * 256 + 64 * 16 * 512);
    assert_true(fabs(fast.bytes / (product + moved) - 1) < 1e-12);
}

/* The gradient of weights has only the kernels with transforms apart. */
static void gradient_of_weights(void **state)
{
    (void)state;
    sc_kernel k = conv(SC_FP32, 3);
    k.k = k.m;
    k.m = 64;
    k.n = 9 * 64;
    k.window.weights = true;
    double flops = price("p100-pcie", k).flops;
    assert_true(flops == 2.0 * 36 * 64 * 196 * 64 * 64 ||
                flops == 2.0 * 64 * 3136 * 64 * 576);
}

static void where_there_are_no_matrix_units(void **state)
{
    (void)state;

    static const struct {
        const char *device;
        sc_precision precision;
        bool fewer;
    } rows[] = {{"p100-sxm2", SC_FP32, true},
                {"p100-sxm2", SC_FP16, true},
                {"gtx-1080-ti", SC_FP32, true},
                {"v100-sxm2-32g", SC_FP32, true},
                {"t4", SC_FP32, true},
                {"v100-sxm2-32g", SC_FP16, false},
                {"a100-sxm-80g", SC_TF32, false},
                {"a100-sxm-80g", SC_BF16, false},
                {"h100-sxm", SC_FP16, false},
                {"mi250x", SC_FP32, false},
                {"tpu-v4", SC_FP32, false}};

    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        sc_price with = price(rows[i].device, conv(rows[i].precision, 3));
        sc_price none = price(rows[i].device, conv(rows[i].precision, 0));
        assert_true(rows[i].fewer == (with.flops < none.flops));
        assert_true(with.seconds <= none.seconds);
    }
    /* A window of 7 has none. */
    assert_true(price("p100-pcie", conv(SC_FP32, 7)).flops ==
                price("p100-pcie", conv(SC_FP32, 0)).flops);
}

static const sc_net *vgg16(void)
{
    static const uint32_t convs[] = {2, 2, 3, 3, 3},
                          width[] = {64, 128, 256, 512, 512};
    static const build_window window = {.k = 3,
                                        .stride = 1,
                                        .pad = 1,
                                        .bias = true},
                              pool = {.k = 2, .stride = 2};
    const sc_net *out = NULL;
    char name[16];
    unsigned n = 0;
    net_builder b;
    build_init(&b, &arena, "vgg16", "image");
    net_value x = build_image(&b, 3, 2, 224);
    for (size_t s = 0; s < SC_COUNT(convs); s++) {
        for (uint32_t i = 0; i < convs[s]; i++) {
            snprintf(name, sizeof name, "conv%u", n++);
            x = build_conv(&b, name, x, width[s], window);
            snprintf(name, sizeof name, "relu%u", n++);
            x = build_act(&b, name, x, "relu");
        }
        snprintf(name, sizeof name, "pool%u", n++);
        x = build_pool(&b, name, x, pool);
    }
    x = build_flatten(&b, "flatten", x);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "fc%u", n++);
        x = build_linear(&b, name, x, 4096, true);
        snprintf(name, sizeof name, "act%u", n++);
        x = build_act(&b, name, x, "relu");
    }
    zoo_class_loss(&b, build_linear(&b, "fc", x, 1000, true));
    assert_int_equal(build_finish(&b, &out, &err), SC_OK);
    return out;
}

/* images/s of one GPU */
static double rate(const char *model, const sc_net *g, int64_t batch)
{
    sc_inputs in;
    sc_job job;
    sc_prediction p = {0};
    sc_job_init(&job);
    job.model = model;
    job.cluster = "p100-sxm2:1";
    job.precision = SC_FP32;
    job.mbs = job.gbs = batch;
    job.brief = true;
    (void)sc_predict_load(&job, &arena, &in, &err);
    no_error();
    sc_model own = *in.model;
    if (g) own.net = g;
    (void)sc_predict(&job, in.hw, &own, in.sw, in.cost, &arena, &p, &err);
    no_error();
    return (double)batch / p.step_time_s;
}

/* TensorFlow's benchmarks (tensorflow/docs, performance/benchmarks.md, 2017):
 * synthetic data, fp32, one P100 of a DGX-1. */
static void published_runs(void **state)
{
    (void)state;
    double resnet = rate("resnet50", NULL, 64) / 219;
    double inception = rate("inception-v3", NULL, 64) / 142;
    double vgg = rate("vgg19", vgg16(), 64) / 154;
    double alexnet = rate("alexnet", NULL, 512) / 2987;
    print_message("predicted over published: ResNet-50 %.2f, Inception v3 "
                  "%.2f, VGG16 %.2f, AlexNet %.2f\n",
                  resnet, inception, vgg, alexnet);
    assert_true(resnet > 0.8 && resnet < 1.2);
    /* its framework of 2017 reads and writes more between its small windows */
    assert_true(inception > 0.8 && inception < 1.36);
    assert_true(vgg > 0.8 && vgg < 1.2);
    assert_true(alexnet > 0.8 && alexnet < 1.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(executes_what_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(gradient_of_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(where_there_are_no_matrix_units, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(published_runs, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
