/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_axes.h - shared by the files that make the axes of a search. */
#ifndef SEARCH_JOBS_AXES_H
#define SEARCH_JOBS_AXES_H

#include "search/search.h"

/* Options that a search tries if they are not given, in the order of axes:
 * what most decides the step comes first. */
enum { TP, CP, EP, PP, DP, VP, SCHEDULE, BATCH, ZERO, SP, RECOMPUTE, N_OPEN };

extern const char *const search_open_names[N_OPEN];

typedef struct search_builder {
    const sc_job *job;
    const sc_run *run;
    const sc_law *law;
    bool net;                      /* a network of operators */
    bool closed;                   /* a strategy that leaves nothing open */
    const sc_search_option *files; /* the axis of strategies; NULL: none */
    sc_arena *a;
    sc_err *err;
    sc_search_option own[N_OPEN]; /* values of open options */
    sc_search_option *option;     /* [n] in the order of axes */
    uint32_t n, at[N_OPEN];       /* the axis of each open option */
    sc_search_rule *rule;
    uint32_t n_rules, cap_rules;
    bool failed;
} search_builder;

bool search_is_open(const char *name);

/* Puts the axes in order: of the given options and of the open ones. */
void search_order_axes(search_builder *b, const sc_search_option *given,
                       uint32_t n, sc_search_jobs *out);

/* What expanded memory keeps is open: the machine has some, the model is a
 * transformer, and neither the job nor the given options say anything about
 * it. */
bool search_expands(const sc_job *job, const sc_inputs *in,
                    const sc_search_option *given, uint32_t n);

/* Most options of this. */
enum { EXPANDED_AXES = 3 };

/* Options with the values that are tried then; returns their number. */
uint32_t search_expanded_axes(const sc_job *job, sc_search_option *out);

/* Whether a key says where a kind of data is kept that the job has. */
bool search_moves(const sc_job *job, const sc_key *k);

#endif
