/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of a trace as kernels: shapes are read, and what an operator computes
 * follows from its name and inputs. */
#include "fixture.h"

/* Private to the module: the test looks at what it makes of texts. */
#include "replay/shapes.h"

static sc_kernel kernel_of(const char *name, const char *dims,
                           const char *types)
{
    shape_inputs in;
    sc_kernel k;
    shape_read(dims, &in);
    if (!shape_kernel(name, &in, shape_precision(types), "", &k))
        fail_msg("%s has no kernel", name);
    return k;
}

static void texts(void **state)
{
    (void)state;
    shape_inputs in;
    shape_read("[[768], [788, 768], [], [[4, 1], [4, 196]], []]", &in);
    assert_int_equal(in.n, 6);
    assert_int_equal(in.tensor[1].n_dims, 2);
    assert_int_equal(in.tensor[1].dim[1], 768);
    assert_int_equal(in.tensor[2].n_dims, 0);
    assert_int_equal(in.tensor[4].dim[1], 196);
    shape_read("", &in);
    assert_int_equal(in.n, 0);
    shape_read("[", &in);
    assert_int_equal(in.n, 0);
    shape_read("[[1,2,3,4,5,6,7,8,9,10]]", &in);
    assert_int_equal(in.tensor[0].n_dims, SHAPE_DIMS);
    shape_read("[[99999999999999999999]]", &in);
    assert_true(in.tensor[0].dim[0] > UINT32_MAX);
    assert_int_equal(shape_precision("[\"c10::BFloat16\", \"float\"]"),
                     SC_BF16);
    assert_int_equal(shape_precision("[\"float\", \"c10::Half\"]"), SC_FP32);
    assert_int_equal(shape_precision("[]"), SC_FP32);
}

static sc_kernel part_of(const char *kernel, const char *name, const char *dims)
{
    shape_inputs in;
    sc_kernel k = kernel_of(name, dims, "[\"float\"]");
    shape_read(dims, &in);
    shape_part(kernel, &in, &k);
    return k;
}

/* Of several kernels of an operator, only the main one is priced as it. */
static void parts(void **state)
{
    (void)state;
    const char *mm = "[[64, 512], [512, 32]]";
    assert_int_equal(part_of("ampere_sgemm_64x64_nn", "aten::mm", mm).kind,
                     SC_K_GEMM);
    sc_kernel k = part_of("void splitKreduce_kernel<float>", "aten::mm", mm);
    assert_int_equal(k.kind, SC_K_ELEMENT);
    assert_true(k.bytes == 4 * 4 * 64 * 32);
    const char *soft = "[[8, 128], [8, 128], [], []]";
    k = part_of("void vectorized_elementwise_kernel<4, Mul>",
                "aten::_softmax_backward_data", soft);
    assert_true(k.kind == SC_K_ELEMENT && k.bytes == 3 * 4 * 8 * 128);
    k = part_of("softmax_warp_backward", "aten::_softmax_backward_data", soft);
    assert_true(k.kind == SC_K_SOFTMAX && k.backward);
    k = part_of("void at::native::elementwise_kernel<128, 2, Copy>",
                "aten::copy_", "[[8, 128], [8, 128]]");
    assert_int_equal(k.m, 8 * 128);
    k = part_of("batch_norm_collect_statistics_kernel", "aten::batch_norm",
                "[[2, 8, 4, 4], [8], [8]]");
    assert_true(k.kind == SC_K_ELEMENT && k.bytes == 4 * 2 * 8 * 16);
    assert_int_equal(
        shape_kernel_precision("cutlass_80_tensorop_s1688gemm_64", SC_FP32),
        SC_TF32);
    assert_int_equal(shape_kernel_precision("ampere_sgemm_64x64", SC_FP32),
                     SC_FP32);
    assert_int_equal(
        shape_kernel_precision("cutlass_tensorop_bf16_s1688gemm", SC_BF16),
        SC_BF16);
}

/* A backward pass has the gradient first; without the input, the weight is the
 * second, and without the weight nothing says the window. */
static void backward_convolutions(void **state)
{
    (void)state;
    shape_inputs in;
    sc_kernel k =
        kernel_of("aten::cudnn_convolution_backward_input",
                  "[[], [32, 64, 14, 14], [64, 16, 3, 3]]", "[\"float\"]");
    assert_int_equal(k.m, 32 * 14 * 14);
    assert_int_equal(k.n, 64);
    assert_int_equal(k.k, 16 * 9);
    shape_read("[[], [32, 64, 14, 14], [32, 16, 14, 14]]", &in);
    assert_false(shape_kernel("aten::cudnn_convolution_backward_weight", &in,
                              SC_FP32, "", &k));
}

