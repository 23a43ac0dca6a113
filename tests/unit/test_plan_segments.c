/* SPDX-License-Identifier: Apache-2.0 */
/* What a layer of a kind costs and keeps on one rank: sums of its items in the
 * network, and what papers count. */
#include "kinds.h"
#include "network.h"

#include <math.h>

/* gpt3-6.7b in Megatron's way on tp x dp devices, 2 samples a micro-batch. */
static sc_run run_of(uint32_t tp, uint32_t dp, bool sp, int zero)
{
    sc_run r = {.size = {1, dp, 1, 1, tp, 1},
                .vpp = 1,
                .mbs = 2,
                .ga = 1,
                .gbs = 2 * dp,
                .seq = 1024,
                .precision = SC_FP16,
                .recipe = SC_RECIPE_FP16,
                .zero = zero,
                .sp = sp};
    char spec[32];
    snprintf(spec, sizeof spec, "a100-sxm-80g:%u", tp * dp);
    load_run(&r, spec, "gpt3-6.7b", "megatron-lm-2022");
    return r;
}

static double exchanged(const network *n, uint32_t kind, phase in)
{
    double s = 0;
    for (int c = 0; c < SC_N_COLLS; c++)
        s += moved_over(n, kind, in, (sc_coll)c, 0).seconds;
    return s;
}

/* Seconds by category are those of the layer's items.  The host is of a pass as a
 * whole: of g seconds of kernels that take it c seconds to issue (g^p + c^p)^(1/p)
 * is seen. */
static void sums_of_items(void **state)
{
    (void)state;
    for (uint32_t tp = 1; tp <= 4; tp *= 2)
        for (int sp = 0; sp <= (tp > 1); sp++) {
            sc_run r = run_of(tp, 1, sp, 0);
            sc_segment *b;
            (void)priced(&r, &b);
            network n = network_of(&r);
            for (uint32_t l = 0; l < 3; l++) {
                const double *fwd = b[l].fwd_cat, *bwd = b[l].bwd_cat;
                near(fwd[SC_CAT_COMPUTE],
                     kernels_of(&n, l, FORWARD, "").seconds);
                near(bwd[SC_CAT_COMPUTE],
                     kernels_of(&n, l, BACKWARD, "").seconds);
                near(fwd[SC_CAT_TP], exchanged(&n, l, FORWARD));
                near(bwd[SC_CAT_TP], exchanged(&n, l, BACKWARD));
                near(b[l].fwd_s, fwd[SC_CAT_COMPUTE] + fwd[SC_CAT_TP]);
                near(b[l].bwd_s, bwd[SC_CAT_COMPUTE] + bwd[SC_CAT_TP]);
                assert_true(fwd[SC_CAT_HOST] == 0 && bwd[SC_CAT_HOST] == 0);
                near(b[l].fwd_issue.first.kernels, fwd[SC_CAT_COMPUTE]);
                assert_true(b[l].fwd_issue.first.launches > 0);
            }
            const sc_issue *pass[] = {&b[0].fwd_issue, &b[1].fwd_issue,
                                      &b[2].fwd_issue};
            double g = 0, c = 7, power = f.cost.p[SC_P_HOST_POWER];
            for (uint32_t l = 0; l < 3; l++) {
                g += pass[l]->first.kernels;
                c += pass[l]->first.launches;
            }
            c *= f.cost.p[SC_P_HOST_KERNEL];
            sc_host_rate host = sc_plan_host_rate(&f.cost, r.sw, false);
            near(
                sc_plan_host_seconds(&host, pass, 3, &(sc_span){.launches = 7}),
                pow(pow(g, power) + pow(c, power), 1 / power) - g);
        }
}

/* A pass for weights has their kernels. */
static void passes_of_weights(void **state)
{
    (void)state;
    sc_run r = run_of(1, 1, false, 0);
    sc_segment b = segment(&r, 1);
    network n = network_of(&r);
    double kernels = 0;
    for (uint32_t i = 0; i < n.prog.n_items; i++) {
        const program_item *it = &n.prog.item[i];
        if (in_layer(&n, it, 1, BACKWARD) && it->pass == SC_PASS_WGRAD)
            kernels += it->price.seconds;
    }
    double all = b.bwd_cat[SC_CAT_COMPUTE];
    assert_true(kernels > 0.3 * all && kernels < 0.5 * all);
    near(b.w_cat[SC_CAT_COMPUTE], kernels);
    near(b.w_s, kernels);
}

