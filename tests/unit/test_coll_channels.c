/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs for the choice: the closed form against the search it stands for,
 * wirings that are searched, and what a memo may not change.
 */
#include "coll/coll_search.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sc_arena arena;
static sc_err err;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&arena, (size_t)64 << 20);
    sc_err_init(&err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

static sc_hw machine(const char *spec)
{
    const sc_hw *hw = NULL;
    sc_status s = sc_hw_build(spec, sc_pos_none(), &arena, &hw, &err);
    if (s != SC_OK) print_message("%s: %s\n", spec, err.d[0].msg);
    assert_int_equal(s, SC_OK);
    return *hw;
}

static const char *const switched[] = {
    "dgx2-v100:2", "dgx-a100-40g:2", "dgx-a100-80g:2", "aws-p4d:2",
    "dgx-h100:2",  "dgx-h200:2",     "gcp-a3-mega:2",  "dgx-b200:2"};

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-6 * b;
}

/* In one node the form is the search's result, channel by channel. */
static void one_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(switched); i++)
        for (int v = 0; v < SC_N_NCCLS; v++)
            for (uint32_t m = 2; m <= 8; m++) {
                sc_channels form, found;
                sc_hw hw = machine(switched[i]);
                hw.nccl = v;
                /* 2.10 does not know later devices: no one runs it there. */
                if (v == SC_NCCL_2_10_3 && sc_nccl_sm(&hw) > 80) continue;
                assert_int_equal(sc_coll_channels(&hw, m, 1, &form, &err),
                                 SC_OK);
                assert_int_equal(sc_coll_search(&hw, (sc_nccl)v, m, 1, NULL,
                                                &arena, &found, &err),
                                 SC_OK);
                bool ok = form.n_channels == found.n_channels &&
                          same(form.ring.intra, found.ring.intra) &&
                          form.ring.type_intra == found.ring.type_intra &&
                          form.nvls.n_channels == found.nvls.n_channels &&
                          (found.nvls.n_channels == 0 ||
                           same(form.nvls.intra, found.nvls.intra));
                if (!ok)
                    print_message("%s %s m %u: ring %u x %g, %u x %g found; "
                                  "nvls %u x %g, %u x %g found\n",
                                  switched[i], sc_nccl_names[v], m,
                                  form.n_channels, form.ring.intra,
                                  found.n_channels, found.ring.intra,
                                  form.nvls.n_channels, form.nvls.intra,
                                  found.nvls.n_channels, found.nvls.intra);
                assert_true(ok);
            }
}

/* Sizes from 8 bytes to 8 GiB for which both lead to the same algorithm. */
static uint32_t agreements(const sc_channels *a, const sc_channels *b)
{
    uint32_t n = 0;
    sc_tuning s, t;
    assert_int_equal(sc_coll_tune_one(a, NULL, SC_ALL_REDUCE, &s, &err), SC_OK);
    assert_int_equal(sc_coll_tune_one(b, NULL, SC_ALL_REDUCE, &t, &err), SC_OK);
    for (double v = 8; v <= 8589934592.0; v *= 2) {
        sc_choice x, y;
        assert_int_equal(sc_coll_select(&s, SC_ALL_REDUCE, v, 1, &x), SC_OK);
        assert_int_equal(sc_coll_select(&t, SC_ALL_REDUCE, v, 1, &y), SC_OK);
        n += x.algo == y.algo;
    }
    return n;
}

/* Between nodes they carry the same, and lead to the same choice at every
 * size. */
static void two_nodes(void **state)
{
    (void)state;
    for (size_t i = 1; i < SC_COUNT(switched); i++)
        for (uint32_t m = 1; m <= 8; m *= 2) {
            sc_channels form, found;
            sc_hw hw = machine(switched[i]);
            assert_int_equal(sc_coll_channels(&hw, m, 2, &form, &err), SC_OK);
            assert_int_equal(sc_coll_search(&hw, (sc_nccl)hw.nccl, m, 2, NULL,
                                            &arena, &found, &err),
                             SC_OK);
            double a = form.n_channels * form.ring.inter;
            double b = found.n_channels * found.ring.inter;
            if (fabs(a / b - 1) > 0.05)
                print_message("%s m %u: %g GB/s, %g found\n", switched[i], m, a,
                              b);
            assert_true(fabs(a / b - 1) <= 0.05);
            assert_int_equal(agreements(&form, &found), 31);
        }
}

/* GB/s over links of 22 that NCCL 2.10 finds on the first n of a DGX-1's eight
 * devices, wired as ours; these carry 25. */
