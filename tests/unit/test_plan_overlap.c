/* SPDX-License-Identifier: Apache-2.0 */
/* What of an exchange is exposed: closed forms of small cases, their limits,
 * and each mechanism in the network of a layer. */
#include "kinds.h"
#include "network.h"
#include "plan/overlap.h"

#include <math.h>
#include <string.h>

static void near_to(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12)) fail_msg("%.9g is not %.9g", a, b);
}

/* ---- closed forms -------------------------------------------------------- */

static overlap_parts parts(uint32_t n, double exchange_s, double product_s)
{
    return (overlap_parts){.n = n,
                           .exchange_s = exchange_s,
                           .product_s = product_s,
                           .in_parts_s = product_s};
}

/* A ring of four: the own part is multiplied during the first transfer, so
 * 3 of 4 parts of the product hide the exchange. */
static void rings(void **state)
{
    (void)state;
    overlap_parts x = parts(4, 3, 4);
    near_to(overlap_ring(&x), 0);
    x.exchange_s = 5;
    near_to(overlap_ring(&x), 2);
    x.exchange_s = 2;
    x.in_parts_s = 4.5; /* smaller products are slower */
    near_to(overlap_ring(&x), 0.5);
    x.taken = 0.1; /* 2 s of the product lose a tenth */
    near_to(overlap_ring(&x), 0.7);
}

/* Four parts, each scattered after its product: the last one is exposed. */
static void pipelines(void **state)
{
    (void)state;
    overlap_parts x = parts(4, 2, 4);
    near_to(overlap_pipeline(&x), 0.5);
    x.exchange_s = 8; /* 1 s of product, then all of the exchange */
    near_to(overlap_pipeline(&x), 5);
    x = parts(1, 2, 4);
    near_to(overlap_pipeline(&x), 2);
}

static void kernels(void **state)
{
    (void)state;
    near_to(overlap_kernels(3, 0, 0.1), 3);
    near_to(overlap_kernels(3, 2, 0), 1);
    near_to(overlap_kernels(3, 5, 0.1), 0.3);
}

/* Never negative, never more than all of the exchange. */
static void limits(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 16; n *= 2)
        for (int c = -3; c <= 3; c++)
            for (int slow = 0; slow < 4; slow++)
                for (int t = 0; t < 3; t++) {
                    overlap_parts x = parts(n, pow(4, c), 1);
                    x.in_parts_s *= 1 + 0.4 * slow;
                    x.taken = 0.25 * t;
                    const double s[] = {
                        overlap_ring(&x), overlap_pipeline(&x),
                        overlap_kernels(x.exchange_s, 1, x.taken)};
                    for (size_t i = 0; i < SC_COUNT(s); i++)
                        assert_true(s[i] >= 0 && s[i] <= x.exchange_s);
                }
}

/* ---- mechanisms ---------------------------------------------------------- */

static sc_run split_run(const char *model, const char *cluster, uint32_t tp)
{
    sc_run r = tp_run(cluster, model, "megatron-core", tp);
    f.sw = *r.sw;
    r.sw = &f.sw;
    return r;
}

/* What of the exchanges of a pass and an operator's tensor is exposed. */
static double exposed(const sc_run *r, const char *op, const char *tensor,
                      sc_op_pass pass)
{
    double all = 0, shown = 0;
    network n = network_of(r);
    for (uint32_t i = 0; i < n.prog.n_items; i++) {
        const program_item *it = &n.prog.item[i];
        if (it->exchange == SC_NONE || it->pass != pass ||
            strcmp(name_of(&n, it), op) != 0)
            continue;
        const sc_net_exchange *x = &n.plan.exchange[it->exchange];
        if (strcmp(x->tensor, tensor) != 0) continue;
        assert_true(it->seconds >= 0 && it->seconds <= x->seconds);
        all += x->seconds;
        shown += it->seconds;
    }
    assert_true(all > 0);
    return shown / all;
}

/* Products in parts hide gathers before them and scatters after them; a sum of
 * gradients follows several products, of which none is in parts. */
static void products_in_parts(void **state)
{
    (void)state;
    sc_run r = split_run("llama2-13b", "h100-sxm:4", 4);
    f.sw.tp_overlap = f.sw.tp_async = false;
    near_to(exposed(&r, "fc1", "in:0", SC_PASS_FWD), 1);
    near_to(exposed(&r, "fc2", "out", SC_PASS_FWD), 1);
    f.sw.tp_overlap = true;
    assert_true(exposed(&r, "fc1", "in:0", SC_PASS_FWD) < 0.5);
    assert_true(exposed(&r, "fc2", "out grad", SC_PASS_DGRAD) < 0.5);
    double last = exposed(&r, "fc2", "out", SC_PASS_FWD);
    assert_true(last > 0.25 && last < 0.6);
    near_to(exposed(&r, "fc1", "in grad", SC_PASS_DGRAD), 1);
    near_to(exposed(&r, "fc1", "in:0", SC_PASS_WGRAD), 1);
    f.sw.tp_pieces = 0;
    assert_true(exposed(&r, "fc2", "out", SC_PASS_FWD) < last);
}

