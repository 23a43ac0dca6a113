/* SPDX-License-Identifier: Apache-2.0 */
/* graph_read.h - reading the operators of a model.yml, between its files. */
#ifndef MODEL_GRAPH_READ_H
#define MODEL_GRAPH_READ_H

#include "model/graph_row.h"

/* A value whose operator had an error: what reads it is not built, and
 * nothing more is said. */
#define GRAPH_BROKEN (SC_NONE - 1)

typedef struct graph_names {
    uint32_t n;
    const char **name; /* [n] in order */
    gb_value *value;   /* [n] */
    sc_index index;
} graph_names;

typedef struct graph_reader {
    gb_graph b;
    graph_names names;
    sc_arena *a;
    sc_err *err;
    sc_status status; /* of the first error; reading goes on */
} graph_reader;

void graph_note(graph_reader *r, sc_status s);
void graph_error(graph_reader *r, sc_code code, sc_pos pos, const char *hint,
                 const char *fmt, ...) SC_PRINTF(5, 6);

sc_status graph_names_init(graph_names *n, uint32_t most, sc_arena *a,
                           sc_err *err);
void graph_add_name(graph_reader *r, const char *name, gb_value v, sc_pos pos);

/* Value of a full name, SC_NONE if there is none. */
gb_value graph_named(const graph_reader *r, const char *name);

/* The dims of a tensor: {c: 3, h: 224}, [batch, 3, 224] or a list of {name,
 * extent, batch}.  `input`: the first dim is the batch if nothing else is said.
 * False after an error. */
bool graph_read_dims(graph_reader *r, const sc_node *n, bool input,
                     sc_gdim dim[SC_G_DIMS], unsigned *n_dims);

void graph_read_inputs(graph_reader *r, const sc_node *inputs);

/* A whole number of 1 to 2^32 - 1; false after an error. */
bool graph_read_extent(graph_reader *r, const sc_node *n, uint64_t *out);

/* An operator by its parts, `raw:` of its row.  SC_NONE after an error. */
gb_value graph_read_raw(graph_reader *r, const graph_row *row,
                        const gb_value *in, unsigned n_in);

sc_status graph_read_map(const sc_node *root, const char *fallback, sc_arena *a,
                         const sc_opgraph **out, sc_err *err);

#endif
