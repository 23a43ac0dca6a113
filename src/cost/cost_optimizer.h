/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_optimizer.h - the table of optimizers, with one row each.
 */
#ifndef COST_OPTIMIZER_H
#define COST_OPTIMIZER_H

#include <stdbool.h>

typedef struct sc_optimizer {
    const char *name;       /* "adam"; NULL: the optimizer is unknown */
    const char *table_name; /* name in tables of operator times */
    unsigned moments;       /* fp32 values kept per weight */
    double state_bytes;     /* bytes read and written per weight for them */
    bool by_rows; /* updates only the rows of a table that were looked up, even
                     if programs form the gradient of the whole table */
    /* The next fields are used by tables that are updated row by row. */
    unsigned table_moments; /* fp32 values kept per weight */
    unsigned row_values;    /* fp32 values kept per row */
    double row_state_bytes; /* state bytes per weight in these rows */
} sc_optimizer;

/* NULL means Adam. */
const sc_optimizer *sc_optimizer_of(const char *name);

extern const char *const sc_optimizer_names[]; /* ends with NULL */
#endif
