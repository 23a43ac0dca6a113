/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_branches.c - stages that are branches of a network.
 *
 * A pipeline is usually a chain: a pass begins with values that the stage
 * before sends at the end of its pass.  If rules put branches on stages, some
 * work of a stage does not depend on other stages.  Then results are sent as
 * soon as they are made, on a separate stream, and kernels wait only for their
 * own inputs.
 */
#include "plan/lower.h"

/* Whether an item can compute before other stages have sent all inputs of its
 * pass.  `waits` [n_items]: number of arrivals for which it waits. */
static bool starts_early(const lowering *g, uint32_t i, const uint32_t *waits,
                         const uint32_t *all)
{
    const program_item *it = &g->prog->item[i];
    return it->exchange == SC_NONE && !it->copy && !it->once &&
           it->pass == SC_PASS_FWD && !it->recomputed &&
           waits[i] < all[it->stage];
}

/* Number, from 1, of the latest arrival for which a kernel of a forward pass
 * waits.  In a chain all kernels wait for the last one. */
static uint32_t arrivals_of(const lowering *g, uint32_t i,
                            const uint32_t *waits, uint32_t *number,
                            uint32_t *all)
{
    const program_item *it = &g->prog->item[i];
    uint32_t most = 0;
    for (uint32_t k = 0; k < it->n_in; k++) {
        uint32_t m = g->prog->value[it->in[k]].made;
        if (m == SC_NONE || g->prog->item[m].once) continue;
        if (g->prog->item[m].stage == it->stage) {
            most = waits[m] > most ? waits[m] : most;
            continue;
        }
        if (!number[m]) number[m] = ++all[it->stage];
        most = number[m] > most ? number[m] : most;
    }
    return most;
}

sc_status lower_find_eager(lowering *g)
{
    uint32_t n = g->prog->n_items;
    if (!g->p->branches || g->rules->ready_order || g->chunks > 1 ||
        g->p->n_stages < 2)
        return SC_OK;
    uint32_t *waits = SC_NEW_N(g->a, uint32_t, n);
    uint32_t *number = SC_NEW_N(g->a, uint32_t, n);
    uint32_t *all = SC_NEW_N(g->a, uint32_t, g->p->n_stages);
    if (!waits || !number || !all) return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < n; i++) {
        const program_item *it = &g->prog->item[i];
        if (it->pass != SC_PASS_FWD || it->recomputed) continue;
        waits[i] = arrivals_of(g, i, waits, number, all);
    }
    for (uint32_t i = 0; i < n && !g->eager; i++)
        g->eager = starts_early(g, i, waits, all);
    if (g->eager) g->p2p_overlaps = true;
    return SC_OK;
}
