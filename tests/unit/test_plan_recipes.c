/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes of precision, kinds of recomputation, power limits: what each
 * changes in a segment, and what it leaves alone. */
#include "kinds.h"
#include "network.h"

#include <math.h>
#include <stdio.h>

static sc_run run_of(const char *device, const char *model,
                     const char *software, uint32_t tp)
{
    char spec[32];
    snprintf(spec, sizeof spec, "%s:%u", device, tp);
    return tp_run(spec, model, software, tp);
}

static void in(sc_run *r, sc_recipe recipe)
{
    r->recipe = recipe;
    r->precision = sc_recipe_precision(recipe);
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

/* More kernels are launched than by `wide`, of this operator. */
static bool casts_more(const network *n, const network *wide, uint32_t kind,
                       const char *name, phase in)
{
    uint32_t own = kernels_of(n, kind, in, name).launches;
    uint32_t was = kernels_of(wide, kind, in, name).launches;
    assert_true(own >= was);
    return own > was;
}

/* Casts stand before every product of low precision, and nowhere else. */
static void casts(void **state)
{
    (void)state;
    static const char *const products[] = {"qkv", "proj", "fc1", "fc2"};
    static const char *const others[] = {"norm", "rope", "attn", "add", "act"};
    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
    network wide = network_of(&r);
    for (uint32_t i = 0; i < SC_N_RECIPES; i++) {
        in(&r, (sc_recipe)i);
        network n = network_of(&r);
        for (int p = FORWARD; p <= BACKWARD; p++) {
            phase of = (phase)p;
            for (size_t k = 0; k < SC_COUNT(products); k++)
                assert_int_equal(casts_more(&n, &wide, 1, products[k], of),
                                 is_low(i));
            for (size_t k = 0; k < SC_COUNT(others); k++)
                assert_false(casts_more(&n, &wide, 1, others[k], of));
            assert_false(casts_more(&n, &wide, 2, "", of));
        }
    }
}

/* Transformer Engine gathers operands over tp after they are cast: an input
 * once forward and once for its product for weights, a gradient with scales per
 * block in blocks of rows and of columns.  Sums stay in 16 bits. */
static void gathers_casts(void **state)
{
    (void)state;

    static const struct {
        sc_recipe recipe;
        double forward, backward; /* of 16 bits */
    } want[] = {{SC_RECIPE_FP8, 0.5, 0.5},
                {SC_RECIPE_MXFP8, 0.5, 0.75},
                {SC_RECIPE_NVFP4, 0.25, 0.375}};

    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 2);
    network wide = network_of(&r);
    for (size_t i = 0; i < SC_COUNT(want); i++) {
        in(&r, want[i].recipe);
        network n = network_of(&r);
        for (int p = FORWARD; p <= BACKWARD; p++) {
            phase of = (phase)p;
            near(moved_over(&n, 1, of, SC_ALL_GATHER, 1u << SC_AX_TP).bytes,
                 (p == FORWARD ? want[i].forward : want[i].backward) *
                     moved_over(&wide, 1, of, SC_ALL_GATHER, 1u << SC_AX_TP)
                         .bytes);
            near(moved_over(&n, 1, of, SC_REDUCE_SCATTER, 0).bytes,
                 moved_over(&wide, 1, of, SC_REDUCE_SCATTER, 0).bytes);
        }
    }
    f.sw = *r.sw;
    f.sw.low_gather = false;
    r.sw = &f.sw;
    network as_before = network_of(&r);
    near(moved_over(&as_before, 1, FORWARD, SC_ALL_GATHER, 0).bytes,
         moved_over(&wide, 1, FORWARD, SC_ALL_GATHER, 0).bytes);
}

/* Precision changes how long a product takes, not what it computes; attention
 * stays in 16 bits. */
static void same_work(void **state)
{
    (void)state;
    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
    double params = segment(&r, 1).params;
    network wide = network_of(&r);
    for (uint32_t i = 0; i < SC_N_RECIPES; i++) {
        in(&r, (sc_recipe)i);
        network n = network_of(&r);
        near(flops_of(&n, 1, ""), flops_of(&wide, 1, ""));
        near(segment(&r, 1).params, params);
        if (i < SC_RECIPE_FP16) continue;
        near(kernels_of(&n, 1, FORWARD, "attn").seconds,
             kernels_of(&wide, 1, FORWARD, "attn").seconds);
    }
}

/* Low-precision products keep one byte per element of what they read.  What
 * attention made stays in 16 bits too, for its own backward pass. */
