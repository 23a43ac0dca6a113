/* SPDX-License-Identifier: Apache-2.0 */
/* Executions: what the builder keeps, renumbers and refuses. */
#include "fixture.h"
#include "graph/graph.h"

#include <math.h>
#include <string.h>

static const uint32_t dev[] = {0, 1, 2};

static sc_graph_builder *two_devices(void)
{
    sc_graph_builder *b = sc_graph_builder_new(&arena);
    sc_graph_add_class(b, "gpu0", 0, 1);
    sc_graph_add_class(b, "gpu1", 1, 4);
    return b;
}

static sc_op_desc op(const char *name, uint32_t first, uint32_t n)
{
    return (sc_op_desc){.name = name,
                        .work = 100,
                        .traffic = SC_NONE,
                        .dev = dev + first,
                        .n_dev = n};
}

static sc_op add(sc_graph_builder *b, const char *name, uint32_t first,
                 uint32_t n)
{
    sc_op_desc o = op(name, first, n);
    return sc_graph_add_op(b, &o);
}

static void keeps(void **state)
{
    (void)state;
    sc_graph x;
    uint64_t link[] = {7};
    double share[] = {1.5};
    sc_graph_builder *b = two_devices();
    assert_int_equal(sc_graph_add_traffic(b, &(sc_traffic){1, link, share}), 0);
    sc_op_desc o = op("reduce", 0, 2);
    o.kind = SC_OP_COLL;
    o.stream = SC_S_GRAD;
    o.cat = SC_CAT_DP;
    o.latency = 30;
    o.bytes = 1000;
    o.flops = 5;
    o.traffic = 0;
    sc_op first = add(b, "forward", 0, 1);
    sc_op second = sc_graph_add_op(b, &o);
    sc_graph_add_dep(b, first, second);
    sc_graph_add_dep(b, first, second);
    assert_int_equal(sc_graph_build(b, &arena, &x, &err), SC_OK);
    assert_int_equal(x.n_ops, 2);
    assert_int_equal(x.n_classes, 2);
    assert_string_equal(x.name[1], "reduce");
    assert_int_equal(x.succ_head[2], 1); /* one of two equal ones */
    assert_int_equal(x.succ[0], 1);
    assert_int_equal(sc_op_place(&x, 1), 1);
    assert_int_equal(sc_op_place(&x, 2), 3);
    assert_int_equal(x.cls[1], 0);
    assert_int_equal(x.cls[2], 1);
    assert_true(x.latency[1] == 30 && x.bytes[1] == 1000 && x.flops[1] == 5);
    assert_true(x.stream[1] == SC_S_GRAD && x.cat[1] == SC_CAT_DP);
    assert_int_equal(x.traffic[0], SC_NONE);
    assert_true(x.traffic[1] == 0 && x.traffics[0].link[0] == 7);
    assert_int_equal(x.classes[1].multiplicity, 4);
    assert_string_equal(x.classes[1].name, "gpu1");
}

/* The last op added comes first; the others keep their order. */
static void renumbers(void **state)
{
    (void)state;
    sc_graph x;
    sc_graph_builder *b = two_devices();
    add(b, "late", 0, 2);
    add(b, "later", 0, 1);
    sc_op early = add(b, "early", 1, 1);
    sc_op_desc mark = op("mark", 0, 0);
    mark.kind = SC_OP_MARK;
    mark.work = 0;
    sc_op m = sc_graph_add_op(b, &mark);
    sc_graph_add_dep(b, m, 0);
    assert_int_equal(sc_graph_build(b, &arena, &x, &err), SC_OK);
    assert_string_equal(x.name[0], "mark");
    assert_string_equal(x.name[1], "late");
    assert_string_equal(x.name[2], "later");
    assert_string_equal(x.name[3], "early");
    assert_int_equal(sc_op_place(&x, 0), 0);
    assert_int_equal(sc_op_place(&x, 1), 0);
    assert_int_equal(sc_op_place(&x, 2), 2);
    assert_int_equal(x.cls[3], 1);
    assert_int_equal(early, 2);
}

