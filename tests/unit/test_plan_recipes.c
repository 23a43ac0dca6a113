/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes of precision, kinds of recomputation, power limits: what each
 * changes in a block, and what it leaves alone. */
#include "plan/plan_internal.h"
#include "prediction.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sc_run run_of(const char *device, const char *model,
                     const char *software, uint32_t tp)
{
    sc_run r = {.size = {1, 1, 1, 1, tp},
                .vpp = 1,
                .mbs = 2,
                .ga = 1,
                .gbs = 2,
                .seq = 2048,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16,
                .sp = tp > 1};
    char spec[32];
    snprintf(spec, sizeof spec, "%s:%u", device, tp);
    load_run(&r, spec, model, software);
    return r;
}

static void in(sc_run *r, sc_recipe recipe)
{
    r->recipe = recipe;
    r->precision = sc_recipe_precision(recipe);
}

static uint32_t count(const sc_piece *p, uint32_t n, const char *name)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) found += strcmp(p[i].name, name) == 0;
    return found;
}

static double seconds(const sc_piece *p, uint32_t n, const char *name)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(p[i].name, name) == 0) sum += p[i].seconds;
    return sum;
}

/* ---- recipes -------------------------------------------------------------- */

static void precision_of_recipe(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        sc_recipe recipe;
        sc_precision precision;
    } want[] = {
        {"fp32", SC_RECIPE_FP32, SC_FP32},
        {"tf32", SC_RECIPE_TF32, SC_TF32},
        {"fp16", SC_RECIPE_FP16, SC_FP16},
        {"bf16", SC_RECIPE_BF16, SC_BF16},
        {"fp8", SC_RECIPE_FP8, SC_FP8},
        {"nvfp4", SC_RECIPE_NVFP4, SC_FP4},
        {"int8", SC_RECIPE_INT8, SC_INT8},
        {"mxfp8", SC_RECIPE_MXFP8, SC_FP8},
        {"fp8-block", SC_RECIPE_FP8_BLOCK, SC_FP8},
        {"fp8-row", SC_RECIPE_FP8_ROW, SC_FP8},
    };

    assert_int_equal(SC_COUNT(want), SC_N_RECIPES);
    assert_null(sc_recipe_names[SC_N_RECIPES]);
    for (size_t i = 0; i < SC_COUNT(want); i++) {
        assert_string_equal(sc_recipe_names[want[i].recipe], want[i].name);
        assert_int_equal(sc_recipe_precision(want[i].recipe),
                         want[i].precision);
    }
}

/* A software profile names a recipe or leaves it to the device. */
static void names_of_profiles(void **state)
{
    (void)state;
    const sc_key *k = sc_software_keys;
    while (k->name && strcmp(k->name, "precision") != 0) k++;
    assert_non_null(k->names);
    assert_string_equal(k->names[0], "device");
    for (uint32_t i = 0; i < SC_N_RECIPES; i++)
        assert_string_equal(k->names[i + 1], sc_recipe_names[i]);
    assert_null(k->names[SC_N_RECIPES + 1]);
}

static bool is_low(uint32_t recipe)
{
    sc_precision p = sc_recipe_precision((sc_recipe)recipe);
    return p == SC_FP8 || p == SC_FP4;
}

/* Casts stand before every product of low precision, and nowhere else. */
static void casts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SC_N_RECIPES; i++) {
        sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
        in(&r, (sc_recipe)i);
        sc_block b = block(&r, 1), h = block(&r, 2);
        uint32_t n = is_low(i) ? 4 : 0; /* qkv, proj, fc1, fc2 */
        assert_int_equal(count(b.fwd, b.n_fwd, "cast"), n);
        assert_int_equal(count(b.bwd, b.n_bwd, "cast"), n);
        assert_int_equal(count(h.fwd, h.n_fwd, "cast"), 0);
        assert_int_equal(count(h.bwd, h.n_bwd, "cast"), 0);
    }
}

/* Precision changes how long a product takes, not what it computes; attention
 * stays in 16 bits. */
static void same_work(void **state)
{
    (void)state;
    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
    sc_block wide = block(&r, 1);
    for (uint32_t i = 0; i < SC_N_RECIPES; i++) {
        in(&r, (sc_recipe)i);
        sc_block b = block(&r, 1);
        near(b.flops, wide.flops);
        near(b.params, wide.params);
        if (i < SC_RECIPE_FP16) continue;
        near(seconds(b.fwd, b.n_fwd, "attention"),
             seconds(wide.fwd, wide.n_fwd, "attention"));
    }
}

