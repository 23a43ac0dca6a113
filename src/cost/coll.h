/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.h - prices of one collective by every algorithm and protocol that can
 * run it: what the choice and its explanation share.
 */
#ifndef COST_COLL_H
#define COST_COLL_H

#include <stepcast/cost.h>

typedef enum coll_protocol {
    COLL_LL,     /* 4 of 8 bytes are payload, a flag in each word */
    COLL_LL128,  /* 120 of 128 bytes */
    COLL_SIMPLE, /* whole buffers, one flag each */
    COLL_N_PROTOCOLS
} coll_protocol;

extern const char *const coll_protocol_names[];

/* seconds = max(base + hops + fill + transfer, bound) except point to point,
 * where base and transfer combine smoothly. */
typedef struct coll_quote {
    int algorithm;
    coll_protocol protocol;
    double seconds, base, hops, fill, transfer;
    double bound;   /* port bytes over nominal rates */
    double node_bw; /* bytes/s used; 0: no phase inside the node */
    double net_bw;
    double port_bytes, nic_bytes;
} coll_quote;

/* What all prices of one call share. */
typedef struct coll_call {
    const sc_cost *c;
    const sc_hw *hw;
    const sc_place *at;
    sc_coll coll;
    double bytes;
    uint32_t gen;     /* row of the parameters by generation */
    bool pcie;        /* inside the node over host links */
    double node, net; /* nominal bytes/s, neighbours' pattern */
    double ring;      /* `node` after link_share and pair_loss */
    double lat_node, lat_net;
} coll_call;

#define COLL_QUOTES ((uint32_t)SC_N_ALGOS * COLL_N_PROTOCOLS)

void coll_call_init(coll_call *k, const sc_cost *c, const sc_hw *hw,
                    sc_coll coll, double bytes, const sc_place *at);

/* Prices of one algorithm, one per protocol; 0: it can't run here. */
uint32_t coll_quote_algorithm(const coll_call *k, int algorithm,
                              coll_quote *out);

/* `algorithm` or, if it is -1, all that NCCL chooses from. */
uint32_t coll_quotes(const coll_call *k, int algorithm,
                     coll_quote out[COLL_QUOTES]);

/* NCCL 2.10's own table prefers the ring to the tree (several nodes). */
bool coll_table_takes_ring(const coll_call *k);

/* Thread blocks a quote occupies. */
uint32_t coll_channels(const coll_call *k, const coll_quote *q);

#endif
