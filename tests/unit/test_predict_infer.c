/* SPDX-License-Identifier: Apache-2.0 */
/* What is left out is chosen, what is given is kept, what can't be is
 * refused; suggestions help; the same question has the same answer. */
#include "kinds.h"
#include "prediction.h"
#include "report/report_predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void ask(const char *model, const char *cluster)
{
    sc_job_init(&f.job);
    f.job.model = model;
    f.job.cluster = cluster;
}

static sc_status predict(void)
{
    sc_err_init(&f.err);
    return sc_predict_job(&f.job, &f.a, &f.p, &f.err);
}

static void succeed(void)
{
    sc_status s = predict();
    if (s != SC_OK) print_message("%s\n", f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
}

static bool assumed(const char *word)
{
    for (uint32_t i = 0; i < f.p.n_assumptions; i++)
        if (strstr(f.p.assumptions[i], word)) return true;
    return false;
}

static bool warned(const char *word)
{
    for (uint32_t i = 0; i < f.p.n_warnings; i++)
        if (strstr(f.p.warnings[i], word)) return true;
    return false;
}

/* Whatever is chosen is legal. */
static void consistent(void)
{
    const sc_run *r = &f.p.run;
    uint64_t ranks = 1;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) ranks *= r->size[ax];
    assert_int_equal(ranks, r->hw->n_devices);
    assert_int_equal(r->gbs, r->mbs * r->ga * r->size[SC_AX_DP]);
    assert_int_equal((uint64_t)r->model->t.heads % r->size[SC_AX_TP], 0);
    assert_true(r->vpp == 1 || r->schedule == SC_SCH_INTERLEAVED);
    assert_int_equal(f.p.n_stages, r->size[SC_AX_PP]);
}

/* 512 samples of 8192 tokens are 4 M tokens; 16,384 devices get a sample for
 * eight of them, 2048, and 2048 devices those 512, twice as many as that. */
static void batch_of_many_devices(void **state)
{
    (void)state;

    static const struct {
        const char *cluster;
        uint64_t batch;
    } want[] = {{"dgx-h100:2048", 2048}, {"dgx-h100:256", 512}};

    for (size_t i = 0; i < SC_COUNT(want); i++) {
        ask("llama3-70b", want[i].cluster);
        f.job.tp = 8;
        f.job.pp = 8;
        f.job.mbs = 1;
        f.job.recompute = SC_RC_FULL;
        f.job.brief = true;
        succeed();
        assert_int_equal(f.p.run.seq, 8192);
        assert_int_equal(f.p.run.gbs, want[i].batch);
    }
}

static void everything_open(void **state)
{
    (void)state;
    static const char *const model[] = {"gpt2", "llama3-8b", "llama3-70b"};
    for (size_t i = 0; i < SC_COUNT(model); i++) {
        ask(model[i], "dgx-h100:4");
        succeed();
        consistent();
        assert_true(f.p.fits);
        assert_true(f.p.n_candidates > 1);
        static const char *const words[] = {"precision",    "sequence ",
                                            "global batch", "tp ",
                                            "micro-batch",  "recompute"};
        for (size_t w = 0; w < SC_COUNT(words); w++)
            assert_true(assumed(words[w]));
    }
}

/* The choice is at least as fast as any neighbour one could have given. */
static void the_choice_is_best(void **state)
{
    (void)state;
    ask("llama3-8b", "dgx-h100:2");
    f.job.gbs = 64;
    f.job.engine = SC_ENGINE_FAST;
    succeed();
    double best = f.p.step_time_s;
    for (int64_t tp = 1; tp <= 8; tp *= 2)
        for (int64_t pp = 1; pp <= 4; pp *= 2)
            for (int64_t mbs = 1; mbs <= 4; mbs *= 2) {
                f.job.tp = tp;
                f.job.pp = pp;
                f.job.mbs = mbs;
                if (tp * pp > 16 || 64 % (mbs * (16 / (tp * pp)))) continue;
                succeed();
                if (f.p.fits) assert_true(f.p.step_time_s >= best * 0.999999);
            }
}

