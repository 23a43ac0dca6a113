/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that a cluster file describes itself, and options behind a name. */
#include "hw/build.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static sc_arena arena;
static sc_err err;

static int setup(void **state)
{
    (void)state;
    sc_arena_init(&arena, (size_t)16 << 20);
    sc_err_init(&err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

static sc_status read_text(const char *text, const hw_adapters *nics,
                           const sc_hw **hw)
{
    sc_err_init(&err);
    return hw_build_text(text, strlen(text), "c.yml", nics, &arena, hw, &err);
}

static const sc_hw *built(const char *spec)
{
    const sc_hw *hw = NULL;
    sc_err_init(&err);
    if (sc_hw_build(spec, sc_pos_file("--cluster"), &arena, &hw, &err) != SC_OK)
        fail_msg("%s: %s", spec, err.d[0].msg);
    return hw;
}

#define H20                                                                \
    "node: dgx-h100\nnodes: 2\ndevice:\n  name: h20\n"                     \
    "  like: h100-sxm\n  fp32: 44TFLOP/s\n  bf16: 148TFLOP/s\n"            \
    "  memory: 96GiB\n  mem_bw: 4TB/s\n  units: 78\n  power: [400W, me]\n" \
    "  sources: {me: {text: \"a table\", date: 2024-01}}\n"

/* What is given holds; peaks are given together; the rest is of `like`. */
static void figures(void **state)
{
    (void)state;
    const sc_hw *hw = NULL;
    assert_int_equal(read_text(H20, NULL, &hw), SC_OK);
    const sc_device *d = hw->device;
    assert_string_equal(d->name, "h20");
    assert_string_equal(d->like, "h100-sxm");
    assert_string_equal(d->arch, "hopper");
    assert_true(d->peak[SC_BF16] == 148e12 && d->peak[SC_FP32] == 44e12);
    assert_true(d->vector_flops == 44e12);
    assert_true(d->peak[SC_FP8] == 0 && d->peak[SC_TF32] == 0);
    assert_true(d->mem_bytes == 96ULL << 30 && d->mem_bw == 4e12);
    assert_true(d->units == 78 && d->power_w == 400);
    assert_true(d->link_bw == 450e9 && d->l2_bytes == 50ULL << 20);
    assert_int_equal(d->n_values, 1);
    assert_true(hw->n_devices == 16 && hw->dim[0].bw == 450e9);
    assert_null(built("dgx-h100:2")->device->like);
    assert_true(hw->hash != built("dgx-h100:2")->hash);
}

/* Without peaks those of `like` hold; a generation may be named. */
static void few_words(void **state)
{
    (void)state;
    const sc_hw *hw = NULL;
    assert_int_equal(read_text("node: pcie-gen4\ndevice: {like: a40, "
                               "memory: 24GiB, arch: ada}\n",
                               NULL, &hw),
                     SC_OK);
    assert_string_equal(hw->device->arch, "ada");
    assert_string_equal(hw->device->name, "own-device");
    assert_true(hw->device->peak[SC_BF16] > 0);
    assert_true(hw->device->mem_bytes == 24ULL << 30);
}

static void groups(void **state)
{
    (void)state;
    const sc_hw *hw = NULL;
    assert_int_equal(
        read_text("node: dgx-h100\ngroups:\n"
                  "  - {nodes: 1, device: {name: x, like: h100-sxm, memory: "
                  "40GiB}}\n"
                  "  - {node: dgx-h100, nodes: 1, device: x}\n"
                  "  - {nodes: 2}\n",
                  NULL, &hw),
        SC_OK);
    assert_string_equal(sc_hw_device_at(hw, 0)->name, "x");
    assert_string_equal(sc_hw_device_at(hw, 8)->name, "x");
    assert_string_equal(sc_hw_device_at(hw, 16)->name, "h100-sxm");
    assert_true(hw->device->mem_bytes == 40ULL << 30);
}

static void located(void **state)
{
    (void)state;

    static const struct {
        const char *text, *message;
    } all[] = {
        {"node: dgx-h100\ndevice: {name: x}\n",
         "c.yml:2:9: error: missing key \"like\""},
        {"node: dgx-h100\ndevice: {like: h100-sxn}\n",
         "c.yml:2:16: error: unknown device \"h100-sxn\"; \"stepcast list"},
        {"node: dgx-h100\ndevice: {like: h100-sxm, bf16: 148}\n",
         "c.yml:2:32: error: \"148\" has no unit"},
        {"node: dgx-h100\ndevice: {like: h100-sxm, bf16: 148TFLOP/s}\n",
         "c.yml:2:9: error: the device has only peaks of matrix units; give "
         "fp32"},
        {"node: dgx-h100\ndevice: {like: h100-sxm, arch: hoper}\n",
         "c.yml:2:32: error: no fits of a generation \"hoper\"; "},
        {"node: dgx-h100\ndevice: {like: h100-sxm, memry: 2GiB}\n",
         "c.yml:2:26: error: unknown key \"memry\""},
        {"node: dgx-h100\ngroups:\n  - {device: {like: a40}}\n"
         "  - {device: {like: t4}}\n",
         "c.yml:4:14: error: another device has the name \"own-device\""},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const sc_hw *hw = NULL;
        char line[600];
        assert_int_equal(read_text(all[i].text, NULL, &hw), SC_EINPUT);
        sc_diag_format(&err.d[0], line, sizeof line);
        if (strncmp(line, all[i].message, strlen(all[i].message)) != 0)
            fail_msg("%s\n%s", all[i].text, line);
    }
}

/* A name with options is the machine that a file with these keys is. */
static void options(void **state)
{
    (void)state;

    static const struct {
        const char *line, *text;
    } all[] = {
        {"dgx-h100:4;nic_bw=200Gb/s",
         "node: dgx-h100\nnodes: 4\nnic_bw: 200Gb/s\n"},
        {"dgx-h100:4 ; nics=2 ; oversubscription=2",
         "node: dgx-h100\nnodes: 4\nnics: 2\nrails: 2\noversubscription: 2\n"},
        {"dgx-h100:2;device=h200-sxm",
         "node: dgx-h100\nnodes: 2\ndevice: h200-sxm\n"},
        {"a100-sxm-80g:16;rails=4", "node: dgx-a100-80g\nnodes: 2\nrails: 4\n"},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const sc_hw *hw = NULL;
        assert_int_equal(read_text(all[i].text, NULL, &hw), SC_OK);
        if (hw->hash != built(all[i].line)->hash) fail_msg("%s", all[i].line);
    }
    const sc_hw *hw = NULL;
    sc_err_init(&err);
    assert_int_equal(sc_hw_build("dgx-h100:2;nic=3", sc_pos_file("--cluster"),
                                 &arena, &hw, &err),
                     SC_EINPUT);
    assert_string_equal(err.d[0].msg, "unknown key \"nic\"");
    assert_int_equal(err.d[0].col, 12);
}

/* One rate of adapters, whatever form names the machine. */
static void adapters(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "dgx-h100:4", "dgx-h100:4;nic_bw=100Gb/s",
        "switch8@450GB/s x switch4@50GB/s;device=h100-sxm"};
    const sc_hw *hw = NULL;
    for (size_t i = 0; i < SC_COUNT(specs); i++) {
        sc_err_init(&err);
        assert_int_equal(sc_hw_build_nics(specs[i], sc_pos_none(), 25e9,
                                          sc_pos_none(), &arena, &hw, &err),
                         SC_OK);
        assert_true(hw->dim[1].port_bw == 25e9 && hw->dim[1].bw == 25e9);
    }
    const hw_adapters nics = {25e9, sc_pos_file("--nic-bw")};
    assert_int_equal(
        read_text("node: dgx-h100\ngroups: [{nodes: 2}]\n", &nics, &hw),
        SC_EINPUT);
    assert_string_equal(err.d[0].msg,
                        "one rate is given for nodes with different adapters");
    sc_err_init(&err);
    assert_int_equal(sc_hw_build_nics("ring8@50GB/s", sc_pos_none(), 25e9,
                                      sc_pos_none(), &arena, &hw, &err),
                     SC_EINPUT);
}

/* Figures of the catalogue times factors; the fits are those of the device. */
static void factors(void **state)
{
    (void)state;
#define SCALED "h100-sxm*{peak=1.5,mem_bw=2,memory=4}"
    static const char *const specs[] = {
        "dgx-h100:4; device=h100-sxm*{peak=1.5, mem_bw=2,memory=4}",
        ("switch8@450GB/s x switch4@50GB/s; device=" SCALED), SCALED ":32"};
    const sc_device *of = built("dgx-h100:4")->device;
    for (size_t i = 0; i < SC_COUNT(specs); i++) {
        const sc_hw *hw = built(specs[i]);
        const sc_device *d = hw->device;
        assert_int_equal(hw->n_devices, 32);
        assert_string_equal(d->like, "h100-sxm");
        assert_memory_equal(d->name, "h100-sxm*{", 10);
        assert_true(d->peak[SC_BF16] == 1.5 * of->peak[SC_BF16]);
        assert_true(d->vector_flops == 1.5 * of->vector_flops);
        assert_true(d->mem_bw == 2 * of->mem_bw);
        assert_true(d->mem_bytes == 4 * of->mem_bytes);
        assert_true(d->l2_bytes == of->l2_bytes && d->link_bw == of->link_bw);
        assert_true(d->power_w == of->power_w && d->host_bw == of->host_bw);
    }
    assert_true(built(specs[0])->hash != built("dgx-h100:4")->hash);
}

/* A larger node has adapters and rails in proportion, unless they are given,
 * and hosts of the usual size. */
static void sizes(void **state)
{
    (void)state;
    const sc_hw *hw = built("dgx-h100:2; devices_per_node=32; sharp=true");
    const sc_dim *net = &hw->dim[1];
    assert_int_equal(hw->node_size, 32);
    assert_int_equal(hw->host_size, 8);
    assert_int_equal(net->ports, 32);
    assert_int_equal(net->rails, 32);
    assert_true(net->bw == built("dgx-h100:2")->dim[1].bw);
    hw = built("dgx-h100:2; devices_per_node=32; nics=8; bandwidth=900GB/s; "
               "fabric_latency=1us; nic_latency=2us");
    assert_int_equal(hw->dim[1].ports, 8);
    assert_int_equal(hw->dim[1].rails, 8);
    assert_true(hw->dim[0].bw == 900e9);
    assert_true(hw->dim[0].latency_s == 1e-6 && hw->dim[1].latency_s == 2e-6);
    hw = built("dgx-h100:2; devices_per_node=4");
    assert_int_equal(hw->n_devices, 8);
    assert_int_equal(hw->dim[1].ports, 4);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(figures), T(few_words), T(groups),
                                       T(located), T(options),   T(adapters),
                                       T(factors), T(sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
