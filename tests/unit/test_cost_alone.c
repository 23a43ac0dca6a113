/* SPDX-License-Identifier: Apache-2.0 */
/* Times of single kernels: every kind has one, more work never takes less, and
 * steps do not depend on them. */
#include "cost/cost_alone.h"
#include "fixture.h"

#include <math.h>
#include <string.h>

static sc_cost cost;

static const char *const devices[] = {
    "v100-sxm2-32g", "a100-pcie-40g", "h100-sxm", "b200", "l4", "mi300x", "p4",
    "tpu-v4",        "gaudi3"};

static int start(void **state)
{
    if (setup(state) != 0) return -1;
    if (sc_cost_builtin(&arena, &cost, &err) != SC_OK) return -1;
    return sc_cost_alone(&arena, &cost, &err) == SC_OK ? 0 : -1;
}

static double alone(const char *name, sc_kernel k)
{
    sc_price p = sc_kernel_alone(&cost, device(name), &k);
    assert_true(isfinite(p.seconds) && p.seconds > 0);
    assert_non_null(p.limit);
    return p.seconds;
}

/* One kernel of each kind, in `times` the size. */
static uint32_t samples(uint64_t times, sc_precision p, sc_kernel *out)
{
    static const sc_kernel_kind rows[] = {
        SC_K_SOFTMAX, SC_K_NORM, SC_K_RMS_NORM, SC_K_BATCH_NORM,
        SC_K_ROPE,    SC_K_GATE, SC_K_DROPOUT,  SC_K_TRANSPOSE};
    static const sc_kernel_kind moves[] = {SC_K_ELEMENT, SC_K_REDUCE,
                                           SC_K_OPTIMIZER};
    uint64_t m = 256 * times;
    uint32_t n = 0;
    for (size_t i = 0; i < SC_COUNT(rows); i++)
        for (int back = 0; back < 2; back++)
            out[n++] = sc_kernel_rows(rows[i], p, m, 1000, back == 1);
    for (size_t i = 0; i < SC_COUNT(moves); i++)
        out[n++] = sc_kernel_moves(moves[i], p, 4e5 * (double)times);
    out[n++] = sc_kernel_gather(p, m, m / 2, 64, m / 4, false);
    out[n++] = sc_kernel_gather(p, m, m / 2, 64, m / 4, true);
    out[n++] = sc_kernel_product(p, 1, m, 768, 3072);
    out[n++] = sc_kernel_product(p, 12 * times, 128, 128, 64);
    out[n] = sc_kernel_product(p, 1, m, 64, 576);
    out[n++].kind = SC_K_CONV;
    out[n] = sc_kernel_product(p, 16, m, m, 64);
    out[n++].kind = SC_K_FLASH;
    return n;
}

#define SAMPLES 32

static void every_kind_has_a_time(void **state)
{
    (void)state;
    static const sc_precision precision[] = {SC_FP32, SC_FP16, SC_BF16};
    for (size_t d = 0; d < SC_COUNT(devices); d++)
        for (size_t p = 0; p < SC_COUNT(precision); p++) {
            double before[SAMPLES] = {0};
            for (uint64_t times = 1; times <= 256; times *= 4) {
                sc_kernel k[SAMPLES];
                uint32_t n = samples(times, precision[p], k);
                for (uint32_t i = 0; i < n; i++) {
                    double s = alone(devices[d], k[i]);
                    if (s < 0.97 * before[i])
                        fail_msg("%s: kernel %u of kind %d: %g s after %g s",
                                 devices[d], i, (int)k[i].kind, s, before[i]);
                    before[i] = s;
                }
            }
        }
}

/* Nothing is faster than its FLOP at the peak, and large element-wise kernels
 * run at 50 to 100 % of the bandwidth. */
static void physical_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(devices); i++) {
        const sc_device *d = device(devices[i]);
        double bytes = 8e9;
        double s =
            alone(devices[i], sc_kernel_moves(SC_K_ELEMENT, SC_FP32, bytes));
        double part = bytes / s / d->mem_bw;
        if (!(part > 0.5 && part < 1.0))
            fail_msg("%s: %.2f of the bandwidth", devices[i], part);
        s = alone(devices[i], sc_kernel_product(SC_FP32, 1, 8192, 8192, 8192));
        double peak = fmax(d->peak[SC_FP32], d->vector_flops);
        assert_true(s >= 2 * pow(8192, 3) / peak * (1 - 1e-9));
    }
}

