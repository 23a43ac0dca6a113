/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of graphs: text round trip, renumbering. */
#include "graph_check.h"
#include "graph_text.h"
#include "random_graph.h"
#include "reference_exec.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static bool same_classes(const sc_graph *x, const sc_graph *y)
{
    bool ok = x->n_classes == y->n_classes;
    for (uint32_t c = 0; ok && c < x->n_classes; c++) {
        const sc_class *a = &x->classes[c], *b = &y->classes[c];
        ok = !strcmp(a->name, b->name) && a->rank == b->rank &&
             a->multiplicity == b->multiplicity;
    }
    return ok;
}

static bool same_rest(const sc_graph *x, const sc_graph *y)
{
    bool ok = x->n_traffic == y->n_traffic && x->n_lifetimes == y->n_lifetimes;
    for (uint32_t k = 0; ok && k < x->n_traffic; k++) {
        const sc_traffic *a = &x->traffics[k], *b = &y->traffics[k];
        ok = a->n == b->n && !memcmp(a->link, b->link, a->n * sizeof *a->link);
        for (uint32_t i = 0; ok && i < a->n; i++)
            ok = a->share[i] == b->share[i];
    }
    for (uint32_t k = 0; ok && k < x->n_lifetimes; k++) {
        const sc_lifetime *a = &x->lifetime[k], *b = &y->lifetime[k];
        ok = !strcmp(a->name, b->name) && a->device == b->device &&
             a->kind == b->kind && a->bytes == b->bytes &&
             a->first == b->first && a->n_last == b->n_last;
        for (uint32_t i = 0; ok && i < a->n_last; i++)
            ok = a->last[i] == b->last[i];
    }
    return ok;
}

#define SAME(column, n) (!memcmp(x->column, y->column, (n) * sizeof *x->column))

static bool same_graph(const sc_graph *x, const sc_graph *y)
{
    if (!same_classes(x, y) || !same_rest(x, y) || x->n_ops != y->n_ops ||
        x->n_deps != y->n_deps || !x->cls_head != !y->cls_head)
        return false;
    uint32_t n = x->n_ops;
    bool ok = (!x->cls_head || SAME(cls_head, n + 1)) &&
              SAME(cls, sc_op_place(x, n)) && SAME(latency, n) &&
              SAME(traffic, n) && SAME(work, n) && SAME(kind, n) &&
              SAME(stream, n) && SAME(n_preds, n) && SAME(succ_head, n + 1) &&
              SAME(succ, x->n_deps) && SAME(cat, n) && SAME(bytes, n) &&
              SAME(flops, n);
    for (sc_op i = 0; ok && i < n; i++) ok = !strcmp(x->name[i], y->name[i]);
    return ok;
}

/* Tensors of a graph that has ops. */
static void add_tensors(prop *p, sc_arena *a, sc_graph *g)
{
    uint32_t n = (uint32_t)prop_below(p, 5);
    sc_lifetime *all = SC_NEW_N(a, sc_lifetime, n);
    for (uint32_t i = 0; i < n; i++) {
        sc_op *last = SC_NEW_N(a, sc_op, 3);
        all[i] = (sc_lifetime){
            .name = prop_below(p, 2) ? "t" : "x, micro-batch 1",
            .device = (uint32_t)prop_below(p, g->n_classes),
            .kind = (uint8_t)prop_below(p, SC_N_MEM_KINDS),
            .bytes = prop_below(p, 1 << 30),
            .first =
                prop_below(p, 2) ? (sc_op)prop_below(p, g->n_ops) : SC_NONE,
            .last = last,
            .n_last = (uint32_t)prop_below(p, 4)};
        for (uint32_t k = 0; k < 3; k++)
            last[k] = (sc_op)prop_below(p, g->n_ops);
    }
    g->lifetime = all;
    g->n_lifetimes = n;
}

/* `links`: on several classes, with traffic and tensors. */
static bool reads_back(prop *p, void *links)
{
    sc_arena a;
    sc_arena_init(&a, 0);
    sc_err err;
    sc_graph g, h;
    sc_text t;
    sc_err_init(&err);
    sc_text_init(&t);
    bool ok = links ? random_exec(p, 40, true, false, &a, &g, &err)
                    : random_graph(p, 40, &a, &g, &err);
    if (ok && links && g.n_ops) add_tensors(p, &a, &g);
    ok = ok && !graph_check(&g, &err);
    if (ok) {
        sc_graph_write(&g, &t);
        ok = !t.failed && !graph_text(t.buf, t.len, &a, &h, &err) &&
             !graph_check(&h, &err) && same_graph(&g, &h);
    }
    if (!ok && prop_reporting(p))
        printf("%s%s\n", t.buf, err.n ? err.d[0].msg : "");
    sc_text_free(&t);
    sc_arena_free(&a);
    return ok;
}

static void test_round_trip(void **state)
{
    (void)state;
    int yes = 1;
    assert_true(prop_check("graph text round trip", 2000, reads_back, NULL));
    assert_true(prop_check("text with links", 1000, reads_back, &yes));
}

/* Ops given in a shuffled order, each on a class of its own (so that no
 * in-stream order forbids it): names tell which is which. */
#define N_MAX 30

static bool renumbers(prop *p, void *ctx)
{
    (void)ctx;
    static const char *const name[N_MAX] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
        "k", "l", "m", "n", "o", "p", "q", "r", "s", "t",
        "u", "v", "w", "x", "y", "z", "A", "B", "C", "D"};
    uint32_t n = 1 + (uint32_t)prop_below(p, N_MAX), place[N_MAX], n_deps = 0;
    bool dep[N_MAX][N_MAX] = {{false}}; /* [before][after], by place */
    sc_arena a;
    sc_arena_init(&a, 0);
    sc_err err;
    sc_graph g;
    sc_err_init(&err);
    sc_graph_builder *b = sc_graph_builder_new(&a);
    for (uint32_t i = 0; i < n; i++) place[i] = i;
    for (uint32_t i = n; i-- > 1;) {
        uint32_t k = (uint32_t)prop_below(p, i + 1), x = place[i];
        place[i] = place[k];
        place[k] = x;
    }
    for (uint32_t i = 0; i < n; i++) {
        sc_op_desc d = {.name = name[i], .traffic = SC_NONE};
        d.cls = sc_graph_add_class(b, name[i], 0, 1);
        sc_graph_add_op(b, &d);
    }
    for (uint32_t k = 0; k < 2 * n; k++) {
        uint32_t x = (uint32_t)prop_below(p, n), y = (uint32_t)prop_below(p, n);
        if (place[x] >= place[y]) continue;
        n_deps += !dep[x][y];
        dep[x][y] = true;
        sc_graph_add_dep(b, x, y);
    }
    bool ok = !sc_graph_build(b, &a, &g, &err) && !graph_check(&g, &err) &&
              g.n_ops == n && g.n_deps == n_deps;
    for (sc_op i = 0; ok && i < n; i++)
        for (uint32_t k = g.succ_head[i]; ok && k < g.succ_head[i + 1]; k++)
            ok = dep[g.cls[i]][g.cls[g.succ[k]]] && g.name[i] == name[g.cls[i]];
    sc_arena_free(&a);
    return ok;
}

static void test_renumber(void **state)
{
    (void)state;
    assert_true(prop_check("any order of ops", 1000, renumbers, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_renumber)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