/* Low-precision products keep one byte per element of what they read. */
static void one_byte_kept(void **state)
{
    (void)state;
    for (uint32_t i = SC_RECIPE_FP8; i < SC_N_RECIPES; i++) {
        sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
        double wide = block(&r, 1).saved;
        in(&r, (sc_recipe)i);
        const sc_transformer *t = &r.model->t;
        double inputs =
            (double)(r.mbs * r.seq) *
            (double)(2 * t->hidden + t->heads * t->head_dim + t->ffn);
        near(wide - block(&r, 1).saved, inputs);
    }
}

/* The vocabulary projection is the same in every recipe of 16 bits or less:
 * its product and what it keeps. */
static void head_stays_wide(void **state)
{
    (void)state;
    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
    sc_block wide = block(&r, 2);
    for (uint32_t i = SC_RECIPE_FP8; i < SC_N_RECIPES; i++) {
        in(&r, (sc_recipe)i);
        sc_block b = block(&r, 2);
        near(seconds(b.fwd, b.n_fwd, "lm_head"),
             seconds(wide.fwd, wide.n_fwd, "lm_head"));
        near(seconds(b.bwd, b.n_bwd, "lm_head"),
             seconds(wide.bwd, wide.n_bwd, "lm_head"));
        near(b.saved, wide.saved);
    }
}

static sc_kernel product(sc_precision p, sc_scaling s)
{
    return (sc_kernel){.kind = SC_K_GEMM,
                       .precision = p,
                       .scaling = s,
                       .batch = 1,
                       .m = 8192,
                       .n = 8192,
                       .k = 8192};
}

static double price(const sc_device *d, sc_precision p, sc_scaling s)
{
    sc_kernel k = product(p, s);
    return sc_cost_kernel(&f.cost, d, &k).seconds;
}

/* A Hopper has no units for scales of blocks or for four bits: products run
 * on those for FP8, rows scaled apart slower. */
static void on_hopper(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "llama3-8b", "megatron-core", 1);
    const sc_device *d = r.hw->device;
    double fp8 = price(d, SC_FP8, SC_SCALE_TENSOR);
    assert_true(d->peak[SC_FP8] > 0 && d->peak[SC_FP4] == 0);
    near(price(d, SC_FP8, SC_SCALE_MX), fp8);
    near(price(d, SC_FP8, SC_SCALE_BLOCK), fp8);
    assert_true(price(d, SC_FP8, SC_SCALE_ROW) > fp8);
    assert_true(fabs(price(d, SC_FP4, SC_SCALE_MX) / fp8 - 1) < 0.05);
    assert_true(fp8 < price(d, SC_BF16, SC_SCALE_TENSOR));
}

/* On Blackwell each halving of the width is faster; on an A100, which has
 * neither, both run like BF16. */
static void on_others(void **state)
{
    (void)state;
    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
    const sc_device *b = r.hw->device;
    double fp8 = price(b, SC_FP8, SC_SCALE_TENSOR);
    assert_true(fp8 < price(b, SC_BF16, SC_SCALE_TENSOR));
    assert_true(price(b, SC_FP4, SC_SCALE_MX) < fp8);
    sc_run s = run_of("a100-sxm-80g", "llama3-8b", "megatron-core", 1);
    const sc_device *a = s.hw->device;
    double wide = price(a, SC_BF16, SC_SCALE_TENSOR);
    assert_true(fabs(price(a, SC_FP8, SC_SCALE_TENSOR) / wide - 1) < 0.05);
    assert_true(fabs(price(a, SC_FP4, SC_SCALE_MX) / wide - 1) < 0.05);
}

/* ---- recomputation -------------------------------------------------------- */

static sc_block recomputed(sc_run *r, sc_recompute kind)
{
    r->recompute = kind;
    return block(r, 1);
}

/* Memory falls and time rises from none over selective to full; the forward
 * pass stays. */
static void order(void **state)
{
    (void)state;
    static const char *const models[] = {"llama3-8b", "gpt3-6.7b",
                                         "mixtral-8x7b", "deepseek-v2"};
    static const char *const programs[] = {"megatron-core", "torchtitan-2024"};
    for (size_t i = 0; i < SC_COUNT(models) * SC_COUNT(programs); i++)
        for (uint32_t tp = 1; tp <= 2; tp++) {
            sc_run r = run_of("h100-sxm", models[i / 2], programs[i % 2], tp);
            sc_block none = recomputed(&r, SC_RC_NONE);
            sc_block some = recomputed(&r, SC_RC_SELECTIVE);
            sc_block ops = recomputed(&r, SC_RC_OPS);
            sc_block full = recomputed(&r, SC_RC_FULL);
            assert_true(none.saved > some.saved && some.saved > full.saved);
            assert_true(none.saved > ops.saved && ops.saved > full.saved);
            assert_true(none.bwd_s < some.bwd_s && some.bwd_s < full.bwd_s);
            assert_true(none.bwd_s < ops.bwd_s && ops.bwd_s < full.bwd_s);
            assert_true(none.fwd_s == some.fwd_s && none.fwd_s == ops.fwd_s &&
                        none.fwd_s == full.fwd_s);
            assert_true(none.flops <= some.flops && some.flops <= full.flops);
            assert_true(full.working >= none.working);
        }
}

