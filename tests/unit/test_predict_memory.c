/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of FSDP2 and pipelines by hand: bytes per token and parameter, as
 * torchtitan allocates them.
 */
#include "predict/predict.h"
#include "unit.h"

#include <math.h>

static struct {
    sc_arena a;
    sc_err err;
    sc_cost cost;
} f;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&f.a, 0);
    sc_err_init(&f.err);
    sc_cost_centres(&f.cost);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&f.a);
    return 0;
}

/* Llama 3 8B. */
enum { H = 4096, F = 14336, KV = 1024, HEADS = 32, V = 128256, L = 32 };

static const double one_layer = (double)H * (2 * H + 2 * KV + 3 * F + 2);
static const double table = (double)V * H; /* embedding; as many in the head */
static const double tokens = 2 * 8192;

static sc_run fsdp(const char *model, const char *software)
{
    sc_run r = {.cost = &f.cost,
                .size = {1, 8, 1, 1, 1},
                .vpp = 1,
                .mbs = 2,
                .ga = 1,
                .gbs = 16,
                .seq = 8192,
                .zero = 3,
                .recompute = SC_RC_OPS,
                .recipe = SC_RECIPE_BF16,
                .precision = SC_BF16};
    assert_int_equal(
        sc_hw_build("dgx-h100:1", sc_pos_none(), &f.a, &r.hw, &f.err), SC_OK);
    assert_int_equal(
        sc_model_load(model, sc_pos_none(), &f.a, &r.model, &f.err), SC_OK);
    assert_int_equal(
        sc_software_find(software, NULL, sc_pos_none(), &f.a, &r.sw, &f.err),
        SC_OK);
    return r;
}

static const sc_stage_memory *memory(const sc_run *r)
{
    sc_plan p;
    sc_segment *k = NULL;
    assert_int_equal(sc_plan_build(r, &f.a, &p, &f.err), SC_OK);
    assert_int_equal(sc_segments_price(&p, &f.a, &k, &f.err), SC_OK);
    sc_stage_memory *m = SC_NEW_N(&f.a, sc_stage_memory, r->size[SC_AX_PP]);
    assert_non_null(m);
    assert_int_equal(sc_predict_memory(&p, k, &f.a, m, &f.err), SC_OK);
    return m;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%.12g instead of %.12g", got, want);
}

/* Hand counts leave out tokens themselves and what the loss keeps of each. */
static void near_activations(const sc_stage_memory *m, double per_token)
{
    if (!(fabs(m->activations / tokens - per_token) <= 1e-4 * per_token))
        fail_msg("%.12g bytes per token instead of %.12g",
                 m->activations / tokens, per_token);
}

/* Without a compiler the checkpoint also holds what the last product made, the
 * seventh of a layer, which nothing reads again. */
static void last_product_is_held(void **state)
{
    (void)state;
    sc_software eager;
    sc_run r = fsdp("llama3-8b", "torchtitan-2024");
    double compiled = memory(&r)->activations;
    eager = *r.sw;
    eager.single_pass = false;
    r.sw = &eager;
    near((memory(&r)->activations - compiled) / tokens, L * 2.0 * H);
}

/* Kept per token and layer under per-operator checkpointing: the input, q, v,
 * attention's output with a float per head, the gate's output. */
static const double kept = 2 * (H + H + KV + H + F) + 4 * HEADS;

/* The worst moment is the loss: bf16 logits, log-softmax, and the gradients
 * of both its steps, 2 + 3 x 4 bytes per logit. */
static void llama_8b_on_8(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2024");
    double n = L * one_layer + 2 * table + H;
    near((double)r.model->params, n);
    const sc_stage_memory *m = memory(&r);
    /* fp32 shards; embedding, head and one layer in bf16, and once more in
     * the buffers of the gathers */
    near(m->weights, 4 * n / 8 + 2 * 2 * (2 * table + H + one_layer));
    near(m->gradients, 4 * n / 8);
    near(m->optimizer, 8 * n / 8);
    near_activations(m, L * kept + 2 * 2 * H + 14.0 * V);
    assert_true(m->communication == 0);
    assert_string_equal(m->worst, "head");
    near(m->allocated, m->weights + m->gradients + m->optimizer +
                           m->activations + m->communication + m->other);
    near(m->peak,
         m->other + (m->allocated - m->other) * (1 + r.sw->fragmentation));
}

/* A compiled loss keeps bf16 logits and makes their gradients beside them: the
 * worst moment.  When a layer runs backward both are gone. */
static void compiled_loss(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2025");
    const sc_stage_memory *m = memory(&r);
    near_activations(m, L * kept + 2 * 2 * H + 4.0 * V);
    near(m->gradients, 4 * (double)r.model->params / 8);
    assert_string_equal(m->worst, "head");
}

