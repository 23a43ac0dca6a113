/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that run side by side wait for each other only on links that they share. */
#include "fixture.h"
#include "jobs/jobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sc_jobs_result r;
static sc_jobs_part *job;
static uint32_t n;

static const sc_jobs_opts usual = {.steps = 3, .even = true};

static sc_status place(const char *text, const char *cluster)
{
    sc_job *base = SC_NEW(&arena, sc_job);
    sc_jobs_entry *of = NULL;
    sc_job_init(base);
    base->cluster = cluster;
    SC_TRY(sc_jobs_read(text, strlen(text), "jobs.yml", base, &arena, &of, &n,
                        &err));
    job = SC_NEW_N(&arena, sc_jobs_part, n);
    for (uint32_t j = 0; j < n; j++) {
        job[j].of = &of[j];
        SC_TRY(sc_predict_load(&of[j].job, &arena, &job[j].in, &err));
    }
    return sc_jobs_place(job, n, job[0].in.hw, &arena, &err);
}

static void run_with(const char *text, const char *cluster,
                     const sc_jobs_opts *o)
{
    if (place(text, cluster) != SC_OK ||
        sc_jobs_run(job, n, job[0].in.hw, o, &arena, &r, &err) != SC_OK)
        no_error();
    for (uint32_t j = 0; j < n; j++)
        assert_true(job[j].n_steps > 0 && job[j].step_s > 0);
}

static void run(const char *text, const char *cluster)
{
    run_with(text, cluster, &usual);
}

