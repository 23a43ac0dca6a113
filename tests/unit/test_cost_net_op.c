/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of operators of graphs: shapes of products, bounds, what fusing and
 * splitting change. */
#include "cost/cost_net.h"
#include "fixture.h"
#include "graph/graph.h" /* SC_NONE */

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES 8.0

static const char *const nets[] = {"alexnet",      "vgg19",  "resnet50",
                                   "inception-v3", "unet3d", "retinanet",
                                   "sd-unet",      "dlrm",   "dlrm-dcnv2"};

static sc_cost cost;
static double extent[SC_ITER_DIMS];

static const sc_net *net(const char *name)
{
    const sc_net *g = NULL;
    const sc_zoo_entry *z = sc_zoo_find(name);
    assert_non_null(z);
    sc_zoo_build(z, &arena, &g, &err);
    no_error();
    sc_cost_centres(&cost);
    return g;
}

static sc_net_work work(const sc_net *g, uint32_t op, sc_op_pass pass,
                        bool fused)
{
    const sc_net_op *o = &g->op[op];
    for (uint32_t i = 0; i < o->n_iter; i++)
        extent[i] = sc_iter_dim_extent(&o->iter[i], SAMPLES);
    return (sc_net_work){.net = g,
                         .op = o,
                         .pass = pass,
                         .extent = extent,
                         .samples = SAMPLES,
                         .weight_parts = 1,
                         .optimizer = "adam",
                         .facts = {.precision = SC_FP16,
                                   .fused = fused,
                                   .attention = SC_ATTN_CUDNN,
                                   .loss_bytes = 8}};
}

static sc_price price(const sc_net_work *w)
{
    sc_price p;
    assert_int_equal(sc_cost_net_op(&cost, device("h100-sxm"), w, &p, &err),
                     SC_OK);
    assert_true(isfinite(p.seconds) && p.seconds >= 0 && p.bytes >= 0);
    assert_non_null(p.limit);
    return p;
}

static uint32_t find(const sc_net *g, const char *path)
{
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (strcmp(g->op[i].path, path) == 0) return i;
    fail_msg("no operator %s", path);
    return 0;
}

static bool product(const sc_net_op *o)
{
    return o->type <= SC_NET_CONV_TRANSPOSED;
}

/* Kernels execute the FLOP of the graph, forward and for each gradient, at no
 * more than the peak and no faster than memory. */
static void work_is_kept(void **state)
{
    (void)state;
    const sc_device *d = device("h100-sxm");
    for (size_t n = 0; n < SC_COUNT(nets); n++) {
        const sc_net *g = net(nets[n]);
        for (uint32_t i = 0; i < g->n_ops; i++) {
            const sc_net_op *o = &g->op[i];
            for (int pass = SC_PASS_FWD; pass <= SC_PASS_WGRAD; pass++) {
                sc_net_work w = work(g, i, (sc_op_pass)pass, true);
                sc_price p = price(&w);
                assert_true(p.seconds >= p.flops / d->peak[SC_FP16]);
                assert_true(p.seconds >= p.bytes / d->mem_bw * 0.999);
                if (!product(o)) continue;
                double want =
                    pass == SC_PASS_FWD || p.flops > 0 ? o->flops * SAMPLES : 0;
                if (pass == SC_PASS_BWD && p.flops > 1.5 * want) want *= 2;
                if (o->type == SC_NET_MATMUL && pass == SC_PASS_DGRAD)
                    want *= 2;
                if (!(fabs(p.flops - want) <= 0.02 * want))
                    fail_msg("%s %s, pass %d: %g FLOP, not %g", nets[n],
                             o->path, pass, p.flops, want);
            }
        }
    }
}

static void backward_is_both(void **state)
{
    (void)state;
    const sc_net *g = net("resnet50");
    for (uint32_t i = 0; i < g->n_ops; i++) {
        sc_net_work b = work(g, i, SC_PASS_BWD, true);
        double both = price(&b).seconds;
        b.pass = SC_PASS_DGRAD;
        double sum = price(&b).seconds;
        b.pass = SC_PASS_WGRAD;
        sum += price(&b).seconds;
        assert_true(fabs(both - sum) <= 1e-12);
    }
}

