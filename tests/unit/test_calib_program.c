/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of profiles that are parameters: fitted to the rows of their program,
 * and at their centres in a fit without these rows. */
#include "calib/heldout.h"
#include "calib/row.h"
#include "calib/stepfit.h"
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EACH  18u /* every 18th row of the table */
#define LEAST 40u /* of them are runs with a time */

static const sc_param keys[] = {SC_P_NANOTRON_LAUNCH, SC_P_NANOTRON_APART};
static const double truth[] = {6e-5, 1e-4};

/* Runs of nanotron whose times are not measured yet. */
static calib_run *runs(uint32_t *n)
{
    char *text;
    size_t len;
    sc_csv t = {0};
    calib_run *all = NULL;
    uint32_t n_all = 0;
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path = sc_sprintf(&arena, "%s/data/validation/nanotron.csv",
                                  root ? root : ".");
    if (sc_file_read(path, (size_t)64 << 20, &arena, &text, &len, &err) ==
            SC_OK &&
        sc_csv_parse(text, len, path, &arena, &t, &err) == SC_OK)
        (void)calib_runs_read(&t, 1, &arena, &all, &n_all, &err);
    no_error();
    *n = 0;
    for (uint32_t i = 0; i < n_all; i += EACH)
        if (!all[i].reason && isfinite(all[i].measured)) all[(*n)++] = all[i];
    assert_true(*n >= LEAST);
    return all;
}

/* Sets the measured times to what parameters predict. */
static void measure(calib_run *run, uint32_t n, const sc_cost *c)
{
    calib_fit_set set;
    if (calib_fit_prepare(run, n, c, &arena, &set, &err)) no_error();
    for (uint32_t i = 0; i < n; i++) run[i].measured = set.rows[i].predicted;
}

static sc_cost with_truth(void)
{
    sc_cost c;
    if (sc_cost_builtin(&arena, &c, &err)) no_error();
    calib_fit_centre(SC_SET_PROGRAM, &c);
    for (size_t k = 0; k < SC_COUNT(keys); k++) c.p[keys[k]] = truth[k];
    return c;
}

static void keys_are_recovered(void **state)
{
    (void)state;
    uint32_t n;
    calib_run *run = runs(&n);
    sc_cost c = with_truth();
    sc_fit_result fit;
    measure(run, n, &c);
    calib_fit_centre(SC_SET_PROGRAM, &c);
    for (int round = 0; round < 4; round++) {
        calib_fit_set set;
        if (calib_fit_prepare(run, n, &c, &arena, &set, &err)) no_error();
        assert_int_equal(set.n, 0); /* no other fit uses these rows */
        assert_true(set.n_programs >= LEAST);
        /* at the centre the host's waits are hidden: they have no derivative */
        if (round == 0 &&
            (calib_fit_scan(SC_SET_PROGRAM, &set, &c, &arena, &err) ||
             calib_fit_prepare(run, n, &c, &arena, &set, &err)))
            no_error();
        if (calib_fit_set_of(SC_SET_PROGRAM, &set, NULL, &c, &fit, &arena,
                             &err))
            no_error();
    }
    for (size_t k = 0; k < SC_COUNT(keys); k++) {
        double off = fabs(log(c.p[keys[k]] / truth[k]));
        if (off > 0.1)
            fail_msg("%s is %g, not %g", sc_params[keys[k]].name, c.p[keys[k]],
                     truth[k]);
        assert_true(fit.rows[keys[k]] > 5);
        assert_true(fit.se_log[keys[k]] < sc_params[keys[k]].sd / 2);
    }
}

/* Without any row of the program its keys are at their centres, whatever the
 * rows say; without a part of them they are not. */
static void left_out_is_the_prior(void **state)
{
    (void)state;
    uint32_t n, compared = 0;
    calib_run *run = runs(&n);
    sc_cost c = with_truth(), prior = c;
    calib_fit_set set, at_prior;
    sc_effects effects;
    measure(run, n, &c);
    calib_fit_centre(SC_SET_PROGRAM, &prior);
    if (calib_leave_families(run, n, &c, NULL, &arena, &set, &effects, &err))
        no_error();
    for (uint32_t i = 0; i < n; i++)
        if (sc_software_unread(run[i].sw, &arena, &run[i].sw, &err)) no_error();
    if (calib_fit_prepare(run, n, &prior, &arena, &at_prior, &err)) no_error();
    for (uint32_t i = 0; i < n; i++) {
        const sc_valid_row *r = &set.rows[i];
        if (!r->counted) continue;
        compared++;
        assert_true(fabs(r->predicted / at_prior.rows[i].predicted - 1) <
                    1e-12);
    }
    assert_true(compared >= LEAST);
}

