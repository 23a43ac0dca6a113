/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_machine.h - searches on machines that are not the one of the job: other
 * numbers of nodes, other links, other devices.
 */
#ifndef SEARCH_MACHINE_H
#define SEARCH_MACHINE_H

#include "search/search.h"

/* What a machine may draw, in W, and cost; 0: anything. */
typedef struct sc_search_budget {
    double watts, usd;
} sc_search_budget;

/* The power of a machine whose devices are at their limit, with hosts, and with
 * the PUE of the list of prices if it has none; and its price.  NaN: not known, or
 * without a list of prices. */
typedef struct sc_machine_bill {
    double watts, usd;
    const char *why; /* of what is not known; NULL: nothing */
} sc_machine_bill;

sc_status sc_machine_bill_of(const sc_job *job, const sc_hw *hw,
                             const sc_cost *cost, sc_arena *a,
                             sc_machine_bill *out, sc_err *err);

/* What is searched on every machine.  `job` has the global batch. */
typedef struct sc_search_question {
    const sc_job *job;
    const sc_inputs *in; /* of the machine of `job` */
    const sc_search_option *given;
    uint32_t n_given;
    const sc_search_where *const *where;
    uint32_t n_where;
    const sc_search_limits *limits;
    const sc_search_budget *budget; /* of machines; NULL: any */
    uint32_t dims; /* of a front of machines: bits by sc_search_dim; 0: none */
    const sc_search_options *o;
} sc_search_question;

/* One machine with what was found on it. */
typedef struct sc_search_machine {
    uint64_t units; /* nodes, racks, chips of a pod; 0: as the job's */
    sc_job job;     /* with the cluster and the global batch */
    sc_inputs in;
    sc_search_jobs jobs;
    sc_search_result found;
    const sc_prediction *best; /* of the best row; NULL: nothing fits */
    bool meets;                /* the limits */
} sc_search_machine;

/* Loads the machine of `job` and makes the space of the question on it. `*legal`
 * is false if it can't be built, or if the job can't be divided over it; then
 * `why` has the reason. */
sc_status sc_search_machine_open(const sc_search_question *q, const sc_job *job,
                                 sc_arena *a, sc_search_machine *out,
                                 bool *legal, sc_err *why, sc_err *err);

/* If nothing fits on the machine of the question: the options with which host
 * memory keeps optimizer states, activations and weights, the fewest of these with
 * which something fits (`*yes`), or all.  NULL: none can be added. */
sc_status sc_search_relief(const sc_search_question *q, sc_arena *a,
                           const char **options, bool *yes, sc_err *err);

/* Predicts the best row of m->found. */
sc_status sc_search_machine_best(const sc_search_question *q,
                                 sc_search_machine *m, sc_arena *a,
                                 sc_err *err);

/* After a search of `m` with `o`, leaves out the rows of m->found that do not meet
 * the limits.  The search has done so unless runs fail or the machine is bought:
 * then its limit of a step is only a bound.  If none of the rows of a machine that
 * is bought meets a limit of money, more rows are searched for one that does. */
sc_status sc_search_machine_keep(const sc_search_question *q,
                                 const sc_search_options *o,
                                 sc_search_machine *m, sc_arena *a,
                                 sc_err *err);

/* The longest time of a token, in seconds, that may meet the limits on `m`;
 * INFINITY: any. */
sc_status sc_search_longest(const sc_search_question *q,
                            const sc_search_machine *m, sc_arena *a,
                            double *out, sc_err *err);

#endif
