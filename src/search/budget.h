/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - inside search/: which machines are beyond a budget. */
#ifndef SEARCH_BUDGET_OVER_H
#define SEARCH_BUDGET_OVER_H

#include "search/search_budget.h"

typedef struct search_over {
    bool is;                  /* not within the budget, */
    bool watts, usd, unknown; /* and why */
    const char *why;          /* in the arena */
} search_over;

/* Whether the machine of a job is beyond q->budget; false if it can't be built. */
sc_status search_budget_over(const sc_search_question *q, const sc_job *job,
                             sc_arena *a, search_over *out, sc_err *err);
/* Counts `n` machines that are; keeps the first reason in `a`. */
sc_status search_budget_count(const search_over *over, double n, sc_arena *a,
                              sc_search_machines *out, sc_err *err);

#endif
