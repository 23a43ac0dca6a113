/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - searches the choices that a job leaves open. */
#ifndef PREDICT_SPACE_H
#define PREDICT_SPACE_H

#include "predict/internal.h"
#include "predict/predict_points.h"

sc_law predict_law_of(const sc_job *job, const sc_software *sw);

typedef struct predict_choice {
    predict_eval best;  /* the fastest that fits with free memory to spare */
    predict_eval tight; /* fastest that fits */
    predict_eval least; /* smallest of all */
    bool have_best, have_tight, have_least;
    bool habit; /* only one number of micro-batches was tried, that of the
                   stages; other numbers may be faster */
    uint32_t tried;
} predict_choice;

/* `base` has the values of all choices except the division. SC_EINPUT: no
 * open choice is legal. */
sc_status predict_search(const sc_job *job, const sc_run *base,
                         predict_memo *memo, sc_arena *a, predict_choice *out,
                         sc_err *err);

/* The meshes that the search of `job` usually tries, of which `run` was the
 * best. NULL: the job was not searched like this, or memory is out. */
struct search_space *predict_searched(const sc_job *job, const sc_run *run,
                                      const predict_memo *memo, sc_arena *a);
bool predict_looked_at(const struct search_space *x, const sc_run *r);

#endif
