/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - the program of one micro-batch, which inference (infer*.c) writes
 * and lowering (lower*.c) reads.
 *
 * A value is a tensor in one layout on one rank of a stage.  An item computes
 * one operator's pass or exchanges one value; items are in program order.
 * Lowering instantiates items along the schedule; waits and lifetimes follow
 * from the values that items read and make.
 */
#ifndef PLAN_PROGRAM_H
#define PLAN_PROGRAM_H

#include "plan/plan_net.h"

typedef enum value_kind {
    VALUE_INPUT,       /* data */
    VALUE_ACT,         /* made in the forward pass, or recomputed */
    VALUE_ACT_GRAD,    /* gradient of an activation */
    VALUE_WEIGHT,      /* in the form in which it is kept between uses */
    VALUE_WEIGHT_USED, /* gathered or copied in for use */
    VALUE_WEIGHT_GRAD, /* gradient of one micro-batch, or a sum of several */
    VALUE_GRAD_KEPT,   /* reduced gradient: once a step, or per micro-batch if
                          only a shard is kept */
    VALUE_STATE,       /* optimizer state */
    VALUE_WEIGHT_NEW,  /* updated, before it is gathered again */
    VALUE_RESIDUAL,    /* error that gradient compression carries over */
    VALUE_EXTRA /* no tensor of the network: masks, saved operands, workspaces
                    of kernels */
} value_kind;

typedef struct program_value {
    const char *name;    /* "layer1.0.conv2 out"; NULL before it is named */
    const char *word[3]; /* words of the name; NULL ends the list */
    uint32_t tensor;     /* tensor of the network */
    uint8_t what;        /* value_kind */
    uint8_t tier;        /* sc_tier that keeps it between uses */
    bool stays;          /* excluded when a fraction of values is offloaded */
    uint32_t stage;
    double bytes;  /* on the rank that holds most */
    double copies; /* of weights and states: ranks of the stage that hold the
                      same data; 0: one */
    uint32_t made; /* item that makes it; SC_NONE: it exists from the start */
} program_value;

typedef struct program_item {
    uint8_t pass;      /* sc_op_pass */
    bool recomputed;   /* forward work repeated in the backward pass */
    uint8_t cat;       /* sc_cat */
    uint32_t stage;    /* of a transfer: the source */
    uint32_t to;       /* of a transfer: the other stage; else SC_NONE */
    uint32_t op;       /* operator of the network */
    uint32_t exchange; /* SC_NONE: the item is a kernel or a copy */
    bool copy;         /* copy between memory tiers */
    bool once; /* once a step, not per micro-batch: gradient exchanges of ZeRO-0
                  and 1, updates, gathers of new weights */
    sc_price price; /* of kernels */
    double seconds; /* of exchanges and copies */
    double latency; /* the part of `seconds` that no link limits */
    double bytes;
    double fraction; /* fraction of its exchange that this item moves; 0: all of
                        it */
    uint32_t n_in;
    const uint32_t *in; /* values */
    uint32_t out;       /* value; SC_NONE: none */
    uint32_t n_more;    /* further values after `out` that the item makes: an
                           operator has several gradients, a tied weight several
                           stages */
} program_item;

typedef struct net_program {
    uint32_t n_values, n_items;
    program_value *value;
    program_item
        *item; /* [n_items] by stage, then forward items, backward items
                  (recomputation first) and once-a-step items */
} net_program;

/* Whether two paths belong to the same block, or to the same module outside of
 * blocks. */
bool infer_same_unit(const char *a, const char *b);
/* Whether a path belongs to a block: it then has a number. */
bool infer_in_block(const char *path);

/* The schedule of a job's pipeline.  `several`: devices hold several stages. */
sc_schedule program_schedule(const sc_net_run *job, bool several);

/* Names the values that have no name yet. */
sc_status program_name_values(const net_program *p, sc_arena *a, sc_err *err);

#endif
