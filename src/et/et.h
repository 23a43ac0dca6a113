/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et.h - reads execution traces of PyTorch node by node: the operators that
 * ran, with the shapes and the identities of their tensors, but without times.
 *
 * Up to schema 1.0.2 a node has flat fields (`inputs`, `input_shapes`,
 * `parent`); later schemas group them (`inputs: {values, shapes, types}`,
 * `ctrl_deps`, `attrs`).  A node looks the same here.
 */
#ifndef SC_ET_H
#define SC_ET_H

#include "base/scan.h"

/* What a node reads or writes: three lists of equal length, as written. */
typedef struct sc_et_side {
    scan_token values, shapes, types;
} sc_et_side;

/* Tokens are valid until the next node is read; those of texts have escapes. */
typedef struct sc_et_node {
    sc_pos pos;
    uint64_t id, parent;
    uint64_t record; /* number of the record function; 0: none */
    uint64_t thread; /* as PyTorch numbers threads, from 1 */
    uint64_t scope;  /* 1: backward pass, 7: annotation of the program */
    scan_token name;
    scan_token schema; /* "aten::add_.Tensor(Tensor(a!) self, ...) -> ..." */
    sc_et_side in, out;
    /* of collectives, from schema 1.1.0 on */
    scan_token coll, dtype, in_elems, out_elems, group, group_size;
    scan_token first_rank, rank_stride;
} sc_et_node;

/* What the file says before its nodes. */
typedef struct sc_et_head {
    char schema[32];
    int64_t pid; /* of the process; -1: not stated */
} sc_et_head;

typedef enum sc_et_kind {
    SC_ET_OTHER,
    SC_ET_NODES, /* an execution trace */
    SC_ET_EVENTS /* a profiler's trace, see et_kineto.h */
} sc_et_kind;

/* Reads up to the first list of nodes or events, which says what the file is. */
sc_status sc_et_recognise(sc_stream *in, const char *file, sc_et_kind *kind,
                          sc_et_head *head, sc_err *err);

/* Calls `fn` for each node in the order of the file; a failure other than
 * SC_EINPUT ends the reading. Errors: a file that is not JSON, has no list of
 * nodes or ends inside, nodes without name, id or parent; all in one pass where
 * the file can be read on. */
typedef sc_status (*sc_et_fn)(void *ctx, const sc_et_node *n);
sc_status sc_et_read(sc_stream *in, const char *file, sc_et_fn fn, void *ctx,
                     sc_err *err);

/* The values of a side one by one, with their shapes and types. */
typedef struct sc_et_args {
    const char *at[3], *end[3];
    bool unequal; /* the lists have different lengths, or are none */
} sc_et_args;

void sc_et_args_init(sc_et_args *it, const sc_et_side *s);
bool sc_et_args_next(sc_et_args *it, scan_token *value, scan_token *shape,
                     scan_token *type);

/* Types of values: "Tensor(float)", "GenericList[Tensor(float),...]". */
bool sc_et_is_tensor(const scan_token *type);
bool sc_et_is_tensor_list(const scan_token *type);

/* [id, storage, offset, elements, bytes per element, device]. Two values are one
 * tensor if id and storage are equal. */
typedef struct sc_et_tensor {
    uint64_t id, storage, offset, elements, bytes;
} sc_et_tensor;

/* False if the value is no tensor. */
bool sc_et_tensor_read(const scan_token *value, sc_et_tensor *out);

/* A number of digits only, below 2^53. */
bool sc_et_whole(const scan_token *t, uint64_t *out);

/* Whether a name is that of a step of the program, in traces of both kinds. */
static inline bool sc_et_is_step(const char *name, size_t len)
{
    return len >= 12 && memcmp(name, "ProfilerStep", 12) == 0;
}

/* Whether an argument of an operator of the forward pass ("aten::linear", or
 * "linear") is a parameter, or a statistic that does not depend on the samples. Of
 * addmm and mm any operand may be one. */
bool sc_et_is_parameter(const char *op, uint32_t argument);

#endif