/* Without products in parts: the product for inputs hides a gather, the one for
 * weights a sum, with and without sequence parallelism. */
static void other_product(void **state)
{
    (void)state;
    sc_run r = split_run("llama2-13b", "h100-sxm:4", 4);
    f.sw.tp_overlap = false;
    assert_true(exposed(&r, "fc1", "in:0", SC_PASS_WGRAD) < 0.5);
    assert_true(exposed(&r, "fc1", "in grad", SC_PASS_DGRAD) < 0.5);
    near_to(exposed(&r, "fc1", "in:0", SC_PASS_FWD), 1);
    near_to(exposed(&r, "fc2", "out grad", SC_PASS_DGRAD), 1);
    r.sp = false;
    assert_true(exposed(&r, "fc1", "in grad", SC_PASS_DGRAD) < 0.5);
    near_to(exposed(&r, "fc2", "out", SC_PASS_FWD), 1);
}

/* Frozen weights have no product that hides the sum; those of small adapters
 * hide little. */
static void frozen(void **state)
{
    (void)state;
    sc_run r = split_run("llama2-13b", "h100-sxm:4", 4);
    f.sw.tp_overlap = false;
    double learns = exposed(&r, "fc1", "in grad", SC_PASS_DGRAD);
    sc_transformer t = r.model->t;
    t.lora = 8;
    assert_int_equal(
        sc_model_from_transformer(&t, sc_pos_none(), &f.a, &r.model, &f.err),
        SC_OK);
    assert_true(exposed(&r, "fc1", "in grad", SC_PASS_DGRAD) > 2 * learns);
    near_to(exposed(&r, "fc1", "in grad", SC_PASS_DGRAD), 1);
}

/* Seconds of all-to-alls that are exposed in a layer with experts. */
static double dispatched(const sc_run *r)
{
    uint32_t at = r->model->n_layers;
    while (at > 0 && r->model->layer[at - 1].mlp != SC_MLP_EXPERTS) at--;
    assert_true(at > 0);
    network n = network_of(r);
    return moved_over(&n, at - 1, FORWARD, SC_ALL_TO_ALL, 0).seconds +
           moved_over(&n, at - 1, BACKWARD, SC_ALL_TO_ALL, 0).seconds;
}

/* Kernels of another micro-batch hide what fits; without a backward pass there
 * is none that runs at the same time. */
static void experts(void **state)
{
    (void)state;
    sc_run r = split_run("deepseek-v2-lite", "h100-sxm:8", 1);
    r.sp = false;
    r.size[SC_AX_EP] = 8;
    r.gbs = 16;
    double all = dispatched(&r);
    f.sw.ep_overlap = true;
    double fits = dispatched(&r);
    assert_true(fits > 0 && fits < 0.5 * all);
    r.opts.forward_only = true;
    double forward = dispatched(&r);
    f.sw.ep_overlap = false;
    near_to(dispatched(&r), forward);
}

/* Gradients that a program copies to a flat buffer: six passes over memory per
 * byte, only after the backward pass. */
static void flat_buffers(void **state)
{
    (void)state;
    sc_run r = replicas_of("gpt2", "a100-sxm-80g:8", "megatron-lm-2021");
    sc_segment plain = segment(&r, 1);
    f.sw.flat_bytes = 1e9;
    sc_segment flat = segment(&r, 1);
    double bytes = 6 * f.sw.reduce_bytes * flat.params;
    double s = bytes / r.hw->device->mem_bw / f.cost.p[SC_P_MEM_EFF];
    double more = flat.pack_s - plain.pack_s;
    assert_true(more > s && more < 2 * s + 1e-4);
    f.sw.grad_overlap = true;
    near_to(segment(&r, 1).pack_s, plain.pack_s);
}

/* A step is never slower with an overlap than without it. */
static void never_slower(void **state)
{
    (void)state;
    for (uint32_t tp = 2; tp <= 4; tp *= 2) {
        double before = INFINITY;
        for (int i = 0; i < 4; i++) {
            sc_run r = split_run("gpt2", "h100-sxm:8", tp);
            f.sw.tp_async = i & 1;
            f.sw.tp_overlap = i >> 1;
            r.size[SC_AX_DP] = 8 / tp;
            r.gbs = 2 * r.size[SC_AX_DP];
            r.seq = 1024;
            sc_segment *b = NULL;
            sc_plan p = priced(&r, &b);
            double s = fast_s(&p, b);
            assert_true(i == 2 || s <= before * (1 + 1e-12));
            before = s;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings),
        cmocka_unit_test(pipelines),
        cmocka_unit_test(kernels),
        cmocka_unit_test(limits),
        cmocka_unit_test_setup_teardown(products_in_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_product, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frozen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(experts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flat_buffers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(never_slower, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
