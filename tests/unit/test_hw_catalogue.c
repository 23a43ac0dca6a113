/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and clusters of the catalogue: every file loads, each under the names
 * that people type, with the links it has. */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* Of files that describe something, every value names a source, and every
 * source a year and a month. */
static void check_file(const sc_embedded *file)
{
    static const char *const plain[] = {"name", "title",   "vendor", "arch",
                                        "node", "sources", NULL};
    sc_node *root;
    assert_int_equal(sc_embedded_read(file, &arena, &root, &err), SC_OK);
    const sc_node *sources = sc_node_get(root, "sources");
    for (const sc_node *c = root->child; c != NULL; c = c->next) {
        size_t i = 0;
        while (plain[i] != NULL && strcmp(plain[i], c->key) != 0) i++;
        if (plain[i] != NULL) continue;
        if (c->kind != SC_N_SEQ || c->n != 2 ||
            sc_node_get(sources, c->child->next->text) == NULL)
            fail_msg("%s: %s has no source", file->path, c->key);
    }
    for (const sc_node *c = sources->child; c != NULL; c = c->next) {
        const sc_node *date = sc_node_get(c, "date");
        assert_int_equal(strlen(date->text), 7);
        assert_true(date->text[4] == '-' && strncmp(date->text, "20", 2) == 0);
        assert_true(strlen(sc_node_get(c, "text")->text) > 8);
    }
}

static void every_value_has_a_source(void **state)
{
    (void)state;
    uint32_t n, checked = 0;
    const sc_embedded *file = sc_embedded_all(&n);
    for (uint32_t i = 0; i < n; i++) {
        if (strncmp(file[i].path, "hw/nodes/", 9) != 0 &&
            strncmp(file[i].path, "hw/devices/", 11) != 0)
            continue;
        check_file(&file[i]);
        checked++;
    }
    assert_true(checked > 100);
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
                {"ND_H100_v5:2", "h100-sxm", 50},
                {"Standard_ND96isr_H100_v5:2", "h100-sxm", 50},
                {"Standard_ND96asr_v4:2", "a100-sxm-40g", 25},
                {"NDm_A100_v4:2", "a100-sxm-80g", 25},
                {"nd-h200-v5:2", "h200-sxm", 50},
                {"ND_MI300X_v5:2", "mi300x", 50},
                {"p4d.24xlarge:2", "a100-sxm-40g", 6.25},
                {"p5.48xlarge:2", "h100-sxm", 50},
                {"p5e.48xlarge:2", "h200-sxm", 50},
                {"p6-b200.48xlarge:2", "b200", 50},
                {"a3-megagpu-8g:2", "h100-sxm", 25},
                {"a3-ultragpu-8g:2", "h200-sxm", 50},
                {"a4-highgpu-8g:2", "b200", 50},
                {"GB200 NVL72:2", "gb200", 50},
                {"GB300 NVL72:2", "gb300", 100},
                {"gaudi2-node:2", "gaudi2", 37.5},
                {"gaudi3-node:2", "gaudi3", 75},
                {"aws-trn2:2", "trainium2", 25},
                {"trn2.48xlarge:2", "trainium2", 25},
                {"mi300a-node:2", "mi300a", 25},
                {"mi300x-node:2", "mi300x", 50},
                {"1080_1ib:2", "gtx-1080-ti", 1.5625},
                {"frontier:9408", "mi250x", 12.5},
                {"perlmutter:1536", "a100-sxm-40g", 25},
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
    assert_true(machine("perlmutter")->dim[0].bw == 300e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_node, setup, teardown),
        cmocka_unit_test_setup_teardown(every_value_has_a_source, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nodes_of_the_catalogue, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(racks, setup, teardown),
        cmocka_unit_test_setup_teardown(pods, setup, teardown),
        cmocka_unit_test_setup_teardown(clouds_and_machines, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_of_devices, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
