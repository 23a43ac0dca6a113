/* SPDX-License-Identifier: Apache-2.0 */
/* Files of fitted forms: what is read, and what is refused where. */
#include "cost/cost.h"
#include "fixture.h"

#include <string.h>

#define HEAD "kernels:\n"
#define FORM                                                             \
    "  - class: hopper\n    kind: gemm\n    rows: 50\n    error: 0.04\n" \
    "    start: 3e-6\n    memory: 0.8\n    blend: 4\n    depth: 100\n"   \
    "    large: 0.78\n    middle: 0.74\n    small: 0.66\n"
#define TABLE "    first: [0, 5, 5]\n    count: [2, 1, 3]\n"
#define LOG   "    log: >-\n      1 2 3\n      -4 -5 6\n"

static const sc_forms *forms;

static sc_status read_text(const char *text)
{
    sc_err_init(&err);
    return sc_forms_read(text, strlen(text), "k.yml", &arena, &forms, &err);
}

static void reads(void **state)
{
    (void)state;
    assert_int_equal(read_text(HEAD FORM TABLE LOG), SC_OK);
    const sc_form *f = forms->at[SC_FIT_HOPPER][SC_FORM_GEMM];
    assert_non_null(f);
    assert_int_equal(f->rows, 50);
    assert_true(f->error == 0.04 && f->c.start == 3e-6 && f->c.memory == 0.8);
    assert_true(f->c.blend == 4 && f->c.depth == 100);
    assert_true(f->c.rate[0] == 0.78 && f->c.rate[1] == 0.74);
    assert_true(f->c.rate[2] == 0.66);
    assert_int_equal(f->table.first[1], 5);
    assert_int_equal(f->table.count[2], 3);
    static const int16_t want[] = {1, 2, 3, -4, -5, 6};
    assert_memory_equal(f->table.log, want, sizeof want);
    assert_null(forms->at[SC_FIT_HOPPER][SC_FORM_GEMM_FP8]);
    assert_null(forms->at[SC_FIT_AMPERE][SC_FORM_GEMM]);
    uint64_t hash = forms->hash;
    /* constants alone */
    assert_int_equal(read_text(HEAD FORM), SC_OK);
    assert_int_equal(forms->at[SC_FIT_HOPPER][SC_FORM_GEMM]->table.count[0], 0);
    assert_true(forms->hash != hash);
    assert_int_equal(read_text("kernels: []\n"), SC_OK);
}

/* Forms of single devices, beside those of classes. */
static void reads_devices(void **state)
{
    (void)state;
    static const char own[] = HEAD FORM
        "  - device: NVIDIA A100-PCIE-40GB\n    kind: softmax\n    rows: 7\n"
        "    error: 0.04\n    start: 2e-6\n    memory: 0.8\n    blend: 4\n"
        "    depth: 0.1\n    large: 1\n    middle: 0.3\n    small: 0.5\n"
        "    host: 2e-5\n    least: 3e-5\n    tiles: 5\n" TABLE LOG;
    assert_int_equal(read_text(own), SC_OK);
    assert_int_equal(forms->n_own, 1);
    assert_string_equal(forms->own[0].device->name, "a100-pcie-40g");
    assert_int_equal(forms->own[0].kind, SC_FORM_SOFTMAX);
    const sc_form *f = forms->own[0].form;
    assert_true(f->host == 2e-5 && f->least == 3e-5 && f->tiles == 5);
    assert_ptr_equal(
        sc_form_own_of(forms, forms->own[0].device, SC_FORM_SOFTMAX), f);
    assert_null(sc_form_own_of(forms, forms->own[0].device, SC_FORM_NORM));
    assert_non_null(forms->at[SC_FIT_HOPPER][SC_FORM_GEMM]);
}

/* Everything that changes a price changes the hash. */
static void hashes(void **state)
{
    (void)state;
    static const char *const text[] = {
        HEAD FORM TABLE LOG, HEAD FORM,
        HEAD FORM "    first: [1, 5, 5]\n    count: [2, 1, 3]\n" LOG,
        HEAD FORM "    first: [0, 5, 5]\n    count: [3, 1, 2]\n" LOG,
        HEAD FORM TABLE "    log: 1 2 3 -4 -5 7\n"};
    uint64_t hash[SC_COUNT(text)];
    for (size_t i = 0; i < SC_COUNT(text); i++) {
        assert_int_equal(read_text(text[i]), SC_OK);
        hash[i] = forms->hash;
        for (size_t j = 0; j < i; j++) assert_true(hash[i] != hash[j]);
    }
}

