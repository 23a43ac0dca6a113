/* SPDX-License-Identifier: Apache-2.0 */
/* Stated probabilities of being the fastest, and the faster of two, against runs
 * that differ only in parallelization, with each model left out of the fit. */
#include "calib/sure.h"
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static sc_csv load(const char *name)
{
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path =
        sc_sprintf(&arena, "%s/data/validation/%s", root ? root : ".", name);
    char *text;
    size_t len;
    sc_csv t = {0};
    assert_non_null(path);
    if (sc_file_read(path, (size_t)64 << 20, &arena, &text, &len, &err) !=
            SC_OK ||
        sc_csv_parse(text, len, name, &arena, &t, &err) != SC_OK)
        fail_msg("%s: %s", name, err.d[0].msg);
    return t;
}

static sc_validation left_out(const char *family)
{
    sc_csv t[] = {load("bloom.csv"), load("vtrain-multi.csv")};
    const sc_validate_opts o = {.family = family, .engine = SC_ENGINE_FAST};
    sc_validation v;
    if (sc_validate_leave_out(t, 2, "model", &o, &arena, &v, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    return v;
}

static void calibrated(const sc_valid_pick *p)
{
    uint32_t rows = 0, pairs = 0;
    assert_true(p->sets >= 12 && p->rows >= 90 && p->pairs >= 500);
    for (uint32_t b = 0; b < SC_PICK_BINS; b++) rows += p->of_bin[b];
    for (uint32_t b = 0; b < SC_PAIR_BINS; b++) pairs += p->of_pair[b];
    assert_int_equal(rows, p->rows);
    assert_int_equal(pairs, p->pairs);
    assert_true(calib_pick_off(p) < 0.08);
    assert_true(calib_pair_off(p) < 0.08);
    assert_true(p->squares < p->blind);
    /* what is nearly sure comes true */
    for (uint32_t b = 0; b < SC_PAIR_BINS; b++)
        if (sc_pair_edges[b] >= 0.9 && p->of_pair[b] > 0)
            assert_true(p->pair_right[b] >
                        p->pair_stated[b] - 0.03 * p->of_pair[b]);
}

/* The rows that are printed decide nothing about the others. */
static void chosen(const sc_validation *all, const sc_valid_pick *one)
{
    const sc_valid_pick *p = NULL;
    for (uint32_t i = 0; i < all->n_groups; i++)
        if (!all->groups[i].device &&
            strcmp(all->groups[i].family, "vtrain-multi") == 0)
            p = &all->groups[i].pick;
    assert_non_null(p);
    assert_int_equal(p->pairs, one->pairs);
    assert_int_equal(p->rows, one->rows);
    assert_true(fabs(p->squares - one->squares) < 1e-9);
    assert_true(fabs(p->pair_squares - one->pair_squares) < 1e-9);
}

/* Slow builds fit only for the rows that are printed. */
static void sure(void **state)
{
    (void)state;
    sc_validation one = left_out("vtrain-multi");
    assert_true(one.pick.pairs > 400);
    if (getenv("STEPCAST_SLOW")) return;
    sc_validation all = left_out(NULL);
    calibrated(&all.pick);
    chosen(&all, &one.pick);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sure, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
