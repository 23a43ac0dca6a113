/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With bounds a search finds what it finds without them: the best points, the
 * front, and the best of each value. No result depends on the number of
 * threads. What can't be searched is refused.
 */
#include "search/search.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct space {
    const char *model, *cluster, *software;
    int64_t gbs, seq;
} space;

static const space spaces[] = {
    {"gpt3-6.7b", "dgx-a100:2", NULL, 64, 0},
    {"llama3-8b", "dgx-h100:4", "torchtitan", 64, 0},
    {"llama3-8b", "dgx-h100:2", NULL, 16, 32768},
    {"mixtral-8x7b", "dgx-h100:4", NULL, 32, 0},
    {"gpt3-13b", "dgx-a100:3", NULL, 96, 0},
    {"llama3-70b", "dgx-h100:8", NULL, 64, 0},
    {"mpt-30b", "dgx-h100:8", "llm-foundry-2023", 128, 0},
    {"gpt3-175b", "dgx-a100:64", NULL, 512, 0}, /* LARGE: 123,798 points */
    {"bloom-7b1", "dgx2-v100:1", NULL, 48, 0},
    {"llama3-8b", "azure-ndv5-mi300x:1", NULL, 48, 4096},
    {"gemma3-12b", "tpu-v5e:64", NULL, 48, 2048},
    {"qwen3-30b-a3b", "dgx-b200:1", NULL, 48, 4096},
    {"nemotron-h-8b", "h200-nvl-pcie:1", NULL, 48, 4096}};

enum { LARGE = 7 }; /* only with STEPCAST_LONG: most of the time of all */

static sc_arena a;
static sc_err e;
static sc_job job;
static sc_inputs in;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&a, 0);
    sc_err_init(&e);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&a);
    return 0;
}

static sc_status open_space(const space *s, sc_search_jobs *out)
{
    sc_job_init(&job);
    job.model = s->model;
    job.cluster = s->cluster;
    job.software = s->software;
    job.gbs = s->gbs;
    job.seq = s->seq;
    job.engine = SC_ENGINE_FAST;
    assert_int_equal(sc_predict_load(&job, &a, &in, &e), SC_OK);
    return sc_search_jobs_open(&job, &in, NULL, 0, &a, out, &e);
}

static sc_search_result run(const sc_search_jobs *jobs, bool all,
                            uint32_t threads)
{
    sc_search_options o = {
        .top = 100, .threads = threads, .exhaustive = all, .keep_free = 0.08};
    sc_search_result r;
    assert_int_equal(sc_search_run(jobs, &o, &a, &r, &e), SC_OK);
    return r;
}

static void same_rows(const sc_search_jobs *jobs, const sc_search_row *x,
                      const sc_search_row *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_memory_equal(x[i].digit, y[i].digit,
                            jobs->n * sizeof *x[i].digit);
        assert_true(x[i].point.step_s == y[i].point.step_s);
        assert_true(x[i].point.peak == y[i].point.peak);
    }
}

static void same(const sc_search_jobs *jobs, const sc_search_result *x,
                 const sc_search_result *y)
{
    assert_int_equal(x->n_best, y->n_best);
    assert_int_equal(x->n_front, y->n_front);
    same_rows(jobs, x->best, y->best, x->n_best);
    same_rows(jobs, x->front, y->front, x->n_front);
    for (uint32_t i = 0; i < jobs->n; i++)
        for (uint32_t k = 0; k < jobs->option[i].axis.n; k++) {
            bool none = isinf(x->per_axis[i][k].point.step_s);
            assert_int_equal(none, isinf(y->per_axis[i][k].point.step_s));
            if (!none)
                same_rows(jobs, &x->per_axis[i][k], &y->per_axis[i][k], 1);
        }
}

static bool one_kind(const sc_search_jobs *jobs, const sc_search_row *x,
                     const sc_search_row *y)
{
    for (uint32_t i = 0; i < jobs->n; i++) {
        const char *name = jobs->option[i].key->name;
        bool tunes = strcmp(name, "vp") == 0 || strcmp(name, "schedule") == 0 ||
                     strcmp(name, "micro-batch") == 0 ||
                     strcmp(name, "sp") == 0;
        if (!tunes && x->digit[i] != y->digit[i]) return false;
    }
    return true;
}

