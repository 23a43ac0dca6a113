/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution traces as models: the forward pass of a small trace operator by
 * operator, real traces by their parameters and FLOP, and what is refused.
 */
#include "archive.h"
#include "graph/graph.h"
#include "net_write.h"
#include "trace_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In both schemas; what convolution calls, and the optimizer, are left out. */
static void cnn(void **state)
{
    (void)state;
    static const char *const files[] = {"cnn.json", "cnn_old.json"};
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const sc_net *g = corpus(files[i]);
        assert_int_equal(g->n_ops, 7);
        assert_true(g->fixed);
        assert_int_equal(g->n_inputs, 2); /* images and labels */
        const sc_net_op *conv = op(g, 0, "conv2d.0", SC_NET_CONV);
        assert_true(conv->flops == 2.0 * 4 * 16 * 8 * 8 * 27);
        assert_int_equal(conv->iter[0].extent, 4);
        op(g, 1, "relu_.1", SC_NET_ACT);
        op(g, 2, "adaptive_avg_pool2d.2", SC_NET_POOL);
        op(g, 3, "flatten.3", SC_NET_VIEW);
        const sc_net_op *fc = op(g, 4, "linear.4", SC_NET_LINEAR);
        assert_int_equal(fc->n_weight, 2);
        assert_true(fc->flops == 2.0 * 4 * 16 * 10);
        const sc_net_op *other = op(g, 5, "swish_glu.5", SC_NET_ELEMENTWISE);
        assert_non_null(strstr(other->detail, "not known"));
        assert_string_equal(
            g->note, "1 operator of the trace is not known "
                     "(mylib::swish_glu) and counted by the bytes moved");
        op(g, 6, "cross_entropy_loss.6", SC_NET_LOSS);
        assert_true(g->params == 16 * 27 + 160 + 10);
    }
}

/* Views, parts, products of values, and a table that is the last weight, too. */
static void attention(void **state)
{
    (void)state;
    const sc_net *g = corpus("attention.json");
    assert_true(g->params == 100 * 32 + 32 * 96 + 96 + 2 * 32);
    double products = 2.0 * 32 * 32 * 96 + 2.0 * 32 * 32 * 100 +
                      2 * 2.0 * 2 * 4 * 16 * 16 * 8;
    assert_true(sc_net_flops(g, 1, true) == products);
    const sc_net_op *last = &g->op[g->n_ops - 1];
    assert_int_equal(last->type, SC_NET_LINEAR);
    assert_int_equal(last->weight[0].tensor, g->op[0].weight[0].tensor);
    uint32_t slices = 0;
    for (uint32_t i = 0; i < g->n_ops; i++)
        slices += g->op[i].type == SC_NET_SLICE;
    assert_int_equal(slices, 3);
}

static void odd_ones(void **state)
{
    (void)state;
    const sc_net *g = corpus("odd.json");
    const sc_net_op *bag = op(g, 0, "embedding_bag.0", SC_NET_EMBED);
    assert_int_equal(bag->lookups, 3);
    assert_false(bag->sparse);
    const sc_net_op *up =
        op(g, 5, "conv_transpose2d.5", SC_NET_CONV_TRANSPOSED);
    assert_true(up->flops == 2.0 * 4 * 2 * 4 * 16);
    const sc_net_op *attn =
        op(g, 4, "scaled_dot_product_attention.4", SC_NET_ATTENTION);
    assert_true(attn->flops == 2.0 * 2 * 4 * 6 * 16);
}

/* FBGEMM's lookups: all tables of a kind in one, of rows and widths that the
 * sizes say; a kernel that is not known is named. */
