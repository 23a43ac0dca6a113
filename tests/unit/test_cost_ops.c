/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kernels: bytes worked out by hand for every kind. */
#include "fixture.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sc_cost cost;

static const sc_op_facts plain = {.precision = SC_BF16,
                                  .attention = SC_ATTN_CUDNN,
                                  .single_pass = true,
                                  .loss_bytes = 12};

static double sum(const sc_op_kernels *l, uint32_t *launches)
{
    double bytes = 0;
    *launches = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        sc_price p = sc_kernel_amount(&l->k[i]);
        bytes += p.bytes;
        *launches += p.launches;
    }
    return bytes;
}

/* ---- by hand --------------------------------------------------------------- */

typedef struct amount {
    double bytes;
    uint32_t launches;
} amount;

typedef struct hand {
    const char *what;
    sc_op_work w;
    amount want[3]; /* forward; for inputs; for weights */
} hand;

/* 1000 elements of 2 bytes, 2000 B, where nothing else is said. */
#define SAME .x = 2000, .y = 2000, .elements = 1000, .each = 2
#define BOTH .input_learns = true, .weight_learns = true, .learns = 1
/* x 8 x 16, w 32 x 16, y 8 x 32: 256 + 1024 + 512 B. */
#define PRODUCT .m = 8, .n = 32, .k = 16, .each = 2
/* 100 rows of 10 out of a table of 4000 elements. */
#define TABLE                                                               \
    .type = SC_NET_EMBED, .x = 800, .y = 2000, .w = 8000, .elements = 1000, \
    .each = 2, .lookups = 1, .weight_learns = true

static const hand hands[] = {
    {"linear",
     {.type = SC_NET_LINEAR, .groups = 1, PRODUCT, BOTH},
     {{1792, 2}, {1792, 2}, {1792, 2}}},
    /* and the gradient of the output once more */
    {"linear with a bias",
     {.type = SC_NET_LINEAR,
      .groups = 1,
      PRODUCT,
      .y = 512,
      .bias = true,
      BOTH},
     {{1792, 2}, {1792, 2}, {2304, 3}}},
    {"matmul, both factors learn",
     {.type = SC_NET_MATMUL,
      .groups = 3,
      PRODUCT,
      .input_learns = true,
      .learns = 2},
     {{3 * 1792, 2}, {6 * 1792, 4}}},
    /* 4 experts of 8 rows */
    {"expert",
     {.type = SC_NET_EXPERT, .groups = 4, PRODUCT, BOTH},
     {{4 * 1792, 2}, {4 * 1792, 2}, {4 * 1792, 2}}},
    /* 1 x 1 over 100 positions, 10 to 20 channels: the tensors themselves */
    {"convolution",
     {.type = SC_NET_CONV,
      .groups = 1,
      .m = 100,
      .n = 20,
      .k = 10,
      .channels = 10,
      .x = 2000,
      .y = 4000,
      .w = 400,
      .each = 2,
      BOTH},
     {{6400, 1}, {6400, 1}, {6400, 1}}},
    /* x in, y out; dy, x in, dx out and for the scale dy, x */
    {"norm", {.type = SC_NET_NORM, SAME, BOTH}, {{4000, 1}, {10000, 2}}},
    {"norm of wide rows",
     {.type = SC_NET_NORM, .wide_rows = true, SAME, BOTH},
     {{6000, 2}, {10000, 2}}},
    {"batch norm",
     {.type = SC_NET_BATCH_NORM, SAME, BOTH},
     {{6000, 2}, {10000, 2}}},
    {"activation", {.type = SC_NET_ACT, SAME, BOTH}, {{4000, 1}, {6000, 1}}},
    /* gate and value in; both and dy in, both gradients out */
    {"gated activation",
     {.type = SC_NET_ACT,
      .x = 4000,
      .y = 2000,
      .elements = 1000,
      .each = 2,
      .gated = true,
      BOTH},
     {{6000, 2}, {10000, 3}}},
    {"sum",
     {.type = SC_NET_ELEMENTWISE, .others = 2000, SAME, BOTH},
     {{6000, 1}, {6000, 2}}},
    /* a byte of mask per element; backward dy and mask in, dx out as well */
    {"sum behind dropout",
     {.type = SC_NET_ELEMENTWISE, .others = 2000, .dropout = true, SAME, BOTH},
     {{7000, 1}, {11000, 2}}},
    {"dropout", {.type = SC_NET_DROPOUT, SAME, BOTH}, {{5000, 1}, {5000, 1}}},
    {"softmax", {.type = SC_NET_SOFTMAX, SAME, BOTH}, {{4000, 1}, {6000, 1}}},
    {"positions",
     {.type = SC_NET_POSITION, .w = 500, SAME, BOTH},
     {{4500, 1}, {2500, 1}}},
    {"rope", {.type = SC_NET_ROPE, SAME, BOTH}, {{10000, 4}, {10000, 4}}},
    {"dispatch",
     {.type = SC_NET_DISPATCH, .x = 1000, .y = 2000, .each = 2, BOTH},
     {{6000, 4}, {8000, 4}}},
    {"combine",
     {.type = SC_NET_COMBINE, .x = 2000, .y = 1000, .each = 2, BOTH},
     {{6000, 4}, {8000, 4}}},
    {"concatenation",
     {.type = SC_NET_CONCAT, SAME, BOTH},
     {{4000, 1}, {4000, 1}}},
    {"slice of twice as much",
     {.type = SC_NET_SLICE, .x = 4000, .y = 2000, .each = 2, BOTH},
     {{4000, 1}, {8000, 1}}},
    {"transposition",
     {.type = SC_NET_VIEW, SAME, BOTH},
     {{4000, 1}, {4000, 1}}},
    {"pool",
     {.type = SC_NET_POOL, .x = 4000, .y = 1000, .each = 2, BOTH},
     {{5000, 1}, {5000, 1}}},
    {"upsampling",
     {.type = SC_NET_UPSAMPLE, .x = 1000, .y = 4000, .each = 2, BOTH},
     {{5000, 1}, {5000, 1}}},
    /* 1000 logits, half of 12 bytes each way */
    {"loss",
     {.type = SC_NET_LOSS, .x = 2000, .each = 2, BOTH},
     {{6000, 12}, {6000, 8}}},
    /* rows read and written, and indices read; backward these are sorted
     * with positions, 8 times their bytes */
    {"table", {TABLE}, {{4800, 1}, {0, 0}, {10400, 5}}},
    /* its gradient cleared and added */
    {"table, dense gradient",
     {TABLE, .dense = true},
     {{4800, 1}, {0, 0}, {2000 + 2000 + 4000 + 16000 + 6400, 5}}},
    /* 2 heads, 64 queries and keys, 16 wide: q, k, v, o; backward twice */
    {"attention",
     {.type = SC_NET_ATTENTION,
      .groups = 2,
      .m = 64,
      .n = 64,
      .k = 16,
      .keys = 64,
      .each = 2,
      BOTH},
     {{2.0 * 2 * 16 * 4 * 64, 1}, {2 * 2.0 * 2 * 16 * 4 * 64, 3}}},
};

