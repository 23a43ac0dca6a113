/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of kernels: bounds, growth, launches, alignment. */
#include "cost/cost.h"
#include "prediction.h"

#include <math.h>
#include <string.h>

static const sc_device *gpu;

static const char *const devices[] = {"a100-sxm-80g", "h100-sxm",
                                      "v100-sxm2-32g", "t4"};

static void use(const char *device)
{
    assert_int_equal(sc_device_find(device, &f.a, &gpu, &f.err), SC_OK);
}

static sc_kernel gemm(uint64_t m, uint64_t n, uint64_t k)
{
    return (sc_kernel){.kind = SC_K_GEMM,
                       .precision = SC_FP16,
                       .batch = 1,
                       .m = m,
                       .n = n,
                       .k = k};
}

static sc_price price(sc_kernel k)
{
    return sc_cost_kernel(&f.cost, gpu, &k);
}

static double seconds(sc_kernel k)
{
    return price(k).seconds;
}

/* Of a product, without a fit. */
static double start_up(void)
{
    return sc_form_of(NULL, SC_FIT_AMPERE, SC_FORM_GEMM)->c.start;
}

/* Neither faster than the units can multiply nor than memory can deliver. */
static void gemm_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(devices); i++) {
        use(devices[i]);
        for (uint64_t m = 1; m <= 65536; m *= 4)
            for (uint64_t n = 8; n <= 65536; n *= 8)
                for (uint64_t k = 8; k <= 32768; k *= 16)
                    for (uint64_t b = 1; b <= 64; b *= 64) {
                        sc_kernel g = gemm(m, n, k);
                        g.batch = b;
                        sc_price p = price(g);
                        double bytes =
                            2.0 * (double)(b * (m * k + n * k + m * n));
                        assert_true(p.flops ==
                                    2.0 * (double)(b * m * n) * (double)k);
                        assert_true(p.bytes >= bytes);
                        assert_true(p.seconds >= p.flops / gpu->peak[SC_FP16]);
                        assert_true(p.seconds >= bytes / gpu->mem_bw);
                        assert_true(p.seconds >= start_up());
                    }
    }
}

static void gemm_grows(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(devices); i++) {
        use(devices[i]);
        for (uint64_t m = 8; m <= 16384; m *= 2)
            for (uint64_t n = 8; n <= 16384; n *= 2)
                for (uint64_t k = 8; k <= 16384; k *= 4)
                    for (uint64_t b = 1; b <= 16; b *= 16) {
                        sc_kernel one = gemm(m, n, k), two;
                        one.batch = b;
                        double t = seconds(one);
                        two = one, two.m *= 2;
                        assert_true(seconds(two) >= t);
                        two = one, two.n *= 2;
                        assert_true(seconds(two) >= t);
                        two = one, two.k *= 2;
                        assert_true(seconds(two) >= t);
                    }
    }
}

/* A product that fills the device runs at the rate of large tiles and of
 * training. */
static void large_gemm_is_efficient(void **state)
{
    (void)state;
    use("a100-sxm-80g");
    sc_price p = price(gemm(16384, 16384, 16384));
    double share = p.flops / p.seconds / gpu->peak[SC_FP16];
    double rate = f.cost.p[SC_P_SUSTAINED_AMPERE] *
                  sc_form_of(NULL, SC_FIT_AMPERE, SC_FORM_GEMM)->c.rate[0];
    assert_true(share <= rate);
    assert_true(share > 0.95 * rate);
    assert_string_equal(p.limit, "compute");
    /* a product of few rows reads its weight: bandwidth, not units */
    p = price(gemm(8, 16384, 16384));
    assert_string_equal(p.limit, "memory");
    double read = 2.0 * 16384 * 16384 / gpu->mem_bw;
    assert_true(p.seconds > read && p.seconds < 2 * read);
}

/* One tile more than a wave holds costs another wave. */
static void waves(void **state)
{
    (void)state;
    use("a100-sxm-80g"); /* 108 units */
    double full = seconds(gemm(256 * 108, 128, 8192));
    double less = seconds(gemm(256 * 107 + 1, 128, 8192));
    double more = seconds(gemm(256 * 108 + 8, 128, 8192));
    assert_true(fabs(less - full) < 0.01 * full);
    assert_true(more > 1.05 * full);
}