static void one_byte_kept(void **state)
{
    (void)state;
    for (uint32_t i = SC_RECIPE_FP8; i < SC_N_RECIPES; i++) {
        sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
        double wide = segment(&r, 1).saved;
        in(&r, (sc_recipe)i);
        const sc_transformer *t = &r.model->t;
        double less = (double)(r.mbs * r.seq) *
                      (double)(2 * t->hidden - t->heads * t->head_dim + t->ffn);
        near(wide - segment(&r, 1).saved, less);
    }
}

/* The vocabulary projection is the same in every recipe of 16 bits or less:
 * its product and what it keeps. */
static void head_stays_wide(void **state)
{
    (void)state;
    sc_run r = run_of("b200", "llama3-8b", "megatron-core", 1);
    double kept = segment(&r, 2).saved;
    network wide = network_of(&r);
    for (uint32_t i = SC_RECIPE_FP8; i < SC_N_RECIPES; i++) {
        in(&r, (sc_recipe)i);
        network n = network_of(&r);
        for (int p = FORWARD; p <= BACKWARD; p++)
            near(kernels_of(&n, 2, (phase)p, "lm_head").seconds,
                 kernels_of(&wide, 2, (phase)p, "lm_head").seconds);
        near(segment(&r, 2).saved, kept);
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

static sc_segment recomputed(sc_run *r, sc_recompute kind)
{
    r->recompute = kind;
    return segment(r, 1);
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
            sc_segment none = recomputed(&r, SC_RC_NONE);
            sc_segment some = recomputed(&r, SC_RC_SELECTIVE);
            sc_segment ops = recomputed(&r, SC_RC_OPS);
            sc_segment full = recomputed(&r, SC_RC_FULL);
            assert_true(none.saved > some.saved && some.saved > full.saved);
            assert_true(none.saved > ops.saved && ops.saved > full.saved);
            assert_true(none.bwd_s < some.bwd_s && some.bwd_s < full.bwd_s);
            assert_true(none.bwd_s < ops.bwd_s);
            /* experts' last product is of those that it makes again */
            if (!r.model->t.experts) assert_true(ops.bwd_s < full.bwd_s);
            assert_true(none.fwd_s == some.fwd_s && none.fwd_s == ops.fwd_s &&
                        none.fwd_s == full.fwd_s);
            assert_true(full.working >= none.working);
        }
}

/* Names of what a layer makes again, in the order of its backward pass. */
static const char *again_of(const network *n, uint32_t kind)
{
    sc_text t;
    sc_text_init(&t);
    for (uint32_t i = 0; i < n->prog.n_items; i++) {
        const program_item *it = &n->prog.item[i];
        if (in_layer(n, it, kind, BACKWARD) && it->recomputed &&
            it->exchange == SC_NONE)
            sc_text_add(&t, "%s%s", t.len ? " " : "", name_of(n, it));
    }
    const char *out = sc_sprintf(&f.a, "%s", t.len ? t.buf : "");
    sc_text_free(&t);
    return out;
}

/* Beside fused attention, selective makes again what is cheap: norms and
 * activations, and no product. */
static void selective_is_cheap(void **state)
{
    (void)state;

    static const struct {
        const char *model, *again;
    } rows[] = {{"llama3-8b", "act norm2 norm1"},
                {"mixtral-8x7b", "experts_act norm2 norm1"}};

    for (size_t m = 0; m < SC_COUNT(rows); m++) {
        sc_run r = run_of("h100-sxm", rows[m].model, "megatron-core", 1);
        network none = network_of(&r);
        assert_string_equal(again_of(&none, 1), "");
        r.recompute = SC_RC_SELECTIVE;
        network some = network_of(&r);
        assert_string_equal(again_of(&some, 1), rows[m].again);
        near(flops_of(&some, 1, ""), flops_of(&none, 1, ""));
    }
}

/* Latent attention makes queries, keys and values from their narrow form
 * again. */
static void selective_of_latent(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "deepseek-v2", "megatron-core", 1);
    network none = network_of(&r);
    r.recompute = SC_RC_SELECTIVE;
    network some = network_of(&r);
    double again = 0;
    again += sc_kind_flops(kind_op_in(r.model, 1, "q_up"), r.mbs, r.seq);
    again += sc_kind_flops(kind_op_in(r.model, 1, "kv_up"), r.mbs, r.seq);
    assert_true(again > 0);
    near(flops_of(&some, 1, ""), flops_of(&none, 1, "") + again);
    near(flops_of(&some, 1, "attn"), flops_of(&none, 1, "attn"));
}

