/* SPDX-License-Identifier: Apache-2.0 */
#include "random_graph.h"

static uint32_t add_classes(prop *p, sc_graph_builder *b, sc_arena *a)
{
    uint32_t n = 1 + (uint32_t)prop_below(p, 6), rank = 0;
    for (uint32_t c = 0; c < n; c++) {
        uint32_t ranks = 1 + (uint32_t)prop_below(p, 3);
        sc_graph_add_class(b, c ? sc_sprintf(a, "s%u", c) : "every \"rank\"",
                           rank, ranks);
        rank += ranks;
    }
    return n;
}

static sc_time random_work(prop *p)
{
    switch (prop_below(p, 4)) {
    case 0: return (sc_time)prop_below(p, 4);
    case 1: return (sc_time)prop_below(p, 5) * 1000000;
    case 2: return (sc_time)prop_below(p, 1000);
    default: return (sc_time)prop_below(p, 1ull << 40);
    }
}

static void add_op(prop *p, sc_graph_builder *b, uint32_t n_classes)
{
    static const char *const names[] = {"f",   "b",      "",          "%1",
                                        "x y", "\\\"\t", "gr\xc3\xbc"};
    sc_op_desc d = {.kind = (uint8_t)prop_below(p, SC_N_OP_KINDS),
                    .stream = (uint8_t)prop_below(p, SC_N_STREAMS),
                    .cat = (uint8_t)prop_below(p, SC_N_CATS),
                    .cls = (uint32_t)prop_below(p, n_classes),
                    .traffic = SC_NONE,
                    .name = names[prop_below(p, 7)]};
    if (d.cat == SC_CAT_BUBBLE) d.cat = SC_CAT_OTHER;
    if (d.kind != SC_OP_MARK) d.work = random_work(p);
    if (prop_below(p, 2)) d.bytes = prop_below(p, 1 << 30);
    if (prop_below(p, 8) == 7) d.bytes = UINT64_MAX - prop_below(p, 99);
    if (prop_below(p, 2)) d.flops = prop_unit(p) * 1e15;
    sc_graph_add_op(b, &d);
}

bool random_graph(prop *p, uint32_t max_ops, sc_arena *a, sc_graph *out,
                  sc_err *err)
{
    sc_graph_builder *b = sc_graph_builder_new(a);
    if (!b) return false;
    uint32_t classes = add_classes(p, b, a);
    uint32_t n = (uint32_t)prop_below(p, max_ops + 1u);
    for (sc_op i = 0; i < n; i++) {
        add_op(p, b, classes);
        uint32_t n_deps = i ? (uint32_t)prop_below(p, 4) : 0;
        for (uint32_t k = 0; k < n_deps; k++)
            sc_graph_add_dep(b, (sc_op)prop_below(p, i), i);
    }
    return sc_graph_build(b, a, out, err) == SC_OK;
}

void random_rates(prop *p, sc_sim_opts *o)
{
    for (int x = 0; x < SC_N_OP_KINDS; x++)
        for (int y = 0; y < SC_N_OP_KINDS; y++)
            if (prop_below(p, 2)) o->rate[x][y] = 1 - 0.9 * prop_unit(p);
}