static void by_hand(void **state)
{
    (void)state;
    static const sc_op_pass passes[] = {SC_PASS_FWD, SC_PASS_DGRAD,
                                        SC_PASS_WGRAD};
    bool seen[SC_N_NET_TYPES] = {false};
    sc_cost_centres(&cost);
    for (size_t i = 0; i < SC_COUNT(hands); i++) {
        const hand *h = &hands[i];
        seen[h->w.type] = true;
        for (int p = 0; p < 3; p++) {
            sc_op_kernels l;
            sc_op_work w = h->w;
            uint32_t launches;
            w.pass = (uint8_t)passes[p];
            sc_op_list(&cost, &plain, &w, &l);
            double bytes = sum(&l, &launches);
            const amount *want = &h->want[p];
            if (fabs(bytes - want->bytes) > 1e-9 * want->bytes ||
                launches != want->launches)
                fail_msg("%s, pass %d: %g B in %u launches, not %g in %u",
                         h->what, p, bytes, launches, want->bytes,
                         want->launches);
        }
    }
    /* Measured elsewhere: a fitted number of bytes. */
    seen[SC_NET_SCAN] = seen[SC_NET_CONV1D] = seen[SC_NET_CONV_TRANSPOSED] =
        true;
    for (int t = 0; t < SC_N_NET_TYPES; t++)
        if (!seen[t]) fail_msg("nothing is known of %s", sc_net_type_names[t]);
}

/* The kernels of both gradients are those of the one and of the other. */
static void both_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(hands); i++) {
        sc_op_kernels l;
        sc_op_work w = hands[i].w;
        const amount *want = hands[i].want;
        uint32_t n;
        w.pass = SC_PASS_BWD;
        sc_op_list(&cost, &plain, &w, &l);
        double bytes = sum(&l, &n);
        assert_true(bytes == want[1].bytes + want[2].bytes);
        assert_int_equal(n, want[1].launches + want[2].launches);
    }
}

/* 4 weights of 32 x 16: 12 bytes each by a kernel behind the product, which may
 * add to the sum itself. */
