/* SPDX-License-Identifier: Apache-2.0 */
/* The average power of a machine, by its parts. */
#include "fixture.h"
#include "predict/predict.h"

#include <math.h>

static sc_job job;

static int fresh(void **state)
{
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100:16";
    job.tp = job.pp = job.mbs = 1;
    job.gbs = 256;
    job.seq = 8192;
    job.recompute = SC_RC_FULL;
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    return setup(state);
}

static sc_prediction run(void)
{
    sc_prediction p = {0};
    (void)sc_predict_job(&job, &arena, &p, &err);
    no_error();
    return p;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%.17g is not %.17g", got, want);
}

/* The parts add up to the energy of a step. Adapters are in the power that the
 * hosts' datasheet states. */
static void adds_up(void **state)
{
    (void)state;
    sc_prediction p = run();
    const sc_power *w = &p.power;
    const double *c = p.run.cost->p;
    near(w->devices + w->hosts + w->adapters + w->switches + w->links,
         w->total);
    near(w->total * p.step_time_s, p.energy_j_per_step);
    near(w->hosts + w->adapters, 16 * 4600 * c[SC_P_HOST_WATTS]);
    assert_true(w->switches > 0 && w->links > 0);
    assert_true(w->devices > 128 * 700 * c[SC_P_IDLE_POWER]);
    assert_true(w->devices <= 128 * 700);
    assert_true(w->total >= sc_predict_least_watts(&p.run));
}

/* A room takes more; one node has no network between nodes. */
static void rooms(void **state)
{
    (void)state;
    double plain = run().power.total;
    job.cluster = "dgx-h100:16;pue=1.25";
    near(run().power.total, 1.25 * plain);
    job.cluster = "dgx-h100:1";
    sc_prediction p = run();
    assert_true(p.power.switches == 0 && p.power.adapters == 0);
    assert_true(p.power.hosts > 0);
    job.cluster = "tpu-v6e-pod:16";
    job.recompute = SC_INFER;
    assert_true(isnan(run().power.total));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(adds_up, fresh, teardown),
        cmocka_unit_test_setup_teardown(rooms, fresh, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
