/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_implied.c - drops waits that the order of a compute stream already
 * implies, and items that are ready together with an earlier one.
 */
#include "plan/lower.h"

/* Whether an item's result comes from the device's compute stream. */
static bool by_stream(const lowering *g, uint32_t i, uint32_t stage)
{
    while (i != SC_NONE && g->item[i].none && g->prog->item[i].stage == stage)
        i = g->item[i].as;
    if (i == SC_NONE) return true;
    const lower_item *t = &g->item[i];
    const program_item *it = &g->prog->item[i];
    return it->stage == stage && !it->once && it->to == SC_NONE &&
           t->stream == SC_S_COMPUTE && t->work > 0;
}

/* Whether a gradient that takes no time is ready with an earlier item: `*as` is
 * the last of its inputs in the same slot, all made by its stream. */
static bool ready_with(const lowering *g, uint32_t i, bool split, uint32_t *as)
{
    const program_item *it = &g->prog->item[i];
    const lower_item *t = &g->item[i];
    bool none = t->kind == SC_OP_COMPUTE && t->work == 0 && t->flops <= 0 &&
                !t->once && !t->fills && !it->once && it->n_in > 1 &&
                it->n_more == 0 && it->out != SC_NONE &&
                g->prog->value[it->out].what == VALUE_WEIGHT_GRAD &&
                !lower_leaves(g, it->out);
    *as = SC_NONE;
    for (uint32_t k = 0; none && k < t->n_after; k++) {
        uint32_t m = t->after[k];
        uint8_t part = g->item[m].part;
        bool same = split ? part == t->part : part != LOWER_FWD;
        none = by_stream(g, m, it->stage);
        if (same && (*as == SC_NONE || m > *as)) *as = m;
    }
    return none && *as != SC_NONE && t->part != LOWER_FWD;
}

/* Whether an item is queued on a device's compute stream only. */
static bool is_queued(const lowering *g, uint32_t i)
{
    const lower_item *t = &g->item[i];
    return t->stream == SC_S_COMPUTE && t->work > 0 && !g->prog->item[i].once;
}

/* Drops the waits of an item that the order of its stream implies. */
static void drop_implied(lowering *g, uint32_t i)
{
    lower_item *t = &g->item[i];
    uint32_t n = 0;
    if (!is_queued(g, i)) return;
    for (uint32_t k = 0; k < t->n_after; k++) {
        uint32_t m = t->after[k];
        bool same = g->prog->item[m].stage == g->prog->item[i].stage;
        if (!same || !is_queued(g, m)) t->after[n++] = m;
    }
    t->n_after = n;
}

void lower_find_implied(lowering *g)
{
    bool split = lower_splits(g);
    /* If operations are listed one by one, each item must stay an operation. */
    if (!g->job->joined || g->notes || g->members > 1 ||
        g->rules->ready_order || g->job->layers_chunk)
        return;
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        uint32_t as;
        if (!ready_with(g, i, split, &as)) continue;
        g->item[i].none = true;
        g->item[i].as = as;
    }
    for (uint32_t i = 0; i < g->prog->n_items; i++) drop_implied(g, i);
}
