/* SPDX-License-Identifier: Apache-2.0 */
/* The fit of forms: made-up kernels give their form back, the file of
 * data/fit is what the tables give, and the fit of steps moves only levels. */
#include "calib/calib.h"
#include "calib/kernel_table.h"
#include "calib/kernelfit.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- made-up kernels ---------------------------------------------------------- */

static const sc_form_constants truth = {4e-6, 0.75, 3, 150, {0.8, 0.7, 0.6}};
static const sc_form_constants begin = {3e-6, 0.8, 4, 100, {0.78, 0.74, 0.66}};

/* Between -1 and 1, the same in every run. */
static double noise(uint32_t i)
{
    return 2.0 * (double)(sc_hash(&i, sizeof i, 7) >> 11) / 0x1p53 - 1;
}

static sc_form_use product(uint32_t i)
{
    sc_form_use use = {
        .kind = SC_FORM_GEMM,
        .on = {.units = 108, .flops = 312e12, .bandwidth = 2e12}};
    sc_form_product *p = &use.product;
    *p = (sc_form_product){.m = exp2(i % 13), .batch = 1, .split = 8};
    p->n = exp2(7 + i / 13 % 7);
    p->k = exp2(7 + i / 91 % 7);
    p->bytes = 2 * (p->m * p->k + p->n * p->k + p->m * p->n);
    sc_form_place(&use);
    return use;
}

#define MADE (13 * 7 * 7)

/* Kernels of a form with these constants and corrections, times noise. */
static kernelfit_sample *made(const sc_form_table *t, double spread)
{
    kernelfit_sample *s = SC_NEW_N(&arena, kernelfit_sample, MADE);
    assert_non_null(s);
    for (uint32_t i = 0; i < MADE; i++) {
        s[i] = (kernelfit_sample){.use = {product(i)}, .n = 1, .weight = 1};
        double seconds = sc_form_physical(&truth, &s[i].use[0]);
        if (t) seconds *= sc_form_factor(t, s[i].use[0].at);
        s[i].seconds = seconds * exp(spread * noise(i));
        s[i].fold = (uint8_t)(sc_hash(&i, sizeof i, 0) % KERNELFIT_FOLDS);
        s[i].physical[0] = seconds; /* replaced by those who fit a table */
    }
    return s;
}

static double mean_error(const kernelfit_sample *s, const sc_form_constants *c)
{
    double sum = 0;
    for (uint32_t i = 0; i < MADE; i++)
        sum += fabs(sc_form_physical(c, &s[i].use[0]) /
                        sc_form_physical(&truth, &s[i].use[0]) -
                    1);
    return sum / MADE;
}

/* 5 % of noise: constants that shapes determine come back, and so do times. */
static void finds_constants(void **state)
{
    (void)state;
    kernelfit_sample *s = made(NULL, 0.05);
    sc_form_constants c = begin, again = begin;
    double before = mean_error(s, &c);
    kernelfit_constants(s, MADE, &c);
    assert_true(before > 0.05);
    if (mean_error(s, &c) > 0.02)
        fail_msg("%g from %g", mean_error(s, &c), before);
    assert_true(fabs(c.memory / truth.memory - 1) < 0.1);
    assert_true(fabs(c.start / truth.start - 1) < 0.1);
    assert_true(fabs(c.rate[0] / truth.rate[0] - 1) < 0.05);
    kernelfit_constants(s, MADE, &again);
    assert_memory_equal(&c, &again, sizeof c);
}

/* A few rows that are wrong by a factor of ten do not decide. */
static void outliers(void **state)
{
    (void)state;
    kernelfit_sample *s = made(NULL, 0.02);
    for (uint32_t i = 0; i < MADE; i += 40) s[i].seconds *= 10;
    sc_form_constants c = begin;
    kernelfit_constants(s, MADE, &c);
    assert_true(mean_error(s, &c) < 0.02);
    assert_true(kernelfit_robust(0) == 1);
    assert_true(kernelfit_robust(0.8) < 0.11 && kernelfit_robust(-0.8) > 0.09);
}

/* ---- tables ------------------------------------------------------------------- */

#define SIDE 13
#define SIZE (SIDE * 8 * 8)

static int16_t wave[SIZE];

