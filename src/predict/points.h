/* SPDX-License-Identifier: Apache-2.0 */
/* points.h - shared by the files that evaluate many jobs. */
#ifndef PREDICT_POINTS_PRIVATE_H
#define PREDICT_POINTS_PRIVATE_H

#include "predict/fast.h"
#include "predict/memory_group.h"
#include "predict/predict_points.h"
#include "predict/space_mesh.h"

/* ---- jobs that are predicted one by one (points_whole.c) ------------------- */

/* Sets what jobs that predict_apart() have in common. */
sc_status points_whole_open(const sc_job *job, sc_arena *a, sc_run *base,
                            predict_notes *unread, sc_err *err);
/* Predicts one of them; `a` is as before afterwards.  `*flops` is the
 * least that all devices together execute in a step of any of them. */
sc_status points_whole_run(const sc_job *job, const sc_inputs *in, sc_arena *a,
                           sc_point *out, double *flops, sc_err *err);

/* ---- ends of steps (points_end.c) ------------------------------------------- */

/* One end of a step. */
typedef struct points_end {
    sc_job job;
    sc_run base;   /* what sc_run_set_end() takes */
    uint32_t like; /* the first end with the same memory */
} points_end;

/* What an end costs the devices of a group. */
typedef struct points_cost {
    bool known;
    fast_last last;
    double copies, final; /* host_copy_s, host_last_s */
} points_cost;

/* What depends on stages and weights, but not on passes: shared by all
 * micro-batches and recomputations.  Arrays are [ends * groups]. */
typedef struct points_cut {
    uint64_t key;
    uint32_t n_ends, n_groups;
    double *optim;     /* elements of optimizer states */
    points_cost *cost; /* known ones */
    double *fixed_s;   /* [ends] */
} points_cut;

/* The jobs of a sc_points with all ends. */
typedef struct points_ends {
    uint32_t n, cap;
    points_end *of; /* [n] */
    uint32_t *seen; /* [n] the place of its memory in the present question */
    bool zero;      /* the ZeRO stage belongs to the end */
    sc_map cuts;
    points_cut *last; /* the cut that was used last */
} points_ends;

/* A job with its groups of equal devices. */
typedef struct points_job {
    predict_shape shape;
    uint64_t order; /* fast_order_key() */
    bool taken;
    uint32_t end; /* the end of `shape` */
    int zero;     /* the ZeRO stage of the job, if that belongs to no end */
    uint32_t n_groups;
    memory_group *group; /* [n_groups] */
    points_cut *cut;
} points_job;

/* Copies the end of the step of a job. */
void points_copy_end(const sc_job *of, bool zero, sc_job *inout);
/* The ZeRO stage of a job with an end, and its shape with this end. */
int points_zero(const points_ends *x, const points_job *j, uint32_t end);
sc_status points_set_end(const points_ends *x, predict_memo *m,
                         const points_job *j, uint32_t end, predict_shape *s,
                         sc_err *err);

/* The cut of a job, with the optimizer states of its groups.  If nothing can be
 * shared, it lives in `a`. */
sc_status points_cut_of(points_ends *x, predict_memo *m, points_job *j,
                        sc_arena *a, sc_err *err);
/* Sets the memory of a job with each of `n` ends; `*any`: one of them fits and
 * leaves what `most_full` asks for. */
void points_memory_of(const points_ends *x, const points_job *j, double scale,
                      double most_full, uint32_t n, sc_point_end *inout,
                      bool *any);
/* Seconds that the step of a job with this end takes at least beyond its
 * passes. */
sc_status points_least_after(points_ends *x, predict_memo *m, points_job *j,
                             uint32_t e, double *seconds, sc_err *err);
/* Sets the steps of a job whose passes have run, for the ends of a class. */
sc_status points_steps_of(points_ends *x, predict_memo *m, points_job *j,
                          const fast_engine *e, uint32_t n,
                          sc_point_end *const *inout, sc_arena *a, sc_err *err);

#endif
