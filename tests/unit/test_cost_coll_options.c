/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster file says about NCCL changes what is chosen and its price. */
#include "cost/cost.h"
#include "hw/hw_nccl.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sc_arena arena;
static sc_err err;
static sc_cost cost;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&arena, 0);
    sc_err_init(&err);
    sc_cost_centres(&cost);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

static sc_status build(const char *text, const sc_hw **out)
{
    const char *tmp = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/stepcast-options-%p.yml",
             tmp != NULL ? tmp : "/tmp", (void *)&arena);
    assert_int_equal(sc_file_write(path, text, strlen(text), &err), SC_OK);
    char *name = sc_strdup(&arena, path);
    assert_non_null(name);
    sc_status s = sc_hw_build(name, sc_pos_none(), &arena, out, &err);
    remove(path);
    return s;
}

static void near(double a, double b)
{
    assert_true(fabs(a / b - 1) < 1e-9);
}

static const sc_hw *cluster(const char *text)
{
    const sc_hw *hw = NULL;
    sc_status s = build(text, &hw);
    if (s != SC_OK) print_message("%s: %s\n", text, err.d[0].msg);
    assert_int_equal(s, SC_OK);
    return hw;
}

static sc_coll_price price(const sc_hw *hw, sc_coll coll, double bytes,
                           uint32_t m, uint32_t nodes)
{
    const uint32_t size[] = {m, nodes}, stride[] = {1, hw->node_size};
    sc_place at = sc_hw_place(hw, 2, size, stride);
    sc_coll_price p;
    assert_int_equal(sc_cost_coll(&cost, hw, coll, bytes, &at, -1, &p, &err),
                     SC_OK);
    return p;
}

#define H100 "node: dgx-h100\nnodes: 4\n"
#define A100 "node: dgx-a100-80g\nnodes: 4\n"

static void algorithm_and_protocol(void **state)
{
    (void)state;
    const sc_hw *usual = cluster(H100),
                *ring = cluster(H100 "nccl_algo: ring\n");
    const sc_hw *both = cluster(H100 "nccl_algo: ring\nnccl_proto: LL\n");
    assert_null(usual->nccl_options);
    assert_true(usual->hash != ring->hash && ring->hash != both->hash);
    sc_coll_price p = price(usual, SC_ALL_REDUCE, 64e6, 8, 4);
    assert_int_equal(p.algorithm, SC_ALGO_NVLS_TREE);
    sc_coll_price r = price(ring, SC_ALL_REDUCE, 64e6, 8, 4);
    assert_int_equal(r.algorithm, SC_ALGO_RING);
    sc_coll_price l = price(both, SC_ALL_REDUCE, 64e6, 8, 4);
    assert_string_equal(l.protocol, "LL");
    assert_true(l.seconds > 1.5 * r.seconds);
    const sc_hw *not = cluster(H100 "nccl_algo: ^nvlstree,ring\n");
    assert_int_equal(price(not, SC_ALL_REDUCE, 64e6, 8, 4).algorithm,
                     SC_ALGO_TREE);
    const sc_hw *one = cluster(H100 "nccl_algo: \"ring;allreduce:tree\"\n");
    assert_int_equal(price(one, SC_ALL_REDUCE, 64e6, 8, 4).algorithm,
                     SC_ALGO_TREE);
    assert_int_equal(price(one, SC_ALL_GATHER, 64e6, 8, 4).algorithm,
                     SC_ALGO_RING);
}

/* A name that NCCL does not know is blamed where it stands. */
static void wrong_lists(void **state)
{
    (void)state;
    const sc_hw *hw = cluster(H100 "nccl_algo: rong\n");
    const uint32_t size = 32, stride = 1;
    sc_place at = sc_hw_place(hw, 1, &size, &stride);
    sc_coll_price p;
    assert_int_equal(
        sc_cost_coll(&cost, hw, SC_ALL_REDUCE, 1e6, &at, -1, &p, &err),
        SC_EINPUT);
    assert_int_equal(err.d[0].line, 3);
    assert_int_equal(err.d[0].col, 12);
    assert_non_null(strstr(err.d[0].msg, "rong"));
    sc_err_init(&err);
    hw = cluster(H100 "nccl_algo: tree\n");
    assert_int_equal(
        sc_cost_coll(&cost, hw, SC_ALL_GATHER, 1e6, &at, -1, &p, &err),
        SC_EINPUT);
    assert_int_equal(err.d[0].line, 3);
    assert_non_null(strstr(err.d[0].msg, "all_gather"));
    static const char *const bad[] = {
        H100 "nccl: new\n", H100 "nccl_cross_nic: 3\n",
        H100 "nccl_max_nchannels: 65\n",
        H100 "nccl_max_nchannels: 2\nnccl_min_nchannels: 4\n",
        H100 "topology: none.xml\n"};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_err_init(&err);
        assert_true(build(bad[i], &hw) != SC_OK);
        assert_true(err.n > 0);
    }
}

