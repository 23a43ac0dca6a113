/* SPDX-License-Identifier: Apache-2.0 */
/* The level of published runs: its fit, leave-out and file. */
#include "calib/level.h"
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 16

static sc_valid_row row[ROOM];
static sc_validation v;

static int fresh(void **state)
{
    memset(row, 0, sizeof row);
    v = (sc_validation){.unit = "h", .kernels = true, .rows = row};
    return setup(state);
}

/* A run that took `ratio` times as long as predicted. */
static void add(const char *publisher, double ratio, const char *unit)
{
    row[v.n_rows++] = (sc_valid_row){.id = publisher,
                                     .family = unit ? "energy" : "device-hours",
                                     .device = "h100-sxm",
                                     .publisher = publisher,
                                     .unit = unit,
                                     .counted = true,
                                     .measured = 100 * ratio,
                                     .median = 100 * ratio,
                                     .predicted = 100};
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%.17g is not %.17g", got, want);
}

/* The factor is the median of hours; energies and rows that are not compared do
 * not count. */
static void median(void **state)
{
    (void)state;
    sc_run_level l;
    add("a", 1.1, NULL);
    add("b", 1.2, NULL);
    add("c", 9, NULL);
    add("c", 50, "MWh");
    add("d", 60, NULL);
    row[4].counted = false;
    assert_int_equal(calib_level_fit(&v, &arena, &l, &err), SC_OK);
    near(l.factor, 1.2);
    assert_int_equal(l.rows, 3);
    assert_int_equal(l.publishers, 3);
    assert_true(l.low < 0 && l.high > log(9 / 1.2) / 2);
}

/* No row of a publisher moves the factor or the interval of its rows. */
static void without_publisher(void **state)
{
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        v.n_rows = 0;
        add("a", pass ? 7 : 1.3, NULL);
        add("a", pass ? 0.2 : 1.5, "MWh");
        add("b", 1.2, NULL);
        add("b", 1.6, NULL);
        add("c", 1.4, NULL);
        assert_int_equal(calib_level_leave_out(&v, &arena, &err), SC_OK);
        near(row[0].predicted, 140);
        near(row[1].predicted, 140);
        near(row[0].error, row[0].predicted / row[0].measured - 1);
        /* b by c alone, and c by b alone */
        near(row[0].low, 140 * exp(log(1.2 / 1.4)));
        near(row[0].high, 140 * exp(log(1.6 / 1.4)));
    }
    assert_int_equal(v.n_parts, 4); /* three publishers, energies */
    assert_true(v.parts[3].is_kind);
    near(v.family_mape,
         (v.parts[0].mape + v.parts[1].mape + v.parts[2].mape) / 3);
}

static bool read_level(const char *text, sc_run_level *l)
{
    sc_err_init(&err);
    return sc_run_level_read(text, strlen(text), "l.yml", &arena, l, &err) ==
           SC_OK;
}

static void reads(void **state)
{
    (void)state;
    sc_run_level l;
    assert_true(read_level("run_level: {factor: 1.5, low: -0.1, high: 0.2, "
                           "rows: 3, publishers: 2}\n",
                           &l));
    near(l.factor, 1.5);
    assert_int_equal(l.publishers, 2);
    assert_false(read_level("run_level: {factor: 1.5, low: 0.3, high: 0.2, "
                            "rows: 3, publishers: 2}\n",
                            &l));
    assert_string_equal(err.d[0].msg, "low is above high");
    assert_false(read_level("run_level: {factor: 0, low: 0, high: 0, rows: 1, "
                            "publishers: 1}\n",
                            &l));
    assert_int_equal(err.d[0].col, 21);
    assert_false(read_level("level: 1\n", &l));
    assert_string_equal(err.d[0].msg, "the file has no map 'run_level'");
}

/* The table of the repository gives the file that is built in. */
static void same_file(void **state)
{
    (void)state;
    const sc_embedded *e = sc_embedded_find("fit/whole-run.yml");
    const char *root = getenv("STEPCAST_SOURCE");
    if (!root) root = ".";
    const char *path =
        sc_sprintf(&arena, "%s/data/validation/whole-runs.csv", root);
    const char *fit = sc_sprintf(&arena, "%s/data/fit/whole-run.yml", root);
    char *text, *own;
    size_t len, n;
    sc_csv t;
    sc_text yml, report;
    sc_run_level l, builtin;
    sc_text_init(&yml);
    sc_text_init(&report);
    assert_true(e && path && fit);
    (void)sc_file_read(path, 1u << 20, &arena, &text, &len, &err);
    no_error();
    (void)sc_csv_parse(text, len, path, &arena, &t, &err);
    no_error();
    (void)sc_calibrate_whole(&t, 1, "Fitted on whole-runs.csv.", &arena, &yml,
                             &report, &err);
    no_error();
    (void)sc_file_read(fit, 1u << 20, &arena, &own, &n, &err);
    no_error();
    assert_string_equal(yml.buf, own);
    assert_true(read_level(yml.buf, &l));
    assert_int_equal(sc_run_level_builtin(&arena, &builtin, &err), SC_OK);
    near(builtin.factor, l.factor);
    assert_int_equal(builtin.rows, l.rows);
    sc_text_free(&yml);
    sc_text_free(&report);
}

/* A table of the repository, each family left out. */
static sc_validation left_out(const char *name)
{
    sc_validation out = {.unit = NULL};
    sc_validate_opts o = {.engine = SC_ENGINE_FAST};
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path =
        sc_sprintf(&arena, "%s/data/validation/%s", root ? root : ".", name);
    char *text;
    size_t len;
    sc_csv t;
    assert_non_null(path);
    (void)sc_file_read(path, 1u << 20, &arena, &text, &len, &err);
    no_error();
    (void)sc_csv_parse(text, len, path, &arena, &t, &err);
    no_error();
    (void)sc_validate_leave_out(&t, 1, "family", &o, &arena, &out, &err);
    no_error();
    return out;
}

/* Targets: device-hours within 15 % and energy within 20 % on average. */
static void published(void **state)
{
    (void)state;
    sc_validation x = left_out("whole-runs.csv");
    double hours = NAN, energy = NAN;
    for (uint32_t i = 0; i < x.n_groups; i++) {
        if (x.groups[i].device) continue;
        if (strcmp(x.groups[i].family, "energy") == 0)
            energy = x.groups[i].mape;
        else
            hours = x.groups[i].mape;
    }
    assert_true(hours < 0.15);
    assert_true(energy < 0.20);
    assert_true(x.coverage > 0.7 && x.coverage < 0.9);
}

/* Power of nodes within 10 %, of each benchmark within 15 %. */
static void power(void **state)
{
    (void)state;
    sc_validation x = left_out("power.csv");
    assert_true(x.mape < 0.10);
    assert_int_equal(x.n_parts, 8);
    for (uint32_t i = 0; i < x.n_parts; i++)
        assert_true(x.parts[i].mape < 0.15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(median, fresh, teardown),
        cmocka_unit_test_setup_teardown(without_publisher, fresh, teardown),
        cmocka_unit_test_setup_teardown(reads, fresh, teardown),
        cmocka_unit_test_setup_teardown(same_file, fresh, teardown),
        cmocka_unit_test_setup_teardown(published, fresh, teardown),
        cmocka_unit_test_setup_teardown(power, fresh, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