static void cube_mesh(void **state)
{
    (void)state;
    static const double found[] = {22, 44, 88, 44, 44, 88, 132};
    sc_hw hw = machine("dgx1-v100-1ib:1");
    assert_true(sc_coll_wired(&hw));
    for (uint32_t n = 2; n <= 8; n++) {
        sc_wiring w, again;
        assert_int_equal(sc_coll_wiring(&hw, n, &w, &err), SC_OK);
        if (!same(w.ring, found[n - 2] * 25 / 22 * 1e9))
            print_message("n %u: %g\n", n, w.ring);
        assert_true(same(w.ring, found[n - 2] * 25 / 22 * 1e9));
        assert_int_equal(sc_coll_wiring(&hw, n, &again, &err), SC_OK);
        assert_memory_equal(&w, &again, sizeof w);
        sc_hw forgetful = hw;
        forgetful.memo = NULL;
        if (n > 3) continue; /* the larger ones take a while */
        assert_int_equal(sc_coll_wiring(&forgetful, n, &again, &err), SC_OK);
        assert_memory_equal(&w, &again, sizeof w);
    }
    /* 56 pairs over 48 links take 80 steps: each member sends 7 * 0.6 links'
     * worth. */
    sc_wiring w;
    assert_int_equal(sc_coll_wiring(&hw, 8, &w, &err), SC_OK);
    assert_true(same(w.all_pairs, 7 * 0.6 * 25e9));
    assert_true(same(w.pair, 25e9));
}

static void write_file(const char *path, const char *text)
{
    assert_int_equal(sc_file_write(path, text, strlen(text), &err), SC_OK);
}

#define GPU(dev, bus, peer)                                               \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x030200\" link_speed=\"8 " \
    "GT/s\" link_width=\"16\"><gpu dev=\"" dev "\" sm=\"70\" rank=\"" dev \
    "\" gdr=\"1\"><nvlink target=\"0000:" peer                            \
    ":00.0\" count=\"2\" tclass=\"0x030200\"/></gpu></pci>"

/* Two pairs of V100, two links in each pair. */
static const char pairs_xml[] =
    "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" "
    "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">" GPU(
        "0", "01", "02") GPU("1", "02", "01") GPU("2", "03", "04")
        GPU("3", "04", "03") "</cpu></system>\n";

/* A file of NCCL is the wiring: searched, or refused where links join nothing.
 */
static void topology_file(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    const char *dir = tmp != NULL ? tmp : "/tmp";
    char xml[512], yml[512], text[512];
    snprintf(xml, sizeof xml, "%s/stepcast-graphs.xml", dir);
    snprintf(yml, sizeof yml, "%s/stepcast-graphs.yml", dir);
    write_file(xml, pairs_xml);
    write_file(yml, "device: v100-sxm2-16g\ndevices_per_node: 4\n"
                    "fabric: nvlink-mesh\ntopology: stepcast-graphs.xml\n");
    sc_hw hw = machine(yml);
    assert_true(sc_coll_wired(&hw));
    assert_int_equal(hw.topo->n[SC_TOPO_GPU], 4);
    sc_wiring w;
    /* Two devices: two links of 25 GB/s; there and back is a ring. */
    assert_int_equal(sc_coll_wiring(&hw, 2, &w, &err), SC_OK);
    assert_true(same(w.ring, 50e9));
    assert_true(same(w.pair, 50e9));
    /* The pairs meet at the host only. */
    sc_status s = sc_coll_wiring(&hw, 4, &w, &err);
    assert_int_equal(s, SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_UNSUPPORTED);
    assert_non_null(strstr(err.d[0].msg, "no ring"));
    /* Another number of devices than the file has. */
    snprintf(text, sizeof text,
             "node: dgx1-v100\ntopology: stepcast-graphs.xml\n");
    write_file(yml, text);
    const sc_hw *none = NULL;
    sc_err_init(&err);
    assert_int_equal(sc_hw_build(yml, sc_pos_none(), &arena, &none, &err),
                     SC_EINPUT);
    assert_int_equal(err.d[0].line, 2);
    remove(xml);
    remove(yml);
}

static void versions(void **state)
{
    (void)state;

    static const struct {
        const char *text, *arch;
        sc_nccl want;
    } known[] = {{NULL, "volta", SC_NCCL_2_10_3},
                 {NULL, "ampere", SC_NCCL_2_10_3},
                 {NULL, "hopper", SC_NCCL_2_30_7},
                 {"2.10.3", "ampere", SC_NCCL_2_10_3},
                 {"2.8", "ampere", SC_NCCL_2_10_3},
                 {"2.18", "ampere", SC_NCCL_2_30_7},
                 {"2.10", "hopper", SC_NCCL_2_30_7},
                 {"3.0", "volta", SC_NCCL_2_30_7}};

    sc_nccl v;
    for (size_t i = 0; i < SC_COUNT(known); i++) {
        assert_true(sc_nccl_version(known[i].text, known[i].arch, &v));
        assert_int_equal(v, known[i].want);
    }
    assert_false(sc_nccl_version("new", "volta", &v));
    assert_false(sc_nccl_version("2", "volta", &v));
    assert_false(sc_nccl_version("2.x", "volta", &v));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_node),      TEST(two_nodes), TEST(cube_mesh),
        TEST(topology_file), TEST(versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
