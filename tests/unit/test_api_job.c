/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of the installed interface: options, errors, documents, numbers. */
#include <stepcast/predict.h>
#include <stepcast/stepcast.h>

#include "predict/predict.h"
#include "replay/replay.h"
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static stepcast_errors *errors;

static int setup(void **state)
{
    (void)state;
    errors = stepcast_errors_new();
    return errors ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    stepcast_errors_free(errors);
    return 0;
}

static stepcast_job *job_of(const char *command, const char *const *options)
{
    stepcast_job *job = stepcast_job_new(command);
    assert_non_null(job);
    for (; *options; options += 2)
        assert_int_equal(stepcast_job_set(job, options[0], options[1], NULL),
                         STEPCAST_OK);
    return job;
}

static const char *const llama[] = {"model",      "llama3-8b", "cluster",
                                    "dgx-h100:2", "tp",        "2",
                                    "--sp",       "false",     NULL};

/* The same numbers as the function that the program calls. */
static void predicts(void **state)
{
    (void)state;
    sc_arena arena;
    sc_err err;
    sc_job same;
    sc_prediction want;
    sc_arena_init(&arena, 0);
    sc_err_init(&err);
    sc_job_init(&same);
    same.model = "llama3-8b";
    same.cluster = "dgx-h100:2";
    same.tp = 2;
    same.sp = 0;
    assert_int_equal(sc_predict_job(&same, &arena, &want, &err), SC_OK);

    stepcast_job *job = job_of("predict", llama);
    stepcast_prediction p = {.size = sizeof p};
    stepcast_document *d = NULL;
    double v = 0;
    const char *text = NULL;
    assert_int_equal(stepcast_predict(job, &p, &d, errors), STEPCAST_OK);
    assert_true(p.fits);
    assert_true(p.step_time_s == want.step_time_s);
    assert_true(p.step_time_low_s < p.step_time_s);
    assert_true(p.memory_bytes == want.memory[0].peak);
    assert_true(p.tp == 2 && p.dp == 8 && p.pp == 1 && p.devices == 16);
    assert_true(isnan(p.cost_usd)); /* no price was set */
    assert_int_equal(stepcast_document_number(d, "config.sp", &v), STEPCAST_OK);
    assert_true(v == 0);
    assert_int_equal(stepcast_document_text(d, "config.model", &text),
                     STEPCAST_OK);
    assert_string_equal(text, "llama3-8b");
    stepcast_document_free(d);
    stepcast_job_free(job);
    sc_arena_free(&arena);
}

/* 70e9 parameters with 16 bytes each are not on one device of 80 GB. */
static void says_no(void **state)
{
    (void)state;
    static const char *const options[] = {"model", "llama3-70b", "cluster",
                                          "a100-sxm-80g:1", NULL};
    stepcast_job *job = job_of("predict", options);
    stepcast_prediction p = {.size = sizeof p};
    assert_int_equal(stepcast_predict(job, &p, NULL, errors), STEPCAST_NO);
    assert_false(p.fits);
    assert_true(p.memory_bytes > 1120e9);
    stepcast_job_free(job);
}

static void refuses_options(void **state)
{
    (void)state;
    stepcast_job *job = stepcast_job_new("predict");
    stepcast_document *d = NULL;
    stepcast_error e = {.size = sizeof e};
    assert_int_equal(stepcast_job_set(job, "micro-batc", "1", errors),
                     STEPCAST_USAGE);
    assert_int_equal(stepcast_errors_count(errors), 1);
    assert_int_equal(stepcast_errors_get(errors, 0, &e), STEPCAST_OK);
    assert_string_equal(e.code, "option");
    assert_string_equal(e.hint, "did you mean \"micro-batch\"?");
    assert_int_equal(stepcast_errors_get(errors, 1, &e), STEPCAST_USAGE);
    assert_int_equal(stepcast_job_set(job, "tp", "two", errors),
                     STEPCAST_USAGE);
    assert_int_equal(stepcast_errors_get(errors, 0, &e), STEPCAST_OK);
    assert_string_equal(e.file, "--tp two");
    /* what a terminal would show is no option of a job */
    assert_int_equal(stepcast_job_set(job, "json", "true", NULL),
                     STEPCAST_USAGE);
    assert_int_equal(stepcast_job_set(job, "output", "/tmp/x", NULL),
                     STEPCAST_USAGE);
    /* all of them again when it runs */
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_USAGE);
    assert_null(d);
    assert_int_equal(stepcast_errors_count(errors), 4);
    assert_non_null(strstr(stepcast_errors_text(errors), "--tp two: error: "));
    stepcast_job_free(job);
    assert_null(stepcast_job_new("emulate"));
    assert_null(stepcast_job_new("help"));
}

