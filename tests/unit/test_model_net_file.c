/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks as files: what is written of a graph reads back as an equal one,
 * short forms mean what they say, and all errors are found where they are.
 */
#include "fixture.h"
#include "graph/graph.h"
#include "model/model_net.h"
#include "net_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sc_net *read_text(const char *text)
{
    const sc_net *g = NULL;
    sc_err_init(&err);
    sc_status s = sc_net_read(text, strlen(text), "net.yml", &arena, &g, &err);
    assert_int_equal(s == SC_OK, g != NULL);
    assert_int_equal(s == SC_OK, err.n == 0);
    return g;
}

/* ---- equal graphs: the numbers of tensors may differ, who uses them not */

static void same_text(const char *x, const char *y)
{
    if (x == NULL || y == NULL)
        assert_true(x == y);
    else
        assert_string_equal(x, y);
}

static void same_tensor(const sc_tensor *x, const sc_tensor *y)
{
    same_text(x->name, y->name);
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(x->bytes, y->bytes);
    assert_int_equal(x->learns, y->learns);
    assert_int_equal(x->op, y->op);
    assert_int_equal(x->n_dim, y->n_dim);
    for (unsigned i = 0; i < x->n_dim; i++) {
        same_text(x->dim[i].name, y->dim[i].name);
        assert_int_equal(x->dim[i].extent, y->dim[i].extent);
        assert_int_equal(x->dim[i].batch, y->dim[i].batch);
    }
}

static void same_port(const sc_net *g, const sc_operand *x, const sc_net *h,
                      const sc_operand *y, uint32_t *map)
{
    assert_memory_equal(x->at, y->at, sizeof x->at);
    if (map[x->tensor] == SC_NONE) map[x->tensor] = y->tensor;
    assert_int_equal(map[x->tensor], y->tensor);
    same_tensor(&g->tensor[x->tensor], &h->tensor[y->tensor]);
}

static void same_facts(const sc_net_op *x, const sc_net_op *y)
{
    assert_int_equal(x->fn, y->fn);
    assert_int_equal(x->gated, y->gated);
    assert_int_equal(x->dropout, y->dropout);
    assert_int_equal(x->copy, y->copy);
    assert_int_equal(x->causal, y->causal);
    assert_int_equal(x->cross, y->cross);
    assert_int_equal(x->keep_bf16, y->keep_bf16);
    assert_int_equal(x->heads, y->heads);
    assert_int_equal(x->kv_heads, y->kv_heads);
    assert_int_equal(x->qk_dim, y->qk_dim);
    assert_int_equal(x->v_dim, y->v_dim);
    assert_int_equal(x->window, y->window);
    assert_int_equal(x->experts, y->experts);
    assert_int_equal(x->topk, y->topk);
    assert_int_equal(x->route_groups, y->route_groups);
    assert_int_equal(x->route_topk, y->route_topk);
    assert_int_equal(x->lookups, y->lookups);
    assert_int_equal(x->sparse, y->sparse);
}

static void same_op(const sc_net *g, const sc_net_op *x, const sc_net *h,
                    const sc_net_op *y, uint32_t *map)
{
    same_text(x->path, y->path);
    same_text(x->detail, y->detail);
    assert_int_equal(x->type, y->type);
    assert_int_equal(x->n_iter, y->n_iter);
    for (unsigned i = 0; i < x->n_iter; i++) {
        same_text(x->iter[i].name, y->iter[i].name);
        assert_int_equal(x->iter[i].kind, y->iter[i].kind);
        assert_int_equal(x->iter[i].batch, y->iter[i].batch);
        assert_int_equal(x->iter[i].extent, y->iter[i].extent);
        assert_int_equal(x->iter[i].units, y->iter[i].units);
    }
    assert_int_equal(x->n_in, y->n_in);
    assert_int_equal(x->n_weight, y->n_weight);
    for (unsigned i = 0; i < x->n_in; i++)
        same_port(g, &x->in[i], h, &y->in[i], map);
    for (unsigned i = 0; i < x->n_weight; i++)
        same_port(g, &x->weight[i], h, &y->weight[i], map);
    same_port(g, &x->out, h, &y->out, map);
    same_facts(x, y);
    assert_true(x->flops == y->flops);
}

