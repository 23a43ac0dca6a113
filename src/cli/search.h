/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - the options of `stepcast search` beside those of a job. */
#ifndef CLI_SEARCH_H
#define CLI_SEARCH_H

#include "cli/cli.h"
#include "search/search_sizes.h"

typedef struct search_opts {
    const char **axis, **where; /* NULL ends; NULL: none */
    const char **emits;         /* FORMAT DIR ...; NULL ends; NULL: none */
    const char **measured;      /* TIME|LOG[=JOB.yml]; likewise */
    const char *nodes, *front;
    int64_t top, row;
    int goal; /* sc_search_goal */
    bool exhaustive, explain_space, neighbours;
    double budget_s, margin;
    sc_search_limits limits;
} search_opts;

#endif