static void places_errors(void **state)
{
    (void)state;
    static const char *const options[] = {
        "model", "llama3-8b", "cluster", "dgx-h100:2", "tp", "7", NULL};
    stepcast_job *job = job_of("predict", options);
    stepcast_document *d = NULL;
    stepcast_error e = {.size = sizeof e};
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_INPUT);
    assert_int_equal(stepcast_errors_get(errors, 0, &e), STEPCAST_OK);
    assert_string_equal(e.code, "divide");
    assert_string_equal(e.file, "--tp 7");
    assert_int_equal(e.line, 0);
    /* the list is that of the last call */
    assert_int_equal(stepcast_job_set(job, "tp", "8", errors), STEPCAST_OK);
    assert_int_equal(stepcast_errors_count(errors), 0);
    assert_string_equal(stepcast_errors_text(errors), "");
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_OK);
    stepcast_document_free(d);
    stepcast_job_free(job);
}

/* A program that knows less members than the library has. */
static void keeps_to_the_size(void **state)
{
    (void)state;
    stepcast_job *job = job_of("predict", llama);
    stepcast_prediction p = {0};
    assert_int_equal(stepcast_predict(job, &p, NULL, errors), STEPCAST_USAGE);
    assert_int_equal(stepcast_errors_count(errors), 1);
    p.size = offsetof(stepcast_prediction, step_time_low_s);
    p.step_time_low_s = -1;
    assert_int_equal(stepcast_predict(job, &p, NULL, errors), STEPCAST_OK);
    assert_true(p.step_time_s > 0);
    assert_true(p.step_time_low_s == -1);
    assert_int_equal(p.size, offsetof(stepcast_prediction, step_time_low_s));
    stepcast_job_free(job);
}

/* An all-reduce between two: each sends as much as the message has. */
static void prices_collectives(void **state)
{
    (void)state;
    static const char *const options[] = {
        "cluster", "dgx-h100:1", "ranks", "2", "min", "1M", "max", "4M", NULL};
    stepcast_job *job = job_of("coll", options);
    stepcast_document *d = NULL;
    stepcast_collective c = {.size = sizeof c};
    stepcast_prediction p = {.size = sizeof p};
    assert_int_equal(stepcast_job_add(job, "all_reduce", errors), STEPCAST_OK);
    assert_int_equal(stepcast_predict(job, &p, NULL, errors), STEPCAST_USAGE);
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(stepcast_collective_row(d, i, &c), STEPCAST_OK);
        assert_true(c.bytes == (double)(1 << (20 + i)));
        assert_true(fabs(c.bus_bandwidth * c.time_s / c.bytes - 1) < 1e-12);
        assert_true(c.time_low_s < c.time_s && c.time_s < c.time_high_s);
        assert_true(c.algorithm[0] && c.protocol[0]);
    }
    assert_int_equal(stepcast_collective_row(d, 3, &c), STEPCAST_NO);
    stepcast_document_free(d);
    stepcast_job_free(job);
}

static void reads_by_path(void **state)
{
    (void)state;
    static const char *const options[] = {NULL};
    stepcast_job *job = job_of("list", options);
    stepcast_document *d = NULL;
    const char *text = NULL;
    uint32_t n = 0;
    double v = 0;
    assert_int_equal(stepcast_job_add(job, "software", errors), STEPCAST_OK);
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_OK);
    assert_int_equal(stepcast_document_json(d)[0] == '[' ||
                         stepcast_document_json(d)[0] == '{',
                     1);
    assert_int_equal(stepcast_document_count(d, "", &n), STEPCAST_OK);
    assert_true(n > 0);
    assert_int_equal(stepcast_document_number(d, "nothing", &v),
                     STEPCAST_INPUT);
    assert_int_equal(stepcast_document_text(d, "9999999999", &text),
                     STEPCAST_INPUT);
    assert_int_equal(stepcast_document_text(NULL, "0", &text), STEPCAST_INPUT);
    stepcast_document_free(d);
    stepcast_job_free(job);
}

static void lists_options(void **state)
{
    (void)state;
    stepcast_option o = {.size = sizeof o};
    char value[64];
    bool tp = false, sp = false, json = false;
    uint32_t i = 0;
    while (stepcast_job_option("predict", i, &o, value, sizeof value) ==
           STEPCAST_OK) {
        tp = tp || strcmp(o.name, "tp") == 0;
        sp = sp || (strcmp(o.name, "sp") == 0 && !o.value);
        json = json || strcmp(o.name, "json") == 0;
        assert_true(o.help && *o.help);
        i++;
    }
    assert_true(i > 30 && tp && sp && !json);
    assert_int_equal(stepcast_job_option("x", 0, &o, value, sizeof value),
                     STEPCAST_USAGE);
}

/* Of one option the last value, "no-" or not. */
static void replaces_values(void **state)
{
    (void)state;
    static const char *const options[] = {
        "cluster",    "dgx-h100:1", "sp", "true",  "tp",
        "8",          "tp",         "2",  "model", "llama3-70b",
        "model",      "llama3-8b",  "sp", "false", "cluster",
        "dgx-h100:2", "tokens",     "1T", NULL};
    stepcast_job *job = job_of("predict", options);
    stepcast_job *once = job_of("predict", llama);
    stepcast_prediction p = {.size = sizeof p}, q = {.size = sizeof q};
    assert_int_equal(stepcast_predict(job, &p, NULL, errors), STEPCAST_OK);
    assert_int_equal(stepcast_predict(once, &q, NULL, errors), STEPCAST_OK);
    assert_true(p.step_time_s == q.step_time_s && p.tp == 2 && p.devices == 16);
    assert_true(isnan(q.days) && fabs(p.device_hours / p.days - 384) < 1e-9);
    stepcast_job_free(once);
    stepcast_job_free(job);
}