static void given_is_kept(void **state)
{
    (void)state;
    ask("llama3-70b", "dgx-h100:16");
    f.job.tp = 4;
    succeed();
    consistent();
    assert_int_equal(f.p.run.size[SC_AX_TP], 4);
    f.job.pp = 8;
    succeed();
    assert_int_equal(f.p.run.size[SC_AX_TP], 4);
    assert_int_equal(f.p.run.size[SC_AX_PP], 8);
    assert_int_equal(f.p.run.size[SC_AX_DP], 4);
    f.job.gbs = 64;
    f.job.seq = 1000;
    f.job.mbs = 4;
    f.job.zero = 2;
    f.job.sp = 0;
    f.job.recompute = SC_RC_FULL;
    f.job.precision = SC_FP8;
    f.job.schedule = SC_SCH_GPIPE;
    f.job.grad_bytes = 2;
    f.job.grad_overlap = 0;
    succeed();
    consistent();
    const sc_run *r = &f.p.run;
    assert_int_equal(r->gbs, 64);
    assert_int_equal(r->seq, 1000);
    assert_int_equal(r->mbs, 4);
    assert_int_equal(r->ga, 4);
    assert_int_equal(r->zero, 2);
    assert_false(r->sp);
    assert_int_equal(r->recompute, SC_RC_FULL);
    assert_int_equal(r->precision, SC_FP8);
    assert_int_equal(r->schedule, SC_SCH_GPIPE);
    assert_false(r->sw->grad_overlap);
    assert_true(r->sw->grad_bytes == 2 && r->sw->reduce_bytes == 2);
    assert_false(assumed("precision") || assumed("sequence "));
    assert_false(assumed("micro-batch") || assumed("recompute"));
}

/* What a job says of the program replaces the profile's values, 0 too; the rest
 * stays. A resolved job has the values that act on its run. */
static void program_options(void **state)
{
    (void)state;
    sc_software sw = {.prefetch = 3, .cp_comm = SC_CP_ULYSSES};
    sc_program_options said = sc_program_options_none;
    assert_false(sc_program_options_any(&said));
    sc_program_options_apply(&said, &sw);
    assert_true(sw.prefetch == 3 && sw.cp_comm == SC_CP_ULYSSES);
    said.prefetch = 0;
    said.grad_overlap = 1;
    assert_true(sc_program_options_any(&said));
    sc_program_options_apply(&said, &sw);
    assert_true(sw.prefetch == 0 && sw.cp_comm == SC_CP_ULYSSES);
    assert_true(sw.grad_overlap == 1 && sw.tp_overlap == 0);

    sc_model m = {.name = "m", .net = NULL};
    sc_hw hw = {.name = "h"};
    sc_run r = {.model = &m, .hw = &hw, .sw = &sw, .zero = 1, .mbs = 1};
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) r.size[ax] = 1;
    sc_job job, whole;
    sc_job_init(&job);
    sc_job_resolve(&job, &r, &whole);
    assert_int_equal(whole.grad_overlap, 1);
    assert_int_equal(whole.prefetch, SC_INFER); /* nothing is gathered */
    assert_int_equal(whole.cp_comm, SC_INFER);
    r.zero = 3;
    r.size[SC_AX_CP] = 2;
    sc_job_resolve(&job, &r, &whole);
    assert_int_equal(whole.prefetch, 0);
    assert_int_equal(whole.cp_comm, SC_CP_ULYSSES);
}

/* A given micro-batch leaves the meshes it suits; the others are no error. */
static void given_with_an_open_mesh(void **state)
{
    (void)state;
    ask("llama3-70b", "dgx-h100:16");
    f.job.gbs = 128;
    f.job.mbs = 2;
    succeed();
    consistent();
    assert_int_equal(f.p.run.mbs, 2);
    ask("llama3-70b", "dgx-h100:16");
    f.job.gbs = 96;
    f.job.vpp = 2;
    succeed();
    consistent();
    assert_int_equal(f.p.run.vpp, 2);
    assert_true(f.p.run.size[SC_AX_PP] > 1);
    ask("llama3-8b", "dgx-h100:2");
    f.job.gbs = 24;
    f.job.schedule = SC_SCH_INTERLEAVED;
    succeed();
    consistent();
}

