/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - shared by the files that run jobs side by side. */
#ifndef JOBS_INTERNAL_H
#define JOBS_INTERNAL_H

#include "jobs/combine.h"
#include "jobs/jobs.h"

/* One step of a job alone on its units. */
typedef struct jobs_alone {
    sc_site_step step;
    jobs_line line;
    sc_result run;
} jobs_alone;

typedef struct jobs_run {
    sc_jobs_part *job; /* [n] */
    jobs_alone *alone; /* [n] */
    jobs_line *line;   /* [n] */
    uint32_t n;
    const sc_hw *hw;
    const sc_jobs_opts *o;
    sc_arena *a;
    sc_graph graph; /* of all steps of all jobs */
    sc_sim_opts opts;
    sc_result run;
    double *took;              /* [steps] of the job that is measured */
    uint32_t *first, *n_steps; /* [n] measured steps */
    bool long_enough;          /* every job has a measured step */
} jobs_run;

/* links.c: sets the links of the result and what operations wait for. */
sc_status jobs_links(const jobs_run *x, sc_jobs_result *out, sc_err *err);

#endif
