/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals from held-out errors, worked by hand; and that data/fit/held-out.yml
 * belongs to the fit beside it. */
#include "calib/heldout.h"
#include "calib/stats.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12)) fail_msg("%.17g is not %.17g", got, want);
}

static void weighted_quantiles(void **state)
{
    (void)state;
    sc_weighted v[] = {{3, 1}, {1, 1}, {2, 1}};
    near(sc_weighted_quantile(v, 3, 0.5), 2);
    near(sc_weighted_quantile(v, 3, 1.0 / 3), 1.5);
    near(sc_weighted_quantile(v, 3, 0), 1);
    near(sc_weighted_quantile(v, 3, 1), 3);
    /* twice the weight is twice the row, but for the steps in between */
    sc_weighted w[] = {{1, 2}, {2, 6}};
    near(sc_weighted_quantile(w, 2, 0.125), 1);
    near(sc_weighted_quantile(w, 2, 0.625), 2);
    near(sc_weighted_quantile(w, 2, 0.375), 1.5);
    assert_true(isnan(sc_weighted_quantile(w, 0, 0.5)));
}

static sc_valid_row row(const char *family, int kind, double log_error)
{
    return (sc_valid_row){.id = "r",
                          .family = family,
                          .device = "d",
                          .model = "m",
                          .kind = (uint8_t)kind,
                          .median = exp(log_error),
                          .measured = exp(log_error),
                          .predicted = 1,
                          .sd = 1,
                          .low = NAN,
                          .high = NAN,
                          .counted = true};
}

#define ROWS 80

/* A: 40 rows, -0.2 and 0.2; B: 20 rows at 0.4; C, experts: 20 rows at -0.6. */
static void example(sc_valid_row rows[ROWS])
{
    for (int i = 0; i < ROWS; i++) {
        const char *family = i < 40 ? "A" : i < 60 ? "B" : "C";
        double error = i < 40 ? (i % 2 ? 0.2 : -0.2) : i < 60 ? 0.4 : -0.6;
        rows[i] = row(family, i < 60 ? SC_KIND_DENSE : SC_KIND_EXPERTS, error);
    }
    rows[59].kind = SC_KIND_ENCODER;
}

/* Rows of programs that are not fitted count, and families weigh alike: of A's
 * 40 and B's 20 rows, B holds the 90 %. */
static void memory_of_all_programs(void **state)
{
    (void)state;
    sc_valid_row rows[ROWS];
    sc_interval v = {.low = -1, .high = 1};
    example(rows);
    for (int i = 0; i < ROWS; i++) {
        rows[i].outcome = i < 60 ? CALIB_RAN : CALIB_UNKNOWN;
        rows[i].unfitted = i >= 40;
        rows[i].mem_predicted = 1;
        rows[i].mem_measured = i < 40 ? exp(-0.1) : exp(0.3);
    }
    assert_int_equal(calib_memory_interval(rows, 60, &arena, &v, &err), SC_OK);
    near(v.low, -0.1);
    near(v.high, 0.3);
    assert_int_equal(v.rows, 60);
    assert_int_equal(v.families, 2);
    v.low = -1;
    assert_int_equal(calib_memory_interval(rows, 10, &arena, &v, &err), SC_OK);
    near(v.low, -1); /* too few rows */
}

static void families_weigh_alike(void **state)
{
    (void)state;
    sc_valid_row rows[ROWS];
    sc_held_out h;
    example(rows);
    assert_int_equal(
        calib_held_out_intervals(rows, ROWS, NULL, &arena, &h, &err), SC_OK);
    /* sizes 0.2, 0.4 and 0.6 with a third of the weight each: C holds the
     * 80 % */
    near(h.all.low, -0.6);
    near(h.all.high, 0.6);
    assert_int_equal(h.all.rows, ROWS);
    assert_int_equal(h.all.families, 3);
    /* 59 dense rows, 0.4 in half of the weight, then drawn towards all by 20
     * of 79 */
    assert_int_equal(h.kind[SC_KIND_DENSE].rows, 59);
    assert_int_equal(h.kind[SC_KIND_DENSE].families, 2);
    near(h.kind[SC_KIND_DENSE].low, -(59 * 0.4 + 20 * 0.6) / 79);
    near(h.kind[SC_KIND_DENSE].high, (59 * 0.4 + 20 * 0.6) / 79);
    near(h.kind[SC_KIND_EXPERTS].high, 0.6);
    /* one row, or none: the interval of all */
    assert_int_equal(h.kind[SC_KIND_ENCODER].rows, 1);
    near(h.kind[SC_KIND_ENCODER].low, -0.6);
    near(h.kind[SC_KIND_ADAPTERS].high, 0.6);
    /* a job's deviation is the unit */
    for (int i = 0; i < ROWS; i++) rows[i].sd = 2;
    assert_int_equal(
        calib_held_out_intervals(rows, ROWS, NULL, &arena, &h, &err), SC_OK);
    near(h.all.high, 0.3);
}

