/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of PyTorch's profiler as models: small ones operator by operator, real
 * ones by the parameters and FLOP of their networks, and what is refused.
 */
#include "trace_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With numbers among the arguments, and without, as of 2021. What operators call,
 * the optimizer, the device and what is behind the step are left out. */
static void cnn(void **state)
{
    (void)state;
    static const char *const files[] = {"kineto.json", "kineto_old.json"};
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const sc_net *g = corpus(files[i]);
        assert_int_equal(g->n_ops, 7);
        assert_true(g->fixed);
        assert_int_equal(g->n_inputs, 2); /* images and labels */
        const sc_net_op *conv = op(g, 0, "conv2d.0", SC_NET_CONV);
        assert_true(conv->flops == 2.0 * 4 * 16 * 8 * 8 * 27);
        assert_int_equal(conv->n_weight, 2);
        const sc_net_op *act = op(g, 1, "relu_.1", SC_NET_ACT);
        assert_int_equal(act->in[0].tensor, conv->out.tensor);
        op(g, 2, "adaptive_avg_pool2d.2", SC_NET_POOL);
        op(g, 3, "flatten.3", SC_NET_VIEW);
        const sc_net_op *fc = op(g, 4, "linear.4", SC_NET_LINEAR);
        assert_true(fc->flops == 2.0 * 4 * 16 * 10);
        op(g, 5, "swish_glu.5", SC_NET_ELEMENTWISE);
        assert_non_null(strstr(g->note, "mylib::swish_glu"));
        assert_non_null(strstr(g->note, "matched by their shapes"));
        op(g, 6, "cross_entropy_loss.6", SC_NET_LOSS);
        assert_true(g->params == 16 * 27 + 16 + 160 + 10);
    }
}

/* Without a backward pass the last layer shares the embedding table; one value is
 * queries, keys and values. */
static void text(void **state)
{
    (void)state;
    const sc_net *g = corpus("kineto_text.json");
    assert_int_equal(g->n_ops, 9);
    assert_int_equal(g->n_inputs, 1);
    const sc_net_op *attention =
        op(g, 4, "scaled_dot_product_attention.4", SC_NET_ATTENTION);
    assert_int_equal(attention->n_in, 3);
    assert_true(attention->flops == 4.0 * 2 * 2 * 6 * 6 * 4);
    op(g, 8, "linear.8", SC_NET_LINEAR);
    assert_true(g->params == 800 + 100 + 16);
    assert_non_null(strstr(g->note, "shares its weight"));
}

/* ---- shapes of results ---------------------------------------------------- */

#define EVENT(name, at, args)                                                  \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name                   \
    "\", \"pid\": 1, \"tid\": 1, \"ts\": " at ", \"dur\": 5, \"args\": {" args \
    "}},\n"
#define STEP                                                   \
    "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": " \
    "\"ProfilerStep#1\", \"pid\": 1, \"tid\": 1, \"ts\": 0, \"dur\": 1000}"
#define ARGS(dims, types, numbers)                              \
    "\"Input Dims\": [" dims "], \"Input type\": [" types "], " \
    "\"Concrete Inputs\": [" numbers "]"
#define MM(dims) \
    EVENT("aten::linear", "10", ARGS(dims, "\"float\", \"float\"", ""))

