/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algorithms.c - closed forms of all algorithms: the bytes that the phases of a
 * schedule move through ports.
 *
 * Members 0 to m - 1 of a group are in the first node, so a line of stride 1
 * and at most m members stays in a node, one of stride m runs between nodes,
 * and one of all members does both.
 */
#include "coll/coll.h"
#include "coll/coll_schedule.h"
#include "hw/hw_nccl.h"

#include <string.h>

static uint32_t log2_floor(uint32_t n)
{
    uint32_t l = 0;
    while (n >>= 1) l++;
    return l;
}

/* ---- one phase */

/* Bytes through the busiest port of a member and through the NICs of a node. */
typedef struct moved {
    uint32_t node_steps, net_steps;
    double node, net; /* bytes */
} moved;

static bool between_nodes(const sc_coll_phase *p, const sc_place *at)
{
    return at->nodes > 1 && p->stride == at->m;
}

/* Each edge of a ring passes 1 / part of the data per step, one of a chain all
 * of it.  The channels leave a node through different members in turn, so that
 * a member's traffic divides between its port and the NICs as (m - 1) : 1. */
static moved along_edges(const sc_coll_phase *p, double bytes,
                         const sc_place *at)
{
    bool ring = p->pattern == SC_COLL_RING;
    uint32_t passes = p->coll == SC_ALL_REDUCE ? 2 : 1;
    uint32_t hops = passes * (p->n - 1);
    double edge = (ring ? (double)p->steps / p->part : 1) * bytes;
    if (between_nodes(p, at)) return (moved){0, hops, 0, edge};
    if (p->n <= at->m) return (moved){hops, 0, edge, 0};
    uint32_t cross = passes * (at->nodes - 1);
    return (moved){hops - cross, cross, edge * ((at->m - 1.0) / at->m), edge};
}

/* All messages are sent at once; in a star the root's port carries the data of
 * all others. */
static moved at_once(const sc_coll_phase *p, double bytes, const sc_place *at)
{
    uint32_t m = p->n < at->m ? p->n : at->m, others = p->n - m;
    moved x = {m > 1, others > 0, (m - 1.0) / p->n * bytes,
               (double)others / p->n * bytes * m};
    if (p->pattern != SC_COLL_STAR) return x;
    x.node = (m - 1.0) * bytes;
    x.net = (double)others * bytes;
    return x;
}

static moved to_next(double bytes, const sc_place *at)
{
    return (moved){at->m > 1, at->nodes > 1, bytes, bytes};
}

/* Two complementary binary trees, each with half of the data: a node is a leaf
 * in one and has two children in the other, so it sends V/2 up and, as inner
 * node, V/2 up and 2 V/2 down.  Of two nodes each is root once.  The trees run
 * at once in both directions: the first phase has it all. */
static moved along_trees(const sc_coll_phase *p, double bytes)
{
    if (p->coll != SC_REDUCE || p->tree != 1) return (moved){0};
    return (moved){0, 2 * log2_floor(p->n), 0, p->n == 2 ? bytes : 2 * bytes};
}

/* In an all-reduce a member sends V to the node's switch and V/m back as its
 * part of the multicast, both in the first phase. */
static moved in_switch(const sc_coll_schedule *s, const sc_coll_phase *p,
                       double bytes, const sc_place *at)
{
    double n = p->n;
    bool sum = s->coll == SC_ALL_REDUCE;
    if (between_nodes(p, at))
        return (moved){0, sum ? 2 : 1, 0, sum ? bytes : bytes * (n - 1) / n};
    if (sum && p->coll == SC_ALL_GATHER) return (moved){0};
    return (moved){1, 0, bytes * ((sum ? n + 1 : n - 1) / n), 0};
}

static moved through_ports(const sc_coll_schedule *s, const sc_coll_phase *p,
                           double bytes, const sc_place *at)
{
    switch (p->pattern) {
    case SC_COLL_RING:
        if (p->coll == SC_SENDRECV) return to_next(bytes, at);
        return along_edges(p, bytes, at);
    case SC_COLL_CHAIN: return along_edges(p, bytes, at);
    case SC_COLL_DIRECT:
    case SC_COLL_STAR: return at_once(p, bytes, at);
    case SC_COLL_TREE: return along_trees(p, bytes);
    case SC_COLL_BINOMIAL: return (moved){0, log2_floor(p->n), 0, bytes};
    case SC_COLL_SWITCH: return in_switch(s, p, bytes, at);
    case SC_COLL_ROUNDS:
        return (moved){0, p->steps, 0, bytes * (p->n - 1) / p->n};
    default: return (moved){0};
    }
}