static const sc_param one_param = SC_P_STEP_FIXED;
static const double variance_1 = 1;
static const sc_covariance cov_1 = {1, &one_param, &variance_1};

/* Rows with traits; a fifth of each step depends on the parameter. */
static void held(sc_valid_row *rows, uint32_t n, calib_held *h)
{
    static const sc_share share = {SC_P_STEP_FIXED, 0.2};
    for (uint32_t i = 0; i < n; i++) {
        h[i] = (calib_held){
            &rows[i], {.n_shares = 1, .share = &share}, &cov_1, NULL};
        for (int k = 0; k < (int)SC_N_TRAIT_NAMES; k++)
            h[i].traits.name[k] = rows[i].family;
        for (int k = 0; k < (int)SC_N_TRAIT_SIZES; k++) h[i].traits.size[k] = 1;
        h[i].traits.key = i;
    }
}

static void without_its_own_family(void **state)
{
    (void)state;
    sc_valid_row rows[ROWS];
    calib_held h[ROWS];
    sc_held_out v;
    sc_effects e;
    example(rows);
    held(rows, ROWS, h);
    assert_int_equal(calib_nested_intervals(h, ROWS, rows, ROWS, &arena, &err),
                     SC_OK);
    double low = rows[70].low, high = rows[70].high;
    assert_false(calib_inside(&rows[70]));
    assert_true(calib_inside(&rows[1]));
    /* for C only A and B are left, and no experts */
    assert_int_equal(calib_effects_fit(h, ROWS, "C", &arena, &e, &err), SC_OK);
    calib_deviations(h, ROWS, &e);
    near(rows[70].sd, sc_effects_deviation(&e, 1, &cov_1, &h[70].traits));
    assert_int_equal(
        calib_held_out_intervals(rows, ROWS, "C", &arena, &v, &err), SC_OK);
    near(v.kind[SC_KIND_EXPERTS].low, v.all.low);
    near(low, exp(v.all.low * rows[70].sd));
    near(high, exp(v.all.high * rows[70].sd));
    /* too few others: what stood there stays */
    example(rows);
    held(rows, 59, h);
    assert_int_equal(calib_nested_intervals(h, 59, rows, 59, &arena, &err),
                     SC_OK);
    assert_true(isnan(rows[0].low) && rows[58].low > 0);
}

/* A row whose step depends on an uncertain parameter has a wider interval. */
static void deviations_add(void **state)
{
    (void)state;
    sc_valid_row r[1] = {row("A", SC_KIND_DENSE, 0)};
    calib_held h[1];
    sc_effects e = {{[SC_EFFECT_PARAMETERS] = 2, [SC_EFFECT_JOB] = 0.3}};
    held(r, 1, h);
    calib_deviations(h, 1, &e);
    double noise = SC_ANCHOR_NOISE;
    near(r[0].sd, sqrt(0.4 * 0.4 + 0.3 * 0.3 + noise * noise));
    near(sc_effects_deviation(&e, 1, NULL, &h[0].traits),
         sqrt(0.3 * 0.3 + noise * noise));
    h[0].traits.unseen = true;
    near(sc_effects_deviation(&e, 1.5, &cov_1, &h[0].traits),
         sqrt(1.5 * 1.5 * (0.4 * 0.4 + 0.3 * 0.3) + noise * noise));
}

static void file_reads_back(void **state)
{
    (void)state;
    sc_valid_row rows[ROWS];
    sc_held_out h, read;
    sc_text text, report;
    example(rows);
    sc_held_out_none(&h);
    assert_int_equal(
        calib_held_out_intervals(rows, ROWS, NULL, &arena, &h, &err), SC_OK);
    const sc_counted arch[] = {{"ampere", 3}, {"hopper", 77}};
    h.arch = h.program = arch;
    h.n_archs = 2;
    h.n_programs = 1;
    h.fit = 0x0123456789abcdef;
    sc_text_init(&text);
    sc_text_init(&report);
    calib_held_out_write(&h, rows, ROWS, "made up\nby hand", &text);
    assert_non_null(strstr(text.buf, "# made up\n# by hand\n"));
    assert_int_equal(
        sc_held_out_read(text.buf, text.len, "h.yml", &arena, &read, &err),
        SC_OK);
    assert_true(fabs(read.kind[SC_KIND_DENSE].low - h.kind[SC_KIND_DENSE].low) <
                1e-3);
    assert_int_equal(read.kind[SC_KIND_DENSE].families, 2);
    assert_true(read.fit == h.fit && read.unseen == CALIB_UNSEEN);
    assert_int_equal(sc_held_out_rows(read.arch, read.n_archs, "hopper"), 77);
    assert_int_equal(sc_held_out_rows(read.program, read.n_programs, "hopper"),
                     0);
    calib_held_out_report(&h, rows, ROWS, &report);
    assert_non_null(strstr(report.buf, "experts         20         1"));
    sc_text_free(&text);
    sc_text_free(&report);
}

