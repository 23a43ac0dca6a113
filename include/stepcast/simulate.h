/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.h - Chakra execution traces of all ranks of a program on a machine.
 *
 *   stepcast_job *job = stepcast_job_new("simulate");
 *   stepcast_job_set(job, "workload", "dp4", NULL);
 *   stepcast_job_set(job, "system", "system.json", NULL);
 *   stepcast_job_set(job, "network", "ring4@100GB/s,500ns", NULL);
 *   stepcast_simulate(job, &result, NULL, errors);
 */
#ifndef STEPCAST_SIMULATE_H
#define STEPCAST_SIMULATE_H

#include <stepcast/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The main numbers of a simulation; the document has all of them. */
typedef struct stepcast_simulation {
    size_t size;
    double makespan_s;  /* until the last rank has ended */
    uint32_t ranks;     /* rows of stepcast_simulation_rank() */
    uint32_t links;     /* rows of stepcast_simulation_link() */
    double messages;    /* sent */
    double utilization; /* of the busiest link, 0 to 1; NaN: there is none */
} stepcast_simulation;

/* Runs a job of the command "simulate".  `*document` is the same answer in
 * full, owned by the caller; `document` may be NULL.
 *
 * STEPCAST_USAGE: another command's job, or `out->size` is not set.  Others as
 * stepcast_job_run(); ranks that wait for each other for ever are
 * STEPCAST_INPUT; the message names the waits. */
STEPCAST_API stepcast_status stepcast_simulate(const stepcast_job *job,
                                               stepcast_simulation *out,
                                               stepcast_document **document,
                                               stepcast_errors *errors);

/* What a rank did; the four parts add up to its end. */
typedef struct stepcast_rank {
    size_t size;
    uint32_t rank;
    double end_s;
    double compute_s; /* in kernels */
    double comm_s;    /* in messages, and not in kernels at that time */
    double memory_s;  /* in accesses of remote memory, and in neither */
    double idle_s;
} stepcast_rank;

/* Rank `i`, counted from 0.  STEPCAST_NO behind the last; STEPCAST_USAGE:
 * another document, or `out->size` is not set. */
STEPCAST_API stepcast_status stepcast_simulation_rank(
    const stepcast_document *document, uint32_t i, stepcast_rank *out);

/* What a link carried. */
typedef struct stepcast_link_use {
    size_t size;
    const char *name; /* "dim0 3->4"; of the document */
    double bytes;
    double utilization; /* bytes over what it could have carried, 0 to 1 */
} stepcast_link_use;

/* Link `i`, the busiest first; the option "links" says how many there are.
 * Statuses as of stepcast_simulation_rank(). */
STEPCAST_API stepcast_status stepcast_simulation_link(
    const stepcast_document *document, uint32_t i, stepcast_link_use *out);

#ifdef __cplusplus
}
#endif
#endif
