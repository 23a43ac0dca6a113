/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions against measured ones: NeuSight's FP32 table, five devices;
 * those that cuDNN ran as products of the window's matrix, and all, most of
 * which save multiplications by transforms.  Skipped where the reference data
 * are not at hand.
 */
#include "cost/cost.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 8192

static char folder[512];

typedef struct table {
    sc_csv csv;
    int latency, kernels, field[7];
} table;

enum { BATCH, IN, OUT, WINDOW, SIDE, STRIDE, PAD };

static table load(const char *file)
{
    static const char *const names[] = {
        "B",          "Input_Channel", "Output_Channel", "Kernel_Szie",
        "Input_Size", "Stride",        "Padding"};
    char path[1024], *packed, *text;
    size_t len;
    table t;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    sc_file_read(path, (size_t)64 << 20, &arena, &packed, &len, &err);
    no_error();
    sc_unpack(packed, len, (size_t)256 << 20, path, &arena, &text, &len, &err);
    no_error();
    sc_csv_parse(text, len, path, &arena, &t.csv, &err);
    no_error();
    t.latency = sc_csv_col(&t.csv, "Latency");
    t.kernels = sc_csv_col(&t.csv, "Kernels");
    for (size_t i = 0; i < SC_COUNT(names); i++)
        t.field[i] = sc_csv_col(&t.csv, names[i]);
    return t;
}

static double cell(const table *t, uint32_t row, int col)
{
    return strtod(sc_csv_get(&t->csv, row, col), NULL);
}

static double price(const sc_cost *c, const sc_device *d, const table *t,
                    uint32_t row, bool all)
{
    double x[7];
    for (int i = 0; i < 7; i++) x[i] = cell(t, row, t->field[i]);
    double side = floor((x[SIDE] + 2 * x[PAD] - x[WINDOW]) / x[STRIDE]) + 1;
    double m = x[BATCH] * side * side, k = x[IN] * x[WINDOW] * x[WINDOW];
    sc_kernel conv = {.kind = SC_K_CONV,
                      .precision = SC_FP32,
                      .batch = 1,
                      .m = (uint64_t)m,
                      .n = (uint64_t)x[OUT],
                      .k = (uint64_t)k,
                      .bytes = 4 * (x[BATCH] * x[IN] * x[SIDE] * x[SIDE] +
                                    k * x[OUT] + m * x[OUT])};
    if (all && x[STRIDE] == 1)
        conv.window = (sc_window){.side = (uint8_t)x[WINDOW],
                                  .rows = (uint32_t)side,
                                  .cols = (uint32_t)side};
    return sc_cost_kernel(c, d, &conv).seconds;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const char *file, const char *name, bool all, uint32_t *n)
{
    double *ratio = SC_NEW_N(&arena, double, ROWS);
    const sc_device *d = device(name);
    table t = load(file);
    sc_cost c;
    sc_cost_centres(&c);
    *n = 0;
    for (uint32_t r = 0; r < t.csv.n_rows && *n < ROWS; r++) {
        if (!all && strstr(sc_csv_get(&t.csv, r, t.kernels), "winograd"))
            continue;
        if (cell(&t, r, t.field[SIDE]) + 2 * cell(&t, r, t.field[PAD]) <
            cell(&t, r, t.field[WINDOW]))
            continue;
        ratio[(*n)++] =
            price(&c, d, &t, r, all) / (cell(&t, r, t.latency) * 1e-3);
    }
    assert_true(*n > 500);
    qsort(ratio, *n, sizeof *ratio, ascending);
    return ratio[*n / 2];
}

static void five_devices(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"NVIDIA_A100_80GB_PCIe.csv.gz", "a100-pcie-80g"},
        {"Tesla_P100-PCIE-16GB.csv.gz", "p100-pcie"},
        {"Tesla_V100-PCIE-32GB.csv.gz", "v100-pcie-32g"},
        {"Tesla_T4.csv.gz", "t4"},
        {"Tesla_P4.csv.gz", "p4"}};
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        uint32_t n;
        sc_arena_mark mark = sc_arena_save(&arena);
        double m = median(files[i][0], files[i][1], false, &n);
        print_message("%s: %u convolutions, price over measured %.2f",
                      files[i][1], n, m);
        assert_true(m > 0.8 && m < 1.25);
        m = median(files[i][0], files[i][1], true, &n);
        print_message("; %u with fewer multiplications %.2f\n", n, m);
        assert_true(m > 0.7 && m < 1.25);
        sc_arena_restore(&arena, mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(five_devices, setup, teardown)};
    const char *shared = getenv("STEPCAST_SHARED");
    if (shared == NULL || strlen(shared) > 400) {
        printf("skipped: STEPCAST_SHARED is not set, it holds the table\n");
        return 77;
    }
    snprintf(folder, sizeof folder,
             "%s/data/neusight/dataset/train/collect/conv", shared);
    char path[640];
    snprintf(path, sizeof path, "%s/Tesla_T4.csv.gz", folder);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        printf("skipped: no %s\n", path);
        return 77;
    }
    fclose(f);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