/* Few tokens: the gradients of embedding and head, reduced last, need most. */
static void root_gradients(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2024");
    r.mbs = 1;
    r.gbs = 8;
    r.seq = 64;
    const sc_stage_memory *m = memory(&r);
    assert_true(m->activations == 0);
    assert_string_equal(m->worst, "the last reduction");
    near(m->gradients,
         4 * (double)r.model->params / 8 + (2 + 4) * (2 * table + H));
}

static double working(const sc_run *r)
{
    sc_plan p;
    sc_segment *k = NULL;
    assert_int_equal(sc_plan_build(r, &f.a, &p, &f.err), SC_OK);
    assert_int_equal(sc_segments_price(&p, &f.a, &k, &f.err), SC_OK);
    return k[1].working / tokens;
}

/* Full recomputation keeps inputs only: the loss is the worst moment. */
static void full(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2025");
    r.recompute = SC_RC_FULL;
    near_activations(memory(&r), L * 2.0 * H + 2 * 2 * H + 4.0 * V);
}

/* Weights that learn are kept in 4 bytes, frozen ones as products read them, in
 * 2 bytes, or 1 where products are of 8 bits. They have neither gradients nor
 * states. All of them are gathered in 2 bytes. */
static void frozen_weights(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2024");
    assert_int_equal(sc_model_freeze(r.model, "layers.0-15",
                                     sc_pos_file("--freeze"), &f.a, &r.model,
                                     &f.err),
                     SC_OK);
    double frozen = 16 * one_layer, learn = 16 * one_layer + 2 * table + H;
    double gathers = 2 * 2 * (2 * table + H + one_layer);
    const sc_stage_memory *m = memory(&r);
    near(m->weights, 4 * learn / 8 + 2 * frozen / 8 + gathers);
    near(m->gradients, 4 * learn / 8);
    near(m->optimizer, 8 * learn / 8);
    r.recipe = SC_RECIPE_FP8;
    r.precision = SC_FP8;
    near(memory(&r)->weights, 4 * learn / 8 + frozen / 8 + gathers);
}

/* A layer that was made again, where its activation runs backward: inputs of
 * the other three products, the sum between, q, k, v, a float per head, gate and
 * up; the residual gradient; gradients of gate, up and their product, which are
 * 3 F.
 *
 * Products in 8 bits keep inputs of a byte, but what attention made stays.  The
 * most is then at the weight gradient of the last product: its gradient there in
 * 16 bits and twice in 8, its operand in 16 bits and turned in 8. */
static void made_again(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2025");
    r.recompute = SC_RC_FULL;
    double qkv = 2 * (H + 2 * KV) + 4 * HEADS;
    near(working(&r), 4 * 2 * H + qkv + 4.0 * F + 2 * H + 2 * 3.0 * F);
    r.recipe = SC_RECIPE_FP8;
    r.precision = SC_FP8;
    double inputs = 3 * H + 2 * H, grads = 2 * H + 2 * H + 2 * F;
    near(working(&r),
         inputs + 2 * H + qkv + 4.0 * F + 2 * F + grads + 2 * H + F);
}

/* Layers that are recomputed together keep one input: groups of two keep 16,
 * groups of three 11. In groups of three the worst moment is no longer the
 * loss, but the backward pass of a group's last layer. The other two have by
 * then saved what they save without recomputation: inputs of both norms, the
 * four products and attention, and gate and up. */
static void recomputed_together(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2025");
    double head = 2 * 2 * H + 4.0 * V;
    double layer =
        2 * (H + H + (H + 2 * KV) + H + H + H + 2 * F + F) + 4 * HEADS;
    r.recompute = SC_RC_NONE;
    near_activations(memory(&r), L * layer + head);
    r.recompute = SC_RC_FULL;
    r.rc_group = 2;
    near_activations(memory(&r), 16 * 2.0 * H + head);
    r.rc_group = 3;
    const sc_stage_memory *m = memory(&r);
    assert_string_not_equal(m->worst, "head");
    near_activations(m, 11 * 2.0 * H + 2 * layer + working(&r));
}

/* Over tensor-parallel ranks the loss holds a temporary more, and the head its
 * gathered input. */
static void split_loss(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2024");
    r.size[SC_AX_DP] = 1;
    r.size[SC_AX_TP] = 8;
    r.sp = true;
    r.gbs = 2;
    r.recompute = SC_RC_FULL;
    near_activations(memory(&r), (L + 1) * 2.0 * H / 8 + 2 * H + 18.0 * V / 8);
    r.sw = fsdp("llama3-8b", "megatron-core").sw;
    r.zero = 0;
    near_activations(memory(&r), (L + 2) * 2.0 * H / 8 + 8.0 * V / 8);
}