/* Recomputing all of a layer repeats its forward pass with its collectives. */
static void made_again(void **state)
{
    (void)state;
    sc_run r = run_of(8, 1, false, 0);
    network once = network_of(&r);
    sc_segment none = segment(&r, 1);
    r.recompute = SC_RC_FULL;
    network n = network_of(&r);
    sc_segment full = segment(&r, 1);
    double v = 2.0 * (double)(r.mbs * r.seq) * (double)r.model->t.hidden;
    const uint32_t tp = 1u << SC_AX_TP;
    assert_int_equal(moved_over(&n, 1, FORWARD, SC_ALL_REDUCE, tp).n, 2);
    moved again = moved_over(&n, 1, BACKWARD, SC_ALL_REDUCE, tp);
    assert_int_equal(again.n, 4);
    near(again.bytes, 4 * v);
    near(full.fwd_s, none.fwd_s);
    near(kernels_of(&n, 1, BACKWARD, "").flops, flops_of(&once, 1, ""));
}

static double activations_of(const sc_run *r)
{
    sc_segment *b;
    sc_stage_memory m;
    sc_plan p = priced(r, &b);
    assert_int_equal(sc_predict_memory(&p, b, &f.a, &m, &f.err), SC_OK);
    return m.activations;
}

static double backward(const sc_segment *b)
{
    return b->bwd_s;
}

/* The first 5 of 32 blocks: 27 keep all and are done with it when those begin.
 * Groups of 5: seven of them, the last of 2, each keep the input of a block, and
 * one that is made again has what four further blocks keep. */
static void some_made_again(void **state)
{
    (void)state;
    sc_run r = run_of(1, 1, false, 0);
    double input = 2.0 * (double)(r.mbs * r.seq) * (double)r.model->t.hidden;
    sc_segment none = segment(&r, 1), *b;
    r.recompute = SC_RC_FULL;
    sc_segment full = segment(&r, 1);
    near(full.saved, input);
    r.rc_first = 5;
    sc_plan p = priced(&r, &b);
    assert_int_equal(sc_run_segments(&r), 6);
    near(sc_plan_device_sum(&p, b, 0, backward),
         5 * full.bwd_s + 27 * none.bwd_s + b[0].bwd_s + b[2].bwd_s);
    assert_int_equal(sc_plan_stage_entry(&p, 0, 5), 1);
    assert_int_equal(sc_plan_stage_entry(&p, 0, 6), 4);
    assert_int_equal(sc_plan_stage_entry(&p, 0, 33), 2);
    near(activations_of(&r),
         b[0].saved + 5 * input + 27 * none.saved + b[2].saved + b[2].working);
    r.rc_first = 0;
    r.rc_group = 5;
    near(activations_of(&r),
         b[0].saved + 7 * input + full.working + 4 * none.saved);
}

/* The vocabulary is split: partial rows of the embedding are summed, and the
 * gradient of what the head reads. */
static void ends(void **state)
{
    (void)state;
    sc_run r = run_of(8, 2, false, 0);
    network n = network_of(&r);
    double v = 2.0 * (double)(r.mbs * r.seq) * (double)r.model->t.hidden;
    const uint32_t tp = 1u << SC_AX_TP;
    near(moved_over(&n, 0, FORWARD, SC_ALL_REDUCE, tp).bytes, v);
    near(moved_over(&n, 0, BACKWARD, SC_ALL_REDUCE, tp).bytes, 0);
    near(moved_over(&n, 2, BACKWARD, SC_ALL_REDUCE, tp).bytes, v);
    sc_segment *b;
    (void)priced(&r, &b);
    assert_true(b[0].params > 0 && b[2].params < b[0].params / 100); /* tied */
}

/* Tensor parallelism divides the products' weights and the biases of what is
 * divided by columns, 3 h and 4 h; norms, 4 h, and the other two biases are
 * whole. */
