/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas on devices of several kinds. */
#include "fixture.h"
#include "hw/build.h"
#include "predict/internal.h"

#include <string.h>

static const char *const mixed = "rails: 8\ngroups:\n"
                                 "  - {node: dgx-h100, nodes: 1}\n"
                                 "  - {node: dgx-a100-80g, nodes: 3}\n";

static sc_strategy strategy;
static sc_strategy_pool pool[2];

static sc_prediction p;

static sc_status predict(const sc_strategy *tree)
{
    sc_inputs in;
    sc_job job;
    const sc_hw *hw = NULL;
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100";
    job.tp = 8;
    job.pp = job.mbs = 1;
    job.dp = 4;
    job.gbs = 64;
    job.zero = tree->zero;
    job.recompute = SC_RC_NONE;
    job.brief = true;
    job.engine = SC_ENGINE_FAST;
    job.tree = tree;
    (void)sc_predict_load(&job, &arena, &in, &err);
    no_error();
    (void)hw_build_text(mixed, strlen(mixed), "c.yml", NULL, &arena, &hw, &err);
    no_error();
    return sc_predict(&job, hw, in.model, in.sw, in.cost, &arena, &p, &err);
}

static double step(void)
{
    if (predict(&strategy) != SC_OK) fail_msg("%s", err.d[0].msg);
    return p.step_time_s;
}

static int fresh(void **state)
{
    sc_strategy_init(&strategy);
    pool[0] = (sc_strategy_pool){.name = "new",
                                 .device = "h100-sxm",
                                 .replicas = 1,
                                 .pos = {"s.yml", 9, 3}};
    pool[0].micro_batches = 0;
    pool[1] = pool[0];
    pool[1].name = "old";
    pool[1].device = "a100-sxm-80g";
    pool[1].replicas = 3;
    strategy.pool = pool;
    strategy.n_pools = 2;
    strategy.zero = 1;
    strategy.n_axes = 2;
    strategy.axis[0] = (sc_mesh_axis){"dp", 4, {0}, SC_AX_DP};
    strategy.axis[1] = (sc_mesh_axis){"tp", 8, {0}, SC_AX_TP};
    return setup(state);
}

static bool assumed(const char *text)
{
    for (uint32_t i = 0; i < p.n_assumptions; i++)
        if (strstr(p.assumptions[i], text)) return true;
    return false;
}

/* As given: the slowest one's step.  64 micro-batches on four replicas. */
static void as_given(void **state)
{
    (void)state;
    sc_strategy alike = strategy;
    alike.n_pools = 0;
    assert_int_equal(predict(&alike), SC_OK);
    double same = p.step_time_s;
    pool[0].micro_batches = 28;
    pool[1].micro_batches = 12;
    assert_true(step() < same);
    assert_true(assumed("3 of a100-sxm-80g 12 each"));
    pool[1].micro_batches = 13;
    assert_int_equal(predict(&strategy), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CONFLICT);
    assert_int_equal(err.d[0].line, 9);
}

/* By speed: no other split ends earlier. */
static void by_speed(void **state)
{
    (void)state;
    double chosen = step();
    for (uint32_t m = 8; m <= 20; m++) {
        pool[1].micro_batches = m;
        pool[0].micro_batches = 64 - 3 * m;
        assert_true(step() >= chosen * (1 - 1e-3));
    }
}

static void refused(sc_code code)
{
    assert_int_equal(predict(&strategy), SC_EINPUT);
    assert_int_equal(err.d[0].code, code);
    sc_err_init(&err);
}

static void contradictions(void **state)
{
    (void)state;
    strategy.zero = 2;
    refused(SC_C_CONFLICT);
    strategy.zero = 1;
    pool[1].replicas = 2;
    refused(SC_C_CONFLICT);
    pool[0].replicas = 2; /* the second is another device */
    refused(SC_C_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_given, fresh, teardown),
        cmocka_unit_test_setup_teardown(by_speed, fresh, teardown),
        cmocka_unit_test_setup_teardown(contradictions, fresh, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