/* The first error of each file: its line and words of its message. */
static const struct {
    const char *text;
    uint32_t line;
    const char *words;
} wrong[] = {
    {"", 0, ""},
    {"[]\n", 0, "no list 'kernels'"},
    {"kernels: 3\n", 0, "no list 'kernels'"},
    {"parameters: {}\n", 0, "no list 'kernels'"},
    {HEAD "  - 3\n", 2, ""},
    {HEAD "  - class: hopper\n", 2, "kind"},
    {HEAD "  - class: hoper\n    kind: gemm\n", 2, "hoper"},
    {HEAD FORM "    colour: red\n", 13, "colour"},
    {HEAD FORM FORM, 13, "two forms of 'gemm' for 'hopper'"},
    {HEAD FORM LOG, 2, "belong together"},
    {HEAD FORM TABLE, 2, "belong together"},
    {HEAD FORM TABLE "    log: 1 2 3 4 5\n", 2, "needs 6 whole numbers"},
    {HEAD FORM TABLE "    log: 1 2 3 4 5 6 7\n", 2, "more than 6"},
    {HEAD FORM TABLE "    log: 1 2 3 4 5 x\n", 2, "needs 6"},
    {HEAD FORM TABLE "    log: 1 2 3 4 5 9999\n", 2, "from -5000 to 5000"},
    {HEAD FORM TABLE "    log: 1 2 3 4 5 6.5\n", 2, ""},
    {HEAD FORM "    first: [0, 5]\n    count: [2, 1, 3]\n" LOG, 13, "three"},
    {HEAD FORM "    first: [0, 5, 5, 5]\n    count: [2, 1, 3]\n" LOG, 13,
     "three"},
    {HEAD FORM "    first: 0\n    count: [2, 1, 3]\n" LOG, 13, "three"},
    {HEAD FORM "    first: [0, 5, x]\n    count: [2, 1, 3]\n" LOG, 13,
     "whole numbers from -20 to 40"},
    {HEAD FORM "    first: [0, 5, [1]]\n    count: [2, 1, 3]\n" LOG, 13,
     "whole numbers"},
    {HEAD FORM "    first: [0, 5, 5]\n    count: [2, 1, 33]\n" LOG, 14,
     "whole numbers from 1 to 32"},
    {HEAD FORM "    first: [0, 5, 5]\n    count: [2, 0, 3]\n" LOG, 14,
     "whole numbers from 1 to 32"},
    {HEAD "  - kind: gemm\n    rows: 50\n    error: 0.04\n    start: 3e-6\n"
          "    memory: 0.8\n    blend: 4\n    depth: 1\n    large: 1\n"
          "    middle: 1\n    small: 1\n",
     2, "`class` or a `device`"},
    {HEAD "  - device: no-such-thing\n    kind: gemm\n    rows: 50\n"
          "    error: 0.04\n    start: 3e-6\n    memory: 0.8\n    blend: 4\n"
          "    depth: 1\n    large: 1\n    middle: 1\n    small: 1\n",
     2, "no-such-thing"},
    {HEAD "  - class: hopper\n    kind: gemm\n    rows: 50\n    error: 0.04\n"
          "    start: 1\n",
     6, "start"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(wrong); i++) {
        const sc_forms *before = forms;
        assert_int_equal(read_text(wrong[i].text), SC_EINPUT);
        assert_true(err.n >= 1);
        assert_ptr_equal(forms, before);
        assert_string_equal(err.d[0].file, "k.yml");
        bool found = false;
        for (uint32_t j = 0; j < err.n; j++)
            found = found ||
                    (strstr(err.d[j].msg, wrong[i].words) &&
                     (wrong[i].line == 0 || err.d[j].line == wrong[i].line));
        if (!found)
            fail_msg("file %zu: line %d: %s", i, (int)err.d[0].line,
                     err.d[0].msg);
    }
}

/* One pass finds the errors of all forms. */
static void all_errors(void **state)
{
    (void)state;
    assert_int_equal(read_text(HEAD "  - class: hopper\n"
                                    "  - kind: gemm\n" FORM LOG),
                     SC_EINPUT);
    assert_true(err.n >= 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(reads), TEST(reads_devices),
                                       TEST(hashes), TEST(refuses),
                                       TEST(all_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
