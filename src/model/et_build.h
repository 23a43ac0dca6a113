/* SPDX-License-Identifier: Apache-2.0 */
/* et_build.h - inside model/: the builder that turns a trace's forward pass
 * into a network. */
#ifndef MODEL_ET_BUILD_H
#define MODEL_ET_BUILD_H

#include "model/et.h"

/* The value or weight of the network that a tensor of the trace became. */
typedef struct et_value {
    uint64_t id, storage;
    net_value value;  /* made by an operator, or data; SC_NONE: not made yet */
    net_value weight; /* if it is a view of a leaf: that leaf as a weight; else
                         SC_NONE */
    net_value maker;  /* result of the operator that created this weight */
    uint32_t leaf;    /* entry of the parameter or constant that it is a view
                         of */
} et_value;

typedef struct et_builder {
    net_builder b;
    const et_trace *t;
    sc_map by_id;    /* entries by id and storage */
    et_value *entry; /* [n_entries], enough for all tensors of the trace */
    uint32_t n_entries;
    uint32_t inputs; /* inputs made so far */
    uint32_t n_unknown;
    const char *unknown; /* name of the first unknown operator */
    sc_arena *a;
} et_builder;

/* The operator of the trace that is being built. */
typedef struct et_op {
    et_builder *g;
    const et_node *n;
    const char *path;
    const char *what; /* name without its namespace */
    uint32_t n_in;
    et_tensor in[ET_ARGS]; /* tensors among the arguments, in order */
} et_op;

et_value *et_entry(et_builder *g, const et_tensor *t);

/* The tensor as a value; it is input data if no operator made it.  SC_NONE
 * after an error. */
net_value et_use(et_builder *g, const et_tensor *t);

/* Whether no operator of the network made the tensor. */
bool et_is_leaf(et_builder *g, const et_tensor *t);

/* An operator with the dims of its result: a dim that an input lacks or has
 * with another extent is not divided.  `flops` 0: no FLOP. */
net_value et_shaped(et_op *o, sc_net_type type, const et_tensor *out,
                    double flops);

/* Adds the operator by its name; SC_NONE: nothing was added.  `*known` is false
 * if the tables lack the name. */
net_value et_add(et_op *o, bool *known);

#endif
