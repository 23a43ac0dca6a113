/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/builder.h"

static sc_status bug(sc_err *err, sc_op i, const char *what)
{
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "graph: op %u %s", i, what);
}

static sc_status check_ops(const sc_graph *g, sc_err *err)
{
    if (g->cls_head && g->cls_head[0] != 0)
        return bug(err, 0, "does not begin the list of classes");
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (g->cls_head && g->cls_head[i] > g->cls_head[i + 1])
            return bug(err, i, "has a broken list of classes");
        sc_op_desc op = graph_op_desc(g, i);
        const char *fault = graph_op_fault(g, &op);
        if (!op.name) fault = "has no name";
        if (fault) return bug(err, i, fault);
    }
    return SC_OK;
}

/* Counts of predecessors are compared with the lists of successors in one
 * pass without memory: sums of one random number per op, taken as often as it
 * is counted and as often as it is listed. */
static sc_status check_deps(const sc_graph *g, sc_err *err)
{
    uint64_t counted = 0, listed = 0;
    if (g->succ_head[0] != 0 || g->succ_head[g->n_ops] != g->n_deps)
        return bug(err, 0,
                   "does not begin, or the last not end, the list of "
                   "successors");
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t from = g->succ_head[i], to = g->succ_head[i + 1];
        if (from > to || to > g->n_deps)
            return bug(err, i, "has a broken list of successors");
        for (uint32_t k = from; k < to; k++) {
            sc_op s = g->succ[k];
            if (s >= g->n_ops || s <= i)
                return bug(err, i, "has a successor that is not later");
            if (k > from && s <= g->succ[k - 1])
                return bug(err, i, "has unsorted successors");
            uint64_t seed = s;
            listed += sc_random(&seed);
        }
        uint64_t seed = i;
        counted += sc_random(&seed) * g->n_preds[i];
        if (i + 1 == g->n_ops && counted != listed)
            return bug(err, i, "or another counts its predecessors wrongly");
    }
    return SC_OK;
}

static sc_status other(sc_err *err, const char *what, uint32_t k,
                       const char *fault)
{
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "graph: %s %u %s", what, k, fault);
}

static bool is_of_mesh(const sc_graph *g, const sc_class *c)
{
    if (!c->name || c->fixed >> g->n_axes) return false;
    if (g->n_axes == 0) return c->multiplicity > 0;
    return c->multiplicity == graph_ranks(g->axis_size, g->n_axes, c->fixed);
}

sc_status sc_graph_check(const sc_graph *g, sc_err *err)
{
    const char *fault;
    if (g->n_axes > SC_AXES) return bug(err, 0, "has too many axes");
    for (uint32_t c = 0; c < g->n_classes; c++)
        if (!is_of_mesh(g, &g->classes[c]))
            return other(err, "class", c, "is not of the mesh");
    for (uint32_t k = 0; k < g->n_groups; k++) {
        const sc_group *p = &g->groups[k];
        if (!p->name || p->span >> g->n_axes ||
            p->size != graph_ranks(g->axis_size, g->n_axes, ~p->span))
            return other(err, "group", k, "is not of the mesh");
    }
    for (uint32_t k = 0; k < g->n_traffic; k++)
        if ((fault = graph_traffic_fault(&g->traffics[k])))
            return other(err, "traffic", k, fault);
    for (uint32_t k = 0; k < g->n_lifetimes; k++)
        if ((fault = graph_lifetime_fault(g, &g->lifetime[k])))
            return other(err, "tensor", k, fault);
    SC_TRY(check_ops(g, err));
    return check_deps(g, err);
}
