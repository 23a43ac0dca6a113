/* SPDX-License-Identifier: Apache-2.0 */
/* Context parallelism: ranks share the tokens of a sequence; every query
 * meets all keys. */
#include "plan/plan_internal.h"
#include "prediction.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CP (1u << SC_AX_CP)

static sc_run run_of(const char *model, const char *software, uint32_t pp,
                     uint32_t dp, uint32_t cp, uint32_t tp)
{
    sc_run r = {.size = {pp, dp, 1, cp, tp},
                .vpp = 1,
                .mbs = 2,
                .ga = 2,
                .gbs = 4 * dp,
                .seq = 4096,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16,
                .sp = tp > 1};
    char spec[32];
    snprintf(spec, sizeof spec, "h100-sxm:%u", pp * dp * cp * tp);
    load_run(&r, spec, model, software);
    return r;
}

static const sc_operator *attention_of(const sc_model *m, uint32_t layer)
{
    for (uint32_t i = 0; i < m->layer[layer].n_ops; i++)
        if (m->layer[layer].op[i].type == SC_ATTENTION)
            return &m->layer[layer].op[i];
    fail();
    return NULL;
}

/* Collectives over cp: as many gathers and scatters, of these bytes. */
static void over_cp(const sc_piece *p, uint32_t n, uint32_t gathers,
                    uint32_t scatters, double bytes)
{
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].kind != SC_OP_COLL || !(p[i].axes & CP)) continue;
        assert_int_equal(p[i].axes, CP);
        near(p[i].bytes, bytes);
        gathers -= p[i].coll == SC_ALL_GATHER;
        scatters -= p[i].coll == SC_REDUCE_SCATTER;
    }
    assert_int_equal(gathers, 0);
    assert_int_equal(scatters, 0);
}

/* Grouped, multi-head and latent keys and values. */
static const char *const models[] = {"llama3-8b", "gpt3-6.7b", "deepseek-v2"};

static void keys_and_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(models); i++)
        for (uint32_t tp = 1; tp <= 4; tp *= 2)
            for (uint32_t cp = 1; cp <= 8; cp *= 2) {
                sc_run r = run_of(models[i], "megatron-core", 1, 1, cp, tp);
                sc_block b = block(&r, 1);
                const sc_operator *o = attention_of(r.model, 1);
                double v = 2.0 * (double)(r.mbs * r.seq) * o->kv_heads *
                           (o->qk_dim + o->v_dim) / tp;
                uint32_t n = cp > 1;
                over_cp(b.fwd, b.n_fwd, n, 0, v);
                over_cp(b.bwd, b.n_bwd, n, n, v);
            }
}

/* Activations kept and FLOP done are divided by cp, in every layer. */
static void divides(const char *model, const char *software)
{
    sc_run one = run_of(model, software, 1, 1, 1, 1);
    for (uint32_t l = 0; l < one.model->n_layers; l++) {
        sc_block whole = block(&one, l);
        for (uint32_t cp = 2; cp <= 8; cp *= 2) {
            sc_run r = run_of(model, software, 1, 1, cp, 1);
            sc_block b = block(&r, l);
            near(b.saved * cp, whole.saved);
            near(b.working * cp, whole.working);
            near(b.flops * cp, whole.flops);
            near(b.params, whole.params);
        }
    }
}

static void tokens_divided(void **state)
{
    (void)state;
    static const char *const whole[] = {"llama3-8b", "gpt3-6.7b",
                                        "mixtral-8x7b"};
    for (size_t i = 0; i < SC_COUNT(whole); i++)
        divides(whole[i], "megatron-core");
}

/* Scores that are written out: a rank has those of its own queries. */
static void tokens_divided_unfused(void **state)
{
    (void)state;
    divides("gpt3-6.7b", "megatron-lm-2022");
}

static double attention_flops(const sc_piece *p, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(p[i].name, "attention") == 0) sum += p[i].flops;
    return sum;
}

static void attention_divided(void **state)
{
    (void)state;
    sc_run one = run_of("llama3-8b", "megatron-core", 1, 1, 1, 1);
    sc_block whole = block(&one, 1);
    double fwd = attention_flops(whole.fwd, whole.n_fwd);
    double bwd = attention_flops(whole.bwd, whole.n_bwd);
    assert_true(fwd > 0);
    near(bwd, 2.5 * fwd); /* five products instead of two */
    for (uint32_t cp = 2; cp <= 8; cp *= 2) {
        sc_run r = run_of("llama3-8b", "megatron-core", 1, 1, cp, 1);
        sc_block b = block(&r, 1);
        near(attention_flops(b.fwd, b.n_fwd) * cp, fwd);
        near(attention_flops(b.bwd, b.n_bwd) * cp, bwd);
    }
}

/* Ranks of cp have the same weights and other tokens: gradients are summed
 * over them too, and ZeRO counts them as replicas. */
static void replicas_of_weights(void **state)
{
    (void)state;
    for (uint32_t dp = 1; dp <= 2; dp++)
        for (int z = 0; z <= 3; z++) {
            sc_run r = run_of("llama3-8b", "megatron-core", 1, dp, 4, 1);
            r.zero = z;
            sc_block b = block(&r, 1);
            uint32_t over = CP | (dp > 1 ? 1u << SC_AX_DP : 0);
            near(b.grad.bytes[over], b.params * r.sw->reduce_bytes);
            near(b.grad.bytes[over], b.grad_bytes);
            near(b.optim_kept, b.params / (z >= 1 ? 4 * dp : 1));
            near(b.grads_kept, b.params / (z >= 2 ? 4 * dp : 1));
            near(b.params_kept, b.params / (z >= 3 ? 4 * dp : 1));
        }
}

/* A stage hands on the tokens that its ranks have. */
static void transfers(void **state)
{
    (void)state;
    for (uint32_t tp = 1; tp <= 2; tp++)
        for (uint32_t cp = 1; cp <= 4; cp *= 2) {
            sc_run r = run_of("llama3-8b", "megatron-core", 2, 1, cp, tp);
            sc_plan p;
            sc_block *b;
            sc_step_costs c;
            assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_OK);
            assert_int_equal(sc_blocks_price(&p, &f.a, &b, &f.err), SC_OK);
            assert_int_equal(sc_plan_step_costs(&p, b, 0, &c, &f.err), SC_OK);
            near(c.send_bytes, 2.0 * (double)(r.mbs * r.seq) *
                                   (double)r.model->t.hidden / (cp * tp));
        }
}

/* All ranks have as many tokens. */
static void sequence_divides(void **state)
{
    (void)state;
    sc_plan p;
    sc_run r = run_of("llama3-8b", "megatron-core", 1, 1, 4, 2);
    static const uint64_t bad[] = {1001, 4098, 4100};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        r.seq = bad[i];
        sc_err_init(&f.err);
        assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_EINPUT);
        assert_int_equal(f.err.d[0].code, SC_C_DIVIDE);
    }
    r.seq = 4104;
    assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_OK);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_and_values),        TEST(tokens_divided),
        TEST(tokens_divided_unfused), TEST(attention_divided),
        TEST(replicas_of_weights),    TEST(transfers),
        TEST(sequence_divides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
