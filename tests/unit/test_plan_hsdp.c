/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrid sharding: states sharded in groups of ranks, summed across them. */
#include "kinds.h"
#include "prediction.h"

#include <stdio.h>
#include <string.h>

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

#define DP  (1u << SC_AX_DP)
#define REP (1u << SC_AX_REP)

static sc_run hybrid(const char *cluster, uint32_t shard, int zero)
{
    sc_run r = replicas_of("llama2-7b", cluster, "torchtitan-2024");
    r.size[SC_AX_DP] = shard;
    r.size[SC_AX_REP] = r.hw->n_devices / shard;
    r.zero = zero;
    return r;
}

/* A layer of n weights in groups of s ranks: gradients scattered in a group
 * (4 n), the shard summed over groups (4 n / s), weights gathered in a group
 * (2 n). */
static void bytes(void **state)
{
    (void)state;
    for (uint32_t s = 2; s <= 16; s *= 2)
        for (int z = 1; z <= 3; z++) {
            sc_run r = hybrid("dgx-h100:4", s, z);
            sc_segment *b;
            (void)priced(&r, &b);
            double n = b[1].params;
            near(b[1].optim_kept, n / s);
            near(b[1].grads_kept, z >= 2 ? n / s : n);
            near(b[1].params_kept, z >= 2 ? n / s : n);
            near(bytes_over(&b[1].grad, DP), 4 * n);
            near(bytes_over(&b[1].grad, REP), 4 * n / s);
            assert_int_equal(coll_over(&b[1].grad, DP), SC_REDUCE_SCATTER);
            assert_int_equal(coll_over(&b[1].grad, REP), SC_ALL_REDUCE);
            near(bytes_over(&b[1].gather, DP), z >= 2 ? 2 * n : 0);
            near(bytes_over(&b[1].update, DP), z < 2 ? 2 * n : 0);
            near(b[1].gather.bytes + b[1].update.bytes, 2 * n);
        }
}

/* One group is plain sharding; groups of one rank replicate. */
static void ends(void **state)
{
    (void)state;
    sc_segment *one, *plain;
    sc_run r = hybrid("dgx-h100:2", 16, 3), q = hybrid("dgx-h100:2", 16, 3);
    q.size[SC_AX_REP] = 0; /* not said */
    (void)priced(&r, &one);
    (void)priced(&q, &plain);
    near(one[1].grad.seconds, plain[1].grad.seconds);
    near(one[1].gather.seconds, plain[1].gather.seconds);
    r = hybrid("dgx-h100:2", 1, 3);
    (void)priced(&r, &one);
    near(bytes_over(&one[1].grad, REP), 4 * one[1].params);
    near(one[1].params_kept, one[1].params);
    near(one[1].gather.bytes, 0);
}

static double memory_of(const sc_run *r)
{
    sc_segment *b;
    sc_stage_memory m;
    sc_plan p = priced(r, &b);
    assert_int_equal(sc_predict_memory(&p, b, &f.a, &m, &f.err), SC_OK);
    return m.weights + m.gradients + m.optimizer;
}

static void memory_between(void **state)
{
    (void)state;
    double last = 0;
    for (uint32_t s = 32; s >= 1;
         s /= 2) { /* larger shards of smaller groups */
        sc_run r = hybrid("dgx-h100:4", s, 3);
        double now = memory_of(&r);
        assert_true(now > last);
        last = now;
    }
}

/* A step, composed and by the network. */
typedef struct steps {
    double composed, network;
} steps;

static steps step(uint32_t shard, const char *cluster, double wire)
{
    sc_segment *b;
    sc_run r = hybrid(cluster, shard, 3);
    f.sw.reduce_bytes = wire;
    sc_plan p = priced(&r, &b);
    steps x = {fast_s(&p, b), network_s(&r)};
    assert_true(fabs(x.composed / x.network - 1) < 0.05);
    return x;
}

/* Of n weights on nodes of 8 a rank's port to the network carries 2 + 2 (both
 * gathers) and w (the scatter), each n / 8, or twice w n / 8 (the sum over
 * groups): less with groups of a node if w < 4. */
static void slow_network(void **state)
{
    (void)state;
    static const char *const slow =
        "switch8@450GB/s,1us x switch4@10GB/s,5us; device=h100-sxm";
    steps node = step(8, slow, 2), whole = step(32, slow, 2);
    assert_true(node.composed < 0.8 * whole.composed);
    assert_true(node.network < whole.network);
    node = step(8, slow, 4);
    whole = step(32, slow, 4);
    /* as many bytes in fewer steps */
    assert_true(node.network < whole.network);
    assert_true(node.composed < 1.02 * whole.composed);
}

/* Experts replicate over what is left of a group, and over groups. */
static void experts(void **state)
{
    (void)state;
    sc_run r = replicas_of("mixtral-8x7b", "dgx-h100:2", "megatron-core");
    sc_segment *b;
    r.size[SC_AX_EP] = 4;
    r.size[SC_AX_DP] = 2;
    r.size[SC_AX_REP] = 2;
    r.zero = 1;
    (void)priced(&r, &b);
    double routed = 0, rest = 0;
    for (uint32_t i = 0; i < r.model->layer[1].n_ops; i++) {
        const sc_net_op *op = kind_op(r.model, 1, i);
        *(op->type == SC_NET_EXPERT ? &routed : &rest) +=
            (double)kind_op_params(r.model, op);
    }
    routed /= 4;
    near(b[1].optim_kept, routed / 2 + rest / 8);
    near(bytes_over(&b[1].grad, DP), 4 * routed);
    near(bytes_over(&b[1].grad, DP | 1u << SC_AX_EP), 4 * rest);
    near(bytes_over(&b[1].grad, REP), 4 * (routed / 2 + rest / 8));
}

static void refused(void **state)
{
    (void)state;
    sc_plan p;
    sc_run r = hybrid("dgx-h100:2", 8, 3);
    r.size[SC_AX_REP] = 4; /* 32 ranks on 16 devices */
    assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(bytes),          TEST(ends),
                                       TEST(memory_between), TEST(slow_network),
                                       TEST(experts),        TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
