/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of kernels: the physical models against values worked by hand, the
 * tables of corrections, and what replaces a missing form. */
#include "cost/cost.h"
#include "fixture.h"

#include <math.h>
#include <string.h>

static void near(double got, double want)
{
    if (!(fabs(got / want - 1) < 1e-9)) fail_msg("%.12g, not %.12g", got, want);
}

static const sc_form_device dev = {
    .units = 100, .flops = 1e15, .bandwidth = 1e12};

/* ---- products ---------------------------------------------------------------- */

/* 100 tiles of 256 x 128 on 100 units: one wave of 256 x 128 x 2 FLOP per unit
 * of depth at half of 1e13 FLOP/s. */
static void one_wave(void **state)
{
    (void)state;
    sc_form_constants c = {5e-6, 1, 4, 24, {0.5, 0.1, 0.1}};
    sc_form_use use = {
        .kind = SC_FORM_GEMM,
        .on = dev,
        .product = {.m = 1280, .n = 2560, .k = 1000, .batch = 1, .split = 1}};
    double depth = 65536 / 0.5e13;
    near(sc_form_physical(&c, &use), 5e-6 + 1024 * depth);
    /* one row more is another row of tiles: a second wave */
    use.product.m = 1281;
    near(sc_form_physical(&c, &use), 5e-6 + 2 * 1024 * depth);
    /* a batch of one has as many tiles as an equal part of the rows */
    use.product.m = 640;
    use.product.batch = 2;
    near(sc_form_physical(&c, &use), 5e-6 + 1024 * depth);
    /* a systolic array is filled and emptied instead */
    use.product.array = 128;
    near(sc_form_physical(&c, &use), 5e-6 + 1256 * depth);
}

/* A smaller tile at half of the rate wins if the large one leaves 15/16 of the
 * units idle. */
static void small_tiles(void **state)
{
    (void)state;
    sc_form_constants c = {0, 1, 4, 0, {0.8, 0.4, 0.4}};
    sc_form_use use = {
        .kind = SC_FORM_GEMM,
        .on = dev,
        .product = {.m = 256, .n = 1024, .k = 1000, .batch = 1, .split = 1}};
    near(sc_form_physical(&c, &use), 1000 * 64 * 64 * 2 / 0.4e13);
    c.rate[2] = 0.01; /* now 128 x 64, 32 tiles */
    near(sc_form_physical(&c, &use), 1000 * 128 * 64 * 2 / 0.4e13);
    c.rate[1] = 0.01; /* now 256 x 128, 8 tiles */
    near(sc_form_physical(&c, &use), 1000 * 256 * 128 * 2 / 0.8e13);
}

/* A deep product of one tile: four parts, whose sums are written in fp32 and
 * read again. */
static void split_sum(void **state)
{
    (void)state;
    sc_form_constants c = {0, 0.5, 4, 0, {0.5, 0.5, 0.5}};
    sc_form_use use = {
        .kind = SC_FORM_GEMM,
        .on = dev,
        .product = {.m = 64, .n = 64, .k = 80000, .batch = 1, .split = 4}};
    double tile = 64 * 64 * 2 / 0.5e13;
    double sums = 64 * 64 * (4 * 4 + 4) / 0.5e12;
    near(sc_form_physical(&c, &use), 20000 * tile + sums);
    use.product.split = 1;
    near(sc_form_physical(&c, &use), 80000 * tile);
    /* a shallow one is not split */
    use.product.split = 8;
    use.product.k = 10;
    near(sc_form_physical(&c, &use), 10 * tile);
}

static void blends_memory(void **state)
{
    (void)state;
    sc_form_constants c = {1e-6, 0.5, 1, 0, {0.5, 0.1, 0.1}};
    sc_form_use use = {.kind = SC_FORM_GEMM,
                       .on = dev,
                       .product = {.m = 1280,
                                   .n = 2560,
                                   .k = 1000,
                                   .batch = 1,
                                   .bytes = 1e7,
                                   .split = 1}};
    double tiles = 1000 * 65536 / 0.5e13, move = 1e7 / 0.5e12;
    near(sc_form_physical(&c, &use), 1e-6 + tiles + move);
    c.blend = 2;
    near(sc_form_physical(&c, &use), 1e-6 + hypot(tiles, move));
    c.blend = 50;
    use.product.bytes = 1e9;
    near(sc_form_physical(&c, &use), 1e-6 + 1e9 / 0.5e12);
}

/* ---- attention --------------------------------------------------------------- */

static sc_form_use attention(void)
{
    return (sc_form_use){.kind = SC_FORM_ATTENTION,
                         .on = {.units = 40, .flops = 1e15, .bandwidth = 1e12},
                         .attention = {.queries = 1024,
                                       .keys = 1024,
                                       .heads = 10,
                                       .size = 128,
                                       .values = 128,
                                       .exponentials = 1}};
}

/* 10 heads of 8 blocks of 128 queries on 40 units: each score costs 4 x 128
 * FLOP, and each block half a block of keys more. */