static void divided_weights(void **state)
{
    (void)state;
    for (uint32_t tp = 1; tp <= 8; tp *= 2) {
        sc_run r = run_of(tp, 1, false, 0);
        sc_segment b = segment(&r, 1);
        double h = (double)r.model->t.hidden;
        near(b.params, (12 * h * h + 7 * h) / tp + 6 * h);
        assert_true(b.grad.bytes == 0 && b.grad.seconds == 0);
    }
}

static double layer_params(const sc_run *r)
{
    return (double)kind_params(r->model, 1);
}

static void states(void **state)
{
    (void)state;
    const uint32_t dp = 8;
    for (int z = 0; z <= 3; z++) {
        sc_run r = run_of(1, dp, false, z);
        sc_segment b = segment(&r, 1);
        double n = layer_params(&r), low = 2;
        near(b.params, n);
        near(b.params_kept, n / (z >= 3 ? dp : 1));
        near(b.grads_kept, n / (z >= 2 ? dp : 1));
        near(b.optim_kept, n / (z >= 1 ? dp : 1));
        assert_true(b.frozen_kept == 0);
        assert_int_equal(coll_over(&b.grad, 1u << SC_AX_DP),
                         z ? SC_REDUCE_SCATTER : SC_ALL_REDUCE);
        near(b.grad.bytes, n * r.sw->reduce_bytes);
        near(b.update.bytes, z == 1 || z == 2 ? n * low : 0);
        near(b.gather.bytes, z == 3 ? n * low : 0);
        assert_true(b.grad.seconds > 0);
        assert_true((b.update.seconds > 0) == (z == 1 || z == 2));
        assert_true((b.gather.seconds > 0) == (z == 3));
    }
}

/* Of h = 4096 the gradients of fc2 and fc1, of proj with a norm, and of qkv fill a
 * bucket of 40 MB each, in this order; the first norm is left.  Without a size of
 * buckets all leave with their layer. */
static void buckets(void **state)
{
    (void)state;
    sc_run r = run_of(1, 8, false, 2);
    double h = (double)r.model->t.hidden, n = layer_params(&r);
    f.sw = *r.sw;
    r.sw = &f.sw;
    f.sw.reduce_bytes = 4;
    f.sw.bucket_bytes = 0;
    sc_segment b = segment(&r, 1);
    near(b.buckets, 1);
    near(b.bulk, 4 * n);
    near(b.first, 4 * n);
    near(b.last, 4 * n);
    f.sw.bucket_bytes = 40e6;
    f.sw.bucket_params = 0;
    b = segment(&r, 1);
    near(b.buckets, 4 + 8 * h / 40e6);
    near(b.bulk, 4 * (4 * h * h + 4 * h));
    near(b.pair, 4 * (8 * h * h + 5 * h));
    near(b.first, 4 * (4 * h * h + h));
    near(b.last, 4 * 2 * h);
    r.zero = 1; /* gradients stay whole */
    b = segment(&r, 1);
    near(b.bulk, 0);
}

/* Rajbhandari et al. 2020, section 7: stages 1 and 2 move what plain data
 * parallelism moves, stage 3 half as much again (gathers twice, for forward
 * and backward, instead of once) if all of it has the same width. */
static void volume(void **state)
{
    (void)state;
    double port[4];
    for (int z = 0; z <= 3; z++) {
        sc_run r = run_of(1, 8, false, z);
        f.sw = *r.sw;
        f.sw.reduce_bytes = 2;
        r.sw = &f.sw;
        sc_segment b = segment(&r, 1);
        /* ring: an all-reduce moves twice its V, the others once */
        port[z] =
            b.grad.bytes * (z ? 1 : 2) + b.update.bytes + 2 * b.gather.bytes;
    }
    near(port[1] / port[0], 1);
    near(port[2] / port[0], 1);
    near(port[3] / port[0], 1.5);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sums_of_items), TEST(passes_of_weights),
        TEST(made_again),    TEST(some_made_again),
        TEST(ends),          TEST(divided_weights),
        TEST(states),        TEST(volume),
        TEST(buckets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