/* The least recomputation that fits; where nothing does, an answer still. */
static void recompute_as_needed(void **state)
{
    (void)state;
    ask("llama2-7b", "dgx-a100-80g:1");
    f.job.tp = 8;
    f.job.pp = 1;
    f.job.mbs = 1;
    f.job.gbs = 8;
    succeed();
    assert_int_equal(f.p.run.recompute, SC_RC_NONE);
    /* what is cheap to make again first, everything only where that is not
     * enough */
    sc_recompute last = SC_RC_NONE;
    uint32_t seen = 0;
    for (int64_t mbs = 8; mbs <= 256; mbs *= 2) {
        f.job.mbs = f.job.gbs = mbs;
        succeed();
        if (!f.p.fits) break;
        assert_true(f.p.run.recompute >= last);
        last = f.p.run.recompute;
        seen |= 1u << last;
    }
    assert_int_equal(seen, 1u << SC_RC_NONE | 1u << SC_RC_SELECTIVE |
                               1u << SC_RC_FULL);
    ask("llama3-405b", "dgx-h100:1");
    succeed();
    assert_false(f.p.fits);
    assert_true(f.p.memory[0].peak > f.p.memory_capacity_bytes);
}

static void refusals(void **state)
{
    (void)state;

    static const struct {
        int64_t tp, pp, dp, gbs, mbs;
        sc_code code;
    } bad[] = {
        {7, 1, 0, 64, 1, SC_C_DIVIDE},    {3, 1, 0, 64, 1, SC_C_DIVIDE},
        {8, 1, 2, 63, 1, SC_C_DIVIDE},    {8, 2, 4, 64, 1, SC_C_CONFLICT},
        {1, 1, 16, 64, 3, SC_C_DIVIDE},   {1, 1, 16, 8, 1, SC_C_DIVIDE},
        {1, 16, 16, 64, 1, SC_C_CONFLICT}};

    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        ask("llama3-8b", "dgx-h100:2");
        f.job.tp = bad[i].tp;
        f.job.pp = bad[i].pp;
        f.job.dp = bad[i].dp;
        f.job.gbs = bad[i].gbs;
        f.job.mbs = bad[i].mbs;
        assert_int_equal(predict(), SC_EINPUT);
        bool found = false;
        for (uint32_t k = 0; k < f.err.n; k++)
            found |= f.err.d[k].code == bad[i].code;
        if (!found) print_message("case %zu: %s\n", i, f.err.d[0].msg);
        assert_true(found);
    }
    ask("llama3-8b", "dgx-h100:2");
    f.job.ep = 2;
    assert_int_equal(predict(), SC_EINPUT);
    ask("llama3-8b", "dgx-h100:2");
    f.job.fsdp = true;
    f.job.zero = 1;
    assert_int_equal(predict(), SC_EINPUT);
    ask(NULL, NULL);
    assert_int_equal(predict(), SC_EUSAGE);
    assert_int_equal(f.err.n, 2); /* both are named at once */
    ask("lama3-8b", "nothing:2");
    f.job.software = "no-such-file.yml";
    assert_true(predict() != SC_OK);
    assert_int_equal(f.err.n, 3);
}

/* What is suggested to those who do not fit needs less; to those who do, it
 * is faster; and asking for it gives about what was promised. */
static void suggestions(void **state)
{
    (void)state;
    ask("llama3-70b", "dgx-h100:4");
    f.job.tp = 4;
    f.job.pp = 1;
    f.job.gbs = 64;
    f.job.mbs = 4;
    f.job.zero = 0;
    f.job.recompute = SC_RC_NONE;
    f.job.engine = SC_ENGINE_FAST;
    succeed();
    assert_false(f.p.fits);
    assert_true(f.p.n_suggestions > 0);
    for (uint32_t i = 0; i < f.p.n_suggestions; i++)
        assert_true(f.p.suggestion[i].peak < f.p.memory[0].peak);
    ask("llama3-8b", "dgx-h100:4");
    f.job.tp = 8;
    f.job.pp = 4;
    f.job.gbs = 32;
    f.job.mbs = 1;
    f.job.vpp = 1;
    f.job.recompute = SC_RC_FULL;
    f.job.engine = SC_ENGINE_FAST;
    succeed();
    assert_true(f.p.fits && f.p.n_suggestions == 3);
    double now = f.p.step_time_s, last = 0, promised = -1;
    for (uint32_t i = 0; i < 3; i++) {
        const sc_suggestion *s = &f.p.suggestion[i];
        assert_true(s->step_time_s < now && s->step_time_s >= last);
        last = s->step_time_s;
        if (strcmp(s->change, "--recompute none") == 0) promised = last;
    }
    assert_true(promised > 0);
    f.job.recompute = SC_RC_NONE;
    succeed();
    assert_true(fabs(f.p.step_time_s / promised - 1) < 1e-9);
}

