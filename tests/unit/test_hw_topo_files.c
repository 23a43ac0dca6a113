/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes as `nvidia-smi topo -m` and hwloc describe them: a file of a known
 * server gives the search what the catalogue's description of it gives, and
 * each kind of error is found where it is.
 */
#include "coll/coll_search.h"
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sc_topo *read_file(const char *name, const sc_hw *hw)
{
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path =
        sc_sprintf(&arena, "%s/tests/fuzz/corpus/%s", root ? root : ".", name);
    const sc_topo *t = NULL;
    char *text;
    size_t len;
    assert_int_equal(
        sc_file_read(path, (size_t)1 << 20, &arena, &text, &len, &err), SC_OK);
    sc_topo_read_any(text, len, name, hw, &arena, &t, &err);
    no_error();
    assert_non_null(t);
    return t;
}

static const sc_topo_node *node(const sc_topo *t, sc_topo_kind kind, uint32_t i)
{
    assert_true(i < t->n[kind]);
    return &t->node[t->of[kind][i]];
}

static float width(const sc_topo *t, const sc_topo_node *n, sc_topo_kind to)
{
    for (uint32_t i = 0; i < n->n_links; i++)
        if (t->node[n->link[i].to].kind == to && &t->node[n->link[i].to] != n)
            return n->link[i].width;
    return -1;
}

/* Rings and trees of `n` devices of one node as the search of the machine
 * finds them. */
static void same_rings(const sc_topo *t, const sc_hw *hw, uint32_t n)
{
    sc_channels got, expect;
    assert_int_equal(sc_topo_channels(t, n, NULL, 1, NULL, &arena, &got, &err),
                     SC_OK);
    assert_int_equal(sc_coll_search(hw, (sc_nccl)hw->nccl, n, 1, NULL, &arena,
                                    &expect, &err),
                     SC_OK);
    assert_int_equal(got.ring.n_channels, expect.ring.n_channels);
    assert_true(got.ring.intra == expect.ring.intra);
    assert_int_equal(got.ring.type_intra, expect.ring.type_intra);
    assert_true(got.tree.intra == expect.tree.intra);
    assert_int_equal(got.nvls.n_channels, expect.nvls.n_channels);
}

static void dgx1(void **state)
{
    (void)state;
    static const char *const files[] = {"topo_matrix/dgx1v.txt",
                                        "topo_hwloc/dgx1v.xml"};
    const sc_hw *hw = machine("dgx1-v100:2");
    for (size_t f = 0; f < SC_COUNT(files); f++) {
        const sc_topo *t = read_file(files[f], hw);
        assert_int_equal(t->n[SC_TOPO_GPU], 8);
        assert_int_equal(t->n[SC_TOPO_NET], 4);
        assert_int_equal(t->n[SC_TOPO_CPU], 2);
        assert_int_equal(t->n[SC_TOPO_PCI], 4);
        assert_int_equal(t->n[SC_TOPO_NVS], 0);
        for (uint32_t n = 2; n <= 8; n++) same_rings(t, hw, n);
        /* Six NVLinks, two of them to GPU 3, and a switch. */
        const sc_topo_node *g = node(t, SC_TOPO_GPU, 0);
        float sum = 0;
        for (uint32_t i = 0; i < g->n_links; i++)
            if (g->link[i].wire == SC_WIRE_NVLINK) sum += g->link[i].width;
        assert_true(sum == 6 * 22);
        assert_true(width(t, g, SC_TOPO_PCI) > 11.5F);
        assert_int_equal(node(t, SC_TOPO_CPU, 0)->vendor, SC_CPU_INTEL);
        assert_true(node(t, SC_TOPO_NET, 3)->width == 12.5F);
    }
}

static void dgx_a100(void **state)
{
    (void)state;
    static const char *const files[] = {"topo_matrix/dgx_a100.txt",
                                        "topo_hwloc/dgx_a100.xml"};
    const sc_hw *hw = machine("dgx-a100-40g:2");
    for (size_t f = 0; f < SC_COUNT(files); f++) {
        const sc_topo *t = read_file(files[f], hw);
        assert_int_equal(t->n[SC_TOPO_GPU], 8);
        assert_int_equal(t->n[SC_TOPO_NVS], 1);
        assert_int_equal(t->n[SC_TOPO_CPU], 4);
        assert_int_equal(t->n[SC_TOPO_NET], 8); /* none of the storage */
        assert_true(width(t, node(t, SC_TOPO_GPU, 7), SC_TOPO_NVS) == 12 * 22);
        assert_int_equal(node(t, SC_TOPO_CPU, 0)->id, 3);
        assert_int_equal(node(t, SC_TOPO_CPU, 0)->vendor, SC_CPU_AMD);
        same_rings(t, hw, 8);
        same_rings(t, hw, 4);
        sc_channels g;
        assert_int_equal(
            sc_topo_channels(t, 8, NULL, 2, NULL, &arena, &g, &err), SC_OK);
        assert_true(g.ring.inter > 0);
        assert_true(g.ring.type_inter <= SC_PATH_PXB);
        assert_int_equal(g.ring.n_channels, 8);
    }
}

