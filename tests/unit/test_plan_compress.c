/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients in other formats on the wire: bytes by format, and what the
 * kernels cost. */
#include "prediction.h"

#include <stdio.h>
#include <string.h>

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

#define DP (1u << SC_AX_DP)

static sc_segment layer(const char *format, int zero, bool overlap,
                        sc_step_costs *costs)
{
    sc_run r = replicas_of("gpt3-6.7b", "dgx-a100-80g:4", "megatron-core");
    sc_segment *b;
    f.sw.grad_overlap = overlap;
    r.zero = zero;
    assert_int_equal(
        sc_compress_read(format, sc_pos_none(), &r.compress, &f.err), SC_OK);
    sc_plan p = priced(&r, &b);
    assert_int_equal(sc_plan_step_costs(&p, b, 0, NULL, costs, &f.err), SC_OK);
    return b[1];
}

/* 8 and 16 bits in the collective of the layouts. */
static void casts(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        double bytes;
    } formats[] = {
        {"none", 4}, {"fp16", 2}, {"bf16", 2}, {"fp8", 1}, {"int8", 1}};

    for (int z = 0; z <= 1; z++)
        for (size_t i = 0; i < SC_COUNT(formats); i++) {
            sc_step_costs c;
            sc_segment b = layer(formats[i].name, z, true, &c);
            near(b.grad.bytes, b.params * formats[i].bytes);
            assert_int_equal(coll_over(&b.grad, DP),
                             z ? SC_REDUCE_SCATTER : SC_ALL_REDUCE);
            assert_true((b.pack_s > 0) == (formats[i].bytes < 4));
            assert_true(b.residual == 0);
        }
}

/* The passes of a cast: read and written in both widths, each way, at the
 * memory's rate as of any other kernel; of products their weights and biases,
 * of norms scale and shift. */
static void price_of_a_cast(void **state)
{
    (void)state;
    static const double of_h[] = {3, 1, 4, 1, 1, 1, 1, 1}; /* biases, norms */
    static const double of_h2[] = {3, 1, 4, 4};
    sc_step_costs c;
    sc_run r = replicas_of("gpt3-6.7b", "dgx-a100-80g:4", "megatron-core");
    sc_segment b = layer("bf16", 0, true, &c);
    double want = 0, h = 4096;
    for (size_t i = 0; i < SC_COUNT(of_h) + SC_COUNT(of_h2); i++) {
        double n = i < SC_COUNT(of_h) ? of_h[i] * h
                                      : of_h2[i - SC_COUNT(of_h)] * h * h;
        sc_kernel k = {.kind = SC_K_MEMORY, .bytes = 12 * n, .launches = 2};
        want += sc_cost_kernel(&f.cost, r.hw->device, &k).seconds;
    }
    near(b.pack_s, want);
}

/* Already narrow: nothing to cast. */
static void narrow_stays(void **state)
{
    (void)state;
    sc_run r =
        replicas_of("gpt3-6.7b", "dgx-a100-80g:4", "megatron-bridge-2025");
    sc_segment *b;
    r.compress.kind = SC_GRAD_BF16;
    (void)priced(&r, &b);
    near(b[1].grad.bytes, 2 * b[1].params);
    assert_true(b[1].pack_s == 0);
}

/* Values and indices of 32 replicas, gathered. */
static void largest(void **state)
{
    (void)state;
    sc_step_costs c;
    sc_segment b = layer("topk:0.01", 0, true, &c);
    near(b.grad.bytes, 0.01 * b.params * (4 + 4) * 32);
    assert_int_equal(coll_over(&b.grad, DP), SC_ALL_GATHER);
    near(b.residual, 4 * b.params);
    assert_true(b.pack_s > 0);
}

/* Two factors of every matrix; vectors as they are. */
static void factors(void **state)
{
    (void)state;
    sc_step_costs c;
    for (int rank = 1; rank <= 16; rank *= 4) {
        char format[24];
        snprintf(format, sizeof format, "powersgd:%d", rank);
        sc_segment b = layer(format, 0, true, &c);
        double h = 4096,
               thin = rank * ((h + 3 * h) + (h + h) + 2 * (h + 4 * h));
        double matrices = 12 * h * h;
        double vectors = (3 + 1 + 4 + 1) * h + 2 * 2 * h; /* biases, norms */
        near(b.params, matrices + vectors);
        near(b.grad.bytes, 4 * (thin + vectors));
        assert_int_equal(coll_over(&b.grad, DP), SC_ALL_REDUCE);
        assert_true(b.residual >= 4 * matrices);
    }
}

/* Once at the end where nothing overlaps, else in the segments. */
static void charged_once(void **state)
{
    (void)state;
    sc_step_costs beside, after;
    sc_segment b = layer("fp8", 0, true, &beside);
    (void)layer("fp8", 0, false, &after);
    assert_true(beside.pack_s == 0);
    assert_true(after.pack_s >= 32 * b.pack_s);
}

static void words(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_code code;
    } bad[] = {{"fp4", SC_C_UNKNOWN_NAME},   {"topk", SC_C_TYPE},
               {"topk:", SC_C_TYPE},         {"topk:x", SC_C_TYPE},
               {"topk:0", SC_C_RANGE},       {"topk:1.5", SC_C_RANGE},
               {"topk:nan", SC_C_RANGE},     {"powersgd:0", SC_C_RANGE},
               {"powersgd:1.5", SC_C_RANGE}, {"bf16:2", SC_C_TYPE},
               {"", SC_C_UNKNOWN_NAME}};

    static const char *const good[] = {"none", "bf16", "topk:0.01",
                                       "powersgd:4"};

    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_compress c = {SC_GRAD_PLAIN, 0};
        sc_err_init(&f.err);
        assert_int_equal(
            sc_compress_read(bad[i].text, sc_pos_none(), &c, &f.err),
            SC_EINPUT);
        assert_int_equal(f.err.d[0].code, bad[i].code);
    }
    for (size_t i = 0; i < SC_COUNT(good); i++) {
        sc_compress c;
        char buf[32];
        assert_int_equal(sc_compress_read(good[i], sc_pos_none(), &c, &f.err),
                         SC_OK);
        sc_compress_print(&c, buf, sizeof buf);
        assert_string_equal(buf, good[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(casts),   TEST(price_of_a_cast), TEST(narrow_stays), TEST(largest),
        TEST(factors), TEST(charged_once),    TEST(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