static void scores(void **state)
{
    (void)state;
    sc_form_constants c = {1e-6, 1, 4, 0.5, {0.5, 0, 1}};
    sc_form_use use = attention();
    double key = 4 * 10 * 1024 * 128 / 0.5e15; /* of all queries */
    near(sc_form_physical(&c, &use), 1e-6 + 1088 * key);
    /* half of the keys and half of the blocks on the diagonal */
    use.attention.causal = true;
    near(sc_form_physical(&c, &use), 1e-6 + (576 + 64) * key);
    /* a window of 128 keys touches two blocks; its prologue is longer */
    use.attention.band = 128;
    near(sc_form_physical(&c, &use), 1e-6 + (256 + 64 + 128) * key);
    use.attention.band = 1024; /* all keys: none */
    near(sc_form_physical(&c, &use), 1e-6 + (576 + 64) * key);
    /* two blocks for 40 units: the others wait */
    use = attention();
    use.attention.heads = 0.25;
    near(sc_form_physical(&c, &use), 1e-6 + 1088 * key / 2);
    /* 1 query is computed as a block of 128 */
    use = attention();
    use.attention.queries = 1;
    use.on.units = 10;
    near(sc_form_physical(&c, &use), 1e-6 + 1088 * key / 8);
}

/* Heads are padded to 32; products and exponentials overlap in part. */
static void heads(void **state)
{
    (void)state;
    sc_form_constants c = {1e-6, 1, 4, 0.5, {0.5, 0, 1}};
    sc_form_use use = attention();
    double key = 4 * 10 * 1024 / 0.5e15;
    use.attention.size = 96;
    use.attention.values = 64;
    near(sc_form_physical(&c, &use), 1e-6 + 1088 * key * 96);
    use = attention();
    c.rate[1] = 1; /* exponentials take as long as the products of 128 */
    double both = 128 * pow(2, 0.25);
    near(sc_form_physical(&c, &use), 1e-6 + 1088 * key * both);
    use.attention.exponentials = 0.5;
    both = 128 * pow(1 + 1.0 / 16, 0.25);
    near(sc_form_physical(&c, &use), 1e-6 + 1088 * key * both);
}

static void casts(void **state)
{
    (void)state;
    sc_form_constants c = {2e-6, 0.8, 4, 0, {1, 1, 1}};
    sc_form_use use = {.kind = SC_FORM_QUANTIZE, .on = dev, .bytes = 4e6};
    near(sc_form_physical(&c, &use), 2e-6 + 5e-6);
    use.kind = SC_FORM_AMAX;
    near(sc_form_physical(&c, &use), 2e-6 + 5e-6);
}

/* ---- corrections ------------------------------------------------------------- */

static const int16_t logs[] = {0,    100,  1000, 1100, 200,  300,
                               1200, 1300, 600,  700,  1600, 1700};
static const sc_form_table table = {{3, 5, 0}, {3, 2, 2}, logs};

static double factor(double x, double y, double z)
{
    double at[3] = {x, y, z};
    return 1e3 * log(sc_form_factor(&table, at));
}

static void interpolates(void **state)
{
    (void)state;
    /* at knots, the last axis fastest */
    for (int i = 0; i < 12; i++)
        assert_true(fabs(factor(3 + i / 4, 5 + i / 2 % 2, i % 2) - logs[i]) <
                    1e-9);
    /* between them, linear in each axis */
    assert_true(fabs(factor(3.5, 5, 0) - 100) < 1e-9);
    assert_true(fabs(factor(4.25, 5, 0) - 300) < 1e-9);
    assert_true(fabs(factor(3, 5.1, 0.5) - 150) < 1e-9);
    assert_true(fabs(factor(4.5, 5.5, 0.5) - 950) < 1e-9);
    /* outside, the edge */
    assert_true(fabs(factor(-7, 0, -1) - 0) < 1e-9);
    assert_true(fabs(factor(50, 50, 50) - 1700) < 1e-9);
    assert_true(fabs(factor(4.5, 0, 9) - 500) < 1e-9);
    sc_form_table none = {0};
    double at[3] = {1, 2, 3};
    assert_true(sc_form_factor(&none, at) == 1);
}

static void weights_sum_to_one(void **state)
{
    (void)state;
    sc_form_table flat = {{8, 0, 0}, {4, 1, 1}, NULL};
    const sc_form_table *const both[] = {&table, &flat};
    for (size_t t = 0; t < SC_COUNT(both); t++)
        for (double x = -1; x < 14; x += 0.37)
            for (double y = -1; y < 8; y += 0.59) {
                double at[3] = {x, y, 0.3 * x}, w[8], sum = 0;
                uint32_t index[8], size = 1;
                for (int i = 0; i < 3; i++) size *= both[t]->count[i];
                sc_form_corners(both[t], at, index, w);
                for (int i = 0; i < 8; i++) {
                    assert_true(w[i] >= 0 && w[i] <= 1 && index[i] < size);
                    sum += w[i];
                }
                assert_true(fabs(sum - 1) < 1e-12);
            }
}

