/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_graph_build.c - shapes, FLOP and ports of single operators, and
 * what the builder refuses. */
#include "fixture.h"
#include "model/graph_build.h"

#include <string.h>

static gb_graph graph;

static int open_graph(void **state)
{
    int rc = setup(state);
    gb_init(&graph, &arena, "test", "image");
    return rc;
}

static const sc_gop *last(void)
{
    return &graph.g.op[graph.g.n_ops - 1];
}

static void shape(gb_value v, unsigned n, const uint64_t *want)
{
    const sc_gtensor *t = gb_tensor(&graph, v);
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
    const sc_opgraph *g = NULL;
    (void)gb_finish(&graph, &g, &err);
    no_error();
    assert_non_null(g);
}

/* What PyTorch's windows make of 224, 7 and 12 positions. */
static void test_windows(void **state)
{
    (void)state;

    static const struct {
        uint64_t in, out;
        gb_window w;
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
        gb_value x = gb_image(&graph, 4, 2, cases[i].in);
        gb_value y = cases[i].pool ? gb_pool(&graph, "pool", x, cases[i].w)
                                   : gb_conv(&graph, "conv", x, 6, cases[i].w);
        const uint64_t want[] = {1, cases[i].pool ? 4 : 6, cases[i].out,
                                 cases[i].out};
        shape(y, 4, want);
    }
    finishes();
}

static void test_conv(void **state)
{
    (void)state;
    gb_value x = gb_image(&graph, 8, 3, 16);
    gb_window w = {.k = 3, .pad = 1, .stride = 2, .groups = 4, .bias = true};
    gb_value y = gb_conv(&graph, "a", x, 12, w);
    const uint64_t want[] = {1, 12, 8, 8, 8}, weight[] = {12, 2, 3, 3, 3};
    shape(y, 5, want);
    const sc_gop *op = last();
    assert_int_equal(op->n_iter, SC_G_ITERS);
    shape(op->weight[0].tensor, 5, weight);
    assert_true(op->flops == 2.0 * 12 * 2 * 27 * 512);
    assert_string_equal(op->detail, "3x3x3, stride 2, 4 groups");
    assert_int_equal(op->iter[op->in[0].at[1]].extent, 4);
    assert_int_equal(op->in[0].at[1], op->out.at[1]);
    assert_string_equal(op->iter[op->weight[1].at[0]].name, "group");

    gb_window up = {.k = 2, .stride = 2};
    gb_value z = gb_conv_transposed(&graph, "b", y, 6, up);
    const uint64_t twice[] = {1, 6, 16, 16, 16};
    shape(z, 5, twice);
    assert_true(last()->flops == 2.0 * 12 * 6 * 8 * 512);
    gb_window like = w;
    like.like = y;
    (void)gb_conv(&graph, "c", x, 12, like);
    assert_int_equal(last()->weight[0].tensor, graph.g.op[0].weight[0].tensor);
    assert_int_equal(last()->weight[1].tensor, graph.g.op[0].weight[1].tensor);
    finishes();
}

static void test_products(void **state)
{
    (void)state;
    const sc_gdim dim[] = {
        {"batch", 1, true}, {"seq", 10, false}, {"hidden", 32, false}};
    gb_value x = gb_input(&graph, "x", 3, dim, 0);
    gb_value y = gb_linear(&graph, "a", x, 32, true);
    const uint64_t want[] = {1, 10, 32};
    shape(y, 3, want);
    assert_true(last()->flops == 2.0 * 10 * 32 * 32);
    assert_string_equal(last()->iter[2].name, "in");
    assert_false(gb_tensor(&graph, x)->learns);
    assert_true(gb_tensor(&graph, y)->learns);
    gb_value s = gb_matmul(&graph, "s", y, y, true);
    const uint64_t scores[] = {1, 10, 10};
    shape(s, 3, scores);
    assert_true(last()->flops == 2.0 * 10 * 32 * 10);
    shape(gb_matmul(&graph, "c", s, y, false), 3, want);
    gb_value ids = gb_labels(&graph, "ids", 5);
    gb_value e = gb_embed(&graph, "e", ids, 1000, 16, 5);
    const uint64_t bag[] = {1, 16};
    shape(e, 2, bag);
    assert_int_equal(last()->lookups, 5);
    graph.frozen = true;
    gb_value f = gb_linear(&graph, "f", e, 4, false);
    assert_true(gb_tensor(&graph, f)->learns);
    assert_false(gb_tensor(&graph, last()->weight[0].tensor)->learns);
    gb_value g = gb_linear(&graph, "g", x, 4, false);
    assert_false(gb_tensor(&graph, g)->learns);
    finishes();
}

