/* SPDX-License-Identifier: Apache-2.0 */
#include <stepcast/sim.h>

#include "fixture.h"

#include <stdio.h>
#include <string.h>

static sc_graph unfold(const char *text)
{
    sc_graph g, u;
    assert_int_equal(sc_graph_read(text, strlen(text), "t", &arena, &g, &err),
                     SC_OK);
    assert_int_equal(sc_graph_unfold(&g, 1000, &arena, &u, &err), SC_OK);
    assert_int_equal(sc_graph_check(&u, &err), SC_OK);
    return u;
}

/* Ids of the instances of a name, in order of class. */
static uint32_t find(const sc_graph *g, const char *name, sc_op out[16])
{
    uint32_t n = 0;
    for (sc_op i = 0; i < g->n_ops; i++)
        if (strcmp(g->name[i], name) == 0 && n < 16) out[n++] = i;
    return n;
}

static bool depends(const sc_graph *g, sc_op before, sc_op after)
{
    for (uint32_t k = g->succ_head[before]; k < g->succ_head[before + 1]; k++)
        if (g->succ[k] == after) return true;
    return false;
}

static void test_common_axes(void **state)
{
    (void)state;
    sc_graph u = unfold("graph 1\naxis pp 2\naxis dp 3\n"
                        "class a pp=0\nclass b pp=1\n"
                        "op p p2p class a peer b work 1us\n"
                        "op q compute class b work 1us after p\n");
    sc_op p[16], q[16];
    assert_int_equal(u.n_classes, 6);
    assert_string_equal(u.classes[4].name, "b@1");
    assert_int_equal(u.classes[4].multiplicity, 1);
    assert_int_equal(find(&u, "p", p), 3);
    assert_int_equal(find(&u, "q", q), 3);
    assert_int_equal(u.n_deps, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(depends(&u, p[i], q[i]));
        assert_int_equal(u.peer[p[i]], u.cls[q[i]]);
    }
}

/* dp is free in a and fixed in b and c: all of a feed b, b feeds all of a. */
static void test_axes_fixed_on_one_side(void **state)
{
    (void)state;
    sc_graph u = unfold("graph 1\naxis pp 2\naxis dp 3\n"
                        "class a pp=0\nclass b pp=1 dp=2\n"
                        "op p mark class a\nop q mark class b after p\n"
                        "op r mark class a after q\n");
    sc_op p[16], q[16], r[16];
    assert_int_equal(find(&u, "p", p), 3);
    assert_int_equal(find(&u, "q", q), 1);
    assert_int_equal(find(&u, "r", r), 3);
    assert_int_equal(u.n_deps, 6);
    for (int i = 0; i < 3; i++) {
        assert_true(depends(&u, p[i], q[0]));
        assert_true(depends(&u, q[0], r[i]));
    }
}

/* tp 2 x dp 2: two communicators over dp, each joins its two members. */
static void test_joins(void **state)
{
    (void)state;
    sc_graph u = unfold("graph 1\naxis dp 2\naxis tp 2\nclass c\n"
                        "group d span dp\n"
                        "op f compute work 1us\n"
                        "op before coll work 1us\n"
                        "op x coll group d work 1us after f\n");
    sc_op f[16], x[16], j[16], s[16];
    assert_int_equal(find(&u, "f", f), 4);
    assert_int_equal(find(&u, "x", x), 4);
    assert_int_equal(find(&u, "join", j), 2);
    assert_int_equal(find(&u, "before", s), 4);
    for (uint32_t i = 0; i < 4; i++) {
        sc_op join = j[i % 2]; /* ranks 0, 2 and 1, 3 (tp is fastest) */
        assert_true(depends(&u, f[i], join));
        assert_true(depends(&u, s[i], join)); /* same stream */
        assert_true(depends(&u, join, x[i]));
        assert_false(depends(&u, f[i], j[1 - i % 2]));
    }
    assert_int_equal(u.kind[j[0]], SC_OP_MARK);
}

/* A late member makes all members wait, and nobody else. */
static void test_members_start_together(void **state)
{
    (void)state;
    sc_graph u = unfold("graph 1\naxis dp 2\naxis tp 2\nclass c\n"
                        "group d span dp\n"
                        "op f compute work 1us\n"
                        "op x coll group d work 1us after f\n");
    sc_op f[16], x[16];
    sc_sim_opts o;
    sc_result r;
    find(&u, "f", f);
    find(&u, "x", x);
    u.work[f[2]] = 5000000;
    sc_sim_opts_init(&o);
    assert_int_equal(sc_sim_run(&u, &o, &arena, &r, &err), SC_OK);
    assert_int_equal(r.start[x[0]], 5000000);
    assert_int_equal(r.start[x[1]], 1000000);
    assert_int_equal(r.start[x[2]], 5000000);
    assert_int_equal(r.start[x[3]], 1000000);
}

static void test_limit(void **state)
{
    (void)state;
    static const char text[] = "graph 1\naxis dp 4000000000\nop a mark\n";
    sc_graph g, u = {.n_ops = 5};
    assert_int_equal(sc_graph_read(text, strlen(text), "t", &arena, &g, &err),
                     SC_OK);
    assert_int_equal(sc_graph_unfold(&g, 1000, &arena, &u, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_TOO_BIG);
    assert_int_equal(u.n_ops, 5);
}

/* One op on both stages, in each replica. */
static void test_several_classes(void **state)
{
    (void)state;
    sc_graph u = unfold("graph 1\naxis pp 2\naxis dp 3\n"
                        "class a pp=0\nclass b pp=1\n"
                        "op f compute class b work 1us\n"
                        "op x p2p class a,b work 1us after f\n");
    sc_op f[16], x[16];
    assert_int_equal(find(&u, "f", f), 3);
    assert_int_equal(find(&u, "x", x), 3);
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t at = sc_op_place(&u, x[k]);
        assert_int_equal(sc_op_place(&u, x[k] + 1) - at, 2);
        assert_int_equal(u.cls[at], k);
        assert_int_equal(u.cls[at + 1], 3 + k);
        assert_true(depends(&u, f[k], x[k]));
    }
}

static void test_what_has_no_meaning(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "class a ranks=2\nop f mark class a\n",
        "op f mark class \"\"\n",
        "axis dp 2\nclass a\ntensor t weight\n",
        "axis dp 2\nclass a\ntraffic t 1=1\n",
        "axis dp 2\nclass a dp=0\nclass b\nop f p2p class a,b\n",
    };
    for (size_t i = 0; i < SC_COUNT(texts); i++) {
        char text[200];
        sc_graph g, u;
        sc_err_init(&err);
        snprintf(text, sizeof text, "graph 1\n%s", texts[i]);
        assert_int_equal(
            sc_graph_read(text, strlen(text), "t", &arena, &g, &err), SC_OK);
        assert_int_equal(sc_graph_unfold(&g, 1000, &arena, &u, &err),
                         SC_EINPUT);
        assert_int_equal(err.d[0].code, SC_C_UNSUPPORTED);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_common_axes),
        T(test_axes_fixed_on_one_side),
        T(test_joins),
        T(test_members_start_together),
        T(test_limit),
        T(test_several_classes),
        T(test_what_has_no_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