static void keys_of_profiles(void **state)
{
    (void)state;
    const sc_software *sw = NULL;
    sc_cost c = with_truth();
    size_t launch = offsetof(sc_software, launch_s);
    static const char *const names[] = {"nanotron-2025", "nanotron-2025-zero1"};
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        if (sc_software_find(names[i], NULL, sc_pos_none(), &arena, &sw, &err))
            no_error();
        assert_true(sw->n_fitted >= 2);
        assert_true(sc_software_value(sw, launch, &c) == truth[0]);
    }
    /* a number of one's own replaces the parameter */
    static const char own[] = "base: nanotron-2025\nlaunch: 11us\n";
    if (sc_software_read(own, sizeof own - 1, "own.yml", &arena, &sw, &err))
        no_error();
    assert_true(sc_software_fitted(sw, launch) < 0);
    assert_true(fabs(sc_software_value(sw, launch, &c) - 11e-6) < 1e-12);
    static const char *const bad[] = {
        "base: nanotron-2025\nlaunch: fitted\n",
        "base: megatron-core\ntp_pieces: fitted\n",
        "base: megatron-core\nno_key: fitted\n"};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_err_init(&err);
        assert_int_equal(sc_software_read(bad[i], strlen(bad[i]), "own.yml",
                                          &arena, &sw, &err),
                         SC_EINPUT);
        assert_int_equal(err.d[0].line, 2);
    }
    sc_err_init(&err);
}

/* At most one fitted key per 20 rows of its program, in the built-in data. */
static void rows_are_enough(void **state)
{
    (void)state;
    const char **names = NULL;
    uint32_t n = 0;
    sc_held_out h;
    if (sc_software_list(&arena, &names, &n, &err) ||
        sc_held_out_builtin(&arena, &h, &err))
        no_error();
    for (uint32_t i = 0; i < n; i++) {
        const sc_software *sw = NULL;
        if (sc_software_find(names[i], NULL, sc_pos_none(), &arena, &sw, &err))
            no_error();
        uint32_t rows = sc_held_out_measured(&h, names[i], NULL);
        if (sw->n_fitted * CALIB_ROWS_PER_PARAMETER > rows)
            fail_msg("%s: %u fitted keys, %u rows", names[i], sw->n_fitted,
                     rows);
    }
}

/* Numbers that were read off rows: without them, those of the base. */
static void read_off(void **state)
{
    (void)state;
    const sc_software *sw = NULL, *plain = NULL;
    static const char own[] = "base: megatron-lm-2021\nzero3_rails: 3\n";
    static const char *const bad = "base: megatron-core\nread_off: [no_key]\n";
    if (sc_software_find("megatron-lm-2021", NULL, sc_pos_none(), &arena, &sw,
                         &err) ||
        sc_software_unread(sw, &arena, &plain, &err))
        no_error();
    assert_int_equal(sw->zero3_rails, 1);
    assert_int_equal(plain->zero3_rails, 0);
    assert_true(plain->fragmentation < sw->fragmentation);
    assert_true(plain->accum_bytes == sw->accum_bytes);
    if (sc_software_read(own, sizeof own - 1, "own.yml", &arena, &sw, &err) ||
        sc_software_unread(sw, &arena, &plain, &err))
        no_error();
    assert_int_equal(plain->zero3_rails, 0);
    if (sc_software_find("megatron-core", NULL, sc_pos_none(), &arena, &sw,
                         &err) ||
        sc_software_unread(sw, &arena, &plain, &err))
        no_error();
    assert_true(plain->unread && !sw->unread);
    assert_true(plain->fragmentation == sw->fragmentation);
    assert_int_equal(
        sc_software_read(bad, strlen(bad), "own.yml", &arena, &sw, &err),
        SC_EINPUT);
    sc_err_init(&err);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_are_recovered), TEST(left_out_is_the_prior),
        TEST(keys_of_profiles), TEST(read_off), TEST(rows_are_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
