/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - properties of every graph and every result. */
#include "sim/run.h"

bool sim_is_ordered(const sc_graph *g)
{
    for (sc_op i = 0; i < g->n_ops; i++)
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            if (g->succ[k] <= i || g->succ[k] >= g->n_ops) return false;
    return true;
}

bool sim_is_causal(const sc_graph *g, const sc_result *r)
{
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (r->start[i] < 0 || r->end[i] < r->start[i] ||
            r->end[i] > r->makespan)
            return false;
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            if (r->start[g->succ[k]] < r->end[i]) return false;
    }
    return true;
}
