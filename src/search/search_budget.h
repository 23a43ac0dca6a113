/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_budget.h - machines within a budget of power and money, and how many
 * units of each to try.
 */
#ifndef SEARCH_BUDGET_H
#define SEARCH_BUDGET_H

#include "search/search_machines.h"

/* Reads "20MW", "50MUSD" or both with a comma between them.  SC_EUSAGE. */
sc_status sc_search_budget_read(const char *text, sc_pos pos, sc_arena *a,
                                sc_search_budget *out, sc_err *err);

/* A node that is proposed, or is not. */
typedef struct sc_search_node {
    const char *name;
    const char *why; /* it is left out; NULL: it is not */
} sc_search_node;

/* All nodes of the catalogue: those are proposed whose power is known, and whose
 * price if `job` has a list of prices. */
sc_status sc_search_nodes(const sc_job *job, sc_arena *a, sc_search_node **out,
                          uint32_t *n, sc_err *err);

/* The axis of these nodes.  SC_EINPUT: there are none. */
sc_status sc_search_nodes_axis(const sc_search_node *node, uint32_t n,
                               sc_arena *a, sc_machine_axis *out, sc_err *err);

/* The largest machine of some values of the axes that the budget allows. */
typedef struct sc_search_largest {
    const char *spec; /* with this number: "dgx-h100:45; nic_bw=200Gb/s" */
    uint64_t units;   /* 0: not even one */
    uint64_t
        divides; /* the largest number over which the job can be divided; 0:
                       * none of the 256 largest */
} sc_search_largest;

/* Proposes numbers of units for machines of `axis` [n]: for each combination of
 * values without an order the largest number within the budget over which the job
 * can be divided, powers of two below it, and numbers of devices that divide the
 * global batch; for values with an order those of the least and of the best
 * machine.  `largest` [*n_largest] has one machine of each combination. */
sc_status sc_search_units(const sc_search_question *q,
                          const sc_machine_axis *axis, uint32_t n, sc_arena *a,
                          sc_machine_axis *out,
                          const sc_search_largest **largest,
                          uint32_t *n_largest, sc_err *err);

/* A budget with what was proposed for it. */
typedef struct sc_search_proposal {
    sc_search_budget budget;
    uint32_t n_nodes; /* 0: the nodes were given */
    const sc_search_node *node;
    uint32_t n_largest; /* 0: the numbers of units were given */
    const sc_search_largest *largest;
} sc_search_proposal;

#endif
