/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas on devices of several kinds. */
#include "fixture.h"
#include "hw/build.h"
#include "predict/internal.h"

#include <math.h>
#include <string.h>

static const char *const mixed = "rails: 8\ngroups:\n"
                                 "  - {node: dgx-h100, nodes: 1}\n"
                                 "  - {node: dgx-a100-80g, nodes: 3}\n";

static sc_strategy strategy;
static sc_strategy_pool pool[2];

static sc_run run_on(const char *text)
{
    static sc_prediction p;
    sc_inputs in;
    sc_job job;
    const sc_hw *hw = NULL;
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100";
    job.tp = 8;
    job.pp = job.mbs = 1;
    job.gbs = 64;
    job.zero = 1;
    job.recompute = SC_RC_NONE;
    job.brief = true;
    (void)sc_predict_load(&job, &arena, &in, &err);
    no_error();
    (void)hw_build_text(text, strlen(text), "c.yml", &arena, &hw, &err);
    no_error();
    (void)sc_predict(&job, hw, in.model, in.sw, in.cost, &arena, &p, &err);
    no_error();
    p.run.strategy = &strategy;
    return p.run;
}

static int fresh(void **state)
{
    sc_strategy_init(&strategy);
    pool[0] = (sc_strategy_pool){.name = "new",
                                 .device = "h100-sxm",
                                 .replicas = 1,
                                 .pos = {"s.yml", 9, 3}};
    pool[1] = pool[0];
    pool[1].name = "old";
    pool[1].device = "a100-sxm-80g";
    pool[1].replicas = 3;
    strategy.pool = pool;
    strategy.n_pools = 2;
    return setup(state);
}

static double step_of(const sc_run *r)
{
    sc_plan p;
    sc_block *b;
    double s = 0;
    assert_int_equal(sc_plan_build(r, &arena, &p, &err), SC_OK);
    assert_int_equal(sc_blocks_price(&p, &arena, &b, &err), SC_OK);
    assert_int_equal(sc_predict_fast(&p, b, &arena, &s, &err), SC_OK);
    return s;
}

/* As given: the slowest one's step.  64 micro-batches on four replicas. */
static void as_given(void **state)
{
    (void)state;
    predict_notes notes = {.arena = &arena};
    sc_run r = run_on(mixed), same = r;
    pool[0].micro_batches = 28;
    pool[1].micro_batches = 12;
    assert_int_equal(predict_replicas(&r, &arena, &notes, &err), SC_OK);
    assert_true(r.ga == 28 || r.ga == 12);
    assert_int_equal(notes.n, 1);
    assert_non_null(strstr(notes.text[0], "3 of a100-sxm-80g 12 each"));
    assert_true(step_of(&r) < step_of(&same));
    r = same;
    pool[1].micro_batches = 13;
    assert_int_equal(predict_replicas(&r, &arena, &notes, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CONFLICT);
    assert_int_equal(err.d[0].line, 9);
}

/* By speed: no other split ends earlier. */
static void by_speed(void **state)
{
    (void)state;
    predict_notes notes = {.arena = &arena};
    sc_run same = run_on(mixed), r = same;
    assert_int_equal(predict_replicas(&r, &arena, &notes, &err), SC_OK);
    double chosen = step_of(&r);
    for (uint32_t m = 8; m <= 20; m++) {
        sc_run other = same;
        pool[1].micro_batches = m;
        pool[0].micro_batches = 64 - 3 * m;
        assert_int_equal(predict_replicas(&other, &arena, &notes, &err), SC_OK);
        assert_true(step_of(&other) >= chosen * (1 - 1e-3));
    }
}

static void refused(sc_run r, sc_code code)
{
    predict_notes notes = {.arena = &arena};
    assert_int_equal(predict_replicas(&r, &arena, &notes, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, code);
    sc_err_init(&err);
}

static void contradictions(void **state)
{
    (void)state;
    sc_run r = run_on(mixed), other = r;
    other.zero = 2;
    refused(other, SC_C_CONFLICT);
    pool[1].replicas = 2;
    refused(r, SC_C_CONFLICT);
    pool[0].replicas = 2; /* the second is another device */
    refused(r, SC_C_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_given, fresh, teardown),
        cmocka_unit_test_setup_teardown(by_speed, fresh, teardown),
        cmocka_unit_test_setup_teardown(contradictions, fresh, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