static void bounds(void **state)
{
    (void)state;
    uint64_t pruned = 0;
    for (size_t i = 0; i < SC_COUNT(spaces); i++) {
        sc_search_jobs jobs;
        if (i == LARGE && !getenv("STEPCAST_LONG")) continue;
        assert_int_equal(open_space(&spaces[i], &jobs), SC_OK);
        sc_search_result all = run(&jobs, true, 2), few = run(&jobs, false, 1);
        same(&jobs, &all, &few);
        assert_true(all.n_best > 0);
        assert_int_equal(all.left, 0);
        assert_int_equal(few.left, 0);
        assert_int_equal(all.pruned, 0);
        /* among those excluded by bounds are some that do not fit */
        assert_true(few.evaluated + few.pruned >= all.evaluated);
        assert_true(few.evaluated <= all.evaluated);
        assert_true(few.bound > 0);
        assert_true(few.bound <= few.best[0].score);
        pruned += few.pruned;
    }
    assert_true(pruned > 0);
}

/* Rows that differ in kind are the fastest of each kind. */
static void kinds(void **state)
{
    (void)state;
    size_t every = getenv("STEPCAST_LONG") ? 3 : 9;
    for (size_t i = 0; i < SC_COUNT(spaces); i += every) {
        enum { TOP = 7, ALL = 20000 };

        sc_search_jobs jobs;
        assert_int_equal(open_space(&spaces[i], &jobs), SC_OK);
        sc_search_options o = {.top = ALL, .threads = 2, .exhaustive = true};
        sc_search_result all, few;
        assert_int_equal(sc_search_run(&jobs, &o, &a, &all, &e), SC_OK);
        assert_in_range(all.n_best, 1, ALL - 1);
        assert_int_equal(all.n_best, all.evaluated);
        o = (sc_search_options){.top = TOP, .threads = 1, .kinds = true};
        assert_int_equal(sc_search_run(&jobs, &o, &a, &few, &e), SC_OK);
        uint32_t n = 0;
        for (uint32_t k = 0; k < all.n_best && n < TOP; k++) {
            bool known = false;
            for (uint32_t m = 0; m < k && !known; m++)
                known = one_kind(&jobs, &all.best[m], &all.best[k]);
            if (known) continue;
            assert_true(n < few.n_best);
            same_rows(&jobs, &all.best[k], &few.best[n++], 1);
        }
        assert_int_equal(n, few.n_best);
        assert_true(n > 3);
    }
}

static void threads(void **state)
{
    (void)state;
    sc_search_jobs jobs;
    assert_int_equal(open_space(&spaces[3], &jobs), SC_OK);
    sc_search_result one = run(&jobs, false, 1);
    for (uint32_t n = 2; n <= 8; n += 3) {
        sc_search_result many = run(&jobs, false, n);
        same(&jobs, &one, &many);
        assert_int_equal(one.evaluated, many.evaluated);
        assert_int_equal(one.pruned, many.pruned);
        assert_int_equal(one.n_reasons, many.n_reasons);
        for (uint32_t i = 0; i < one.n_reasons; i++)
            assert_int_equal(one.reason[i].n, many.reason[i].n);
    }
}

static bool at_once(void *with)
{
    ++*(uint32_t *)with;
    return true;
}

/* A search that is stopped says how much is left and what it can't exclude. */
static void stopped(void **state)
{
    (void)state;
    sc_search_jobs jobs;
    uint32_t asked = 0;
    assert_int_equal(open_space(&spaces[0], &jobs), SC_OK);
    sc_search_options o = {
        .top = 5, .threads = 1, .stop = at_once, .with = &asked};
    sc_search_result r;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &r, &e), SC_OK);
    assert_int_equal(asked, 1);
    assert_true(r.left > 0 && r.left < r.points);
    assert_true(r.bound > 0);
}

static void refused(void **state)
{
    (void)state;
    sc_search_jobs jobs;
    assert_int_equal(
        open_space(&(space){"resnet50", "dgx-h100:1", NULL, 0, 0}, &jobs),
        SC_EINPUT);
    assert_non_null(strstr(e.d[0].msg, "different batches"));
    sc_err_init(&e);
    assert_int_equal(open_space(&spaces[0], &jobs), SC_OK);
    job.tp = 7;
    assert_int_equal(sc_search_jobs_open(&job, &in, NULL, 0, &a, &jobs, &e),
                     SC_EINPUT);
    static const char *const wrong[] = {"",     "x",           "4..1",
                                        "1,,x", "1..99999999", "0"};
    for (size_t i = 0; i < SC_COUNT(wrong); i++) {
        sc_search_option o;
        const sc_key *k = sc_job_keys;
        while (strcmp(k->name, "tp") != 0) k++;
        sc_err_init(&e);
        assert_true(sc_search_option_read(k, wrong[i], sc_pos_file("--tp"), &a,
                                          &o, &e) != SC_OK);
        assert_int_equal(e.n > 0, true);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(bounds), TEST(kinds), TEST(threads),
                                       TEST(stopped), TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
