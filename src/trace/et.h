/* SPDX-License-Identifier: Apache-2.0 */
/* et.h - inside trace/: nodes of an execution trace that are linked to spans. */
#ifndef TRACE_ET_H
#define TRACE_ET_H

#include "et/et.h"
#include "trace/profiled.h"
#include "trace/trace_et.h"

/* Names and arguments are those of the profiled rank. */
typedef struct et_op {
    uint64_t id;     /* rises in the order in which operators begin */
    uint64_t record; /* number of the record function */
    uint64_t thread;
    uint32_t name, args;
    uint32_t uses, n_uses;
} et_op;

typedef struct et_ops {
    profiled p;
    sc_arena *tmp;
    sc_text text; /* of one node */
    uint32_t n, cap;
    et_op *op; /* [n] by thread, then by id */
    uint32_t n_uses, cap_uses;
    sc_trace_use *use;
} et_ops;

/* A node becomes an operator, or a list of groups (et.c). */
sc_status et_keep(void *ctx, const sc_et_node *n);

/* Arguments of a node as Kineto states them (et_args.c). False if out of
 * memory. */
bool et_args_of(et_ops *x, const sc_et_node *n, uint32_t *out);

/* Finds the span of each operator: span[i], UINT32_MAX if it has none, and node
 * [m->n_spans] as in sc_profiled (et_match.c). */
sc_status et_match(et_ops *x, uint32_t *span, uint32_t *node,
                   sc_et_linked *out);

#endif