/* ---- all phases */

static void add(sc_phases *out, const moved *x)
{
    bool node = x->node_steps > 0;
    if (node)
        out->p[out->n++] =
            (sc_phase){SC_SCOPE_NODE, x->node_steps, x->node, false};
    if (x->net_steps > 0)
        out->p[out->n++] = (sc_phase){SC_SCOPE_NET, x->net_steps, x->net, node};
}

/* In a pipeline all phases run at the same time. */
static void sum(const sc_coll_schedule *s, double bytes, const sc_place *at,
                sc_phases *out)
{
    moved all = {0};
    for (uint32_t i = 0; i < s->n_phases; i++) {
        moved x = through_ports(s, &s->phase[i], bytes, at);
        if (!s->pipelined) add(out, &x);
        all.node_steps += x.node_steps;
        all.net_steps += x.net_steps;
        all.node += x.node;
        all.net += x.net;
    }
    if (s->pipelined) add(out, &all);
}

/* ---- algorithms */

static bool one_ring(sc_coll coll, sc_coll_group g, sc_coll_schedule *out)
{
    return sc_coll_schedule_ring(coll, g, 1, out);
}

static bool can_multicast(const sc_hw *hw, const sc_place *at)
{
    return hw->n_dims > 0 && hw->dim[0].kind == SC_DIM_SWITCH &&
           hw->dim[0].multicast && at->dim_n[0] == at->m && at->m > 1 &&
           at->n > 2;
}

static bool has_sharp(const sc_hw *hw)
{
    return hw->nccl_options != NULL && hw->nccl_options->collnet;
}

static bool can_nvls(const sc_hw *hw, const sc_place *at)
{
    return can_multicast(hw, at) && (at->nodes == 1 || has_sharp(hw));
}

static bool can_nvls_tree(const sc_hw *hw, const sc_place *at)
{
    return can_multicast(hw, at) && at->nodes > 1;
}

static bool can_collnet(const sc_hw *hw, const sc_place *at)
{
    return has_sharp(hw) && at->nodes > 1;
}

static bool one_device_per_node(const sc_hw *hw, const sc_place *at)
{
    (void)hw;
    return at->m == 1;
}

static const sc_algorithm algorithms[SC_N_ALGOS] = {
    [SC_ALGO_RING] = {"ring", one_ring, NULL},
    [SC_ALGO_TREE] = {"tree", sc_coll_schedule_tree, NULL},
    [SC_ALGO_HIERARCHICAL] = {"hierarchical", sc_coll_schedule_hierarchical,
                              NULL},
    [SC_ALGO_DIRECT] = {"direct", sc_coll_schedule_direct, NULL},
    [SC_ALGO_NVLS] = {"nvls", sc_coll_schedule_in_network, can_nvls},
    [SC_ALGO_NVLS_TREE] = {"nvls_tree", sc_coll_schedule_in_network_tree,
                           can_nvls_tree},
    [SC_ALGO_COLLNET] = {"collnet", sc_coll_schedule_direct_in_network,
                         can_collnet},
    [SC_ALGO_PAT] = {"pat", sc_coll_schedule_rounds, one_device_per_node},
};

const sc_algorithm *sc_algorithms(uint32_t *n)
{
    *n = SC_N_ALGOS;
    return algorithms;
}

bool sc_algorithm_phases(int algorithm, sc_coll coll, double bytes,
                         const sc_place *at, const sc_hw *hw, sc_phases *out)
{
    const sc_algorithm *a = &algorithms[algorithm];
    sc_coll_schedule s;
    out->n = 0;
    if (at->n <= 1 || !(bytes > 0)) return true;
    if (a->can && !a->can(hw, at)) return false;
    if (!a->schedule(coll, (sc_coll_group){at->n, at->m, 0}, &s)) return false;
    sum(&s, bytes, at, out);
    return true;
}
