/* SPDX-License-Identifier: Apache-2.0 */
/* A validation as JSON and as text; bars; the text of a fit file. */
#include "calib/fitfile.h"
#include "calib/stats.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static sc_arena arena;
static sc_err err;
static sc_text text;

static int setup(void **state)
{
    (void)state;
    sc_arena_init(&arena, (size_t)16 << 20);
    sc_err_init(&err);
    sc_text_init(&text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sc_text_free(&text);
    sc_arena_free(&arena);
    return 0;
}

static const char *const said[] = {"vocabulary 51200"};

static sc_valid_row rows[3];

static sc_validation example(void)
{
    rows[0] = (sc_valid_row){.id = "r1",
                             .family = "f",
                             .device = "A100",
                             .model = "m",
                             .measured = 10,
                             .predicted = 10.5,
                             .error = 0.05,
                             .low = 9,
                             .high = 12,
                             .mem_measured = 2e9,
                             .mem_predicted = 1.5e9,
                             .config_key = 1,
                             .n_assumptions = 1};
    rows[0].assumptions = SC_NEW_N(&arena, const char *, 1);
    assert_non_null(rows[0].assumptions);
    rows[0].assumptions[0] = said[0];
    rows[1] = rows[0];
    rows[1].id = "r2";
    rows[1].n_assumptions = 0;
    rows[1].mem_measured = NAN;
    rows[2] = rows[1];
    rows[2].id = "r3";
    rows[2].family = "g";
    rows[2].reason = "unknown device 'X'";
    rows[2].predicted = rows[2].error = NAN;
    rows[2].low = rows[2].high = rows[2].mem_predicted = NAN;
    sc_validation v = {.unit = "s", .n_rows = 3, .rows = rows};
    assert_int_equal(calib_mark_repeats(rows, 3, &arena, &err), SC_OK);
    assert_int_equal(calib_summarise(&v, &arena, &err), SC_OK);
    return v;
}

static const sc_node *need(const sc_node *map, const char *key)
{
    const sc_node *n = sc_node_get(map, key);
    if (!n) fail_msg("no key %s", key);
    return n;
}

static void json(void **state)
{
    (void)state;
    sc_validation v = example();
    sc_json j;
    sc_json_init(&j, false);
    sc_validation_json(&v, &j);
    assert_false(j.failed);
    sc_node *root;
    assert_int_equal(
        sc_doc_parse(j.buf, j.len, SC_FMT_JSON, "out", &arena, &root, &err),
        SC_OK);
    assert_string_equal(need(root, "schema")->text, "stepcast.validate/1");
    assert_string_equal(need(root, "mape")->text, "0.050000000000000044");
    assert_string_equal(need(root, "skipped")->text, "1");
    const sc_node *r = need(root, "rows")->child;
    assert_int_equal(need(root, "rows")->n, 3);
    assert_string_equal(need(r, "id")->text, "r1");
    assert_string_equal(need(r, "measured_s")->text, "10");
    assert_string_equal(need(r, "predicted_s")->text, "10.5");
    assert_string_equal(need(r, "error")->text, "0.05");
    assert_string_equal(need(r, "assumptions")->child->text, said[0]);
    assert_string_equal(need(r, "predicted_memory_bytes")->text, "1500000000");
    assert_null(sc_node_get(r, "reason"));
    r = r->next;
    assert_string_equal(need(r, "counted")->text, "false");
    assert_null(sc_node_get(r, "predicted_memory_bytes"));
    r = r->next;
    assert_int_equal(need(r, "predicted_s")->kind, SC_N_NULL);
    assert_string_equal(need(r, "reason")->text, "unknown device 'X'");
    const sc_node *g = need(root, "groups")->child;
    assert_int_equal(need(root, "groups")->n, 4);
    assert_string_equal(need(g, "device")->text, "A100");
    assert_int_equal(need(g, "kendall_tau")->kind, SC_N_NULL);
    g = g->next->next;
    assert_int_equal(need(g, "device")->kind, SC_N_NULL);
    sc_json_free(&j);
}

static void has(const char *what)
{
    if (!strstr(text.buf, what)) fail_msg("no \"%s\" in:\n%s", what, text.buf);
}

static void tables(void **state)
{
    (void)state;
    sc_validation v = example();
    sc_validation_text(&v, true, &text);
    has("row    measured s  predicted s    err %\n"
        "r1        10.0000      10.5000    +5.00\n"
        "r2        10.0000      10.5000    +5.00  (repetition)\n"
        "r3     skipped: unknown device 'X'\n");
    has("\nf       (all)        2     0    5.00    5.00    5.00   +5.00"
        "       -       -       -   25.00   25.00\n");
    assert_null(strstr(text.buf, "\ng ")); /* nothing to judge it by */
    has("1 of 3 rows skipped\n     1  unknown device 'X'\n");
    size_t all = text.len;
    sc_text_free(&text);
    sc_text_init(&text);
    sc_validation_text(&v, false, &text);
    assert_true(text.len < all);
    assert_null(strstr(text.buf, "repetition"));
}

static sc_status bars(const char *file)
{
    sc_validation v = example();
    sc_text_free(&text);
    sc_text_init(&text);
    return sc_validation_bars(&v, file, strlen(file), "bars.yml", &arena, &text,
                              &err);
}

static void bars_only_fall(void **state)
{
    (void)state;
    assert_int_equal(bars("bars: {f: 5.0%}"), SC_OK);
    assert_int_equal(bars("bars: {f: 4.96%}"), SC_OK); /* rounding */
    assert_int_equal(bars("bars: {f: 4.94%}"), SC_NO);
    has("ABOVE");
    assert_int_equal(bars("bars: {f: 9%, g: 9%}"), SC_NO);
    has("no row was predicted");
    assert_int_equal(bars("bars: {f: 9%, h: 9%}"), SC_NO);
    assert_int_equal(err.n, 0);
    assert_int_equal(bars("bars: {f: five, g: {}}"), SC_EINPUT);
    assert_int_equal(err.n, 2);
    assert_int_equal(bars("memory: {f: 25.0%}"), SC_OK);
    assert_int_equal(bars("bars: {f: 5.0%}\nmemory: {f: 24.9%}"), SC_NO);
    has("f (memory)                25.00 %, bar 24.90 %: ABOVE");
    assert_int_equal(bars("memory: {g: 99%}"), SC_NO);
    has("no row was predicted");
    assert_int_equal(bars("bars: {f: 9%}\nmemory: {f: {}}"), SC_EINPUT);
    assert_int_equal(bars("tau: {f: 0.5}"), SC_NO); /* one row has no order */
    has("no row was predicted, bar 0.50");
    assert_int_equal(bars("bars: {}\nmemory: {}"), SC_EINPUT);
    assert_int_equal(bars("bars: {}"), SC_EINPUT);
    assert_int_equal(bars("rods: {f: 1%}"), SC_EINPUT);
    /* what is written is met, and names every family with an error */
    sc_validation v = example();
    sc_text file;
    sc_text_init(&file);
    sc_validation_bars_write(&v, &file);
    assert_non_null(strstr(file.buf, "bars:\n  f: 5.00%\n"));
    assert_non_null(strstr(file.buf, "memory:\n  f: 25.00%\n"));
    assert_null(strstr(file.buf, "  g:"));
    sc_err_init(&err);
    assert_int_equal(bars(file.buf), SC_OK);
    sc_text_free(&file);
}

/* Order may only rise, what a wrong order costs only fall. */
static void bars_of_order(void **state)
{
    (void)state;
    sc_valid_group g = {.family = "f",
                        .mape = NAN,
                        .mem_mape = NAN,
                        .kendall_tau = -0.6,
                        .regret = 0.031};
    sc_validation v = {.n_groups = 1, .groups = &g};

    static const struct {
        const char *file, *line;
        sc_status want;
    } bar[] = {
        {"tau: {f: -0.6}", "f (tau)                   -0.60, bar -0.60\n",
         SC_OK},
        {"tau: {f: -0.7}", "bar -0.70\n", SC_OK},
        {"tau: {f: -0.599}", ": BELOW", SC_NO},
        {"regret: {f: 3.1%}", "f (regret)                 3.10 %, bar", SC_OK},
        {"regret: {f: 4%}", "bar 4.00 %\n", SC_OK},
        {"regret: {f: 3.0%}", ": ABOVE", SC_NO},
    };

    for (size_t i = 0; i < SC_COUNT(bar); i++) {
        sc_text_free(&text);
        sc_text_init(&text);
        assert_int_equal(sc_validation_bars(&v, bar[i].file,
                                            strlen(bar[i].file), "bars.yml",
                                            &arena, &text, &err),
                         bar[i].want);
        has(bar[i].line);
    }
    sc_text_free(&text);
    sc_text_init(&text);
    sc_validation_bars_write(&v, &text);
    has("\ntau:\n  f: -0.600\nregret:\n  f: 3.10%\n");
}

/* Rows inside their intervals are counted once, and told where rows were kept
 * out of the fit. */
static void coverage(void **state)
{
    (void)state;
    sc_validation v = example();
    assert_true(v.coverage == 1 && v.groups[0].coverage == 1);
    rows[0].high = 9.99;
    assert_int_equal(calib_summarise(&v, &arena, &err), SC_OK);
    assert_true(v.coverage == 0);
    sc_validation_text(&v, false, &text);
    assert_null(strstr(text.buf, "80%"));
    v.left_out = "family";
    sc_validation_text(&v, false, &text);
    has("mem max  in 80%\n");
    has("   25.00   25.00       0\n");
    has("0.0 % of rows in their 80 % interval, of all families");
}

static const char *family_of(const sc_valid_row *r)
{
    return r->family;
}

/* What was left out together is judged together, and so is each kind. */
static void parts(void **state)
{
    (void)state;
    example();
    rows[0].kind = rows[2].kind = SC_KIND_DENSE;
    rows[1].kind = SC_KIND_EXPERTS;
    rows[1].predicted = 20;
    rows[2].family = "f";
    rows[2].predicted = 8;
    for (int i = 0; i < 3; i++) {
        rows[i].reason = NULL;
        rows[i].counted = true;
        rows[i].median = 10;
        rows[i].low = 9;
        rows[i].high = i == 1 ? 9.5 : 12;
    }
    sc_validation v = {
        .unit = "s", .n_rows = 3, .rows = rows, .left_out = "model"};
    assert_int_equal(calib_summarise(&v, &arena, &err), SC_OK);
    assert_int_equal(calib_summarise_parts(&v, family_of, &arena, &err), SC_OK);
    assert_int_equal(v.n_parts, 3);
    sc_validation_text(&v, false, &text);
    has("\nleft out    rows  mape %    bias  in 80%\n"
        "f              3   41.67  +28.33      67\n"
        "\nkind        rows  mape %    bias  in 80%\n"
        "dense          2   12.50   -7.50     100\n"
        "experts        1  100.00 +100.00       0\n");
    sc_json j;
    sc_json_init(&j, false);
    sc_validation_json(&v, &j);
    sc_node *root;
    assert_int_equal(
        sc_doc_parse(j.buf, j.len, SC_FMT_JSON, "out", &arena, &root, &err),
        SC_OK);
    const sc_node *p = need(root, "parts")->child;
    assert_string_equal(need(p, "model")->text, "f");
    assert_string_equal(need(p->next, "kind")->text, "dense");
    assert_string_equal(need(p->next, "coverage")->text, "1");
    sc_json_free(&j);
}

static void fit_file_reads_back(void **state)
{
    (void)state;
    sc_cost centres, read;
    sc_cost_centres(&centres);
    read = centres;
    sc_fit_result fit = {.cost_before = 2, .cost_after = 1};
    uint32_t n = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        const sc_param_info *p = &sc_params[i];
        double v = p->centre * 1.0123456789;
        fit.value[i] = v > p->hi ? p->hi : v;
        fit.se_log[i] = 0.0321;
        fit.rows[i] = 40.7;
        n += p->set == SC_SET_STEP && p->sd > 0;
    }
    calib_fit_write(SC_SET_STEP, &fit, "first\nsecond", &text);
    has("# first\n# second\n");
    has("    standard_error: 0.032\n");
    assert_int_equal(
        sc_cost_read(text.buf, text.len, "step.yml", &arena, &read, &err),
        SC_OK);
    uint32_t changed = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        if (read.p[i] == centres.p[i]) continue;
        changed++;
        assert_int_equal(sc_params[i].set, SC_SET_STEP);
        assert_true(fabs(read.p[i] / fit.value[i] - 1) < 5.1e-6);
    }
    assert_true(n > 0);
    assert_int_equal(changed, n);
    sc_text_free(&text);
    sc_text_init(&text);
    calib_fit_report(SC_SET_STEP, &fit, &text);
    has("sustained_ampere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(json, setup, teardown),
        cmocka_unit_test_setup_teardown(tables, setup, teardown),
        cmocka_unit_test_setup_teardown(bars_only_fall, setup, teardown),
        cmocka_unit_test_setup_teardown(bars_of_order, setup, teardown),
        cmocka_unit_test_setup_teardown(parts, setup, teardown),
        cmocka_unit_test_setup_teardown(coverage, setup, teardown),
        cmocka_unit_test_setup_teardown(fit_file_reads_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
