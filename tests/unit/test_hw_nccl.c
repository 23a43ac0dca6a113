/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL topology XML: what is read, with which widths and in which order, and
 * where each kind of error is found.
 */
#include "fixture.h"
#include "hw/hw_nccl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const sc_topo *read_text(const char *text, sc_nccl version)
{
    const sc_topo *t = NULL;
    sc_err_init(&err);
    sc_status s =
        sc_topo_read(text, strlen(text), "t.xml", version, &arena, &t, &err);
    assert_int_equal(s == SC_OK, t != NULL);
    assert_int_equal(s == SC_OK, err.n == 0);
    return t;
}

#define GPU(bus, dev, links)                                     \
    "<pci busid='" bus "' class='0x030200' link_speed='8 GT/s' " \
    "link_width='16'><gpu dev='" dev "' sm='70' gdr='0'>" links "</gpu></pci>"
#define NVLINK(to, count) \
    "<nvlink target='" to "' count='" count "' tclass='0x030200'/>"
#define INTEL                                              \
    "<cpu numaid='0' arch='x86_64' vendor='GenuineIntel' " \
    "familyid='6' modelid='85'>"

static const char two_gpus[] =
    "<system version='1'>" INTEL
    "<pci busid='0000:01:00.0' class='0x060400' link_speed='' "
    "link_width='0'>" GPU("0000:02:00.0", "3", NVLINK("0000:03:00.0", "2")) GPU(
        "0000:03:00.0", "5",
        NVLINK("0000:02:00.0",
               "2")) "<pci busid='0000:04:00.1' class='0x02' link_width='8' "
                     "link_speed='16 GT/s'><nic><net dev='0' speed='100000' "
                     "port='1' guid='0xabc'/></nic></pci></pci></cpu>"
                     "<cpu numaid='1' arch='x86_64' vendor='GenuineIntel' "
                     "familyid='6' modelid='85'/></system>";

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

static void test_read(void **state)
{
    (void)state;
    const sc_topo *t = read_text(two_gpus, SC_NCCL_2_10_3);
    assert_non_null(t);
    assert_int_equal(t->n[SC_TOPO_GPU], 2);
    assert_int_equal(t->n[SC_TOPO_CPU], 2);
    assert_int_equal(t->n[SC_TOPO_NET], 1);
    const sc_topo_node *g = node(t, SC_TOPO_GPU, 1);
    assert_int_equal(g->dev, 5);
    assert_int_equal(g->sm, 70);
    assert_false(g->gdr);
    assert_true(width(t, g, SC_TOPO_GPU) == 44);
    assert_true(width(t, g, SC_TOPO_PCI) == 12);
    /* The way up is last. */
    const sc_topo_node *s = node(t, SC_TOPO_PCI, 0);
    assert_int_equal(t->node[s->link[s->n_links - 1].to].kind, SC_TOPO_CPU);
    assert_true(width(t, s, SC_TOPO_CPU) == 12);
    assert_true(width(t, s, SC_TOPO_NIC) == 12);
    assert_int_equal(node(t, SC_TOPO_NIC, 0)->id, 0x4000);
    assert_true(node(t, SC_TOPO_NET, 0)->width == 12.5F);
    assert_int_equal(node(t, SC_TOPO_NET, 0)->device, 0xabc);
    assert_true(width(t, node(t, SC_TOPO_CPU, 0), SC_TOPO_CPU) == 9);
    t = read_text(two_gpus, SC_NCCL_2_30_7);
    assert_true(width(t, node(t, SC_TOPO_GPU, 0), SC_TOPO_GPU) == 40);
    assert_true(width(t, node(t, SC_TOPO_CPU, 0), SC_TOPO_CPU) == 10);
}