static void accumulated(void **state)
{
    (void)state;
    static const uint8_t types[] = {SC_NET_LINEAR, SC_NET_EXPERT};
    for (int itself = 0; itself < 2; itself++)
        for (size_t i = 0; i < SC_COUNT(types); i++) {
            sc_op_kernels l;
            uint32_t n;
            sc_op_facts f = plain;
            sc_op_work w = {.type = types[i], .groups = 4, PRODUCT, BOTH};
            w.pass = SC_PASS_WGRAD;
            f.accum_bytes = 12;
            f.fused_accumulate = itself;
            sc_op_list(&cost, &f, &w, &l);
            assert_true(sum(&l, &n) == 4 * 1792 + 12 * 4 * 32 * 16);
            assert_int_equal(l.n, itself ? 1 : 2);
            assert_int_equal(n, itself ? 2 : 3);
        }
}

/* ---- casts ----------------------------------------------------------------- */

/* Bytes of all kernels of a name, which is "find scale", "cast" or "transpose"
 * for those before a product. */
static double named(const sc_op_facts *o, const sc_op_work *w, sc_op_pass pass,
                    const char *name)
{
    sc_op_kernels l;
    sc_op_work in = *w;
    double bytes = 0;
    in.pass = (uint8_t)pass;
    sc_op_list(&cost, o, &in, &l);
    for (uint32_t i = 0; i < l.n; i++)
        if (strcmp(l.k[i].name, name) == 0)
            bytes += sc_kernel_amount(&l.k[i]).bytes;
    return bytes;
}

/* Forward x of 8 x 16 is cast, backward the gradient of 8 x 32: 2 bytes are
 * read, one is written for each product that sums over another dim. */
static void casts(void **state)
{
    (void)state;
    sc_op_facts o = plain;
    sc_op_work w = {.type = SC_NET_LINEAR,
                    .groups = 1,
                    PRODUCT,
                    BOTH,
                    .low_precision = true};
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 0);
    o.precision = SC_FP8;
    o.delayed_scaling = true;
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 4 * 8 * 16);
    assert_true(named(&o, &w, SC_PASS_DGRAD, "cast") == 4 * 8 * 32);
    assert_true(named(&o, &w, SC_PASS_WGRAD, "cast") == 0);
    assert_true(named(&o, &w, SC_PASS_FWD, "find scale") == 0);
    o.delayed_scaling = false; /* the scale needs a pass of its own */
    assert_true(named(&o, &w, SC_PASS_FWD, "find scale") == 2 * 8 * 16);
    o.any_layout = true; /* one copy is enough */
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 3 * 8 * 16);
    o.scaling = SC_SCALE_MX; /* but not with scales along one dim */
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 4 * 8 * 16);
    assert_true(named(&o, &w, SC_PASS_FWD, "find scale") == 0);
    o.precision = SC_FP4; /* and one scale more for the tensor */
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 3 * 8 * 16);
    assert_true(named(&o, &w, SC_PASS_FWD, "find scale") == 2 * 8 * 16);
    w.weight_learns = false; /* no product for weights: one copy */
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 2.5 * 8 * 16);
    assert_true(named(&o, &w, SC_PASS_DGRAD, "cast") == 2.5 * 8 * 32);
    o.fused_cast = true;
    assert_true(named(&o, &w, SC_PASS_FWD, "find scale") == 0);
}

/* Of 4 ranks that gather cast parts each casts its own.  One scale for the
 * tensor: the whole is transposed once it is there. */
static void casts_of_parts(void **state)
{
    (void)state;
    sc_op_facts o = plain;
    sc_op_work w = {.type = SC_NET_LINEAR,
                    .groups = 1,
                    PRODUCT,
                    BOTH,
                    .low_precision = true,
                    .cast_input = 0.25,
                    .cast_gradient = 1};
    o.precision = SC_FP8;
    assert_true(named(&o, &w, SC_PASS_FWD, "find scale") == 2 * 2 * 16);
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 3 * 2 * 16);
    assert_true(named(&o, &w, SC_PASS_FWD, "transpose") == 2 * 8 * 16);
    assert_true(named(&o, &w, SC_PASS_DGRAD, "cast") == 4 * 8 * 32);
    assert_true(named(&o, &w, SC_PASS_DGRAD, "transpose") == 0);
    o.scaling = SC_SCALE_MX;
    assert_true(named(&o, &w, SC_PASS_FWD, "cast") == 4 * 2 * 16);
    assert_true(named(&o, &w, SC_PASS_FWD, "transpose") == 0);
}

