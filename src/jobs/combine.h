/* SPDX-License-Identifier: Apache-2.0 */
/* combine.h - one graph of steps of several jobs. */
#ifndef JOBS_COMBINE_H
#define JOBS_COMBINE_H

#include "predict/predict_site.h"

/* Steps of one job, one after the other. */
typedef struct jobs_line {
    const sc_site_step *step;
    const char *name;
    uint32_t n;    /* steps, at least 1 */
    sc_time start; /* of the first step */
    /* filled: */
    uint32_t first_traffic; /* of the graph: those of the step follow */
    sc_op *begin, *end;     /* [n] a step lasts from the end of one op to that
                               of the other */
    sc_op *base;            /* [n] the first op of the step's graph */
} jobs_line;

/* Builds the graph of all lines, and the options with which it runs. */
sc_status jobs_combine(jobs_line *line, uint32_t n, sc_arena *a, sc_graph *out,
                       sc_sim_opts *o, sc_err *err);

#endif