static void test_select(void **state)
{
    (void)state;
    const sc_topo *t = read_text(two_gpus, SC_NCCL_2_10_3), *part = NULL;
    uint32_t five[] = {5, 5}, four = 4;
    assert_int_equal(sc_topo_select(t, 1, five, false, &arena, &part, &err),
                     SC_OK);
    assert_int_equal(part->n[SC_TOPO_GPU], 1);
    assert_int_equal(part->n[SC_TOPO_NET], 0);
    assert_int_equal(node(part, SC_TOPO_GPU, 0)->dev, 5);
    assert_true(width(part, node(part, SC_TOPO_GPU, 0), SC_TOPO_GPU) == -1);
    assert_true(width(part, node(part, SC_TOPO_GPU, 0), SC_TOPO_PCI) == 12);
    part = NULL;
    assert_int_equal(sc_topo_select(t, 2, five, true, &arena, &part, &err),
                     SC_EINPUT);
    assert_int_equal(sc_topo_select(t, 1, &four, true, &arena, &part, &err),
                     SC_EINPUT);
    assert_int_equal(sc_topo_select(t, 0, NULL, true, &arena, &part, &err),
                     SC_EINPUT);
    assert_null(part);
}

/* Two levels of a switch that NCCL takes for one. */
static void test_flatten(void **state)
{
    (void)state;
    static const char text[] =
        "<system><cpu numaid='0' arch='x86_64' vendor='AuthenticAMD'>"
        "<pci busid='10' class='0x060400' vendor='0x1000' device='0xc010' "
        "subsystem_vendor='0x1000' subsystem_device='0xa096' "
        "link_speed='16 GT/s' link_width='16'>"
        "<pci busid='20' class='0x060400' vendor='0x1000' device='0xc010' "
        "subsystem_vendor='0x1000' subsystem_device='0xa096' "
        "link_speed='16 GT/s' link_width='16'>" GPU("30", "0", "")
            GPU("40", "1", "") "</pci></pci></cpu></system>";
    const sc_topo *t = read_text(text, SC_NCCL_2_10_3);
    assert_non_null(t);
    const sc_topo_node *g = node(t, SC_TOPO_GPU, 0);
    bool direct = false;
    for (uint32_t i = 0; i < g->n_links; i++)
        if (t->node[g->link[i].to].id == 0x10) direct = true;
    assert_true(direct);
    assert_int_equal(node(t, SC_TOPO_PCI, 0)->n_links, 3);
    assert_int_equal(node(t, SC_TOPO_PCI, 1)->n_links, 0);
}

/* One text, where its first error is, and a word of the message. */
typedef struct bad {
    const char *text;
    uint32_t line, col;
    const char *says;
} bad;

