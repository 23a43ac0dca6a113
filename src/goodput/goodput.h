/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goodput.h - the time of a job that fails, restarts and waits for repairs.
 *
 * A job trains in segments: `every_s` of training, then a checkpoint that stops
 * it for `save_s` and that is complete `lag_s` later. Failures are a Poisson
 * process over all time in which the job holds its nodes. After one, the job is
 * down for `restart_s` (detection, replacement, start, loading) and goes on at
 * its last complete checkpoint; a failure during the restart begins it anew.
 *
 * Expected time, with M = 1 / failure rate, x = every + save, R = restart,
 * L = lag <= x. One segment takes
 *
 *   P = M exp((R + L) / M) (exp(x / M) - 1)
 *
 * which is Daly (2006, "A higher order estimate of the optimum checkpoint
 * interval for restart dumps", eq. 20) for L = 0. L enters like R: a segment
 * whose last checkpoint is not complete before L fails with probability 1 -
 * exp(-L / M) before that, and then repeats one more segment. P is training x,
 * plus F = exp(L / M) (exp(x / M) - 1) failures, each with a restart of
 * M (exp(R / M) - 1), and the rest is lost work.
 *
 * A planned stop waits for the last checkpoint to complete and then restarts:
 * M (exp((R + L) / M) - 1).
 *
 * Waits for repairs: of all nodes, `spares` more than the job needs, a number k
 * is being repaired, each for `repair_s` on average. If k > spares, the job
 * waits, and no node fails. k is an Erlang loss system with spares + 1 servers
 * and the load a = replaced_rate repair_s, so the job waits for the fraction
 * B(spares + 1, a) of all time, whatever the distribution of repair times
 * (Erlang 1917; Sevast'yanov 1957 on the latter).
 *
 * Slow nodes: they come at `slow_rate` and stay `slow_s` on average; the number
 * of them is that of an M/M/inf queue, so none is slow for exp(-slow_rate
 * slow_s) of the time. Else every step takes `slowdown` times as long.
 *
 * Units: seconds and 1/s. All functions are pure.
 */
#ifndef SC_GOODPUT_H
#define SC_GOODPUT_H

#include "base/base.h"

typedef struct sc_goodput_job {
    double work_s;        /* training without checkpoints and failures */
    double step_s;        /* of it, one step: intervals are whole steps */
    double failure_rate;  /* of the whole job, planned stops not included */
    double replaced_rate; /* the part of it that takes a node out for repair */
    double planned_rate;
    double save_s;  /* training stops for a checkpoint */
    double lag_s;   /* until it is complete, while training goes on */
    double every_s; /* training between checkpoints; 0: the optimum */
    double restart_s, repair_s;
    uint32_t spares; /* nodes */
    double slow_rate, slow_s, slowdown;
} sc_goodput_job;

typedef enum sc_goodput_part {
    SC_GP_TRAINING, /* work_s */
    SC_GP_SLOW,     /* steps that take longer because of slow nodes */
    SC_GP_SAVES,    /* complete checkpoints */
    SC_GP_LOST,     /* work since the last checkpoint, which is repeated */
    SC_GP_RESTARTS, /* after failures */
    SC_GP_PLANNED,  /* planned stops with their restarts */
    SC_GP_WAITS,    /* for the repair of a node */
    SC_N_GOODPUT_PARTS
} sc_goodput_part;

extern const char *const sc_goodput_names[]; /* "training" ...; NULL ends */

typedef struct sc_goodput {
    double total_s;                    /* sum of the parts */
    double part_s[SC_N_GOODPUT_PARTS]; /* expected */
    double every_s; /* training between checkpoints, without slow nodes */
    double young_s, daly_s; /* the optimum of every_s as they estimate it */
    double failures, planned;
} sc_goodput;

/* The expected time. SC_NO: the job never ends, because it is stopped more often
 * than it restarts or a number overflows. */
sc_status sc_goodput_expect(const sc_goodput_job *j, sc_goodput *out);

/* Training between checkpoints for the least expected time; `m` is the mean time
 * between failures. First order: Young (1974), sqrt(2 save m). Higher order: Daly
 * (2006), eq. 37. Exact: the root of the derivative of P / every. */
double sc_interval_young(double save_s, double m);
double sc_interval_daly(double save_s, double m);
double sc_interval_exact(double save_s, double m);

/* Erlang's B: the fraction of time in which all of `servers` are busy. */
double sc_erlang_b(uint32_t servers, double load);
/* The fewest spare nodes with which the job waits for repairs for at most the
 * fraction `waits` of the time; at most 1e6. */
uint32_t sc_goodput_spares(const sc_goodput_job *j, double waits);

/* Total seconds of `n` simulated runs, event by event. The same
 * seed gives the same runs. SC_NO: a run did not end within 1e8 events. */
sc_status sc_goodput_simulate(const sc_goodput_job *j, uint64_t seed,
                              uint32_t n, double *total_s);

#endif
