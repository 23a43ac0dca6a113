/* SPDX-License-Identifier: Apache-2.0 */
/* points.h - shared by the files that evaluate many jobs. */
#ifndef PREDICT_POINTS_PRIVATE_H
#define PREDICT_POINTS_PRIVATE_H

#include "predict/predict_points.h"
#include "predict/space_mesh.h"

/* Sets what jobs that predict_apart() have in common. */
sc_status points_whole_open(const sc_job *job, sc_arena *a, sc_run *base,
                            predict_notes *unread, sc_err *err);
/* Predicts one of them; `a` is as before afterwards.  `*flops` is the
 * least that all devices together execute in a step of any of them. */
sc_status points_whole_run(const sc_job *job, const sc_inputs *in, sc_arena *a,
                           sc_point *out, double *flops, sc_err *err);

#endif