static void hgx_h100(void **state)
{
    (void)state;
    static const char *const files[] = {"topo_matrix/hgx_h100.txt",
                                        "topo_hwloc/hgx_h100.xml"};
    const sc_hw *hw = machine("dgx-h100:2");
    for (size_t f = 0; f < SC_COUNT(files); f++) {
        const sc_topo *t = read_file(files[f], hw);
        assert_int_equal(t->n[SC_TOPO_GPU], 8);
        assert_int_equal(t->n[SC_TOPO_NVS], 1);
        assert_int_equal(t->n[SC_TOPO_CPU], 2);
        assert_int_equal(t->n[SC_TOPO_NET], 8);
        assert_int_equal(node(t, SC_TOPO_GPU, 0)->sm, 90);
        same_rings(t, hw, 8);
    }
    /* In the file of version 3 links are Gen 5, and say so. */
    const sc_topo *t = read_file(files[1], hw);
    assert_true(width(t, node(t, SC_TOPO_GPU, 0), SC_TOPO_PCI) == 48);
}

static void pcie(void **state)
{
    (void)state;
    static const char *const files[] = {"topo_matrix/pcie.txt",
                                        "topo_hwloc/pcie_v1.xml"};
    const sc_hw *hw = machine("gtx-1080-ti-1ib:2");
    for (size_t f = 0; f < SC_COUNT(files); f++) {
        const sc_topo *t = read_file(files[f], hw);
        assert_int_equal(t->n[SC_TOPO_GPU], 8);
        assert_int_equal(t->n[SC_TOPO_CPU], 2);
        assert_int_equal(t->n[SC_TOPO_PCI], 0);
        assert_int_equal(t->n[SC_TOPO_NET], 1);
        assert_true(width(t, node(t, SC_TOPO_GPU, 4), SC_TOPO_CPU) > 11.5F);
        assert_true(width(t, node(t, SC_TOPO_GPU, 0), SC_TOPO_GPU) < 0);
        sc_channels g;
        assert_int_equal(
            sc_topo_channels(t, 4, NULL, 1, NULL, &arena, &g, &err), SC_OK);
        assert_int_equal(g.ring.type_intra, SC_PATH_PHB);
        assert_int_equal(
            sc_topo_channels(t, 8, NULL, 1, NULL, &arena, &g, &err), SC_OK);
        assert_int_equal(g.ring.type_intra, SC_PATH_SYS);
    }
}

/* Two bridged pairs, an empty CPU affinity, and hosts with NVLinks. */
static void other_links(void **state)
{
    (void)state;
    const sc_topo *t =
        read_file("topo_matrix/nvl_bridge.txt", machine("h100-nvl:4"));
    assert_int_equal(t->n[SC_TOPO_NVS], 0);
    assert_int_equal(t->n[SC_TOPO_CPU], 2);
    assert_true(width(t, node(t, SC_TOPO_GPU, 0), SC_TOPO_GPU) == 12 * 20.6F);
    assert_int_equal(t->n[SC_TOPO_NET], 0);
    t = read_file("topo_hwloc/power.xml",
                  machine("fc2@40GB/s; device=p100-sxm2"));
    const sc_topo_node *g = node(t, SC_TOPO_GPU, 1);
    assert_true(width(t, g, SC_TOPO_GPU) == 2 * 18);
    assert_int_equal(node(t, SC_TOPO_CPU, 0)->arch, SC_CPU_POWER);
    uint32_t nvlinks = 0;
    for (uint32_t i = 0; i < g->n_links; i++)
        nvlinks += g->link[i].wire == SC_WIRE_NVLINK;
    assert_int_equal(nvlinks, 2);
}

/* One text, where its first error is, and a word of the message. */
typedef struct bad {
    const char *text;
    uint32_t line, col;
    const char *says;
} bad;