static void same_graph(const sc_net *g, const sc_net *h)
{
    uint32_t *map = SC_NEW_N(&arena, uint32_t, g->n_tensors);
    assert_non_null(map);
    for (uint32_t i = 0; i < g->n_tensors; i++) map[i] = SC_NONE;
    same_text(g->name, h->name);
    same_text(g->sample, h->sample);
    assert_int_equal(g->n_ops, h->n_ops);
    assert_int_equal(g->n_tensors, h->n_tensors);
    assert_int_equal(g->n_inputs, h->n_inputs);
    assert_int_equal(g->fixed, h->fixed);
    assert_true(g->params == h->params);
    assert_true(g->learned == h->learned);
    for (uint32_t i = 0; i < g->n_ops; i++)
        same_op(g, &g->op[i], h, &h->op[i], map);
}

/* Number of operators that had to be printed by their parts. */
static uint32_t round_trip(const sc_net *g)
{
    sc_text t;
    uint32_t raw = 0;
    sc_text_init(&t);
    net_write(g, &t);
    assert_false(t.failed);
    const sc_net *again = read_text(t.buf);
    if (!again)
        fail_msg("%s: %u:%u %s\n%.3000s", g->name, err.d[0].line, err.d[0].col,
                 err.d[0].msg, t.buf);
    same_graph(g, again);
    for (const char *s = t.buf; (s = strstr(s, ", raw: {")) != NULL; s++) raw++;
    sc_text_free(&t);
    return raw;
}

static void zoo(void **state)
{
    (void)state;
    uint32_t n;
    const sc_zoo_entry *z = sc_zoo_all(&n);
    assert_true(n >= 9);
    for (uint32_t i = 0; i < n; i++) {
        const sc_net *g;
        assert_int_equal(sc_zoo_build(&z[i], &arena, &g, &err), SC_OK);
        uint32_t raw = round_trip(g);
        /* People can read nearly all of it. */
        if (20 * raw > g->n_ops)
            fail_msg("%s: %u of %u operators by parts", g->name, raw, g->n_ops);
    }
}

static void transformers(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gpt2",          "llama2-7b",        "bert-large",
        "mixtral-8x7b",  "deepseek-v2-lite", "t5-small",
        "nemotron-h-8b", "gpt-oss-20b",      "llama2-13b-lora",
        "vit-b-16"};
    for (size_t i = 0; i < SC_COUNT(names); i++)
        for (int unfused = 0; unfused < 2; unfused++) {
            const sc_net *g = NULL;
            sc_err_init(&err);
            if (sc_net_from_model(model(names[i]), 512, unfused, &arena, &g,
                                  &err) == SC_OK)
                round_trip(g);
        }
}

/* ---- the short form */

static const char small[] =
    "name: small\nsample: image\n"
    "inputs: {image: [batch, 3, 32, 32], label: {dims: {batch: 1}, bytes: 8}}\n"
    "operators:\n"
    "  - {path: stem, type: conv, in: image, out: 16, kernel: 3, pad: 1}\n"
    "  - module: stage\n"
    "    repeat: 2\n"
    "    operators:\n"
    "      - {path: conv, type: conv, out: 16, kernel: [3, 1], pad: same,\n"
    "         bias: false}\n"
    "      - {path: relu, type: act, kind: relu}\n"
    "      - module: inner\n"
    "        in: relu\n"
    "        operators:\n"
    "          - {path: conv, type: conv, out: 16, kernel: 1}\n"
    "          - {path: add, type: elementwise, in: [conv, entry], kind: sum}\n"
    "      - {path: sum, type: elementwise, in: [inner, stem], kind: sum}\n"
    "  - {path: pool, type: pool, to: 1, in: stage}\n"
    "  - {path: flat, type: view, dims: flat}\n"
    "  - {path: fc, type: linear, out: 10}\n"
    "  - {path: loss, type: loss, in: [fc, label]}\n";

