/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et.h - a PyTorch execution trace: the operators that ran, with the shapes
 * and identities of their tensors.
 */
#ifndef MODEL_ET_H
#define MODEL_ET_H

#include "et/et.h"
#include "model/net_build.h"

#define ET_DIMS 8
#define ET_ARGS 32 /* arguments of one operator that are read */

/* Two records describe one tensor if id and storage are equal. */
typedef struct et_tensor {
    uint64_t id, storage;
    uint64_t dim[ET_DIMS];
    uint8_t n_dim;
    uint8_t bytes; /* bytes per element; 0: floating point, in the run's
                      precision */
} et_tensor;

typedef enum et_kind { ET_OTHER, ET_TENSOR, ET_TENSORS, ET_NUMBER } et_kind;

typedef struct et_arg {
    et_kind kind;
    uint32_t n; /* number of tensors */
    et_tensor *t;
    double number; /* number, or 0 and 1 for a truth value */
} et_arg;

typedef struct et_node {
    uint64_t id, parent;
    const char *name; /* "aten::conv2d" */
    bool backward;    /* part of autograd's backward pass */
    uint32_t n_in, n_out;
    et_arg *in;     /* [n_in] */
    et_tensor *out; /* [n_out]: result tensors, including those of lists */
    sc_pos pos;
} et_node;

/* An embedding table, and the weight of a linear layer with its shape. */
typedef struct et_tie {
    et_tensor *table, *weight;
} et_tie;

typedef struct et_trace {
    uint32_t n;
    et_node *node; /* [n] by increasing id */
    bool matched;  /* identities of tensors are not recorded but matched by
                      their shapes */
    uint32_t n_ties;
    et_tie *tie;      /* [n_ties] weights that may be one tensor */
    double gradients; /* elements of the gradients of parameters that the
                         backward pass of the step makes; 0: not recorded */
} et_trace;

/* What a text is: a HuggingFace config has no list of nodes or events. */
sc_et_kind et_kind_of(const char *text, size_t len);

/* Reads an execution trace; reports all errors of the file in one pass. */
sc_status et_read(const char *text, size_t len, const char *file, sc_arena *a,
                  et_trace *out, sc_err *err);

/* Reads a profiler's trace (Kineto): the operators of a step with their shapes,
 * but without the shapes of results and identities. Errors: also events that can't
 * be read, because parameters would be missing. */
sc_status et_kineto_read(const char *text, size_t len, const char *file,
                         sc_arena *a, et_trace *out, sc_err *err);

/* Finds the forward pass of the first step: indices [*n] of the operators that
 * no other operator calls, in execution order. */
sc_status et_forward(const et_trace *t, sc_arena *a, uint32_t **index,
                     uint32_t *n, sc_err *err);

double et_elements(const et_tensor *t);
bool et_same_shape(const et_tensor *x, const et_tensor *y);

/* Whether a name is that of an operator that may be part of a network, and of a
 * product. */
bool et_is_operator(const char *name);
bool et_computes(const char *name);

#endif
