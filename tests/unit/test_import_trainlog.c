/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_trainlog.c - logs of Megatron-LM and torchtitan. */
#include "findings.h"
#include "import/import.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sc_status read_log(const char *text, sc_trainlog *out, sc_err *err,
                          sc_arena *a)
{
    sc_arena_init(a, 0);
    sc_err_init(err);
    return sc_trainlog_read(text, strlen(text), "f", a, out, err);
}

static void add(char *buf, size_t size, const char *prefix, int step, double ms)
{
    size_t n = strlen(buf);
    snprintf(buf + n, size - n,
             "%s [2025-04-13 23:41:12] iteration %8d/    1000 | consumed "
             "samples: %d | elapsed time per iteration (ms): %.1f | throughput "
             "per GPU (TFLOP/s/GPU): %.1f | learning rate: 1.0E-04 | global "
             "batch size:   512 | lm loss: 1.0E+00 |\n",
             prefix, step, 512 * step, ms, 4e6 / ms);
}

static void test_megatron(void **state)
{
    (void)state;
    static const double ms[] = {90000, 12000, 10200, 10000, 10100, 9900,
                                10000, 31000, 10050, 9950,  10000, 4000};
    char log[8000] = "building GPT model ...\n";
    for (int i = 0; i < (int)SC_COUNT(ms); i++) {
        add(log, sizeof log, i % 2 ? "63: " : "", i + 1, ms[i]);
        if (i == 1)
            strcat(log, "[Rank 0] (after 2 iterations) memory (MB) | "
                        "allocated: 1.0 | max allocated: 40960.0 | reserved: "
                        "1.0 | max reserved: 43008.5\n");
        if (i == 5) strcat(log, "saving checkpoint at iteration 6\n");
    }
    sc_trainlog t;
    sc_err err;
    sc_arena a;
    assert_int_equal(read_log(log, &t, &err, &a), SC_OK);
    assert_int_equal(t.kind, SC_TRAINLOG_MEGATRON);
    assert_int_equal(t.n_lines, 12);
    assert_int_equal(t.n_warmup, 3);
    assert_int_equal(t.n_outliers, 2);
    assert_int_equal(t.n_used, 7);
    assert_float_equal(t.step_time_s, 10.0, 1e-9);
    assert_true(t.spread_s > 0 && t.spread_s < 0.1);
    assert_float_equal(t.tflops_per_device, 400, 0.1);
    assert_float_equal(t.memory_bytes, 43008.5 * 1048576, 1);
    assert_int_equal(t.global_batch, 512);
    assert_true(isnan(t.tokens_per_s_per_device));
    assert_int_equal(t.first.line, 6);
    assert_int_equal(t.last.line, 14);
    assert_float_equal(sc_trainlog_step_s(&t, 1, 1), 10.0, 1e-9);
    sc_arena_free(&a);
}

static void test_torchtitan(void **state)
{
    (void)state;
    char log[8000] = "[titan] 2025-06-16 22:30:48,735 - root - INFO - Training "
                     "starts at step 1\n";
    for (int i = 0; i < 8; i++)
        for (int rank = 0; rank < 2; rank++) {
            size_t n = strlen(log);
            snprintf(log + n, sizeof log - n,
                     "[rank%d]:[titan] 2025-06-16 22:30:50,322 - root - INFO - "
                     "\033[31mstep: %2d  \033[32mloss:  6.1384  "
                     "\033[33mmemory: %d.66GiB(52.28%%)  \033[34mtps: 5,%d00"
                     "  \033[36mtflops: 339.16  \033[35mmfu: 34.29%%\033[39m\n",
                     rank, 10 * i + 1, 40 + i, i == 0 ? 1 : 8);
        }
    sc_trainlog t;
    sc_err err;
    sc_arena a;
    assert_int_equal(read_log(log, &t, &err, &a), SC_OK);
    assert_int_equal(t.kind, SC_TRAINLOG_TORCHTITAN);
    assert_int_equal(t.n_lines, 8); /* ranks count once */
    assert_int_equal(t.n_warmup, 2);
    assert_int_equal(t.n_used, 6);
    assert_float_equal(t.tokens_per_s_per_device, 5800, 1e-9);
    assert_true(isnan(t.step_time_s));
    assert_float_equal(t.tflops_per_device, 339.16, 1e-9);
    assert_float_equal(t.memory_bytes, 47.66 * 1073741824, 16);
    assert_float_equal(sc_trainlog_step_s(&t, 5800.0 * 128 * 3, 128), 3, 1e-9);
    sc_arena_free(&a);
}

