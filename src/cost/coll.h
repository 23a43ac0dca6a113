/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.h - estimates of one collective for every algorithm and protocol that
 * can run it.  The choice and its explanation use them.
 */
#ifndef COST_COLL_H
#define COST_COLL_H

#include "cost/cost.h"

typedef enum coll_protocol {
    COLL_LL,     /* 4 of 8 bytes are payload; each word has a flag */
    COLL_LL128,  /* 120 of 128 bytes */
    COLL_SIMPLE, /* whole buffers, with one flag each */
    COLL_N_PROTOCOLS
} coll_protocol;

extern const char *const coll_protocol_names[];

/* seconds = max(base + hops + fill + transfer, bound) except point to point,
 * where base and transfer combine smoothly. */
typedef struct coll_estimate {
    int algorithm;
    coll_protocol protocol;
    double seconds, base, hops, fill, transfer;
    double link_s[2]; /* by sc_scope: port bytes over nominal rates */
    double bound;     /* the larger of both */
    double node_bw;   /* bytes/s used; 0: no phase inside the node */
    double net_bw;
    double port_bytes, nic_bytes;
    uint32_t channels; /* thread blocks */
} coll_estimate;

/* Facts that are the same for all estimates of one collective. */
typedef struct coll_query {
    const sc_cost *c;
    const sc_hw *hw;
    const sc_place *at;
    sc_coll coll;
    double bytes;
    uint32_t gen;     /* row of the parameters by generation */
    bool pcie;        /* inside the node over host links */
    bool xgmi, rccl;  /* AMD's links; AMD's library */
    double node, net; /* nominal bytes/s, neighbours' pattern */
    double ring;      /* `node` multiplied by link_fraction and pair_loss */
    double all_pairs, pair; /* the same for other patterns */
    double rings;           /* NICs of a node, rings */
    double spread;          /* NICs of a node, all-to-all */
    double one_nic;         /* NICs of a node when one member sends */
    double lat_node, lat_net;
    double step;      /* added by the kind of network to a step */
    double ring_step; /* the same for a ring */
    sc_net_kind kind; /* of the network between nodes */
    double staged;    /* bytes/s of rings and trees that leave the node through
                      the host's memory; 0: they don't */
    bool forwards; /* PXN: data that leave by another member's NIC cross NVLink
                      to it */
} coll_query;

/* The largest number of pairs of algorithm and protocol. */
#define COLL_ESTIMATES ((uint32_t)SC_N_ALGOS * COLL_N_PROTOCOLS)

/* Fails if the wiring of a node has to be searched and cannot be. */
sc_status coll_query_init(coll_query *k, const sc_cost *c, const sc_hw *hw,
                          sc_coll coll, double bytes, const sc_place *at,
                          sc_err *err);

/* `algorithm`, or all algorithms of the library if it is -1. */
uint32_t coll_estimates(const coll_query *k, int algorithm,
                        coll_estimate out[COLL_ESTIMATES]);

/* The algorithm and protocol that NCCL chooses for a message. */
typedef struct coll_choice {
    int algorithm; /* sc_algorithms() */
    coll_protocol protocol;
    uint32_t channels; /* thread blocks */
    double fraction;   /* that is left of the rates if NCCL_MAX_NCHANNELS leaves
                          fewer channels than the links need; else 1 */
} coll_choice;

/* The most pairs that coll_select() gives. */
#define COLL_CHOICES 8u

/* What NCCL's table chooses, first, and what it would choose for larger
 * messages and over slower links, each pair of algorithm and protocol once.
 * Chooses among all algorithms, or only the protocol if `algorithm` >= 0.
 * SC_NO: NCCL does not choose here, or its options exclude everything. */
sc_status coll_select(const coll_query *k, int algorithm,
                      coll_choice out[COLL_CHOICES], uint32_t *n, sc_err *err);

/* The name in NCCL_ALGO of one of our algorithms; NULL: NCCL has none. */
const char *coll_nccl_name(int algorithm);

/* The pairs that NCCL would run if NCCL_ALGO and NCCL_PROTO named them. */
sc_status coll_forced(const coll_query *k,
                      bool out[SC_N_ALGOS][COLL_N_PROTOCOLS], sc_err *err);

/* True if a protocol is known not to be used over this network. */
bool coll_unusual(const coll_query *k, coll_protocol p);

/* Sums the terms of an estimate again. */
void coll_finish(coll_estimate *q);

/* The cheapest of what coll_select() gives, or of all pairs if NCCL does not
 * choose.  NCCL's own choice alone may be slower over a faster link, and for a
 * larger message faster; this never is.  With variables of the library only
 * its own choice counts. */
sc_status coll_best(const coll_query *k, int algorithm, coll_estimate *out,
                    sc_err *err);

#endif