static const struct {
    const char *name, *dims, *types, *numbers;
    uint32_t n;
    uint64_t to[5];
} shapes[] = {
    {"reshape", "[2, 6, 8], []", "", "\"\", \"[2, -1]\"", 2, {2, 48}},
    {"view", "[2, 6, 8], []", "", "\"\", \"[12, 2, 4]\"", 3, {12, 2, 4}},
    {"permute", "[2, 6, 8], []", "", "\"\", \"[0, 2, 1]\"", 3, {2, 8, 6}},
    {"transpose", "[2, 6, 8], [], []", "", "\"\", \"-1\", \"1\"", 3, {2, 8, 6}},
    {"unsqueeze", "[2, 6, 8], []", "", "\"\", \"-1\"", 4, {2, 6, 8, 1}},
    {"select", "[2, 6, 8], [], []", "", "\"\", \"1\", \"0\"", 2, {2, 8}},
    {"slice",
     "[2, 6, 8], [], [], [], []",
     "",
     "\"\", \"1\", \"1\", \"9223372036854775807\", \"2\"",
     3,
     {2, 3, 8}},
    {"chunk", "[2, 6, 8], [], []", "", "\"\", \"2\", \"-1\"", 3, {2, 6, 4}},
    {"mean",
     "[2, 6, 8], [], [], []",
     "",
     "\"\", \"[1]\", \"True\", \"\"",
     3,
     {2, 1, 8}},
    {"matmul", "[2, 6, 8], [2, 8, 3]", ", \"float\"", "", 3, {2, 6, 3}},
    {"expand",
     "[2, 6, 8], [], []",
     "",
     "\"\", \"[2, 2, 6, 8]\", \"False\"",
     4,
     {2, 2, 6, 8}},
};

static void results(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(shapes); i++) {
        char *json = sc_sprintf(
            &arena,
            "{\"traceEvents\": [" MM(
                "[2, 6, 4], [8, 4]") "{\"ph\": \"X\", "
                                     "\"cat\": \"cpu_op\", \"name\": "
                                     "\"aten::%s\", \"pid\": 1, "
                                     "\"tid\": 1, \"ts\": 20, \"dur\": 5, "
                                     "\"args\": {\"Input Dims\": "
                                     "[%s], \"Input type\": [\"float\"%s], "
                                     "\"Concrete Inputs\": "
                                     "[%s]}},\n" STEP "]}",
            shapes[i].name, shapes[i].dims, shapes[i].types, shapes[i].numbers);
        const sc_net *g = NULL;
        sc_err_init(&err);
        if (sc_net_read_trace(json, strlen(json), "t.json", &arena, &g, &err) !=
            SC_OK)
            fail_msg("%s: %s", shapes[i].name, err.d[0].msg);
        assert_true(g->n_ops >= 2);
        const sc_tensor *t = &g->tensor[g->op[1].out.tensor];
        if (t->n_dim != shapes[i].n)
            fail_msg("%s: %u dims", shapes[i].name, t->n_dim);
        for (unsigned k = 0; k < t->n_dim; k++)
            if (t->dim[k].extent != shapes[i].to[k])
                fail_msg("%s: dim %u is %llu", shapes[i].name, k,
                         (unsigned long long)t->dim[k].extent);
    }
}

/* ---- real traces ---------------------------------------------------------- */

static const char *real(const char *name)
{
    const char *root = getenv("STEPCAST_SHARED");
    if (!root) {
        printf("skipped: real traces are kept outside; set STEPCAST_SHARED\n");
        skip();
    }
    return sc_sprintf(&arena, "%s/traces/%s", root, name);
}

/* Parameters are those that the publishers state; FLOP are 4.09 G products and
 * sums of ResNet-50 for each of 32 images, and what products inside operators
 * add up to. */
static void published(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        double params, flops;
    } files[] = {
        {"kineto/resnet50_num_workers_0_worker0.1623143566756.pt.trace.json.gz",
         25557032, 2 * 4.09e9 * 32},
        {"kineto/resnet50_num_workers_4_worker0.1623212756351.pt.trace.json.gz",
         25557032, 2 * 4.09e9 * 32},
        {"tracelens/tests/traces/mi300/resnet_act_checkpoint.json.gz", 11689512,
         2 * 1.81e9 * 10},
        {"tracelens/tests/traces/h100/"
         "Falconsai_nsfw_image_detection__1016002.json.gz",
         86389248, 140.51e9},
        {"tracelens/tests/traces/mi300/"
         "facebook_timesformer-base-finetuned-k400__1016002.json.gz",
         121.4e6, 8.977e12},
        {"tracelens/tests/traces/h100/"
         "gaunernst_bert-small-uncased__1016001.json.gz",
         28.8e6, 8.192e9},
    };

    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const sc_net *g = load(real(files[i].name));
        double flops = 0;
        for (uint32_t k = 0; k < g->n_ops; k++) flops += g->op[k].flops;
        if (fabs(g->params / files[i].params - 1) > 0.02 ||
            fabs(flops / files[i].flops - 1) > 0.02)
            fail_msg("%s: %.0f parameters, %.4g FLOP", files[i].name, g->params,
                     flops);
    }
}