/* Smooth corrections of up to 40 %, on axes of powers of two. */
static sc_form_table corrections(void)
{
    for (int i = 0; i < SIZE; i++) {
        double x = i / 64, y = i / 8 % 8, z = i % 8;
        wave[i] =
            (int16_t)round(200 * sin(x / 2.5) + 100 * cos(y / 2) + 40 * z);
    }
    return (sc_form_table){{0, 7, 7}, {SIDE, 8, 8}, wave};
}

static double *new_log(const sc_form_table *t)
{
    return SC_NEW_N(&arena, double,
                    (size_t)t->count[0] * t->count[1] * t->count[2]);
}

/* A fold that the fit lacks is predicted from the others. */
static void left_out_fold(void **state)
{
    (void)state;
    sc_form_table t = corrections();
    kernelfit_sample *s = made(&t, 0.02);
    double *log_ = new_log(&t), held = 0, plain = 0;
    for (uint32_t i = 0; i < MADE; i++)
        s[i].physical[0] = sc_form_physical(&truth, &s[i].use[0]);
    uint32_t n = 0;
    for (int fold = 0; fold < KERNELFIT_FOLDS; fold++) {
        assert_int_equal(kernelfit_table(s, MADE, fold, &t, log_, &arena, &err),
                         SC_OK);
        for (uint32_t i = 0; i < MADE; i++) {
            if (s[i].fold != fold) continue;
            double predicted = exp(kernelfit_log_time(&s[i], &t, log_));
            held += fabs(predicted / s[i].seconds - 1);
            plain += fabs(s[i].physical[0] / s[i].seconds - 1);
            n++;
        }
    }
    assert_int_equal(n, MADE);
    if (held / n > 0.03 || plain / n < 0.15)
        fail_msg("%g left out, %g without a table", held / n, plain / n);
}

/* Two kernels of one row share its residual. */
static void rows_of_two(void **state)
{
    (void)state;
    sc_form_table t = corrections();
    kernelfit_sample *s = made(&t, 0);
    double *log_ = new_log(&t), worst = 0;
    for (uint32_t i = 0; i < MADE; i++) {
        sc_form_use other = product((i + 40) % MADE);
        double one = sc_form_physical(&truth, &s[i].use[0]);
        double two = sc_form_physical(&truth, &other);
        s[i].seconds += two * sc_form_factor(&t, other.at);
        s[i].use[1] = other;
        s[i].n = 2;
        s[i].physical[0] = one;
        s[i].physical[1] = two;
    }
    assert_int_equal(kernelfit_table(s, MADE, -1, &t, log_, &arena, &err),
                     SC_OK);
    for (uint32_t i = 0; i < MADE; i++)
        worst = fmax(worst, fabs(kernelfit_log_time(&s[i], &t, log_) -
                                 log(s[i].seconds)));
    if (worst > 0.1) fail_msg("%g", worst);
}

/* ---- monotone ------------------------------------------------------------------ */

/* Steps that fall are pooled, by weight; those that rise stay. */
static void repairs_a_line(void **state)
{
    (void)state;
    sc_form_table t = {{0, 0, 0}, {5, 1, 1}, NULL};
    double rise[15] = {0, 1, 2, 3, 4}, weight[5] = {1, 1, 3, 1, 1};
    /* times 0, 3, 1, 3, 5: the second and the third are 1.5 on average */
    double log_[5] = {0, 2, -1, 0, 1};
    kernelfit_monotone(&t, rise, weight, log_);
    const double want[5] = {0, 0.5, -0.5, 0, 1};
    for (int i = 0; i < 5; i++) assert_true(fabs(log_[i] - want[i]) < 1e-12);
    double again[5];
    memcpy(again, log_, sizeof again);
    kernelfit_monotone(&t, rise, weight, again);
    for (int i = 0; i < 5; i++) assert_true(fabs(log_[i] - again[i]) < 1e-12);
}