static void amounts(void **state)
{
    (void)state;
    sc_kernel k = sc_kernel_rows(SC_K_SOFTMAX, SC_FP32, 10, 100, false);
    assert_true(sc_kernel_amount(&k).bytes == 2 * 4 * 1000);
    k.backward = true;
    assert_true(sc_kernel_amount(&k).bytes == 3 * 4 * 1000);
    k = sc_kernel_rows(SC_K_DROPOUT, SC_BF16, 10, 100, false);
    assert_true(sc_kernel_amount(&k).bytes == 2 * 2 * 1000 + 1000);
    k = sc_kernel_rows(SC_K_BATCH_NORM, SC_FP16, 10, 100, true);
    assert_true(sc_kernel_amount(&k).bytes == 5 * 2 * 1000);
    /* 8 lookups of 5 rows into 2 sums */
    k = sc_kernel_gather(SC_FP32, 8, 5, 16, 2, false);
    assert_true(sc_kernel_amount(&k).bytes == (5 + 2) * 64 + 64);
    k = sc_kernel_gather(SC_FP32, 8, 5, 16, 2, true);
    assert_true(sc_kernel_amount(&k).bytes == (2 * 5 + 2) * 64 + 64);
    k = sc_kernel_gather(SC_FP32, 8, 0, 16, 2, false); /* not counted */
    assert_true(sc_kernel_amount(&k).bytes == (8 + 2) * 64 + 64);
}

static void different_rows(void **state)
{
    (void)state;
    assert_int_equal(sc_lookup_different(1, 100), 1);
    assert_int_equal(sc_lookup_different(1e9, 10), 10);
    assert_int_equal(sc_lookup_different(100, 1e6), 100);
    /* 1000 (1 - (1 - 1/1000)^1000) */
    assert_int_equal(sc_lookup_different(1000, 1000), 632);
    assert_int_equal(sc_lookup_different(0, 5), 0);
}

/* A level of the device scales its kernels and no others. */
static void levels(void **state)
{
    (void)state;
    sc_kernel k = sc_kernel_product(SC_FP32, 1, 4096, 4096, 4096);
    sc_kernel b = sc_kernel_product(SC_FP32, 64, 512, 512, 64);
    double one = alone("v100-pcie-32g", k), many = alone("v100-pcie-32g", b);
    double other = alone("t4", k);
    static const char text[] =
        "parameters: {}\nkernel_levels: [{device: v100-pcie-32g, kind: "
        "gemm-fp32, factor: 1.5}]\n";
    sc_cost_read(text, strlen(text), "p.yml", &arena, &cost, &err);
    no_error();
    assert_true(fabs(alone("v100-pcie-32g", k) / one - 1.5) < 1e-9);
    assert_true(fabs(alone("v100-pcie-32g", b) / many - 1.5) < 1e-9);
    assert_true(alone("t4", k) == other);
}

/* Instructions limit what addresses its elements one by one, so 16 bits save
 * little; boards with less power for their peak have slower products. */
static void instructions_and_power(void **state)
{
    (void)state;
    uint64_t n = 1 << 26;
    sc_kernel half = sc_kernel_moves(SC_K_ELEMENT, SC_BF16, 4.0 * (double)n);
    sc_kernel one = sc_kernel_scattered(SC_BF16, 4.0 * (double)n, n);
    sc_kernel wide = sc_kernel_scattered(SC_FP32, 8.0 * (double)n, n);
    double plain = alone("h100-sxm", half), each = alone("h100-sxm", one);
    assert_true(each > 1.2 * plain);
    assert_true(alone("h100-sxm", wide) < 1.8 * each);
    /* a depth of 4,096 is whole, one of 4,095 is not */
    sc_kernel whole = sc_kernel_product(SC_FP32, 1, 4096, 4096, 4096);
    sc_kernel odd = sc_kernel_product(SC_FP32, 1, 4096, 4096, 4095);
    assert_true(alone("p100-pcie", whole) < alone("p100-pcie", odd));
    double peak = 2 * pow(4096, 3) / alone("a100-pcie-80g", whole);
    assert_true(peak > 1.03 * 2 * pow(4096, 3) / alone("a100-pcie-40g", whole));
}

/* A device that was not measured has the form of one that is like it. */
static void nearest(void **state)
{
    (void)state;
    static const char *const pair[][2] = {{"a100-pcie-80g", "a100-pcie-40g"},
                                          {"v100-sxm2-16g", "v100-pcie-32g"},
                                          {"h100-sxm", "a100-pcie-40g"}};
    for (size_t i = 0; i < SC_COUNT(pair); i++)
        assert_ptr_equal(
            sc_alone_form(&cost, device(pair[i][0]), SC_FORM_GEMM_FP32),
            sc_alone_form(&cost, device(pair[i][1]), SC_FORM_GEMM_FP32));
}

/* Prices of steps and their hash have no part of these forms. */
static void steps_do_not_depend(void **state)
{
    (void)state;
    sc_cost plain = cost;
    plain.alone = NULL;
    assert_true(sc_cost_hash(&plain) == sc_cost_hash(&cost));
    for (size_t d = 0; d < SC_COUNT(devices); d++) {
        sc_kernel k[SAMPLES];
        uint32_t n = samples(16, SC_FP32, k);
        for (uint32_t i = 0; i < n; i++) {
            sc_price x = sc_cost_kernel(&cost, device(devices[d]), &k[i]);
            sc_price y = sc_cost_kernel(&plain, device(devices[d]), &k[i]);
            assert_true(x.seconds == y.seconds);
        }
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, start, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_has_a_time),
        TEST(physical_bounds),
        TEST(amounts),
        TEST(different_rows),
        TEST(levels),
        TEST(instructions_and_power),
        TEST(nearest),
        TEST(steps_do_not_depend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
