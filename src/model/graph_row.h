/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_row.h - one operator as people write it in model.yml: what its type
 * needs to know, shapes being inferred.
 *
 * The reader fills rows from keys; the writer guesses one from an operator and
 * keeps it if it builds the operator again.
 */
#ifndef MODEL_GRAPH_ROW_H
#define MODEL_GRAPH_ROW_H

#include "model/graph_build.h"

typedef struct graph_row {
    const char *path;
    int type; /* sc_gtype */
    const sc_node *in, *kernel_node, *pad_node, *dims_node, *raw;
    int64_t out;
    int64_t stride, dilation, groups;
    bool bias, ceil;
    int64_t to;     /* positions of an adaptive pool; 0: none */
    int64_t factor; /* of an upsampling */
    int64_t rows, width, lookups;
    int64_t heads, kv_heads, qk_dim, v_dim, window;
    bool causal, gated;
    const char *kind;  /* "relu", "sum" */
    const char *along; /* name of a dim */
    int64_t extent;
    bool copy, transposed, reduce, frozen;
    const char *dim; /* name of a linear's new dim */
    int64_t in_units, out_units;
    const char *weight; /* path of the operator that has it */
    /* Read from nodes: */
    uint32_t k, kw, pad;
    bool same;
    gb_value shared; /* that weight, or SC_NONE */
    gb_value like;   /* that operator's result, or 0 */
    bool flat;
    unsigned n_dims; /* of a view */
    gb_dim view[SC_G_DIMS];
} graph_row;

/* Table of the keys, and which types a key is for, by bits. */
extern const sc_key graph_row_keys[];
extern const uint32_t graph_row_types[];

#define GRAPH_MAX_EXTENT   4294967295.0
#define GRAPH_MAX_ELEMENTS 9007199254740992.0 /* 2^53 */
#define GRAPH_MAX_INPUTS   64

/* Adds the operator; SC_NONE with a reason in `why` if it does not fit, and
 * then nothing is left of it. */
gb_value graph_row_build(gb_graph *b, const graph_row *row, const gb_value *in,
                         unsigned n_in, const char **why);

/* gb_finish() of a graph that a file describes: what its check finds is the
 * file's fault. */
sc_status graph_row_finish(gb_graph *b, sc_pos pos, const sc_opgraph **out,
                           sc_err *err);

/* Takes back what was added behind these counts. */
void graph_row_undo(gb_graph *b, uint32_t n_ops, uint32_t n_tensors);

/* Reason why something of what is behind `n_tensors` is too large; NULL: it
 * is not. */
const char *graph_row_too_large(const gb_graph *b, uint32_t n_tensors);

#endif
