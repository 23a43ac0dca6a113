/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as options: what contradicts, and orders from files. */
#include <stepcast/plan_schedule.h>
#include <stepcast/predict.h>

#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sc_job job;

static int fresh(void **state)
{
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100:1";
    job.tp = job.mbs = 1;
    job.pp = 4;
    job.gbs = 16;
    job.seq = 4096;
    job.recompute = SC_RC_NONE;
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

static void refused(sc_code code, const char *at)
{
    sc_prediction p;
    assert_int_equal(sc_predict_job(&job, &arena, &p, &err), SC_EINPUT);
    if (err.d[0].code != code || strcmp(err.d[0].file, at) != 0)
        fail_msg("%s: %s", err.d[0].file, err.d[0].msg);
    sc_err_init(&err);
}

static void contradictions(void **state)
{
    (void)state;
    job.schedule = SC_SCH_ZB_V;
    job.vpp = 3;
    refused(SC_C_CONFLICT, "--vp 3");
    job.schedule = SC_SCH_ZB_H1;
    job.vpp = 2;
    refused(SC_C_CONFLICT, "--vp 2");
    job.vpp = 0;
    job.pp = 1;
    refused(SC_C_CONFLICT, "--schedule zb-h1");
    job.pp = 3;
    job.cluster = "h100-sxm:6";
    job.gbs = 12;
    job.schedule = SC_SCH_DUALPIPE;
    refused(SC_C_DIVIDE, "--pp 3");
    job.schedule = SC_SCH_FILE;
    refused(SC_C_MISSING, "--schedule file");
    job.schedule_file = "x.yml";
    job.schedule = SC_SCH_1F1B;
    refused(SC_C_CONFLICT, "--schedule-file");
}

/* Less bubble, the same work; the same memory of what waits for both passes. */
static void faster(void **state)
{
    (void)state;
    job.schedule = SC_SCH_1F1B;
    sc_prediction plain = run();
    const int split[] = {SC_SCH_ZB_H1, SC_SCH_ZB_V};
    double last = plain.step_time_s;
    for (size_t i = 0; i < SC_COUNT(split); i++) {
        job.schedule = split[i];
        sc_prediction p = run();
        assert_true(p.step_time_s < last);
        assert_true(p.time_breakdown_s[SC_CAT_BUBBLE] <
                    plain.time_breakdown_s[SC_CAT_BUBBLE]);
        assert_true(fabs(p.other_engine_s / p.step_time_s - 1) < 0.05 ||
                    isnan(p.other_engine_s) || p.other_engine_s <= 0);
        last = p.step_time_s;
    }
    job.schedule = SC_SCH_DUALPIPE;
    sc_prediction both = run();
    assert_true(both.memory[1].optimizer > 1.9 * plain.memory[1].optimizer);
    assert_true(both.memory[1].weights > 1.9 * plain.memory[1].weights);
}

/* Text of a schedule that a program would make. */
static const char *text_of(sc_schedule s, uint32_t pp, uint32_t vpp,
                           uint32_t ga)
{
    sc_text t;
    static const char letter[] = "FBBW";
    static sc_slot o[256];
    sc_text_init(&t);
    sc_text_add(&t, "placement: %s\ndevices:\n",
                s == SC_SCH_ZB_V       ? "v"
                : s == SC_SCH_DUALPIPE ? "bidirectional"
                                       : "loop");
    for (uint32_t d = 0; d < pp; d++) {
        uint32_t n = sc_schedule_order(s, pp, vpp, ga, d, false, o);
        sc_text_add(&t, "  - ");
        for (uint32_t i = 0; i < n; i++)
            sc_text_add(&t, "%c%u.%u ", letter[o[i].pass], o[i].mb, o[i].chunk);
        sc_text_add(&t, "\n");
    }
    const char *text = sc_strdup(&arena, t.buf);
    sc_text_free(&t);
    return text;
}

/* The same orders from a file give the same step. */
static void from_file(void **state)
{
    (void)state;
    for (int s = 0; s < (int)SC_SCH_FILE; s++) {
        job.schedule = s;
        job.vpp = s == SC_SCH_INTERLEAVED ? 2 : 0;
        sc_prediction want = run();
        sc_run r = want.run;
        const char *text = text_of((sc_schedule)s, 4, r.vpp, r.ga);
        assert_int_equal(sc_schedule_read(text, strlen(text), "s.yml", &arena,
                                          &r.order, &err),
                         SC_OK);
        r.schedule = SC_SCH_FILE;
        sc_plan p, q;
        sc_block *b;
        double from = 0, made = 0;
        assert_int_equal(sc_plan_build(&r, &arena, &p, &err), SC_OK);
        assert_int_equal(sc_plan_build(&want.run, &arena, &q, &err), SC_OK);
        assert_int_equal(sc_blocks_price(&p, &arena, &b, &err), SC_OK);
        assert_int_equal(sc_predict_fast(&p, b, &arena, &from, &err), SC_OK);
        assert_int_equal(sc_predict_fast(&q, b, &arena, &made, &err), SC_OK);
        assert_true(from == made);
        sc_stage_memory m[4];
        assert_int_equal(sc_predict_memory(&p, b, &arena, m, &err), SC_OK);
        for (uint32_t d = 0; d < 4 && sc_schedule_splits((sc_schedule)s); d++)
            assert_true(m[d].peak == want.memory[d].peak);
        r.ga++;
        assert_int_equal(sc_plan_build(&r, &arena, &p, &err), SC_EINPUT);
        sc_err_init(&err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(contradictions, fresh, teardown),
        cmocka_unit_test_setup_teardown(faster, fresh, teardown),
        cmocka_unit_test_setup_teardown(from_file, fresh, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