/* Beside fused attention, selective makes again what is cheap: norms and
 * activations, and no product. */
static void selective_is_cheap(void **state)
{
    (void)state;
    static const char *const never[] = {"attention", "qkv",        "proj",
                                        "fc1",       "fc2",        "add1",
                                        "rope",      "experts_fc1"};
    static const char *const models[] = {"llama3-8b", "mixtral-8x7b"};
    for (size_t m = 0; m < SC_COUNT(models); m++) {
        sc_run r = run_of("h100-sxm", models[m], "megatron-core", 1);
        sc_block none = recomputed(&r, SC_RC_NONE);
        sc_block some = recomputed(&r, SC_RC_SELECTIVE);
        for (size_t i = 0; i < SC_COUNT(never); i++)
            assert_int_equal(count(some.bwd, some.n_bwd, never[i]),
                             count(none.bwd, none.n_bwd, never[i]));
        near(some.flops, none.flops);
        /* norm1, norm2 and the activation */
        assert_int_equal(some.n_bwd, none.n_bwd + 3);
        assert_int_equal(count(some.bwd, some.n_bwd, "norm1"),
                         count(none.bwd, none.n_bwd, "norm1") + 1);
    }
}

/* Latent attention makes queries, keys and values from their narrow form
 * again. */
static void selective_of_latent(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "deepseek-v2", "megatron-core", 1);
    sc_block none = recomputed(&r, SC_RC_NONE);
    sc_block some = recomputed(&r, SC_RC_SELECTIVE);
    double again = 0;
    for (uint32_t i = 0; i < r.model->layer[1].n_ops; i++) {
        const sc_operator *o = &r.model->layer[1].op[i];
        if (strcmp(o->name, "q_up") == 0 || strcmp(o->name, "kv_up") == 0)
            again += sc_operator_flops(o, r.mbs, r.seq);
    }
    assert_true(again > 0);
    near(some.flops, none.flops + again);
    assert_int_equal(count(some.bwd, some.n_bwd, "attention"),
                     count(none.bwd, none.n_bwd, "attention"));
}

/* Where scores are written out, selective is of attention (Korthikanti et al.
 * 2022, section 5). */
static void selective_unfused(void **state)
{
    (void)state;
    sc_run r = run_of("a100-sxm-80g", "gpt3-6.7b", "megatron-lm-2022", 1);
    sc_block none = recomputed(&r, SC_RC_NONE);
    sc_block some = recomputed(&r, SC_RC_SELECTIVE);
    assert_int_equal(count(none.bwd, none.n_bwd, "scores"), 2);
    assert_int_equal(count(some.bwd, some.n_bwd, "scores"), 3);
    assert_int_equal(count(some.bwd, some.n_bwd, "qkv"),
                     count(none.bwd, none.n_bwd, "qkv"));
    assert_true(some.saved < none.saved && some.bwd_s > none.bwd_s);
}

/* ---- power ---------------------------------------------------------------- */

static sc_kernel attention(uint64_t rows)
{
    return (sc_kernel){.kind = SC_K_FLASH,
                       .precision = SC_BF16,
                       .batch = 64,
                       .m = rows,
                       .n = 8192,
                       .k = 128,
                       .attention = SC_ATTN_CUDNN};
}

/* Seconds per further depth of a product, and per further row of attention:
 * what the rate alone sets. */
static void slopes(const sc_device *d, double *gemm, double *flash)
{
    sc_kernel a = product(SC_BF16, SC_SCALE_TENSOR), b = a;
    sc_kernel s = attention(8192), t = attention(16384);
    b.k *= 2;
    *gemm = sc_cost_kernel(&f.cost, d, &b).seconds -
            sc_cost_kernel(&f.cost, d, &a).seconds;
    *flash = sc_cost_kernel(&f.cost, d, &t).seconds -
             sc_cost_kernel(&f.cost, d, &s).seconds;
}

static void power_of_hopper(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "llama3-8b", "megatron-core", 1);
    sc_run low = run_of("h100-sxm-96g", "llama3-8b", "megatron-core", 1);
    assert_true(r.hw->device->power_w == 700);
    assert_true(low.hw->device->power_w == 500);
    sc_device d = *r.hw->device;
    double gemm, flash, g, s;
    slopes(&d, &gemm, &flash);
    static const double watts[] = {350, 400, 500, 600, 700, 1000};
    for (size_t i = 0; i < SC_COUNT(watts); i++) {
        d.power_w = watts[i];
        slopes(&d, &g, &s);
        double slower =
            pow(fmin(1, watts[i] / 700), f.cost.p[SC_P_POWER_HOPPER]);
        assert_true(fabs(g * slower / gemm - 1) < 1e-6);
        assert_true(fabs(s * slower / flash - 1) < 1e-6);
    }
    slopes(low.hw->device, &g, &s);
    near(g / gemm, s / flash);
    near(g / gemm, pow(700.0 / 500, f.cost.p[SC_P_POWER_HOPPER]));
}

