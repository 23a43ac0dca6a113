/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h - what sc_graph_add_*() collect and sc_graph_build() freezes.
 *
 * Ops are kept in chunks of columns.  Where everything fits one chunk, ids
 * are topological and builder and graph share an arena, the chunk's columns
 * become the graph's.
 */
#ifndef GRAPH_BUILDER_H
#define GRAPH_BUILDER_H

#include "graph/order.h"

typedef struct graph_op_chunk graph_op_chunk;

struct graph_op_chunk {
    graph_op_chunk *next;
    uint32_t n, cap;
    sc_graph cols; /* only the per-op columns are used */
};

/* The first error of a builder. */
typedef struct graph_fault {
    sc_status status;
    sc_code code;
    char msg[200];
} graph_fault;

void graph_fail(graph_fault *f, sc_code code, const char *fmt, ...)
    SC_PRINTF(3, 4);
void graph_fail_nomem(graph_fault *f);

/* A reason to refuse an op, or NULL. */
const char *graph_op_fault(unsigned kind, unsigned stream, unsigned cat,
                           sc_time work, double flops);

struct sc_graph_builder {
    sc_arena *arena;
    graph_op_chunk *op_first, *op_last;
    graph_deps deps;
    uint32_t n_ops;
    uint32_t next_ops; /* capacity of the next chunk */

    sc_class *classes;
    sc_group *groups;
    uint32_t n_classes, cap_classes, n_groups, cap_groups, n_axes;
    const char *axis_name[SC_AXES];
    uint32_t axis_size[SC_AXES];

    graph_fault fault;

    /* set by the text reader: where the ops come from */
    const char *file;
    const uint32_t *line; /* [n_ops] */
};

/* Columns for n ops in `g`; succ, succ_head and n_preds are not touched. */
bool graph_columns_alloc(sc_arena *a, uint32_t n, sc_graph *g);

/* Defaults of the text form. */
uint8_t graph_default_stream(unsigned kind);
uint8_t graph_default_cat(unsigned kind, unsigned stream);

/* Ranks of a mesh that agree on the axes of `fixed`; 0: over 2^32 - 2. */
uint32_t graph_ranks(const uint32_t *axis_size, uint32_t n_axes,
                     uint32_t fixed);

#endif