static void operators(void **state)
{
    (void)state;
    sc_kernel k = kernel_of("aten::addmm", "[[768], [788, 64], [64, 768]]",
                            "[\"c10::Half\"]");
    assert_int_equal(k.kind, SC_K_GEMM);
    assert_int_equal(k.m, 788);
    assert_int_equal(k.n, 768);
    assert_int_equal(k.k, 64);
    assert_int_equal(k.precision, SC_FP16);
    k = kernel_of("aten::bmm", "[[12, 8, 64], [12, 64, 32]]", "[\"float\"]");
    assert_int_equal(k.batch, 12);
    assert_int_equal(k.n, 32);
    k = kernel_of("aten::linear", "[[2, 5, 64], [128, 64], [128]]",
                  "[\"float\"]");
    assert_int_equal(k.m, 10);
    assert_int_equal(k.n, 128);
    k = kernel_of("aten::_flash_attention_forward",
                  "[[4, 197, 12, 64], [4, 197, 12, 64]]", "[\"c10::Half\"]");
    assert_int_equal(k.kind, SC_K_FLASH);
    assert_int_equal(k.batch, 48);
    assert_int_equal(k.m, 197);
    assert_false(k.backward);
    k = kernel_of("aten::_softmax_backward_data", "[[4, 7], [4, 7], [], []]",
                  "[\"float\"]");
    assert_int_equal(k.kind, SC_K_SOFTMAX);
    assert_int_equal(k.k, 7);
    assert_true(k.backward);
    k = kernel_of("aten::embedding", "[[1000, 64], [8, 16]]", "[\"float\"]");
    assert_int_equal(k.kind, SC_K_GATHER);
    assert_int_equal(k.m, 128);
    k = kernel_of("aten::add", "[[10, 10], [10, 10], []]", "[\"float\"]");
    assert_int_equal(k.kind, SC_K_ELEMENT);
    assert_true(k.bytes == 1200);
    /* an operator whose inputs are not what its name says still moves them */
    k = kernel_of("aten::bmm", "[[5]]", "[\"float\"]");
    assert_int_equal(k.kind, SC_K_ELEMENT);
    shape_inputs none;
    shape_read("[[], []]", &none);
    assert_false(shape_kernel("aten::add", &none, SC_FP32, "", &k));
}

static uint64_t conv_m(const char *name, const char *dims, const char *concrete)
{
    shape_inputs in;
    sc_kernel k;
    shape_read(dims, &in);
    assert_true(shape_kernel(name, &in, SC_FP32, concrete, &k));
    assert_int_equal(k.kind, SC_K_CONV);
    return k.m;
}

/* Strides and paddings are scalar inputs, in another order for libraries. */
static void windows(void **state)
{
    static const char dims[] = "[[4, 3, 224, 224], [64, 3, 7, 7]]";
    (void)state;
    assert_int_equal(conv_m("aten::convolution", dims,
                            "[\"\", \"\", \"\", \"[2, 2]\", \"[3, 3]\", "
                            "\"[1, 1]\", \"False\"]"),
                     4 * 112 * 112);
    assert_int_equal(conv_m("aten::cudnn_convolution", dims,
                            "[\"\", \"\", \"[3, 3]\", \"[2, 2]\", "
                            "\"[1, 1]\", \"1\"]"),
                     4 * 112 * 112);
    assert_int_equal(conv_m("aten::convolution", dims, "[\"\", \"[2, 2\"]"),
                     4 * 224 * 224);
    assert_int_equal(conv_m("aten::convolution_backward",
                            "[[4, 64, 112, 112], [4, 3, 224, 224], [64, 3, 7, "
                            "7]]",
                            ""),
                     4 * 112 * 112);
    assert_int_equal(shape_element_bytes("Float"), 4);
    assert_int_equal(shape_element_bytes("BFloat16"), 2);
    assert_int_equal(shape_element_bytes("[\"long int\", \"float\"]"), 8);
    assert_int_equal(shape_element_bytes("Byte"), 1);
}

/* Every kind of operator that real traces have costs something. */
static void priced(void **state)
{
    (void)state;
    sc_cost c;
    const sc_device *a = device("h100-sxm"), *b = device("mi300x");
    assert_int_equal(sc_cost_builtin(&arena, &c, &err), SC_OK);
    assert_int_equal(sc_cost_alone(&arena, &c, &err), SC_OK);
    static const char *const name[] = {"aten::mm",
                                       "aten::bmm",
                                       "aten::convolution_backward",
                                       "aten::softmax",
                                       "aten::layer_norm",
                                       "aten::native_batch_norm",
                                       "aten::sum",
                                       "aten::copy_",
                                       "aten::embedding",
                                       "aten::_fused_adam_",
                                       "aten::_flash_attention_backward"};
    for (size_t i = 0; i < SC_COUNT(name); i++) {
        sc_kernel k = kernel_of(
            name[i], "[[2, 64, 8, 32], [2, 64, 8, 32], [2, 64, 8, 32]]",
            "[\"c10::BFloat16\"]");
        double x = sc_kernel_alone(&c, a, &k).seconds;
        double y = sc_kernel_alone(&c, b, &k).seconds;
        if (!(x > 1e-7 && x < 1 && y > 1e-7 && y < 1))
            fail_msg("%s takes %g and %g s", name[i], x, y);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts),     TEST(parts),   TEST(backward_convolutions),
        TEST(operators), TEST(windows), TEST(priced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
