/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_points.h - many jobs of one model, machine and program that leave
 * nothing open: each is what sc_predict() computes for it with the fast engine,
 * to the last picosecond and byte, from prices that the jobs share.
 */
#ifndef SC_PREDICT_POINTS_H
#define SC_PREDICT_POINTS_H

#include "base/map.h"
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

/* Orders of passes that are used again. */
typedef struct predict_orders {
    sc_arena a;
    sc_map by_key;
    size_t bytes;
} predict_orders;

/* Memory that the sc_points of a thread use one after the other.  All are for
 * one machine with one set of parameters, which stay where they are. */
typedef struct sc_points_room {
    sc_arena a; /* of the jobs that wait */
    predict_orders orders;
    sc_arena kept;
    sc_coll_memo *prices; /* of exchanges, in `kept`; NULL: none yet */
} sc_points_room;

void sc_points_room_init(sc_points_room *x, size_t limit_bytes);
void sc_points_room_free(sc_points_room *x);

typedef struct sc_points sc_points;

/* Prepares jobs that differ from `job` only in what sc_points_shares() names.
 * Everything lives in `a`, but jobs that wait live in `room`; without a room
 * none can be evaluated.  Networks of operators and strategies outside the
 * search of `predict` are predicted one by one.  SC_EINPUT: these have no
 * global batch, the job has a compatible mode, or the program, the model and
 * the machine contradict each other. */
sc_status sc_points_new(const sc_job *job, const sc_inputs *in, sc_arena *a,
                        sc_points_room *room, sc_points **out, sc_err *err);

/* Whether jobs that differ only in the end of their step (sc_job_ends()) share
 * passes: devices are of one kind, and neither a strategy nor groups of replicas
 * or compressed gradients make the end more than a sum over layers. */
bool sc_points_have_ends(const sc_job *job, const sc_hw *hw);
/* Adds the end of a step of `job`, which differs from the job of sc_points_new()
 * only in keys that sc_job_ends(); `*which` numbers it, from 1 on.  That of sc_points_new() is
 * end 0.  `zero`: the ZeRO stage belongs to the end, of all ends or of none.
 * SC_EINPUT: it is not legal, `err` says why. */
sc_status sc_points_add_end(sc_points *x, const sc_job *job, bool zero,
                            uint32_t *which, sc_err *err);

/* Whether jobs that differ in this key of sc_job_keys share a sc_points. */
bool sc_points_shares(const sc_software *sw, const char *key);

/* Whether a key is the number of data-parallel ranks that shard together, which
 * divides dp and needs sharding. */
bool sc_points_divides_dp(const sc_key *k);

/* What the jobs have in common: machine, model and program with the job's
 * changes, batch, sequence. */
const sc_run *sc_points_run(const sc_points *x);
/* What the program can do. */
const sc_law *sc_points_law(const sc_points *x);

/* A lower bound of the step of every such job: the floating-point operations
 * of the undivided model at the rate that no kernel exceeds.  0: none is
 * known. */
sc_status sc_points_least(sc_points *x, double *seconds, sc_err *err);

/* A job with one end of its step. */
typedef struct sc_point_end {
    uint32_t end;  /* its number */
    double beat_s; /* the step has to be shorter; 0: no limit */
    sc_point point;
} sc_point_end;

/* Asked about a job whose layers are not priced yet, with lower bounds of its
 * memory with each of `n` ends and of all its steps: whether its steps can't be
 * short enough. */
typedef bool sc_points_slow(void *with, double least_s, uint32_t n,
                            const sc_point_end *of);

/* Which jobs need no exact memory. */
typedef struct sc_points_limit {
    /* those that need a larger fraction of a device's memory with each end, or
     * do not fit; INFINITY: none */
    double most_full;
    sc_points_slow *slow; /* NULL: no others */
    void *with;
} sc_points_limit;

/* Bounds of the following jobs come from those that follow this call, so that
 * they do not depend on what was evaluated before. */
void sc_points_task(sc_points *x);

/* Sets memory and `fits` of a job that gives all degrees, the micro-batch,
 * recomputation and sharding, with each of `n` ends, at least one.  What the job
 * says about ends is not read.  If a lower bound shows that it fits with none of
 * them, the memory is that bound and `fits` is false; if it fits but is too
 * slow, `slower` is true.  SC_EINPUT: it is not legal, `err` says why. */
sc_status sc_points_memory(sc_points *x, const sc_job *job,
                           const sc_points_limit *limit, uint32_t n,
                           sc_point_end *inout, sc_err *err);

/* Whether jobs are predicted one by one, so that their steps are known with
 * their memory. */
bool sc_points_whole(const sc_points *x);
/* A lower bound of the step of the last job of sc_points_memory(), which fits
 * and is not predicted as a whole. */
double sc_points_shortest(const sc_points *x);

/* Most jobs that wait for their step, and that are composed together. */
enum { SC_POINTS_WAIT = 64, SC_POINTS_TOGETHER = 8 };

/* Lets the last job of sc_points_memory() wait for its steps, and returns its
 * number: jobs are numbered from 0, until none waits.  At most SC_POINTS_WAIT
 * may wait; others are forgotten by the next sc_points_memory(). */
uint32_t sc_points_wait(sc_points *x);
/* Takes jobs that are composed together from those that wait, and returns
 * their number; 0: none waits. */
uint32_t sc_points_take(sc_points *x, uint32_t which[SC_POINTS_TOGETHER]);

/* The ends of a job whose steps are wanted. */
typedef struct sc_point_ends {
    uint32_t n;
    sc_point_end *of; /* [n] */
} sc_point_ends;

/* Sets the steps of `n` jobs.  A step that can't be shorter than required is not
 * composed.  No job may be asked for memory between both calls. */
sc_status sc_points_steps(sc_points *x, uint32_t n, const uint32_t *which,
                          const sc_point_ends *inout, sc_err *err);

#endif
