/* SPDX-License-Identifier: Apache-2.0 */
/* Points are counted, numbered and found again. */
#include "search/search_space.h"
#include "unit.h"

#include <string.h>

static sc_arena a;
static sc_err e;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&a, 0);
    sc_err_init(&e);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&a);
    return 0;
}

/* ---- Calculon's space of GPT-3 175B on 4,096 devices ---------------------- */

enum {
    TP,
    PP,
    DP,
    CHUNKS,
    BATCH,
    RECOMPUTE,
    SHARD,
    COMM,
    REDO,
    DP_OVERLAP,
    TP_OVERLAP,
    WEIGHTS,
    ACTIVATIONS,
    STATES,
    TP_TIER,
    PP_TIER,
    DP_TIER,
    N_AXES
};

enum { DEVICES = 4096, BLOCKS = 96, HEADS = 96, HIDDEN = 12288, SEQ = 2048 };

enum { FULL = 2, SCATTER_GATHER = 2 };

#define ALL(x) ((uint64_t)1 << (x))

static sc_search_axis divisors(const char *name, int64_t of)
{
    sc_search_axis x = {.name = name};
    int64_t *v = SC_NEW_N(&a, int64_t, 64);
    for (int64_t i = 1; i <= of; i++)
        if (of % i == 0) v[x.n++] = i;
    x.value = v;
    return x;
}

static sc_search_axis choices(const char *name, uint32_t n)
{
    static const int64_t v[] = {0, 1, 2};
    return (sc_search_axis){name, n, v};
}

static sc_search_rule divides(uint64_t left, uint64_t of)
{
    return (sc_search_rule){
        .left = {1, left}, .right = {of, 0}, .why = "divides"};
}

/* If `axis` is `is`, `then` is `to`. */
static sc_search_rule implies(uint32_t axis, int64_t is, uint32_t then,
                              int64_t to)
{
    return (sc_search_rule){.kind = SC_SEARCH_IS,
                            .n_when = 1,
                            .when = {{axis, false, is}},
                            .axis = then,
                            .value = to,
                            .why = "implies"};
}

static sc_search_space *calculon(void)
{
    static const char *const two[] = {"redo",    "dp overlap",  "tp overlap",
                                      "weights", "activations", "states",
                                      "tp tier", "pp tier",     "dp tier"};
    sc_search_axis axis[N_AXES] = {
        [TP] = divisors("tp", DEVICES),       [PP] = divisors("pp", BLOCKS),
        [DP] = divisors("dp", DEVICES),       [CHUNKS] = divisors("vp", BLOCKS),
        [BATCH] = divisors("batch", DEVICES), [RECOMPUTE] = choices("rc", 3),
        [SHARD] = choices("shard", 2),        [COMM] = choices("comm", 3)};
    for (uint32_t i = REDO; i < N_AXES; i++)
        axis[i] = choices(two[i - REDO], i == TP_OVERLAP ? 3 : 2);
    sc_search_rule redo = implies(COMM, SCATTER_GATHER, REDO, 0);
    redo.when[0].is_not = true;
    sc_search_rule samples = {
        .left = {1, ALL(TP)}, .right = {SEQ, ALL(BATCH)}, .why = "samples"};
    sc_search_rule all = {.left = {DEVICES, 0},
                          .right = {1, ALL(TP) | ALL(PP) | ALL(DP)},
                          .why = "all devices"};
    const sc_search_rule rule[] = {
        divides(ALL(TP), HEADS),
        divides(ALL(TP), HIDDEN),
        divides(ALL(TP) | ALL(PP), DEVICES),
        divides(ALL(TP) | ALL(PP) | ALL(DP), DEVICES),
        all,
        divides(ALL(PP) | ALL(CHUNKS), BLOCKS),
        implies(PP, 1, CHUNKS, 1),
        divides(ALL(DP) | ALL(BATCH), DEVICES), /* as many samples */
        samples,
        implies(DP, 1, SHARD, 0),
        redo,
        implies(RECOMPUTE, FULL, REDO, 0),
        implies(DP, 1, DP_OVERLAP, 0),
        implies(TP, 1, TP_OVERLAP, 0),
        implies(RECOMPUTE, FULL, ACTIVATIONS, 0),
        implies(TP, 1, TP_TIER, 0),
        implies(PP, 1, PP_TIER, 0),
        implies(DP, 1, DP_TIER, 0)};
    sc_search_space *x = NULL;
    assert_int_equal(
        sc_search_space_new(axis, N_AXES, rule, SC_COUNT(rule), &a, &x, &e),
        SC_OK);
    return x;
}

/* Published by Calculon (Isaev et al., SC 2023) and counted by its code. */
static void counted(void **state)
{
    (void)state;
    assert_int_equal(sc_search_space_points(calculon()), 7126368);
}

/* Visits the points one by one. */
static uint64_t visited(const sc_search_space *x, uint32_t *digit, uint32_t i)
{
    uint64_t n = 0;
    if (i == sc_search_space_axes(x)) return 1;
    for (digit[i] = 0; digit[i] < sc_search_space_axis(x, i)->n; digit[i]++)
        if (sc_search_space_legal(x, digit, i)) n += visited(x, digit, i + 1);
    return n;
}

static void enumerated(void **state)
{
    (void)state;
    uint32_t digit[SC_SEARCH_AXES] = {0};
    assert_int_equal(visited(calculon(), digit, 0), 7126368);
}

/* An index gives legal digits, in their order, and these give the index. */
static void inverse(void **state)
{
    (void)state;
    sc_search_space *x = calculon();
    uint64_t n = sc_search_space_points(x);
    uint32_t before[SC_SEARCH_AXES] = {0}, digit[SC_SEARCH_AXES] = {0};
    for (uint64_t i = 0; i < n; i += i < 100 || i + 100 > n ? 1 : 9973) {
        sc_search_space_digits(x, i, digit);
        for (uint32_t k = 0; k < N_AXES; k++)
            assert_true(sc_search_space_legal(x, digit, k));
        assert_int_equal(sc_search_space_index(x, digit), i);
        uint32_t k = 0;
        while (k < N_AXES && digit[k] == before[k]) k++;
        if (i) assert_true(k < N_AXES && digit[k] > before[k]);
        memcpy(before, digit, sizeof before);
        if (i + 9973 >= n && i + 100 < n) i = n - 100;
    }
}

/* More points than 2^62 are counted as so many. */
static void endless(void **state)
{
    (void)state;
    int64_t value[512];
    sc_search_axis axis[SC_SEARCH_AXES];
    sc_search_space *x = NULL;
    for (int64_t i = 0; i < 512; i++) value[i] = i;
    for (uint32_t i = 0; i < 20; i++)
        axis[i] = (sc_search_axis){"x", 512, value};
    assert_int_equal(sc_search_space_new(axis, 20, NULL, 0, &a, &x, &e), SC_OK);
    assert_true(sc_search_space_points(x) == SC_SEARCH_MOST);
    sc_search_axis empty = {"nothing", 0, NULL};
    assert_int_equal(sc_search_space_new(&empty, 1, NULL, 0, &a, &x, &e),
                     SC_EINPUT);
    assert_int_equal(
        sc_search_space_new(axis, SC_SEARCH_AXES + 1, NULL, 0, &a, &x, &e),
        SC_EINPUT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(counted), TEST(enumerated),
                                       TEST(inverse), TEST(endless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
