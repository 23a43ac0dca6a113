/* SPDX-License-Identifier: Apache-2.0 */
/* graph_check.h - whether a graph keeps what graph.h promises of it. */
#ifndef TESTS_GRAPH_CHECK_H
#define TESTS_GRAPH_CHECK_H

#include "graph/builder.h"

static inline sc_status graph_check_bug(sc_err *e, sc_op i, const char *what)
{
    return sc_error(e, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "graph: op %u %s", i, what);
}

/* Op `i` as it was added; its classes are in the graph. */
static inline sc_op_desc graph_op_desc(const sc_graph *g, sc_op i)
{
    uint32_t from = sc_op_place(g, i), to = sc_op_place(g, i + 1);
    return (sc_op_desc){.name = g->name[i],
                        .work = g->work[i],
                        .latency = g->latency[i],
                        .cls = from < to ? g->cls[from] : SC_NONE,
                        .traffic = g->traffic[i],
                        .bytes = g->bytes[i],
                        .flops = g->flops[i],
                        .kind = g->kind[i],
                        .stream = g->stream[i],
                        .cat = g->cat[i],
                        .dev = to - from == 1 ? NULL : &g->cls[from],
                        .n_dev = to - from,
                        .parts = g->parts ? g->parts[i] : NULL};
}

static inline sc_status graph_check_ops(const sc_graph *g, sc_err *e)
{
    if (g->cls_head && g->cls_head[0] != 0)
        return graph_check_bug(e, 0, "does not begin the list of classes");
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (g->cls_head && g->cls_head[i] > g->cls_head[i + 1])
            return graph_check_bug(e, i, "has a broken list of classes");
        sc_op_desc op = graph_op_desc(g, i);
        const char *fault = graph_op_fault(g, &op);
        if (!op.name) fault = "has no name";
        if (fault) return graph_check_bug(e, i, fault);
    }
    return SC_OK;
}

/* Counts of predecessors are compared with the lists of successors in one
 * pass without memory: sums of one random number per op, taken as often as it
 * is counted and as often as it is listed. */
static inline sc_status graph_check_deps(const sc_graph *g, sc_err *e)
{
    uint64_t counted = 0, listed = 0;
    if (g->succ_head[0] != 0 || g->succ_head[g->n_ops] != g->n_deps)
        return graph_check_bug(
            e, 0,
            "does not begin, or the last not end, the list of "
            "successors");
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t from = g->succ_head[i], to = g->succ_head[i + 1];
        if (from > to || to > g->n_deps)
            return graph_check_bug(e, i, "has a broken list of successors");
        for (uint32_t k = from; k < to; k++) {
            sc_op s = g->succ[k];
            if (s >= g->n_ops || s <= i)
                return graph_check_bug(e, i,
                                       "has a successor that is not later");
            if (k > from && s <= g->succ[k - 1])
                return graph_check_bug(e, i, "has unsorted successors");
            uint64_t seed = s;
            listed += sc_random(&seed);
        }
        uint64_t seed = i;
        counted += sc_random(&seed) * g->n_preds[i];
        if (i + 1 == g->n_ops && counted != listed)
            return graph_check_bug(
                e, i, "or another counts its predecessors wrongly");
    }
    return SC_OK;
}

static inline sc_status graph_check_other(sc_err *e, const char *what,
                                          uint32_t k, const char *fault)
{
    return sc_error(e, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "graph: %s %u %s", what, k, fault);
}

/* SC_C_BUG names the first that is broken. */
static inline sc_status graph_check(const sc_graph *g, sc_err *e)
{
    const char *fault;
    for (uint32_t c = 0; c < g->n_classes; c++)
        if (!g->classes[c].name || g->classes[c].multiplicity == 0)
            return graph_check_other(e, "class", c, "has no name or no ranks");
    for (uint32_t k = 0; k < g->n_traffic; k++)
        if ((fault = graph_traffic_fault(&g->traffics[k])))
            return graph_check_other(e, "traffic", k, fault);
    for (uint32_t k = 0; k < g->n_lifetimes; k++)
        if ((fault = graph_lifetime_fault(g, &g->lifetime[k])))
            return graph_check_other(e, "tensor", k, fault);
    SC_TRY(graph_check_ops(g, e));
    return graph_check_deps(g, e);
}

#endif
