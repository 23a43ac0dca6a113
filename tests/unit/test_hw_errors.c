/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed machines: each is refused with its code, place and a hint. */
#include "hw/build.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

typedef struct bad {
    const char *text;
    sc_code code;
    uint32_t line, col;
    const char *word; /* part of message or hint */
} bad;

static void check(const bad *b, bool is_file)
{
    sc_arena a;
    sc_err err;
    const sc_hw *hw = NULL;
    sc_arena_init(&a, (size_t)16 << 20);
    sc_err_init(&err);
    sc_status s =
        is_file ? hw_build_text(b->text, strlen(b->text), "c.yml", NULL, &a,
                                &hw, &err)
                : sc_hw_build(b->text, sc_pos_file("--cluster"), &a, &hw, &err);
    char text[600];
    sc_diag_format(&err.d[0], text, sizeof text);
    if (s != SC_EINPUT || err.n == 0 || hw != NULL)
        fail_msg("\"%s\" is accepted", b->text);
    if (err.d[0].code != b->code || err.d[0].line != b->line ||
        err.d[0].col != b->col || strstr(text, b->word) == NULL)
        fail_msg("\"%s\": %s [%s] at %u:%u", b->text, text,
                 sc_code_name(err.d[0].code), err.d[0].line, err.d[0].col);
    sc_arena_free(&a);
}

static void one_line(void **state)
{
    (void)state;
    static const bad cases[] = {
        {"ring4@300GB", SC_C_UNIT, 1, 7, "GB/s"},
        {"ring4@300", SC_C_UNIT, 1, 7, "GB/s"},
        {"ring4@300GB/s,50", SC_C_UNIT, 1, 15, "us"},
        {"ring4@300GB/s,50ns x fc8", SC_C_MISSING, 1, 22, "bandwidth"},
        {"dgx-h100:4; device=h100-sxm*{peek=2}", SC_C_UNKNOWN_KEY, 1, 30,
         "mem_bw"},
        {"h100-sxm*{peak=2,peak=2}:8", SC_C_DUPLICATE, 1, 18, "twice"},
        {"h100-sxm*{peak=2:8", SC_C_SYNTAX, 1, 17, "}"},
        {"h100-sxm*{peak=0}:8", SC_C_RANGE, 1, 16, "peak"},
        {"h100-sxm*{peak}:8", SC_C_UNKNOWN_KEY, 1, 11, "factor"},
        {"ring4@300GB/s; bandwidth=1GB/s", SC_C_UNKNOWN_KEY, 1, 16,
         "bandwidth"},
        {"rinf4@300GB/s", SC_C_UNKNOWN_NAME, 1, 1, "ring"},
        {"ring4@300GB/s x hypercube8@1GB/s", SC_C_UNKNOWN_NAME, 1, 17,
         "hypercube"},
        {"ring0@300GB/s", SC_C_RANGE, 1, 5, "no members"},
        {"ring4@0GB/s", SC_C_RANGE, 1, 7, "bandwidth"},
        {"ring4@-3GB/s", SC_C_RANGE, 1, 7, "bandwidth"},
        {"ring4@NaNGB/s", SC_C_TYPE, 1, 7, "data rate"},
        {"ring4@NaN", SC_C_RANGE, 1, 7, ""},
        {"ring4@inf", SC_C_RANGE, 1, 7, ""},
        {"ring4@1e300GB/s", SC_C_RANGE, 1, 7, ""},
        {"ring4@1GB/s,-1us", SC_C_RANGE, 1, 13, "latency"},
        {"switch1000000000000000000@1GB/s", SC_C_TOO_BIG, 1, 7, "2147483648"},
        {"switch2147483648@1GB/s x switch2@1GB/s", SC_C_TOO_BIG, 1, 26,
         "2147483648"},
        {"ring@300GB/s", SC_C_SYNTAX, 1, 5, "size"},
        {"ring4@3GB/s fc8@2GB/s", SC_C_SYNTAX, 1, 13, " x "},
        {"ring4@3GB/s x ", SC_C_UNKNOWN_NAME, 1, 15, "kind"},
        {"cube4@150GB/s", SC_C_RANGE, 1, 1, "cube8"},
        {"torus2x2x2x2x2x2x2x2x2@1GB/s", SC_C_TOO_BIG, 1, 1, "dimensions"},
        {"ring4@3GB/s; device=h100-smx", SC_C_UNKNOWN_NAME, 1, 21, "h100-sxm"},
        {"ring4@3GB/s; devise=t4", SC_C_UNKNOWN_KEY, 1, 14, "device"},
        {"ring4@3GB/s; pue=1.1; pue=1.2", SC_C_DUPLICATE, 1, 23, "twice"},
        {"ring4@3GB/s; pue", SC_C_SYNTAX, 1, 17, "key=value"},
        {"ring4@3GB/s; pue=0.5", SC_C_RANGE, 1, 18, "pue"},
        {"fc8@9GB/s x switch4@1GB/s; nics=3; rails=2", SC_C_DIVIDE, 1, 13,
         "rails"},
        {"fc8@9GB/s x switch4; nics=4; nic_bw=10b/s", SC_C_RANGE, 1, 13,
         "nic_bw=200Gb/s"},
        {"fc8@9GB/s x switch4@1GB/s; nics=4; nic_bw=9GB/s", SC_C_CONFLICT, 1,
         13, "contradict"},
        {"fc8@9GB/s x ring4@1GB/s; nics=4", SC_C_UNSUPPORTED, 1, 13, "switch"},
        {"dgx-h10:4", SC_C_UNKNOWN_NAME, 0, 0, "stepcast list"},
        {"dxg-h100:4", SC_C_UNKNOWN_NAME, 0, 0, "dgx-h100"},
        {"", SC_C_UNKNOWN_NAME, 0, 0, "stepcast list"},
        {"dgx-h100:0", SC_C_RANGE, 1, 10, "NAME:N"},
        {"dgx-h100:-2", SC_C_RANGE, 1, 10, "NAME:N"},
        {"dgx-h100:4x", SC_C_RANGE, 1, 10, "NAME:N"},
        {"dgx-h100:1000000000000000000", SC_C_TOO_BIG, 1, 10, "2147483648"},
        {"dgx-h100:2147483648", SC_C_TOO_BIG, 0, 0, "2147483648"},
        {"h100-sxm:12", SC_C_DIVIDE, 0, 0, "nodes of 8"},
        {"v100:6", SC_C_UNSUPPORTED, 0, 0, "cube"},
        {"tpu-v5p-pod:67", SC_C_DIVIDE, 0, 0, "67 devices"},
        {"tpu-v5e:302", SC_C_DIVIDE, 0, 0, "nodes of 256"},
        {"gb200:74", SC_C_DIVIDE, 0, 0, "nodes of 72"},
        {"fc4@9GB/s x switch8@1GB/s; leaf=3; group=4", SC_C_DIVIDE, 1, 13,
         "whole number of leaves"}};
    for (size_t i = 0; i < SC_COUNT(cases); i++) check(&cases[i], false);
}

