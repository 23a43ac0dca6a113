/* SPDX-License-Identifier: Apache-2.0 */
/* report_jobs.h - reports of jobs that run side by side on one machine. */
#ifndef SC_REPORT_JOBS_H
#define SC_REPORT_JOBS_H

#include "jobs/jobs.h"
#include "report/report.h"

/* All pointers are borrowed. */
typedef struct sc_report_jobs {
    const sc_jobs_result *r;
    const sc_jobs_opts *opts;
    const char *machine; /* as the user named it */
    const sc_job *asked; /* what jobs do not say */
    bool all_links;      /* in JSON; else the 100 fullest */
    double wall_s;
    uint64_t peak_rss_bytes;
    const sc_report_input *input;
    uint32_t n_inputs;
} sc_report_jobs;

/* A table of jobs, and what slows them down. */
void sc_report_jobs_text(const sc_report_jobs *s, sc_text *out);

/* An object with the JSON schema stepcast.mix/1. */
sc_status sc_report_jobs_json(const sc_report_jobs *s, sc_arena *a,
                              sc_json *out, sc_err *err);

#endif
