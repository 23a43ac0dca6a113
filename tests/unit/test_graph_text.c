/* SPDX-License-Identifier: Apache-2.0 */
#include <stepcast/graph.h>

#include "fixture.h"

#include <stdio.h>
#include <string.h>

static sc_status read_text(const char *text, sc_graph *g)
{
    return sc_graph_read(text, strlen(text), "case.graph", &arena, g, &err);
}

static const char pipeline[] =
    "graph 1\n"
    "axis pp 2\n"
    "axis dp 4\n"
    "class s0 pp=0   # first stage\n"
    "class s1 pp=1\n"
    "group dp span dp\n"
    "op f0 compute class s0 stream compute work 10us flops 1e12 cat compute\n"
    "op x0 p2p class s0 peer s1 stream p2p work 1us bytes 4MB cat exposed_pp "
    "after f0\n"
    "op f1 compute class s1 stream compute work 10us after x0\n"
    "op g1 coll class s1 stream grad group dp work 2.5us after f1,x0\n";

static void test_read(void **state)
{
    (void)state;
    sc_graph g;
    assert_int_equal(read_text(pipeline, &g), SC_OK);
    assert_int_equal(g.n_ops, 4);
    assert_int_equal(g.n_deps, 4);
    assert_int_equal(g.work[0], 10000000);
    assert_true(g.flops[0] == 1e12);
    assert_int_equal(g.bytes[1], 4000000);
    assert_int_equal(g.peer[1], 1);
    assert_int_equal(g.kind[1], SC_OP_P2P);
    assert_int_equal(g.cat[1], SC_CAT_PP);
    assert_int_equal(g.stream[2], SC_S_COMPUTE);
    assert_int_equal(g.work[3], 2500000);
    assert_int_equal(g.cat[3], SC_CAT_DP);
    assert_int_equal(g.group[3], 0);
    assert_int_equal(g.groups[0].size, 4);
    assert_int_equal(g.classes[1].multiplicity, 4);
    assert_string_equal(g.name[3], "g1");
}

static void test_write(void **state)
{
    (void)state;
    sc_graph g;
    sc_text t;
    sc_text_init(&t);
    assert_int_equal(read_text(pipeline, &g), SC_OK);
    sc_graph_write(&g, &t);
    assert_string_equal(
        t.buf, "graph 1\n"
               "axis pp 2\n"
               "axis dp 4\n"
               "class s0 pp=0\n"
               "class s1 pp=1\n"
               "group dp span dp\n"
               "op f0 compute class s0 work 10us flops 1TFLOP\n"
               "op x0 p2p class s0 work 1us bytes 4MB peer s1 after f0\n"
               "op f1 compute class s1 work 10us after x0\n"
               "op g1 coll class s1 stream grad work 2500ns group dp after "
               "x0,f1\n");
    sc_text_free(&t);
}

static const char links[] =
    "graph 1\n"
    "class gpu0\n"
    "class gpu1 rank=1 ranks=4\n"
    "traffic t0 17=0.5 3=1.25\n"
    "op f compute class gpu0 work 10us\n"
    "op g coll class gpu1,gpu0 work 3us latency 1us bytes 4MB traffic t0 "
    "after f\n"
    "op end mark class \"\" after g\n"
    "tensor \"f out\" activation class gpu1 bytes 4KiB from f until f,g\n"
    "tensor w weight class gpu0 bytes 1GiB\n";

static void test_links(void **state)
{
    (void)state;
    sc_graph g;
    sc_text t;
    sc_text_init(&t);
    assert_int_equal(read_text(links, &g), SC_OK);
    assert_int_equal(sc_graph_check(&g, &err), SC_OK);
    assert_int_equal(g.classes[1].rank, 1);
    assert_int_equal(g.classes[1].multiplicity, 4);
    assert_true(g.cls_head[2] == 3 && g.cls_head[3] == 3);
    assert_true(g.cls[1] == 1 && g.cls[2] == 0);
    assert_int_equal(g.latency[1], 1000000);
    assert_true(g.traffic[0] == SC_NONE && g.traffic[1] == 0);
    assert_true(g.traffics[0].link[0] == 17 && g.traffics[0].share[1] == 1.25);
    assert_int_equal(g.n_lifetimes, 2);
    assert_true(g.lifetime[0].first == 0 && g.lifetime[0].n_last == 2);
    assert_int_equal(g.lifetime[0].last[1], 1);
    assert_true(g.lifetime[1].first == SC_NONE && g.lifetime[1].n_last == 0);
    sc_graph_write(&g, &t);
    assert_string_equal(t.buf, links);
    sc_text_free(&t);
}