/* The 3x3 convolution of the first block: 56 x 56 positions of 64 channels. */
static void shapes_of_a_convolution(void **state)
{
    (void)state;
    const sc_net *g = net("resnet50");
    sc_net_work w = work(g, find(g, "layer1.0.conv2"), SC_PASS_FWD, true);
    sc_text t;
    sc_text_init(&t);
    const sc_device *d = device("h100-sxm");
    sc_cost_explain_net_op(&cost, d, &w, &t, &err);
    w.pass = SC_PASS_DGRAD;
    sc_cost_explain_net_op(&cost, d, &w, &t, &err);
    w.pass = SC_PASS_WGRAD;
    sc_cost_explain_net_op(&cost, d, &w, &t, &err);
    const char *p = strstr(t.buf, "(25088 x 64 x 576)");
    assert_non_null(p); /* as many positions in as out */
    assert_non_null(strstr(p + 1, "(25088 x 64 x 576)"));
    assert_non_null(strstr(t.buf, "(64 x 576 x 25088)"));
    sc_text_free(&t);
}

/* Values, not the window's matrix, pass through memory. */
static void traffic_of_a_convolution(void **state)
{
    (void)state;
    const sc_net *g = net("resnet50");
    sc_net_work w = work(g, find(g, "layer1.0.conv2"), SC_PASS_FWD, true);
    double value = SAMPLES * 64 * 56 * 56, weight = 64 * 64 * 9;
    assert_true(price(&w).bytes == 2 * (2 * value + weight));
}

static void data_needs_no_gradient(void **state)
{
    (void)state;
    const sc_net *g = net("resnet50");
    sc_net_work w = work(g, find(g, "conv1"), SC_PASS_DGRAD, true);
    assert_true(price(&w).seconds == 0);
    w.pass = SC_PASS_WGRAD;
    assert_true(price(&w).seconds > 0);
}

/* Programs that fuse are never slower, operator by operator. */
static void fused_is_faster(void **state)
{
    (void)state;
    for (size_t n = 0; n < SC_COUNT(nets); n++) {
        const sc_net *g = net(nets[n]);
        double sum[2] = {0, 0};
        for (uint32_t i = 0; i < g->n_ops; i++) {
            for (int pass = SC_PASS_FWD; pass <= SC_PASS_BWD; pass++) {
                sc_net_work a = work(g, i, (sc_op_pass)pass, false);
                a.optimizer = "sgd"; /* gradients of the rows looked up */
                double apart = price(&a).seconds;
                a.facts.fused = true;
                double fused = price(&a).seconds;
                if (!(fused <= apart))
                    fail_msg("%s %s, pass %d: %g > %g", nets[n], g->op[i].path,
                             pass, fused, apart);
                sum[0] += apart;
                sum[1] += fused;
            }
        }
        assert_true(sum[1] < 0.98 * sum[0]);
    }
}

/* The activation behind a batch norm takes its place. */
static void joined_costs_nothing(void **state)
{
    (void)state;
    const sc_net *g = net("resnet50");
    uint32_t relu = find(g, "layer1.0.relu1"), add = find(g, "layer1.0.add");
    sc_net_work w = work(g, relu, SC_PASS_FWD, true);
    assert_true(price(&w).seconds == 0);
    w = work(g, relu, SC_PASS_BWD, true);
    assert_true(price(&w).seconds == 0);
    w = work(g, add, SC_PASS_FWD, true);
    sc_price p = price(&w); /* the other branch is read */
    assert_true(p.bytes == 2 * SAMPLES * 256 * 56 * 56);
    assert_int_equal(p.launches, 0);
}

/* Half of the output channels are half of the product. */
static void splits(void **state)
{
    (void)state;
    const sc_net *g = net("vgg19");
    sc_net_work w = work(g, find(g, "classifier.0"), SC_PASS_FWD, true);
    int out = sc_net_op_iter(w.op, "out"), in = sc_net_op_iter(w.op, "in");
    double whole = price(&w).flops;
    extent[out] /= 4;
    assert_true(price(&w).flops == whole / 4);
    extent[in] /= 2;
    assert_true(price(&w).flops == whole / 8);
    w = work(g, find(g, "features.2"), SC_PASS_FWD, true);
    whole = price(&w).flops;
    out = sc_net_op_iter(w.op, "out");
    extent[out] /= 4;
    assert_true(price(&w).flops == whole / 4);
}

