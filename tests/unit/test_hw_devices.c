/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the catalogue: each has every field with source and date, its
 * figures are those of the datasheets, and what is derived from them is
 * possible. */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Dense peaks in TFLOP/s, GiB, GB/s, MiB, MHz, GB/s of all links in one
 * direction, W. */
typedef struct sheet {
    const char *name;
    double peak[SC_INT8]; /* fp32 tf32 fp16 bf16 fp8 fp4 */
    double mem_gib, mem_bw, l2_mib, units, clock, links, link_bw, watts;
} sheet;

/* clang-format off */
static const sheet sheets[] = {
    {"a100-pcie-40g", {19.5, 156, 312, 312, 0, 0}, 40, 1555, 40, 108, 1410, 0, 0, 250},
    {"a100-pcie-80g", {19.5, 156, 312, 312, 0, 0}, 80, 1935, 40, 108, 1410, 0, 0, 300},
    {"a100-sxm-40g", {19.5, 156, 312, 312, 0, 0}, 40, 1555, 40, 108, 1410, 12, 300, 400},
    {"a100-sxm-80g", {19.5, 156, 312, 312, 0, 0}, 80, 2039, 40, 108, 1410, 12, 300, 400},
    {"a30", {10.3, 82, 165, 165, 0, 0}, 24, 933, 24, 56, 1440, 4, 100, 165},
    {"a40", {37.4, 74.8, 149.7, 149.7, 0, 0}, 48, 696, 6, 84, 1740, 4, 56.25, 300},
    {"b200", {75, 1125, 2250, 2250, 4500, 9000}, 180, 8000, 126, 148, 1965, 18, 900, 1000},
    {"b300", {75, 1125, 2250, 2250, 4500, 13500}, 270, 8000, 126, 148, 1980, 18, 900, 1100},
    {"dojo-d1", {22.6, 0, 0, 362, 362, 0}, 440e6 / 0x1p30, 141600, 0, 354, 2000, 4, 8000, 400},
    {"b100", {60, 875, 1750, 1750, 3500, 7000}, 192, 8000, 126, 148, 1584, 18, 900, 700},
    {"gaudi3", {14.35, 0, 0, 1835, 1835, 0}, 128, 3670, 96, 64, 1750, 21, 525, 900},
    {"h20", {39.5, 74, 148, 148, 296, 0}, 96, 4000, 60, 78, 1980, 18, 450, 400},
    {"l20", {59.8, 59.8, 119.5, 119.5, 239, 0}, 48, 864, 96, 92, 2520, 0, 0, 275},
    {"mi300a", {122.6, 490.3, 980.6, 980.6, 1961.2, 0}, 128, 5300, 256, 228, 2100, 6, 384, 550},
    {"rtx-3090", {35.6, 35.6, 71, 71, 0, 0}, 24, 936, 6, 82, 1695, 4, 56.25, 350},
    {"rtx-5090", {104.8, 104.8, 209.5, 209.5, 419, 1676}, 32, 1792, 96, 170, 2407, 0, 0, 575},
    {"rtx-pro-6000", {125, 251.9, 503.8, 503.8, 1007.6, 2015.2}, 96, 1792, 128, 188, 2617, 0, 0, 600},
    {"rtx-pro-6000-server", {116.95, 233.9, 467.8, 467.8, 935.6, 1871}, 96, 1597, 128, 188, 2430, 0, 0, 600},
    {"tpu-v7", {14.3, 0, 0, 2307, 4614, 0}, 192, 7380, 128, 2, 1750, 6, 600, 0},
    {"trainium2", {181, 667, 667, 667, 1299, 0}, 96, 2900, 224, 8, 2540, 4, 640, 0},
    {"a800-sxm-80g", {19.5, 156, 312, 312, 0, 0}, 80, 2039, 40, 108, 1410, 8, 200, 400},
    {"rtx-a6000", {38.7, 77.4, 154.8, 154.8, 0, 0}, 48, 768, 6, 84, 1800, 4, 56.25, 300},
    {"gaudi2", {5.5, 0, 432, 432, 865, 0}, 96, 2460, 48, 24, 1800, 21, 262.5, 600},
    {"gb200", {80, 1250, 2500, 2500, 5000, 10000}, 186, 8000, 126, 152, 2062, 18, 900, 1200},
    {"gb300", {80, 1250, 2500, 2500, 5000, 15000}, 279, 8000, 126, 152, 2056, 18, 900, 1400},
    {"gh200", {66.9, 494.7, 989.4, 989.4, 1978.9, 0}, 96, 4000, 60, 132, 1980, 18, 450, 1000},
    {"gtx-1080-ti", {11.34, 0, 0, 0, 0, 0}, 11, 484.4, 2.75, 28, 1582, 0, 0, 250},
    {"h100-nvl", {60, 417.5, 835.5, 835.5, 1670.5, 0}, 94, 3938, 50, 132, 1785, 12, 300, 400},
    {"h100-pcie", {51.2, 378, 756, 756, 1513, 0}, 80, 2000, 50, 114, 1755, 0, 0, 350},
    {"h100-sxm-96g", {66.9, 494.7, 989.4, 989.4, 1978.9, 0}, 96, 2400, 50, 132, 1980, 18, 450, 500},
    {"h100-sxm", {66.9, 494.7, 989.4, 989.4, 1978.9, 0}, 80, 3350, 50, 132, 1980, 18, 450, 700},
    {"h200-nvl", {60, 417.5, 835.5, 835.5, 1670.5, 0}, 141, 4800, 50, 132, 1785, 18, 450, 600},
    {"h200-sxm", {66.9, 494.7, 989.4, 989.4, 1978.9, 0}, 141, 4800, 50, 132, 1980, 18, 450, 700},
    {"h800-sxm", {66.9, 494.7, 989.4, 989.4, 1978.9, 0}, 80, 3350, 50, 132, 1980, 8, 200, 700},
    {"l4", {30.3, 60, 121, 121, 242.5, 0}, 24, 300, 48, 58, 2040, 0, 0, 72},
    {"l40", {90.5, 90.5, 181.05, 181.05, 362, 0}, 48, 864, 96, 142, 2490, 0, 0, 300},
    {"l40s", {91.6, 183, 362.05, 362.05, 733, 0}, 48, 864, 96, 142, 2520, 0, 0, 350},
    {"mi100", {46.1, 0, 184.6, 92.3, 0, 0}, 32, 1228.8, 8, 120, 1502, 3, 138, 300},
    {"mi210", {45.3, 0, 181, 181, 0, 0}, 64, 1638, 8, 104, 1700, 3, 150, 300},
    {"mi250", {45.3, 0, 181.05, 181.05, 0, 0}, 64, 1638, 8, 104, 1700, 7, 350, 280},
    {"mi250x", {47.9, 0, 191.5, 191.5, 0, 0}, 64, 1638, 8, 110, 1700, 7, 350, 280},
    {"mi300x", {163.4, 653.7, 1307.4, 1307.4, 2614.9, 0}, 192, 5300, 256, 304, 2100, 7, 448, 750},
    {"mi325x", {163.4, 653.7, 1307.4, 1307.4, 2614.9, 0}, 256, 6000, 256, 304, 2100, 7, 448, 1000},
    {"mi355x", {157.3, 0, 2516.6, 2516.6, 5033.2, 10066.3}, 288, 8000, 256, 256, 2400, 7, 537.6, 1400},
    {"p100-pcie", {9.3, 0, 18.7, 0, 0, 0}, 16, 732, 4, 56, 1303, 0, 0, 250},
    {"p100-sxm2", {10.6, 0, 21.2, 0, 0, 0}, 16, 732, 4, 56, 1480, 4, 80, 300},
    {"p4", {5.5, 0, 0, 0, 0, 0}, 8, 192, 2, 20, 1113, 0, 0, 75},
    {"rtx-2080-ti", {13.45, 0, 53.8, 0, 0, 0}, 11, 616, 5.5, 68, 1545, 0, 0, 250},
    {"rtx-4090", {82.6, 82.6, 165.2, 165.2, 330.3, 0}, 24, 1008, 72, 128, 2520, 0, 0, 450},
    {"t4", {8.1, 0, 65, 0, 0, 0}, 16, 320, 4, 40, 1590, 0, 0, 70},
    {"titan-xp", {12.15, 0, 0, 0, 0, 0}, 12, 547.7, 3, 30, 1582, 0, 0, 250},
    {"tpu-v3", {4, 0, 0, 123, 0, 0}, 32, 900, 32, 2, 940, 4, 328, 262},
    {"tpu-v4", {4.3, 0, 0, 275, 0, 0}, 32, 1200, 128, 2, 1050, 6, 300, 192},
    {"tpu-v5e", {6.1, 0, 0, 197, 0, 0}, 16, 819, 128, 1, 1500, 4, 200, 0},
    {"tpu-v5p", {14.3, 0, 0, 459, 459, 0}, 95, 2765, 128, 2, 1750, 6, 600, 0},
    {"tpu-v6e", {6.1, 0, 0, 918, 0, 0}, 32, 1640, 128, 1, 1500, 4, 400, 0},
    {"v100-pcie-16g", {14, 0, 112, 0, 0, 0}, 16, 900, 6, 80, 1380, 0, 0, 250},
    {"v100-pcie-32g", {14, 0, 112, 0, 0, 0}, 32, 900, 6, 80, 1380, 0, 0, 250},
    {"v100-sxm2-16g", {15.7, 0, 125, 0, 0, 0}, 16, 900, 6, 80, 1530, 6, 150, 300},
    {"v100-sxm2-32g", {15.7, 0, 125, 0, 0, 0}, 32, 900, 6, 80, 1530, 6, 150, 300},
};
/* clang-format on */

