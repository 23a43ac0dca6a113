/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_graph_build.c - shapes, FLOP and ports of single operators, and
 * what the builder refuses. */
#include "fixture.h"
#include "model/net_build.h"

#include <string.h>

static net_builder graph;

static int open_graph(void **state)
{
    int rc = setup(state);
    build_init(&graph, &arena, "test", "image");
    return rc;
}

static const sc_net_op *last(void)
{
    return &graph.g.op[graph.g.n_ops - 1];
}

static void shape(net_value v, unsigned n, const uint64_t *want)
{
    const sc_tensor *t = build_tensor(&graph, v);
    assert_non_null(t);
    assert_int_equal(t->n_dim, n);
    for (unsigned i = 0; i < n; i++) {
        if (t->dim[i].extent != want[i])
            fail_msg("%s: dim %u is %lu, not %lu", t->name, i,
                     (unsigned long)t->dim[i].extent, (unsigned long)want[i]);
    }
}

static void finishes(void)
{
    const sc_net *g = NULL;
    (void)build_finish(&graph, &g, &err);
    no_error();
    assert_non_null(g);
}

/* What PyTorch's windows make of 224, 7 and 12 positions. */
static void test_windows(void **state)
{
    (void)state;

    static const struct {
        uint64_t in, out;
        build_window w;
        bool pool;
    } cases[] = {
        {224, 112, {.k = 7, .stride = 2, .pad = 3}, false},
        {224, 224, {.k = 3, .pad = 1}, false},
        {224, 222, {.k = 3}, false},
        {224, 224, {.k = 5, .same = true}, false},
        {224, 220, {.k = 3, .dilation = 2}, false},
        {224, 224, {.k = 3, .dilation = 2, .same = true}, false},
        {7, 3, {.k = 2, .stride = 2}, true},
        {7, 4, {.k = 2, .stride = 2, .ceil = true}, true},
        {12, 6, {.k = 3, .stride = 2, .ceil = true}, true},
        {12, 5, {.k = 3, .stride = 2}, true},
        /* a window that starts in the padding behind the input does not count */
        {7, 4, {.k = 2, .stride = 2, .pad = 1, .ceil = true}, true},
        {8, 5, {.k = 2, .stride = 2, .pad = 1, .ceil = true}, true},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        net_value x = build_image(&graph, 4, 2, cases[i].in);
        net_value y = cases[i].pool
                          ? build_pool(&graph, "pool", x, cases[i].w)
                          : build_conv(&graph, "conv", x, 6, cases[i].w);
        const uint64_t want[] = {1, cases[i].pool ? 4 : 6, cases[i].out,
                                 cases[i].out};
        shape(y, 4, want);
    }
    finishes();
}

static void test_conv(void **state)
{
    (void)state;
    net_value x = build_image(&graph, 8, 3, 16);
    build_window w = {.k = 3, .pad = 1, .stride = 2, .groups = 4, .bias = true};
    net_value y = build_conv(&graph, "a", x, 12, w);
    const uint64_t want[] = {1, 12, 8, 8, 8}, weight[] = {12, 2, 3, 3, 3};
    shape(y, 5, want);
    const sc_net_op *op = last();
    assert_int_equal(op->n_iter, SC_ITER_DIMS);
    shape(op->weight[0].tensor, 5, weight);
    assert_true(op->flops == 2.0 * 12 * 2 * 27 * 512);
    assert_string_equal(op->detail, "3x3x3, stride 2, 4 groups");
    assert_int_equal(op->iter[op->in[0].at[1]].extent, 4);
    assert_int_equal(op->in[0].at[1], op->out.at[1]);
    assert_string_equal(op->iter[op->weight[1].at[0]].name, "group");

    build_window up = {.k = 2, .stride = 2};
    net_value z = build_conv_transposed(&graph, "b", y, 6, up);
    const uint64_t twice[] = {1, 6, 16, 16, 16};
    shape(z, 5, twice);
    assert_true(last()->flops == 2.0 * 12 * 6 * 8 * 512);
    build_window like = w;
    like.shared_with = y;
    (void)build_conv(&graph, "c", x, 12, like);
    assert_int_equal(last()->weight[0].tensor, graph.g.op[0].weight[0].tensor);
    assert_int_equal(last()->weight[1].tensor, graph.g.op[0].weight[1].tensor);
    finishes();
}

static void test_products(void **state)
{
    (void)state;
    const sc_tensor_dim dim[] = {
        {"batch", 1, true}, {"seq", 10, false}, {"hidden", 32, false}};
    net_value x = build_input(&graph, "x", 3, dim, 0);
    net_value y = build_linear(&graph, "a", x, 32, true);
    const uint64_t want[] = {1, 10, 32};
    shape(y, 3, want);
    assert_true(last()->flops == 2.0 * 10 * 32 * 32);
    assert_string_equal(last()->iter[2].name, "in");
    assert_false(build_tensor(&graph, x)->learns);
    assert_true(build_tensor(&graph, y)->learns);
    net_value s = build_matmul(&graph, "s", y, y, true);
    const uint64_t scores[] = {1, 10, 10};
    shape(s, 3, scores);
    assert_true(last()->flops == 2.0 * 10 * 32 * 10);
    shape(build_matmul(&graph, "c", s, y, false), 3, want);
    net_value ids = build_labels(&graph, "ids", 5);
    net_value e = build_embed(&graph, "e", ids, 1000, 16, 5);
    const uint64_t bag[] = {1, 16};
    shape(e, 2, bag);
    assert_int_equal(last()->lookups, 5);
    graph.frozen = true;
    net_value f = build_linear(&graph, "f", e, 4, false);
    assert_true(build_tensor(&graph, f)->learns);
    assert_false(build_tensor(&graph, last()->weight[0].tensor)->learns);
    net_value g = build_linear(&graph, "g", x, 4, false);
    assert_false(build_tensor(&graph, g)->learns);
    finishes();
}

