/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the time of an operation of an MPI library between hosts.
 *
 * Ranks of a node are neighbours, so log2(m) of the rounds of a recursive
 * algorithm stay inside the node and the others cross the network, where the m
 * members of a node share its adapters. A ring crosses each adapter once.
 */
#include "cost/cost_host.h"

#include <math.h>

/* Half a round trip and the largest rate of NetPIPE with Open MPI 4.1 on one
 * machine: 0.41 us; 8.8 GB/s within the caches, 2 GB/s beyond. */
static const double local_alpha = 0.5e-6, local_rate = 5e9;
/* A sum reads two and writes one of them. */
static const double sum_rate = 5e9;

/* One way between two nodes. InfiniBand, RoCE: 1.06 us by osu_latency in the
 * manual of QLogic's adapters; EFA: 15 us (Shalev et al., "A cloud-optimized
 * transport protocol for elastic and scalable HPC", 2020). TCP: no source. */
static const double net_alpha[SC_N_NETWORKS] = {
    [SC_NETWORK_UNKNOWN] = 1.1e-6, [SC_NETWORK_INFINIBAND] = 1.1e-6,
    [SC_NETWORK_ROCE] = 1.1e-6,    [SC_NETWORK_EFA] = 15e-6,
    [SC_NETWORK_TCP] = 20e-6,
};

/* What the algorithms of one group need. */
typedef struct group {
    double n, m, nodes;
    double alpha_in, alpha_net; /* seconds per message */
    double in, net;             /* seconds per byte of one member alone, and
                                   of one member while all of a node send */
    double ring;                /* seconds per byte of the slowest ring link */
    double sum;                 /* seconds per byte */
    uint32_t rounds_in, rounds_net;
} group;

static uint32_t rounds(uint32_t n)
{
    uint32_t k = 0;
    while (k < 31 && 1u << k < n) k++;
    return k;
}

static group group_of(const sc_hw *hw, const sc_place *at)
{
    group g = {.n = at->n, .m = at->m, .nodes = at->nodes};
    g.alpha_in = local_alpha;
    g.in = 1 / local_rate;
    g.sum = 1 / sum_rate;
    g.rounds_in = rounds(at->m);
    g.ring = at->m > 1 ? g.in : 0;
    if (at->nodes < 2) return g;
    g.rounds_net = rounds(at->nodes);
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        const sc_dim *d = &hw->dim[i];
        if (d->ports == 0) continue;
        double peers = at->peers > 1 ? at->peers : 1;
        double rate = d->ports * d->port_bw / peers;
        g.alpha_net = net_alpha[d->network];
        g.net = g.m / rate;
        /* one rank uses one adapter */
        g.ring = fmax(g.ring, fmax(1 / rate, 1 / d->port_bw));
        g.net = fmax(g.net, 1 / d->port_bw);
    }
    return g;
}

/* ---- algorithms ---------------------------------------------------------- */

static sc_host_price price(double latency, double work, uint32_t hops)
{
    return (sc_host_price){latency + work, latency, hops};
}

static sc_host_price faster(sc_host_price a, sc_host_price b)
{
    return a.seconds <= b.seconds ? a : b;
}

static double alphas(const group *g)
{
    return g->rounds_in * g->alpha_in + g->rounds_net * g->alpha_net;
}

/* Recursive doubling: all bytes in every round. `sum`: seconds per byte. */
static sc_host_price doubling(const group *g, double bytes, double sum)
{
    double per_byte =
        g->rounds_in * (g->in + sum) + g->rounds_net * (g->net + sum);
    return price(alphas(g), bytes * per_byte, g->rounds_in + g->rounds_net);
}

/* Recursive halving, or doubling of parts: the parts of near ranks are the
 * largest. */
static sc_host_price halving(const group *g, double bytes, double sum)
{
    double in = bytes * (1 - 1 / g->m);
    double net = bytes / g->m * (1 - 1 / g->nodes);
    return price(alphas(g), in * (g->in + sum) + net * (g->net + sum),
                 g->rounds_in + g->rounds_net);
}

static sc_host_price ring(const group *g, double bytes, double sum)
{
    double steps = g->n - 1, alpha = fmax(g->alpha_in, g->alpha_net);
    if (g->m < 2) alpha = g->alpha_net;
    return price(steps * alpha, steps * bytes / g->n * (g->ring + sum),
                 (uint32_t)steps);
}

static sc_host_price both(sc_host_price a, sc_host_price b)
{
    return price(a.latency + b.latency,
                 a.seconds - a.latency + b.seconds - b.latency,
                 a.hops + b.hops);
}

/* A binomial tree: one member of a node sends over the network. */
static sc_host_price tree(const group *g, double bytes, double sum)
{
    double net = g->rounds_net > 0 ? fmax(g->net / g->m, g->ring) : 0;
    double per_byte =
        g->rounds_in * (g->in + sum) + g->rounds_net * (net + sum);
    return price(alphas(g), bytes * per_byte, g->rounds_in + g->rounds_net);
}

/* All to all: each pair by itself, or Bruck's log2 n rounds of half the
 * bytes. */
static sc_host_price all_to_all(const group *g, double bytes)
{
    double near = (g->m - 1) / g->n, far = (g->n - g->m) / g->n;
    sc_host_price pairs =
        price((g->m - 1) * g->alpha_in + (g->n - g->m) * g->alpha_net,
              bytes * (near * g->in + far * g->net), (uint32_t)g->n - 1);
    return faster(pairs, doubling(g, bytes / 2, 0));
}

/* Gather or scatter: the root's link moves all parts but its own. */
static sc_host_price rooted(const group *g, double bytes)
{
    double rate = g->nodes > 1 ? g->ring : g->in;
    return price(alphas(g), bytes * (1 - 1 / g->n) * rate,
                 g->rounds_in + g->rounds_net);
}

static sc_host_price of(const group *g, sc_coll coll, double b)
{
    switch (coll) {
    case SC_ALL_REDUCE:
    case SC_SCAN: {
        sc_host_price large = both(halving(g, b, g->sum), halving(g, b, 0));
        large = faster(large, both(ring(g, b, g->sum), ring(g, b, 0)));
        return coll == SC_SCAN ? doubling(g, b, g->sum)
                               : faster(doubling(g, b, g->sum), large);
    }
    case SC_REDUCE_SCATTER:
        return faster(halving(g, b, g->sum), ring(g, b, g->sum));
    case SC_ALL_GATHER: return faster(halving(g, b, 0), ring(g, b, 0));
    case SC_ALL_TO_ALL: return all_to_all(g, b);
    case SC_BROADCAST:
        return faster(tree(g, b, 0), both(rooted(g, b), ring(g, b, 0)));
    case SC_REDUCE:
        return faster(tree(g, b, g->sum),
                      both(halving(g, b, g->sum), rooted(g, b)));
    case SC_GATHER:
    case SC_SCATTER: return rooted(g, b);
    case SC_BARRIER: return doubling(g, 0, 0);
    case SC_SEND:
    case SC_RECV:
    case SC_SENDRECV:
    case SC_N_COLLS: break;
    }
    return g->nodes > 1 ? price(g->alpha_net, b * g->ring, 1)
                        : price(g->alpha_in, b * g->in, 1);
}

sc_host_price sc_cost_host(const sc_hw *hw, sc_coll coll, double bytes,
                           const sc_place *at)
{
    if (at->n < 2) return (sc_host_price){0};
    group g = group_of(hw, at);
    return of(&g, coll, bytes);
}
