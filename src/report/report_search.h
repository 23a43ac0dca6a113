/* SPDX-License-Identifier: Apache-2.0 */
/* report_search.h - reports of a search as text and as JSON. */
#ifndef SC_REPORT_SEARCH_H
#define SC_REPORT_SEARCH_H

#include "report/report_predict.h"
#include "search/search_budget.h"
#include "search/search_sizes.h"
#include "search/search_sure.h"
#include "search/search_tornado.h"

/* Changes of a row after which it needs less memory. */
typedef struct sc_report_smaller {
    uint32_t n;
    sc_suggestion change[SC_SUGGESTIONS];
} sc_report_smaller;

typedef struct sc_report_search {
    const sc_job *asked; /* the job as it was given */
    const sc_search_jobs *jobs;
    const sc_search_result *found;
    const sc_prediction *best;        /* [found->n_best] by the fast engine */
    uint32_t n_smaller;               /* first rows that have these */
    const sc_report_smaller *smaller; /* [n_smaller] */
    const sc_search_sure *sure;       /* NULL: not judged */
    double wall_s, cpu_s;
    sc_search_goal goal;
    uint32_t dims;                /* of the front: bits by sc_search_dim */
    const sc_search_sizes *sizes; /* NULL: one number of devices */
    const sc_search_machines *machines; /* NULL: one machine, or `sizes` */
    const sc_search_proposal *budget;   /* NULL: none */
    uint32_t n_swings;            /* how much the step depends on the machine */
    const sc_search_swing *swing; /* [n_swings]; NULL: not asked */
    double swing_by, swing_base_s; /* fraction; the step that is changed */
    sc_search_limits limits;
    const char *relief; /* options with which host memory keeps data if nothing
                         * fits; NULL: not known */
    bool relieved;      /* with them something fits */
} sc_report_search;

/* The axes of machines with their values. */
void sc_report_search_machines(const sc_machine_axis *axis, uint32_t n,
                               sc_text *out);
/* The axes with their values, and the rules between them. */
void sc_report_search_space(const sc_search_jobs *jobs, sc_text *out);

sc_status sc_report_search_text(const sc_report_search *r, sc_arena *a,
                                sc_text *out, sc_err *err);
/* Schema stepcast.search/1. */
sc_status sc_report_search_json(const sc_report_search *r,
                                const sc_report_origin *origin, sc_arena *a,
                                sc_json *out, sc_err *err);

#endif