/* What every device states, each with its source. */
static const char *const fields[] = {
    "fp32",  "vector_flops", "memory",  "mem_bw",  "l2",   "units",
    "clock", "links",        "link_bw", "host_bw", "power"};

static const sc_value *value_of(const sc_device *d, const char *key)
{
    for (uint32_t i = 0; i < d->n_values; i++)
        if (strcmp(d->values[i].key, key) == 0) return &d->values[i];
    return NULL;
}

typedef void (*visit)(const sc_device *d);

static void each_device(visit fn)
{
    const char **names;
    uint32_t n;
    assert_int_equal(sc_hw_list(true, &arena, &names, &n, &err), SC_OK);
    assert_int_equal(n, SC_COUNT(sheets));
    for (uint32_t i = 0; i < n; i++) {
        const sc_device *d = device(names[i]);
        assert_string_equal(d->name, names[i]);
        fn(d);
    }
}

static bool is_digits(const char *s, size_t n)
{
    return strspn(s, "0123456789") >= n;
}

static void has_sources(const sc_device *d)
{
    for (size_t k = 0; k < SC_COUNT(fields); k++)
        if (value_of(d, fields[k]) == NULL)
            fail_msg("%s: %s has no source", d->name, fields[k]);
    for (int p = 0; p < SC_N_PRECISIONS; p++)
        if (d->peak[p] > 0 && value_of(d, sc_precision_names[p]) == NULL)
            fail_msg("%s: %s has no source", d->name, sc_precision_names[p]);
    for (uint32_t v = 0; v < d->n_values; v++) {
        const sc_source *s = &d->values[v].source;
        /* 2016-06 ... : a year and a month of this century's devices */
        bool dated = strlen(s->date) == 7 && is_digits(s->date, 4) &&
                     s->date[4] == '-' && is_digits(s->date + 5, 2) &&
                     strcmp(s->date, "2016-01") > 0 &&
                     strcmp(s->date + 5, "12") <= 0;
        if (!dated || strlen(s->text) < 6)
            fail_msg("%s: %s: source \"%s\" of %s", d->name, d->values[v].key,
                     s->text, s->date);
    }
    /* 0 W says "nobody publishes it", and says so */
    if (d->power_w == 0)
        assert_non_null(strstr(value_of(d, "power")->source.text, "not publi"));
}

