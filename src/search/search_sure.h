/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_sure.h - how sure it is which of the best configurations is the best:
 * probabilities, expected regret, and what to measure (cost_pick.h).
 */
#ifndef SEARCH_SURE_H
#define SEARCH_SURE_H

#include "cost/cost_pick.h"
#include "search/search.h"

/* Rows that are judged. */
enum { SC_SEARCH_JUDGED = 32 };

typedef struct sc_search_sure {
    uint32_t n;             /* first rows that were judged; 0: none */
    const sc_pick_row *row; /* [n] */
    sc_pick pick;
} sc_search_sure;

/* Judges the first rows of a search among each other, by the objective; `best`
 * [n_best] are their predictions, which get the shares of their traits.
 * Energy is not judged, because its error is not known. */
sc_status sc_search_judge(const sc_search_result *found, sc_search_goal goal,
                          sc_prediction *best, sc_arena *a, sc_search_sure *out,
                          sc_err *err);

#endif
