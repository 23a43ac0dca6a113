/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/builder.h"

static sc_status bug(sc_err *err, sc_op i, const char *what)
{
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "graph: op %u %s", i, what);
}

static const char *op_fault(const sc_graph *g, sc_op i)
{
    if (g->kind[i] >= SC_N_OP_KINDS) return "has no legal kind";
    if (g->stream[i] >= SC_N_STREAMS) return "has no legal stream";
    if (g->cat[i] >= SC_N_CATS || g->cat[i] == SC_CAT_BUBBLE)
        return "has no legal category";
    if (g->cls[i] >= g->n_classes) return "is of no class";
    if (g->group[i] != SC_NONE && g->group[i] >= g->n_groups)
        return "is of no group";
    if (g->peer[i] != SC_NONE && g->peer[i] >= g->n_classes)
        return "has no peer";
    if (g->work[i] < 0) return "has negative work";
    if (g->kind[i] == SC_OP_MARK && g->work[i]) return "is a mark with work";
    if (!(g->flops[i] >= 0)) return "has negative flops";
    if (!g->name[i]) return "has no name";
    return NULL;
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

sc_status sc_graph_check(const sc_graph *g, sc_err *err)
{
    if (g->n_axes > SC_AXES) return bug(err, 0, "has too many axes");
    for (uint32_t c = 0; c < g->n_classes; c++) {
        const sc_class *k = &g->classes[c];
        if (!k->name || k->fixed >> g->n_axes ||
            k->multiplicity != graph_ranks(g->axis_size, g->n_axes, k->fixed))
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "graph: class %u is not of the mesh", c);
    }
    for (uint32_t k = 0; k < g->n_groups; k++) {
        const sc_group *p = &g->groups[k];
        if (!p->name || p->span >> g->n_axes ||
            p->size != graph_ranks(g->axis_size, g->n_axes, ~p->span))
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "graph: group %u is not of the mesh", k);
    }
    for (sc_op i = 0; i < g->n_ops; i++) {
        const char *fault = op_fault(g, i);
        if (fault) return bug(err, i, fault);
    }
    return check_deps(g, err);
}