static const sc_net_op *op_of(const sc_net *g, const char *path)
{
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (strcmp(g->op[i].path, path) == 0) return &g->op[i];
    fail_msg("no %s", path);
    return NULL;
}

static void short_form(void **state)
{
    (void)state;
    const sc_net *g = read_text(small);
    no_error();
    assert_int_equal(g->n_ops, 1 + 2 * 5 + 4);
    assert_string_equal(g->sample, "image");
    const sc_net_op *inner = op_of(g, "stage.1.inner.conv");
    assert_int_equal(inner->in[0].tensor, op_of(g, "stage.1.relu")->out.tensor);
    const sc_net_op *add = op_of(g, "stage.1.inner.add");
    assert_int_equal(add->in[0].tensor, inner->out.tensor);
    assert_int_equal(add->in[1].tensor, op_of(g, "stage.1.relu")->out.tensor);
    const sc_net_op *sum = op_of(g, "stage.0.sum");
    assert_int_equal(sum->in[1].tensor, op_of(g, "stem")->out.tensor);
    assert_int_equal(op_of(g, "stage.1.conv")->in[0].tensor, sum->out.tensor);
    assert_int_equal(op_of(g, "pool")->in[0].tensor,
                     op_of(g, "stage.1.sum")->out.tensor);
    double weights =
        3 * 9 * 16 + 16 + 2 * (16 * 16 * 3 + 16 * 16 + 16) + 16 * 10 + 10;
    assert_true(g->params == weights);
    assert_true(op_of(g, "stem")->flops == 2.0 * 3 * 9 * 16 * 32 * 32);
    assert_int_equal(round_trip(g), 0);
}

/* Tables with one result for each sample are updated row by row, those of words
 * are not, unless the file says otherwise. */
static void tables(void **state)
{
    (void)state;
    const sc_net *g = read_text(
        "inputs:\n"
        "  one: {dims: {batch: 1}, bytes: 8}\n"
        "  bag: {dims: {batch: 1, look: 4}, bytes: 8}\n"
        "  words: {dims: {batch: 1, seq: 9}, bytes: 8}\n"
        "operators:\n"
        "  - {path: a, type: embed, in: one, rows: 5, width: 8}\n"
        "  - {path: b, type: embed, in: bag, rows: 5, width: 8, lookups: 4}\n"
        "  - {path: c, type: embed, in: words, rows: 5, width: 8}\n"
        "  - {path: d, type: embed, in: one, rows: 5, width: 8, sparse: "
        "false}\n"
        "  - {path: e, type: embed, in: words, rows: 5, width: 8, sparse: "
        "true}\n");
    no_error();
    assert_true(op_of(g, "a")->sparse && op_of(g, "b")->sparse);
    assert_false(op_of(g, "c")->sparse || op_of(g, "d")->sparse);
    assert_true(op_of(g, "e")->sparse);
    assert_int_equal(round_trip(g), 0);
}

static void example_files(void **state)
{
    (void)state;
    static const char *const files[] = {"small.yml", "words.yml", "raw.yml"};
    const char *root = getenv("STEPCAST_SOURCE");
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const char *path = sc_sprintf(&arena, "%s/tests/fuzz/corpus/net/%s",
                                      root ? root : ".", files[i]);
        const sc_model *m = model(path);
        assert_non_null(m->net);
        assert_true((double)m->params == m->net->params);
        round_trip(m->net);
    }
}

/* ---- errors */