static void every_field_has_a_source(void **state)
{
    (void)state;
    each_device(has_sources);
}

static const sheet *sheet_of(const char *name)
{
    for (size_t i = 0; i < SC_COUNT(sheets); i++)
        if (strcmp(sheets[i].name, name) == 0) return &sheets[i];
    fail_msg("%s has no figures in this test", name);
    return NULL;
}

static void has_figures(const sc_device *d)
{
    const sheet *s = sheet_of(d->name);
    const double got[] = {(double)d->mem_bytes / 0x1p30,
                          d->mem_bw / 1e9,
                          (double)d->l2_bytes / 0x1p20,
                          d->units,
                          d->clock_hz / 1e6,
                          d->links,
                          d->link_bw / 1e9,
                          d->power_w};
    const double want[] = {s->mem_gib, s->mem_bw, s->l2_mib,  s->units,
                           s->clock,   s->links,  s->link_bw, s->watts};
    for (int p = 0; p < SC_INT8; p++)
        if (fabs(d->peak[p] / 1e12 - s->peak[p]) > 1e-9 * s->peak[p])
            fail_msg("%s: %s is %g TFLOP/s, not %g", d->name,
                     sc_precision_names[p], d->peak[p] / 1e12, s->peak[p]);
    for (size_t k = 0; k < SC_COUNT(want); k++)
        if (fabs(got[k] - want[k]) > 1e-9 * want[k])
            fail_msg("%s: figure %zu is %g, not %g", d->name, k, got[k],
                     want[k]);
}

