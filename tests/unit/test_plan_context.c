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

/* Collectives over cp: of each kind as many, of bytes that add up. */
typedef struct over {
    uint32_t n[SC_N_COLLS];
    double bytes[SC_N_COLLS], seconds;
} over;

static over over_cp(const sc_piece *p, uint32_t n)
{
    over sum = {{0}, {0}, 0};
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].kind != SC_OP_COLL || !(p[i].axes & CP)) continue;
        assert_int_equal(p[i].axes, CP);
        sum.n[p[i].coll]++;
        sum.bytes[p[i].coll] += p[i].bytes;
        sum.seconds += p[i].seconds;
    }
    return sum;
}

/* Grouped, multi-head and latent keys and values. */
static const char *const models[] = {"llama3-8b", "gpt3-6.7b", "deepseek-v2"};

static sc_run run_with(const char *model, int comm, uint32_t cp, uint32_t tp)
{
    sc_run r = run_of(model, "megatron-core", 1, 1, cp, tp);
    f.sw = *r.sw;
    f.sw.cp_comm = comm;
    r.sw = &f.sw;
    return r;
}

/* Keys and values of all tokens on one rank of tp, bytes. */
static double all_keys(const sc_run *r)
{
    const sc_operator *o = attention_of(r->model, 1);
    return 2.0 * (double)(r->mbs * r->seq) * o->kv_heads *
           (o->qk_dim + o->v_dim) / r->size[SC_AX_TP];
}

/* Gathered whole in both passes; their gradients scattered. */
static void gathered(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(models); i++)
        for (uint32_t tp = 1; tp <= 4; tp *= 2)
            for (uint32_t cp = 1; cp <= 8; cp *= 2) {
                sc_run r = run_with(models[i], SC_CP_ALLGATHER, cp, tp);
                sc_block b = block(&r, 1);
                over fwd = over_cp(b.fwd, b.n_fwd);
                over bwd = over_cp(b.bwd, b.n_bwd);
                double v = cp > 1 ? all_keys(&r) : 0;
                near(fwd.bytes[SC_ALL_GATHER], v);
                near(bwd.bytes[SC_ALL_GATHER], v);
                near(bwd.bytes[SC_REDUCE_SCATTER], v);
                assert_int_equal(fwd.n[SC_SENDRECV] + bwd.n[SC_SENDRECV], 0);
            }
}

/* The same in cp - 1 steps of one part each: Liu et al. 2023, section 3. */
static void in_a_ring(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(models); i++)
        for (uint32_t tp = 1; tp <= 4; tp *= 2)
            for (uint32_t cp = 1; cp <= 8; cp *= 2) {
                sc_run r = run_with(models[i], SC_CP_RING, cp, tp);
                sc_block b = block(&r, 1);
                over fwd = over_cp(b.fwd, b.n_fwd);
                over bwd = over_cp(b.bwd, b.n_bwd);
                double v = all_keys(&r) * (cp - 1) / cp;
                near(fwd.bytes[SC_SENDRECV], v);
                near(bwd.bytes[SC_SENDRECV], 2 * v);
                assert_int_equal(fwd.n[SC_ALL_GATHER] + bwd.n[SC_ALL_GATHER],
                                 0);
            }
}

/* Queries, keys and values change tokens for heads, the output changes back
 * (Jacobs et al. 2023, section 3): a rank's share of each, both ways. */
static void ulysses(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(models); i++)
        for (uint32_t tp = 1; tp <= 2; tp *= 2)
            for (uint32_t cp = 1; cp <= 4; cp *= 2) {
                sc_run r = run_with(models[i], SC_CP_ULYSSES, cp, tp);
                sc_block b = block(&r, 1);
                const sc_operator *o = attention_of(r.model, 1);
                over fwd = over_cp(b.fwd, b.n_fwd);
                over bwd = over_cp(b.bwd, b.n_bwd);
                double heads = (double)r.model->t.heads;
                double tokens = 2.0 * (double)(r.mbs * r.seq) / tp / cp;
                double v = cp == 1
                               ? 0
                               : all_keys(&r) / cp +
                                     tokens * heads * (o->qk_dim + o->v_dim);
                near(fwd.bytes[SC_ALL_TO_ALL], v);
                near(bwd.bytes[SC_ALL_TO_ALL], v);
                assert_int_equal(fwd.n[SC_ALL_TO_ALL], cp > 1 ? 3 : 0);
                assert_int_equal(fwd.n[SC_SENDRECV], 0);
            }
}

/* A ring shows what a step takes beyond its share of attention and what both
 * lose; a gather shows whole. */
static void ring_is_hidden(void **state)
{
    (void)state;
    for (uint32_t cp = 2; cp <= 8; cp *= 2) {
        sc_run r = run_with("llama3-8b", SC_CP_RING, cp, 1);
        double shown = 0, att = 0;
        sc_block b = block(&r, 1);
        shown = over_cp(b.fwd, b.n_fwd).seconds;
        for (uint32_t i = 0; i < b.n_fwd; i++)
            if (strcmp(b.fwd[i].name, "attention") == 0)
                att += b.fwd[i].seconds;
        sc_plan p;
        sc_coll_price step;
        assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_OK);
        assert_int_equal(sc_cost_coll(&f.cost, r.hw, SC_SENDRECV,
                                      all_keys(&r) / cp, &p.place[CP], -1,
                                      &step, &f.err),
                         SC_OK);
        double both = fmin(step.seconds, att / cp);
        near(shown, (cp - 1) * (step.seconds - both +
                                both * step.channels / r.hw->device->units));
        sc_run g = run_with("llama3-8b", SC_CP_ALLGATHER, cp, 1);
        b = block(&g, 1);
        assert_true(over_cp(b.fwd, b.n_fwd).seconds > shown);
    }
}

/* Whole heads of keys move to ranks. */
static void heads_divide(void **state)
{
    (void)state;
    sc_plan p;
    sc_run r = run_with("llama3-8b", SC_CP_ULYSSES, 4, 2);
    assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_OK);
    r = run_with("llama3-8b", SC_CP_ULYSSES, 8, 2); /* 8 heads of keys */
    assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_DIVIDE);
    assert_string_equal(f.err.d[0].file, "--cp-comm ulysses");
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

/* Whatever way keys come, a rank has its share of tokens or heads. */
static void divided_any_way(void **state)
{
    (void)state;
    for (int comm = SC_CP_RING; comm <= SC_CP_ULYSSES; comm++) {
        sc_run one = run_with("llama3-8b", comm, 1, 1);
        sc_block whole = block(&one, 1);
        for (uint32_t cp = 2; cp <= 8; cp *= 2) {
            sc_run r = run_with("llama3-8b", comm, cp, 1);
            sc_block b = block(&r, 1);
            near(b.saved * cp, whole.saved);
            near(b.flops * cp, whole.flops);
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
            uint32_t sum = CP | (dp > 1 ? 1u << SC_AX_DP : 0);
            near(b.grad.bytes[sum], b.params * r.sw->reduce_bytes);
            near(b.grad.bytes[sum], b.grad_bytes);
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
        TEST(gathered),          TEST(in_a_ring),
        TEST(ulysses),           TEST(ring_is_hidden),
        TEST(heads_divide),      TEST(divided_any_way),
        TEST(tokens_divided),    TEST(tokens_divided_unfused),
        TEST(attention_divided), TEST(replicas_of_weights),
        TEST(transfers),         TEST(sequence_divides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
