/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_kineto.h - inside model/: what makes the trace of a profiler an execution
 * trace: events with their arguments, shapes of results, identities of tensors.
 */
#ifndef MODEL_ET_KINETO_H
#define MODEL_ET_KINETO_H

#include "base/scan.h"
#include "model/et.h"

/* What an operator is called with, besides et_arg: whole numbers, as the profiler
 * writes them. */
typedef struct kineto_list {
    bool given;
    uint8_t n;
    int64_t v[ET_DIMS];
} kineto_list;

typedef struct kineto_op {
    et_node *node;
    const char *what;  /* name without its namespace and a '_' at either end */
    kineto_list *list; /* [node->n_in] */
    bool copies;       /* it calls other operators */
    /* of the result: extents that the arguments do not tell; if the number of
     * dims is one of them, the elements are known */
    bool open, shapeless;
    double elements;
    uint8_t known; /* with `open`: leading dims of the result that are known */
} kineto_op;

/* Reads the arguments of an operator. False if memory is exhausted. */
bool kineto_args(const scan_token *dims, const scan_token *types,
                 const scan_token *concrete, sc_arena *a, kineto_op *out);

/* Adds the results of an operator by its arguments. Operators that are not known
 * keep the shape of their first tensor. False if memory is exhausted. */
bool kineto_results(kineto_op *o, sc_arena *a);

/* Gives tensors their identities, and results the extents that only later
 * arguments tell; lists ties. Errors: results that nothing tells. */
sc_status kineto_match(kineto_op *op, uint32_t n, sc_arena *a, et_trace *t,
                       sc_err *err);

/* Of a step without gradients. Error: it calls a model several times. */
sc_status kineto_check_calls(const kineto_op *op, uint32_t n, sc_arena *a,
                             sc_err *err);

#endif
