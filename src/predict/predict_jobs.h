/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_jobs.h - several jobs in one file:
 *
 *   NAME: {weight: 2, model: llama3-8b, global-batch: 512, ...}
 *
 * with the options of a job as in a file of --config.
 */
#ifndef SC_PREDICT_JOBS_H
#define SC_PREDICT_JOBS_H

#include "predict/predict.h"

typedef enum sc_placement {
    SC_PLACE_PACKED,   /* the first free nodes */
    SC_PLACE_SCATTERED /* one free node of every leaf in turn */
} sc_placement;

/* Keys that jobs have beside those of sc_job_keys. */
extern const sc_key sc_jobs_keys[];

/* One job of a file; all in its arena. */
typedef struct sc_jobs_entry {
    const char *name;
    const sc_node *node;  /* the job, for positions */
    double weight;        /* > 0; default 1 */
    const sc_node *nodes; /* as written; NULL: not given */
    sc_placement placement;
    double start_s; /* when its first step starts, >= 0 */
    const sc_node
        *side;  /* a key that only jobs side by side have; NULL: none */
    sc_job job; /* what it does not say is as in `base` */
} sc_jobs_entry;

/* At least one job.  SC_EINPUT: syntax, unknown keys and values, a job with a
 * machine of its own; all errors of the file in one pass. */
sc_status sc_jobs_read(const char *text, size_t len, const char *file,
                       const sc_job *base, sc_arena *a, sc_jobs_entry **out,
                       uint32_t *n, sc_err *err);

/* The place of an option in a job of a file, or of the job. */
sc_pos sc_jobs_pos(const sc_jobs_entry *job, const char *key);

#endif