/* ---- what is refused ------------------------------------------------------ */

#define GRADIENT                                   \
    EVENT("torch::autograd::AccumulateGrad", "30", \
          ARGS("[8, 4]", "\"float\"", "\"\""))

static const struct {
    const char *text, *says;
} broken[] = {
    {"{\"traceEvents\": []}", "no shapes"},
    {"{\"traceEvents\": [" MM("[2, 4], [8, 4]") "{}]}", "does not mark steps"},
    {"{\"traceEvents\": [" EVENT("aten::relu", "5",
                                 ARGS("[2, 4]", "\"float\"", "")) STEP "]}",
     "no step of"},
    {"{\"traceEvents\": [" MM("[2, 4], [8, 4]"), "the file ends inside"},
    {"{\"traceEvents\": [" MM("[2, 4], [8, 5]") STEP "]}",
     "what aten::linear computes does not follow"},
    {"{\"traceEvents\": [" MM("[2, 4], [8, 4]") EVENT(
         "aten::linear", "20",
         ARGS("[2, 8], [8, 8]", "\"float\", \"float\"", "")) GRADIENT STEP "]}",
     "96 trained parameters by its shapes, but the backward pass makes "
     "gradients of 32"},
    {"{\"traceEvents\": [" EVENT("aten::conv2d", "5",
                                 ARGS("[2, 3, 8, 8], [4, 3, 3, 3]",
                                      "\"float\", \"float\"", "")) STEP "]}",
     "result of aten::conv2d is not known"},
    {"{\"traceEvents\": [" MM("[2, 4], [8, 4]")
         EVENT("triton_poi_fused_relu_0", "20", "") STEP "]}",
     "a part of the program is compiled"},
};

static void errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(broken); i++) {
        const sc_net *g = NULL;
        sc_err_init(&err);
        sc_status s = sc_net_read_trace(broken[i].text, strlen(broken[i].text),
                                        "t.json", &arena, &g, &err);
        if (s != SC_EINPUT || g || err.n == 0) fail_msg("case %zu was read", i);
        if (!strstr(err.d[0].msg, broken[i].says))
            fail_msg("case %zu: %s", i, err.d[0].msg);
    }
}

/* A damaged file is no model: operators would be missing.  `replay` leaves out what
 * it can't read. */
static const struct {
    const char *text, *says;
    uint32_t line, col;
} damaged[] = {
    {"{\"traceEvents\": [\n" MM("[2, 4], [8, 4]") STEP, "ends inside", 3, 106},
    {"[" MM("[2, 4], [8, 4]") STEP ", {\"ph\": \"X", "ends inside", 2, 108},
    {"{\"traceEvents\": [\n 17, " MM("[2, 4], [8, 4]") STEP "]}",
     "can't be read", 2, 2},
    {"{\"traceEvents\": [\n" MM("[2, 4], [8, 4]")
         EVENT("aten::relu", "null", "") STEP "]}",
     "no usable time", 3, 1},
    {"{\"traceEvents\": [{\"args\": {\"a\": 1]},\n" MM("[2, 4], [8, 4]") STEP
     "]}",
     "can't be read", 1, 18},
};

static void broken_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(damaged); i++) {
        const sc_net *g = NULL;
        const char *text = damaged[i].text;
        sc_err_init(&err);
        assert_int_equal(
            sc_net_read_trace(text, strlen(text), "t.json", &arena, &g, &err),
            SC_EINPUT);
        if (!strstr(err.d[0].msg, damaged[i].says) ||
            err.d[0].line != damaged[i].line || err.d[0].col != damaged[i].col)
            fail_msg("case %zu: %u:%u: %s", i, err.d[0].line, err.d[0].col,
                     err.d[0].msg);
    }
}

/* The list of events alone, as Chrome writes it; events out of order, ids and
 * times in quotes, and what is behind the events. */