#define DEV(bus)                                         \
    "<object type='PCIDev' gp_index='1' pci_busid='" bus \
    "' pci_type='0302 [10de:1db5] [10de:1249] a1'/>"
#define MATRIX(attrs, in) \
    "\n<distances2 name='NVLinkBandwidth' " attrs ">" in "</distances2>"

static const bad broken[] = {
    {"", 1, 1, "empty"},
    {"hello\n", 0, 0, "no line starts with GPU0"},
    {"GPU0 GPU1\nGPU0 X\nGPU1 X X\n", 2, 1, "1 of 2 cells"},
    {"GPU0 GPU1\nGPU0 X PIY\nGPU1 PIX X\n", 2, 8, "\"PIY\""},
    {"GPU0 GPU1\nGPU0 X NV0\nGPU1 NV0 X\n", 2, 8, "\"NV0\""},
    {"GPU0 GPU1\nGPU0 X X\nGPU1 PIX X\n", 2, 8, "no single device"},
    {"GPU0 GPU1\nGPU0 PIX PIX\nGPU1 PIX X\n", 2, 6, "the same device"},
    {"GPU0 GPU1\nGPU0 X PIX\nGPU1 PXB X\n", 3, 6, "differs from"},
    {"GPU0 GPU1\nGPU0 X NV4\nGPU1 NV2 X\n", 3, 6, "differs from"},
    {"GPU0 GPU1\nGPU0 X PIX\n", 0, 0, "column GPU1 has no row"},
    {"GPU0 GPU1\nGPU0 X PIX\nGPU2 PIX X\n", 3, 1, "no column"},
    {"GPU0 GPU1\nGPU0 X PIX\nGPU0 X PIX\nGPU1 PIX X", 3, 1,
     "GPU0 is there twice"},
    {"GPU0 NIC0 NIC0\nGPU0 X PIX PIX\n", 1, 11, "is there twice"},
    {"GPU0 NIC0\nGPU0 X NV1\nNIC0 NV1 X\n", 2, 8, "NVLinks between"},
    {"GPU0 GPU00\nGPU0 X PIX\nGPU00 PIX X\n", 3, 1, "two GPUs"},
    {"GPU0 GPU1 GPU2\nGPU0 X NV12 NV8\nGPU1 NV12 X NV12\nGPU2 NV8 NV12 X\n", 4,
     6, "more NVLinks"},
    {"GPU0\x01\xff", 1, 6, ""},
    {"<topology version='4.0'/>", 1, 11, "version 4.0"},
    {"<topology version='2.0'/>", 1, 1, "no NVIDIA GPU"},
    {"<topology>\n<object type='PCIDev' "
     "pci_type='0302 [10de:1db5] [10de:1249] a1'/></topology>",
     2, 1, "no bus id"},
    {"<topology>\n<object type='PCIDev' pci_busid='0000:1g:00.0' "
     "pci_type='0302 [10de:1db5] [10de:1249] a1'/></topology>",
     2, 23, "no bus id"},
    {"<topology>\n<object type='PCIDev' pci_type='VGA'/></topology>", 2, 23,
     "no class"},
    {"<topology>" DEV("0000:01:00.0") "\n" DEV("0000:01:00.0") "</topology>", 2,
     36, "another PCI device"},
    {"<topology>\n<object type='PCIDev' pci_link_speed='fast' "
     "pci_busid='0000:01:00.0' "
     "pci_type='0302 [10de:1db5] [10de:1249] a1'/></topology>",
     2, 23, ""},
    {"<topology>\n<object type='PCIDev' pci_link_speed='-1' "
     "pci_busid='0000:01:00.0' "
     "pci_type='0302 [10de:1db5] [10de:1249] a1'/></topology>",
     2, 23, ""},
    {"<topology>\n<object type='NUMANode' os_index='x'>" DEV(
         "0000:01:00.0") "</object></topology>",
     2, 25, "os_index"},
    {"<topology>" DEV("0000:01:00.0") MATRIX("", "") "</topology>", 2, 1,
     "nbobjs"},
    {"<topology>" DEV("0000:01:00.0") MATRIX("nbobjs='9999'", "") "</topology>",
     2, 36, "nbobjs"},
    {"<topology>" DEV("0000:01:00.0")
         MATRIX("nbobjs='1'", "<indexes>7</indexes>") "</topology>",
     2, 47, "not in the file"},
    {"<topology>" DEV("0000:01:00.0")
         MATRIX("nbobjs='1'", "<indexes>1 1</indexes>") "</topology>",
     2, 1, "number of objects"},
    {"<topology>" DEV("0000:01:00.0")
         MATRIX("nbobjs='2'", "<indexes>1 1</indexes>") "</topology>",
     2, 47, "a GPU twice"},
    {"<topology>" DEV("0000:01:00.0")
         MATRIX("nbobjs='1'",
                "<indexes>1</indexes><u64values>x</u64values>") "</topology>",
     2, 67, "MB/s"},
    {"<topology>" DEV("0000:01:00.0")
         MATRIX("nbobjs='1'", "<indexes>1</indexes>") "</topology>",
     2, 1, "nbobjs by nbobjs"},
    {"<!DOCTYPE topology [<!ENTITY a 'b'>]><topology/>", 1, 0,
     "document types"},
    {"<!DOCTYPE system SYSTEM 'hwloc.dtd'><topology/>", 1, 1, "document types"},
};

