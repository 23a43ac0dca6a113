/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of several kinds of nodes. */
#include "hw/build.h"
#include "hw/hw_link.h"
#include "property.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const texts[] = {
    "node: dgx-h100\nrails: 4\nleaf: 2\ngroups:\n"
    "  - {nodes: 3}\n"
    "  - {nodes: 2, nics: 4, nic_bw: 200Gb/s}\n"
    "  - {node: dgx-a100-80g, nodes: 4}\n",
    "rails: 1\nleaf: 2\ngroups:\n"
    "  - {node: pcie-gen4, nodes: 2, device: l40s, nics: 3}\n"
    "  - {node: pcie-gen4, nodes: 3, device: t4, nics: 16, nic_bw: 10Gb/s}\n",
    "rails: 2\nleaf: 1\ngroup: 3\ngroups:\n"
    "  - {node: mi300x-node, nodes: 5}\n"
    "  - {node: mi250-node, nodes: 2}\n"};

static sc_arena arena;
static sc_err err;
static const sc_hw *hw[SC_COUNT(texts)];

static const sc_hw *cluster(const char *text)
{
    const sc_hw *h = NULL;
    sc_err_init(&err);
    if (hw_build_text(text, strlen(text), "c.yml", NULL, &arena, &h, &err) !=
        SC_OK)
        fail_msg("%s: %s", text, err.d[0].msg);
    return h;
}

static int build_all(void **state)
{
    (void)state;
    sc_arena_init(&arena, (size_t)64 << 20);
    for (size_t i = 0; i < SC_COUNT(texts); i++) hw[i] = cluster(texts[i]);
    return 0;
}