static void tables(void **state)
{
    (void)state;
    const sc_net *g = corpus("tables.json");
    static const char *const dense =
        "dense_embedding_codegen_lookup_function.0";
    const sc_net_op *bag = op(g, 0, dense, SC_NET_EMBED);
    const sc_tensor *w = &g->tensor[bag->weight[0].tensor];
    assert_int_equal(bag->lookups, 3);
    assert_int_equal(w->dim[0].extent, 7);
    assert_int_equal(w->dim[1].extent, 16);
    const sc_net_op *split =
        op(g, 2, "split_embedding_codegen_lookup_adagrad_function.1",
           SC_NET_EMBED);
    assert_true(split->sparse && !bag->sparse);
    w = &g->tensor[split->weight[0].tensor];
    assert_int_equal(split->lookups, 1);
    assert_int_equal(w->dim[0].extent, 40000);
    assert_int_equal(w->dim[1].extent, 8);
    assert_true(g->params == 112 + 320000 + 56 * 4);
    assert_non_null(g->note);
    assert_non_null(strstr(g->note, "some_new_kernel"));
}

/* ---- real ones */

static const char *shared(const char *name)
{
    const char *root = getenv("STEPCAST_SHARED");
    if (!root) return NULL;
    const char *path =
        sc_sprintf(&arena, "%s/traces/param/inputs/%s", root, name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fclose(f);
    return path;
}

/* 32 images through a ResNet-50 (4.089 G multiplications each). */
static void resnet(void **state)
{
    (void)state;
    static const char *const files[] = {
        "resnet_et.json.gz", "1.0.3-chakra.0.0.4/resnet_1gpu_et.json.gz",
        "1.1.0-chakra.0.0.4/resnet_2gpu_et.json.gz"};
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const char *path = shared(files[i]);
        if (!path) skip();
        const sc_net *g = load(path);
        double flops = 32 * 2 * 4.089e9;
        assert_true(g->params == 25557032);
        assert_true(fabs(sc_net_flops(g, 1, true) / flops - 1) < 0.001);
        /* The network of the zoo, once per image. */
        const sc_zoo_entry *z = sc_zoo_find("resnet50");
        const sc_net *zoo = NULL;
        assert_non_null(z);
        assert_int_equal(sc_zoo_build(z, &arena, &zoo, &err), SC_OK);
        assert_true(
            fabs(sc_net_flops(g, 1, true) / sc_net_flops(zoo, 32, true) - 1) <
            1e-9);
        assert_true(zoo->params == g->params);
    }
}

/* 20 linears of 1024 and one of 1000, over 512 rows. */
static void linears(void **state)
{
    (void)state;
    const char *path = shared("linear_et.json.gz");
    if (!path) skip();
    const sc_net *g = load(path);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const sc_net_op *o = &g->op[i];
        if (o->type != SC_NET_LINEAR) continue;
        n++;
        assert_int_equal(o->n_weight, 2);
    }
    assert_int_equal(n, 21);
    /* Every weight once per row, and a bias each of 1024. */
    assert_true(
        fabs(sc_net_flops(g, 1, true) / (2.0 * 512 * (g->params - 21 * 1024)) -
             1) < 0.001);
}

/* GPT-2 large, 36 blocks of 1280, over 512 words: its table is its last
 * weight, too. */
static void gpt2(void **state)
{
    (void)state;
    const char *path = shared("hf_GPT2_et.json.tar.gz");
    char dir[] = "/tmp/stepcast-trace-XXXXXX";
    if (!path) skip();
    assert_non_null(mkdtemp(dir));
    assert_true(archive_unpack(path, dir, &err));
    const sc_net *g = load(sc_sprintf(&arena, "%s/hf_GPT2_et.json", dir));
    archive_remove(dir);
    assert_true(g->params == 774030080);
    double words = 512, width = 1280, vocab = 50257;
    double flops = 2 * words * (36 * 12 * width * width + vocab * width) +
                   36 * 2 * 2 * words * words * width;
    assert_true(fabs(sc_net_flops(g, 1, true) / flops - 1) < 1e-6);
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const char *d = g->op[i].detail;
        unknown += d && strstr(d, "not known") != NULL;
    }
    assert_int_equal(unknown, 0);
    sc_text t;
    const sc_net *again = NULL;
    sc_text_init(&t);
    net_write(g, &t);
    assert_int_equal(
        sc_net_read(t.buf, t.len, "gpt2.yml", &arena, &again, &err), SC_OK);
    sc_text_free(&t);
    assert_int_equal(again->n_ops, g->n_ops);
    assert_true(again->params == g->params && again->fixed);
}