static void alignment(void **state)
{
    (void)state;
    use("a100-sxm-80g");
    double whole = seconds(gemm(8192, 51200, 4096));
    double four = seconds(gemm(8192, 51196, 4096));
    double two = seconds(gemm(8192, 51198, 4096));
    double odd = seconds(gemm(8192, 51197, 4096));
    assert_true(whole < four && four < two && two < odd);
    near_by(odd / whole, f.cost.p[SC_P_GEMM_ODD], 0.02);
    /* rows need no alignment, depth does; 32-bit operands neither */
    near_by(seconds(gemm(8191, 51200, 4096)), whole, 0.001);
    assert_true(seconds(gemm(8192, 51200, 4095)) > 2 * whole);
    sc_kernel wide = gemm(8192, 51197, 4096), even = gemm(8192, 51200, 4096);
    wide.precision = even.precision = SC_TF32;
    near_by(seconds(wide), seconds(even), 0.001);
}

static void launches(void **state)
{
    (void)state;
    use("h100-sxm");
    double floor_s = f.cost.p[SC_P_LAUNCH];
    sc_kernel m = {.kind = SC_K_MEMORY, .bytes = 1};
    near_by(seconds(m), floor_s, 1e-6);
    assert_string_equal(price(m).limit, "launch");
    m.launches = 7;
    near_by(seconds(m), 7 * floor_s, 1e-6);
    assert_int_equal(price(m).launches, 7);
    assert_true(seconds(gemm(1, 8, 8)) >= start_up());
}

static void memory_is_linear(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(devices); i++) {
        use(devices[i]);
        for (int kind = SC_K_MEMORY; kind <= SC_K_LOOKUP; kind++) {
            sc_kernel one = {.kind = (sc_kernel_kind)kind, .bytes = 1e9};
            sc_kernel three = one, none = one;
            three.bytes *= 3;
            none.bytes = 0;
            double zero = seconds(none);
            near_by(seconds(three) - zero, 3 * (seconds(one) - zero), 1e-9);
            assert_true(seconds(one) - zero >= 1e9 / gpu->mem_bw);
            near_by(seconds(one) - zero,
                    1e9 / (gpu->mem_bw * f.cost.p[SC_P_MEM_EFF]), 1e-9);
        }
    }
}

static sc_kernel flash(uint64_t bh, uint64_t s, bool backward)
{
    return (sc_kernel){.kind = SC_K_FLASH,
                       .precision = SC_BF16,
                       .attention = SC_ATTN_FLASH2,
                       .batch = bh,
                       .m = s,
                       .n = s,
                       .k = 128,
                       .causal = true,
                       .backward = backward};
}

/* Dao 2023: two products forward, five backward. */
static void fused_attention(void **state)
{
    (void)state;
    use("a100-sxm-80g");
    sc_price fwd = price(flash(64, 8192, false));
    sc_price bwd = price(flash(64, 8192, true));
    near_by(bwd.flops, 2.5 * fwd.flops, 1e-12);
    near_by(bwd.seconds, 2.5 * fwd.seconds / f.cost.p[SC_P_FLASH_BWD], 0.03);
    assert_true(fwd.seconds >= fwd.flops / gpu->peak[SC_BF16]);
    /* the causal mask leaves half of it, and blocks on the diagonal */
    sc_kernel all = flash(64, 8192, false);
    all.causal = false;
    near_by(price(all).flops, 4.0 * 64 * 8192 * 8192 * 128, 1e-12);
    assert_true(fwd.flops > 0.5 * price(all).flops);
    assert_true(fwd.flops < 0.51 * price(all).flops);
    /* quadratic in the sequence, linear in heads and samples */
    near_by(seconds(flash(64, 16384, false)), 4 * fwd.seconds, 0.03);
    near_by(seconds(flash(128, 8192, false)), 2 * fwd.seconds, 0.01);
}

/* Where the exponentials of a forward pass take longer than its products, the
 * backward pass with its five products and two exponentials of a score is
 * nearer to the rate of the products. */
static void backward_scores(void **state)
{
    (void)state;
    static const char *const by_sfu[] = {"b200", "b300", "h100-sxm"};
    double ratio[3];
    for (int i = 0; i < 3; i++) {
        use(by_sfu[i]);
        f.cost.burst = true;
        ratio[i] = seconds(flash(256, 16384, true)) /
                   seconds(flash(256, 16384, false)) /
                   (2.5 / f.cost.p[SC_P_FLASH_BWD]);
    }
    assert_true(ratio[0] < 0.92);
    assert_true(ratio[1] > ratio[0] && ratio[1] < 1.001);
    assert_true(ratio[2] > 0.97 && ratio[2] < 1.001);
}

/* Blackwell multiplies operands with a scale per 32 elements a little more
 * slowly; FP4 products of training programs are faster than the table's. */