#define IN  "inputs: {x: {batch: 1, c: 4, h: 8, w: 8}, v: {batch: 1, c: 4}}\n"
#define OPS IN "operators:\n"

typedef struct bad {
    const char *text;
    uint32_t line, col;
    const char *says;
} bad;

static const bad broken[] = {
    {"", 1, 1, "mapping"},
    {"operators: [{path: a, type: act}]", 1, 1, "inputs"},
    {IN, 1, 1, "operators"},
    {IN "operators: []\n", 2, 12, "list"},
    {IN "operators: 3\n", 2, 12, "list"},
    {"inputs: {x: 3}\noperators: [{path: a, type: act}]", 1, 13, "1 to 6 dims"},
    {"inputs: {x: {batch: 1, c: 0}}\noperators: [{path: a, type: act}]", 1, 27,
     "not in 1 to"},
    {"inputs: {x: {batch: 1, c: -4}}\noperators: [{path: a, type: act}]", 1, 27,
     ""},
    {"inputs: {x: {batch: 1, c: 5000000000}}\n"
     "operators: [{path: a, type: act}]",
     1, 27, "not in 1 to"},
    {"inputs: {x: {batch: 1, a: 4000000000, b: 4000000000}}\n"
     "operators: [{path: a, type: act}]",
     1, 13, "2^53"},
    {OPS "  - {path: a, type: rope, in: x}\n", 3, 5, "under raw"},
    {OPS "  - {path: a, type: cnov, in: x, out: 4, kernel: 1}\n", 3, 21,
     "cnov"},
    {OPS "  - {path: a, type: conv, in: x, out: 4, kernle: 1}\n", 3, 42,
     "kernle"},
    {OPS "  - {type: act, in: x}\n", 3, 5, "needs a path"},
    {OPS "  - {path: a, type: act, in: y}\n", 3, 30, "\"y\""},
    {OPS "  - {path: a, type: act}\n", 3, 5, "nothing before"},
    {OPS "  - {path: a, type: conv, in: x, out: 4}\n", 3, 5, "kernel"},
    {OPS "  - {path: a, type: conv, in: x, kernel: 1}\n", 3, 5, "channels"},
    {OPS "  - {path: a, type: conv, in: x, out: -4, kernel: 1}\n", 3, 39, ""},
    {OPS "  - {path: a, type: conv, in: x, out: 4, kernel: 9}\n", 3, 5,
     "larger than the image"},
    {OPS "  - {path: a, type: conv, in: x, out: 4, kernel: 0}\n", 3, 50,
     "not in 1"},
    {OPS "  - {path: a, type: conv, in: x, out: 6, kernel: 1, groups: 4}\n", 3,
     5, "groups"},
    {OPS "  - {path: a, type: conv, in: v, out: 4, kernel: 1}\n", 3, 5,
     "window"},
    {OPS "  - {path: a, type: linear, in: v, out: 4, stride: 2}\n", 3, 44,
     "not apply to a linear"},
    {OPS "  - {path: a, type: linear, in: v, out: 4000000000000}\n", 3, 41, ""},
    {OPS "  - {path: a, type: linear, in: v, out: 4000000000}\n"
         "  - {path: b, type: linear, out: 4000000000}\n",
     4, 5, "2^53"},
    {OPS "  - {path: a, type: elementwise, in: [x, v, x]}\n", 3, 5,
     "one value or two"},
    {OPS "  - {path: a, type: matmul, in: [x, v]}\n", 3, 5, "do not fit"},
    {OPS "  - {path: a, type: elementwise, in: [v, x]}\n", 3, 5, "do not fit"},
    {OPS "  - {path: a, type: act, in: x}\n  - {path: a, type: act}\n", 4, 12,
     "second \"a\""},
    {OPS "  - {path: x, type: act, in: x}\n", 3, 12, "second \"x\""},
    {OPS "  - {path: a, type: slice, in: x, along: q, extent: 2}\n", 3, 5,
     "along"},
    {OPS "  - {path: a, type: slice, in: x, along: c, extent: 5}\n", 3, 5,
     "larger than its input"},
    {OPS "  - {path: a, type: concat, in: [x, x], along: batch}\n", 3, 5,
     "samples"},
    {OPS "  - {path: a, type: attention, in: v, out: 4, heads: 2}\n", 3, 5,
     "positions"},
    {OPS "  - {path: a, type: view, in: x,\n"
         "     dims: [{name: n, extent: 1, from: batch}, {name: m, extent: 5}]"
         "}\n",
     3, 5, "number of elements"},
    {OPS "  - {path: a, type: view, in: x,\n"
         "     dims: [{name: n, extent: 1, from: q}]}\n",
     4, 13, "no dim q"},
    {OPS "  - {path: a, type: linear, in: v, out: 4, weight: v}\n", 3, 52,
     "has a weight"},
    {OPS "  - {path: a, type: upsample, in: x, factor: 60000}\n"
         "  - {path: b, type: upsample, factor: 60000}\n",
     4, 5, "4294967295"},
    {OPS "  - {module: m, repeat: 60000, operators: [{path: a, type: act, in: "
         "x}]}\n",
     3, 3, "65536"},
    {OPS "  - {module: m, operators: [{path: a, type: act, in: z}]}\n", 3, 54,
     "\"z\""},
    {OPS "  - {module: m, repeat: 3, operators: [{path: a, type: act, in: z}],"
         " on: 1}\n",
     3, 70, "on"},
    {OPS "  - {path: a, type: act, in: v, raw: {iter: [{name: b, kind: batch, "
         "extent: 1}], in: [[b, c]], dims: {b: 1}, at: [b]}}\n",
     3, 91, "\"c\""},
    {OPS "  - {path: a, type: act, in: v, raw: {iter: [{name: b, kind: free, "
         "extent: 1}], in: [[b, \"-\"]], dims: {b: 1}, at: [b]}}\n",
     1, 1, "batch dims do not match"},
    {"{", 1, 0, ""},
};