#define NODE "devices_per_node: 8\nfabric: nvswitch\ndevice: h100-sxm\n"

static void files(void **state)
{
    (void)state;
    static const bad cases[] = {
        {"node: dgx-h100\nnodes: 0\n", SC_C_RANGE, 2, 8, "nodes"},
        {"node: dgx-h100\nnodes: -4\n", SC_C_RANGE, 2, 8, "nodes"},
        {"node: dgx-h100\nnodes: 1e18\n", SC_C_RANGE, 2, 8, "nodes"},
        {"node: dgx-h100\nnodes: 2147483648\n", SC_C_TOO_BIG, 2, 8, "devices"},
        {"node: dgx-h100\nnodes: 4\nnodes: 5\n", SC_C_DUPLICATE, 3, 1, "nodes"},
        {"node: dgx-h100\nnode_powr: 4kW\n", SC_C_UNKNOWN_KEY, 2, 1,
         "node_power"},
        {"node: dgx-h100\nnic_bw: 400\n", SC_C_UNIT, 2, 9, "/s"},
        {"node: dgx-h100\nnic_bw: 400us\n", SC_C_UNIT, 2, 9, "/s"},
        {"node: dgx-h100\nnic_bw: .nan\n", SC_C_RANGE, 2, 9, ""},
        {"node: dgx-h100\nbandwidth: -1GB/s\n", SC_C_RANGE, 2, 12, "bandwidth"},
        {"node: dgx-h100\ndevice: a100-sxm-80q\n", SC_C_UNKNOWN_NAME, 2, 9,
         "stepcast list"},
        {"node: dgx-h100\ndevice: a100-smx-80g\n", SC_C_UNKNOWN_NAME, 2, 9,
         "a100-sxm-80g"},
        {"node: dgx-h101\n", SC_C_UNKNOWN_NAME, 1, 7, "stepcast list"},
        {"node: selene\n", SC_C_UNSUPPORTED, 1, 7, "based"},
        {"node: dgx-h100\nfabric: nvswich\n", SC_C_UNKNOWN_NAME, 2, 9,
         "nvswitch"},
        {"node: dgx-h100\nnics: [8]\n", SC_C_TYPE, 2, 7, "nics"},
        {"node: dgx-h100\nnics: [8, ds]\n", SC_C_REFERENCE, 2, 11, "ds"},
        {"node: dgx-h100\nrails: 3\nnodes: 2\n", SC_C_DIVIDE, 2, 8, "rails"},
        {"node: dgx-h100\ndevice: t4\n", SC_C_CONFLICT, 1, 1, "scale-up"},
        {"device: h100-sxm\nfabric: nvswitch\n", SC_C_MISSING, 1, 1,
         "devices_per_node"},
        {"device: h100-sxm\ndevices_per_node: 8\n", SC_C_MISSING, 1, 1,
         "fabric"},
        {"devices_per_node: 8\nfabric: ring\n", SC_C_MISSING, 1, 1, "device"},
        {NODE "nodes: 2\n", SC_C_MISSING, 1, 1, "nics"},
        {NODE "nodes: 2\nnics: 4\n", SC_C_MISSING, 5, 7, "nic_bw"},
        {"device: t4\ndevices_per_node: 8\nfabric: none\n", SC_C_CONFLICT, 3, 9,
         "fabric"},
        {"device: t4\ndevices_per_node: 8\nfabric: torus\nbandwidth: 1GB/s\n",
         SC_C_TYPE, 1, 1, "shape"},
        {"device: t4\ndevices_per_node: 8\nfabric: torus\nbandwidth: 1GB/s\n"
         "shape: 2x5\n",
         SC_C_CONFLICT, 5, 8, "10"},
        {"device: t4\ndevices_per_node: 8\nfabric: torus\nbandwidth: 1GB/s\n"
         "shape: 99999999999999999999x2\n",
         SC_C_TYPE, 5, 8, "shape"},
        {"device: t4\ndevices_per_node: 8\nfabric: mesh\nbandwidth: 1GB/s\n",
         SC_C_TYPE, 1, 1, "shape"},
        {"node: aws-p5\nhost: 3\n", SC_C_DIVIDE, 2, 7, "hosts of 3"},
        {"node: aws-p5\nunit: rack\n", SC_C_UNKNOWN_NAME, 2, 7, "node"},
        {"node: aws-p5\nfabric: torus\nwrap: 0\n", SC_C_RANGE, 3, 7, "wrap"},
        {"node: h100-nvl-pcie\nbridge: 1\n", SC_C_RANGE, 2, 9, "bridge"},
        {"device: h100-sxm\nnodes: [\n", SC_C_SYNTAX, 3, 1, ""},
        {"- 1\n", SC_C_TYPE, 1, 1, "mapping"}};
    for (size_t i = 0; i < SC_COUNT(cases); i++) check(&cases[i], true);
}

/* All errors of a file in one pass. */
static void several(void **state)
{
    (void)state;
    static const char text[] =
        "node: dgx-h100\nnics: 0.5\nnic_bw: 3\nlief: 4\nnodes: x\n";
    sc_arena a;
    sc_err err;
    const sc_hw *hw = NULL;
    sc_arena_init(&a, (size_t)16 << 20);
    sc_err_init(&err);
    assert_int_equal(
        hw_build_text(text, strlen(text), "c.yml", NULL, &a, &hw, &err),
        SC_EINPUT);
    assert_int_equal(err.n, 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(err.d[i].line, i + 2);
    sc_arena_free(&a);
}

static void no_file(void **state)
{
    (void)state;
    sc_arena a;
    sc_err err;
    const sc_hw *hw = NULL;
    sc_arena_init(&a, (size_t)16 << 20);
    sc_err_init(&err);
    assert_int_equal(sc_hw_build("no/such.yml", sc_pos_none(), &a, &hw, &err),
                     SC_EIO);
    assert_null(hw);
    sc_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line), cmocka_unit_test(files),
        cmocka_unit_test(several), cmocka_unit_test(no_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
