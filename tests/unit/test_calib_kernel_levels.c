/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fit of forms to the shared tables of kernels: data/fit/kernels.yml is what
 * the tables give, and nothing that steps fit makes up for wrong kernels.
 * Skipped where the tables are not at hand, and in builds in which the fit
 * takes minutes.
 */
#include "calib/calib.h"
#include "calib/kernel_table.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *shared;

/* In the order of `calibrate --kernels` (docs/dev/kernels.md). */
static const char *const files[] = {"quant.csv", "gemm.csv", "attention.csv",
                                    "mla.csv", "moe.csv"};

static sc_csv load(const char *file)
{
    char path[1024], *text;
    size_t len;
    sc_csv t = {0};
    snprintf(path, sizeof path, "%s/data/aiconfigurator/%s", shared, file);
    if (sc_file_read(path, (size_t)64 << 20, &arena, &text, &len, &err) !=
        SC_OK) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    (void)sc_csv_parse(text, len, sc_strdup(&arena, path), &arena, &t, &err);
    no_error();
    return t;
}

static void file_is_current(void **state)
{
    (void)state;
    sc_csv t[SC_COUNT(files)];
    sc_text yml, report;
    char path[1024], *text;
    size_t len;
    const char *root = getenv("STEPCAST_SOURCE");
    if (getenv("STEPCAST_SLOW")) {
        print_message("skipped: a fit takes minutes in this build\n");
        skip();
    }
    for (size_t i = 0; i < SC_COUNT(files); i++) t[i] = load(files[i]);
    sc_text_init(&yml);
    sc_text_init(&report);
    (void)sc_calibrate_kernels(t, SC_COUNT(files),
                               "Fitted on quant.csv, gemm.csv, attention.csv, "
                               "mla.csv, moe.csv.",
                               &arena, &yml, &report, &err);
    no_error();
    snprintf(path, sizeof path, "%s/data/fit/kernels.yml", root ? root : ".");
    (void)sc_file_read(path, (size_t)1 << 24, &arena, &text, &len, &err);
    no_error();
    if (len != yml.len || memcmp(text, yml.buf, len) != 0)
        fail_msg(
            "%s is not what `stepcast calibrate --kernels` writes now:\n%s",
            path, report.buf);
    sc_text_free(&yml);
    sc_text_free(&report);
}

/* ---- no compensation ------------------------------------------------------------ */

#define MOST_CLASSES 128

typedef struct kernel_class {
    char name[96];
    uint32_t n;
    double *ratio;
} kernel_class;

static kernel_class class_of[MOST_CLASSES];
static uint32_t n_classes;

/* Grouped products of few tokens depend on which experts they hit, and have
 * their own distributions of load. */
static bool counts(const calib_kernel_row *r, const sc_csv *t, uint32_t i)
{
    if (r->reason || r->launch != CALIB_LAUNCH_GRAPH) return false;
    if (r->table != CALIB_T_MOE) return true;
    int tokens = sc_csv_col(t, "tokens"), load_ = sc_csv_col(t, "distribution");
    return strcmp(sc_csv_get(t, i, load_), "balanced") == 0 &&
           strtod(sc_csv_get(t, i, tokens), NULL) >= 1024;
}

static void add(const calib_kernel_row *r, double ratio, uint32_t most)
{
    char name[96];
    uint32_t i = 0;
    snprintf(name, sizeof name, "%d %s %s", (int)r->table, r->dtype,
             r->device->name);
    while (i < n_classes && strcmp(class_of[i].name, name) != 0) i++;
    assert_true(i < MOST_CLASSES);
    kernel_class *c = &class_of[i];
    if (i == n_classes) {
        n_classes++;
        memcpy(c->name, name, sizeof name);
        c->n = 0;
        c->ratio = SC_NEW_N(&arena, double, most);
    }
    c->ratio[c->n++] = ratio;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* No class of kernels may be off by more. */
static const double most_off = 0.12;

static void no_compensation(void **state)
{
    (void)state;
    sc_cost cost;
    uint32_t wrong = 0;
    n_classes = 0;
    (void)sc_cost_builtin(&arena, &cost, &err);
    no_error();
    cost.burst = true;
    for (size_t f = 0; f < SC_COUNT(files); f++) {
        sc_csv t = load(files[f]);
        calib_kernel_row *row = NULL;
        uint32_t n = 0;
        (void)calib_kernel_rows_read(&t, &arena, &row, &n, &err);
        no_error();
        assert_int_equal(n, t.n_rows);
        for (uint32_t i = 0; i < n; i++)
            if (counts(&row[i], &t, i))
                add(&row[i],
                    calib_kernel_predict(&row[i], &cost) / row[i].seconds, n);
    }
    for (uint32_t i = 0; i < n_classes; i++) {
        kernel_class *c = &class_of[i];
        qsort(c->ratio, c->n, sizeof *c->ratio, ascending);
        double m = c->ratio[c->n / 2];
        bool off = fabs(m - 1) > most_off;
        print_message("%s%-40s %5u  median %.3f\n", off ? "OFF " : "", c->name,
                      c->n, m);
        wrong += off;
    }
    assert_true(n_classes > 20);
    assert_int_equal(wrong, 0);
}

/* What steps fit is a level, and it is that of clocks under load. */
static void levels(void **state)
{
    (void)state;
    static const sc_param p[] = {SC_P_SUSTAINED_AMPERE, SC_P_SUSTAINED_HOPPER,
                                 SC_P_SUSTAINED_BLACKWELL};
    sc_cost cost;
    (void)sc_cost_builtin(&arena, &cost, &err);
    no_error();
    for (size_t i = 0; i < SC_COUNT(p); i++)
        if (!(cost.p[p[i]] >= 0.7 && cost.p[p[i]] <= 1.05))
            fail_msg("%s is %g", sc_params[p[i]].name, cost.p[p[i]]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(levels, setup, teardown),
        cmocka_unit_test_setup_teardown(no_compensation, setup, teardown),
        cmocka_unit_test_setup_teardown(file_is_current, setup, teardown)};
    shared = getenv("STEPCAST_SHARED");
    if (shared == NULL || strlen(shared) > 400) {
        printf("skipped: STEPCAST_SHARED is not set, it holds the tables\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
