/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c - the expected time of a job that fails, by the formulas of
 * goodput.h. */
#include "goodput/internal.h"

#include <math.h>

const char *const sc_goodput_names[] = {
    "training", "slow nodes",    "checkpoints",      "lost work",
    "restarts", "planned stops", "waits for repair", NULL};

double sc_interval_young(double save_s, double m)
{
    return sqrt(2 * save_s * m);
}

double sc_interval_daly(double save_s, double m)
{
    double d = save_s / (2 * m);
    if (d >= 1) return m;
    return sqrt(2 * save_s * m) * (1 + sqrt(d) / 3 + d / 9) - save_s;
}

/* With y = every / m, the derivative of P / every is zero where -log(1 - y) - y
 * = save / m. The left side is convex and at least y^2 / 2, so Newton's method
 * falls from these starts to the root without passing it. */
double sc_interval_exact(double save_s, double m)
{
    enum { STEPS = 60 };

    double d = save_s / m;
    double y = fmin(sqrt(2 * d), -expm1(-1 - d));
    for (int i = 0; i < STEPS && y > 0 && y < 1; i++)
        y -= (-log1p(-y) - y - d) * (1 - y) / y;
    return y * m;
}

double sc_erlang_b(uint32_t servers, double load)
{
    double b = 1;
    for (uint32_t n = 1; n <= servers; n++) b = load * b / (n + load * b);
    return b;
}

uint32_t sc_goodput_spares(const sc_goodput_job *j, double waits)
{
    enum { MOST = 1000000 };

    double load = j->replaced_rate * j->repair_s, b = 1;
    for (uint32_t n = 1; n <= MOST; n++) {
        b = load * b / (n + load * b);
        if (b <= waits) return n - 1;
    }
    return MOST;
}

double goodput_speed(const sc_goodput_job *j)
{
    double alone = exp(-j->slow_rate * j->slow_s);
    return alone + (1 - alone) / fmax(1, j->slowdown);
}

/* A checkpoint begins when the one before is complete. */
double goodput_interval(const sc_goodput_job *j)
{
    double speed = goodput_speed(j), step = j->step_s / speed;
    double every = j->every_s / speed, most = j->work_s / speed;
    double least = fmin(most, fmax(step, j->lag_s - j->save_s));
    if (every <= 0)
        every = j->failure_rate > 0
                    ? sc_interval_exact(j->save_s, 1 / j->failure_rate)
                    : most;
    every = fmax(least, fmin(every, most));
    if (step <= 0) return every;
    double steps = round(every / step);
    return fmax(1, steps * step < least ? steps + 1 : steps) * step;
}

sc_status sc_goodput_expect(const sc_goodput_job *j, sc_goodput *out)
{
    double m = j->failure_rate > 0 ? 1 / j->failure_rate : INFINITY;
    double speed = goodput_speed(j), every = goodput_interval(j);
    double x = every + j->save_s;
    double n = j->work_s / (speed * every);
    double grow = isfinite(m) ? expm1(x / m) : 0;
    double late = isfinite(m) ? exp(j->lag_s / m) : 1;
    double restart = isfinite(m) ? m * expm1(j->restart_s / m) : j->restart_s;
    double one =
        isfinite(m) ? m * exp((j->restart_s + j->lag_s) / m) * grow : x;
    double stop = isfinite(m) ? m * expm1((j->restart_s + j->lag_s) / m)
                              : j->restart_s + j->lag_s;
    double stopped = j->planned_rate * stop;
    double waits = sc_erlang_b(j->spares + 1, j->replaced_rate * j->repair_s);
    if (!(stopped < 1) || !(waits < 1) || !isfinite(n * one)) return SC_NO;
    double run = n * one / (1 - stopped), total = run / (1 - waits);
    *out = (sc_goodput){
        .total_s = total,
        .every_s = every * speed,
        .young_s = sc_interval_young(j->save_s, m),
        .daly_s = sc_interval_daly(j->save_s, m),
        .failures = run * j->failure_rate,
        .planned = run * j->planned_rate,
        .part_s = {[SC_GP_TRAINING] = j->work_s,
                   [SC_GP_SLOW] = n * every - j->work_s,
                   [SC_GP_SAVES] = n * j->save_s,
                   [SC_GP_LOST] = n * (one - x - late * grow * restart),
                   [SC_GP_RESTARTS] = n * late * grow * restart,
                   [SC_GP_PLANNED] = run * stopped,
                   [SC_GP_WAITS] = total * waits}};
    return SC_OK;
}
