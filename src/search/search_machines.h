/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_machines.h - the best of many machines, each with the best division of
 * the job over it.
 *
 * Axes of a machine are keys of its description.  More of a resource never makes
 * the best step longer, so the step that was found on the machine with most of
 * everything bounds those of all others: a box of machines is left out if its
 * cheapest one would not be better with that step, and divided otherwise (branch
 * and bound, Land and Doig 1960).
 */
#ifndef SEARCH_MACHINES_H
#define SEARCH_MACHINES_H

#include "search/search_front.h"

typedef enum sc_machine_kind {
    SC_MACHINE_UNITS,   /* the number of nodes, racks, chips of a pod */
    SC_MACHINE_NODE,    /* the name of the catalogue before that number */
    SC_MACHINE_CLUSTER, /* all of it, which the others change */
    SC_MACHINE_KEY,     /* a key behind the name: nic_bw */
    SC_MACHINE_FACTOR,  /* of the device: mem_bw */
    SC_MACHINE_OPTION   /* an option of a job that changes what is loaded */
} sc_machine_kind;

/* Names of axes that have another meaning beside their values. */
#define SC_MACHINE_AXIS_CLUSTER "cluster"
#define SC_MACHINE_AXIS_PRICE   "price"

typedef struct sc_machine_axis {
    sc_machine_kind kind;
    const char *name;
    uint32_t n;
    const char *const *value; /* [n] as they were written */
    bool ordered; /* none makes a step longer than those before it */
    const sc_search_option *option; /* of SC_MACHINE_OPTION */
} sc_machine_axis;

/* Most axes of machines. */
#define SC_MACHINE_AXES 16

/* Reads values of a key of machines: words such as "8,16,32", "1..8" or
 * "h100-sxm*{peak=1,mem_bw=2},h200-sxm", or a list of them; of "cluster" a whole
 * machine, or a list of them.  SC_EUSAGE, or of a
 * file SC_EINPUT: there is no such key, or what is no value of it. */
sc_status sc_machine_axis_read(const char *name, const sc_node *value,
                               sc_arena *a, sc_machine_axis *out, sc_err *err);

/* The axis of an option of a job for which sc_job_loads() holds. */
sc_status sc_machine_axis_of(const sc_search_option *o, sc_arena *a,
                             sc_machine_axis *out, sc_err *err);

/* Sets the machine of a job to that with these digits.  SC_EINPUT: `job` names
 * a machine that can't be changed so. */
sc_status sc_machine_set(const sc_machine_axis *axis, uint32_t n,
                         const uint32_t *digit, sc_arena *a, sc_job *job,
                         sc_err *err);

/* A machine with its best row. */
typedef struct sc_machine_row {
    uint32_t digit[SC_MACHINE_AXES];
    double score, step_s;
    sc_job job; /* with machine and division */
    sc_machine_bill bill;
    const sc_prediction *best; /* of it */
} sc_machine_row;

typedef struct sc_search_machines {
    uint32_t n_axes;
    const sc_machine_axis *axis;
    double machines;   /* of the space */
    uint64_t searched; /* machines whose points were searched */
    uint64_t illegal;  /* machines that can't be built or divide the job */
    const char *why;   /* of the first of these; NULL: there is none */
    /* machines that need more power or money than the budget has, or of which it
     * is not known */
    double beyond_watts, beyond_usd, not_known;
    const char *why_over; /* of the first of these; NULL: there is none */
    double points;        /* of all machines */
    double evaluated;     /* steps that were composed */
    double left;          /* points that were not reached */
    double bound;         /* no point has a smaller score */
    uint32_t n_best;
    sc_machine_row *best;    /* [n_best] of different machines, best first */
    double **per_axis;       /* [n_axes][n]: the best score; INFINITY: none */
    uint32_t dims;           /* of the front of machines; 0: there is none */
    uint32_t n_front;        /* machines with their fastest rows */
    sc_search_member *front; /* [n_front] by time */
    const sc_search_machine *chosen; /* the best; NULL: nothing fits */
} sc_search_machines;

/* Searches all machines; q->o->top of them are kept.  With limits only rows that
 * meet them count.  SC_EINPUT: no machine is legal; the hint says why. */
sc_status sc_search_machines_run(const sc_search_question *q,
                                 const sc_machine_axis *axis, uint32_t n_axes,
                                 sc_arena *a, sc_search_machines *out,
                                 sc_err *err);

#endif