static void malformed(void **state)
{
    (void)state;
    static const char good[] =
        "kinds:\n"
        "  all: {low: -0.1, high: 0.1, rows: 9, families: 2}\n"
        "  adapters: {low: -0.1, high: 0.1, rows: 9, families: 2}\n"
        "  encoder: {low: -0.1, high: 0.1, rows: 9, families: 2}\n"
        "  experts: {low: -0.1, high: 0.1, rows: 9, families: 2}\n"
        "  dense: {low: -0.1, high: 0.1, rows: 9, families: 2}\n"
        "  graph: {low: -0.1, high: 0.1, rows: 9, families: 2}\n"
        "unseen: 1.5\nfit: \"0123456789abcdef\"\n"
        "architectures: {ampere: 9}\nsoftware: {x: 9}\n"
        "memory: {low: -0.2, high: 0.3, rows: 9, families: 2}\n";

    static const struct {
        const char *from, *to;
        sc_code code;
        uint32_t line, n;
    } bad[] = {
        {"kinds:\n", "kind:\n", SC_C_MISSING, 1, 1},
        {"low: -0.1", "low: 0.1", SC_C_RANGE, 2, 1},
        {"high: 0.1, rows: 9", "high: 9, rows: 9e10", SC_C_RANGE, 2, 2},
        {"  experts:", "  expert:", SC_C_MISSING, 2, 1},
        {"unseen: 1.5", "unseen: 0.5", SC_C_RANGE, 8, 1},
        {"0123456789abcdef", "0123456789abcdeg", SC_C_TYPE, 9, 1},
        {"{ampere: 9}", "[ampere]", SC_C_MISSING, 1, 1},
        {"{x: 9}", "{x: {y: 9}}", SC_C_MISSING, 11, 1},
        {"{x: 9}", "{x: -1}", SC_C_RANGE, 11, 1},
        {"low: -0.2", "low: 0.2", SC_C_RANGE, 12, 1},
    };

    sc_held_out h;
    assert_int_equal(
        sc_held_out_read(good, strlen(good), "h.yml", &arena, &h, &err), SC_OK);
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        const char *at = strstr(good, bad[i].from);
        assert_non_null(at);
        const char *text =
            sc_sprintf(&arena, "%.*s%s%s", (int)(at - good), good, bad[i].to,
                       at + strlen(bad[i].from));
        assert_non_null(text);
        sc_err_init(&err);
        assert_int_equal(
            sc_held_out_read(text, strlen(text), "h.yml", &arena, &h, &err),
            SC_EINPUT);
        if (err.n != bad[i].n || err.d[0].code != bad[i].code ||
            err.d[0].line != bad[i].line)
            fail_msg("%s: %u errors, line %u: %s", bad[i].to, err.n,
                     err.d[0].line, err.d[0].msg);
    }
}

/* ---- the file of the repository ---------------------------------------------- */

static const char *source(void)
{
    const char *root = getenv("STEPCAST_SOURCE");
    return root ? root : ".";
}

static char *load(const char *name, size_t *len)
{
    char *text;
    const char *path = sc_sprintf(&arena, "%s/data/%s", source(), name);
    assert_non_null(path);
    if (sc_file_read(path, (size_t)64 << 20, &arena, &text, len, &err) != SC_OK)
        fail_msg("%s: %s", path, err.d[0].msg);
    return text;
}

