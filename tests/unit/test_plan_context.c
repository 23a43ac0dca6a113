/* SPDX-License-Identifier: Apache-2.0 */
/* Context parallelism: ranks share the tokens of a sequence; every query
 * meets all keys. */
#include "kinds.h"
#include "network.h"

#include <stdio.h>

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

/* Keys and values of all tokens on one rank of tp, bytes.  The part of latent
 * keys that has the positions, 64 of 192, is one for all heads. */
static double all_keys(const sc_run *r)
{
    const sc_net_op *o = kind_op_in(r->model, 1, "attn");
    const sc_transformer *t = &r->model->t;
    double key = t->kv_rank > 0 ? (double)t->qk_nope : o->qk_dim;
    return 2.0 * (double)(r->mbs * r->seq) * o->kv_heads * (key + o->v_dim) /
           r->size[SC_AX_TP];
}

/* Parts that axes do not divide are padded to whole bytes. */
static void near_bytes(double got, double want)
{
    near_by(got, want, 1e-6);
}

/* Items over cp of a pass are of these kinds only. */
static void no_other(const network *n, phase in, uint32_t allowed)
{
    for (int c = 0; c < SC_N_COLLS; c++)
        if (!(allowed >> c & 1))
            assert_int_equal(moved_over(n, 1, in, (sc_coll)c, CP).n, 0);
}

/* Gathered whole in both passes, their gradients scattered; or the same bytes
 * in cp - 1 steps of one part each: Liu et al. 2023, section 3. */
static void gathered(void **state)
{
    (void)state;
    static const int comms[] = {SC_CP_ALLGATHER, SC_CP_RING};
    static const uint32_t allowed =
        1u << SC_ALL_GATHER | 1u << SC_REDUCE_SCATTER;
    for (size_t i = 0; i < SC_COUNT(models) * SC_COUNT(comms); i++)
        for (uint32_t tp = 1; tp <= 4; tp *= 2)
            for (uint32_t cp = 1; cp <= 8; cp *= 2) {
                sc_run r = run_with(models[i / 2], comms[i % 2], cp, tp);
                network n = network_of(&r);
                double v = cp > 1 ? all_keys(&r) : 0;
                near_bytes(moved_over(&n, 1, FORWARD, SC_ALL_GATHER, CP).bytes,
                           v);
                near_bytes(moved_over(&n, 1, BACKWARD, SC_ALL_GATHER, CP).bytes,
                           v);
                near_bytes(
                    moved_over(&n, 1, BACKWARD, SC_REDUCE_SCATTER, CP).bytes,
                    v);
                no_other(&n, FORWARD, 1u << SC_ALL_GATHER);
                no_other(&n, BACKWARD, allowed);
                uint32_t rings = 0;
                for (uint32_t k = 0; k < n.plan.n_exchanges; k++)
                    rings += n.plan.exchange[k].ring;
                assert_true((rings > 0) ==
                            (cp > 1 && comms[i % 2] == SC_CP_RING));
                sc_arena_reset(&f.a);
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
                network n = network_of(&r);
                const sc_net_op *o = kind_op_in(r.model, 1, "attn");
                double heads = (double)r.model->t.heads;
                double tokens = 2.0 * (double)(r.mbs * r.seq) / tp / cp;
                double v = cp == 1
                               ? 0
                               : all_keys(&r) / cp +
                                     tokens * heads * (o->qk_dim + o->v_dim);
                near_bytes(moved_over(&n, 1, FORWARD, SC_ALL_TO_ALL, CP).bytes,
                           v);
                near_bytes(moved_over(&n, 1, BACKWARD, SC_ALL_TO_ALL, CP).bytes,
                           v);
                no_other(&n, FORWARD, 1u << SC_ALL_TO_ALL);
                no_other(&n, BACKWARD, 1u << SC_ALL_TO_ALL);
                sc_arena_reset(&f.a);
            }
}

/* A ring hides behind attention what a gather shows whole. */
static void ring_is_hidden(void **state)
{
    (void)state;
    for (uint32_t cp = 2; cp <= 8; cp *= 2) {
        sc_run r = run_with("llama3-8b", SC_CP_RING, cp, 1);
        double shown = segment(&r, 1).fwd_cat[SC_CAT_CP];
        r = run_with("llama3-8b", SC_CP_ALLGATHER, cp, 1);
        double whole = segment(&r, 1).fwd_cat[SC_CAT_CP];
        assert_true(shown > 0 && shown < whole);
    }
}

