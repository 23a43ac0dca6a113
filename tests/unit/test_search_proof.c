/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a search proves is what an enumeration of all points finds: the best
 * 100, the front, and how many points there are. The enumeration shares only
 * the evaluation of one point with the search; property.search_run compares
 * larger spaces with and without bounds.
 */
#include "space_case.h"

#include <math.h>
#include <stdlib.h>

enum { TOP = 100 };

static const double keep_free = 0.08;

static const space_case spaces[] = {
    {"gpt3-6.7b", "dgx-a100:1", NULL, 8, 0, "tp=1,2 recompute=none zero=0,1",
     0},
    {"gpt3-6.7b", "dgx-a100:2", NULL, 32, 0,
     "cp=1 zero=0,1,3 recompute=none precision=all", 0},
    {"gpt3-13b", "dgx-a100:3", NULL, 24, 0, "cp=1 recompute=none,full", 0},
    {"gpt3-13b", "dgx-a100:2", NULL, 32, 0,
     "zero=0,1 cp=1 recompute=none overlap-grad-reduce=yes,no "
     "offload-optimizer=device,cpu optimizer-bytes=8B,12B",
     0},
    {"gpt3-13b", "dgx-a100:2", NULL, 32, 0,
     "cp=1 schedule=1f1b,gpipe,zb-h1 micro-batch=1,2 zero=1", 0},
    {"gpt3-175b", "dgx-a100:16", NULL, 128, 0,
     "tp=4,8 cp=1 micro-batch=1,2 zero=1", 0},
    {"gpt3-175b", "dgx-a100:1", NULL, 8, 0, "cp=1", 0}, /* nothing fits */
    {"llama3-8b", "dgx-h100:4", "torchtitan", 64, 0,
     "hsdp=8,16 recompute=none,full", 0},
    {"llama3-8b", "dgx-h100:2", NULL, 16, 32768, "zero=1,3 recompute=none,full",
     0},
    {"llama3-8b", "examples/clusters/h100-and-a100.yml", NULL, 24, 4096,
     "cp=1 zero=1 recompute=none", 0},
    {"llama3-70b", "dgx-h100:8", NULL, 64, 0,
     "cp=1 micro-batch=1,2 zero=1,3 recompute=none,selective", 0},
    {"llama3.1-405b", "dgx-h100:64", NULL, 256, 0,
     "tp=8 cp=1 micro-batch=1 vp=1,2,7", 0},
    {"mixtral-8x7b", "dgx-h100:4", NULL, 32, 0,
     "cp=1 micro-batch=1,2 zero=1 recompute=none,full", 0},
    {"deepseek-v3", "dgx-h100:32", NULL, 512, 0,
     "tp=1,2 cp=1 micro-batch=1,2 zero=1 precision=bf16,fp8", 0},
    {"mpt-30b", "dgx-h100:4", "llm-foundry-2023", 128, 0, "zero=3", 0},
    {"bloom-7b1", "dgx2-v100:1", NULL, 48, 0, "tp=1", 0},
    {"gpt3-6.7b", "dgx-a100:2", NULL, 64, 0,
     "cp=1 zero=1 offload=0,0.25,0.5 prefetch=0,1", 0},
    {"resnet50", "dgx-a100:2", NULL, 64, 0, "pp=1,2", 0},
    {"dlrm", "dgx-a100:1", NULL, 512, 0, "overlap-grad-reduce=yes,no", 0},
    {"vgg19", "dgx1-v100:1", NULL, 64, 0, "precision=fp32,fp16", 0},
    {NULL, NULL, NULL, 0, 0,
     "strategy=none,examples/strategies/tensor-2d.yml "
     "cp=1 zero=0,1 vp=1 recompute=none",
     0},
    {NULL, NULL, NULL, 0, 0,
     "strategy=examples/strategies/resnet50-opshard.yml,none", 0}};

typedef struct list {
    sc_search_row *row;
    uint32_t n, cap;
} list;

static sc_arena a;
static sc_err e;
static const sc_points_limit any = {.most_full = INFINITY};

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

static uint32_t n_axes; /* of the rows that are sorted */

static int by_time(const void *x, const void *y)
{
    return sc_search_row_order(x, y, n_axes);
}

static sc_status step(sc_points *points, sc_point_end *p)
{
    const sc_point_ends of = {1, p};
    uint32_t which[SC_POINTS_TOGETHER];
    (void)sc_points_wait(points);
    assert_int_equal(sc_points_take(points, which), 1);
    sc_status s = sc_points_steps(points, 1, which, &of, &e);
    assert_int_equal(sc_points_take(points, which), 0);
    return s;
}

/* Whether points with these digits can have the same sc_points, with only one
 * end of a step. */
