/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c - the table of optimizers. */
#include "cost/cost_optimizer.h"

#include <stddef.h>
#include <string.h>

const char *const sc_optimizer_names[] = {
    "adam", "sgd", "lamb", "adagrad", "rowwise-adagrad", NULL};

/* Tables have the states of FBGEMM's fused optimizers: EXACT_SGD keeps none,
 * and EXACT_ROWWISE_ADAGRAD one value per row. */
static const sc_optimizer rows[] = {
    {.name = "adam",
     .table_name = "Adam",
     .moments = 2,
     .state_bytes = 16,
     .table_moments = 2,
     .row_state_bytes = 16},
    {.name = "sgd",
     .table_name = "SGD",
     .moments = 1,
     .state_bytes = 8,
     .by_rows = true},
    /* Trust ratios need the norms of the update: it is written, then read with
     * the weight again. */
    {.name = "lamb",
     .table_name = "LAMB",
     .moments = 2,
     .state_bytes = 16 + 12,
     .table_moments = 2,
     .row_state_bytes = 16 + 12},
    {.name = "adagrad",
     .table_name = "Adagrad",
     .moments = 1,
     .state_bytes = 8,
     .by_rows = true,
     .table_moments = 1,
     .row_state_bytes = 8},
    {.name = "rowwise-adagrad",
     .table_name = "Adagrad",
     .moments = 1,
     .state_bytes = 8,
     .by_rows = true,
     .row_values = 1}};

const sc_optimizer *sc_optimizer_of(const char *name)
{
    static const sc_optimizer unknown = {.moments = 1, .state_bytes = 8};
    if (!name) return &rows[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return &unknown;
}
