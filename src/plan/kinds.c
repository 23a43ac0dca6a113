/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.c - pipeline stages on devices of several kinds.
 *
 * If all nodes of a pipeline device have the same GPU, the pipeline device is
 * of that kind; otherwise it has kind 0, the slowest of the cluster.  Layers
 * are priced for every kind.  Links and collectives have the rates of the
 * slowest node.
 */
#include "hw/hw_memo.h"
#include "plan/internal.h"
#include "plan/plan_strategy.h"

#include <string.h>

static uint32_t kind_of(const sc_plan *p, const sc_device *d)
{
    for (uint32_t k = 1; k < p->n_kinds; k++)
        if (strcmp(p->kind_hw[k]->device->name, d->name) == 0) return k;
    return 0;
}

static sc_status list_kinds(sc_plan *p, sc_arena *a, sc_err *err)
{
    const sc_hw *hw = p->run.hw;
    p->kind_hw = SC_NEW_N(a, const sc_hw *, (size_t)hw->n_groups + 1);
    if (!p->kind_hw) return sc_error_nomem(err);
    p->kind_hw[0] = hw;
    p->n_kinds = 1;
    for (uint32_t g = 0; g < hw->n_groups; g++) {
        const sc_device *d = hw->groups[g].device;
        if (kind_of(p, d)) continue;
        sc_hw *own = SC_NEW(a, sc_hw);
        if (!own) return sc_error_nomem(err);
        *own = *hw;
        own->device = d;
        own->memo = hw_memo_new(a); /* results for another device */
        p->kind_hw[p->n_kinds++] = own;
    }
    if (p->n_kinds == 2) p->n_kinds = 1; /* all devices are equal */
    return SC_OK;
}

/* Kind of the ranks from `first` on. */
static uint32_t kind_at(const sc_plan *p, uint64_t first, uint64_t n)
{
    const sc_hw *hw = p->run.hw;
    uint32_t kind = 0;
    for (uint32_t g = 0; g < hw->n_groups; g++) {
        const sc_node_group *at = &hw->groups[g];
        uint64_t from = (uint64_t)at->first * hw->node_size;
        uint64_t to = from + (uint64_t)at->n * hw->node_size;
        if (to <= first || from >= first + n) continue;
        uint32_t k = kind_of(p, at->device);
        if (kind && k != kind) return 0;
        kind = k;
    }
    return kind;
}

/* The pools of a strategy must agree with the cluster. */
static sc_status check_pools(const sc_plan *p, sc_err *err)
{
    const sc_strategy *s = p->run.strategy;
    uint32_t dev = 0, pp = p->run.size[SC_AX_PP];
    for (uint32_t i = 0; s && i < s->n_pools; i++) {
        const sc_strategy_pool *pool = &s->pool[i];
        for (uint32_t k = 0; k < pool->stages; k++, dev++) {
            if (dev >= pp)
                return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pool->pos, NULL,
                                "the pools have more than %u pipeline devices",
                                pp);
            const sc_device *is = sc_plan_hw(p, dev)->device;
            if (pool->device && strcmp(is->name, pool->device) != 0)
                return sc_error(
                    err, SC_EINPUT, SC_C_CONFLICT, pool->pos,
                    "list the groups of the cluster in the order of the stages",
                    "pipeline device %u is on %s, not %s", dev, is->name,
                    pool->device);
        }
    }
    return SC_OK;
}

sc_status plan_kinds(sc_plan *p, sc_arena *a, sc_err *err)
{
    const sc_hw *hw = p->run.hw;
    uint32_t pp = p->run.size[SC_AX_PP];
    p->kind = NULL;
    if (hw->n_groups > 1 && pp > 1) {
        if (!p->kind_hw) SC_TRY(list_kinds(p, a, err));
        p->kind = SC_NEW_N(a, uint8_t, pp);
        if (!p->kind) return sc_error_nomem(err);
        uint64_t each = hw->n_devices / pp;
        for (uint32_t d = 0; p->n_kinds > 1 && d < pp; d++)
            p->kind[d] = (uint8_t)kind_at(p, d * each, each);
    }
    return check_pools(p, err);
}

const sc_hw *sc_plan_hw(const sc_plan *p, uint32_t dev)
{
    return p->kind ? p->kind_hw[p->kind[dev]] : p->run.hw;
}

const sc_segment *sc_plan_segments(const sc_plan *p, const sc_segment *segments,
                                   uint32_t dev)
{
    return p->kind ? segments + (size_t)p->kind[dev] * sc_run_segments(&p->run)
                   : segments;
}

sc_status plan_layer_seconds(sc_plan *p, sc_arena *a, sc_err *err)
{
    uint32_t n = sc_run_segments(&p->run), kinds = p->n_kinds ? p->n_kinds : 1;
    sc_segment *b;
    if (p->layer_s) return SC_OK;
    double *s = SC_NEW_N(a, double, (size_t)n *kinds);
    if (!s) return sc_error_nomem(err);
    sc_arena_mark mark = sc_arena_save(a);
    SC_TRY(sc_segments_price(p, a, &b, err));
    for (uint32_t i = 0; i < n * kinds; i++) s[i] = b[i].fwd_s + b[i].bwd_s;
    sc_arena_restore(a, mark);
    p->layer_s = s;
    return SC_OK;
}
