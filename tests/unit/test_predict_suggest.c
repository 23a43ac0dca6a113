/* SPDX-License-Identifier: Apache-2.0 */
/* What is suggested, typed behind what was asked, gives the numbers that were
 * told by the fast engine, and nearly by events; what does not fit gets at least
 * one suggestion; a result's job is the same job. */
#include "predict/predict.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORDS 64

static struct {
    sc_arena a;
    sc_err err;
} f;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&f.a, 0);
    sc_err_init(&f.err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&f.a);
    return 0;
}

/* A command line in words, quotes as a shell's. */
static int split(const char *line, char **words)
{
    int n = 0;
    while (*line) {
        const char *end = " ";
        if (*line == '\'') end = "'", line++;
        size_t len = strcspn(line, end);
        words[n] = sc_strndup(&f.a, line, len);
        assert_non_null(words[n]);
        assert_true(++n < WORDS);
        line += len + (line[len] == '\'');
        line += strspn(line, " ");
    }
    return n;
}

static sc_job parse(const char *line)
{
    char *words[WORDS];
    sc_job job;
    sc_words rest;
    sc_job_init(&job);
    sc_opt_set set = {sc_job_keys, &job, {{0}}};
    sc_status s =
        sc_opt_parse(split(line, words), words, &set, 1, &rest, &f.a, &f.err);
    if (s != SC_OK) print_message("%s: %s\n", line, f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
    assert_int_equal(rest.n, 0);
    return job;
}

static double peak(const sc_prediction *p)
{
    double most = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (p->memory[i].peak > most) most = p->memory[i].peak;
    return most;
}

static sc_prediction predict(const sc_job *job)
{
    sc_prediction p = {0};
    sc_status s = sc_predict_job(job, &f.a, &p, &f.err);
    if (s != SC_OK) print_message("%s\n", f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
    return p;
}

static const char *const questions[] = {
    "--model gpt3-175b --cluster dgx-h100:2 --tp 8 --pp 2 --schedule gpipe",
    "--model llama3-70b --cluster dgx-h100:16 --tp 4 --pp 4 --micro-batch 1 "
    "--schedule gpipe --recompute none --software default",
    "--model gpt2 --cluster dgx-a100-80g --cp 2 --sp",
    "--model gpt2 --cluster dgx-a100-80g --tp 4 --recompute full "
    "--micro-batch 1 --engine fast",
    "--model megatron-22b --cluster dgx-a100-80g:1 --tp 1 --pp 1 "
    "--micro-batch 8 --recompute none --zero 0",
    "--model llama3-70b --cluster dgx-h100 --fsdp --dp 8 --tp 1 --pp 1",
    "--model llama3-70b --cluster dgx-h100:4 --fsdp --no-sp --global-batch 64",
    "--model megatron-1t --cluster dgx-a100-80g --dp 1 --no-sp",
    "--model llama2-7b --cluster dgx-a100-40g:2 --tp 4 --micro-batch 2 "
    "--schedule interleaved --vp 1 --engine fast --seq 1024",
    "--model llama3-70b --cluster dgx-a100-40g:2 --tp 8 --pp 2 --zero 0 "
    "--schedule 1f1b",
    "--model mixtral-8x7b --cluster dgx-h100:2 --tp 2 --pp 1 --recompute none",
    "--model megatron-22b --cluster 'switch8@300GB/s; device=a100-sxm-40g' "
    "--global-batch 64",
    "--model llama3-70b --cluster aws-p4d:3 --tp 1 --schedule gpipe --sp "
    "--engine fast",
    "--model nemotron-h-47b --cluster tpu-v5e-pod:32 --tp 2 --pp 8 "
    "--global-batch 16 --recompute none",
    "--model megatron-22b --cluster 'switch4@300GB/s x switch2@25GB/s; "
    "device=a100-sxm-40g' --tp 4 --pp 2 --dp 1 --vp 2 --global-batch 64",
};

/* The fast engine's answer to what a suggestion says; its step is told as much
 * longer as the predicted one, `p`, is than the fast engine's.  Whether events
 * say nearly the same; that it fits they always do. */
static bool holds(const sc_job *next, const sc_prediction *p,
                  const sc_suggestion *s)
{
    sc_job quick = *next;
    quick.engine = SC_ENGINE_FAST;
    sc_prediction q = predict(&quick);
    double longer =
        isnan(p->other_engine_s) ? 1 : p->step_time_s / p->other_engine_s;
    assert_true(fabs(q.step_time_s * longer / s->step_time_s - 1) < 1e-9);
    assert_true(fabs(peak(&q) - s->peak) <= 8); /* whole bytes */
    assert_true(s->fits || peak(&q) < 0.9 * peak(p));
    if (p->fits) assert_true(s->fits && s->step_time_s < 0.97 * p->step_time_s);
    q = predict(next);
    assert_int_equal(q.fits, s->fits);
    /* no further off than the engines are on the job itself, and a little */
    double far = fabs(q.step_time_s / s->step_time_s - 1);
    /* where tp is larger than a node, only events count that its exchanges
     * share links with transfers between stages (docs/search.md) */
    bool crosses = q.run.size[SC_AX_TP] > q.run.hw->node_size;
    assert_true(far < (crosses ? 0.15 : 0.04) + fabs(longer - 1));
    return fabs(q.step_time_s / s->step_time_s - 1) < 0.01 &&
           fabs(peak(&q) / s->peak - 1) < 0.05;
}

static void suggestions_hold(void **state)
{
    (void)state;
    uint32_t n = 0, near = 0, several = 0, not_fitting = 0;
    for (size_t i = 0; i < SC_COUNT(questions); i++) {
        sc_job job = parse(questions[i]);
        sc_prediction p = predict(&job);
        if (!p.fits && p.n_suggestions == 0)
            print_message("%s\n", questions[i]);
        assert_true(p.fits || p.n_suggestions > 0);
        not_fitting += !p.fits;
        for (uint32_t k = 0; k < p.n_suggestions; k++) {
            const sc_suggestion *s = &p.suggestion[k];
            assert_true(k == 0 || s[-1].fits || !s->fits);
            char line[600];
            snprintf(line, sizeof line, "%s %s", questions[i], s->change);
            sc_job next = parse(line);
            next.brief = true;
            near += holds(&next, &p, s);
            n++;
            several += strstr(s->change + 2, "--") != NULL;
        }
    }
    print_message("%u of %u are within 1 %%\n", near, n);
    assert_true(n >= 15); /* or the list has gone dull */
    assert_true(5 * near >= 3 * n);
    assert_true(several >= 3);
    assert_true(not_fitting >= 4);
}

/* A change of a job that fits saves memory, at the told price. */
static void smaller_jobs_hold(void **state)
{
    (void)state;
    uint32_t n = 0, jobs = 0;
    for (size_t i = 0; i < SC_COUNT(questions); i++) {
        sc_suggestion s[SC_SUGGESTIONS];
        uint32_t found;
        sc_job job = parse(questions[i]), whole;
        job.brief = true;
        job.engine = SC_ENGINE_FAST;
        sc_prediction p = predict(&job);
        if (!p.fits) continue;
        sc_job_resolve(&job, &p.run, &whole);
        assert_int_equal(
            sc_predict_smaller(&whole, &p, &f.a, s, &found, &f.err), SC_OK);
        jobs += found > 0;
        for (uint32_t k = 0; k < found; k++) {
            char line[900];
            sc_job none;
            sc_job_init(&none);
            const char *all = sc_job_options(&none, &whole, &f.a);
            snprintf(line, sizeof line, "%s %s", all, s[k].change);
            sc_job next = parse(line);
            next.brief = true;
            sc_prediction q = predict(&next);
            assert_true(fabs(q.step_time_s / s[k].step_time_s - 1) < 1e-9);
            assert_true(fabs(peak(&q) - s[k].peak) <= 8);
            assert_true(q.fits && s[k].fits);
            assert_true(peak(&q) < 0.9 * peak(&p));
            n++;
        }
    }
    assert_true(jobs >= 5);
    assert_true(n >= 10);
}

static void resolved_job_is_the_same_job(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(questions); i++) {
        sc_job job = parse(questions[i]), whole;
        job.brief = true;
        sc_prediction p = predict(&job), q;
        sc_job_resolve(&job, &p.run, &whole);
        q = predict(&whole);
        if (q.step_time_s != p.step_time_s) print_message("%s\n", questions[i]);
        assert_true(q.step_time_s == p.step_time_s);
        assert_true(peak(&q) == peak(&p));
        assert_int_equal(q.n_candidates, 1);
    }
}

static void options_say_the_difference(void **state)
{
    (void)state;
    sc_job from = parse("--fsdp --tp 2 --sp --price 2USD/h");
    sc_job to = from;
    assert_string_equal(sc_job_options(&from, &to, &f.a), "");
    to.fsdp = false;
    to.zero = 1;
    to.sp = false;
    to.cluster = "ring4@300GB/s; device=h100-sxm";
    to.schedule = SC_SCH_GPIPE;
    assert_string_equal(sc_job_options(&from, &to, &f.a),
                        "--cluster 'ring4@300GB/s; device=h100-sxm' --zero 1 "
                        "--no-sp --schedule gpipe --no-fsdp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(suggestions_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(smaller_jobs_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(resolved_job_is_the_same_job, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(options_say_the_difference, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