static bool share(const sc_search_jobs *jobs, const uint32_t *x,
                  const uint32_t *y)
{
    uint32_t from = jobs->n_passes;
    return memcmp(x, y, jobs->n_own * sizeof *x) == 0 &&
           memcmp(x + from, y + from, (jobs->n - from) * sizeof *x) == 0;
}

/* All points that fit, in the order of a search. */
static list enumerated(const sc_search_jobs *jobs)
{
    list all = {NULL, 0, 0};
    sc_points *points = NULL;
    sc_arena
        prices; /* of `points` alone, which frees what it no longer needs */
    uint32_t own[SC_SEARCH_AXES];
    sc_points_room room;
    sc_arena_init(&prices, 0);
    sc_points_room_init(&room, 0);
    for (uint64_t i = 0; i < sc_search_space_points(jobs->space); i++) {
        sc_search_row r = {.digit = {0}};
        sc_job job;
        sc_search_space_digits(jobs->space, i, r.digit);
        assert_int_equal(sc_search_space_index(jobs->space, r.digit), i);
        sc_search_row_job(jobs, &r, &job);
        sc_err_init(&e);
        sc_status s = SC_OK;
        if (!points || !share(jobs, own, r.digit)) {
            sc_arena_reset(&prices);
            s = sc_points_new(&job, jobs->in, &prices, &room, &points, &e);
        }
        memcpy(own, r.digit, sizeof own);
        if (s != SC_OK) points = NULL;
        sc_point_end end = {0};
        if (s == SC_OK) s = sc_points_memory(points, &job, &any, 1, &end, &e);
        if (s == SC_OK) s = step(points, &end);
        r.point = end.point;
        r.score = r.point.step_s;
        if (s != SC_OK || !r.point.fits || r.point.full > 1 - keep_free)
            continue;
        sc_search_row *row =
            sc_grow(&a, all.row, all.n, &all.cap, 64, sizeof *row);
        assert_non_null(row);
        all.row = row;
        all.row[all.n++] = r;
    }
    sc_arena_free(&prices);
    sc_points_room_free(&room);
    n_axes = jobs->n;
    if (all.n) qsort(all.row, all.n, sizeof *all.row, by_time);
    return all;
}

static void same_row(const sc_search_jobs *jobs, const sc_search_row *x,
                     const sc_search_row *y)
{
    assert_memory_equal(x->digit, y->digit, jobs->n * sizeof *x->digit);
    assert_true(x->point.step_s == y->point.step_s);
    assert_true(x->point.peak == y->point.peak);
}

static void prove(const space_case *c)
{
    sc_inputs in;
    sc_search_jobs jobs;
    sc_search_result found;
    const sc_search_options o = {
        .top = TOP, .threads = 2, .keep_free = keep_free};
    sc_status s = space_open(c, &a, &in, &jobs, &e);
    if (s != SC_OK) print_message("%s: %s\n", c->model, e.d[0].msg);
    assert_int_equal(s, SC_OK);
    assert_int_equal(sc_search_run(&jobs, &o, &a, &found, &e), SC_OK);
    list all = enumerated(&jobs);
    double least = INFINITY;
    uint32_t n_front = 0;
    assert_int_equal(found.left, 0);
    /* among those excluded by bounds may be some that do not fit */
    assert_true(found.evaluated + found.pruned >= all.n);
    sc_search_options every = o;
    every.exhaustive = true;
    sc_search_result whole;
    assert_int_equal(sc_search_run(&jobs, &every, &a, &whole, &e), SC_OK);
    assert_int_equal(whole.evaluated, all.n);
    assert_int_equal(whole.left, 0);
    assert_int_equal(found.n_best, all.n < TOP ? all.n : TOP);
    for (uint32_t i = 0; i < found.n_best; i++)
        same_row(&jobs, &found.best[i], &all.row[i]);
    for (uint32_t i = 0; i < all.n; i++) {
        if (all.row[i].point.peak >= least) continue;
        least = all.row[i].point.peak;
        assert_true(n_front < found.n_front);
        same_row(&jobs, &found.front[n_front++], &all.row[i]);
    }
    assert_int_equal(n_front, found.n_front);
    if (found.n_best) assert_true(found.bound <= found.best[0].point.step_s);
    print_message("%s %s: %llu points, %u fit\n", c->model ? c->model : "",
                  c->more, (unsigned long long)found.points, all.n);
}

static void proof(void **state)
{
    (void)state;
    assert_int_equal(SC_COUNT(spaces), 22);
    for (size_t i = 0; i < SC_COUNT(spaces); i++) {
        prove(&spaces[i]);
        sc_arena_reset(&a);
        sc_err_init(&e);
    }
}

/* ---- spaces without sense -------------------------------------------------- */

static bool at_once(void *with)
{
    ++*(uint32_t *)with;
    return true;
}