/* Each text has one error, at this place. */
static void test_errors_of_links(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        uint32_t line, col;
        sc_code code;
    } wrong[] = {
        {"class a ranks=0\n", 2, 15, SC_C_RANGE},
        {"class \"\"\n", 2, 7, SC_C_SYNTAX},
        {"axis x 2\nclass a rank=1\n", 3, 9, SC_C_REFERENCE},
        {"traffic t x=1\n", 2, 11, SC_C_TYPE},
        {"traffic t 1=-1\n", 2, 13, SC_C_RANGE},
        {"traffic t 1\n", 2, 12, SC_C_SYNTAX},
        {"op a coll traffic t\n", 2, 19, SC_C_REFERENCE},
        {"op a coll work 1us latency 2us\n", 2, 6, SC_C_RANGE},
        {"op a coll class \"\"\n", 2, 6, SC_C_RANGE},
        {"op a mark\ntensor t weight from a,a\n", 3, 22, SC_C_SYNTAX},
        {"op a mark\ntensor t weight until b\n", 3, 23, SC_C_REFERENCE},
        {"tensor t heavy\n", 2, 10, SC_C_UNKNOWN_NAME},
        {"op a mark\ntensor t weight from a from a\n", 3, 24, SC_C_DUPLICATE},
    };

    for (size_t i = 0; i < SC_COUNT(wrong); i++) {
        char text[200];
        sc_graph g;
        sc_err_init(&err);
        snprintf(text, sizeof text, "graph 1\n%s", wrong[i].text);
        assert_int_equal(read_text(text, &g), SC_EINPUT);
        if (err.d[0].line != wrong[i].line || err.d[0].col != wrong[i].col ||
            err.d[0].code != wrong[i].code)
            fail_msg("%s: %u:%u: %d %s", wrong[i].text, err.d[0].line,
                     err.d[0].col, err.d[0].code, err.d[0].msg);
    }
}

static void test_labels(void **state)
{
    (void)state;
    sc_graph g;
    sc_text t;
    sc_text_init(&t);
    assert_int_equal(read_text("graph 1\n"
                               "op a mark name same\n"
                               "op b mark name same after a\n"
                               "op c mark name \"two words\" after b\n"
                               "op d mark name d after c\n",
                               &g),
                     SC_OK);
    sc_graph_write(&g, &t);
    assert_string_equal(t.buf, "graph 1\n"
                               "class all\n"
                               "op %0 mark name same\n"
                               "op %1 mark name same after %0\n"
                               "op %2 mark name \"two words\" after %1\n"
                               "op d mark after %2\n");
    sc_text_free(&t);
}

static void test_forward_reference(void **state)
{
    (void)state;
    sc_graph g;
    assert_int_equal(read_text("graph 1\n"
                               "op late mark after early\n"
                               "op early compute work 1ns",
                               &g),
                     SC_OK);
    assert_string_equal(g.name[0], "early");
    assert_string_equal(g.name[1], "late");
}

