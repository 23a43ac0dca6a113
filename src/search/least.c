/* SPDX-License-Identifier: Apache-2.0 */
/* least.c - a lower bound of all steps of a space. */
#include "search/search.h"

#include <math.h>

/* Bounds differ by axes whose points have their own sc_points; of more
 * combinations none is computed. */
#define COMBINATIONS 256

/* Whether values of an axis may change the operations of a step, or the rate of
 * kernels. */
static bool matters(const sc_search_jobs *jobs, uint32_t i)
{
    const sc_search_option *o = &jobs->option[i];
    return i < jobs->n_own && o->axis.n > 1 && !o->found &&
           (o->job ||
            !sc_points_shares(sc_points_run(jobs->points)->sw, o->key->name));
}

static sc_status least_of(const sc_search_jobs *jobs, uint64_t at, sc_arena *a,
                          double *seconds, sc_err *err)
{
    sc_job job = jobs->job;
    sc_points *points;
    sc_err why;
    double own = INFINITY;
    sc_err_init(&why);
    for (uint32_t i = 0; i < jobs->n_own; i++) {
        uint32_t n = jobs->option[i].axis.n;
        if (!matters(jobs, i)) continue;
        sc_search_option_set(&jobs->option[i], (uint32_t)(at % n), &job);
        at /= n;
    }
    sc_status s = sc_points_new(&job, jobs->in, a, NULL, &points, &why);
    if (s == SC_OK) s = sc_points_least(points, &own, &why);
    if (s == SC_EINPUT) return SC_OK; /* so is each of its points */
    if (s != SC_OK) {
        *err = why;
        return s;
    }
    *seconds = fmin(*seconds, own);
    return SC_OK;
}

sc_status sc_search_least(const sc_search_jobs *jobs, sc_arena *a,
                          double *seconds, sc_err *err)
{
    uint64_t all = 1;
    *seconds = 0;
    for (uint32_t i = 0; i < jobs->n_own && all <= COMBINATIONS; i++)
        if (matters(jobs, i)) all *= jobs->option[i].axis.n;
    if (all > COMBINATIONS) return SC_OK;
    *seconds = INFINITY;
    for (uint64_t at = 0; at < all; at++) {
        sc_arena_mark mark = sc_arena_save(a);
        SC_TRY(least_of(jobs, at, a, seconds, err));
        sc_arena_restore(a, mark);
    }
    if (isinf(*seconds)) *seconds = 0;
    return SC_OK;
}