static void test_few(void **state)
{
    (void)state;
    char log[600] = "";
    sc_trainlog t;
    sc_err err;
    sc_arena a;
    add(log, sizeof log, "", 1, 500.0);
    assert_int_equal(read_log(log, &t, &err, &a), SC_OK);
    assert_int_equal(t.n_used, 1);
    assert_float_equal(t.step_time_s, 0.5, 1e-12);
    assert_float_equal(t.spread_s, 0, 1e-12);
    assert_true(isnan(t.memory_bytes));
    sc_arena_free(&a);
    /* two values far apart: the median is one of them */
    log[0] = '\0';
    add(log, sizeof log, "", 1, 500.0);
    size_t n = strlen(log);
    snprintf(log + n, sizeof log - n,
             "iteration 2 | elapsed time per iteration (ms): 5000.0\r\n");
    assert_int_equal(read_log(log, &t, &err, &a), SC_OK);
    assert_int_equal(t.n_used, 1);
    assert_int_equal(t.n_outliers, 1);
    sc_arena_free(&a);
}

/* One line of torchtitan as torchrun hands it on: label, colours. */
static void titan(char *buf, size_t size, int rank, int step, const char *tps,
                  const char *word)
{
    size_t n = strlen(buf);
    snprintf(buf + n, size - n,
             "[rank%d]:[titan] 2025-02-04 19:46:17,150 - root - INFO - "
             "\033[31mstep: %2d  \033[32mloss:  8.0032  \033[38;2;180;60;0m"
             "grad_norm:  1.1000  \033[33mmemory: 21.5%dGiB(22.67%%)  "
             "\033[34m%s: %s  \033[36mtflops: 129.63  \033[35mmfu: 13.11%%"
             "\033[39m\n",
             rank, step, rank, word, tps);
}

/* Ranks that print the same step some lines later count once: else the first
 * steps of all ranks would be all that is dropped as warm-up. */
static void test_ranks_apart(void **state)
{
    (void)state;
    static const char *const tps[] = {"50", "4,000", "5,000", "5,010", "5,020"};
    char log[16000] = "";
    for (int step = 0; step < 10; step++)
        for (int rank = 0; rank < 8; rank++) {
            int s = step - (rank >= 4); /* the second node lags by a step */
            if (s >= 0)
                titan(log, sizeof log, rank, 10 * s + 1,
                      tps[s < 2 ? s : 2 + s % 3], "tps");
        }
    sc_trainlog t;
    sc_err err;
    sc_arena a;
    assert_int_equal(read_log(log, &t, &err, &a), SC_OK);
    assert_int_equal(t.n_lines, 10);
    assert_int_equal(t.n_warmup, 3);
    assert_int_equal(t.n_used, 7);
    assert_float_equal(t.tokens_per_s_per_device, 5010, 1e-9);
    assert_float_equal(t.memory_bytes, 21.57 * 1073741824, 32);
    sc_arena_free(&a);
}

/* Older logs say words instead of tokens. */
static void test_words_per_second(void **state)
{
    (void)state;
    char log[2000] = "";
    sc_trainlog t;
    sc_err err;
    sc_arena a;
    for (int i = 1; i < 4; i++) titan(log, sizeof log, 0, i, "1,250", "wps");
    assert_int_equal(read_log(log, &t, &err, &a), SC_OK);
    assert_float_equal(t.tokens_per_s_per_device, 1250, 1e-9);
    sc_arena_free(&a);
}

/* Two ranks write into one line, and the log is read while it is written. */
static void test_torn(void **state)
{
    (void)state;
    char log[8000] = "";
    sc_trainlog t;
    sc_err err;
    sc_arena a;
    for (int i = 1; i < 7; i++) {
        add(log, sizeof log, "15: ", i, 2000.0 + i);
        add(log, sizeof log, "31: ", i, 9000.0 + i); /* the same step again */
    }
    strcat(log, " iteration 7/ 1000 | elapsed time per iteration (ms): 20"
                "iteration 7/ 1000 | elapsed time per iteration (ms): x |\n"
                " iteration 8/ 1000 | elapsed time per iteration (ms): 200");
    assert_int_equal(read_log(log, &t, &err, &a), SC_OK);
    assert_int_equal(err.n, 0);
    assert_int_equal(t.n_lines, 6);
    assert_int_equal(t.n_torn, 2);
    assert_int_equal(t.n_used, 4);
    assert_float_equal(t.step_time_s, 2.004, 1e-9);
    sc_arena_free(&a);
    /* nothing but such lines: what is wrong with them */
    assert_int_equal(
        read_log("elapsed time per iteration (ms): 200", &t, &err, &a),
        SC_EINPUT);
    assert_int_equal(err.n, 1);
    assert_int_equal(err.d[0].col, 34);
    sc_arena_free(&a);
}

