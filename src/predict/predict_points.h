/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_points.h - many jobs of one model, machine and program that leave
 * nothing open: each is what sc_predict() computes for it with the fast engine,
 * to the last picosecond and byte, from prices that the jobs share.
 */
#ifndef SC_PREDICT_POINTS_H
#define SC_PREDICT_POINTS_H

#include "predict/predict.h"

/* Features of a program, as bits of sc_software, including what options add
 * to a program that the user did not name. */
typedef struct sc_law {
    uint32_t axes, schedules, zero_stages, recomputes;
    bool sp;
} sc_law;

/* One evaluated job. */
typedef struct sc_point {
    double step_s;
    double peak; /* bytes on the device that needs most */
    double full; /* fraction of a device's memory on the fullest one */
    bool fits;
    bool slower; /* it fits but is not faster than required: `step_s` is a
                  * lower bound */
} sc_point;

typedef struct sc_points sc_points;

/* Prepares jobs that differ from `job` only in what sc_points_shares() names.
 * Everything lives in `a`.  SC_EINPUT: the model is a network of operators, or
 * the program, the model and the machine contradict each other. */
sc_status sc_points_new(const sc_job *job, const sc_inputs *in, sc_arena *a,
                        sc_points **out, sc_err *err);

/* Whether jobs that differ in this key of sc_job_keys share a sc_points. */
bool sc_points_shares(const sc_software *sw, const char *key);

/* What the jobs have in common: machine, model and program with the job's
 * changes, batch, sequence. */
const sc_run *sc_points_run(const sc_points *x);
/* What the program can do. */
const sc_law *sc_points_law(const sc_points *x);

/* A lower bound of the step of every such job: the floating-point operations
 * of the undivided model at the rate that no kernel exceeds.  0: none is
 * known, because devices differ. */
sc_status sc_points_least(sc_points *x, double *seconds, sc_err *err);

/* Sets memory and `fits` of a job that gives all degrees, the micro-batch,
 * recomputation and sharding.  If a lower bound shows that the job does not
 * fit, or needs a larger fraction of a device's memory than `most_full`, the
 * memory is that bound and `fits` is false; INFINITY: no such bounds.  SC_EINPUT: it is not legal, `err` says why. */
sc_status sc_points_memory(sc_points *x, const sc_job *job, double most_full,
                           sc_point *out, sc_err *err);
/* Then sets the step.  With `beat_s` > 0, a step that can't be shorter is not
 * composed. */
sc_status sc_points_step(sc_points *x, double beat_s, sc_point *inout,
                         sc_err *err);

#endif
