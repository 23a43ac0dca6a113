/* SPDX-License-Identifier: Apache-2.0 */
/* node_channels.c - keeps the results of topology searches in the machine's
 * memo. */
#include "cost/node_channels.h"

#include "hw/hw_memo.h"

#include <string.h>

typedef struct kept {
    sc_channels g;
    uint8_t order[HW_MEMO_BYTES - sizeof(sc_channels)]; /* order of the ring */
} kept;

_Static_assert(sizeof(kept) <= HW_MEMO_BYTES, "channels fit into a memo");

static uint64_t key_of(const sc_hw *hw, sc_nccl version, const uint32_t *dev,
                       uint32_t n, bool net)
{
    const void *from[] = {hw->topo, hw->nccl_options};
    uint64_t h = sc_hash(from, sizeof from, hw->hash + net);
    h = sc_hash(&version, sizeof version, h);
    h = sc_hash(dev, n * sizeof *dev, h);
    return h == 0 ? 1 : h;
}

static sc_status recall(const kept *k, sc_arena *a, sc_channels *out,
                        sc_err *err)
{
    uint32_t cells = k->g.ring.n_channels * k->g.ring.n_gpus;
    uint32_t *order = SC_NEW_N(a, uint32_t, cells);
    if (order == NULL) return sc_error_nomem(err);
    for (uint32_t i = 0; i < cells; i++) order[i] = k->order[i];
    *out = k->g;
    out->ring.order = order;
    return SC_OK;
}

static void keep(const sc_hw *hw, uint64_t key, const sc_channels *g)
{
    kept k;
    uint32_t cells = g->ring.n_channels * g->ring.n_gpus;
    if (cells > sizeof k.order || hw->node_size > UINT8_MAX) return;
    memset(&k, 0, sizeof k);
    k.g = *g;
    k.g.ring.order = NULL;
    for (uint32_t i = 0; i < cells; i++) k.order[i] = (uint8_t)g->ring.order[i];
    hw_memo_put(hw->memo, key, &k, sizeof k);
}

sc_status cost_node_channels(const sc_hw *hw, sc_nccl version,
                             const uint32_t *dev, uint32_t n, uint32_t nodes,
                             sc_arena *a, sc_channels *out, sc_err *err)
{
    kept k;
    const sc_topo *t = hw->topo;
    uint64_t key = key_of(hw, version, dev, n, nodes > 1);
    if (hw_memo_get(hw->memo, key, &k, sizeof k)) {
        SC_TRY(recall(&k, a, out, err));
    } else {
        if (t == NULL) SC_TRY(sc_topo_from_hw(hw, version, a, &t, err));
        SC_TRY(
            sc_topo_channels(t, n, dev, nodes, hw->nccl_options, a, out, err));
        out->ring.net = NULL;
        out->tree.order = out->tree.net = NULL;
        out->nvls.order = out->nvls.net = NULL;
        keep(hw, key, out);
    }
    out->nodes = nodes;
    return SC_OK;
}