static double slowdown(uint32_t j)
{
    return job[j].step_s / job[j].alone_s;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Two jobs, each with one node under every leaf of two; most of their steps is
 * the exchange of gradients. */
#define INTERLEAVED                                                         \
    "a: {model: gpt3-13b, global-batch: 32, tp: 8, pp: 1, micro-batch: 8, " \
    "zero: 0, seq: 512, nodes: 0..6/2}\n"                                   \
    "b: {model: gpt3-6.7b, global-batch: 32, tp: 8, pp: 1, "                \
    "micro-batch: 8, zero: 0, seq: 512, nodes: 1..7/2}\n"

static const char *oversubscribed(double by)
{
    return sc_sprintf(&arena, "dgx-a100-80g:8; leaf=2; oversubscription=%g",
                      by);
}

/* A full fat tree carries all nodes: no job slows another. */
static void none_on_full_tree(void **state)
{
    (void)state;
    run(INTERLEAVED, oversubscribed(1));
    assert_true(near(slowdown(0), 1) && near(slowdown(1), 1));
    assert_int_equal(job[0].n_leaves, 4);
    assert_int_equal(job[0].n_links + job[1].n_links, 0);
    assert_true(near(r.slowdown, 1));
}

/* Nor does one under another leaf, however few links leave it. */
static void none_on_own_leaves(void **state)
{
    (void)state;
    run("a: {model: gpt3-13b, global-batch: 32, nodes: 0..1}\n"
        "b: {model: gpt3-13b, global-batch: 32, nodes: 2..3}\n"
        "c: {model: mixtral-8x7b, global-batch: 32, nodes: 4}\n",
        oversubscribed(8));
    for (uint32_t j = 0; j < n; j++) assert_true(near(slowdown(j), 1));
    assert_int_equal(r.n_links, 0);
}

/* The fewer links leave a leaf, the longer jobs wait that share them. */
static void grows_with_oversubscription(void **state)
{
    (void)state;
    double before[2] = {1, 1};
    for (double by = 2; by <= 16; by *= 2) {
        run(INTERLEAVED, oversubscribed(by));
        for (uint32_t j = 0; j < 2; j++) {
            assert_true(slowdown(j) > before[j] * (1 + 1e-6));
            assert_true(job[j].least_s >= job[j].alone_s * (1 - 1e-9));
            assert_true(job[j].waits_s[SC_CAT_DP] > 0 && job[j].n_links > 0);
            before[j] = slowdown(j);
        }
        assert_true(r.n_links > 0 && r.link[0].fraction <= 1 + 1e-9);
    }
    assert_true(before[0] > 1.1);
}

/* Half as many links are needed by a job alone as by two. */
static void alone_is_not_slowed(void **state)
{
    (void)state;
    run(INTERLEAVED, oversubscribed(1));
    double full = job[0].alone_s;
    run(INTERLEAVED, oversubscribed(2));
    assert_true(near(job[0].alone_s, full));
    run(INTERLEAVED, oversubscribed(4));
    assert_true(job[0].alone_s > full * 1.001);
}

/* A job alone on nodes next to each other takes as long as it is predicted to;
 * with the predicted routes, also where they leave a leaf. */
static void alone_as_predicted(void **state)
{
    (void)state;
    static const char *const text[] = {
        "a: {model: llama3-8b, global-batch: 64, tp: 2, pp: 4, nodes: 4}\n",
        "a: {model: mixtral-8x7b, global-batch: 64, nodes: 4}\n",
        "a: {model: llama3-70b, global-batch: 128, nodes: 4}\n",
        /* composed from two short steps */
        ("a: {model: gpt3-13b, global-batch: 1024, tp: 8, pp: 2, "
         "micro-batch: 1, nodes: 4}\n"),
        "a: {model: resnet50, global-batch: 1024, nodes: 4}\n",
        "a: {model: gpt2, global-batch: 64, nodes: 1}\n"};
    sc_jobs_opts hashed = usual;
    hashed.even = false;
    for (size_t i = 0; i < SC_COUNT(text); i++) {
        run(text[i], "dgx-h100:8");
        double off = job[0].alone_s / job[0].p.step_time_s - 1;
        if (fabs(off) > 1e-4) fail_msg("%s: off by %g", text[i], off);
        assert_true(near(slowdown(0), 1));
        assert_true(job[0].packed_s == job[0].alone_s);
        run_with(text[i], "dgx-h100:8; leaf=2", &hashed);
        off = job[0].alone_s / job[0].p.step_time_s - 1;
        if (fabs(off) > 1e-4) fail_msg("%s: off by %g", text[i], off);
    }
}

/* Above oversubscribed leaves, as its messages take. */
static void alone_as_messages(void **state)
{
    (void)state;
    const char *const text =
        "a: {model: gpt3-13b, global-batch: 64, seq: 1024, "
        "tp: 8, pp: 1, micro-batch: 8, zero: 0, nodes: 4}";
    const char *const cluster[] = {
        "dgx-a100-80g:4; leaf=2; oversubscription=4",
        "dgx-a100-80g:4; leaf=2; oversubscription=8"};
    for (size_t i = 0; i < SC_COUNT(cluster); i++) {
        run(text, cluster[i]);
        sc_job own = job[0].job;
        sc_prediction p;
        own.fidelity = SC_FIDELITY_FLOW;
        own.brief = true;
        if (sc_predict_job(&own, &arena, &p, &err) != SC_OK) no_error();
        double off = job[0].alone_s / p.step_time_s - 1;
        if (fabs(off) > 0.05) fail_msg("%s: off by %g", cluster[i], off);
    }
}

/* A step of one job meets many of another; both are measured. */
static void steps_that_differ(void **state)
{
    (void)state;
    run("a: {model: gpt3-13b, global-batch: 64, nodes: 2, placement: "
        "scattered}\n"
        "b: {model: resnet50, global-batch: 256, nodes: 2, placement: "
        "scattered, start: 100ms}\n",
        oversubscribed(4));
    assert_true(job[0].n_steps >= 2 && job[1].n_steps > 10 * job[0].n_steps);
    assert_int_equal(job[0].n_leaves, 2);
    assert_true(slowdown(0) >= 1 - 1e-9 && slowdown(1) >= 1 - 1e-9);
}

/* Boxes of a torus share no links; every second device of one side does. */
static void torus(void **state)
{
    (void)state;
    run("a: {model: llama3-8b, global-batch: 64, nodes: 0..31}\n"
        "b: {model: llama3-8b, global-batch: 64, nodes: 32..63}\n",
        "tpu-v4:64");
    assert_true(near(slowdown(0), 1) && near(slowdown(1), 1));
    assert_true(near(job[0].alone_s, job[1].alone_s));
    run("a: {model: llama3-8b, global-batch: 64, nodes: 0..62/2}\n"
        "b: {model: llama3-8b, global-batch: 64, nodes: 1..63/2}\n",
        "tpu-v4:64");
    assert_true(slowdown(0) > 1.001 && near(slowdown(0), slowdown(1)));
}

/* ---- which nodes ---------------------------------------------------------- */

static void expect(uint32_t j, uint32_t n_units, const uint32_t *unit)
{
    assert_int_equal(job[j].n_units, n_units);
    for (uint32_t i = 0; i < n_units; i++)
        assert_int_equal(job[j].unit[i], unit[i]);
}

#define UNITS(...)                                                  \
    (uint32_t)(sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t)), \
        (const uint32_t[])                                          \
    {                                                               \
        __VA_ARGS__                                                 \
    }

