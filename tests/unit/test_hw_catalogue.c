/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: every file loads, every value has its source, figures are
 * those of the datasheets. */
#include <stepcast/hw.h>

#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sc_arena arena;
static sc_err err;

static int setup(void **state)
{
    (void)state;
    sc_arena_init(&arena, (size_t)64 << 20);
    sc_err_init(&err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

static const sc_device *device(const char *name)
{
    const sc_device *d = NULL;
    if (sc_device_find(name, &arena, &d, &err) != SC_OK)
        fail_msg("%s: %s", name, err.d[0].msg);
    return d;
}

static const sc_hw *machine(const char *spec)
{
    const sc_hw *hw = NULL;
    if (sc_hw_build(spec, sc_pos_file("--cluster"), &arena, &hw, &err) != SC_OK)
        fail_msg("%s: %s (%s)", spec, err.d[0].msg, err.d[0].hint);
    return hw;
}

static bool has_value(const sc_device *d, const char *key)
{
    for (uint32_t i = 0; i < d->n_values; i++)
        if (strcmp(d->values[i].key, key) == 0) return true;
    return false;
}

static void every_device(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "vector_flops", "memory", "mem_bw",  "l2",      "units",
        "clock",        "links",  "link_bw", "host_bw", "power"};
    const char **names;
    uint32_t n;
    assert_int_equal(sc_hw_list(true, &arena, &names, &n, &err), SC_OK);
    assert_true(n >= 47);
    for (uint32_t i = 0; i < n; i++) {
        const sc_device *d = device(names[i]);
        assert_string_equal(d->name, names[i]);
        for (size_t k = 0; k < SC_COUNT(keys); k++)
            if (!has_value(d, keys[k]))
                fail_msg("%s: %s has no source", names[i], keys[k]);
        for (int p = 0; p < SC_N_PRECISIONS; p++)
            if (d->peak[p] > 0 && !has_value(d, sc_precision_names[p]))
                fail_msg("%s: %s has no source", names[i],
                         sc_precision_names[p]);
        for (uint32_t v = 0; v < d->n_values; v++) {
            assert_true(strlen(d->values[v].source.text) > 5);
            assert_int_equal(strlen(d->values[v].source.date), 7);
        }
        assert_true(d->peak[SC_FP32] > 0);
        assert_true(d->peak[SC_FP16] == 0 ||
                    d->peak[SC_FP16] >= d->peak[SC_FP32]);
        assert_true(d->peak[SC_FP16] == 0 || d->peak[SC_BF16] == 0 ||
                    d->peak[SC_FP16] >= d->peak[SC_BF16]);
        assert_true(d->peak[SC_FP8] == 0 ||
                    d->peak[SC_FP8] >= d->peak[SC_BF16]);
        assert_true(d->peak[SC_FP4] == 0 ||
                    d->peak[SC_FP4] >= 2 * d->peak[SC_FP8] * 0.999);
        bool gpu = strcmp(d->vendor, "nvidia") == 0;
        assert_true(!gpu || d->vector_flops >= d->peak[SC_FP32]);
        /* what one multiply-add per lane and clock gives, within 3 % */
        double lanes = d->vector_flops / 2 / d->clock_hz / d->units;
        gpu = gpu || strcmp(d->vendor, "amd") == 0;
        if (gpu && !(lanes > 62 && lanes < 132))
            fail_msg("%s: %g lanes", names[i], lanes);
        assert_true(d->links == 0 || d->link_bw / d->links >= 12.5e9);
        assert_true((d->links == 0) == (d->link_bw == 0));
        const sc_hw *hw = machine(names[i]);
        assert_int_equal(hw->n_devices, 1);
        assert_string_equal(hw->device->name, names[i]);
    }
}

static void every_node(void **state)
{
    (void)state;
    const char **names;
    uint32_t n;
    assert_int_equal(sc_hw_list(false, &arena, &names, &n, &err), SC_OK);
    assert_true(n >= 10);
    for (uint32_t i = 0; i < n; i++) {
        char spec[128];
        snprintf(spec, sizeof spec, "%s:3", names[i]);
        const sc_hw *hw = machine(spec);
        bool pod = strstr(names[i], "-pod") != NULL;
        assert_int_equal(hw->n_nodes, pod ? 1 : 3);
        assert_int_equal(hw->n_devices, pod ? 3 : 3 * hw->node_size);
        assert_int_equal(hw->node_size % hw->host_size, 0);
        assert_true(hw->n_values > 0);
        for (uint32_t d = 0; d < hw->n_dims; d++)
            assert_true(hw->dim[d].bw > 0 && hw->dim[d].latency_s > 0);
        assert_true(pod || hw->dim[hw->n_dims - 1].ports > 0);
        assert_true(sc_hw_n_links(hw) > 0);
        const sc_device *usual = device(hw->device->name);
        assert_int_equal(machine(usual->node)->n_devices > 0, 1);
    }
}

static void datasheets(void **state)
{
    (void)state;
    const sc_device *a = device("a100-sxm-80g"), *h = device("h100-sxm"),
                    *v = device("v100-sxm2-32g"), *l = device("l4");
    assert_true(a->peak[SC_BF16] == 312e12 && a->peak[SC_TF32] == 156e12);
    assert_true(a->peak[SC_INT8] == 624e12 && a->vector_flops == 19.5e12);
    assert_true(a->mem_bw == 2039e9 && a->link_bw == 300e9);
    assert_true(a->mem_bytes == 80ull << 30 && a->l2_bytes == 40ull << 20);
    assert_true(a->units == 108 && a->power_w == 400 && a->peak[SC_FP8] == 0);
    assert_true(h->peak[SC_FP16] == 989.4e12 && h->peak[SC_FP8] == 1978.9e12);
    assert_true(h->mem_bw == 3350e9 && h->link_bw == 450e9);
    assert_true(v->peak[SC_FP16] == 125e12 && v->peak[SC_BF16] == 0);
    assert_true(v->link_bw == 150e9 && v->host_bw == 16e9);
    assert_true(l->peak[SC_FP16] == 121e12 && l->mem_bw == 300e9);
    assert_true(device("a100-pcie-40g")->link_bw == 0);
    assert_true(device("t4")->peak[SC_FP16] == 65e12);
    assert_true(device("p4")->peak[SC_INT8] == 22e12);
    assert_true(device("h100-pcie")->peak[SC_BF16] == 756e12);
}

static void nodes_of_the_catalogue(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-h100:2048");
    assert_int_equal(hw->n_devices, 16384);
    assert_int_equal(hw->dim[0].kind, SC_DIM_SWITCH);
    assert_true(hw->dim[0].multicast && hw->dim[0].bw == 450e9);
    assert_true(hw->dim[1].ports == 8 && hw->dim[1].port_bw == 50e9);
    assert_true(hw->dim[1].bw == 50e9 && hw->dim[1].rails == 8);
    assert_true(hw->node_power_w == 4600);
    assert_string_equal(hw->cpu_vendor, "intel");

    hw = machine("jean-zay:52");
    assert_true(hw->dim[1].ports == 4 && hw->dim[1].bw == 6.25e9);
    hw = machine("selene:384");
    assert_true(hw->dim[1].leaf == 20 && hw->dim[1].bw == 25e9);
    assert_string_equal(hw->device->name, "a100-sxm-80g");
    hw = machine("dgx1-v100-1ib:2");
    assert_true(hw->dim[0].kind == SC_DIM_CUBE && hw->dim[1].ports == 1);
    hw = machine("pcie-gen4:2");
    assert_true(hw->dim[0].kind == SC_DIM_TREE && hw->dim[0].bw == 32e9);
    hw = machine("dgx2-v100");
    assert_true(hw->node_size == 16 && hw->n_dims == 1);
    assert_int_equal(machine("HGX H100:4")->hash, machine("dgx-h100:4")->hash);
}

/* NAME:N of a device counts devices. */
static void counts_of_devices(void **state)
{
    (void)state;
    assert_int_equal(machine("h100-sxm:16")->n_nodes, 2);
    assert_int_equal(machine("h100-sxm:16")->hash, machine("dgx-h100:2")->hash);
    const sc_hw *hw = machine("v100-sxm2-16g:2");
    assert_true(hw->dim[0].kind == SC_DIM_FULL && hw->dim[0].bw == 25e9);
    assert_true(machine("V100:4")->dim[0].bw == 100e9);
    assert_int_equal(machine("p100-sxm2:16")->n_nodes, 2);
    assert_int_equal(machine("t4:5")->n_devices, 5);
}

typedef struct sheet {
    const char *name;
    double bf16, fp8, fp4;       /* TFLOP/s */
    double mem_gib, bw, link_bw; /* GB/s */
    uint32_t units;
    double watts;
} sheet;

static void figures(void **state)
{
    (void)state;
    static const sheet sheets[] = {
        {"a30", 165, 0, 0, 24, 933, 100, 56, 165},
        {"a40", 149.7, 0, 0, 48, 696, 56.25, 84, 300},
        {"l40", 181.05, 362, 0, 48, 864, 0, 142, 300},
        {"l40s", 362.05, 733, 0, 48, 864, 0, 142, 350},
        {"h100-nvl", 835.5, 1670.5, 0, 94, 3938, 300, 132, 400},
        {"h100-sxm-96g", 989.4, 1978.9, 0, 96, 2400, 450, 132, 500},
        {"h200-sxm", 989.4, 1978.9, 0, 141, 4800, 450, 132, 700},
        {"h200-nvl", 835.5, 1670.5, 0, 141, 4800, 450, 132, 600},
        {"gh200", 989.4, 1978.9, 0, 96, 4000, 450, 132, 1000},
        {"h800-sxm", 989.4, 1978.9, 0, 80, 3350, 200, 132, 700},
        {"b200", 2250, 4500, 9000, 180, 8000, 900, 148, 1000},
        {"gb200", 2250, 4500, 9000, 186, 8000, 900, 148, 1200},
        {"b300", 2250, 4500, 13500, 270, 8000, 900, 148, 1100},
        {"gb300", 2250, 4500, 13500, 279, 8000, 900, 148, 1400},
        {"mi100", 92.3, 0, 0, 32, 1228.8, 138, 120, 300},
        {"mi210", 181, 0, 0, 64, 1638, 150, 104, 300},
        {"mi250", 181.05, 0, 0, 64, 1638, 350, 104, 280},
        {"mi250x", 191.5, 0, 0, 64, 1638, 350, 110, 280},
        {"mi300x", 1307.4, 2614.9, 0, 192, 5300, 448, 304, 750},
        {"mi325x", 1307.4, 2614.9, 0, 256, 6000, 448, 304, 1000},
        {"mi355x", 2516.6, 5033.2, 10066.3, 288, 8000, 537.6, 256, 1400},
        {"gaudi2", 432, 865, 0, 96, 2460, 262.5, 24, 600},
        {"tpu-v3", 123, 0, 0, 32, 900, 328, 2, 262},
        {"tpu-v4", 275, 0, 0, 32, 1200, 300, 2, 192},
        {"tpu-v5e", 197, 0, 0, 16, 819, 200, 1, 0},
        {"tpu-v5p", 459, 459, 0, 95, 2765, 600, 2, 0},
        {"tpu-v6e", 918, 0, 0, 32, 1640, 400, 1, 0},
        {"titan-xp", 0, 0, 0, 12, 547.7, 0, 30, 250},
        {"gtx-1080-ti", 0, 0, 0, 11, 484.4, 0, 28, 250},
        {"rtx-2080-ti", 0, 0, 0, 11, 616, 0, 68, 250},
        {"rtx-4090", 165.2, 330.3, 0, 24, 1008, 0, 128, 450}};
    for (size_t i = 0; i < SC_COUNT(sheets); i++) {
        const sheet *s = &sheets[i];
        const sc_device *d = device(s->name);
        const double got[] = {d->peak[SC_BF16] / 1e12,
                              d->peak[SC_FP8] / 1e12,
                              d->peak[SC_FP4] / 1e12,
                              (double)d->mem_bytes / 0x1p30,
                              d->mem_bw / 1e9,
                              d->link_bw / 1e9,
                              d->units,
                              d->power_w};
        const double want[] = {s->bf16, s->fp8,     s->fp4,   s->mem_gib,
                               s->bw,   s->link_bw, s->units, s->watts};
        for (size_t k = 0; k < SC_COUNT(want); k++)
            if (fabs(got[k] - want[k]) > 1e-9 * want[k])
                fail_msg("%s: figure %zu is %g, not %g", s->name, k, got[k],
                         want[k]);
    }
    assert_string_equal(device("b200")->arch, "blackwell");
    assert_string_equal(device("gb300")->arch, "blackwell-ultra");
}

/* Racks of 72, hosts of four. */
static void racks(void **state)
{
    (void)state;
    const sc_hw *hw = machine("gb200-nvl72:8");
    assert_true(hw->n_devices == 576 && hw->node_size == 72);
    assert_true(hw->host_size == 4 && hw->n_nodes == 8);
    assert_true(hw->dim[0].multicast && hw->dim[0].bw == 900e9);
    assert_true(hw->dim[1].bw == 50e9 && hw->dim[1].ports == 72);
    assert_true(machine("gb300-nvl72:2")->dim[1].bw == 100e9);
    hw = machine("gb300:256");
    assert_true(hw->node_size == 64 && hw->n_nodes == 4);
    assert_true(hw->dim[1].ports == 64 && hw->dim[1].bw == 100e9);
    hw = machine("gb300:8");
    assert_true(hw->n_nodes == 1 && hw->node_size == 8 && hw->host_size == 4);
    assert_int_equal(machine("gb200:144")->hash,
                     machine("gb200-nvl72:2")->hash);
}

/* Chips; sides that make the most compact slice, closed where they may be. */
static void pods(void **state)
{
    (void)state;
    const sc_hw *hw = machine("tpu-v5p-pod:128");
    assert_true(hw->n_devices == 128 && hw->n_dims == 3 && hw->n_nodes == 1);
    assert_true(hw->dim[0].size == 4 && hw->dim[1].size == 4);
    assert_true(hw->dim[2].size == 8 && hw->dim[2].kind == SC_DIM_RING);
    assert_true(hw->dim[0].bw == 200e9 && hw->host_size == 4);
    hw = machine("tpu-v5p:6144");
    assert_true(hw->dim[0].size == 16 && hw->dim[1].size == 16);
    assert_true(hw->dim[2].size == 24);
    hw = machine("tpu-v5e:32");
    assert_true(hw->n_dims == 2 && hw->dim[0].size == 4);
    assert_true(hw->dim[1].size == 8 && hw->dim[1].kind == SC_DIM_MESH);
    assert_true(hw->dim[1].bw == 100e9);
    hw = machine("tpu-v5e:50944");
    assert_true(hw->n_nodes == 199 && hw->n_dims == 3);
    assert_true(hw->dim[0].kind == SC_DIM_RING && hw->dim[0].size == 16);
    assert_true(hw->dim[2].bw == 3.125e9);
    assert_int_equal(machine("tpu-v4:4096")->n_nodes, 1);
    assert_int_equal(machine("tpu-v5p-pod")->n_devices, 1);
}

static void clouds_and_machines(void **state)
{
    (void)state;

    static const struct {
        const char *spec, *device;
        double bw; /* of one device between nodes, GB/s */
    } rows[] = {{"dgx-h200:2", "h200-sxm", 50},
                {"dgx-b200:2", "b200", 50},
                {"dgx-b300:2", "b300", 100},
                {"eos:576", "h100-sxm", 50},
                {"aws-p4d:2", "a100-sxm-40g", 6.25},
                {"aws-p5:2", "h100-sxm", 50},
                {"aws-p5e:2", "h200-sxm", 50},
                {"azure-ndv4:2", "a100-sxm-40g", 25},
                {"azure-ndv5:2", "h100-sxm", 50},
                {"gcp-a3-high:2", "h100-sxm", 12.5},
                {"gcp-a3:2", "h100-sxm", 25},
                {"gaudi2-node:2", "gaudi2", 37.5},
                {"mi300x-node:2", "mi300x", 50},
                {"1080_1ib:2", "gtx-1080-ti", 1.5625},
                {"frontier:9408", "mi250x", 12.5},
                {"dojo-tile:2", "dojo-d1", 720}};

    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        const sc_hw *hw = machine(rows[i].spec);
        if (strcmp(hw->device->name, rows[i].device) != 0 ||
            fabs(hw->dim[hw->n_dims - 1].bw / rows[i].bw / 1e9 - 1) > 1e-9)
            fail_msg("%s: %s, %g", rows[i].spec, hw->device->name,
                     hw->dim[hw->n_dims - 1].bw);
    }
    const sc_hw *hw = machine("dojo-tile");
    assert_true(hw->n_dims == 2 && hw->dim[0].kind == SC_DIM_MESH);
    assert_true(hw->dim[0].size == 5 && hw->dim[0].bw == 4e12);
    hw = machine("h200-nvl-pcie");
    assert_true(hw->dim[0].kind == SC_DIM_FULL && hw->dim[0].size == 4);
    assert_true(hw->dim[1].kind == SC_DIM_TREE && hw->dim[1].size == 2);
    assert_true(machine("h200-nvl:2")->dim[0].bw == 150e9);
    hw = machine("a40_pairwise_nvlink");
    assert_true(hw->dim[0].bw == 56.25e9 && hw->dim[1].bw == 32e9);
    assert_true(machine("mi300x-node")->dim[0].kind == SC_DIM_FULL);
    assert_true(machine("frontier:256")->dim[1].group == 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_device, setup, teardown),
        cmocka_unit_test_setup_teardown(every_node, setup, teardown),
        cmocka_unit_test_setup_teardown(datasheets, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_of_the_catalogue, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(figures, setup, teardown),
        cmocka_unit_test_setup_teardown(racks, setup, teardown),
        cmocka_unit_test_setup_teardown(pods, setup, teardown),
        cmocka_unit_test_setup_teardown(clouds_and_machines, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_of_devices, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
