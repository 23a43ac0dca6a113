/* SPDX-License-Identifier: Apache-2.0 */
/* closed.c - the bandwidth of one port in closed form. */
#include "net/net.h"

#include <math.h>

/* Dimensions inside the node come first. */
static uint32_t inner_dims(const sc_hw *hw)
{
    uint32_t product = 1, i = 0;
    while (i < hw->n_dims && product < hw->node_size)
        product *= hw->dim[i++].size;
    return i;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* All-to-all over links of bw / 2 to two neighbours of a closed ring: bytes
 * sent over bytes that the busiest link carries. */
static double ring_all_pairs(double bw, double n)
{
    return least(bw, bw * 4 * (n - 1) / (n * n));
}

static double ring_bw(const sc_dim *d, uint32_t n, sc_pattern pattern)
{
    bool closed = n == d->size;
    if (pattern == SC_PATTERN_ALL_PAIRS)
        return closed ? ring_all_pairs(d->bw, n) : ring_all_pairs(d->bw, n) / 2;
    if (pattern == SC_PATTERN_PAIR) return d->size == 2 ? d->bw : d->bw / 2;
    return closed ? d->bw : d->bw / 2;
}

static double dim_bw(const sc_dim *d, uint32_t n, sc_pattern pattern)
{
    if (pattern == SC_PATTERN_OTHER_RAILS) pattern = SC_PATTERN_NEIGHBOURS;
    double size = d->size > 1 ? d->size : 2;
    switch (d->kind) {
    case SC_DIM_SWITCH: return d->bw;
    case SC_DIM_FULL:
        return pattern == SC_PATTERN_PAIR ? d->bw / (size - 1)
                                          : d->bw * (n - 1) / (size - 1);
    case SC_DIM_RING: return ring_bw(d, n, pattern);
    case SC_DIM_MESH: /* a ring returns over the same links */
        return pattern == SC_PATTERN_ALL_PAIRS ? ring_all_pairs(d->bw, n) / 2
                                               : d->bw / 2;
    case SC_DIM_TREE: /* half of all pairs cross one host bridge */
        return pattern == SC_PATTERN_ALL_PAIRS ? ring_all_pairs(d->bw, n)
                                               : d->bw;
    case SC_DIM_CUBE: return 0; /* a search finds its rings */
    }
    return d->bw;
}

static double node_bw(const sc_hw *hw, const sc_place *at, sc_pattern pattern)
{
    uint32_t inner = inner_dims(hw);
    double bw = 0;
    for (uint32_t i = 0; i < inner; i++) {
        if (at->dim_n[i] < 2) continue;
        const sc_dim *d = &hw->dim[i];
        uint32_t n = at->dim_n[i] < d->size ? at->dim_n[i] : d->size;
        double b = dim_bw(d, n, pattern);
        bw = bw > 0 ? least(bw, b) : b;
    }
    return bw;
}

/* Parts of the hops between members that leave a leaf, and a pod: all if the
 * group has more nodes than these, or so many nodes are between two members. */
typedef struct crossing {
    double leaf, pod;
} crossing;

static double part_leaving(const sc_place *at, uint32_t members, uint32_t nodes)
{
    if (nodes == 0) return 0;
    if (members > nodes) return 1;
    return at->reach > 1 ? least(1, (double)at->reach / nodes) : 0;
}

/* Factor by which traffic over the spines takes longer, or over the cores if it
 * leaves a pod.  Traffic between rails always crosses the spines; without rails a
 * group under one leaf does not. */
static double detour(const sc_dim *d, crossing x, sc_pattern pattern)
{
    double up = x.leaf * d->oversub, top = x.pod * d->oversub * d->core_oversub;
    if (top > up) up = top;
    if (pattern == SC_PATTERN_OTHER_RAILS && d->rails > 1 && d->oversub > up)
        up = d->oversub;
    return up > 1 ? up : 1;
}

/* NICs of one dimension that the members on a node may use together. */
static double nics_bw(const sc_hw *hw, const sc_dim *d, const sc_place *at,
                      sc_pattern pattern)
{
    double size = hw->node_size > 1 ? hw->node_size : 1;
    double peers = at->peers > 1 ? at->peers : 1;
    double all = d->ports > 0 ? d->ports * d->port_bw : d->bw * size;
    if (pattern != SC_PATTERN_PAIR || d->ports == 0) return all / peers;
    double own = d->ports > size ? d->ports / size : 1;
    return least(all / peers, own * d->port_bw);
}

/* The NICs of one node. Sibling groups share them, and they are no faster than
 * the host links of the members that use them. */
static double nodes_bw(const sc_hw *hw, const sc_place *at, sc_pattern pattern)
{
    double bw = 0;
    uint32_t inner = inner_dims(hw);
    for (uint32_t i = inner; i < hw->n_dims; i++) {
        const sc_dim *d = &hw->dim[i];
        if (at->dim_n[i] < 2) continue;
        double b = nics_bw(hw, d, at, pattern);
        crossing x = {part_leaving(at, at->dim_n[i], d->leaf),
                      part_leaving(at, at->dim_n[i], d->pod)};
        /* Outer dimensions are above the leaves in any case. */
        if (i > inner) x = (crossing){1, d->pod > 0};
        b /= detour(d, x, pattern);
        bw = bw > 0 ? least(bw, b) : b;
    }
    double host = hw->device->host_bw * at->m;
    return host > 0 ? least(bw, host) : bw;
}

double sc_net_bw(const sc_hw *hw, const sc_place *at, sc_scope scope,
                 sc_pattern pattern)
{
    if (scope == SC_SCOPE_NODE) return at->m > 1 ? node_bw(hw, at, pattern) : 0;
    return at->nodes > 1 ? nodes_bw(hw, at, pattern) : 0;
}

/* The expected largest number of `n` balls in a box, if balls of `groups` groups
 * are thrown into `boxes` boxes each: the sum over k of the probability that some
 * box has k or more. */
static double fullest(double n, double boxes, double groups)
{
    double above = 1, sum = 0; /* probability of k or more balls in a box */
    double have = n * log1p(-1 / boxes); /* logarithm of that of k - 1 */
    if (boxes <= 1) return n;
    for (double k = 1; k <= n; k++) {
        above -= exp(have);
        have += log((n - k + 1) / (k * (boxes - 1)));
        double some = above > 0 ? -expm1(groups * boxes * log1p(-above)) : 0;
        if (some < 1e-9) break;
        sum += some;
    }
    return sum;
}

double sc_net_last_transfer(const sc_hw *hw, const sc_place *at)
{
    uint32_t inner = inner_dims(hw);
    const sc_dim *d = inner < hw->n_dims ? &hw->dim[inner] : NULL;
    if (!d || d->ports == 0 || d->leaf == 0 || d->leaf >= d->size ||
        d->group > 0 || at->nodes < 2 || d->oversub <= 1)
        return 0;
    double reach = at->reach > 1 ? at->reach : 1, leaf = d->leaf;
    double rails = d->rails > 1 ? d->rails : 1;
    double into = leaf * d->ports / rails, spines = ceil(into / d->oversub);
    /* transfers that leave a leaf on one rail, and such leaves and rails */
    double n = ceil(least(reach, leaf) * at->peers / rails - 1e-9);
    double all = (double)hw->n_devices / at->n * least(1, reach / leaf);
    double groups = all > n ? all / n : 1;
    double bw = d->port_bw * into / d->oversub / spines;
    return fullest(n, spines, groups) / bw;
}

double sc_net_latency(const sc_hw *hw, sc_scope scope)
{
    uint32_t inner = inner_dims(hw);
    uint32_t from = scope == SC_SCOPE_NODE ? 0 : inner;
    uint32_t to = scope == SC_SCOPE_NODE ? inner : hw->n_dims;
    double worst = 0;
    for (uint32_t i = from; i < to; i++)
        if (hw->dim[i].latency_s > worst) worst = hw->dim[i].latency_s;
    return worst;
}

const sc_dim *sc_net_node_dim(const sc_hw *hw, const sc_place *at)
{
    uint32_t inner = inner_dims(hw);
    for (uint32_t i = 0; i < inner; i++)
        if (at->dim_n[i] > 1) return &hw->dim[i];
    return &hw->dim[0];
}