static void figures_are_the_datasheets(void **state)
{
    (void)state;
    each_device(has_figures);
}

/* FLOP of 16-bit products that one unit starts in a clock, dense, in the largest
 * chip of a generation. */
static const struct {
    const char *arch;
    double flop;
} rates[] = {{"pascal", 256},         {"volta", 1024},
             {"turing", 1024},        {"ampere", 2048},
             {"ada", 1024},           {"hopper", 4096},
             {"blackwell", 8192},     {"blackwell-ultra", 8192},
             {"blackwell-rtx", 1024}, {"cdna1", 1024},
             {"cdna2", 1024},         {"cdna3", 2048},
             {"cdna4", 4096}};

/* Devices whose units run these products slower: chips of the same generation
 * with smaller tensor cores (GA102), cards that accumulate in fp32 at half rate
 * (GeForce, L40, L20), and boards for which export rules set the rate (H20). */
static const struct {
    const char *name;
    double part;
} slower[] = {{"a40", 0.5},      {"rtx-a6000", 0.5}, {"rtx-3090", 0.25},
              {"l20", 0.5},      {"l40", 0.5},       {"rtx-2080-ti", 0.5},
              {"rtx-4090", 0.5}, {"rtx-5090", 0.5},  {"h20", 0.25}};

static double part_of(const char *name)
{
    for (size_t i = 0; i < SC_COUNT(slower); i++)
        if (strcmp(slower[i].name, name) == 0) return slower[i].part;
    return 1;
}

/* Clocks of whitepapers are up to 14 % below those that drivers report. */
static void peak_is_possible(const sc_device *d)
{
    double half = fmax(d->peak[SC_FP16], d->peak[SC_BF16]);
    double ticks = d->units * d->clock_hz;
    for (size_t i = 0; i < SC_COUNT(rates); i++) {
        if (strcmp(rates[i].arch, d->arch) != 0 || half == 0) continue;
        double rate = half / (rates[i].flop * ticks * part_of(d->name));
        if (!(rate > 0.86 && rate < 1.01))
            fail_msg("%s: 16-bit products at %g of what its units can do",
                     d->name, rate);
    }
    /* a multiply-add per lane and clock: 64 or 128 lanes, 4 % for clocks */
    double lanes = d->vector_flops / 2 / ticks;
    bool gpu =
        strcmp(d->vendor, "nvidia") == 0 || strcmp(d->vendor, "amd") == 0;
    if (gpu && !(lanes > 62 && lanes < 132))
        fail_msg("%s: %g lanes", d->name, lanes);
}

/* Half the bits, twice the products: of one matrix unit. */
static void peaks_agree(const sc_device *d)
{
    const double *p = d->peak;
    bool nvidia = strcmp(d->vendor, "nvidia") == 0;
    bool gpu = nvidia || strcmp(d->vendor, "amd") == 0;
    assert_true(p[SC_FP32] > 0);
    assert_true(p[SC_FP16] == 0 || p[SC_FP16] >= p[SC_FP32]);
    assert_true(!nvidia || d->vector_flops >= p[SC_FP32]);
    /* the first CDNA runs bf16 at half the rate; chips without bf16 have none */
    if (gpu && p[SC_BF16] > 0 && strcmp(d->arch, "cdna1") != 0)
        assert_true(p[SC_BF16] == p[SC_FP16]);
    if (p[SC_FP8] > 0) assert_true(p[SC_FP8] >= p[SC_BF16]);
    if (gpu && p[SC_FP8] > 0) {
        double ratio = p[SC_FP8] / p[SC_BF16];
        if (!(ratio > 1.99 && ratio < 2.03))
            fail_msg("%s: fp8 is %g times bf16", d->name, ratio);
    }
    if (p[SC_FP4] > 0) assert_true(p[SC_FP4] >= 2 * p[SC_FP8] * 0.999);
    /* half the rate of fp16, or fp32's own where its unit runs it */
    if (nvidia && p[SC_TF32] > 0)
        assert_true(p[SC_TF32] >= p[SC_FP32] &&
                    p[SC_TF32] <= p[SC_FP16] * 0.51);
    peak_is_possible(d);
}