/* Of twelve channels that fill the links of an A100, three carry a quarter;
 * more than fill them only take SMs. */
static void channels(void **state)
{
    (void)state;
    const sc_hw *usual = cluster("node: dgx-a100-80g\n");
    const sc_hw *few = cluster("node: dgx-a100-80g\nnccl_max_nchannels: 3\n");
    const sc_hw *many = cluster("node: dgx-a100-80g\nnccl_min_nchannels: 32\n");
    sc_coll_price u = price(usual, SC_ALL_REDUCE, 4e9, 8, 1);
    sc_coll_price f = price(few, SC_ALL_REDUCE, 4e9, 8, 1);
    sc_coll_price m = price(many, SC_ALL_REDUCE, 4e9, 8, 1);
    assert_int_equal(u.channels, 24);
    assert_int_equal(f.channels, 3);
    assert_int_equal(m.channels, 32);
    assert_true(f.seconds > 3.9 * u.seconds && f.seconds < 4 * u.seconds);
    assert_true(m.seconds == u.seconds);
}

/* Rings that leave by another adapter than they came cross the spines between
 * rails; on one leaf without rails they do not care. */
static void cross_nic(void **state)
{
    (void)state;
#define RAILS H100 "rails: 8\noversubscription: 2\nnccl_algo: ring\n"
    double kept = price(cluster(RAILS), SC_ALL_REDUCE, 4e9, 8, 4).seconds;
    double never =
        price(cluster(RAILS "nccl_cross_nic: 0\n"), SC_ALL_REDUCE, 4e9, 8, 4)
            .seconds;
    double always =
        price(cluster(RAILS "nccl_cross_nic: 1\n"), SC_ALL_REDUCE, 4e9, 8, 4)
            .seconds;
    assert_true(never == kept);
    assert_true(always > 1.9 * kept && always < 2 * kept);
#define LEAF H100 "rails: 1\noversubscription: 2\nnccl_algo: ring\n"
    kept = price(cluster(LEAF), SC_ALL_REDUCE, 4e9, 8, 4).seconds;
    always =
        price(cluster(LEAF "nccl_cross_nic: 1\n"), SC_ALL_REDUCE, 4e9, 8, 4)
            .seconds;
    assert_true(always == kept);
}

/* Without PXN seven of eight bytes of an all-to-all leave for another rail;
 * with it they move inside the node first. */
static void pxn(void **state)
{
    (void)state;
#define WIDE H100 "rails: 8\noversubscription: 4\n"
    const sc_hw *with = cluster(WIDE);
    const sc_hw *without = cluster(WIDE "nccl_pxn_disable: true\n");
    sc_coll_price a = price(with, SC_ALL_TO_ALL, 4e9, 8, 4);
    sc_coll_price b = price(without, SC_ALL_TO_ALL, 4e9, 8, 4);
    assert_true(b.seconds > 3.4 * a.seconds && b.seconds < 3.5 * a.seconds);
    assert_true(fabs(a.nic_bytes / b.nic_bytes - 1) < 1e-12);
    /* 7/32 of V go to neighbours; 7/8 of the other 24/32 pass through one. */
    assert_true(fabs(b.port_bytes / (4e9 * 7 / 32) - 1) < 1e-12);
    assert_true(fabs(a.port_bytes / (4e9 * (7.0 / 32 + 7.0 / 8 * 24 / 32)) -
                     1) < 1e-12);
    /* One member per node has one rail either way. */
    assert_true(price(with, SC_ALL_TO_ALL, 4e9, 1, 4).seconds ==
                price(without, SC_ALL_TO_ALL, 4e9, 1, 4).seconds);
    /* 2.10 had no PXN yet. */
    sc_hw old = *cluster("node: dgx-a100-80g\nnodes: 4\nnccl: 2.10.3\n"
                         "rails: 8\noversubscription: 4\n");
    sc_hw next = *cluster("node: dgx-a100-80g\nnodes: 4\nnccl: 2.18\n"
                          "rails: 8\noversubscription: 4\n");
    assert_true(price(&old, SC_ALL_TO_ALL, 4e9, 8, 4).seconds >
                3 * price(&next, SC_ALL_TO_ALL, 4e9, 8, 4).seconds);
}

