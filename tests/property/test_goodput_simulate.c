/* SPDX-License-Identifier: Apache-2.0 */
/* The expected time of random jobs that fail is the mean of simulated runs. */
#include "goodput/goodput.h"
#include "property.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RUNS = 100000 };

static double total[MOST_RUNS];
static uint32_t n_runs = 1000;

static double between(prop *p, double lo, double hi)
{
    return lo * exp(prop_unit(p) * log(hi / lo));
}

/* Times in units of the mean time between failures, which is an hour. */
static sc_goodput_job draw(prop *p)
{
    const double m = 3600;
    sc_goodput_job j = {.failure_rate = 1 / m, .slowdown = 1};
    j.save_s = m * between(p, 1e-4, 0.1);
    j.every_s = prop_below(p, 2) ? m * between(p, 1e-2, 1) : 0;
    j.restart_s = m * between(p, 1e-3, 0.5);
    if (prop_below(p, 2)) j.lag_s = j.save_s * prop_unit(p);
    if (prop_below(p, 2)) j.planned_rate = between(p, 1e-3, 0.1) / m;
    if (prop_below(p, 2)) {
        j.replaced_rate = prop_unit(p) / m;
        j.repair_s = m * between(p, 0.05, 3);
        j.spares = (uint32_t)prop_below(p, 4);
    }
    if (prop_below(p, 2)) {
        j.slow_rate = between(p, 1e-2, 1) / m;
        j.slow_s = m * between(p, 0.05, 1);
        j.slowdown = 1 + prop_unit(p);
    }
    j.work_s = m * between(p, 50, 200);
    return j;
}

static double mean(double *spread)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n_runs; i++) sum += total[i];
    for (uint32_t i = 0; i < n_runs; i++)
        squares += (total[i] - sum / n_runs) * (total[i] - sum / n_runs);
    *spread = sqrt(squares / n_runs / (n_runs - 1));
    return sum / n_runs;
}

/* Runs begin with a complete checkpoint, without broken nodes, and their last
 * segment is shorter: that changes them by less than these times. */
static double ends(const sc_goodput_job *j, const sc_goodput *g)
{
    double segments = j->work_s / g->every_s;
    double lost = g->total_s - j->work_s - g->part_s[SC_GP_SLOW];
    double waits = g->part_s[SC_GP_WAITS] / g->total_s;
    return 1.5 * lost / segments + 3 * waits * j->repair_s +
           g->part_s[SC_GP_SLOW] / segments;
}

static bool agrees(prop *p, void *ctx)
{
    (void)ctx;
    sc_goodput g;
    sc_goodput_job j = draw(p);
    double spread, sum = 0;
    if (sc_goodput_expect(&j, &g) != SC_OK) return false;
    for (int i = 0; i < (int)SC_N_GOODPUT_PARTS; i++) {
        if (g.part_s[i] < -1e-9 * g.total_s) return false;
        sum += g.part_s[i];
    }
    bool adds = fabs(sum - g.total_s) < 1e-9 * g.total_s;
    if (sc_goodput_simulate(&j, 7, n_runs, total) != SC_OK) return false;
    double got = mean(&spread), most = 4.5 * spread + ends(&j, &g);
    if (prop_reporting(p))
        printf("expected %.17g, simulated %.17g +- %.3g, ends %.3g\n",
               g.total_s, got, spread, ends(&j, &g));
    return adds && fabs(got - g.total_s) <= most;
}

static void agree(void **state)
{
    (void)state;
    assert_true(prop_check("expected and simulated time",
                           n_runs == MOST_RUNS ? 20 : 60, agrees, NULL));
}

/* Whole segments, no lag: nothing differs but by chance. */
static void exact(void **state)
{
    (void)state;
    sc_goodput g;
    sc_goodput_job j = {.work_s = 100 * 900,
                        .failure_rate = 1.0 / 3600,
                        .save_s = 60,
                        .every_s = 900,
                        .restart_s = 600,
                        .slowdown = 1};
    double spread;
    assert_int_equal(sc_goodput_expect(&j, &g), SC_OK);
    assert_int_equal(sc_goodput_simulate(&j, 1, n_runs, total), SC_OK);
    assert_true(fabs(mean(&spread) - g.total_s) < 4 * spread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agree),
        cmocka_unit_test(exact),
    };
    if (getenv("STEPCAST_LONG")) n_runs = MOST_RUNS;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
