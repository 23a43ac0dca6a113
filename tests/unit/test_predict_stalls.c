/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that a profile adds to exchanges and transfers: both engines agree,
 * and only the jobs that they describe are longer. */
#include "fixture.h"
#include "predict/predict.h"

#include <math.h>
#include <string.h>

typedef struct waits {
    double launch, apart, transfer, step, slice;
    int64_t nodes, tp;
    int zero;
} waits;

static const waits none = {0};

static sc_prediction step(const char *cluster, int64_t tp, int64_t pp,
                          const waits *w, sc_engine engine)
{
    sc_prediction p = {0};
    sc_inputs in;
    sc_job job;
    sc_job_init(&job);
    job.model = "gpt2-medium";
    job.cluster = cluster;
    job.software = w->zero ? "megatron-core" : "megatron-lm-2021";
    job.engine = (int)engine;
    job.tp = tp;
    job.pp = pp;
    job.vpp = 1;
    job.schedule = SC_SCH_1F1B;
    job.mbs = 1;
    job.gbs = 64;
    job.seq = 1024;
    job.zero = w->zero;
    job.recompute = SC_RC_NONE;
    job.brief = true;
    (void)sc_predict_load(&job, &arena, &in, &err);
    no_error();
    sc_software sw = *in.sw;
    sw.launch_s = w->launch;
    sw.stages_apart_s = w->apart;
    sw.transfer_wait_s = w->transfer;
    sw.transfer_wait_nodes = w->nodes;
    sw.transfer_wait_tp = w->tp;
    sw.step_fixed_s = w->step;
    sw.weight_slice_s = w->slice;
    (void)sc_predict(&job, in.hw, in.model, &sw, in.cost, &arena, &p, &err);
    no_error();
    return p;
}

static double time_of(const char *cluster, int64_t tp, int64_t pp,
                      const waits *w)
{
    double fast = step(cluster, tp, pp, w, SC_ENGINE_FAST).step_time_s;
    double event = step(cluster, tp, pp, w, SC_ENGINE_EVENT).step_time_s;
    if (fabs(fast / event - 1) > 0.01) print_message("%g, %g\n", fast, event);
    assert_true(fabs(fast / event - 1) <= 0.01);
    return event;
}

static bool noted(const sc_prediction *p, const char *text)
{
    for (uint32_t i = 0; i < p->n_assumptions; i++)
        if (strstr(p->assumptions[i], text)) return true;
    return false;
}

/* Two stages of 12 layers with four exchanges per pass of a layer and eight
 * members: at 1 ms a member the host alone decides, in each of 64 / 1 slots. */
static void stages_apart(void **state)
{
    (void)state;
    const waits w = {.apart = 1e-3};
    double plain = time_of("dgx-h100:2", 8, 2, &none);
    double slow = time_of("dgx-h100:2", 8, 2, &w);
    double slots = 64 + 1, per_slot = 12 * 4 * 8 * 1e-3;
    assert_true(slow > slots * per_slot &&
                slow < 1.2 * slots * per_slot + plain);
    /* in one node, and without a group, nothing waits */
    assert_true(time_of("dgx-h100:1", 4, 2, &w) ==
                time_of("dgx-h100:1", 4, 2, &none));
    assert_true(time_of("dgx-h100:2", 1, 2, &w) ==
                time_of("dgx-h100:2", 1, 2, &none));
    sc_prediction p = step("dgx-h100:2", 8, 2, &w, SC_ENGINE_FAST);
    assert_true(noted(&p, "stages are on different nodes"));
}

/* A stage sends once and receives once in each slot. */
static void transfers_wait(void **state)
{
    (void)state;
    const waits w = {.transfer = 0.1, .nodes = 2},
                later = {.transfer = 0.1, .nodes = 3};
    double plain = time_of("dgx-h100:2", 8, 2, &none);
    double slow = time_of("dgx-h100:2", 8, 2, &w);
    assert_true(slow - plain > 64 * 0.1 && slow - plain < 2 * 66 * 0.1);
    assert_true(time_of("dgx-h100:2", 8, 2, &later) == plain);
    const waits wide = {.transfer = 0.1, .nodes = 3, .tp = 8},
                wider = {.transfer = 0.1, .nodes = 3, .tp = 16};
    assert_true(time_of("dgx-h100:2", 8, 2, &wide) == slow);
    assert_true(time_of("dgx-h100:2", 8, 2, &wider) == plain);
    sc_prediction p = step("dgx-h100:2", 8, 2, &w, SC_ENGINE_FAST);
    assert_true(noted(&p, "a transfer between stages"));
}

/* While the host waits, kernels and exchanges run: twice as long waits, which
 * are longer than both, make the step twice as long. */
static void waits_hide(void **state)
{
    (void)state;
    const waits w = {.apart = 1e-3}, twice = {.apart = 2e-3};
    double one = time_of("dgx-h100:2", 8, 2, &w);
    double two = time_of("dgx-h100:2", 8, 2, &twice);
    assert_true(two / one > 1.9 && two / one < 2.01);
}

/* The fixed time of a step, and slices of each weight for each replica. */
static void step_fixed(void **state)
{
    (void)state;
    const waits short_one = {.step = 0.01}, long_one = {.step = 1.01};
    double more = time_of("dgx-h100:1", 8, 1, &long_one) -
                  time_of("dgx-h100:1", 8, 1, &short_one);
    assert_true(fabs(more - 1) < 0.02);
    const waits zero = {.zero = 1}, slices = {.slice = 1e-3, .zero = 1};
    double two = time_of("dgx-h100:1", 4, 1, &slices) -
                 time_of("dgx-h100:1", 4, 1, &zero);
    double eight = time_of("dgx-h100:1", 1, 1, &slices) -
                   time_of("dgx-h100:1", 1, 1, &zero);
    assert_true(two > 2 * 24 * 6 * 1e-3 && fabs(eight / two - 4) < 0.1);
    const waits replicated = {.slice = 1e-3};
    assert_true(time_of("dgx-h100:1", 4, 1, &replicated) ==
                time_of("dgx-h100:1", 4, 1, &none));
}

/* A program whose launches are slow is limited by its host. */
static void launches(void **state)
{
    (void)state;
    const waits slow = {.launch = 1e-3}, slower = {.launch = 2e-3};
    double one = time_of("dgx-h100:1", 1, 1, &slow);
    double two = time_of("dgx-h100:1", 1, 1, &slower);
    assert_true(two / one > 1.9 && two / one < 2.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stages_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(transfers_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_hide, setup, teardown),
        cmocka_unit_test_setup_teardown(step_fixed, setup, teardown),
        cmocka_unit_test_setup_teardown(launches, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