/* A list of tensors is cast at once if the scales are known, and in FP4. */
static void casts_of_experts(void **state)
{
    (void)state;

    static const struct {
        sc_precision precision;
        sc_scaling scaling;
        bool delayed;
        uint64_t tensors;
    } want[] = {{SC_FP8, SC_SCALE_TENSOR, true, 1},
                {SC_FP8, SC_SCALE_TENSOR, false, 4},
                {SC_FP8, SC_SCALE_MX, true, 4},
                {SC_FP4, SC_SCALE_MX, false, 1}};

    sc_op_work w = {.type = SC_NET_EXPERT,
                    .pass = SC_PASS_FWD,
                    .groups = 4,
                    PRODUCT,
                    BOTH,
                    .low_precision = true};
    for (size_t i = 0; i < SC_COUNT(want); i++) {
        sc_op_facts o = plain;
        sc_op_kernels l;
        o.precision = want[i].precision;
        o.scaling = want[i].scaling;
        o.delayed_scaling = want[i].delayed;
        sc_op_list(&cost, &o, &w, &l);
        assert_int_equal(l.k[0].batch, want[i].tensors);
        assert_int_equal(l.k[0].batch * l.k[0].m, 4 * 8);
    }
}

/* Samples of several lengths: the longer ones have more keys. */
static void spread(void **state)
{
    (void)state;
    sc_op_kernels l;
    sc_op_facts f = plain;
    sc_op_work w = {.type = SC_NET_ATTENTION,
                    .each = 2,
                    .groups = 8,
                    .m = 256,
                    .n = 256,
                    .k = 64};
    f.attention = SC_ATTN_CUDNN;
    sc_op_list(&cost, &f, &w, &l);
    assert_true(l.n == 1 && l.k[0].n == 256 && !l.k[0].low_scores);
    f.attended = 1.25;
    f.low_attention = true;
    sc_op_list(&cost, &f, &w, &l);
    assert_true(l.n == 1 && l.k[0].n == 320 && l.k[0].low_scores);
}

/* ---- kept for the backward pass ---------------------------------------------- */

/* Beside operands and results, of 1000 elements each. */
static void held(void **state)
{
    (void)state;
    sc_op_held h;
    sc_op_facts f = plain;
    f.precision = SC_FP8;
    f.logit_bytes = 14;
    f.split_logits = 18;
    sc_op_work w = {.type = SC_NET_LINEAR,
                    .each = 2,
                    .x = 2000,
                    .elements = 500,
                    .low_precision = true,
                    .weight_learns = true};
    sc_op_hold(&f, &w, &h);
    /* A byte of each operand; the gradient is cast both ways, the operand
     * turned. */
    assert_true(h.copy == 1 && h.grad == 2 * 500 && h.operand == 1000);
    w.weight_learns = false;
    sc_op_hold(&f, &w, &h);
    assert_true(h.copy == 0 && h.grad == 500 && h.operand == 0);
    w.low_precision = false;
    sc_op_hold(&f, &w, &h);
    assert_true(h.copy == 0 && h.grad == 0);
    /* 2 bytes of logits, 4 as they are kept, the rest while it computes. */
    w.type = SC_NET_LOSS;
    sc_op_hold(&f, &w, &h);
    assert_true(h.copy == 4 && h.forward == 1000 * (14 - 2 - 4));
    w.split = true;
    sc_op_hold(&f, &w, &h);
    assert_true(h.copy == 4 && h.forward == 1000 * (18 - 2 - 4));
    f.split_logits = 4; /* logits become their gradients in one kernel */
    sc_op_hold(&f, &w, &h);
    assert_true(h.copy == 0 && h.forward == 0);
    w = (sc_op_work){.type = SC_NET_ATTENTION,
                     .each = 2,
                     .groups = 4,
                     .m = 64,
                     .keys = 64,
                     .dropout = true};
    sc_op_hold(&f, &w, &h);
    assert_true(h.own[0] == 4 * 4 * 64 && h.own[1] == 0);
    f.attention = SC_ATTN_UNFUSED;
    sc_op_hold(&f, &w, &h);
    assert_true(h.own[0] == 2 * 4 * 64 * 64 && h.own[1] == h.own[0] &&
                h.own[2] == 4 * 64 * 64);
    /* Two kernels keep the activation of the gate. */
    w = (sc_op_work){
        .type = SC_NET_ACT, .each = 2, .elements = 500, .gated = true};
    f.single_pass = f.fused = false;
    sc_op_hold(&f, &w, &h);
    assert_true(h.own[0] == 1000);
    f.single_pass = true;
    sc_op_hold(&f, &w, &h);
    assert_true(h.own[0] == 0);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(by_hand),        UNIT(both_passes),
        UNIT(accumulated),    UNIT(casts),
        UNIT(casts_of_parts), UNIT(casts_of_experts),
        UNIT(spread),         UNIT(held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