static void power_of_blackwell(void **state)
{
    (void)state;
    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
    sc_device d = *r.hw->device;
    double gemm, flash, g, s;
    d.power_w = 1000;
    slopes(&d, &gemm, &flash);
    for (double w = 600; w <= 1400; w += 200) {
        d.power_w = w;
        slopes(&d, &g, &s);
        double faster = pow(w / 1000, f.cost.p[SC_P_POWER_BLACKWELL]);
        assert_true(fabs(g * faster / gemm - 1) < 1e-6);
        assert_true(fabs(s * faster / flash - 1) < 1e-6);
    }
}

/* Memory traffic is not slower on less power. */
static void power_and_memory(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "llama3-8b", "megatron-core", 1);
    sc_device d = *r.hw->device;
    sc_kernel k = {.kind = SC_K_MEMORY, .bytes = 1e9};
    double t = sc_cost_kernel(&f.cost, &d, &k).seconds;
    d.power_w = 350;
    near(sc_cost_kernel(&f.cost, &d, &k).seconds, t);
}

/* Blocks whose products stay wide are those of the wide recipe. */
static void wide_blocks(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "llama3-8b", "megatron-core", 1);
    sc_block wide = block(&r, 1);
    in(&r, SC_RECIPE_FP8);
    sc_block low = block(&r, 1);
    assert_int_equal(sc_model_widen(r.model, "layers.0,layers.30-31",
                                    sc_pos_none(), &f.a, &r.model, &f.err),
                     SC_OK);
    assert_int_equal(r.model->n_layers, 4);
    uint32_t first = r.model->order[0], middle = r.model->order[1];
    assert_int_equal(r.model->layer[first].repeat, 3);
    assert_int_equal(r.model->order[31], first);
    sc_block a = block(&r, first), b = block(&r, middle);
    near(a.fwd_s, wide.fwd_s);
    near(a.bwd_s, wide.bwd_s);
    near(a.saved, wide.saved);
    near(b.fwd_s, low.fwd_s);
    assert_int_equal(count(a.fwd, a.n_fwd, "cast"), 0);
    assert_true(count(b.fwd, b.n_fwd, "cast") > 0);
    const sc_model *m;
    assert_int_equal(sc_model_widen(r.model, "layers.*.norm1", sc_pos_none(),
                                    &f.a, &m, &f.err),
                     SC_EINPUT); /* no product */
}

/* Scores of experts are not to be rounded to 8 bits. */
static void router_stays_wide(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "mixtral-8x7b", "megatron-core", 1);
    sc_block wide = block(&r, 1);
    in(&r, SC_RECIPE_FP8);
    sc_block low = block(&r, 1);
    double one = seconds(wide.fwd, wide.n_fwd, "router");
    assert_true(one > 0);
    near(seconds(low.fwd, low.n_fwd, "router"), one);
    /* qkv, proj and both products of the experts */
    assert_int_equal(count(low.fwd, low.n_fwd, "cast"), 4);
}

/* What show --strategy says of a recipe names every product once. */
static void recipe_in_words(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "llama3-8b", "megatron-core", 1);
    sc_text t;
    sc_text_init(&t);
    plan_recipe_text(&r, &t);
    assert_int_equal(t.len, 0);
    in(&r, SC_RECIPE_FP8_BLOCK);
    plan_recipe_text(&r, &t);
    assert_non_null(strstr(t.buf, "fp8   qkv proj fc1 fc2\n"));
    assert_non_null(strstr(t.buf, "bf16  lm_head\n"));
    assert_non_null(strstr(t.buf, "128 x 128"));
    sc_text_free(&t);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(precision_of_recipe),
                                       TEST(names_of_profiles),
                                       TEST(casts),
                                       TEST(same_work),
                                       TEST(one_byte_kept),
                                       TEST(head_stays_wide),
                                       TEST(on_hopper),
                                       TEST(on_others),
                                       TEST(order),
                                       TEST(selective_is_cheap),
                                       TEST(selective_of_latent),
                                       TEST(selective_unfused),
                                       TEST(power_of_hopper),
                                       TEST(power_of_blackwell),
                                       TEST(power_and_memory),
                                       TEST(wide_blocks),
                                       TEST(recipe_in_words),
                                       TEST(router_stays_wide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
