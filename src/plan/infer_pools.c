/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_pools.c - strategies on machines whose nodes differ.  The devices of a
 * strategy's pools must exist, and kernels are as fast as the slowest rank that
 * runs them.
 */
#include "plan/infer.h"

#include <string.h>

static uint32_t size_of(const sc_strategy_pool *p)
{
    return p->stages ? p->stages : p->replicas;
}

const sc_strategy_pool *infer_pool(const inference *f, const char *name,
                                   uint32_t *first)
{
    *first = 0;
    for (uint32_t i = 0; i < f->s->n_pools; i++) {
        const sc_strategy_pool *p = &f->s->pool[i];
        if (strcmp(p->name, name) == 0) return p;
        *first += size_of(p);
    }
    return NULL;
}

/* Checks that every rank of a pool is on a device of the pool's kind. */
static sc_status check_devices(const inference *f, int axis)
{
    const sc_strategy *s = f->s;
    for (uint32_t rank = 0; rank < f->p->n_ranks; rank++) {
        uint32_t at = sc_strategy_coordinate(f->s, axis, rank), i = 0;
        while (at >= size_of(&s->pool[i])) at -= size_of(&s->pool[i++]);
        const char *is = sc_hw_device_at(f->job->hw, rank)->name;
        if (strcmp(is, s->pool[i].device) == 0) continue;
        return sc_error(
            f->err, SC_EINPUT, SC_C_CONFLICT, s->pool[i].pos,
            "list the groups of the cluster in the order of the pools",
            "rank %u of pool %s is on %s, not %s", rank, s->pool[i].name, is,
            s->pool[i].device);
    }
    return SC_OK;
}

static sc_status check_rules(const inference *f)
{
    for (uint32_t i = 0; i < f->s->n_rules; i++) {
        const sc_strategy_rule *r = &f->s->rule[i];
        uint32_t first;
        const sc_strategy_pool *p =
            r->pool ? infer_pool(f, r->pool, &first) : 0;
        if (p && !p->stages)
            return sc_error(
                f->err, SC_EINPUT, SC_C_UNSUPPORTED, r->pos,
                "name a pool of stages, or write devices: {dp: 0}",
                "operators can't run only on the replicas of pool %s", r->pool);
    }
    return SC_OK;
}

sc_status infer_pools(const inference *f)
{
    const sc_strategy *s = f->s;
    if (s->n_pools == 0) return SC_OK;
    bool stages = s->pool[0].stages > 0;
    int axis = stages ? f->pp : sc_strategy_axis(s, SC_AX_DP);
    uint32_t sum = 0, size = axis < 0 ? 1 : f->mesh.size[axis];
    for (uint32_t i = 0; i < s->n_pools; i++) sum += size_of(&s->pool[i]);
    if (sum != size)
        return sc_error(f->err, SC_EINPUT, SC_C_CONFLICT, s->pool[0].pos, NULL,
                        "the pools have %u %s, but the mesh has %u", sum,
                        stages ? "stages" : "replicas", size);
    SC_TRY(check_rules(f));
    return check_devices(f, axis);
}

/* With DualPipe a stage is on two devices. */
static bool holds(const inference *f, uint32_t device, uint32_t stage)
{
    uint32_t at = infer_own_device(f, stage);
    bool twin = f->schedule == SC_SCH_DUALPIPE && f->pp >= 0;
    return device == at || (twin && device == f->devices - 1 - at);
}

const sc_device *infer_slowest(const inference *f, uint32_t stage)
{
    const sc_hw *hw = f->job->hw;
    const sc_device *one = NULL;
    if (hw->n_groups == 0) return hw->device;
    for (uint32_t rank = 0; rank < f->p->n_ranks; rank++) {
        if (!holds(f, sc_strategy_coordinate(f->s, f->pp, rank), stage))
            continue;
        const sc_device *d = sc_hw_device_at(hw, rank);
        if (one && strcmp(d->name, one->name) != 0) return hw->device;
        one = d;
    }
    return one;
}
