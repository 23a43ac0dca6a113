/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "graph_check.h"
#include "graph_text.h"

#include <stdio.h>
#include <string.h>

static sc_status read_text(const char *text, sc_graph *g)
{
    return graph_text(text, strlen(text), &arena, g, &err);
}

static const char pipeline[] =
    "graph 1\n"
    "class s0 ranks=4   # first stage\n"
    "class s1 rank=4 ranks=4\n"
    "op f0 compute class s0 stream compute work 10us flops 1e12 cat compute\n"
    "op x0 p2p class s0,s1 stream p2p work 1us bytes 4MB cat exposed_pp "
    "after f0\n"
    "op f1 compute class s1 stream compute work 10us after x0\n"
    "op g1 coll class s1 stream grad work 2.5us after f1,x0\n";

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
    assert_int_equal(sc_op_place(&g, 2) - sc_op_place(&g, 1), 2);
    assert_int_equal(g.kind[1], SC_OP_P2P);
    assert_int_equal(g.cat[1], SC_CAT_PP);
    assert_int_equal(g.stream[2], SC_S_COMPUTE);
    assert_int_equal(g.work[3], 2500000);
    assert_int_equal(g.cat[3], SC_CAT_DP);
    assert_int_equal(g.classes[1].rank, 4);
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
               "class s0 ranks=4\n"
               "class s1 rank=4 ranks=4\n"
               "op f0 compute class s0 work 10us flops 1TFLOP\n"
               "op x0 p2p class s0,s1 work 1us bytes 4MB after f0\n"
               "op f1 compute class s1 work 10us after x0\n"
               "op g1 coll class s1 stream grad work 2500ns after x0,f1\n");
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
    assert_int_equal(graph_check(&g, &err), SC_OK);
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

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_read),
        T(test_write),
        T(test_links),
        T(test_labels),
        T(test_forward_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
