/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: every file loads, every value has its source, figures are
 * those of the datasheets. */
#include <stepcast/hw.h>

#include "unit.h"

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
    assert_true(n >= 15);
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
        assert_true(d->vector_flops >= d->peak[SC_FP32]);
        assert_true(d->peak[SC_FP16] == 0 ||
                    d->peak[SC_FP16] >= d->peak[SC_FP32]);
        /* what one multiply-add per lane and clock gives, within 3 % */
        double lanes = d->vector_flops / 2 / d->clock_hz / d->units;
        assert_true(lanes > 62 && lanes < 132);
        assert_true(d->links == 0 || d->link_bw / d->links >= 20e9);
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
        assert_int_equal(hw->n_nodes, 3);
        assert_int_equal(hw->n_dims, 2);
        assert_int_equal(hw->n_devices, 3 * hw->node_size);
        assert_true(hw->n_values > 0);
        assert_true(hw->dim[0].bw > 0 && hw->dim[1].bw > 0);
        assert_true(hw->dim[0].latency_s > 0 && hw->dim[1].latency_s > 0);
        assert_true(sc_hw_n_links(hw) > 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_device, setup, teardown),
        cmocka_unit_test_setup_teardown(every_node, setup, teardown),
        cmocka_unit_test_setup_teardown(datasheets, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_of_the_catalogue, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(counts_of_devices, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