/* The network's switches reduce: V leaves a node instead of the trees' 2 V. */
static void sharp(void **state)
{
    (void)state;
    const sc_hw *hw = cluster(A100 "nccl: 2.18\nsharp: true\n"
                                   "nccl_algo: CollNetDirect\n");
    sc_coll_price p = price(hw, SC_ALL_REDUCE, 4e9, 8, 4);
    assert_int_equal(p.algorithm, SC_ALGO_COLLNET);
    assert_true(fabs(p.nic_bytes / 4e9 - 1) < 1e-12);
    hw = cluster(H100 "sharp: true\nnccl_algo: NVLS\n");
    p = price(hw, SC_ALL_REDUCE, 4e9, 8, 4);
    assert_int_equal(p.algorithm, SC_ALGO_NVLS);
    assert_true(fabs(p.nic_bytes / 4e9 - 1) < 1e-12);
    assert_true(fabs(p.port_bytes / (4e9 * 9 / 8) - 1) < 1e-12);
    assert_true(p.seconds <
                price(cluster(H100), SC_ALL_REDUCE, 4e9, 8, 4).seconds);
    p = price(cluster(H100), SC_ALL_REDUCE, 1e8, 8, 4);
    assert_int_equal(p.algorithm, SC_ALGO_NVLS_TREE);
}

/* 28 MB over 8 A100: 2.10 stays with LL128 up to 31 MB, 2.30 up to 26. */
static void versions_differ(void **state)
{
    (void)state;
    const sc_hw *old = cluster("node: dgx-a100-80g\nnccl: 2.10.3\n");
    const sc_hw *new = cluster("node: dgx-a100-80g\nnccl: 2.30.7\n");
    assert_string_equal(price(old, SC_ALL_REDUCE, 28e6, 8, 1).protocol,
                        "LL128");
    assert_string_equal(price(new, SC_ALL_REDUCE, 28e6, 8, 1).protocol,
                        "Simple");
    assert_true(old->hash != new->hash);
    assert_true(old->hash == cluster("node: dgx-a100-80g\n")->hash);
}

/* Two nodes: each is root of one tree, V leaves it, and busbw may pass the NIC
 * rate up to 2 (n - 1) / n times, never the time its bytes take. */
static void two_node_trees(void **state)
{
    (void)state;
    static const int trees[] = {SC_ALGO_TREE, SC_ALGO_NVLS_TREE};
    const sc_hw *hw = cluster("node: dgx-h100\nnodes: 2\n");
    const uint32_t n = 16, stride = 1;
    sc_place at = sc_hw_place(hw, 1, &n, &stride);
    double nic = hw->dim[1].ports * hw->dim[1].port_bw;
    cost.p[SC_P_NET_W] = 1;
    for (size_t i = 0; i < SC_COUNT(trees); i++) {
        sc_coll_price p;
        assert_int_equal(sc_cost_coll(&cost, hw, SC_ALL_REDUCE, 1e10, &at,
                                      trees[i], &p, &err),
                         SC_OK);
        assert_true(p.nic_bytes == 1e10);
        assert_true(p.seconds >= 1e10 / nic);
        double bus = 1e10 / p.seconds * 2 * 15 / 16;
        assert_true(bus <= 1.875 * nic);
    }
}

