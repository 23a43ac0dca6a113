/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_mix.h - the machine that is best for several jobs together: every machine
 * of some axes is searched for every job.
 */
#ifndef SEARCH_MIX_H
#define SEARCH_MIX_H

#include "search/search_machines.h"

typedef struct sc_mix_job {
    const char *name;
    double weight;
    sc_job job;
    sc_inputs in;             /* of the job, filled by the caller */
    sc_search_machines found; /* all machines on which it runs, best first */
} sc_mix_job;

/* Jobs of a file: NAME: {weight: 2, model: ..., global-batch: ...}.  What a job does
 * not say is as in `base`; `weight` is 1.  SC_EINPUT. */
sc_status sc_search_mix_read(const char *text, size_t len, const char *file,
                             const sc_job *base, sc_arena *a, sc_mix_job **out,
                             uint32_t *n, sc_err *err);

/* A machine that runs all jobs. */
typedef struct sc_mix_row {
    const sc_machine_row **of; /* [jobs] the best row of each job there */
    double mean; /* of scores over the best of the job, by weight; at least 1 */
} sc_mix_row;

typedef struct sc_search_mix {
    uint32_t n_jobs;
    const sc_mix_job *job; /* [n_jobs] */
    uint32_t n_rows;
    sc_mix_row *row; /* [n_rows] best first */
    double machines; /* of the axes */
    bool proved;     /* every machine was searched for every job */
} sc_search_mix;

/* Most machines of a mix. */
#define SC_MIX_MACHINES 2000

/* Searches all machines for all jobs.  SC_EINPUT: too many machines, or a job runs
 * on none of them. */
sc_status sc_search_mix_run(const sc_search_question *q, sc_mix_job *job,
                            uint32_t n_jobs, const sc_machine_axis *axis,
                            uint32_t n_axes, sc_arena *a, sc_search_mix *out,
                            sc_err *err);

#endif