static void forgiven(void **state)
{
    static const char *const text[] = {
        "[" MM("[2, 4], [8, 4]") STEP "]",
        "{\"traceEvents\": [" MM("[2, 4], [8, 4]") STEP ",, {}], \"x\": ",
        "[" STEP ", {\"args\": {" ARGS(
            "[2, 4], [8, 4]", "\"float\", \"float\"",
            "") "}, "
                "\"tid\": \"1\", \"pid\": \"1\", \"ts\": \"10\", \"dur\": -1, "
                "\"cat\": \"Operator\", \"ph\": \"X\", \"name\": "
                "\"aten::linear\"}]",
    };
    (void)state;
    for (size_t i = 0; i < SC_COUNT(text); i++) {
        const sc_net *g = NULL;
        sc_err_init(&err);
        if (sc_net_read_trace(text[i], strlen(text[i]), "t.json", &arena, &g,
                              &err) != SC_OK)
            fail_msg("text %zu: %s", i, err.d[0].msg);
        assert_int_equal(g->n_ops, 1);
        assert_true(g->params == 32);
    }
}

/* A step that calls a model `calls` times: a first layer, and `layers` of two
 * products each. */
static const char *loop(uint32_t calls, uint32_t layers)
{
    static const char *const dims[] = {"[2, 4], [8, 4]", "[2, 8], [6, 8]",
                                       "[2, 6], [8, 6]"};
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "{\"traceEvents\": [");
    for (uint32_t i = 0, at = 1; i < calls * (1 + 2 * layers); i++, at += 6) {
        uint32_t k = i % (1 + 2 * layers);
        sc_text_add(&t, EVENT("aten::linear", "%u", ARGS("%s", "%s", "")), at,
                    dims[k == 0 ? 0 : 2 - k % 2], "\"float\", \"float\"");
    }
    sc_text_add(&t, STEP "]}");
    const char *text = sc_strndup(&arena, t.buf, t.len);
    sc_text_free(&t);
    return text;
}

static void calls(void **state)
{
    (void)state;
    const sc_net *g = NULL;
    const char *text = loop(3, 5);
    sc_err_init(&err);
    assert_int_equal(
        sc_net_read_trace(text, strlen(text), "t.json", &arena, &g, &err),
        SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "calls a model 3 times"));
    text = loop(1, 12);
    sc_err_init(&err);
    assert_int_equal(
        sc_net_read_trace(text, strlen(text), "t.json", &arena, &g, &err),
        SC_OK);
    assert_int_equal(g->n_ops, 25);
}

/* The execution trace and the profile of a program are one network; this program
 * was recorded without and with biases. */
static void same_as_execution_trace(void **state)
{
    (void)state;
    const sc_net *et = corpus("cnn.json"), *profile = corpus("kineto.json");
    assert_int_equal(profile->n_ops, et->n_ops);
    assert_int_equal(profile->n_inputs, et->n_inputs);
    for (uint32_t i = 0; i < et->n_ops; i++) {
        const sc_net_op *x = op(profile, i, et->op[i].path, et->op[i].type);
        const sc_net_op *y = &et->op[i];
        assert_true(x->flops == y->flops);
        assert_int_equal(x->n_in, y->n_in);
        assert_int_equal(x->n_weight > 0, y->n_weight > 0);
        if (y->n_weight == 0) continue;
        const sc_tensor *a = &profile->tensor[x->weight[0].tensor];
        const sc_tensor *b = &et->tensor[y->weight[0].tensor];
        assert_int_equal(a->n_dim, b->n_dim);
        for (uint32_t k = 0; k < b->n_dim; k++)
            assert_true(a->dim[k].extent == b->dim[k].extent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cnn, setup, teardown),
        cmocka_unit_test_setup_teardown(same_as_execution_trace, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(text, setup, teardown),
        cmocka_unit_test_setup_teardown(results, setup, teardown),
        cmocka_unit_test_setup_teardown(published, setup, teardown),
        cmocka_unit_test_setup_teardown(calls, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_files, setup, teardown),
        cmocka_unit_test_setup_teardown(forgiven, setup, teardown),
        cmocka_unit_test_setup_teardown(errors, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