/* An interval holds the price, and a factor 2 where nobody measured. */
static void intervals(void **state)
{
    (void)state;
    const sc_hw *hw = cluster(H100);
    const uint32_t size[] = {8, 4}, stride[] = {1, 8};
    sc_place far = sc_hw_place(hw, 2, size, stride);
    sc_place near = sc_hw_place(hw, 1, size, stride);
    double low, high;
    assert_false(sc_cost_calibrated(&cost, hw, &far));
    assert_true(sc_cost_calibrated(&cost, hw, &near));
    sc_coll_price p = price(hw, SC_ALL_REDUCE, 4e6, 8, 4);
    sc_cost_coll_interval(&cost, hw, &far, 4e6, &p, &low, &high);
    assert_true(high >= 2 * p.seconds && low <= p.seconds / 2);
    p = price(hw, SC_ALL_REDUCE, 4e6, 8, 1);
    sc_cost_coll_interval(&cost, hw, &near, 4e6, &p, &low, &high);
    assert_true(high < 1.5 * p.seconds && low > p.seconds / 1.5);
    static const char profile[] =
        "parameters: {net_fraction: 0.8}\n"
        "calibrated: [{device: h100-sxm, nodes: 2, nic_bw: 400GB/s}]\n";
    assert_int_equal(
        sc_cost_read(profile, sizeof profile - 1, "p.yml", &arena, &cost, &err),
        SC_OK);
    assert_true(sc_cost_calibrated(&cost, hw, &far));
    const sc_hw *slow =
        cluster("node: dgx-h100\nnodes: 4\nnics: 4\nrails: 4\n");
    assert_false(sc_cost_calibrated(&cost, slow, &far));
    p = price(hw, SC_ALL_REDUCE, 4e6, 8, 4);
    sc_cost_coll_interval(&cost, hw, &far, 4e6, &p, &low, &high);
    assert_true(high < 1.5 * p.seconds);
    static const char *const bad[] = {
        "parameters: {}\ncalibrated: 3\n",
        "parameters: {}\ncalibrated: [{device: h100-sxm, nodes: 2}]\n",
        "parameters: {}\ncalibrated: [{device: x, nodes: 1, nic_bw: 1GB/s}]\n"};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_err_init(&err);
        assert_int_equal(
            sc_cost_read(bad[i], strlen(bad[i]), "p.yml", &arena, &cost, &err),
            SC_EINPUT);
        assert_int_equal(err.d[0].line, 2);
    }
}

/* Over EFA a step of a ring costs more than one of a tree. */
static void network_kinds(void **state)
{
    (void)state;
    const sc_hw *ib =
        cluster("node: dgx-h100\nnodes: 4\nnetwork: infiniband\n");
    const sc_hw *efa = cluster("node: dgx-h100\nnodes: 4\nnetwork: efa\n");
    assert_int_equal(efa->dim[efa->n_dims - 1].network, SC_NETWORK_EFA);
    assert_true(ib->hash != efa->hash);
    cost.p[SC_P_EFA_RING] = 4.7e-4;
    double gather = price(efa, SC_ALL_GATHER, 64e6, 8, 4).seconds -
                    price(ib, SC_ALL_GATHER, 64e6, 8, 4).seconds;
    double reduce = price(efa, SC_ALL_REDUCE, 64e6, 8, 4).seconds -
                    price(ib, SC_ALL_REDUCE, 64e6, 8, 4).seconds;
    assert_true(gather > 1e-3 && reduce > 0 && reduce < gather / 2);
    const sc_hw *own = NULL;
    assert_int_equal(sc_hw_with_network(ib, SC_NETWORK_EFA, &arena, &own, &err),
                     SC_OK);
    assert_true(own->hash != ib->hash);
    assert_true(fabs(price(own, SC_ALL_GATHER, 64e6, 8, 4).seconds /
                         price(efa, SC_ALL_GATHER, 64e6, 8, 4).seconds -
                     1) < 1e-12);
    sc_err_init(&err);
    assert_int_equal(build("node: dgx-h100\nnodes: 4\nnetwork: efb\n", &own),
                     SC_EINPUT);
    assert_int_equal(err.d[0].line, 3);
}

static double spread_over_node(const char *text, uint32_t apart)
{
    const sc_hw *hw = cluster(text);
    const uint32_t size[] = {2, 4}, stride[] = {apart, hw->node_size};
    sc_place at = sc_hw_place(hw, 2, size, stride);
    sc_coll_price p;
    assert_int_equal(at.apart, apart);
    assert_int_equal(
        sc_cost_coll(&cost, hw, SC_ALL_REDUCE, 1e9, &at, -1, &p, &err), SC_OK);
    return p.seconds;
}

/* Members that share no adapter reach it through the host unless NCCL has PXN
 * or each has an adapter of its own. */
static void members_apart(void **state)
{
    (void)state;
    static const char four[] =
        "node: dgx-a100-80g\nnodes: 4\nnics: 4\nnic_bw: 200Gb/s\n";
    static const char later[] =
        "node: dgx-a100-80g\nnodes: 4\nnics: 4\nnic_bw: 200Gb/s\n"
        "nccl: 2.30.7\n";
    static const char eight[] = "node: dgx-a100-80g\nnodes: 4\n";
    cost.p[SC_P_NET_STAGED] = 6e9;
    double near = spread_over_node(four, 1);
    assert_true(spread_over_node(four, 4) > 2 * near);
    assert_true(spread_over_node(later, 4) < 1.1 * near);
    assert_true(spread_over_node(eight, 4) < 1.1 * near);
}

