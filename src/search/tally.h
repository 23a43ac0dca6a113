/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - what a search keeps of the points that it has seen. */
#ifndef SEARCH_TALLY_H
#define SEARCH_TALLY_H

#include "search/search.h"

/* Tallies of disjoint points are joined in any order with the same result. */
typedef struct search_tally {
    const sc_search_jobs *jobs;
    sc_arena *a;
    uint32_t top;
    uint64_t kind; /* of rows in `best`, no two have the same values of these
                    * axes: bits by index */
    bool only_best;
    uint64_t evaluated, pruned;
    uint32_t n_reasons;
    sc_search_reason reason[SC_SEARCH_REASONS];
    uint32_t n_best;
    sc_search_row *best; /* [top], sorted */
    uint32_t n_front, cap_front;
    sc_search_row *front;     /* sorted by score */
    sc_search_row **per_axis; /* [n][axis.n] */
    bool failed;              /* out of memory */
} search_tally;

bool search_tally_init(search_tally *t, const sc_search_jobs *jobs,
                       const sc_search_options *o, sc_arena *a);

/* A point that fits is kept where it is among the best, if it `may` be. */
void search_tally_add(search_tally *t, const sc_search_row *row, bool may);
void search_tally_refuse(search_tally *t, const char *reason, uint64_t n);
/* A score must be smaller than this to change the tally, if the point needs
 * `peak` bytes. */
double search_tally_beat(const search_tally *t, const uint32_t *digit,
                         double peak);
/* Starts with the rows of another tally and no counts. */
void search_tally_seed(search_tally *t, const search_tally *from);
void search_tally_join(search_tally *t, const search_tally *other);

#endif