/* A strategy file names model, cluster and mesh; a network is a file too. */
static void reads_files(void **state)
{
    (void)state;
    static const char *const strategy[] = {
        "strategy", "examples/strategies/resnet50-opshard.yml", NULL};
    stepcast_job *job = job_of("predict", strategy);
    stepcast_prediction p = {.size = sizeof p};
    stepcast_document *d = NULL;
    const char *file = NULL;
    if (stepcast_predict(job, &p, &d, errors) != STEPCAST_OK)
        fail_msg("%s", stepcast_errors_text(errors));
    assert_true(p.step_time_s > 0 && p.devices > 1);
    assert_true(p.tokens_per_s == p.samples_per_s); /* images */
    assert_int_equal(
        stepcast_document_text(d, "provenance.inputs.0.file", &file),
        STEPCAST_OK);
    assert_string_equal(file, strategy[1]);
    stepcast_document_free(d);
    stepcast_job_free(job);
}

/* What several threads ask at once is what one asks. */
static void *predict_here(void *seconds)
{
    stepcast_job *job = job_of("predict", llama);
    stepcast_prediction p = {.size = sizeof p};
    stepcast_status s = stepcast_predict(job, &p, NULL, NULL);
    *(double *)seconds = s == STEPCAST_OK ? p.step_time_s : -1;
    stepcast_job_free(job);
    return NULL;
}

/* The step of the example with kernels that take `factor` times as long. */
static double replayed_s(double factor)
{
    static const char *const file[] = {"examples/replay/rank0.json",
                                       "examples/replay/rank1.json"};
    sc_arena a;
    sc_err err;
    sc_text notes;
    sc_profiled trace[2];
    const sc_profiled *m[2] = {&trace[0], &trace[1]};
    sc_replay_model *x;
    sc_replay_change c;
    sc_replay_result r;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_text_init(&notes);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sc_profiled_read(file[i], &a, &notes, &trace[i], &err),
                         SC_OK);
    sc_replay_change_init(&c);
    c.factor[SC_REPLAY_COMPUTE] = factor;
    assert_int_equal(sc_replay_prepare(m, 2, &(sc_replay_steps){0, UINT32_MAX},
                                       &a, &notes, &x, &err),
                     SC_OK);
    assert_int_equal(sc_replay_run(x, &c, &a, &r, &err), SC_OK);
    double s = sc_time_to_s(r.predicted);
    sc_text_free(&notes);
    sc_arena_free(&a);
    return s;
}

/* Traces are words; the answer is that of the functions below the commands. */
static void replays(void **state)
{
    (void)state;
    static const char *const options[] = {"scale", "compute=2", "findings",
                                          "false", NULL};
    stepcast_job *job = job_of("replay", options);
    stepcast_document *d = NULL;
    double step_s = 0, other_s = 0, measured_s = 0;
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_USAGE);
    stepcast_job_add(job, "examples/replay/rank0.json", errors);
    stepcast_job_add(job, "examples/replay/rank1.json", errors);
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_OK);
    assert_int_equal(stepcast_document_number(d, "step_time_s", &step_s),
                     STEPCAST_OK);
    stepcast_document_number(d, "measured_step_time_s", &measured_s);
    stepcast_document_number(d, "unchanged_step_time_s", &other_s);
    assert_true(step_s > 1.5 * measured_s);
    assert_true(fabs(other_s / measured_s - 1) < 1e-3);
    assert_true(step_s == replayed_s(2));
    assert_true(other_s == replayed_s(1));
    stepcast_document_free(d);
    stepcast_job_free(job);
}

static void runs_in_threads(void **state)
{
    (void)state;
    pthread_t thread[4];
    double seconds[5];
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&thread[i], NULL, predict_here, &seconds[i]), 0);
    predict_here(&seconds[4]);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_true(seconds[i] == seconds[4]);
    }
    assert_true(seconds[4] > 0);
}

static void has_a_version(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", STEPCAST_VERSION_MAJOR,
             STEPCAST_VERSION_MINOR, STEPCAST_VERSION_PATCH);
    assert_string_equal(stepcast_version(), text);
    assert_int_equal(stepcast_version_number(), STEPCAST_VERSION_NUMBER);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(predicts),          CASE(says_no),
        CASE(refuses_options),   CASE(places_errors),
        CASE(keeps_to_the_size), CASE(prices_collectives),
        CASE(reads_by_path),     CASE(lists_options),
        CASE(reads_files),       CASE(replaces_values),
        CASE(replays),           CASE(runs_in_threads),
        CASE(has_a_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