static void belongs_to_the_fit(void **state)
{
    (void)state;
    static const char *const files[] = {"fit/network.yml", "fit/step.yml",
                                        "fit/program.yml", "fit/graph.yml"};
    size_t n;
    uint64_t hash = 0;
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const char *fit = load(files[i], &n);
        hash = sc_hash(fit, n, hash);
    }
    const char *text = load("fit/held-out.yml", &n);
    sc_held_out h;
    uint32_t archs = 0, programs = 0;
    if (sc_held_out_read(text, n, "held-out.yml", &arena, &h, &err) != SC_OK)
        no_error();
    if (h.fit != hash)
        fail_msg("data/fit/held-out.yml is of another fit: run `stepcast "
                 "calibrate --truth data/validation --held-out`");
    for (uint32_t i = 0; i < h.n_archs; i++) archs += h.arch[i].rows;
    for (uint32_t i = 0; i < h.n_programs; i++) programs += h.program[i].rows;
    assert_int_equal(archs, h.all.rows);
    /* Devices of graphs are those of no fit. */
    assert_int_equal(programs, h.all.rows + h.kind[SC_KIND_GRAPH].rows);
    /* at most one parameter is fitted on 20 rows */
    sc_param which[SC_N_PARAMS];
    uint32_t free_params = calib_fit_free(SC_SET_STEP, which);
    assert_true(free_params > 0 &&
                free_params * CALIB_ROWS_PER_PARAMETER <= h.all.rows);
}

/* Mean of log(measured / predicted) of a family, as the file tells it. */
static double told(const char *family)
{
    size_t len;
    sc_node *root = NULL;
    char *text = load("fit/held-out.yml", &len);
    assert_int_equal(
        sc_doc_parse(text, len, SC_FMT_YAML, "f", &arena, &root, &err), SC_OK);
    const sc_node *all = sc_node_get(root, "families");
    const sc_node *one = all ? sc_node_get(all, family) : NULL;
    const sc_node *bias = one ? sc_node_get(one, "bias") : NULL;
    assert_non_null(bias);
    return strtod(bias->text, NULL);
}

static void one_family_again(void **state)
{
    (void)state;
    static const char *const names[] = {"vtrain-multi", "bloom",      "papers",
                                        "llm-foundry",  "torchtitan", "nvidia",
                                        "mlperf",       "tpu",        "more"};
    static const char family[] = "korthikanti-2022";
    sc_csv t[SC_COUNT(names)];
    sc_validation v;
    sc_validate_opts o = {.family = family};
    double sum = 0;
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        size_t len;
        const char *name = sc_sprintf(&arena, "validation/%s.csv", names[i]);
        assert_non_null(name);
        char *text = load(name, &len);
        assert_int_equal(sc_csv_parse(text, len, name, &arena, &t[i], &err),
                         SC_OK);
    }
    if (sc_validate_leave_out(t, SC_COUNT(t), "family", &o, &arena, &v, &err))
        no_error();
    assert_int_equal(v.n_rows, 4);
    assert_false(v.nested);
    for (uint32_t i = 0; i < 4; i++)
        sum += log(v.rows[i].median / v.rows[i].predicted);
    if (!(fabs(sum / 4 - told(family)) < 2e-3))
        fail_msg("%s is off by %g, data/fit/held-out.yml says %g: run "
                 "`stepcast calibrate --truth data/validation --held-out`",
                 family, sum / 4, told(family));
}

/* Minutes: only with STEPCAST_LONG. */
static void whole_file_again(void **state)
{
    (void)state;
    if (!getenv("STEPCAST_LONG")) skip();
    size_t len;
    char *text = load("fit/held-out.yml", &len);
    sc_text yml, report;
    sc_text_init(&yml);
    sc_text_init(&report);
    const char *dir = sc_sprintf(&arena, "%s/data/validation", source());
    const char *fit = sc_sprintf(&arena, "%s/data/fit", source());
    assert_true(dir && fit);
    if (sc_calibrate_held_out(dir, fit, NULL, &arena, &yml, &report, &err) !=
        SC_OK)
        no_error();
    if (yml.len != len || memcmp(yml.buf, text, len) != 0)
        fail_msg("data/fit/held-out.yml is not what `stepcast calibrate "
                 "--truth data/validation --held-out` writes now:\n%s",
                 yml.buf);
    sc_text_free(&yml);
    sc_text_free(&report);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW_BUILD
#endif
#endif

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(weighted_quantiles),
        TEST(memory_of_all_programs),
        TEST(families_weigh_alike),
        TEST(without_its_own_family),
        TEST(deviations_add),
        TEST(file_reads_back),
        TEST(malformed),
        TEST(belongs_to_the_fit),
#ifndef SLOW_BUILD
        TEST(one_family_again),
        TEST(whole_file_again),
#endif
    };
#ifdef SLOW_BUILD
    (void)one_family_again; /* a fit takes minutes under a sanitizer */
    (void)whole_file_again;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