static const space_case endless = {
    "gpt3-6.7b",
    "dgx-a100:2",
    NULL,
    64,
    0,
    "mean-tokens=1..4096 document-tokens=1..4096 tokens=1..4096 "
    "checkpoint-every=1..4096 prefetch=0..64",
    0};

/* More points than 2^62: refused without a limit of time, and with one it ends
 * and says what it did not reach. */
static void too_many(void **state)
{
    (void)state;
    sc_inputs in;
    sc_search_jobs jobs;
    sc_search_result found;
    uint32_t asked = 0;
    sc_search_options o = {.top = 5, .threads = 1, .keep_free = keep_free};
    assert_int_equal(space_open(&endless, &a, &in, &jobs, &e), SC_OK);
    assert_true(sc_search_space_points(jobs.space) == SC_SEARCH_MOST);
    assert_int_equal(sc_search_run(&jobs, &o, &a, &found, &e), SC_EINPUT);
    assert_non_null(strstr(e.d[0].hint, "--budget"));
    sc_err_init(&e);
    o.stop = at_once;
    o.with = &asked;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &found, &e), SC_OK);
    assert_true(found.left > SC_SEARCH_MOST / 2);
    assert_int_equal(found.n_best, 0);
}

/* A condition that couples so many values that points can't be counted. */
static void uncounted(void **state)
{
    (void)state;
    sc_inputs in;
    sc_search_jobs jobs;
    const sc_search_where *w;
    assert_int_equal(space_open(&endless, &a, &in, &jobs, &e), SC_OK);
    assert_int_equal(
        sc_search_where_read("mean-tokens + document-tokens + tokens > "
                             "checkpoint-every * prefetch",
                             sc_pos_file("--where"), false, &a, &w, &e),
        SC_OK);
    assert_int_equal(sc_search_jobs_where(&jobs, &w, 1, &a, &e), SC_EINPUT);
    assert_non_null(strstr(e.d[0].msg, "counted"));
}

/* "all" lists what an option can be. */
static void all_values(void **state)
{
    (void)state;

    static const struct {
        const char *key;
        uint32_t n;
    } of[] = {{"sp", 2},    {"zero", 4},      {"recompute", 4},
              {"tp", 0},    {"prefetch", 65}, {"offload", 9},
              {"model", 0}, {"nic-bw", 0}};

    for (size_t i = 0; i < SC_COUNT(of); i++) {
        sc_search_option o;
        const sc_key *k = sc_job_keys;
        while (strcmp(k->name, of[i].key) != 0) k++;
        sc_err_init(&e);
        sc_status s =
            sc_search_option_read(k, "all", sc_pos_file("--axis"), &a, &o, &e);
        assert_int_equal(s == SC_OK, of[i].n > 0);
        if (s == SC_OK) assert_int_equal(o.axis.n, of[i].n);
    }
}

/* Axes that change the rate of kernels: the bound holds for the fastest. */
static void bound_of_all(void **state)
{
    (void)state;
    sc_inputs in;
    sc_search_jobs jobs;
    double both, one;
    const space_case c = {"llama3-8b", "dgx-h100:1",         NULL, 64,
                          0,           "precision=bf16,fp8", 0};
    const space_case d = {"llama3-8b", "dgx-h100:1",     NULL, 64,
                          0,           "precision=bf16", 0};
    assert_int_equal(space_open(&c, &a, &in, &jobs, &e), SC_OK);
    assert_int_equal(sc_search_least(&jobs, &a, &both, &e), SC_OK);
    assert_int_equal(space_open(&d, &a, &in, &jobs, &e), SC_OK);
    assert_int_equal(sc_search_least(&jobs, &a, &one, &e), SC_OK);
    assert_true(both > 0 && one > 0);
    assert_true(fabs(both / one - 0.5) < 1e-3);
}

/* No strategy may name another batch than the one before it. */
static void files_differ(void **state)
{
    (void)state;
    static const sc_given none = {{0}};
    sc_job job;
    sc_search_option o;
    const sc_node two = sc_search_word("examples/strategies/zero3.yml,"
                                       "examples/strategies/tensor-2d.yml",
                                       sc_pos_file("--axis"));
    const sc_node no = sc_search_word(" , ", sc_pos_file("--axis"));
    sc_job_init(&job);
    assert_int_equal(sc_search_strategies_read(&two, &none, &a, &job, &o, &e),
                     SC_EINPUT);
    assert_non_null(strstr(e.d[0].msg, "model is gpt3-13b here"));
    sc_err_init(&e);
    sc_job_init(&job);
    assert_int_equal(sc_search_strategies_read(&no, &none, &a, &job, &o, &e),
                     SC_EUSAGE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(proof),        TEST(too_many),
                                       TEST(uncounted),    TEST(all_values),
                                       TEST(bound_of_all), TEST(files_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
