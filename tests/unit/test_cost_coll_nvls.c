/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The law of in-switch reduction, busbw = 2 (n - 1) / (n + 1) L with one L per
 * generation, on published rows of large all-reduces.  Rows of devices that
 * are not in the catalogue are left out; the test is skipped if none is there.
 */
#include "cost/cost.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sc_arena arena;
static sc_err err;

static sc_csv load(void)
{
    const char *root = getenv("STEPCAST_SOURCE");
    char path[1024], *text;
    size_t len;
    sc_csv t;
    snprintf(path, sizeof(path), "%s/data/validation/network.csv",
             root ? root : ".");
    assert_int_equal(
        sc_file_read(path, (size_t)1 << 24, &arena, &text, &len, &err), SC_OK);
    assert_int_equal(sc_csv_parse(text, len, path, &arena, &t, &err), SC_OK);
    return t;
}

static double cell(const sc_csv *t, uint32_t row, const char *column)
{
    double v = 0;
    assert_int_equal(sc_unit_parse(sc_csv_get(t, row, sc_csv_col(t, column)),
                                   SC_U_NONE, sc_pos_none(), &v, &err),
                     SC_OK);
    return v;
}

/* Rows of n > 4 on `gpu` that used NVLS agree on L within 2 %. */
static bool one_rate(const sc_csv *t, const char *gpu)
{
    int col_gpu = sc_csv_col(t, "gpu"), col_algo = sc_csv_col(t, "algo");
    double low = INFINITY, high = 0;
    const sc_device *d;
    if (sc_device_find(gpu, &arena, &d, NULL) != SC_OK) return false;
    for (uint32_t i = 0; i < t->n_rows; i++) {
        if (strcmp(sc_csv_get(t, i, col_gpu), gpu) != 0 ||
            strcmp(sc_csv_get(t, i, col_algo), "NVLS") != 0)
            continue;
        double n = cell(t, i, "gpus");
        double rate = cell(t, i, "busbw_GBps") * (n + 1) / (2 * (n - 1));
        assert_true(rate * 1e9 < d->link_bw);
        low = rate < low ? rate : low;
        high = rate > high ? rate : high;
    }
    assert_true(high > 0 && high / low < 1.04);
    return true;
}

static void rows_follow_the_law(void **state)
{
    (void)state;
    sc_arena_init(&arena, 0);
    sc_err_init(&err);
    sc_csv t = load();
    bool h200 = one_rate(&t, "H200-SXM"), b200 = one_rate(&t, "B200-SXM");
    sc_arena_free(&arena);
    if (!h200 && !b200) skip();
}

/* Prices follow the same law: time over bytes per rank count. */
static void prices_follow_the_law(void **state)
{
    (void)state;
    const sc_hw *hw;
    sc_cost c;
    sc_arena_init(&arena, 0);
    sc_err_init(&err);
    sc_cost_centres(&c);
    assert_int_equal(
        sc_hw_build("dgx-h100:1", sc_pos_none(), &arena, &hw, &err), SC_OK);
    for (uint32_t n = 5; n <= 8; n++) {
        const uint32_t stride = 1;
        sc_place at = sc_hw_place(hw, 1, &n, &stride);
        sc_coll_price p;
        assert_int_equal(
            sc_cost_coll(&c, hw, SC_ALL_REDUCE, 8.59e9, &at, -1, &p, &err),
            SC_OK);
        double bus = 8.59e9 / p.seconds * sc_coll_bus_factor(SC_ALL_REDUCE, n);
        double law = 2.0 * (n - 1) / (n + 1) * 450e9 * c.p[SC_P_NVLS] /
                     (1 + c.p[SC_P_NVLS_CHUNK] / 131072);
        assert_int_equal(p.algorithm, SC_ALGO_NVLS);
        assert_true(fabs(bus / law - 1) < 0.01);
    }
    sc_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_the_law),
        cmocka_unit_test(prices_follow_the_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
