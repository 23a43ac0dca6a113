/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_row.h - one operator as it is written in model.yml: the facts that its
 * type needs; shapes are inferred.
 *
 * The reader fills rows from keys.  The writer guesses a row from an operator
 * and keeps it if it builds the same operator.
 */
#ifndef MODEL_NET_ROW_H
#define MODEL_NET_ROW_H

#include "model/net_build.h"

typedef struct net_row {
    const char *path;
    int type; /* sc_net_type */
    const sc_node *in, *kernel_node, *pad_node, *dims_node, *raw;
    int64_t out;
    int64_t stride, dilation, groups;
    bool bias, ceil;
    int64_t to;     /* positions of the result of an adaptive pool; 0: none */
    int64_t factor; /* factor of an upsampling */
    int64_t rows, width, lookups;
    const char *access; /* text of a distribution; NULL: not known */
    bool sparse;        /* used if the file has the key */
    int64_t heads, kv_heads, qk_dim, v_dim, window;
    bool causal, gated;
    const char *kind;  /* "relu", "sum" */
    const char *along; /* name of a dim */
    int64_t extent;
    bool copy, transposed, reduce, frozen;
    const char *dim; /* name of a linear's new dim */
    int64_t in_units, out_units;
    const char *weight; /* path of the operator whose weight is shared */
    /* These are read from nodes: */
    uint32_t k, kw, pad;
    bool same;
    net_value shared; /* the shared weight, or SC_NONE */
    net_value
        shared_with; /* the result of the operator whose weights are shared, or
                         0 */
    bool flat;
    unsigned n_dims; /* dims of a view */
    build_dim view[SC_TENSOR_DIMS];
} net_row;

/* The keys, and bits for the types that each key applies to. */
extern const sc_key net_row_keys[];
extern const uint32_t net_row_types[];

#define NET_MAX_EXTENT   4294967295.0
#define NET_MAX_ELEMENTS 9007199254740992.0 /* 2^53 */
#define NET_MAX_INPUTS   64

/* Adds the operator.  If it does not fit, returns SC_NONE with the reason in
 * `why` and leaves the builder as it was. */
net_value net_row_build(net_builder *b, const net_row *row, const net_value *in,
                        unsigned n_in, const char **why);

/* build_finish() for a network from a file: errors of its check are errors of
 * the file. */
sc_status net_row_finish(net_builder *b, sc_pos pos, const sc_net **out,
                         sc_err *err);

/* Removes the operators and tensors that were added after these counts. */
void net_row_undo(net_builder *b, uint32_t n_ops, uint32_t n_tensors);

/* The reason why a tensor after `n_tensors` is too large, or NULL. */
const char *net_row_too_large(const net_builder *b, uint32_t n_tensors);

#endif
