/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_select.c - which algorithm NCCL 2.10 takes for an all-reduce over
 * several nodes.
 *
 * NCCL does not take the fastest algorithm but the one its own table prefers:
 * t = L + V / BW with latencies and bandwidths per algorithm and protocol
 * (NCCL 2.10 tuning.cc; constants in us, LL / LL128 / Simple).  For large
 * messages it takes the ring even over two nodes, where a tree would need half
 * the time: its tree bandwidth is 0.46 of the bus, the ring's at least 0.5.
 * Generations from Hopper on run newer versions with NVLink SHARP trees; there
 * the cheapest price decides.
 */
#include "cost/coll.h"

#include <math.h>

typedef struct table_row {
    double base, hop, net; /* us */
    double share;          /* of the bus bandwidth */
} table_row;

static const table_row ring_rows[COLL_N_PROTOCOLS] = {
    {3.6, 0.47, 2.7, 0.25}, {10, 1.9, 4, 0.92}, {8.4, 3.4, 9.6, 1}};
static const table_row tree_rows[COLL_N_PROTOCOLS] = {
    {4.4, 0.52, 5, 0.263}, {4.4, 1.25, 8.5, 0.8625}, {0, 28, 28, 0.92}};

static double ring_time(const coll_call *k, coll_protocol p, double bus)
{
    const table_row *r = &ring_rows[p];
    double n = k->at->n, steps = 2 * (n - 1), across = 2.0 * (k->at->nodes - 1);
    double us = r->base + (steps - across) * r->hop + across * r->net;
    /* Measured plateau of the ring with whole buffers. */
    if (p == COLL_SIMPLE && k->bytes >= 4096 * n) us *= 1.9;
    return us * 1e-6 + k->bytes * steps / n / (r->share * bus);
}

static double tree_time(const coll_call *k, coll_protocol p, double bus)
{
    const table_row *r = &tree_rows[p];
    double depth = floor(log2(k->at->nodes));
    double us = r->base + 2 * ((k->at->m - 1) * r->hop + depth * r->net);
    return us * 1e-6 + k->bytes * 2 / (r->share * bus);
}

bool coll_table_takes_ring(const coll_call *k)
{
    double ring = INFINITY, tree = INFINITY;
    for (coll_protocol p = COLL_LL; p < COLL_N_PROTOCOLS; p++) {
        ring = fmin(ring, ring_time(k, p, k->net));
        tree = fmin(tree, tree_time(k, p, k->net));
    }
    return ring <= tree;
}
