/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - training jobs that run at the same time on parts of one machine.
 *
 * Each job has its own units (nodes, or devices of a machine of one node).  Its
 * step is lowered as a prediction lowers it, with the links of the whole
 * machine, and one run of the event engine executes steps of all jobs.  A job
 * repeats its step until the longest has run its number of steps, so the steps
 * that are measured are those during which every job was running.  Jobs meet
 * only on links.
 *
 * Units: seconds, bytes, bytes/s.  Ownership: the arena of the call.
 */
#ifndef SC_JOBS_H
#define SC_JOBS_H

#include "hw/hw_partition.h"
#include "predict/predict_jobs.h"

/* A link that several jobs use. */
typedef struct sc_jobs_link {
    uint64_t link;
    double bw;       /* bytes/s */
    double *load;    /* [n_jobs] bytes/s of each job, averaged over its
                            steps beside the others */
    double fraction; /* of all jobs, of its rate */
    uint32_t alike;  /* links with equal loads, this one included */
} sc_jobs_link;

typedef struct sc_jobs_part {
    const sc_jobs_entry *of;
    sc_inputs in; /* filled by the caller; `hw` is the whole machine */
    uint32_t n_units;
    const uint32_t *unit; /* [n_units] in the order of its ranks */
    uint32_t n_leaves;    /* that have one of them */
    sc_prediction p;      /* on as many units of their own machine */
    sc_job job;           /* with every choice made */
    double packed_s;      /* alone on the first units of the machine; NaN: these
                              are no part for it */
    double alone_s;       /* alone on its units */
    double step_s, least_s, most_s; /* beside the others: median and range */
    uint32_t n_steps;               /* measured ones */
    double
        waits_s[SC_N_CATS]; /* a step's operations took longer, by category */
    uint32_t n_links;
    uint32_t *link; /* [n_links] of sc_jobs_result.link for which its
                       operations wait, the longest wait first */
    double *link_s; /* [n_links] by how much */
} sc_jobs_part;

typedef struct sc_jobs_opts {
    uint32_t steps; /* of the longest job, at least 2 */
    bool even;      /* equal routes are used evenly, else by a hash */
    uint64_t seed;  /* of the hash */
} sc_jobs_opts;

typedef struct sc_jobs_result {
    const sc_hw *hw;
    uint32_t n_jobs;
    sc_jobs_part *job; /* [n_jobs] */
    double slowdown;   /* step_s / alone_s, mean by weight */
    uint32_t n_links;
    sc_jobs_link *link; /* [n_links] fullest first */
    uint64_t n_ops, n_events;
} sc_jobs_result;

/* Most operations that one run executes. */
#define SC_JOBS_OPS ((uint64_t)1 << 23)

/* Sets the units of every job.  SC_EINPUT, located in the file: units that the
 * machine does not have, that two jobs have, more than are free. */
sc_status sc_jobs_place(sc_jobs_part *job, uint32_t n_jobs, const sc_hw *hw,
                        sc_arena *a, sc_err *err);

/* Predicts and runs jobs with units.  Errors as sc_predict(), located in the
 * file; a job that does not fit in memory; SC_C_TOO_BIG. */
sc_status sc_jobs_run(sc_jobs_part *job, uint32_t n_jobs, const sc_hw *hw,
                      const sc_jobs_opts *o, sc_arena *a, sc_jobs_result *out,
                      sc_err *err);

#endif
