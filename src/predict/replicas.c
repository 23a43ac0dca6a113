/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.c - data-parallel replicas on devices of several kinds, each with
 * its own number of micro-batches.
 *
 * Replicas synchronize once a step, when gradients are exchanged. The slowest
 * one therefore determines the step. If the strategy gives no numbers, they are
 * chosen so that the slowest replica ends as early as possible.
 */
#include "hw/hw_memo.h"
#include "predict/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

sc_status predict_kind_open(const sc_hw *hw, uint32_t replicas,
                            const sc_strategy_pool *pool, uint32_t first,
                            predict_kind *k, sc_arena *a, sc_err *err)
{
    uint32_t each = hw->n_devices / replicas;
    k->pool = pool;
    k->hw = SC_NEW(a, sc_hw);
    if (!k->hw) return sc_error_nomem(err);
    *k->hw = *hw;
    k->hw->memo = hw_memo_new(a);
    k->hw->n_groups = 0;
    k->hw->device = sc_hw_device_at(hw, first * each);
    const char *name = pool->device ? pool->device : k->hw->device->name;
    for (uint32_t i = first * each; i < (first + pool->replicas) * each; i++) {
        const sc_device *d = sc_hw_device_at(hw, i);
        if (strcmp(d->name, name) != 0)
            return sc_error(
                err, SC_EINPUT, SC_C_CONFLICT, pool->pos,
                "list the groups of the cluster in the order of the replicas",
                "device %u is of kind %s, not %s", i, d->name, name);
    }
    return SC_OK;
}

static sc_status given(predict_spread *x, sc_err *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        x->k[i].mbs = x->k[i].pool->micro_batches;
        sum += (uint64_t)x->k[i].mbs * x->k[i].pool->replicas;
        if (x->k[i].mbs == 0)
            return sc_error(err, SC_EINPUT, SC_C_MISSING, x->k[i].pool->pos,
                            "give them for every pool, or none",
                            "pool %s has no micro_batches", x->k[i].pool->name);
    }
    if (sum == x->all) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, x->k[0].pool->pos, NULL,
                    "the pools have %llu micro-batches, but a step has %llu",
                    (unsigned long long)sum, (unsigned long long)x->all);
}

/* Gives one more micro-batch to the pool that then ends first, until all are
 * assigned. */
static void dealt(predict_spread *x)
{
    uint64_t left = x->all;
    while (left > 0) {
        predict_kind *best = &x->k[0];
        for (uint32_t i = 1; i < x->n; i++)
            if ((x->k[i].mbs + 1) * x->k[i].one_s <
                (best->mbs + 1) * best->one_s)
                best = &x->k[i];
        best->mbs++;
        left -= left < best->pool->replicas ? left : best->pool->replicas;
    }
}

predict_kind *predict_slowest_kind(const predict_spread *x, sc_arena *a)
{
    predict_kind *most = &x->k[0];
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < x->n; i++) {
        predict_kind *k = &x->k[i];
        if (k->mbs * k->one_s > most->mbs * most->one_s) most = k;
        if (k->hw->device->mem_bytes < least) least = k->hw->device->mem_bytes;
    }
    sc_device *d = SC_NEW(a, sc_device);
    if (!d) return NULL;
    *d = *most->hw->device;
    d->mem_bytes = least;
    most->hw->device = d;
    return most;
}

static void note(const predict_spread *x, predict_notes *assume)
{
    char text[240];
    size_t at = 0;
    for (uint32_t i = 0; i < x->n && at + 90 < sizeof text; i++)
        at += (size_t)snprintf(
            text + at, sizeof text - at, "%s%u of %.40s %u each", i ? ", " : "",
            x->k[i].pool->replicas, x->k[i].hw->device->name, x->k[i].mbs);
    predict_note(assume,
                 "micro-batches of replicas: %s; the slowest replica sets the "
                 "step",
                 text);
}

sc_status predict_deal(predict_spread *x, predict_notes *assume, sc_err *err)
{
    bool said = false;
    for (uint32_t i = 0; i < x->n; i++)
        said = said || x->k[i].pool->micro_batches > 0;
    if (said)
        SC_TRY(given(x, err));
    else
        dealt(x);
    note(x, assume);
    return SC_OK;
}
