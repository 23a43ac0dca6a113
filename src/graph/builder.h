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

#include <stepcast/graph.h>

typedef struct graph_op_chunk graph_op_chunk;

struct graph_op_chunk {
    graph_op_chunk *next;
    uint32_t n, cap;
    sc_graph cols; /* only the per-op columns are used */
};

typedef struct graph_dep_chunk graph_dep_chunk;

struct graph_dep_chunk {
    graph_dep_chunk *next;
    uint32_t n, cap;
    sc_op (*pair)[2]; /* [cap] before, after */
};

struct sc_graph_builder {
    sc_arena *arena;
    graph_op_chunk *op_first, *op_last;
    graph_dep_chunk *dep_first, *dep_last;
    uint32_t n_ops, n_deps;
    uint32_t next_ops, next_deps; /* capacity of the next chunk */
    sc_op max_ref;                /* largest id in a dependency */
    bool renumber;                /* a dependency points backwards */

    sc_class *classes;
    sc_group *groups;
    uint32_t n_classes, cap_classes, n_groups, cap_groups, n_axes;
    const char *axis_name[SC_AXES];
    uint32_t axis_size[SC_AXES];

    /* first error */
    sc_status status;
    sc_code code;
    char msg[200];

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