static void scales(void **state)
{
    (void)state;
    use("b200");
    sc_kernel k = gemm(16384, 16384, 16384);
    k.precision = SC_FP8;
    double tensor = seconds(k);
    k.scaling = SC_SCALE_MX;
    near_by(seconds(k) * f.cost.p[SC_P_MXFP8], tensor, 0.01);
    k.precision = SC_FP4;
    double step = seconds(k);
    f.cost.p[SC_P_FP4_LIBRARY] = 1;
    assert_true(step > seconds(k) / 1.31 && step < seconds(k) / 1.2);
    use("h100-sxm");
    k.precision = SC_FP8;
    double hopper = seconds(k);
    k.scaling = SC_SCALE_TENSOR;
    near_by(seconds(k), hopper, 1e-12);
}

/* Tensors are cast one after the other. */
static void casts(void **state)
{
    (void)state;
    use("b200");
    sc_kernel k = {.kind = SC_K_QUANTIZE,
                   .precision = SC_FP8,
                   .batch = 1,
                   .m = 4096,
                   .n = 1,
                   .k = 4096};
    sc_price one = price(k);
    k.batch = 8;
    near_by(price(k).seconds, 8 * one.seconds, 1e-12);
    near_by(price(k).bytes, 8 * one.bytes, 1e-12);
    k.kind = SC_K_AMAX;
    near_by(price(k).bytes, 8 * 2.0 * 4096 * 4096, 1e-12);
}

static void generations(void **state)
{
    (void)state;
    sc_kernel g = gemm(16384, 16384, 8192), a = flash(64, 8192, false);
    use("v100-sxm2-32g");
    double g_v = seconds(g);
    use("a100-sxm-80g");
    double g_a = seconds(g), a_a = seconds(a);
    use("h100-sxm");
    double g_h = seconds(g), a_h = seconds(a);
    assert_true(g_v > g_a && g_a > g_h && a_a > a_h);
    sc_kernel old = a;
    old.attention = SC_ATTN_FLASH1;
    assert_true(seconds(old) > a_h);
    /* fp8 products are faster, never by more than the ratio of peaks */
    sc_kernel low = g;
    low.precision = SC_FP8;
    assert_true(seconds(low) < g_h);
    assert_true(seconds(low) > g_h * gpu->peak[SC_FP16] / gpu->peak[SC_FP8]);
}

/* A device without units for a precision runs the next wider one. */
static void missing_units(void **state)
{
    (void)state;
    use("v100-sxm2-32g");
    sc_kernel half = gemm(8192, 8192, 8192), brain = half, eight = half;
    brain.precision = SC_BF16;
    eight.precision = SC_FP8;
    near_by(seconds(brain), seconds(half), 1e-12);
    assert_true(seconds(eight) >= 0.5 * seconds(half));
    assert_true(isfinite(seconds(eight)));
}

static void explained(void **state)
{
    (void)state;
    use("a100-sxm-80g");
    sc_text t;
    sc_text_init(&t);
    sc_kernel k = gemm(8192, 50257, 768);
    k.name = "lm_head";
    sc_cost_explain_kernel(&f.cost, gpu, &k, &t);
    assert_non_null(strstr(t.buf, "lm_head"));
    assert_non_null(strstr(t.buf, "unaligned"));
    assert_non_null(strstr(t.buf, "8192 x 50257 x 768"));
    assert_null(strstr(t.buf, "nan"));
    /* a tiny product waits for its launch; scores in 16 bits are compared with
     * the peak of 16 bits, whatever the products around them have */
    use("h100-sxm");
    assert_string_equal(price(gemm(8, 64, 64)).limit, "launch");
    sc_kernel a = flash(64, 8192, false), low = a;
    low.precision = SC_FP8;
    sc_text_free(&t);
    sc_text_init(&t);
    sc_cost_explain_kernel(&f.cost, gpu, &a, &t);
    char *wide = sc_strdup(&f.a, strchr(t.buf, '%') - 6);
    assert_non_null(wide);
    sc_text_free(&t);
    sc_text_init(&t);
    sc_cost_explain_kernel(&f.cost, gpu, &low, &t);
    assert_string_equal(strchr(t.buf, '%') - 6, wide);
    sc_text_free(&t);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(gemm_bounds),
                                       TEST(gemm_grows),
                                       TEST(large_gemm_is_efficient),
                                       TEST(waves),
                                       TEST(alignment),
                                       TEST(launches),
                                       TEST(memory_is_linear),
                                       TEST(fused_attention),
                                       TEST(backward_scores),
                                       TEST(scales),
                                       TEST(casts),
                                       TEST(generations),
                                       TEST(missing_units),
                                       TEST(explained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