/* Of values that exchanges over cp make or take in the backward pass of a layer. */
static double held(const network *n, sc_coll coll, bool made)
{
    double sum = 0;
    for (uint32_t i = 0; i < n->prog.n_items; i++) {
        const program_item *it = &n->prog.item[i];
        if (!in_layer(n, it, 1, BACKWARD) || !moves_tokens(n, it)) continue;
        const sc_net_exchange *x = &n->plan.exchange[it->exchange];
        if (x->coll != coll || axes_of(n, x->axes) != CP) continue;
        if (made) sum += n->prog.value[it->out].bytes;
        for (uint32_t k = 0; k < it->n_in && !made; k++)
            sum += n->prog.value[it->in[k]].bytes;
    }
    return sum;
}

/* While keys and their gradients go round there are two parts of either, the one
 * that is worked on and the one on its way; a gather has all of them. */
static void two_parts_in_a_ring(void **state)
{
    (void)state;
    for (uint32_t cp = 2; cp <= 8; cp *= 2)
        for (int comm = SC_CP_RING; comm <= SC_CP_ALLGATHER; comm++) {
            sc_run r = run_with("llama3-8b", comm, cp, 1);
            network n = network_of(&r);
            double parts = comm == SC_CP_RING ? 2 : cp;
            near_bytes(held(&n, SC_ALL_GATHER, true),
                       all_keys(&r) * parts / cp);
            near_bytes(held(&n, SC_REDUCE_SCATTER, false),
                       all_keys(&r) * parts / cp);
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
    network all = network_of(&one);
    for (uint32_t l = 0; l < one.model->n_layers; l++) {
        sc_segment whole = segment(&one, l);
        for (uint32_t cp = 2; cp <= 8; cp *= 2) {
            sc_run r = run_of(model, software, 1, 1, cp, 1);
            sc_segment b = segment(&r, l);
            network n = network_of(&r);
            near(b.saved * cp, whole.saved);
            near(flops_of(&n, l, "") * cp, flops_of(&all, l, ""));
            near(b.params, whole.params);
        }
    }
}

/* Whatever way keys come, a rank has its share of tokens or heads.  Where heads
 * were exchanged, what attention made is kept as it left it, for its own
 * backward pass, and as the projection reads it. */
static void divided_any_way(void **state)
{
    (void)state;
    for (int comm = SC_CP_RING; comm <= SC_CP_ULYSSES; comm++) {
        sc_run one = run_with("llama3-8b", comm, 1, 1);
        sc_segment whole = segment(&one, 1);
        network all = network_of(&one);
        for (uint32_t cp = 2; cp <= 8; cp *= 2) {
            sc_run r = run_with("llama3-8b", comm, cp, 1);
            sc_segment b = segment(&r, 1);
            network n = network_of(&r);
            double twice = comm == SC_CP_ULYSSES ? 2.0 * 8192 * 4096 : 0;
            near(b.saved * cp, whole.saved + twice);
            near(flops_of(&n, 1, "") * cp, flops_of(&all, 1, ""));
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

static void attention_divided(void **state)
{
    (void)state;
    sc_run one = run_of("llama3-8b", "megatron-core", 1, 1, 1, 1);
    network whole = network_of(&one);
    double fwd = kernels_of(&whole, 1, FORWARD, "attn").flops;
    double bwd = kernels_of(&whole, 1, BACKWARD, "attn").flops;
    assert_true(fwd > 0);
    near(bwd, 2.5 * fwd); /* five products instead of two */
    for (uint32_t cp = 2; cp <= 8; cp *= 2) {
        sc_run r = run_of("llama3-8b", "megatron-core", 1, 1, cp, 1);
        network n = network_of(&r);
        near(kernels_of(&n, 1, FORWARD, "attn").flops * cp, fwd);
        near(kernels_of(&n, 1, BACKWARD, "attn").flops * cp, bwd);
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
            sc_segment b = segment(&r, 1);
            uint32_t sum = CP | (dp > 1 ? 1u << SC_AX_DP : 0);
            near(bytes_over(&b.grad, sum), b.params * r.sw->reduce_bytes);
            near(bytes_over(&b.grad, sum), b.grad.bytes);
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
            sc_segment *b;
            sc_step_costs c;
            assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_OK);
            assert_int_equal(sc_segments_price(&p, &f.a, &b, &f.err), SC_OK);
            assert_int_equal(sc_plan_step_costs(&p, b, 0, NULL, &c, &f.err),
                             SC_OK);
            near(sc_run_send_bytes(&r), 2.0 * (double)(r.mbs * r.seq) *
                                            (double)r.model->t.hidden /
                                            (cp * tp));
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
        TEST(gathered),          TEST(ulysses),
        TEST(ring_is_hidden),    TEST(two_parts_in_a_ring),
        TEST(heads_divide),      TEST(divided_any_way),
        TEST(tokens_divided),    TEST(tokens_divided_unfused),
        TEST(attention_divided), TEST(replicas_of_weights),
        TEST(transfers),         TEST(sequence_divides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
