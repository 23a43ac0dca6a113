/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks each stage has: by rule, as a strategy lists them, balanced. */
#include "fixture.h"
#include "plan/plan_strategy.h"
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sc_strategy cuts;
static sc_strategy_cut at[8];

/* A pipeline of `pp` with `cuts`. */
static sc_status build(uint32_t pp, sc_plan *p)
{
    static sc_prediction done;
    sc_job job;
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100:1";
    job.tp = 1;
    job.pp = (int64_t)pp;
    job.vpp = 1;
    job.mbs = 1;
    job.gbs = 64;
    job.brief = true;
    (void)sc_predict_job(&job, &arena, &done, &err);
    no_error();
    sc_run r = done.run;
    r.strategy = &cuts;
    return sc_plan_build(&r, &arena, p, &err);
}

static void stages_are(uint32_t pp, const uint32_t *want)
{
    sc_plan p;
    (void)build(pp, &p);
    no_error();
    for (uint32_t v = 0; v < pp; v++)
        assert_int_equal(p.stage[v].blocks, want[v]);
}

static void refused(uint32_t pp, sc_code code, const char *says)
{
    sc_plan p;
    assert_int_equal(build(pp, &p), SC_EINPUT);
    if (err.d[0].code != code || !strstr(err.d[0].msg, says) ||
        err.d[0].line != 7)
        fail_msg("%u: %s", err.d[0].line, err.d[0].msg);
    sc_err_init(&err);
}

static int fresh(void **state)
{
    sc_strategy_init(&cuts);
    memset(at, 0, sizeof at);
    for (size_t i = 0; i < SC_COUNT(at); i++)
        at[i].pos = (sc_pos){"strategy.yml", 7, 3};
    cuts.cut = at;
    return setup(state);
}

static void listed(void **state)
{
    (void)state;
    cuts.cuts = SC_CUT_LIST;
    cuts.n_cuts = 4;
    at[0].blocks = 5;
    at[1].blocks = at[2].blocks = 10;
    at[3].blocks = 7;
    stages_are(4, (const uint32_t[]){5, 10, 10, 7});
    at[3].blocks = 8;
    refused(4, SC_C_CONFLICT, "33 blocks, but the model has 32");
    refused(2, SC_C_CONFLICT, "the cuts are for 4 stages, but there are 2");
}

static void by_path(void **state)
{
    (void)state;
    cuts.cuts = SC_CUT_LIST;
    cuts.n_cuts = 3;
    at[0].path = "layers.6";
    at[1].path = "layers.20";
    at[2].path = "layers.30";
    stages_are(4, (const uint32_t[]){6, 14, 10, 2});
    at[1].path = "layers.6";
    refused(4, SC_C_CONFLICT, "would be empty");
    at[1].path = "layers.32";
    refused(4, SC_C_UNKNOWN_NAME, "layers.32");
    at[1].path = "layers.20";
    refused(8, SC_C_CONFLICT, "make 4 stages instead of 8");
}

static double stage_seconds(const sc_plan *p, const sc_segment *b, uint32_t v)
{
    double s = 0;
    for (uint32_t l = 0; l < p->run.model->n_layers; l++)
        s += p->stage[v].n[l] * (b[l].fwd_s + b[l].bwd_s);
    return s;
}

/* No move of one block makes the slowest stage faster, and the rule is no
 * better: head and embedding count by what they take. */
static void balanced(void **state)
{
    (void)state;
    cuts.cuts = SC_CUT_BALANCED;
    for (uint32_t pp = 2; pp <= 8; pp *= 2) {
        sc_plan p, even;
        sc_segment *b;
        assert_int_equal(build(pp, &p), SC_OK);
        assert_int_equal(sc_segments_price(&p, &arena, &b, &err), SC_OK);
        sc_run r = p.run;
        r.strategy = NULL;
        assert_int_equal(sc_plan_build(&r, &arena, &even, &err), SC_OK);
        double most = 0, other = 0;
        uint32_t sum = 0;
        for (uint32_t v = 0; v < pp; v++) {
            most = fmax(most, stage_seconds(&p, b, v));
            other = fmax(other, stage_seconds(&even, b, v));
            sum += p.stage[v].blocks;
        }
        assert_int_equal(sum, 32);
        assert_true(most <= other);
        assert_true(p.stage[pp - 1].blocks < p.stage[0].blocks);
        /* the mean is a bound */
        double all = b[0].fwd_s + b[0].bwd_s + b[2].fwd_s + b[2].bwd_s +
                     32 * (b[1].fwd_s + b[1].bwd_s);
        assert_true(most >= all / pp * (1 - 1e-12));
        assert_true(most <= all / pp + b[1].fwd_s + b[1].bwd_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(listed, fresh, teardown),
        cmocka_unit_test_setup_teardown(by_path, fresh, teardown),
        cmocka_unit_test_setup_teardown(balanced, fresh, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