static void repairs_a_table(void **state)
{
    (void)state;

    enum { N = 6 * 5 * 4 };

    sc_form_table t = {{0, 0, 0}, {6, 5, 4}, NULL};
    double rise[3 * N], weight[N], log_[N], before[N];
    double moved = 0;
    for (uint32_t i = 0; i < N; i++) {
        rise[i] = 0.2 * (i / 20);
        rise[N + i] = 0.3 * (i / 4 % 5);
        rise[2 * N + i] = 0.1 * (i % 4);
        before[i] = log_[i] = 0.3 * noise(i);
        weight[i] = 1 + noise(i + 1000) * 0.5;
    }
    kernelfit_monotone(&t, rise, weight, log_);
    static const uint32_t stride[3] = {20, 4, 1}, count[3] = {6, 5, 4};
    for (uint32_t i = 0; i < N; i++) {
        moved = fmax(moved, fabs(log_[i] - before[i]));
        for (int axis = 0; axis < 3; axis++) {
            if (i / stride[axis] % count[axis] + 1 >= count[axis]) continue;
            uint32_t j = i + stride[axis];
            const double *r = rise + (size_t)axis * N;
            assert_true(log_[j] + r[j] > log_[i] + r[i] - 0.01);
        }
    }
    assert_true(moved > 0.05 && moved < 0.61);
}

/* ---- files --------------------------------------------------------------------- */

/* Rows of a table that a form makes: the whole path from text to file. */
static sc_csv table_of(const char *name)
{
    sc_text text;
    sc_csv t = {0};
    const sc_device *d = device("a100-sxm-80g");
    sc_text_init(&text);
    sc_text_add(&text, "device,software,dtype,m,n,k,seconds\n");
    for (uint32_t i = 0; i < MADE; i++) {
        sc_form_use use = product(i);
        use.on = (sc_form_device){.units = d->units,
                                  .flops = d->peak[SC_BF16],
                                  .bandwidth = d->mem_bw};
        sc_text_add(&text, "a100,x,bf16,%.0f,%.0f,%.0f,%.6e\n", use.product.m,
                    use.product.n, use.product.k,
                    sc_form_physical(&truth, &use) * exp(0.02 * noise(i)));
    }
    assert_int_equal(sc_csv_parse(sc_strdup(&arena, text.buf), text.len, name,
                                  &arena, &t, &err),
                     SC_OK);
    sc_text_free(&text);
    return t;
}

static void writes_a_file(void **state)
{
    (void)state;
    sc_text yml[2], report[2];
    const sc_forms *forms = NULL;
    sc_csv t = table_of("gemm.csv");
    for (int i = 0; i < 2; i++) {
        sc_text_init(&yml[i]);
        sc_text_init(&report[i]);
        assert_int_equal(sc_calibrate_kernels(&t, 1, "Fitted on gemm.csv.",
                                              &arena, &yml[i], &report[i],
                                              &err),
                         SC_OK);
    }
    assert_int_equal(yml[0].len, yml[1].len);
    assert_memory_equal(yml[0].buf, yml[1].buf, yml[0].len);
    assert_string_equal(report[0].buf, report[1].buf);
    assert_non_null(strstr(yml[0].buf, "# Fitted on gemm.csv."));
    assert_non_null(strstr(report[0].buf, "ampere      gemm"));
    if (sc_forms_read(yml[0].buf, yml[0].len, "k.yml", &arena, &forms, &err) !=
        SC_OK)
        fail_msg("%s", err.d[0].msg);
    for (int fit = 0; fit < (int)SC_N_FIT_CLASSES; fit++)
        for (int kind = 0; kind < (int)SC_N_FORMS; kind++)
            assert_true((forms->at[fit][kind] != NULL) ==
                        (fit == SC_FIT_AMPERE && kind == SC_FORM_GEMM));
    const sc_form *f = forms->at[SC_FIT_AMPERE][SC_FORM_GEMM];
    assert_int_equal(f->rows, MADE);
    assert_true(f->error > 0.005 && f->error < 0.03);
    assert_true(fabs(f->c.memory / truth.memory - 1) < 0.1);
    for (int i = 0; i < 2; i++) {
        sc_text_free(&yml[i]);
        sc_text_free(&report[i]);
    }
}

/* Too few rows make no form, and without a form there is no file. */
static void too_few_rows(void **state)
{
    (void)state;
    sc_text yml, report;
    sc_csv t = table_of("gemm.csv");
    t.n_rows = 39;
    sc_text_init(&yml);
    sc_text_init(&report);
    assert_int_equal(
        sc_calibrate_kernels(&t, 1, "x", &arena, &yml, &report, &err),
        SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "40 rows"));
    sc_text_free(&yml);
    sc_text_free(&report);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(finds_constants), TEST(outliers),       TEST(left_out_fold),
        TEST(rows_of_two),     TEST(repairs_a_line), TEST(repairs_a_table),
        TEST(writes_a_file),   TEST(too_few_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