static void places(void **state)
{
    (void)state;
    const char *cluster = "dgx-h100:12; leaf=4";
    assert_int_equal(place("a: {model: gpt2, nodes: [7, 0, 2..4/2]}\n"
                           "b: {model: gpt2, nodes: 3}\n"
                           "c: {model: gpt2, nodes: 3, placement: scattered}\n"
                           "d: {model: gpt2, nodes: 11..11}\n",
                           cluster),
                     SC_OK);
    expect(0, UNITS(7, 0, 2, 4));
    expect(1, UNITS(1, 3, 5));
    expect(2, UNITS(6, 8, 9));
    expect(3, UNITS(11));
    assert_int_equal(job[0].n_leaves, 2);
    assert_int_equal(job[3].n_leaves, 1);
}

static void refused(const char *text, const char *cluster, const char *msg,
                    uint32_t line, uint32_t col)
{
    sc_err_init(&err);
    sc_status s = place(text, cluster);
    if (s == SC_OK)
        s = sc_jobs_run(job, n, job[0].in.hw, &usual, &arena, &r, &err);
    assert_int_equal(s, SC_EINPUT);
    if (!strstr(err.d[0].msg, msg)) fail_msg("%s", err.d[0].msg);
    assert_string_equal(err.d[0].file, "jobs.yml");
    assert_int_equal(err.d[0].line, line);
    assert_int_equal(err.d[0].col, col);
    sc_err_init(&err);
}

static void refuses(void **state)
{
    (void)state;
    const char *c = "dgx-h100:4";
    refused("a: {model: gpt2}\n", c, "job a has no nodes", 1, 1);
    refused("a: {model: gpt2, nodes: 0..2}\nb: {model: gpt2, nodes: [2]}\n", c,
            "node 2 already belongs to job a", 2, 26);
    refused("a: {model: gpt2, nodes: [1, 1]}\n", c, "node 1 is named twice", 1,
            29);
    refused("a: {model: gpt2, nodes: 5}\n", c, "5 nodes are more than the 4", 1,
            25);
    refused("a: {model: gpt2, nodes: 2..4}\n", c,
            "node 4 is not on a machine of 4 nodes", 1, 25);
    refused("a: {model: gpt2, nodes: 3..2}\n", c, "not a number or list", 1,
            25);
    refused("a: {model: gpt2, nodes: 0..2/0}\n", c, "not a number or list", 1,
            25);
    refused("a: {model: gpt2, nodes: []}\n", c, "not a number or list", 1, 25);
    refused("a: {model: gpt2, nodes: [0], placement: scattered}\n", c,
            "scattered job are named", 1, 25);
    refused("a: {model: gpt2, nodes: 1, tp: 3}\n", c, "3", 1, 32);
    refused("a: {model: gpt3-175b, nodes: 1, tp: 8, pp: 1, global-batch: 8}\n",
            c, "job a does not fit in memory", 1, 1);
    refused("a: {model: gpt2, nodes: 1, compat: proteus}\n", c, "", 1, 36);
    refused("a: {model: gpt2, nodes: [0, 1, 2]}\n", "tpu-v4:8",
            "do not fill a box", 1, 25);
    refused("a: {model: gpt2, nodes: 1, fidelity: flow}\n", c,
            "simulated messages", 1, 38);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(none_on_full_tree),
        TEST(none_on_own_leaves),
        TEST(grows_with_oversubscription),
        TEST(alone_is_not_slowed),
        TEST(alone_as_predicted),
        TEST(alone_as_messages),
        TEST(steps_that_differ),
        TEST(torus),
        TEST(places),
        TEST(refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
