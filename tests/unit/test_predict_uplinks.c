/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers between stages whose leaves are oversubscribed: both engines have
 * about the same step.
 */
#include "predict/predict.h"
#include "prediction.h"

#include <math.h>

static double step_of(const sc_job *job, int engine)
{
    sc_prediction p;
    sc_job j = *job;
    j.engine = engine;
    j.brief = true;
    sc_err_init(&f.err);
    sc_status s = sc_predict_job(&j, &f.a, &p, &f.err);
    if (s != SC_OK) fail_msg("%s: %s", j.cluster, f.err.d[0].msg);
    return p.step_time_s;
}

static const struct {
    uint32_t nodes, leaf;
} machines[] = {{16, 4}, {32, 4}, {64, 16}, {128, 16}};

/* All ratios and numbers of stages, machines and chunks of stages in turn. */
static void compare(const char *model, uint32_t tp, uint32_t vpp, uint32_t ep,
                    uint32_t layers)
{
    uint32_t i = 0;
    for (uint32_t pp = 2; pp <= 16; pp *= 2)
        for (uint32_t ratio = 1; ratio <= 8; ratio *= 2, i++) {
            uint32_t m = (i + i / 4) % SC_COUNT(machines);
            sc_job j;
            sc_job_init(&j);
            j.model = model;
            j.cluster =
                sc_sprintf(&f.a, "dgx-h100:%u; leaf=%u; oversubscription=%u",
                           machines[m].nodes, machines[m].leaf, ratio);
            j.tp = tp;
            j.pp = pp;
            j.dp = machines[m].nodes * 8 / tp / pp;
            j.ep = ep < j.dp ? ep : j.dp;
            j.vpp = i % 2 && layers % (vpp * pp) == 0 ? vpp : 1;
            j.mbs = j.zero = j.sp = 1;
            j.gbs = j.dp * (pp > 4 ? 2 * pp : 16);
            j.seq = 4096;
            j.recompute = SC_RC_NONE;
            double event = step_of(&j, SC_ENGINE_EVENT);
            double fast = step_of(&j, SC_ENGINE_FAST);
            if (fabs(fast / event - 1) > 0.06)
                fail_msg("%s on %s, pp %u, vp %d: event %g s, fast %g s", model,
                         j.cluster, pp, (int)j.vpp, event, fast);
        }
}

static void dense(void **state)
{
    (void)state;
    compare("llama3-70b", 4, 5, 1, 80);
}

static void experts(void **state)
{
    (void)state;
    compare("mixtral-8x22b", 2, 7, 8, 56);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(dense), TEST(experts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