static void errors(void **state)
{
    (void)state;
    const sc_hw *hw = machine("dgx-a100-40g:2");
    for (size_t i = 0; i < SC_COUNT(broken); i++) {
        const bad *b = &broken[i];
        const sc_topo *t = NULL;
        sc_err_init(&err);
        sc_status s = sc_topo_read_any(b->text, strlen(b->text), "t.txt", hw,
                                       &arena, &t, &err);
        if (s != SC_EINPUT || t != NULL || err.n == 0)
            fail_msg("case %zu was read: %s", i, b->text);
        const sc_diag *d = &err.d[0];
        if (strstr(d->msg, b->says) == NULL || d->line != b->line ||
            (b->col != 0 && d->col != b->col))
            fail_msg("case %zu: %u:%u %s, not %u:%u %s", i, d->line, d->col,
                     d->msg, b->line, b->col, b->says);
        assert_string_equal(d->file, "t.txt");
    }
}

/* All errors in one pass, and none after them. */
static void many(void **state)
{
    (void)state;
    const sc_topo *t = NULL;
    static const char text[] = "GPU0 GPU1\nGPU0 XX PIX\nGPU1 PIX XX\nGPU2 X\n";
    assert_int_equal(sc_topo_read_matrix(text, strlen(text), "t.txt",
                                         machine("dgx-a100-40g:2"), &arena, &t,
                                         &err),
                     SC_EINPUT);
    assert_int_equal(err.n, 2);
}

/* What a cluster file names is told by its content, and used. */
static void in_a_cluster(void **state)
{
    (void)state;
    const char *root = getenv("STEPCAST_SOURCE");
    char dir[] = "/tmp/stepcast-topo-XXXXXX";
    assert_non_null(mkdtemp(dir));
    const char *path = sc_sprintf(&arena, "%s/c.yml", dir);
    const char *text = sc_sprintf(
        &arena,
        "node: dgx-a100-40g\nnodes: 2\ntopology: %s/tests/fuzz/corpus/"
        "topo_matrix/dgx_a100.txt\n",
        root ? root : ".");
    assert_int_equal(sc_file_write(path, text, strlen(text), &err), SC_OK);
    const sc_hw *hw = machine(path);
    assert_non_null(hw->topo);
    assert_true(sc_coll_wired(hw));
    sc_channels file, rule;
    assert_int_equal(sc_coll_channels(hw, 8, 1, &file, &err), SC_OK);
    assert_int_equal(
        sc_coll_channels(machine("dgx-a100-40g:2"), 8, 1, &rule, &err), SC_OK);
    assert_int_equal(file.ring.n_channels, rule.ring.n_channels);
    assert_true(file.ring.intra == rule.ring.intra);
    remove(path);
    remove(dir);
    assert_int_equal(
        sc_hw_build("node.xml", sc_pos_file("--cluster"), &arena, &hw, &err),
        SC_EINPUT);
    assert_non_null(strstr(err.d[0].hint, "topology: FILE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dgx1, setup, teardown),
        cmocka_unit_test_setup_teardown(dgx_a100, setup, teardown),
        cmocka_unit_test_setup_teardown(hgx_h100, setup, teardown),
        cmocka_unit_test_setup_teardown(pcie, setup, teardown),
        cmocka_unit_test_setup_teardown(other_links, setup, teardown),
        cmocka_unit_test_setup_teardown(errors, setup, teardown),
        cmocka_unit_test_setup_teardown(many, setup, teardown),
        cmocka_unit_test_setup_teardown(in_a_cluster, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
