/* SPDX-License-Identifier: Apache-2.0 */
/* The table of parameters, and files that override it. */
#include "cost/cost.h"
#include "prediction.h"

#include <math.h>
#include <string.h>

static sc_status read_text(const char *text)
{
    sc_err_init(&f.err);
    return sc_cost_read(text, strlen(text), "fit.yml", &f.a, &f.cost, &f.err);
}

static void table(void **state)
{
    (void)state;
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        const sc_param_info *p = &sc_params[i];
        assert_true(p->name[0] && p->unit[0] && p->text[0]);
        assert_true(p->lo < p->hi && p->lo >= 0);
        assert_true(p->centre >= p->lo && p->centre <= p->hi);
        assert_true(p->sd >= 0);
        assert_true(p->set != SC_SET_KERNEL || p->sd == 0);
        assert_int_equal(sc_param_find(p->name), i); /* names are unique */
        assert_true(f.cost.p[i] == p->centre);
        /* a share of a physical rate can't be above it */
        if (p->set != SC_SET_NETWORK && strcmp(p->unit, "fraction") == 0)
            assert_true(p->hi <= 1);
    }
    assert_int_equal(sc_param_find("no_such"), -1);
    assert_int_equal(sc_param_find(""), -1);
}

/* What another fit on the same rows gave is never told as a source. */
static void origins(void **state)
{
    (void)state;
    uint32_t n[SC_N_PARAM_ORIGINS] = {0};
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        const sc_param_info *p = &sc_params[i];
        sc_param_origin from = sc_param_origin_of(p);
        n[from]++;
        assert_true((from == SC_PARAM_FITTED) == (p->sd > 0));
    }
    /* What was set while looking at measured steps is fitted, and counted. */
    assert_true(n[SC_PARAM_ELSEWHERE] == 0);
    assert_true(n[SC_PARAM_FITTED] > 0 && n[SC_PARAM_ASSUMED] > 0 &&
                n[SC_PARAM_SOURCED] > 0);
    assert_int_equal(sc_param_origin_of(&sc_params[SC_P_MEM_EFF]),
                     SC_PARAM_SOURCED);
}

static void overrides(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("parameters:\n"
                  "  sustained_ampere: {value: 0.7, unit: factor}\n"
                  "  step_fixed: 0.25\n"),
        SC_OK);
    assert_true(f.cost.p[SC_P_SUSTAINED_AMPERE] == 0.7);
    assert_true(f.cost.p[SC_P_STEP_FIXED] == 0.25);
    assert_true(f.cost.p[SC_P_SUSTAINED_HOPPER] ==
                sc_params[SC_P_SUSTAINED_HOPPER].centre);
    uint64_t hash = f.cost.hash;
    assert_int_equal(read_text("{\"parameters\": {\"sustained_ampere\": 0.8}}"),
                     SC_OK);
    assert_true(f.cost.p[SC_P_SUSTAINED_AMPERE] == 0.8);
    assert_true(f.cost.hash != hash);
}

/* Every error of a file at once, with its line; nothing is changed. */
static void errors(void **state)
{
    (void)state;
    sc_cost before = f.cost;
    assert_int_equal(read_text("parameters:\n"
                               "  step_fixed: 0.1\n"
                               "  sustained_amper: 0.5\n"
                               "  sustained_hopper: {value: 3}\n"
                               "  batched_gemm: {unit: fraction}\n"
                               "  numa_unbound: .nan\n"),
                     SC_EINPUT);
    static const sc_code code[] = {SC_C_UNKNOWN_NAME, SC_C_RANGE, SC_C_MISSING};
    assert_int_equal(f.err.n, 4);
    for (uint32_t i = 0; i < f.err.n; i++) {
        if (i < SC_COUNT(code)) assert_int_equal(f.err.d[i].code, code[i]);
        assert_int_equal(f.err.d[i].line, i + 3);
        assert_string_equal(f.err.d[i].file, "fit.yml");
    }
    assert_non_null(strstr(f.err.d[0].hint, "sustained_ampere"));
    assert_memory_equal(&before, &f.cost, sizeof before);
}

static void not_a_fit(void **state)
{
    (void)state;
    static const char *const text[] = {"",
                                       "[]",
                                       "parameters: 3",
                                       "values: {}",
                                       "a",
                                       "parameters: []",
                                       "parameters: {sustained_ampere: [1]}"};
    for (size_t i = 0; i < SC_COUNT(text); i++) {
        assert_int_equal(read_text(text[i]), SC_EINPUT);
        assert_true(f.err.n >= 1);
    }
    assert_int_equal(read_text("parameters: {}"), SC_OK);
}

static void built_in(void **state)
{
    (void)state;
    sc_cost c;
    assert_int_equal(sc_cost_builtin(&f.a, &c, &f.err), SC_OK);
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        assert_true(c.p[i] >= sc_params[i].lo && c.p[i] <= sc_params[i].hi);
        /* physics and literature are not fitted */
        if (sc_params[i].set == SC_SET_KERNEL || sc_params[i].sd == 0)
            assert_true(c.p[i] == sc_params[i].centre);
    }
    assert_true(c.p[SC_P_SUSTAINED_AMPERE] !=
                sc_params[SC_P_SUSTAINED_AMPERE].centre);
    assert_true(c.hash != 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(table),     TEST(origins),
                                       TEST(overrides), TEST(errors),
                                       TEST(not_a_fit), TEST(built_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