static void test_moves(void **state)
{
    (void)state;
    net_value x = build_image(&graph, 8, 2, 4);
    const net_value v[] = {x, x, x};
    const uint64_t wide[] = {1, 24, 4, 4}, flat[] = {1, 128},
                   some[] = {1, 5, 4, 4};
    shape(build_concat(&graph, "concat", v, 3, 1), 4, wide);
    assert_int_equal(last()->iter[1].kind, SC_I_OPAQUE);
    shape(build_flatten(&graph, "flatten", x), 2, flat);
    assert_int_equal(last()->iter[1].kind, SC_I_FREE);
    assert_int_equal(last()->iter[2].kind, SC_I_OPAQUE);
    shape(build_slice(&graph, "slice", x, 1, 5), 4, some);
    const uint64_t up[] = {1, 8, 8, 8}, one[] = {1, 8, 1, 1};
    shape(build_upsample(&graph, "up", x, 2), 4, up);
    net_value scale = build_pool_to(&graph, "pool", x, 1);
    shape(scale, 4, one);
    net_value y = build_elementwise(&graph, "mul", x, scale, "product");
    shape(y, 4, (const uint64_t[]){1, 8, 4, 4});
    assert_int_equal(last()->in[1].at[1], 1);
    assert_int_equal(last()->in[1].at[2], SC_NO_ITER);
    finishes();
}

/* ---- what does not fit */

static net_value too_small(net_value x)
{
    return build_conv(&graph, "bad", x, 4, (build_window){.k = 9});
}

static net_value groups(net_value x)
{
    return build_conv(&graph, "bad", x, 4, (build_window){.k = 1, .groups = 3});
}

static net_value terms(net_value x)
{
    net_value y = build_slice(&graph, "half", x, 1, 4);
    return build_add(&graph, "bad", x, y);
}

static net_value factors(net_value x)
{
    net_value y = build_slice(&graph, "half", x, 3, 3);
    return build_matmul(&graph, "bad", y, x, false);
}

static net_value parts(net_value x)
{
    const net_value v[] = {x, build_slice(&graph, "half", x, 2, 2)};
    return build_concat(&graph, "bad", v, 2, 1);
}

static net_value more(net_value x)
{
    return build_slice(&graph, "bad", x, 1, 9);
}

static net_value bytes(net_value x)
{
    const build_dim dim[] = {{"batch", 1, 0}, {"c", 127, 1}};
    return build_view(&graph, "bad", x, dim, 2, false);
}

static net_value missing(net_value x)
{
    return build_add(&graph, "bad", x, 77);
}

/* The first misfit is told; what follows it is left out. */
static void test_refused(void **state)
{
    (void)state;
    static net_value (*const bad[])(net_value) = {
        too_small, groups, terms, factors, parts, more, bytes, missing};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        const sc_net *g = NULL;
        build_init(&graph, &arena, "test", "image");
        build_scope(&graph, "net.%d", (int)i);
        net_value x = bad[i](build_image(&graph, 8, 2, 4));
        assert_int_equal(x, SC_NONE);
        assert_int_equal(build_linear(&graph, "after", x, 4, true), SC_NONE);
        sc_err_init(&err);
        assert_int_equal(build_finish(&graph, &g, &err), SC_EBUG);
        assert_null(g);
        if (!strstr(err.d[0].msg, ".bad: ")) fail_msg("%s", err.d[0].msg);
    }
}

/* Out of memory at any point is an error, not a crash. */
static void test_memory(void **state)
{
    (void)state;
    const sc_zoo_entry *z = sc_zoo_find("inception-v3");
    for (size_t limit = 100; limit < 2000000; limit = limit * 5 / 4) {
        const sc_net *g = NULL;
        sc_arena small;
        sc_arena_init(&small, limit);
        sc_err_init(&err);
        sc_status s = sc_zoo_build(z, &small, &g, &err);
        assert_true(s == SC_OK ? g != NULL : s == SC_ENOMEM);
        sc_arena_free(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_windows, open_graph, teardown),
        cmocka_unit_test_setup_teardown(test_conv, open_graph, teardown),
        cmocka_unit_test_setup_teardown(test_products, open_graph, teardown),
        cmocka_unit_test_setup_teardown(test_moves, open_graph, teardown),
        cmocka_unit_test_setup_teardown(test_refused, open_graph, teardown),
        cmocka_unit_test_setup_teardown(test_memory, open_graph, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
