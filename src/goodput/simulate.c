/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c - runs of a job that fails, event by event.
 *
 * All random processes are Poisson or exponential, so the next event of any of
 * them comes after an exponential time with the sum of their rates (Gillespie
 * 1977), and between two events the job moves through its phases with known
 * durations.
 */
#include "goodput/internal.h"

#include <math.h>

typedef enum phase {
    TRAIN,
    SAVE,    /* a checkpoint stops training, `left` seconds more */
    STOP,    /* a planned stop waits for the checkpoint to be complete */
    RESTART, /* `left` seconds more */
    WAIT     /* for the repair of a node */
} phase;

typedef struct run {
    const sc_goodput_job *j;
    uint64_t rng;
    phase now;
    double every; /* seconds of training in a segment */
    double total, left;
    double at;      /* seconds of training in this segment so far */
    double gain;    /* and the work that they did */
    double start;   /* work at the begin of the segment */
    double saved;   /* work in the last complete checkpoint */
    double pending; /* until the checkpoint of `start` is complete */
    uint32_t broken, slow, planned;
    bool ended;
} run;

enum { MOST_EVENTS = 100000000 };

static double draw(run *r, double rate)
{
    return rate > 0 ? -log1p(-sc_random_unit(&r->rng)) / rate : INFINITY;
}

/* Seconds of training for one second of work. */
static double slowed(const run *r)
{
    return r->slow > 0 ? fmax(1, r->j->slowdown) : 1;
}

static void segment_end(run *r)
{
    r->start += r->gain;
    r->gain = r->at = 0;
    r->now = TRAIN;
    r->pending = r->j->lag_s;
    if (r->pending <= 0) r->saved = r->start;
    r->ended = r->start >= r->j->work_s * (1 - 1e-12);
    if (r->planned == 0 || r->ended) return;
    r->planned--;
    r->now = STOP;
    r->left = r->pending;
}

static void pass(run *r, double dt)
{
    r->total += dt;
    if (r->pending <= 0) return;
    r->pending = r->pending > dt ? r->pending - dt : 0;
    if (r->pending <= 0) r->saved = r->start;
}

/* All but the last of the segments that end within `dt`, which are alike. */
static double skip(run *r, double dt)
{
    const sc_goodput_job *j = r->j;
    double x = r->every + j->save_s, gain = r->every / slowed(r);
    double n = floor(fmin(dt / x, (j->work_s - r->start) / gain)) - 1;
    if (r->at > 0 || r->planned > 0 || n < 1) return dt;
    r->total += n * x;
    r->start += n * gain;
    r->pending = j->lag_s;
    r->saved = r->start - (j->lag_s > 0 ? gain : 0);
    return dt - n * x;
}

/* Trains for at most `dt`; returns what is left of it. */
static double train(run *r, double dt)
{
    dt = skip(r, dt);
    double rest = (r->j->work_s - r->start - r->gain) * slowed(r);
    double end = fmax(0, fmin(r->every - r->at, rest)), d = fmin(dt, end);
    pass(r, d);
    r->at += d;
    r->gain += d / slowed(r);
    if (dt < end) return 0;
    r->now = SAVE;
    r->left = r->j->save_s;
    return dt - d;
}

/* The same for phases of known duration. */
static double other(run *r, double dt)
{
    double d = fmin(dt, r->left);
    pass(r, d);
    r->left -= d;
    if (r->left > 0) return 0;
    if (r->now == SAVE) {
        segment_end(r);
    } else if (r->now == STOP) {
        r->now = RESTART;
        r->left = r->j->restart_s;
    } else {
        r->now = TRAIN;
    }
    return dt - d;
}

static void advance(run *r, double dt)
{
    while (dt > 0 && !r->ended)
        dt = r->now == TRAIN ? train(r, dt) : other(r, dt);
}

static void restart(run *r)
{
    r->now = r->broken > r->j->spares ? WAIT : RESTART;
    r->left = r->j->restart_s;
}

static void fail(run *r)
{
    if (r->now == STOP) r->planned++; /* it comes after the segment again */
    r->start = r->saved;
    r->gain = r->at = r->pending = 0;
    if (sc_random_unit(&r->rng) * r->j->failure_rate < r->j->replaced_rate)
        r->broken++;
    restart(r);
}

/* While the job waits, nothing but repairs goes on. */
static void wait(run *r)
{
    double dt = draw(r, r->broken / r->j->repair_s);
    r->total += dt;
    r->broken--;
    restart(r);
}

static void event(run *r)
{
    const sc_goodput_job *j = r->j;
    const double rate[] = {j->failure_rate, j->planned_rate, j->slow_rate,
                           r->slow > 0 ? r->slow / j->slow_s : 0,
                           r->broken > 0 ? r->broken / j->repair_s : 0};
    double sum = 0;
    for (size_t i = 0; i < SC_COUNT(rate); i++) sum += rate[i];
    double dt = draw(r, sum);
    advance(r, dt);
    if (r->ended) return;
    double u = sc_random_unit(&r->rng) * sum;
    size_t which = 0;
    while (which + 1 < SC_COUNT(rate) && u >= rate[which]) u -= rate[which++];
    switch (which) {
    case 0: fail(r); break;
    case 1: r->planned++; break;
    case 2: r->slow++; break;
    case 3: r->slow -= r->slow > 0; break;
    default: r->broken -= r->broken > 0;
    }
}

/* The number of events of a Poisson process in its mean `mean`, so that runs
 * start with as many slow nodes as any later time has. */
static uint32_t poisson(run *r, double mean)
{
    uint32_t n = 0;
    for (double t = draw(r, 1); t < mean && n < 1000000; t += draw(r, 1)) n++;
    return n;
}

sc_status sc_goodput_simulate(const sc_goodput_job *j, uint64_t seed,
                              uint32_t n, double *total_s)
{
    double every = goodput_interval(j);
    for (uint32_t i = 0; i < n; i++) {
        run r = {.j = j, .rng = sc_mix(seed + i), .every = every};
        r.slow = poisson(&r, j->slow_rate * j->slow_s);
        for (uint32_t k = 0; !r.ended; k++) {
            if (k == MOST_EVENTS) return SC_NO;
            if (r.now == WAIT)
                wait(&r);
            else
                event(&r);
        }
        total_s[i] = r.total;
    }
    return SC_OK;
}
