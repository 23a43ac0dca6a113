/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - one thread of a search: it evaluates the points of one task after
 * the other. */
#ifndef SEARCH_WORKER_H
#define SEARCH_WORKER_H

#include "search/tally.h"

#include <stdatomic.h>

/* The ends of steps (sc_job_ends()) that the last axes combine. */
typedef struct search_ends {
    uint32_t n;
    uint32_t *which;    /* [n] their number in the sc_points */
    const sc_err **why; /* [n] why one is not legal; NULL: it is */
    uint32_t *digit;    /* [number in the sc_points][axes of ends] */
} search_ends;

/* A job without its steps, and those of its ends that fit. */
typedef struct search_waiting {
    sc_search_row row;
    sc_point_ends ends;
} search_waiting;

typedef struct search_worker {
    const sc_search_jobs *jobs;
    const sc_search_options *o;
    atomic_bool *stopped; /* of all workers */
    sc_arena a;           /* of `points` */
    sc_arena whole;       /* of one prediction, if the goal needs it */
    sc_points_room room;
    sc_points *points; /* of these first digits; NULL: none */
    uint32_t slow[SC_SEARCH_AXES];
    sc_search_row row;
    search_ends ends;
    search_waiting waiting[SC_POINTS_WAIT];
    uint32_t n_waiting;
    sc_arena rows;
    /* [n_later] rows of jobs that fit with one of their ends; their scores are
     * bounds of all their steps */
    sc_search_row *later;
    uint32_t n_later;
    sc_job job;
    search_tally *tally; /* of its task */
    double weight;       /* sc_search_goal_weight() */
    double most_s;       /* of a step, for rows; INFINITY: any */
    uint32_t looks;
    sc_status status;
    sc_err err;
} search_worker;

void search_worker_open(search_worker *w, const sc_search_jobs *jobs,
                        const sc_search_options *o, atomic_bool *stopped,
                        size_t limit_bytes);
void search_worker_free(search_worker *w);

/* Whether this search ends, because of its options or of an error. */
bool search_worker_stopped(search_worker *w);

/* Evaluates all points with these first digits [jobs->n_mesh]; `tally` has what
 * is known before.  The reason for an error is in w->err. */
sc_status search_worker_run(search_worker *w, const uint32_t *digit,
                            search_tally *tally);

#endif