/* Where scores are written out, selective is of attention (Korthikanti et al.
 * 2022, section 5). */
static void selective_unfused(void **state)
{
    (void)state;
    sc_run r = run_of("a100-sxm-80g", "gpt3-6.7b", "megatron-lm-2022", 1);
    sc_segment none = recomputed(&r, SC_RC_NONE);
    sc_segment some = recomputed(&r, SC_RC_SELECTIVE);
    network n = network_of(&r);
    assert_string_equal(again_of(&n, 1), "attn");
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
        /* the start and traffic of attention have a part in its time */
        assert_true(fabs(s * slower / flash - 1) < 0.03);
    }
    slopes(low.hw->device, &g, &s);
    double less = pow(700.0 / 500, f.cost.p[SC_P_POWER_HOPPER]);
    assert_true(fabs(s / flash / less - 1) < 0.03);
    assert_true(fabs(g / gemm / less - 1) < 0.01);
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
        assert_true(fabs(s * faster / flash - 1) < 0.03);
    }
}

/* Products under a limit have the rate of a board with that power, and the cube
 * root of the ratio on a class of which no such board is known. */
static void power_limit(void **state)
{
    (void)state;
    double exponent = f.cost.p[SC_P_POWER_HOPPER];

    const struct {
        const char *device;
        double exponent;
    } all[] = {{"h100-sxm", exponent},
               {"a100-sxm-80g", exponent},
               {"b200", f.cost.p[SC_P_POWER_BLACKWELL]},
               {"mi300x", 1 / 3.0},
               {"gaudi3", 1 / 3.0}};

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        sc_run r = run_of(all[i].device, "llama3-8b", "megatron-core", 1);
        const sc_hw *half = NULL;
        double watts = r.hw->device->power_w / 2, full, less, s;
        assert_int_equal(sc_hw_cap(r.hw, watts, &f.a, &half, &f.err), SC_OK);
        slopes(r.hw->device, &full, &s);
        slopes(half->device, &less, &s);
        assert_true(fabs(full / less / pow(0.5, all[i].exponent) - 1) < 0.01);
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

/* Layers whose products stay wide are those of the wide recipe. */
static void wide_layers(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "llama3-8b", "megatron-core", 1);
    sc_segment wide = segment(&r, 1);
    in(&r, SC_RECIPE_FP8);
    sc_segment low = segment(&r, 1);
    assert_int_equal(sc_model_keep_bf16(r.model, "layers.0,layers.30-31",
                                        sc_pos_none(), &f.a, &r.model, &f.err),
                     SC_OK);
    assert_int_equal(r.model->n_layers, 4);
    uint32_t first = r.model->order[0], middle = r.model->order[1];
    assert_int_equal(r.model->layer[first].repeat, 3);
    assert_int_equal(r.model->order[31], first);
    sc_segment a = segment(&r, first), b = segment(&r, middle);
    near(a.fwd_s, wide.fwd_s);
    near(a.bwd_s, wide.bwd_s);
    near(a.saved, wide.saved);
    near(b.fwd_s, low.fwd_s);
    const sc_model *m;
    assert_int_equal(sc_model_keep_bf16(r.model, "layers.*.norm1",
                                        sc_pos_none(), &f.a, &m, &f.err),
                     SC_EINPUT); /* no product */
}

/* Scores of experts are not to be rounded to 8 bits. */
static void router_stays_wide(void **state)
{
    (void)state;
    sc_run r = run_of("h100-sxm", "mixtral-8x7b", "megatron-core", 1);
    network wide = network_of(&r);
    in(&r, SC_RECIPE_FP8);
    network low = network_of(&r);
    double one = kernels_of(&wide, 1, FORWARD, "router").seconds;
    assert_true(one > 0);
    near(kernels_of(&low, 1, FORWARD, "router").seconds, one);
    assert_false(casts_more(&low, &wide, 1, "router", FORWARD));
    static const char *const products[] = {"qkv", "proj", "experts_fc1",
                                           "experts_fc2"};
    for (size_t i = 0; i < SC_COUNT(products); i++)
        assert_true(casts_more(&low, &wide, 1, products[i], FORWARD));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(precision_of_recipe),
                                       TEST(names_of_profiles),
                                       TEST(casts),
                                       TEST(same_work),
                                       TEST(gathers_casts),
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
                                       TEST(power_limit),
                                       TEST(power_and_memory),
                                       TEST(wide_layers),
                                       TEST(router_stays_wide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