static bool slow(const sc_hw *hw, sc_coll coll, double bytes, uint32_t m,
                 uint32_t nodes, sc_coll_slow *out)
{
    const uint32_t size[] = {m, nodes}, stride[] = {1, hw->node_size};
    sc_place at = sc_hw_place(hw, 2, size, stride);
    return sc_cost_coll_slow(&cost, hw, coll, bytes, &at, out);
}

/* A choice is reported where another pair is priced much lower, and only
 * there. */
static void slow_choices(void **state)
{
    (void)state;
    const sc_hw *usual = cluster(H100);
    const sc_hw *low = cluster(H100 "nccl_proto: LL\n");
    const sc_hw *amd = cluster("node: mi300x-node\nnodes: 4\n");
    sc_coll_slow s;
    assert_true(slow(low, SC_ALL_REDUCE, 1e9, 8, 4, &s));
    assert_string_equal(s.protocol, "LL");
    assert_string_equal(s.best_algorithm, "NVLSTree");
    assert_string_equal(s.best_protocol, "Simple");
    near(s.seconds, price(low, SC_ALL_REDUCE, 1e9, 8, 4).seconds);
    near(s.best_s, price(usual, SC_ALL_REDUCE, 1e9, 8, 4).seconds);
    assert_false(slow(usual, SC_ALL_REDUCE, 1e9, 8, 4, &s));
    assert_false(slow(low, SC_ALL_TO_ALL, 1e9, 8, 4, &s));
    assert_false(slow(amd, SC_ALL_REDUCE, 1e9, 8, 4, &s));
    assert_false(slow(low, SC_ALL_REDUCE, 1e9, 1, 1, &s));
    assert_false(slow(low, SC_ALL_REDUCE, 0, 8, 4, &s));
    for (double bytes = 1024; bytes < 1e10; bytes *= 2)
        for (int coll = 0; coll < (int)SC_N_COLLS; coll++) {
            if (sc_coll_priced((sc_coll)coll) != (sc_coll)coll) continue;
            double now = price(usual, (sc_coll)coll, bytes, 8, 4).seconds;
            if (!slow(usual, (sc_coll)coll, bytes, 8, 4, &s)) continue;
            assert_true(s.seconds >= SC_SLOW_CHOICE * s.best_s);
            near(s.price_s, now);
            assert_true(s.price_s <= s.seconds * (1 + 1e-9));
        }
}

/* The text names what is chosen, what is faster, and how to force it. */
static void slow_choice_text(void **state)
{
    (void)state;
    const uint32_t size[] = {8, 4}, stride[] = {1, 8};
    sc_place at = sc_hw_place(cluster(H100), 2, size, stride);
    sc_coll_slow s = {.algorithm = "Tree",
                      .protocol = "LL128",
                      .best_algorithm = "Tree",
                      .best_protocol = "LL",
                      .seconds = 80e-6,
                      .best_s = 40e-6,
                      .price_s = 50e-6};
    sc_text t;
    sc_text_init(&t);
    sc_cost_coll_slow_text(&s, SC_ALL_REDUCE, 262144, &at, 0.25, &t);
    assert_string_equal(
        t.buf,
        "NCCL chooses Tree LL128 for all_reduce of 256 KiB over 32 "
        "devices, 8 per node; this is priced at 80.0 us, 2 times Tree "
        "LL (40.0 us), and costs up to 250 ms more per step; NCCL_PROTO=LL "
        "forces the faster one; the price taken here is 50.0 us");
    sc_text_free(&t);
    sc_text_init(&t);
    s.best_algorithm = "Ring";
    sc_cost_coll_slow_text(&s, SC_ALL_REDUCE, 262144, &at, 0, &t);
    assert_null(strstr(t.buf, "per step"));
    assert_non_null(strstr(t.buf, "; NCCL_ALGO=Ring NCCL_PROTO=LL forces"));
    sc_text_free(&t);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(algorithm_and_protocol),
        TEST(wrong_lists),
        TEST(channels),
        TEST(cross_nic),
        TEST(pxn),
        TEST(sharp),
        TEST(versions_differ),
        TEST(two_node_trees),
        TEST(intervals),
        TEST(network_kinds),
        TEST(members_apart),
        TEST(slow_choices),
        TEST(slow_choice_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