/* With stages weights stay gathered and gradients whole in fp32; receive
 * buffers for all micro-batches, and the last stage's logits. */
static void pipeline(void **state)
{
    (void)state;
    sc_run r = fsdp("llama3-8b", "torchtitan-2024");
    r.size[SC_AX_PP] = 4;
    r.size[SC_AX_DP] = 2;
    r.mbs = 1;
    r.ga = 8;
    r.recompute = SC_RC_FULL;
    const sc_stage_memory *m = memory(&r);
    double n = 8 * one_layer, first = n + table, last = first + H;
    double send = 2.0 * 8192 * H, s = 8192;
    near(m[0].weights, 4 * first / 2 + 2 * (first + table + one_layer));
    near(m[1].weights, 4 * n / 2 + 2 * (n + one_layer));
    near(m[1].gradients, 4 * n / 2 + 4 * n + 2 * one_layer);
    near(m[1].communication, 2 * 8 * send);
    near(m[3].communication, 2 * 8 * send + 7 * 2 * s * V);
    near(m[3].weights, 4 * last / 2 + 2 * (last + table + H + one_layer));
    /* what it sends on is not kept, what it was sent is */
    double at_act = 2 * (H + H + 2 * KV + H + H + H + H) + 4 * HEADS + 10.0 * F;
    near(m[1].activations, s * (3 * 8 * 2.0 * H + at_act));
    /* Megatron: what is under way only */
    r.sw = fsdp("llama3-8b", "megatron-core").sw;
    r.zero = 0;
    m = memory(&r);
    near(m[1].communication, 4 * send + r.sw->bucket_bytes);
    near(m[1].gradients, 4 * n);
}

/* torchtitan prints what its allocator holds. */
static void reported(void **state)
{
    (void)state;
    sc_stage_memory m[2] = {{.peak = 30, .other = 2}, {.peak = 31, .other = 5}};
    sc_prediction p = {.run = fsdp("llama3-8b", "torchtitan-2024"),
                       .n_stages = 2,
                       .memory = m};
    assert_true(sc_predict_reported_memory(&p) == 28);
    p.run.sw = fsdp("llama3-8b", "megatron-core").sw;
    assert_true(sc_predict_reported_memory(&p) == 31);
}

/* Rows of measured tables name a program and a date. */
static void generations(void **state)
{
    (void)state;

    static const struct {
        const char *name, *date, *profile;
    } cases[] = {
        {"torchtitan (pytorch fsdp2)", "2024-12", "torchtitan-2024"},
        {"torchtitan (pytorch fsdp2)", "2025-06", "torchtitan-2025"},
        {"torchtitan (pytorch fsdp2) eager", "2024-12",
         "torchtitan-eager-2024"},
        {"torchtitan", NULL, "torchtitan-2025"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        const sc_software *sw = NULL;
        assert_int_equal(sc_software_find(cases[i].name, cases[i].date,
                                          sc_pos_none(), &f.a, &sw, &f.err),
                         SC_OK);
        assert_string_equal(sw->name, cases[i].profile);
    }
}

/* What its allocator holds beside: 4 % of all but the context. */
static void reserved(void **state)
{
    (void)state;
    sc_job job;
    sc_inputs in;
    sc_prediction p;
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100";
    job.software = "torchtitan-2025";
    job.mbs = 1;
    job.gbs = 8;
    job.seq = 2048;
    job.zero = 3;
    job.brief = true;
    assert_int_equal(sc_predict_load(&job, &f.a, &in, &f.err), SC_OK);
    assert_int_equal(
        sc_predict(&job, in.hw, in.model, in.sw, in.cost, &f.a, &p, &f.err),
        SC_OK);
    const sc_stage_memory *m = &p.memory[0];
    double context = p.run.sw->memory_overhead;
    assert_true(p.run.sw->fragmentation == 0.04);
    assert_true(m->peak - context >= 1.04 * (m->allocated - context) - 1);
    assert_true(m->peak - context <= 1.2 * (m->allocated - context));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(llama_8b_on_8),
                                       TEST(compiled_loss),
                                       TEST(root_gradients),
                                       TEST(full),
                                       TEST(recomputed_together),
                                       TEST(frozen_weights),
                                       TEST(made_again),
                                       TEST(split_loss),
                                       TEST(pipeline),
                                       TEST(reported),
                                       TEST(generations),
                                       TEST(reserved),
                                       TEST(last_product_is_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