static void precisions_agree(void **state)
{
    (void)state;
    each_device(peaks_agree);
}

static void rest_is_plausible(const sc_device *d)
{
    double fill = (double)d->mem_bytes / d->mem_bw; /* s to read it all */
    bool sram = d->l2_bytes == 0;
    if (!sram && !(fill > 5e-3 && fill < 0.15))
        fail_msg("%s: memory is read in %g s", d->name, fill);
    assert_true(d->l2_bytes < d->mem_bytes / 32);
    assert_true(d->clock_hz > 0.9e9 && d->clock_hz < 3e9);
    assert_true(d->power_w == 0 || (d->power_w >= 70 && d->power_w <= 1400));
    assert_true((d->links == 0) == (d->link_bw == 0));
    /* from the 12.5 GB/s of an Ethernet port to an edge of a wafer's die */
    double link = d->links > 0 ? d->link_bw / d->links : 50e9;
    assert_true(link >= 12.5e9 && link <= 2000e9);
    assert_true(d->host_bw == 0 || (d->host_bw >= 16e9 && d->host_bw <= 450e9));
    const sc_hw *hw = machine(d->name);
    assert_int_equal(hw->n_devices, 1);
    assert_string_equal(hw->device->name, d->name);
}

static void ranges(void **state)
{
    (void)state;
    each_device(rest_is_plausible);
}

/* As people write them. */
static void the_names_people_type(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"A30", "a30"},
        {"A40", "a40"},
        {"L40", "l40"},
        {"L40S", "l40s"},
        {"h100 nvl", "h100-nvl"},
        {"H200", "h200-sxm"},
        {"GH200", "gh200"},
        {"H800", "h800-sxm"},
        {"B200", "b200"},
        {"B300", "b300"},
        {"GB200", "gb200"},
        {"GB300 NVL72", "gb300"},
        {"MI100", "mi100"},
        {"MI210", "mi210"},
        {"MI250", "mi250"},
        {"MI250X", "mi250x"},
        {"mi300x", "mi300x"},
        {"MI325X", "mi325x"},
        {"MI355X", "mi355x"},
        {"Gaudi2", "gaudi2"},
        {"TPU v3", "tpu-v3"},
        {"tpu-v4", "tpu-v4"},
        {"v5e", "tpu-v5e"},
        {"v5litepod", "tpu-v5e"},
        {"TPU v5 lite", "tpu-v5e"},
        {"v5p", "tpu-v5p"},
        {"tpuv5p", "tpu-v5p"},
        {"Trillium", "tpu-v6e"},
        {"TITAN Xp", "titan-xp"},
        {"GTX 1080 Ti", "gtx-1080-ti"},
        {"RTX 2080 Ti", "rtx-2080-ti"},
        {"NVIDIA GeForce RTX 4090", "rtx-4090"},
        {"NVIDIA GeForce RTX 3090", "rtx-3090"},
        {"RTX 5090", "rtx-5090"},
        {"RTX PRO 6000 Blackwell", "rtx-pro-6000"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"},
        {"H20", "h20"},
        {"L20", "l20"},
        {"B100", "b100"},
        {"MI300A", "mi300a"},
        {"Gaudi 3", "gaudi3"},
        {"Trainium2", "trainium2"},
        {"Ironwood", "tpu-v7"},
        {"TPU v7", "tpu-v7"},
    };
    for (size_t i = 0; i < SC_COUNT(names); i++)
        assert_string_equal(device(names[i][0])->name, names[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_field_has_a_source, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(figures_are_the_datasheets, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(precisions_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(the_names_people_type, setup,
                                        teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