/* All rows that a bag sums are read; few of a long table are updated. */
static void tables(void **state)
{
    (void)state;
    const sc_net *g = net("dlrm-dcnv2");
    sc_net_work w = work(g, find(g, "emb.20"), SC_PASS_FWD, true);
    assert_int_equal(w.op->lookups, 100);
    assert_true(price(&w).bytes >= SAMPLES * 100 * 128 * 2);
    w.pass = SC_PASS_UPDATE;
    w.optimizer = "adagrad";
    double few = price(&w).bytes;
    assert_true(few == SAMPLES * 100 * 128 * (2 + 8 + 8));
    w.optimizer = "rowwise-adagrad";
    assert_true(price(&w).bytes == SAMPLES * 100 * (128 * (2 + 8) + 8));
    w.optimizer = "adam"; /* moments decay in all rows */
    assert_true(price(&w).bytes == 40e6 * 128 * (2 + 8 + 16 + 2));
    w.by_rows = true; /* fused: they do not */
    assert_true(price(&w).bytes == SAMPLES * 100 * 128 * (2 + 8 + 16));
}

static void updates(void **state)
{
    (void)state;
    const sc_net *g = net("resnet50");
    sc_net_work w = work(g, find(g, "fc"), SC_PASS_UPDATE, true);
    double n = 1000 * 2048;
    assert_true(price(&w).bytes == 28 * n);
    w.weight_parts = 4;
    assert_true(price(&w).bytes == 7 * n);
    w.weight_parts = 1;
    w.optimizer = "sgd";
    assert_true(price(&w).bytes == 20 * n);
    w.optimizer = "lamb";
    assert_true(price(&w).bytes == 40 * n);
    w.update_bytes = 60; /* of a program that walks over all more than once */
    assert_true(price(&w).bytes == (60 + 12) * n);
    w.update_bytes = 0;
    w.facts.precision = SC_FP32;
    w.optimizer = "adam";
    assert_true(price(&w).bytes == 28 * n);
}

/* Attention of 4096 rows over themselves and over 77 words. */
static void attention(void **state)
{
    (void)state;
    const sc_net *g = net("sd-unet");
    for (int i = 1; i <= 2; i++) {
        char name[80];
        snprintf(name, sizeof name,
                 "input_blocks.1.1.transformer_blocks.0.attn%d.core", i);
        sc_net_work w = work(g, find(g, name), SC_PASS_FWD, true);
        double keys = i == 1 ? 4096 : 77;
        sc_price p = price(&w);
        assert_true(p.flops == 4 * SAMPLES * 4096 * 320 * keys);
        w.facts.attention = SC_ATTN_FLASH1; /* does not know this device */
        if (i == 1) assert_true(price(&w).seconds > p.seconds);
        w.facts.attention = SC_ATTN_CUDNN;
        assert_true(price(&w).seconds == p.seconds);
        w.pass = SC_PASS_BWD;
        assert_true(price(&w).flops == 2.5 * p.flops);
    }
}

/* The row of a layer norm is a token's, however many positions there are: it
 * is read once. */
static void rows_of_norms(void **state)
{
    (void)state;
    const sc_net *g = NULL;
    sc_cost_centres(&cost);
    sc_net_from_model(model("gpt2"), 1024, false, &arena, &g, &err);
    no_error();
    sc_net_work w = work(g, find(g, "layers.0.norm1"), SC_PASS_FWD, false);
    sc_price p = price(&w);
    assert_int_equal(p.launches, 1);
    assert_true(p.bytes < 2.5 * 2 * SAMPLES * 1024 * 768);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT(work_is_kept),
                                       UNIT(backward_is_both),
                                       UNIT(shapes_of_a_convolution),
                                       UNIT(traffic_of_a_convolution),
                                       UNIT(data_needs_no_gradient),
                                       UNIT(fused_is_faster),
                                       UNIT(joined_costs_nothing),
                                       UNIT(splits),
                                       UNIT(tables),
                                       UNIT(updates),
                                       UNIT(attention),
                                       UNIT(rows_of_norms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
