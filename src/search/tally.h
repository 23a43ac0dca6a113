/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - what a search keeps of the points that it has seen. */
#ifndef SEARCH_TALLY_H
#define SEARCH_TALLY_H

#include "search/search.h"
#include "store/store.h"

/* Tallies of disjoint points are joined in any order with the same result. */
typedef struct search_tally {
    const sc_search_jobs *jobs;
    sc_arena *a;
    uint32_t top;
    uint64_t kind; /* of rows in `best`, no two have the same values of these
                    * axes: bits by index */
    bool only_best;
    bool keeps;  /* all rows */
    bool scored; /* with their scores */
    uint64_t evaluated, pruned;
    uint64_t steps[SC_SEARCH_BUCKETS]; /* sc_search_result.steps */
    sc_store_block rows;               /* all rows, if it keeps them */
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
/* Offers a row to one list. */
void search_tally_add_best(search_tally *t, const sc_search_row *row);
void search_tally_add_front(search_tally *t, const sc_search_row *row);
void search_tally_refuse(search_tally *t, const char *reason, uint64_t n);
/* A score must be smaller than this to change the tally, if the point needs
 * `peak` bytes. */
double search_tally_beat(const search_tally *t, const uint32_t *digit,
                         double peak);
/* Starts with the rows of another tally and no counts. */
void search_tally_seed(search_tally *t, const search_tally *from);
/* Adds all but the rows of `other` that are kept. */
void search_tally_join(search_tally *t, const search_tally *other);
/* Leaves nothing. */
void search_tally_clear(search_tally *t);

/* As bytes, without the rows that are kept. */
void search_tally_write(const search_tally *t, sc_bytes *out);
/* Reads a tally of the same jobs and options.  False: the bytes are no such
 * tally, or memory is exhausted (t->failed). */
bool search_tally_read(search_tally *t, sc_bytes_in *in);

#endif