static void errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(broken); i++) {
        const bad *b = &broken[i];
        if (read_text(b->text) != NULL)
            fail_msg("case %zu was read: %s", i, b->text);
        const sc_diag *d = &err.d[0];
        assert_int_equal(err.status, SC_EINPUT);
        if (strstr(d->msg, b->says) == NULL || d->line != b->line ||
            (b->col != 0 && d->col != b->col))
            fail_msg("case %zu: %u:%u %s, not %u:%u %s", i, d->line, d->col,
                     d->msg, b->line, b->col, b->says);
        assert_string_equal(d->file, "net.yml");
    }
}

/* All errors in one pass; what depends on one is not another, and repetitions
 * do not repeat it. */
static void many(void **state)
{
    (void)state;
    assert_null(read_text(
        OPS "  - {path: a, type: conv, in: x, out: 4, kernel: 99}\n"
            "  - {path: b, type: act}\n"
            "  - {path: c, type: linear, in: [b, nothing], out: 4}\n"
            "  - {module: m, repeat: 5, operators: [{path: d, type: act, in: "
            "v, paht: e}]}\n"
            "  - {path: f, type: pool, in: v, kernel: 2}\n"));
    assert_int_equal(err.n, 4);
    assert_non_null(strstr(err.d[1].msg, "nothing"));
    assert_non_null(strstr(err.d[2].hint, "path"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(zoo, setup, teardown),
        cmocka_unit_test_setup_teardown(transformers, setup, teardown),
        cmocka_unit_test_setup_teardown(short_form, setup, teardown),
        cmocka_unit_test_setup_teardown(tables, setup, teardown),
        cmocka_unit_test_setup_teardown(example_files, setup, teardown),
        cmocka_unit_test_setup_teardown(errors, setup, teardown),
        cmocka_unit_test_setup_teardown(many, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
