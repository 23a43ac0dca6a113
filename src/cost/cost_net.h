/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_net.h - the price of a network operator (model_net.h) on one rank: by
 * the models of its kernels, or from a table of times.
 */
#ifndef SC_COST_NET_H
#define SC_COST_NET_H

#include "cost/cost_op.h"

/* Measured times of operators by shape, in the format of Proteus's cost files:
 * {class: {"profile": {"<in shapes>_<out shapes>": ms}}}. */
typedef struct sc_optable sc_optable;

sc_status sc_optable_read(const char *text, size_t len, const char *file,
                          sc_arena *a, const sc_optable **out, sc_err *err);
sc_status sc_optable_load(const char *path, sc_arena *a, const sc_optable **out,
                          sc_err *err);

typedef struct sc_net_work {
    const sc_net *net;
    const sc_net_op *op;
    sc_op_pass pass;
    const double *extent;  /* [op->n_iter] extents of the iteration dims on this
                              rank */
    const uint32_t *parts; /* [op->n_iter] number of parts of each iteration
                              dim */
    double samples;        /* samples of the whole micro-batch, for the extents
                              of tensors */
    uint32_t weight;       /* for updates: index of the operator's weight */
    double weight_parts;   /* for updates: number of parts of the optimizer
                              state */
    const char *optimizer; /* a name from cost_optimizer.h; NULL: Adam */
    bool by_rows;        /* of tables: no gradient of the whole table is formed,
                     whatever the optimizer */
    double update_bytes; /* for updates: bytes per element that the program
                              moves for Adam; 0: the minimum */
    double cast_input, cast_gradient; /* fractions of the first input and of the
                              result's gradient that this rank casts to low
                              precision, before they are gathered; 0: all */
    sc_op_facts facts;
    const sc_optable *table; /* NULL: use the models */
} sc_net_work;

/* Seconds, FLOP, bytes through memory and launches.  If `table` lacks the
 * operator, the error SC_C_UNKNOWN_NAME names class and shapes; with a table,
 * views cost nothing. */
sc_status sc_cost_net_op(const sc_cost *c, const sc_device *d,
                         const sc_net_work *w, sc_price *out, sc_err *err);
/* Bytes that its kernels hold in addition to its inputs and outputs. */
void sc_cost_net_op_held(const sc_net_work *w, sc_op_held *out);
/* Elements of the rows of a table on this rank that a micro-batch looks up:
 * those of the distribution, or at most one row for each look-up. */
double sc_cost_net_op_touched(const sc_net_work *w);
/* FLOP and bytes of the operator, whatever program runs it. */
sc_price sc_cost_net_op_amount(const sc_net_work *w);
/* Writes the price as text. */
sc_status sc_cost_explain_net_op(const sc_cost *c, const sc_device *d,
                                 const sc_net_work *w, sc_text *out,
                                 sc_err *err);
#endif