static const bad broken[] = {
    {"", 1, 1, "empty"},
    {"<system", 1, 1, "bad XML"},
    {"<system>\n<cpu>\n</system>", 3, 0, "bad XML"},
    {"<graphs version='1'/>", 1, 1, "<graphs>"},
    {"\n  <system version='2'/>", 2, 11, "version 1"},
    {"<system version='1'>\n <cpus/></system>", 2, 2, "<cpus>"},
    {"<system version='1'/>", 1, 1, "no <gpu>"},
    {"<system>\n<cpu arch='x86_64'/></system>", 2, 1, "no numaid"},
    {"<system>\n<cpu numaid='zero' arch='x86_64'/></system>", 2, 6,
     "not a number"},
    {"<system>\n<cpu numaid='5000' arch='x86_64'/></system>", 2, 6, "not in"},
    {"<system><cpu numaid='0'/></system>", 1, 9, "no arch"},
    {"<system><cpu numaid='0' arch='arm64'/>\n"
     "<cpu numaid='0' arch='arm64'/></system>",
     2, 6, "another"},
    {"<system>" INTEL "\n<pci class='0x03'/></cpu></system>", 2, 1, "no busid"},
    {"<system>" INTEL "\n<pci busid='1'/></cpu></system>", 2, 1, "no class"},
    {"<system>" INTEL "\n<pci busid='0000:1g:00.0' class='0x03'/></cpu>"
     "</system>",
     2, 6, "not a bus id"},
    {"<system>" INTEL "\n<pci busid='12345678901234567' class='0x03'/></cpu>"
     "</system>",
     2, 6, "not a bus id"},
    {"<system>" INTEL "\n<pci busid='1' class='0x03'><gpu sm='70'/></pci>"
     "</cpu></system>",
     2, 29, "no dev"},
    {"<system>" INTEL "\n<pci busid='1' class='0x03'><gpu dev='1'/></pci>"
     "</cpu></system>",
     2, 29, "no sm"},
    {"<system>" INTEL GPU("1", "0", "") "\n" GPU("1", "1", "") "</cpu>"
                                                               "</system>",
     2, 6, "another"},
    {"<system>" INTEL GPU("1", "0", "") "\n<pci busid='2' class='0x03'>"
                                        "<gpu dev='0' sm='70'/></pci></cpu>"
                                        "</system>",
     2, 34, "two GPUs"},
    {"<system>" INTEL "\n<nic><net dev='1'/>\n<net dev='1'/></nic></cpu>"
     "</system>",
     3, 6, "two networks"},
    {"<system>" INTEL "\n<nic><net dev='1' speed='fast'/></nic></cpu>"
     "</system>",
     2, 19, "not a number"},
    {"<system>" INTEL "\n<nic><net dev='1' latency='-1'/></nic></cpu>"
     "</system>",
     2, 19, "latency"},
    {"<system>" INTEL GPU(
         "1", "0", "\n<nvlink target='2' tclass='0x03'/>") "</cpu></system>",
     2, 1, "no count"},
    {"<system>" INTEL GPU("1", "0",
                          "\n<nvlink target='q' count='1' "
                          "tclass='0x03'/>") "</cpu></system>",
     2, 9, "not a bus id"},
    {"<system>" INTEL GPU("1", "0", NVLINK("2", "1"))
         GPU("2", "1", "") "</cpu></system>",
     1, 1, "none back"},
    {"<!DOCTYPE system SYSTEM 'file:///etc/passwd'>\n<system/>", 1, 1,
     "document types"},
    {"<!DOCTYPE a [<!ENTITY b 'c'>]><system>&b;</system>", 1, 1,
     "document types"},
    {"<system>&who;</system>", 1, 0, "bad XML"},
    {"<system a='1' a='2'/>", 1, 0, "bad XML"},
    {"<system>\xff</system>", 1, 9, ""},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(broken); i++) {
        const bad *b = &broken[i];
        if (read_text(b->text, SC_NCCL_2_10_3) != NULL)
            fail_msg("case %zu was read: %s", i, b->text);
        const sc_diag *d = &err.d[0];
        if (strstr(d->msg, b->says) == NULL || d->line != b->line ||
            (b->col != 0 && d->col != b->col))
            fail_msg("case %zu: %u:%u %s, not %u:%u %s", i, d->line, d->col,
                     d->msg, b->line, b->col, b->says);
        assert_string_equal(d->file, "t.xml");
    }
}

/* All errors in one pass. */
static void test_many(void **state)
{
    (void)state;
    assert_null(read_text("<system><cpu numaid='a' arch='arm64'>"
                          "<pci busid='!' class='0x03'/>"
                          "<pci busid='1' class='0x03'><gpu dev='x' sm='y'/>"
                          "</pci></cpu></system>",
                          SC_NCCL_2_10_3));
    assert_int_equal(err.n, 4);
}

static void test_limits(void **state)
{
    (void)state;
    static char text[1 << 16];
    size_t n = 0;
    for (int i = 0; i < 40; i++) {
        memcpy(text + n, "<system>", 9);
        n += 8;
    }
    for (int i = 0; i < 40; i++) {
        memcpy(text + n, "</system>", 10);
        n += 9;
    }
    assert_null(read_text(text, SC_NCCL_2_10_3));
    assert_int_equal(err.d[0].code, SC_C_TOO_BIG);
    n = (size_t)snprintf(text, sizeof text, "<system>" INTEL);
    for (int i = 0; i <= SC_TOPO_GPUS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "<pci busid='%x' class='0x03'>"
                              "<gpu dev='%d' sm='70'/></pci>",
                              i + 1, i);
    snprintf(text + n, sizeof text - n, "</cpu></system>");
    assert_null(read_text(text, SC_NCCL_2_10_3));
    assert_int_equal(err.d[0].code, SC_C_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),    cmocka_unit_test(test_select),
        cmocka_unit_test(test_flatten), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_many),    cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