static void test_moves(void **state)
{
    (void)state;
    gb_value x = gb_image(&graph, 8, 2, 4);
    const gb_value v[] = {x, x, x};
    const uint64_t wide[] = {1, 24, 4, 4}, flat[] = {1, 128},
                   some[] = {1, 5, 4, 4};
    shape(gb_concat(&graph, "concat", v, 3, 1), 4, wide);
    assert_int_equal(last()->iter[1].kind, SC_I_OPAQUE);
    shape(gb_flatten(&graph, "flatten", x), 2, flat);
    assert_int_equal(last()->iter[1].kind, SC_I_FREE);
    assert_int_equal(last()->iter[2].kind, SC_I_OPAQUE);
    shape(gb_slice(&graph, "slice", x, 1, 5), 4, some);
    const uint64_t up[] = {1, 8, 8, 8}, one[] = {1, 8, 1, 1};
    shape(gb_upsample(&graph, "up", x, 2), 4, up);
    gb_value scale = gb_pool_to(&graph, "pool", x, 1);
    shape(scale, 4, one);
    gb_value y = gb_elementwise(&graph, "mul", x, scale, "product");
    shape(y, 4, (const uint64_t[]){1, 8, 4, 4});
    assert_int_equal(last()->in[1].at[1], 1);
    assert_int_equal(last()->in[1].at[2], SC_G_NO_ITER);
    finishes();
}

/* ---- what does not fit */

static gb_value too_small(gb_value x)
{
    return gb_conv(&graph, "bad", x, 4, (gb_window){.k = 9});
}

static gb_value groups(gb_value x)
{
    return gb_conv(&graph, "bad", x, 4, (gb_window){.k = 1, .groups = 3});
}

static gb_value terms(gb_value x)
{
    gb_value y = gb_slice(&graph, "half", x, 1, 4);
    return gb_add(&graph, "bad", x, y);
}

static gb_value factors(gb_value x)
{
    gb_value y = gb_slice(&graph, "half", x, 3, 3);
    return gb_matmul(&graph, "bad", y, x, false);
}

static gb_value parts(gb_value x)
{
    const gb_value v[] = {x, gb_slice(&graph, "half", x, 2, 2)};
    return gb_concat(&graph, "bad", v, 2, 1);
}

static gb_value more(gb_value x)
{
    return gb_slice(&graph, "bad", x, 1, 9);
}

static gb_value bytes(gb_value x)
{
    const gb_dim dim[] = {{"batch", 1, 0}, {"c", 127, 1}};
    return gb_view(&graph, "bad", x, dim, 2, false);
}

static gb_value missing(gb_value x)
{
    return gb_add(&graph, "bad", x, 77);
}

/* The first misfit is told; what follows it is left out. */
static void test_refused(void **state)
{
    (void)state;
    static gb_value (*const bad[])(gb_value) = {
        too_small, groups, terms, factors, parts, more, bytes, missing};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        const sc_opgraph *g = NULL;
        gb_init(&graph, &arena, "test", "image");
        gb_scope(&graph, "net.%d", (int)i);
        gb_value x = bad[i](gb_image(&graph, 8, 2, 4));
        assert_int_equal(x, SC_NONE);
        assert_int_equal(gb_linear(&graph, "after", x, 4, true), SC_NONE);
        sc_err_init(&err);
        assert_int_equal(gb_finish(&graph, &g, &err), SC_EBUG);
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
        const sc_opgraph *g = NULL;
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
