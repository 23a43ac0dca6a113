/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - NCCL's ring and simple protocol as alpha and beta. */
#include "cost/cost_ring.h"
#include "cost/node_channels.h"

/* Devices of the first rank's node that take part, and the group's nodes, each
 * counted when its first member appears. */
static uint32_t members(const sc_hw *hw, const uint32_t *rank, uint32_t n,
                        uint32_t *dev, uint32_t *nodes)
{
    uint32_t size = hw->node_size, local = 0;
    *nodes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seen = 0;
        while (seen < i && rank[seen] / size != rank[i] / size) seen++;
        if (seen == i) (*nodes)++;
        if (rank[i] / size == rank[0] / size) dev[local++] = rank[i] % size;
    }
    return local;
}

static sc_status search(const sc_hw *hw, const uint32_t *rank, uint32_t n,
                        sc_arena *a, sc_channels *g, sc_err *err)
{
    uint32_t nodes, *dev = SC_NEW_N(a, uint32_t, n);
    if (!dev) return sc_error_nomem(err);
    uint32_t local = members(hw, rank, n, dev, &nodes);
    SC_TRY(
        cost_node_channels(hw, SC_NCCL_2_10_3, dev, local, nodes, a, g, err));
    g->ring.order = NULL; /* the memory is freed */
    return SC_OK;
}

sc_status sc_cost_ring_group(const sc_hw *hw, const uint32_t *rank, uint32_t n,
                             sc_arena *a, sc_ring_group *out, sc_err *err)
{
    sc_channels g;
    sc_ring_group r = {.n = n, .nodes = 1};
    if (n > 1) {
        sc_arena_mark mark = sc_arena_save(a);
        sc_status s = search(hw, rank, n, a, &g, err);
        sc_arena_restore(a, mark);
        SC_TRY(s);
        r.nodes = g.nodes;
        SC_TRY(sc_coll_tune(&g, hw->nccl_options, &r.tuning, err));
    }
    *out = r;
    return SC_OK;
}

/* Proteus reduces the bandwidth of a ring of four devices in one node by three
 * tenths.  Measured curves do not show this, so coll/ does not have it. */
static double kept(const sc_ring_group *g)
{
    return g->n == 4 && g->nodes == 1 ? 0.7 : 1;
}

sc_status sc_cost_ring_simple(const sc_ring_group *g, sc_coll coll,
                              double bytes, sc_ring_price *out, sc_err *err)
{
    sc_choice c;
    sc_ring_price p = {.repetitions = 1};
    bool exchange = coll == SC_ALL_TO_ALL;
    bool tabled = !exchange && coll != SC_SENDRECV;
    if (g->n <= 1 || bytes <= 0) {
        *out = (sc_ring_price){.repetitions = 0};
        return SC_OK;
    }
    sc_status s = sc_coll_table(&g->tuning, tabled ? coll : SC_BROADCAST,
                                SC_NCCL_RING, SC_NCCL_SIMPLE, bytes, 1, &c);
    if (s != SC_OK)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                        "leave out NCCL_ALGO and NCCL_PROTO",
                        "%s runs as a ring with the simple protocol, which the "
                        "options exclude",
                        sc_coll_names[coll]);
    p.alpha = c.latency_us * 1e-6;
    p.beta = kept(g) * c.bandwidth * 1e9;
    if (exchange) {
        p.repetitions = g->n - 1;
        p.alpha *= g->nodes > 1 ? 0.5 : 0.1;
        if (g->nodes > 1) p.beta *= 0.5 / g->nodes;
    }
    p.seconds = p.repetitions * (p.alpha + bytes / p.beta);
    *out = p;
    return SC_OK;
}