static void expect(sc_graph_builder *b, sc_code code, const char *text)
{
    sc_graph x;
    sc_err_init(&err);
    assert_int_equal(sc_graph_build(b, &arena, &x, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, code);
    if (!strstr(err.d[0].msg, text)) fail_msg("%s", err.d[0].msg);
}

/* Two collectives that two ranks enter in different orders. */
static void names_a_deadlock(void **state)
{
    (void)state;
    sc_graph_builder *b = two_devices();
    sc_op send = add(b, "send to b", 0, 1);
    sc_op recv = add(b, "receive from b", 0, 1);
    sc_op other_send = add(b, "send to a", 1, 1);
    sc_op other_recv = add(b, "receive from a", 1, 1);
    sc_graph_add_dep(b, recv, other_send);
    sc_graph_add_dep(b, other_recv, send);
    expect(b, SC_C_CYCLE, "\"send to b\"");
    assert_non_null(strstr(err.d[0].msg, "\"receive from a\""));
    assert_non_null(strstr(err.d[0].msg, "\"send to a\""));
    assert_non_null(strstr(err.d[0].hint, "stream"));
}

static void refuse(sc_op_desc o, const char *text)
{
    sc_graph_builder *b = two_devices();
    sc_graph_add_op(b, &o);
    expect(b, SC_C_RANGE, text);
}

static void refuses(void **state)
{
    (void)state;
    sc_op_desc o = op("x", 0, 1);
    o.work = -1;
    o.latency = -1;
    refuse(o, "negative work");
    o.latency = 0;
    o.work = 10;
    o.latency = 11;
    refuse(o, "latency");
    o = op("x", 0, 0);
    refuse(o, "has no class");
    o = op("x", 2, 1);
    refuse(o, "an unknown class");
    o = op("x", 0, 1);
    o.traffic = 0;
    refuse(o, "traffic");
    o = op("x", 0, 1);
    o.kind = SC_N_OP_KINDS;
    refuse(o, "kind");
    o = op("x", 0, 1);
    o.cat = SC_CAT_BUBBLE;
    refuse(o, "category");
    o = op("x", 0, 1);
    o.flops = INFINITY;
    refuse(o, "flops");

    sc_graph_builder *b = two_devices();
    add(b, "x", 0, 1);
    sc_graph_add_dep(b, 0, 5);
    expect(b, SC_C_REFERENCE, "op 5 of 1");
    b = two_devices();
    static const uint32_t twice[] = {1, 1};
    o = op("x", 0, 2);
    o.dev = twice;
    sc_graph_add_op(b, &o);
    expect(b, SC_C_DUPLICATE, "twice");
    b = two_devices();
    sc_graph_add_class(b, "nobody", 0, 0);
    expect(b, SC_C_RANGE, "no rank");
    b = two_devices();
    uint64_t link = 0;
    double share = -1;
    sc_graph_add_traffic(b, &(sc_traffic){1, &link, &share});
    expect(b, SC_C_RANGE, "share");
}

static void memory_runs_out(void **state)
{
    (void)state;
    for (size_t limit = 100; limit < 300000; limit = limit * 5 / 4) {
        sc_arena a;
        sc_graph x;
        sc_arena_init(&a, limit);
        sc_graph_builder *b = sc_graph_builder_new(&a);
        if (b) {
            sc_graph_add_class(b, "gpu", 0, 1);
            add(b, "x", 0, 1);
            add(b, "y", 0, 1);
            sc_graph_add_dep(b, 0, 1);
            sc_err_init(&err);
            sc_status s = sc_graph_build(b, &a, &x, &err);
            assert_true(s == SC_OK || s == SC_ENOMEM);
        }
        sc_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps, setup, teardown),
        cmocka_unit_test_setup_teardown(renumbers, setup, teardown),
        cmocka_unit_test_setup_teardown(names_a_deadlock, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_runs_out, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
