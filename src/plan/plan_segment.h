/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_segment.h - one priced layer of each kind, from which the search
 * compares runs.
 *
 *   segment_network.c      a network with few layers of each kind
 *   segment.c              the costs of a layer of each kind in a pass
 *   segment_activations.c  the activations that it saves and works with
 *   segment_weights.c      its memory between steps, and its exchanges
 */
#ifndef PLAN_SEGMENT_H
#define PLAN_SEGMENT_H

#include "plan/compress.h"
#include "plan/internal.h"
#include "plan/plan_net.h"

/* A weight of one layer, in the layout of its matrix products. */
typedef struct segment_weight {
    double elements; /* on one rank */
    bool expert;     /* differs between ranks of ep */
    bool summed;     /* its gradient is also summed over tp */
    bool frozen;     /* never updated */
    bool shared;     /* also in another layer, which counts it */
    bool table;      /* rows of it are looked up */
    bool low;        /* its products may be in low precision */
    compress_matrix matrix;

    /* Axes of replicas over which the file's rules split it, its gradient and
     * the optimizer's states; bits by sc_axis. */
    struct segment_said {
        bool said;
        uint8_t axes;
        uint64_t rank; /* the rule with the higher rank applies */
    } kept, grad, state;
} segment_weight;

/* A network with at most three layers of each kind. */
typedef struct segment_network {
    const sc_model *model; /* source of the network */
    uint64_t seq;          /* sequence length */
    int64_t vocab;         /* vocabulary size */
    bool whole;
    const sc_net *net;
    uint32_t n_parts;       /* instances: embedding, blocks, head */
    const uint32_t *part;   /* [graph->n_ops] */
    sc_coll_memo *prices;   /* of exchanges; NULL: none are kept */
    const uint32_t *chosen; /* [model->n_layers] the part that represents its
                             kind */
} segment_network;

/* `whole` keeps all layers, because rules name some of them.  `memo` may be
 * NULL. */
sc_status segment_network_of(const sc_run *run, bool whole,
                             sc_segment_memo *memo, sc_arena *a,
                             segment_network *out, sc_err *err);

/* Adds bytes to an exchange; does nothing if `axes` is 0. */
void plan_exchange_add(sc_exchange *x, uint32_t axes, sc_coll coll,
                       double bytes);

/* Prices the traffic of each communicator and their sum. */
sc_status plan_exchange_price(const sc_plan *p, sc_exchange *x, sc_err *err);

#endif