static int drop_all(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

/* Each device that may use more is limited, and the whole has their mean. */
static void limited_power(void **state)
{
    (void)state;
    const sc_hw *h = NULL;
    assert_int_equal(sc_hw_cap(hw[0], 500, &arena, &h, &err), SC_OK);
    const sc_device *fast = sc_hw_device_at(h, 39);
    const sc_device *slow = sc_hw_device_at(h, 40);
    assert_true(fast->power_w == 500 && fast->usual_power_w == 700);
    assert_true(slow->power_w == 400 && slow->usual_power_w == 0);
    assert_true(fabs(h->device->power_w - (5 * 500 + 4 * 400) / 9.0) < 1e-9);
    assert_true(h->hash != hw[0]->hash);
    const sc_device *was = sc_hw_device_at(hw[0], 39);
    assert_true(was->power_w == 700);
    double clock = cbrt(500.0 / 700);
    assert_true(fabs(fast->vector_flops / was->vector_flops - clock) < 1e-12);
    assert_true(fast->peak[SC_BF16] == was->peak[SC_BF16]);
    assert_int_equal(sc_hw_cap(hw[0], 200, &arena, &h, &err), SC_OK);
    assert_true(h->device->power_w == 200);
    assert_true(h->device->vector_flops ==
                sc_hw_device_at(h, 40)->vector_flops);
    assert_int_equal(sc_hw_cap(hw[0], 700, &arena, &h, &err), SC_OK);
    assert_true(h == hw[0]);
    assert_int_equal(sc_hw_cap(hw[0], 0, &arena, &h, &err), SC_OK);
    assert_true(h == hw[0]);
}

static void what_they_are(void **state)
{
    (void)state;
    const sc_hw *h = hw[0];
    assert_true(h->n_groups == 3 && h->n_nodes == 9 && h->n_devices == 72);
    assert_string_equal(h->device->name, "a100-sxm-80g");
    assert_true(h->device->peak[SC_BF16] == 312e12);
    assert_true(h->dim[0].bw == 300e9 && !h->dim[0].multicast);
    assert_true(h->dim[1].ports == 4 && h->dim[1].bw == 12.5e9);
    assert_string_equal(sc_hw_device_at(h, 39)->name, "h100-sxm");
    assert_string_equal(sc_hw_device_at(h, 40)->name, "a100-sxm-80g");
    assert_true(fabs(h->device->power_w - (5 * 700 + 4 * 400) / 9.0) < 1e-9);
    assert_true(fabs(h->node_power_w - (5 * 4600 + 4 * 3300) / 9.0) < 1e-9);
    /* 3 nodes of 8, 2 of 4, 4 of 8 adapters; leaves of two nodes */
    hw_net t = hw_net_of(h, 1);
    assert_int_equal(t.spine_base - t.nic_base, 2 * (24 + 8 + 32));
    assert_true(h->hash != hw[1]->hash);
    /* small memory of one, slow memory of the other */
    h = cluster("nics: 1\nnic_bw: 9GB/s\nfabric: pcie-tree\n"
                "devices_per_node: 2\ngroups: [{device: l4}, {device: "
                "v100-pcie-16g}]\n");
    assert_true(h->device->mem_bw == 300e9);
    assert_true(h->device->mem_bytes == (uint64_t)16 << 30);
    /* one group is a machine as any other */
    const sc_hw *plain = cluster("node: dgx-h100\nnodes: 4\n");
    h = cluster("node: dgx-h100\ngroups: [{nodes: 4}]\n");
    assert_int_equal(sc_hw_n_links(h), sc_hw_n_links(plain));
    assert_true(h->dim[1].bw == plain->dim[1].bw);
}

static bool same(hw_vertex a, hw_vertex b)
{
    return a.kind == b.kind && a.id == b.id &&
           (a.kind == HW_V_DEVICE || a.dim == b.dim);
}

static bool a_route(prop *p, void *ctx)
{
    (void)ctx;
    const sc_hw *h = hw[prop_below(p, SC_COUNT(hw))];
    uint32_t src = (uint32_t)prop_below(p, h->n_devices);
    uint32_t dst = (uint32_t)prop_below(p, h->n_devices);
    uint64_t links[64];
    const hw_map map = hw_map_of(h);
    uint32_t n = sc_hw_route(h, src, dst, prop_below(p, 99), links, 64);
    hw_vertex at = {HW_V_DEVICE, 0, src};
    bool ok = n < 64 && (n == 0) == (src == dst);
    for (uint32_t i = 0; i < n && ok; i++) {
        hw_link l;
        ok = hw_link_get(&map, links[i], &l) && same(l.from, at) && l.bw > 0;
        at = l.to;
    }
    ok = ok && same(at, (hw_vertex){HW_V_DEVICE, 0, dst});
    if (!ok && prop_reporting(p)) printf("%s %u to %u\n", h->name, src, dst);
    return ok;
}

static void routes_are_paths(void **state)
{
    (void)state;
    assert_true(prop_check("hw mixed routes", 20000, a_route, NULL));
}

/* Each adapter has the rate of its own node. */
static void adapters(void **state)
{
    (void)state;
    const sc_hw *h = hw[0];
    hw_net t = hw_net_of(h, 1);
    uint64_t base = hw_axis_of(h, 1).base;
    unsigned n[3] = {0, 0, 0};
    for (uint64_t i = t.nic_base; i < t.spine_base; i += 2) {
        double bw = sc_hw_link_bw(h, base + i);
        char name[100];
        sc_hw_link_name(h, base + i, name, sizeof name);
        if (bw == 50e9)
            n[0]++;
        else if (strstr(name, "nic3.") || strstr(name, "nic4."))
            n[1]++;
        else
            n[2]++;
        assert_true(bw == 50e9 || bw == 25e9);
    }
    assert_true(n[0] == 24 && n[1] == 8 && n[2] == 32);
}

static void bad(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_code code;
        uint32_t line;
    } rows[] = {
        {"node: dgx-h100\ngroups: 3\n", SC_C_TYPE, 2},
        {"node: dgx-h100\ngroups: []\n", SC_C_TYPE, 2},
        {"node: dgx-h100\ngroups:\n  - {nodes: 0}\n", SC_C_RANGE, 3},
        {"node: dgx-h100\ngroups:\n  - {nodez: 1}\n", SC_C_UNKNOWN_KEY, 3},
        {"node: dgx-h100\ngroups:\n  - 4\n", SC_C_TYPE, 3},
        {"node: dgx-h100\ngroups:\n  - {rails: 2}\n", SC_C_UNSUPPORTED, 3},
        {"node: dgx-h100\ngroups:\n  - {nodes: 2}\n  - {nodes: 2, "
         "devices_per_node: 4}\n",
         SC_C_UNSUPPORTED, 4},
        {"node: dgx-h100\nrails: 4\ngroups:\n  - {nics: 6}\n", SC_C_DIVIDE, 4},
        {"node: dgx-h100\nrails: 16\ngroups:\n  - {nics: 16}\n", SC_C_DIVIDE,
         4},
        {"node: dgx-h100\ngroups:\n  - {nodes: 2147483648}\n  - {nodes: 1}\n",
         SC_C_TOO_BIG, 4},
        {"node: dgx-h100\nnodes: 4\ngroups:\n  - {nodes: 2}\n", SC_C_CONFLICT,
         2},
        {"groups:\n  - {nodes: 2}\n", SC_C_MISSING, 2},
        {"node: dgx-h100\ngroups:\n  - {device: h101}\n", SC_C_UNKNOWN_NAME,
         3}};

    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        const sc_hw *h = NULL;
        sc_err_init(&err);
        sc_status s = hw_build_text(rows[i].text, strlen(rows[i].text), "c.yml",
                                    NULL, &arena, &h, &err);
        if (s != SC_EINPUT || h != NULL || err.d[0].code != rows[i].code ||
            err.d[0].line != rows[i].line)
            fail_msg("%s: %s [%s] at %u:%u", rows[i].text, err.d[0].msg,
                     sc_code_name(err.d[0].code), err.d[0].line, err.d[0].col);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_they_are), cmocka_unit_test(limited_power),
        cmocka_unit_test(routes_are_paths), cmocka_unit_test(adapters),
        cmocka_unit_test(bad)};
    return cmocka_run_group_tests(tests, build_all, drop_all);
}
