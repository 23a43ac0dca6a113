/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured kernels: every row of the shared tables is predicted, and the mean
 * error of each table stays below a bound.  Skipped where the reference data
 * are not at hand.
 */
#include "calib/calib.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *shared;

/* The bounds are loose: they show rows that are read wrongly, not the accuracy
 * of the kernel model. */
static const struct {
    const char *file;
    double error;
    uint32_t rows, skipped;
} listed[] = {
    {"aiconfigurator/gemm.csv", 0.30, 22756, 0},
    {"aiconfigurator/attention.csv", 0.60, 4352, 0},
    {"aiconfigurator/mla.csv", 0.45, 942, 0},
    {"aiconfigurator/moe.csv", 0.40, 6901, 0},
    {"aiconfigurator/quant.csv", 0.60, 1842, 0},
    {"aiconfigurator/comm.csv", 0.60, 2680, 0},
    {"aiconfigurator/deepep.csv", 0.55, 3262, 0},
    {"neusight/dataset/test/elem.csv.gz", 0.15, 1703, 0},
    {"neusight/dataset/test/linear.csv.gz", 0.35, 2891, 512},
    {"neusight/dataset/train/collect/conv/Tesla_T4.csv.gz", 0.55, 4969, 0},
    {"vidur/compute/a100/meta-llama/Llama-2-7b-hf/mlp.csv.gz", 0.40, 10440,
     783},
    {"vidur/network/h100_dgx/all_reduce.csv.gz", 0.40, 2982, 0},
};

static bool load(const char *file, sc_csv *out)
{
    char path[1024], *packed, *text;
    size_t len;
    snprintf(path, sizeof path, "%s/data/%s", shared, file);
    FILE *f = fopen(path, "rb");
    if (f == NULL) return false;
    fclose(f);
    sc_file_read(path, (size_t)64 << 20, &arena, &packed, &len, &err);
    no_error();
    sc_unpack(packed, len, (size_t)256 << 20, path, &arena, &text, &len, &err);
    no_error();
    char *name = sc_strdup(&arena, path);
    sc_csv_parse(text, len, name, &arena, out, &err);
    no_error();
    return true;
}

static void reads_every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(listed); i++) {
        sc_csv t;
        sc_validation v;
        sc_validate_opts o = {.engine = 0};
        if (!load(listed[i].file, &t)) {
            print_message("no %s\n", listed[i].file);
            continue;
        }
        sc_validate(&t, 1, &o, &arena, &v, &err);
        no_error();
        print_message("%s: %.1f %%\n", listed[i].file, 100 * v.mape);
        assert_int_equal(v.n_rows, listed[i].rows);
        assert_int_equal(v.skipped, listed[i].skipped);
        assert_true(v.mape < listed[i].error);
    }
}

static void reads_power(void **state)
{
    (void)state;
    char path[1024], *text;
    size_t len;
    sc_csv t;
    sc_validation v;
    sc_validate_opts o = {.engine = 0};
    snprintf(path, sizeof path, "%s/truth/power.csv", shared);
    if (sc_file_read(path, (size_t)1 << 24, &arena, &text, &len, &err) != SC_OK)
        return;
    sc_csv_parse(text, len, "power.csv", &arena, &t, &err);
    sc_validate(&t, 1, &o, &arena, &v, &err);
    no_error();
    print_message("power: %.1f %%\n", 100 * v.mape);
    assert_int_equal(v.skipped, 0);
    assert_true(v.mape < 0.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_every_row, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_power, setup, teardown),
    };
    shared = getenv("STEPCAST_SHARED");
    if (shared == NULL || strlen(shared) > 400) {
        printf("skipped: STEPCAST_SHARED is not set, it holds the tables\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