static void test_errors(void **state)
{
    (void)state;
#define MS "elapsed time per iteration (ms): "

    static const struct {
        const char *text, *errors;
    } cases[] = {
        {"", "missing 0:0"},
        {"hello\nworld\n", "missing 0:0"},
        {"iteration 1/10 | lm loss: 2.0 |\n", "missing 0:0"},
        {"step: 1 loss: 2.0\n", "missing 0:0"},
        {"\n" MS "abc |\n", "type 2:34"},
        {MS "\n", "type 1:34"},
        {MS "12ms |\n", "type 1:34"},
        {MS "0.0 |\n", "range 1:34"},
        {MS "-5 |\n", "range 1:34"},
        {MS "nan |\n" MS "1e99 |\n", "type 1:34, range 2:34"},
        {MS "5.0 | global batch size: x |\n", "type 1:59"},
        {MS "5.0 | throughput per GPU (TFLOP/s/GPU): - |\n", "type 1:74"},
        {"step: 1 memory: 4.0GiB(1%) tps: none\n", "type 1:33"},
        {"step: 1 memory: 4.0MB tps: 10\n", "unit 1:17"},
        {"step: x memory: 4.0GiB tps: 10\n", "type 1:7"},
        {"step: 1 memory: 4.0GiB tps: 0\n", "range 1:29"},
        {"a\nb step: 1 memory: ? tps: 5\n", "type 2:19"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        sc_trainlog t = {.n_lines = 77};
        sc_err err;
        sc_arena a;
        char got[FINDINGS];
        sc_status s = read_log(cases[i].text, &t, &err, &a);
        findings(&err, got);
        if (s != SC_EINPUT || strcmp(got, cases[i].errors) != 0)
            fail_msg("case %zu: %s instead of %s", i, got, cases[i].errors);
        assert_int_equal(t.n_lines, 77);
        sc_arena_free(&a);
    }
}

/* Programs that print a step's time, or its inverse, after a key. */
static void test_timed(void **state)
{
    (void)state;

    static const struct {
        sc_trainlog_kind kind;
        double step_s;
        const char *text;
    } logs[] = {
        {SC_TRAINLOG_NEMO, 4.81,
         "epoch 0, iteration 1/99 | global_step: 1 | train_step_timing in s: "
         "4.81 | consumed_samples: 256\n"},
        {SC_TRAINLOG_NEMO, 9.5,
         "v_num=0, global_step=7.000, train_step_timing in s=9.500]\n"},
        {SC_TRAINLOG_NANOTRON, 1.21,
         "[INFO]: iteration: 2 / 100 | elapsed_time_per_iteration_ms: 1.21K | "
         "tokens_per_sec: 340K\n"},
        {SC_TRAINLOG_NANOTRON, 0.95,
         "[INFO]: iteration: 2 / 100 | elapsed_time_per_iteration_ms: 950 |\n"},
        {SC_TRAINLOG_DEEPSPEED, 1.234,
         "steps: 10 loss: 2.31 iter time (s): 1.234 samples/sec: 103.6\n"},
        {SC_TRAINLOG_TRAINER, 4,
         "{'train_runtime': 9, 'train_steps_per_second': 0.25}\n"}};

    for (size_t i = 0; i < SC_COUNT(logs); i++) {
        sc_trainlog t;
        sc_err err;
        sc_arena a;
        assert_int_equal(read_log(logs[i].text, &t, &err, &a), SC_OK);
        assert_int_equal(t.kind, logs[i].kind);
        assert_float_equal(t.step_time_s, logs[i].step_s, 1e-9);
        sc_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_megatron),
                                       cmocka_unit_test(test_torchtitan),
                                       cmocka_unit_test(test_few),
                                       cmocka_unit_test(test_timed),
                                       cmocka_unit_test(test_ranks_apart),
                                       cmocka_unit_test(test_words_per_second),
                                       cmocka_unit_test(test_torn),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