/* What cannot be read, where. */
typedef struct bad {
    const char *text;
    uint32_t line;
    const char *says;
} bad;

#define NODE(id, rest) "\n{\"id\": " id ", \"ctrl_deps\": 1, " rest "}"

static const bad broken[] = {
    {"{\"nodes\": []}", 0, "no forward pass"},
    {"{\"nodes\": [", 1, ""},
    {"{\"nodes\": [\n3]}", 2, "a mapping"},
    {"{\"nodes\": [" NODE("1", "\"nam\": \"x\"") "]}", 2, "needs a name"},
    {"{\"nodes\": [" NODE("-1", "\"name\": \"x\"") "]}", 2, "needs a name"},
    {"{\"nodes\": [" NODE("1", "\"name\": \"a::b\"") "," NODE(
         "1", "\"name\": \"a::b\"") "]}",
     3, "another node"},
    {"{\"nodes\": [" NODE("1", "\"name\": \"aten::mm\", \"inputs\": "
                               "{\"values\": [[1, 2]], \"shapes\": [[3]], "
                               "\"types\": [\"Tensor(float)\"]}") "]}",
     2, "a tensor must be"},
    {"{\"nodes\": [" NODE("1", "\"name\": \"aten::mm\", \"inputs\": "
                               "{\"values\": [[1, 2, 0, 3, 4]], \"shapes\": "
                               "[[-3]], \"types\": [\"Tensor(float)\"]}") "]}",
     2, "extents"},
    {"{\"nodes\": [" NODE("1", "\"name\": \"aten::mm\", \"inputs\": "
                               "{\"values\": [[1, 2, 0, 3, 4]], \"shapes\": "
                               "[[4000000000, 4000000000]], \"types\": "
                               "[\"Tensor(float)\"]}") "]}",
     2, "extents"},
    {"{\"nodes\": [" NODE("1", "\"name\": \"aten::mm\", \"inputs\": "
                               "{\"values\": [[1, 2, 0, 3, 4]], \"shapes\": "
                               "[], \"types\": []}") "]}",
     2, "equal length"},
    {"{\"nodes\": [" NODE("1", "\"name\": \"aten::mm\"") "]}", 2,
     "no forward pass"},
};

static void errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(broken); i++) {
        const bad *b = &broken[i];
        const sc_net *g = NULL;
        sc_err_init(&err);
        sc_status s = sc_net_read_trace(b->text, strlen(b->text), "t.json",
                                        &arena, &g, &err);
        if (s != SC_EINPUT || g || err.n == 0)
            fail_msg("case %zu was read: %s", i, b->text);
        if (!strstr(err.d[0].msg, b->says) || err.d[0].line != b->line)
            fail_msg("case %zu: %u %s, not %u %s", i, err.d[0].line,
                     err.d[0].msg, b->line, b->says);
    }
}

/* A config of HuggingFace is none. */
static void told_apart(void **state)
{
    (void)state;
    char dir[] = "/tmp/stepcast-config-XXXXXX";
    assert_non_null(mkdtemp(dir));
    const char *path = sc_sprintf(&arena, "%s/config.json", dir);
    static const char text[] =
        "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, "
        "\"n_head\": 4, \"vocab_size\": 100, \"n_positions\": 32, "
        "\"id2label\": {\"nodes\": [1]}}";
    assert_int_equal(sc_file_write(path, text, strlen(text), &err), SC_OK);
    const sc_model *m = NULL;
    sc_status s = sc_model_load(path, sc_pos_none(), &arena, &m, &err);
    archive_remove(dir);
    no_error();
    assert_int_equal(s, SC_OK);
    assert_null(m->net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cnn, setup, teardown),
        cmocka_unit_test_setup_teardown(attention, setup, teardown),
        cmocka_unit_test_setup_teardown(odd_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(tables, setup, teardown),
        cmocka_unit_test_setup_teardown(resnet, setup, teardown),
        cmocka_unit_test_setup_teardown(linears, setup, teardown),
        cmocka_unit_test_setup_teardown(gpt2, setup, teardown),
        cmocka_unit_test_setup_teardown(errors, setup, teardown),
        cmocka_unit_test_setup_teardown(told_apart, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
