/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of data/validation, predicted: all that can be expressed, the same
 * twice, and with parameters fitted without them. */
#include "calib/runs.h"
#include "calib/stepfit.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path_of(const char *name)
{
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path =
        sc_sprintf(&arena, "%s/data/validation/%s", root ? root : ".", name);
    assert_non_null(path);
    return path;
}

static sc_csv load(const char *name)
{
    char *text;
    size_t len;
    sc_csv t = {0};
    if (sc_file_read(path_of(name), (size_t)64 << 20, &arena, &text, &len,
                     &err) != SC_OK ||
        sc_csv_parse(text, len, name, &arena, &t, &err) != SC_OK)
        fail_msg("%s: %s", name, err.d[0].msg);
    return t;
}

static sc_validation validate(const sc_csv *t, uint32_t n,
                              const sc_validate_opts *o)
{
    sc_validation v;
    if (sc_validate(t, n, o, &arena, &v, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    return v;
}

static void each_row_of_papers(void **state)
{
    (void)state;
    sc_csv t = load("papers.csv");
    sc_validate_opts o = {.engine = SC_ENGINE_EVENT};
    sc_validation v = validate(&t, 1, &o);
    assert_int_equal(v.n_rows, t.n_rows);
    uint32_t predicted = 0;
    for (uint32_t i = 0; i < v.n_rows; i++) {
        const sc_valid_row *r = &v.rows[i];
        if (r->reason) continue;
        predicted++;
        assert_true(r->predicted > 0 && r->low < r->predicted &&
                    r->predicted < r->high);
        assert_true(fabs(r->error - (r->predicted / r->measured - 1)) < 1e-12);
        assert_true(r->mem_predicted > 0);
    }
    assert_int_equal(predicted, 15); /* the rows with a step time */
    assert_int_equal(v.skipped, v.n_rows - predicted);
    o.where = "kor_*";
    sc_validation again = validate(&t, 1, &o);
    assert_int_equal(again.n_rows, 4);
    for (uint32_t i = 0; i < 4; i++) /* they are the first of the table */
        assert_memory_equal(&v.rows[i].predicted, &again.rows[i].predicted,
                            sizeof(double));
}

static void count(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    uint64_t *told = ctx;
    assert_string_equal(what, "rows predicted");
    assert_true(done > told[0] && done <= total);
    told[0] = done;
    told[1]++;
}

/* Whoever asks is told of every row that was predicted. */
static void progress_is_told(void **state)
{
    (void)state;
    sc_csv t = load("papers.csv");
    uint64_t told[2] = {0, 0};
    const sc_progress progress = {count, told};
    const sc_validate_opts o = {.where = "sc21_*", .progress = &progress};
    sc_validation v = validate(&t, 1, &o);
    assert_int_equal(v.n_rows, 5);
    assert_int_equal(told[1], 5);
}

/* What a table does not state is inferred and said; the formula rows agree
 * with the paper's formula. */
static void assumptions_and_formulas(void **state)
{
    (void)state;
    sc_csv t = load("papers.csv");
    sc_validate_opts o = {.where = "sc21_*"};
    sc_validation v = validate(&t, 1, &o);
    assert_int_equal(v.n_rows, 5);
    for (uint32_t i = 0; i < v.n_rows; i++)
        assert_true(v.rows[i].n_assumptions >= 1);
    o = (sc_validate_opts){.family = "korthikanti-2022-mem"};
    v = validate(&t, 1, &o);
    assert_int_equal(v.n_rows, 4);
    assert_int_equal(v.skipped, 4);
    assert_true(v.groups[0].mem_max < 0.02);
}

/* What can't be predicted has one of the known reasons.  tests/accuracy compares all
 * rows with the bars. */
static void rows_are_predicted(void **state)
{
    (void)state;
    sc_csv t[] = {
        load("vtrain-multi.csv"), load("bloom.csv"),      load("papers.csv"),
        load("llm-foundry.csv"),  load("torchtitan.csv"), load("nvidia.csv"),
        load("mlperf.csv"),       load("more.csv"),       load("nanotron.csv")};
    /* models without their sizes */
    static const char *const open[] = {"quality", "step time", "not stated",
                                       "no model is called"};
    sc_validate_opts o = {.engine = SC_ENGINE_FAST};
    for (size_t i = 0; i < SC_COUNT(t); i++)
        if (t[i].n_rows > 20) t[i].n_rows = 20;
    sc_validation v = validate(t, SC_COUNT(t), &o);
    for (uint32_t i = 0; i < v.n_rows; i++) {
        const char *why = v.rows[i].reason;
        bool expected = !why;
        for (size_t k = 0; k < SC_COUNT(open); k++)
            expected = expected || strstr(why, open[k]);
        if (!expected) fail_msg("%s: %s", v.rows[i].id, why);
    }
}

static void leave_out(void **state)
{
    (void)state;
    sc_csv t = load("papers.csv");
    sc_validate_opts o = {.family = "korthikanti-2022",
                          .engine = SC_ENGINE_FAST};
    sc_validation in = validate(&t, 1, &o), out;
    assert_int_equal(
        sc_validate_leave_out(&t, 1, "family", &o, &arena, &out, &err), SC_OK);
    assert_int_equal(out.n_rows, in.n_rows);
    for (uint32_t i = 0; i < in.n_rows; i++) {
        assert_string_equal(in.rows[i].id, out.rows[i].id);
        assert_true(out.rows[i].measured == in.rows[i].measured);
        assert_true(out.rows[i].predicted != in.rows[i].predicted);
        assert_true(fabs(log(out.rows[i].predicted / in.rows[i].predicted)) <
                    0.5);
    }
    assert_int_equal(
        sc_validate_leave_out(&t, 1, "colour", &o, &arena, &out, &err),
        SC_EUSAGE);
}

static void network_curves(void **state)
{
    (void)state;
    sc_csv t = load("network.csv"), runs = load("papers.csv");
    sc_validate_opts o = {.where = "network.csv:*"};
    sc_validation v = validate(&t, 1, &o);
    assert_string_equal(v.unit, "us");
    assert_int_equal(v.n_rows, t.n_rows);
    assert_true(v.skipped < v.n_rows / 10);
    assert_true(v.mape < 0.05);
    /* the first row: 1 MiB over two A100 in 44.21 us */
    assert_string_equal(v.rows[0].id, "network.csv:2");
    assert_true(v.rows[0].measured == 44.21);
    /* time follows from busbw where only that stands */
    int time = sc_csv_col(&t, "time_us"), busbw = sc_csv_col(&t, "busbw_GBps");
    int size = sc_csv_col(&t, "size_bytes");
    uint32_t derived = 0;
    for (uint32_t i = 0; i < t.n_rows; i++) {
        if (sc_csv_get(&t, i, time)[0] || v.rows[i].reason) continue;
        if (strcmp(v.rows[i].family, "all_reduce 8/1") != 0) continue;
        double bw = strtod(sc_csv_get(&t, i, busbw), NULL);
        double us = strtod(sc_csv_get(&t, i, size), NULL) * 1.75 / (bw * 1e3);
        assert_true(fabs(v.rows[i].measured / us - 1) < 1e-9);
        derived++;
    }
    assert_true(derived > 0);
    const sc_csv both[] = {t, runs};
    assert_int_equal(sc_validate(both, 2, &o, &arena, &v, &err), SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "different kinds"));
}

/* Mean |log(predicted / median)|. */
static double distance(calib_run *run, uint32_t n, const sc_cost *c,
                       const sc_valid_row *made)
{
    calib_fit_set at;
    double sum = 0;
    assert_int_equal(calib_fit_prepare(run, n, c, &arena, &at, &err), SC_OK);
    for (uint32_t i = 0; i < n; i++)
        sum += fabs(log(at.rows[i].predicted / made[i].predicted));
    return sum / n;
}

/* Steps made up with other parameters are what a fit to them predicts. */
static void fit_recovers(void **state)
{
    (void)state;
    sc_csv t = load("vtrain-multi.csv");
    t.n_rows = 24;
    calib_run *run;
    uint32_t n;
    calib_fit_set set, made;
    sc_cost cost, other;
    sc_fit_result fit;
    sc_cost_centres(&cost);
    other = cost;
    int gemm = sc_param_find("sustained_ampere"),
        h = sc_param_find("sustained_hopper");
    assert_true(gemm >= 0 && h >= 0);
    other.p[gemm] *= 0.93;
    assert_int_equal(calib_runs_read(&t, 1, &arena, &run, &n, &err), SC_OK);
    assert_int_equal(calib_fit_prepare(run, n, &other, &arena, &made, &err),
                     SC_OK);
    assert_int_equal(calib_fit_prepare(run, n, &cost, &arena, &set, &err),
                     SC_OK);
    assert_int_equal(set.n, 24);
    double before = distance(run, n, &cost, made.rows);
    for (uint32_t i = 0; i < n; i++)
        set.rows[i].median = made.rows[i].predicted;
    assert_int_equal(
        calib_fit_set_of(SC_SET_STEP, &set, NULL, &cost, &fit, &arena, &err),
        SC_OK);
    double after = distance(run, n, &cost, made.rows);
    if (!(after < 0.3 * before)) fail_msg("%g from %g", after, before);
    assert_true(fit.cost_after < fit.cost_before);
    assert_true(cost.p[gemm] < 0.99 * sc_params[gemm].centre);
    /* no row speaks of it: it stays */
    assert_true(fabs(cost.p[h] / sc_params[h].centre - 1) < 1e-12);
    /* without rows there is nothing to fit */
    bool *none = SC_NEW_N(&arena, bool, set.n);
    assert_non_null(none);
    assert_int_equal(
        calib_fit_set_of(SC_SET_STEP, &set, none, &cost, &fit, &arena, &err),
        SC_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_row_of_papers, setup, teardown),
        cmocka_unit_test_setup_teardown(progress_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(assumptions_and_formulas, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(rows_are_predicted, setup, teardown),
        cmocka_unit_test_setup_teardown(network_curves, setup, teardown),
        cmocka_unit_test_setup_teardown(leave_out, setup, teardown),
        cmocka_unit_test_setup_teardown(fit_recovers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
