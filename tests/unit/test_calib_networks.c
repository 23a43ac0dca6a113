/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks as lists of operators: which kernels an operator runs, and the mean
 * error of NeuSight's measured networks, which no fit has.  The bounds are a
 * tenth above what docs/dev/kernels.md states.
 */
#include "calib/calib.h"
#include "calib/kernel_table.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER                                                          \
    "Run,Device,Seconds,Training,Times,Name,OpName,FwOps,BwOps,AccOps," \
    "Prev,InputShapes,OutputShape\n"

static uint32_t rows_of(const char *text, calib_kernel_row **row)
{
    sc_csv t = {0};
    uint32_t n = 0;
    sc_csv_parse(text, strlen(text), "networks.csv", &arena, &t, &err);
    no_error();
    calib_kernel_rows_read(&t, &arena, row, &n, &err);
    no_error();
    return n;
}

static void operators(void **state)
{
    (void)state;
    calib_kernel_row *row = NULL;
    uint32_t n = rows_of(
        HEADER
        "a,Tesla T4,0.1,0,24,proj,Linear,\"[['Linear', (64, 32, 16)]]\",[],[],"
        "set(),\"[(64, 32)]\",\"(64, 16)\"\n"
        "a,Tesla T4,0.1,0,24,softmax,VECsoftmax,\"[['VECsoftmax', (64, "
        "16)]]\",[],[],set(),\"[(64, 16)]\",\"(64, 16)\"\n"
        "a,Tesla T4,0.1,0,1,view,misc,[],[],[],set(),\"[(64, 16)]\",\"(8, "
        "128)\"\n"
        "b,Tesla T4,0.2,1,1,proj,Linear,\"[['Linear', (64, 32, "
        "16)]]\",[],\"[['VECadd', [1, 512]]]\",set(),\"[(64, 32)]\",\"(64, "
        "16)\"\n",
        &row);
    assert_int_equal(n, 2);
    assert_string_equal(row[0].operation, "inference");
    assert_int_equal(row[0].n_parts, 2); /* a view runs none */
    assert_int_equal(row[0].part[0].kind, SC_K_GEMM);
    assert_true(row[0].part[0].m == 64 && row[0].part[0].n == 16 &&
                row[0].part[0].k == 32);
    assert_true(row[0].times[0] == 24);
    assert_int_equal(row[0].part[1].kind, SC_K_SOFTMAX);
    /* forward, two gradients, that of the bias, and the addition */
    assert_int_equal(row[1].n_parts, 5);
    assert_true(row[1].part[1].n == 32 && row[1].part[2].m == 16);
    assert_true(row[1].part[4].bytes == 3 * 4 * 512);
}

static void no_shapes(void **state)
{
    (void)state;
    calib_kernel_row *row = NULL;
    uint32_t n =
        rows_of(HEADER "a,Tesla T4,0.1,0,1,x,Linear,\"(((\",[],[],,\"[(0, "
                       "1)]\",\"(99999999999999999999, 3)\"\n",
                &row);
    assert_int_equal(n, 1);
    assert_non_null(row[0].reason);
}

/* ---- NeuSight's networks ------------------------------------------------------ */

static const struct {
    const char *device;
    uint32_t rows;
    double percent;
} bounds[] = {
    {"a100-pcie-40g", 6, 5.1},
    {"a100-pcie-80g", 4, 11.6},
    {"h100-sxm", 17, 13},
    {"p100-pcie", 1, 3},
    {"p4", 2, 13.2},
    {"t4", 3, 21.8},
    {"v100-pcie-32g", 10, 5.4},
    {"mi100", 6, 14.7},
    {"mi210", 6, 9.8},
};

/* The table as tools/neusight-networks writes it. */
static char *written(void)
{
    const char *root = getenv("STEPCAST_SOURCE");
    const char *shared = getenv("STEPCAST_SHARED");
    char command[1024];
    sc_text t;
    sc_text_init(&t);
    if (!shared || strlen(shared) > 400) skip();
    snprintf(command, sizeof command,
             "%s/tools/neusight-networks %s/data/neusight 2>/dev/null",
             root ? root : ".", shared);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        sc_text_add(&t, "%.*s", (int)n, part);
    bool good = pclose(f) == 0 && t.len > 0;
    char *text = good ? sc_strdup(&arena, t.buf) : NULL;
    sc_text_free(&t);
    if (!good) {
        print_message("skipped: no table of NeuSight's networks\n");
        skip();
    }
    return text;
}

static void networks(void **state)
{
    (void)state;
    sc_csv t = {0};
    sc_validation v = {0};
    sc_validate_opts o = {0};
    const char *text = written();
    sc_csv_parse(text, strlen(text), "networks.csv", &arena, &t, &err);
    sc_validate(&t, 1, &o, &arena, &v, &err);
    no_error();
    bool good = true;
    for (size_t i = 0; i < SC_COUNT(bounds); i++) {
        double sum = 0;
        uint32_t n = 0;
        for (uint32_t k = 0; k < v.n_rows; k++) {
            const sc_valid_row *r = &v.rows[k];
            if (!r->counted || strcmp(r->hw_device, bounds[i].device) != 0)
                continue;
            sum += 100 * fabs(r->error);
            n++;
        }
        bool ok = n == bounds[i].rows && sum <= n * bounds[i].percent;
        print_message("%s%s: %u networks, %.1f %%\n", ok ? "" : "OFF ",
                      bounds[i].device, n, sum / n);
        good = good && ok;
    }
    assert_true(good);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(operators), TEST(no_shapes),
                                       TEST(networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