/* Where a shape is in its table: binary logarithms. */
static void places(void **state)
{
    (void)state;
    sc_form_use use = {.kind = SC_FORM_GEMM,
                       .product = {.m = 8, .n = 64, .k = 16, .batch = 4}};
    sc_form_place(&use);
    assert_true(use.at[0] == 3 && use.at[1] == 6 && use.at[2] == 4);
    use.kind = SC_FORM_GROUPED_FP4; /* rows, experts, size of a weight */
    sc_form_place(&use);
    assert_true(use.at[0] == 3 && use.at[1] == 2 && use.at[2] == 5);
    use = attention(); /* keys, blocks of queries, twice the size of heads */
    use.attention.queries = 200;
    sc_form_place(&use);
    near(use.at[1], log2(20));
    assert_true(use.at[0] == 10 && use.at[2] == 14);
    use = (sc_form_use){.kind = SC_FORM_AMAX, .bytes = 1024};
    sc_form_place(&use);
    assert_true(use.at[0] == 10 && use.at[1] == 0 && use.at[2] == 0);
    use.bytes = 0;
    sc_form_place(&use);
    assert_true(use.at[0] == 0);
}

/* ---- forms ------------------------------------------------------------------- */

static void fallbacks(void **state)
{
    (void)state;
    static const sc_form gemm, fp8, grouped, fused, cast;
    sc_forms all = {0};
    const sc_form **h = all.at[SC_FIT_HOPPER];
    /* the stated constants, without tables: three of them in steps */
    for (int kind = 0; kind < (int)SC_N_FORMS; kind++) {
        sc_form_kind k = (sc_form_kind)kind;
        const sc_form *f = sc_form_of(NULL, SC_FIT_ADA, k);
        const sc_form *same =
            sc_form_of(&all, SC_FIT_ADA,
                       sc_form_is_cast(k)        ? SC_FORM_AMAX
                       : sc_form_is_attention(k) ? SC_FORM_ATTENTION_FP8
                       : sc_form_is_rows(k)      ? SC_FORM_ELEMENT
                       : sc_form_is_vector(k)    ? SC_FORM_GEMM_FP32
                       : k == SC_FORM_CONV       ? SC_FORM_CONV
                                                 : SC_FORM_GROUPED_FP4);
        assert_ptr_equal(f, same);
        assert_int_equal(f->rows, 0);
        assert_int_equal(f->table.count[0], 0);
        assert_true(isnan(f->error));
    }
    h[SC_FORM_GEMM] = &gemm;
    for (int kind = 0; kind <= (int)SC_FORM_GROUPED_FP4; kind++)
        assert_ptr_equal(sc_form_of(&all, SC_FIT_HOPPER, (sc_form_kind)kind),
                         &gemm);
    h[SC_FORM_GEMM_FP8] = &fp8;
    h[SC_FORM_GROUPED] = &grouped;
    h[SC_FORM_ATTENTION] = &fused;
    h[SC_FORM_AMAX] = &cast;
    assert_ptr_equal(sc_form_of(&all, SC_FIT_HOPPER, SC_FORM_GEMM_BLOCK), &fp8);
    assert_ptr_equal(sc_form_of(&all, SC_FIT_HOPPER, SC_FORM_GEMM_INT8), &gemm);
    assert_ptr_equal(sc_form_of(&all, SC_FIT_HOPPER, SC_FORM_GROUPED_BLOCK),
                     &grouped);
    assert_ptr_equal(sc_form_of(&all, SC_FIT_HOPPER, SC_FORM_ATTENTION_LATENT),
                     &fused);
    assert_ptr_equal(sc_form_of(&all, SC_FIT_HOPPER, SC_FORM_AMAX), &cast);
    /* of another class, and the other cast: nothing */
    assert_int_equal(sc_form_of(&all, SC_FIT_HOPPER, SC_FORM_QUANTIZE)->rows,
                     0);
    assert_true(sc_form_of(&all, SC_FIT_HOPPER, SC_FORM_QUANTIZE) != &cast);
    assert_true(sc_form_of(&all, SC_FIT_AMPERE, SC_FORM_GEMM) != &gemm);
}

/* The cast of a kernel reads 16 bits and writes its precision once; a search
 * for the scale only reads. */
static void amounts_of_casts(void **state)
{
    (void)state;
    sc_kernel k = {.kind = SC_K_QUANTIZE,
                   .precision = SC_FP8,
                   .batch = 1,
                   .m = 16,
                   .k = 64};
    assert_true(sc_kernel_amount(&k).bytes == 16 * 64 * 3);
    k.precision = SC_FP4;
    assert_true(sc_kernel_amount(&k).bytes == 16 * 64 * 2.5);
    k.kind = SC_K_AMAX;
    assert_true(sc_kernel_amount(&k).bytes == 16 * 64 * 2);
    assert_true(sc_kernel_amount(&k).flops == 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_wave),      TEST(small_tiles),  TEST(split_sum),
        TEST(blends_memory), TEST(scores),       TEST(heads),
        TEST(casts),         TEST(interpolates), TEST(weights_sum_to_one),
        TEST(places),        TEST(fallbacks),    TEST(amounts_of_casts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