static void test_quantities(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_time ps;
    } good[] = {{"0", 0},
                {"1ps", 1},
                {"0.1ps", 1},
                {"1.0001ns", 1001},
                {"1.5ms", 1500000000},
                {"0.000001s", 1000000},
                {"9223372036854775807ps", INT64_MAX},
                {"106.5d", 9201600000000000000},
                {".5min", 30000000000000}};

    for (size_t i = 0; i < SC_COUNT(good); i++) {
        sc_graph g;
        const char *text =
            sc_sprintf(&arena, "graph 1\nop a compute work %s", good[i].text);
        assert_int_equal(read_text(text, &g), SC_OK);
        assert_true(g.work[0] == good[i].ps);
    }
    static const char *const bad[] = {"10",
                                      "-1us",
                                      "1e3us",
                                      "us",
                                      ".us",
                                      "1US",
                                      "9223372036854775808ps",
                                      "107d",
                                      "99999999999999999999999ps",
                                      "1us2",
                                      "nan",
                                      "0.5"};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_graph g;
        const char *text =
            sc_sprintf(&arena, "graph 1\nop a compute work %s", bad[i]);
        sc_err_init(&err);
        assert_int_equal(read_text(text, &g), SC_EINPUT);
        assert_true(err.d[0].code == SC_C_UNIT || err.d[0].code == SC_C_RANGE);
        assert_int_equal(err.d[0].line, 2);
        assert_int_equal(err.d[0].col, 19);
    }
}

static void test_all_errors(void **state)
{
    (void)state;

    static const struct {
        uint32_t line, col;
        sc_code code;
    } want[] = {
        {2, 6, SC_C_RANGE},         {3, 5, SC_C_SYNTAX},
        {4, 1, SC_C_UNKNOWN_NAME},  {5, 6, SC_C_UNKNOWN_NAME},
        {6, 14, SC_C_UNKNOWN_NAME}, {8, 4, SC_C_DUPLICATE},
        {9, 17, SC_C_SYNTAX},       {10, 23, SC_C_DUPLICATE},
        {11, 6, SC_C_RANGE},        {12, 19, SC_C_SYNTAX},
        {13, 20, SC_C_REFERENCE},   {14, 19, SC_C_REFERENCE},
    };

    sc_graph g = {.n_ops = 99};
    assert_int_equal(read_text("graph 1\n"
                               "axis pp 0\n"
                               "axis\n"
                               "clas c\n"
                               "op a compte\n"
                               "op b compute wrk 1us\n"
                               "op c compute\n"
                               "op c compute\n"
                               "op d mark after \n"
                               "op e compute work 1us work 2us\n"
                               "op f mark work 1us\n"
                               "op g compute name \"x\n"
                               "op h compute class nowhere\n"
                               "op i mark after a,nothing\n",
                               &g),
                     SC_EINPUT);
    assert_int_equal(g.n_ops, 99);
    assert_int_equal(err.n, SC_COUNT(want));
    for (uint32_t i = 0; i < err.n; i++) {
        assert_int_equal(err.d[i].line, want[i].line);
        assert_int_equal(err.d[i].col, want[i].col);
        assert_int_equal(err.d[i].code, want[i].code);
        assert_string_equal(err.d[i].file, "case.graph");
    }
    assert_non_null(strstr(err.d[3].hint, "compute"));
}

static void test_many_errors_are_counted(void **state)
{
    (void)state;
    sc_text t;
    sc_graph g;
    sc_text_init(&t);
    sc_text_add(&t, "graph 1\n");
    for (int i = 0; i < 100; i++) sc_text_add(&t, "op %d nothing\n", i);
    assert_int_equal(read_text(t.buf, &g), SC_EINPUT);
    assert_int_equal(err.n, SC_ERR_MAX);
    assert_int_equal(err.n_more, 100 - SC_ERR_MAX);
    sc_text_free(&t);
}

static void test_cycle_has_its_line(void **state)
{
    (void)state;
    sc_graph g;
    assert_int_equal(read_text("graph 1\n"
                               "op a mark\n"
                               "op b mark after c\n"
                               "op c mark after b\n",
                               &g),
                     SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CYCLE);
    assert_true(err.d[0].line == 3 || err.d[0].line == 4);
}

static void test_header(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "# only\n", "graph 2\n",
                                      "op a mark\n", "graph\n"};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_graph g;
        sc_err_init(&err);
        assert_int_equal(read_text(bad[i], &g), SC_EINPUT);
        assert_true(err.d[0].code == SC_C_SYNTAX ||
                    err.d[0].code == SC_C_MISSING);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_read),
        T(test_write),
        T(test_links),
        T(test_errors_of_links),
        T(test_labels),
        T(test_forward_reference),
        T(test_quantities),
        T(test_all_errors),
        T(test_many_errors_are_counted),
        T(test_cycle_has_its_line),
        T(test_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
