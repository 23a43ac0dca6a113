/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - the best of many jobs.  Every one is evaluated as sc_predict()
 * does it with the fast engine (predict_points.h).
 */
#ifndef SEARCH_H
#define SEARCH_H

#include "predict/predict_points.h"
#include "search/search_space.h"

/* An option of a job and the values that it takes. */
typedef struct sc_search_option {
    const sc_key *key;      /* of sc_job_keys */
    sc_search_axis axis;    /* of a quantity: 0, 1, 2 ... */
    const double *quantity; /* [axis.n] of SC_T_QUANTITY; else NULL */
    bool found;             /* its values were not given */
} sc_search_option;

/* Reads values for an option of a job: "1,2,4", "0..3", "none,full".  The key
 * must be a number, a flag or a name.  SC_EUSAGE at `pos`. */
sc_status sc_search_option_read(const sc_key *key, const char *text, sc_pos pos,
                                sc_arena *a, sc_search_option *out,
                                sc_err *err);

/* The text of a value, as an option takes it. */
void sc_search_option_print(const sc_search_option *o, uint32_t digit,
                            char *buf, size_t size);
/* Sets the value in a job. */
void sc_search_option_set(const sc_search_option *o, uint32_t digit,
                          sc_job *job);

typedef struct sc_search_jobs {
    sc_job job; /* what all points share */
    const sc_inputs *in;
    sc_points *points;              /* of the job as it was given */
    uint32_t n;                     /* axes */
    const sc_search_option *option; /* [n] */
    uint32_t n_rules;
    const sc_search_rule *rule; /* [n_rules] */
    sc_search_space *space;
    uint32_t n_own;  /* first axes, whose points have their own sc_points */
    uint32_t n_mesh; /* axes up to the last degree of parallelism */
} sc_search_jobs;

/* The space of a job: the given options have the given values, each other
 * choice all that machine, model and program allow.  SC_EINPUT: no point is
 * legal, or sc_points_new(). */
sc_status sc_search_jobs_open(const sc_job *job, const sc_inputs *in,
                              const sc_search_option *given, uint32_t n_given,
                              sc_arena *a, sc_search_jobs *out, sc_err *err);

/* ---- the search ---------------------------------------------------------- */

/* An evaluated point. */
typedef struct sc_search_row {
    uint32_t digit[SC_SEARCH_AXES];
    sc_point point;
} sc_search_row;

/* Orders rows by time, then by the order of points. */
int sc_search_row_order(const sc_search_row *x, const sc_search_row *y,
                        uint32_t n);

/* Points that are not possible, by the option that is refused, or "memory". */
typedef struct sc_search_reason {
    char name[40];
    uint64_t n;
} sc_search_reason;

#define SC_SEARCH_REASONS 32

typedef struct sc_search_options {
    uint32_t top;             /* rows to keep */
    uint32_t threads;         /* at least 1; no result depends on it */
    bool exhaustive;          /* without bounds */
    double keep_free;         /* fraction of memory that rows leave free */
    bool (*stop)(void *with); /* ends the search early; NULL: never */
    void *with;
    const sc_progress *progress; /* NULL: not reported */
} sc_search_options;

typedef struct sc_search_result {
    uint64_t points;
    uint64_t evaluated; /* steps that were composed */
    uint64_t pruned;    /* points that a bound excludes */
    uint64_t left;      /* points that the search did not reach */
    double bound_s;     /* no point that was left is faster */
    uint32_t n_reasons;
    sc_search_reason reason[SC_SEARCH_REASONS];
    uint32_t n_best;
    sc_search_row *best; /* [n_best], fastest first */
    uint32_t n_front;
    sc_search_row
        *front; /* [n_front] by time: each needs less memory than those
                        * before it */
    /* of each value of each axis the fastest row; NULL: there is none */
    sc_search_row **per_axis; /* [n][axis.n] */
} sc_search_result;

sc_status sc_search_run(const sc_search_jobs *jobs, const sc_search_options *o,
                        sc_arena *a, sc_search_result *out, sc_err *err);

/* The job of a row. */
void sc_search_row_job(const sc_search_jobs *jobs, const sc_search_row *row,
                       sc_job *out);

#endif