static void warnings(void **state)
{
    (void)state;
    ask("llama3-8b", "dgx-h100:2");
    f.job.tp = 16;
    succeed();
    assert_true(warned("crosses nodes") && warned("network"));
    ask("gpt2-xl", "dgx2-v100:1");
    succeed();
    assert_true(warned("volta") && !warned("network"));
    assert_int_equal(f.p.run.precision, SC_FP16); /* it has no bf16 */
    double wide = f.p.step_time_high_s / f.p.step_time_s;
    ask("gpt2-xl", "dgx-a100-80g:1");
    f.job.software = "megatron-lm-2022";
    succeed();
    assert_true(f.p.step_time_high_s / f.p.step_time_s < wide);
}

/* Weights a rank keeps under ZeRO-3: one part in dp, and two gathered; of states
 * and gradients one part, and where most is held those of the output's
 * weight and norm are whole until all ranks have their part. */
static void zero3_shards_weights(void **state)
{
    (void)state;
    double optim[2], grads[2], head = 0;
    for (int i = 0; i < 2; i++) {
        ask("llama2-7b", "dgx-h100:2");
        f.job.software = "megatron-core";
        f.job.tp = f.job.pp = 1;
        f.job.gbs = 16;
        f.job.mbs = 1;
        f.job.zero = i ? 3 : 0;
        f.job.recompute = SC_RC_FULL;
        succeed();
        const sc_stage_memory *m = &f.p.memory[0];
        optim[i] = m->optimizer;
        grads[i] = m->gradients;
        head =
            (double)(f.p.run.model->t.vocab * f.p.run.model->t.hidden + 4096);
        double n = (double)f.p.run.model->params, low = 2;
        double widest = fmax(
            (double)kind_params(f.p.run.model, 1),
            (double)(f.p.run.model->t.vocab * f.p.run.model->t.hidden + 4096));
        double want = i ? n / 16 * low + 2 * widest * low : n * low;
        assert_true(fabs(m->weights / want - 1) < 1e-6);
    }
    assert_true(fabs(optim[0] / optim[1] / 16 - 1) < 1e-9);
    assert_true(fabs((grads[0] / 16 + 4 * head) / grads[1] - 1) < 1e-6);
}

static void json_of(char **text)
{
    sc_json j;
    sc_json_init(&j, true);
    succeed();
    sc_report_prediction_json(&f.job, &f.p, NAN, NULL, &j);
    assert_false(j.failed);
    *text = sc_strdup(&f.a, j.buf);
    assert_non_null(*text);
    sc_json_free(&j);
}

static void deterministic(void **state)
{
    (void)state;
    char *one, *two;
    ask("llama3-70b", "dgx-h100:16");
    json_of(&one);
    json_of(&two);
    assert_string_equal(one, two);
    f.job.gbs = 64;
    json_of(&two);
    assert_string_not_equal(one, two);
}

/* The batch that is left out divides by any machine: a model of 32 layers needs
 * no pipeline of three, seven or nine. */
static void odd_machines(void **state)
{
    (void)state;
    static const char *const machine[] = {"dgx-h100:3", "dgx-h100:7",
                                          "gb200-nvl72:1"};
    for (size_t i = 0; i < SC_COUNT(machine); i++) {
        ask("llama3-8b", machine[i]);
        f.job.brief = true;
        succeed();
        assert_true(f.p.run.size[SC_AX_PP] <= 2);
        assert_int_equal(f.p.run.gbs % sc_run_dp(&f.p.run), 0);
        double tokens = (double)(f.p.run.gbs * f.p.run.seq);
        assert_true(tokens > 2e6 && tokens < 4.2e6);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(batch_of_many_devices), TEST(everything_open),
        TEST(the_choice_is_best),    TEST(given_is_kept),
        TEST(program_options),       TEST(given_with_an_open_mesh),
        TEST(recompute_as_needed),   TEST(refusals),
        TEST(suggestions),           TEST(warnings),
        TEST(zero3_shards_weights),  TEST(deterministic),
        TEST(odd_machines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
