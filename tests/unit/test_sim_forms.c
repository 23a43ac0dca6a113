/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of single collectives by hand.  Compatible mode: closed forms of a
 * message's time x, the endpoint delay e and a reduction r.  Own mode: what
 * the ports need plus latencies.
 */
#include "fixture.h"
#include "small_workload.h"

#include <math.h>
#include <stdlib.h>

static sw *s;
static sc_simulate_opts opts;
static sc_system sys;
static sc_network net;
static const sc_pool no_pool;
static sc_simulate_result out;

#define N     8
#define BYTES (1u << 20)
#define E     10

static int start(void **state)
{
    setup(state);
    sc_simulate_opts_init(&opts);
    s = calloc(1, sizeof *s);
    assert_non_null(s);
    return 0;
}

static int end(void **state)
{
    free(s);
    return teardown(state);
}

static sc_status run(uint32_t coll, uint64_t size, uint32_t root)
{
    s->n_ranks = net.n_ranks;
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        s->n[r] = 0;
        sw_coll(s, r, coll, size, SC_TASK_WORLD)->peer = root;
    }
    sw_build(s, &arena);
    return sc_simulate(&s->w, &sys, &net, &no_pool, &opts, &arena, &out, &err);
}

/* ns of the last rank */
static double ns(uint32_t coll, uint64_t size)
{
    assert_int_equal(run(coll, size, 0), SC_OK);
    assert_int_equal(out.n_finished, out.n_ranks);
    return (double)out.makespan / 1000;
}

/* 50 GB/s (2^30), 500 ns, of one hop, no links */
static double x(double bytes)
{
    return floor(500 + bytes / (50 * 1.073741824));
}

static double red(double bytes)
{
    return 3 * floor(bytes / 100);
}

static void compatible(sc_ccl_kind kind, sc_dim_kind dim, uint32_t splits)
{
    opts.rules = sc_rules_find("astra-sim");
    opts.links = false;
    sys = sw_system(splits, 1, kind);
    sys.local_mem_bw = 100e9;
    net = sw_network(dim, N, 50, 500);
}

static void test_compatible_ring(void **state)
{
    (void)state;
    for (uint32_t splits = 1; splits <= 4; splits *= 2) {
        double c = (double)BYTES / splits, m = c / N;
        compatible(SC_CCL_RING, SC_DIM_RING, splits);
        assert_true(ns(SC_REDUCE_SCATTER, BYTES) ==
                    splits * ((N - 1) * (x(m) + E + red(m)) + E));
        assert_true(ns(SC_ALL_GATHER, BYTES) ==
                    splits * ((N - 1) * (x(c) + E) + E));
        assert_true(
            ns(SC_ALL_REDUCE, BYTES) ==
            splits * ((2 * N - 2) * x(m) + (2 * N - 1) * E + (N - 1) * red(m)));
        double k = N * (N - 1) / 2;
        assert_true(ns(SC_ALL_TO_ALL, BYTES) ==
                    splits * (k * x(m) + (k + 1) * E));
    }
}

static void test_compatible_direct(void **state)
{
    (void)state;
    double m = BYTES / N;
    compatible(SC_CCL_DIRECT, SC_DIM_FULL, 1);
    assert_true(ns(SC_ALL_TO_ALL, BYTES) == 2 * E + x(m));
    assert_true(ns(SC_REDUCE_SCATTER, BYTES) == 2 * E + x(m) + red(m));
    opts.links = true;
    compatible(SC_CCL_DIRECT, SC_DIM_SWITCH, 1);
    opts.links = true;
    double serial = floor(m / (50 * 1.073741824));
    assert_true(ns(SC_ALL_TO_ALL, BYTES) ==
                2 * E + (N - 2) * serial + 2 * x(m));
}

/* The port of a switch carries n - 1 shares whatever is simulated. */
static void test_ports(void **state)
{
    (void)state;
    for (int links = 0; links < 2; links++) {
        opts.links = links == 1;
        sys = sw_system(1, 1, SC_CCL_DIRECT);
        net = sw_network(SC_DIM_SWITCH, N, 50, 500);
        double port = (N - 1) * (BYTES / N) / (50 * 1.073741824);
        double t = ns(SC_ALL_TO_ALL, BYTES);
        assert_true(t >= port + 1000);
        assert_true(t <= port + 1000 + 2 * E + 1 + BYTES / N / 50.0);
    }
    sys.port_limit = false;
    opts.links = false;
    assert_true(ns(SC_ALL_TO_ALL, BYTES) <
                1020 + 1 + BYTES / N / (50 * 1.073741824));
}

/* Two chunks of an all-gather, each of which passes N - 1 links: from two queues
 * they go opposite ways round the ring, so that neither waits for the other;
 * from one queue the links of one way carry both. */
static void test_both_ways(void **state)
{
    (void)state;
    double link = 50 * 1.073741824, chunk = BYTES / 2 / link;
    sys = sw_system(2, 1, SC_CCL_RING);
    sys.active_chunks = 2;
    net = sw_network(SC_DIM_RING, N, 50, 500);
    opts.queues = 2;
    assert_true(
        fabs(ns(SC_ALL_GATHER, BYTES) - ((N - 1) * (500 + chunk + E) + E)) < 1);
    opts.queues = 1;
    assert_true(ns(SC_ALL_GATHER, BYTES) > (N - 1) * 2 * chunk);
}

/* Ring all-to-all: step k moves n - k shares, n - 1 steps. */
static void test_ring_all_to_all(void **state)
{
    (void)state;
    sys = sw_system(1, 1, SC_CCL_RING);
    net = sw_network(SC_DIM_RING, N, 50, 500);
    double bytes = N * (N - 1) / 2 * (BYTES / N), link = 50 * 1.073741824;
    double t = ns(SC_ALL_TO_ALL, BYTES);
    assert_true(fabs(t - (bytes / link + (N - 1) * (500 + E) + E)) < 1);
}

/* Halving-doubling pays for every byte it adds, (n - 1) / n of them. */
static void test_halving_reduces_all(void **state)
{
    (void)state;
    sys = sw_system(1, 1, SC_CCL_HALVING_DOUBLING);
    sys.local_mem_bw = 1e12;
    net = sw_network(SC_DIM_FULL, N, 1e6, 0);
    double bytes = (double)BYTES * (N - 1) / N;
    double t = ns(SC_REDUCE_SCATTER, BYTES);
    assert_true(t >= 3 * bytes / 1e3);
    assert_true(t <= 3 * bytes / 1e3 + 4 * E + bytes / 1e6 + 1);
}

/* ---- roots ---------------------------------------------------------------- */

static void test_rooted(void **state)
{
    static const uint32_t colls[] = {SC_BROADCAST, SC_REDUCE, SC_GATHER,
                                     SC_SCATTER};
    (void)state;
    sys = sw_system(4, 1, SC_CCL_RING);
    sys.local_mem_bw = 1e15;
    for (int links = 0; links < 2; links++) {
        opts.links = links == 1;
        net = sw_network(SC_DIM_SWITCH, N, 50, 500);
        double whole = BYTES / (50 * 1.073741824);
        for (uint32_t i = 0; i < 4; i++)
            for (uint32_t root = 0; root < N; root += 3) {
                assert_int_equal(run(colls[i], BYTES, root), SC_OK);
                assert_int_equal(out.n_finished, N);
                double t = (double)out.makespan / 1000, least = whole;
                if (colls[i] == SC_GATHER) least = (N - 1) * whole;
                if (colls[i] == SC_SCATTER) least = whole * (N - 1) / N;
                assert_true(t >= least);
                assert_true(t <= 1.5 * least + 8 * (1000 + 2 * E));
            }
    }
    assert_int_equal(run(SC_BROADCAST, BYTES, N), SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "root 8 of a group of 8"));
}

/* Three rounds among eight, two hops each. */
static void test_barrier(void **state)
{
    (void)state;
    sys = sw_system(4, 1, SC_CCL_RING);
    net = sw_network(SC_DIM_SWITCH, N, 50, 500);
    double t = ns(SC_BARRIER, 0);
    assert_true(fabs(t - (3 * 1000 + 4 * E)) < 2);
}

static void test_rooted_over_dimensions(void **state)
{
    (void)state;
    for (uint32_t root = 0; root < 24; root += 5)
        for (int up = 0; up < 2; up++) {
            sys = sw_system(2, 3, SC_CCL_RING);
            sys.local_mem_bw = 1e15;
            net = sw_network(SC_DIM_RING, 4, 50, 500);
            sw_dim(&net, SC_DIM_FULL, 3, 25, 100);
            sw_dim(&net, SC_DIM_SWITCH, 2, 10, 1000);
            assert_int_equal(run(up ? SC_REDUCE : SC_BROADCAST, BYTES, root),
                             SC_OK);
            assert_int_equal(out.n_finished, 24);
            double least = BYTES / (10 * 1.073741824);
            assert_true((double)out.makespan / 1000 >= least);
            assert_true((double)out.makespan / 1000 <= 3 * least);
        }
}

/* What the reference can't do is done and told. */
static void test_compatible_barrier(void **state)
{
    (void)state;
    compatible(SC_CCL_RING, SC_DIM_RING, 1);
    (void)ns(SC_BARRIER, 0);
    assert_non_null(strstr(out.warnings, "astra-sim has no barrier"));
}

/* ---- systems that don't fit ---------------------------------------------- */

static void refused(uint32_t coll, uint32_t line, const char *what)
{
    sc_err_init(&err);
    assert_int_equal(run(coll, BYTES, 0), SC_EINPUT);
    assert_int_equal(err.d[0].line, line);
    assert_non_null(strstr(err.d[0].msg, what));
    sc_err_init(&err);
}

static void test_lists(void **state)
{
    (void)state;
    sys = sw_system(1, 3, SC_CCL_RING);
    sys.ccl[SC_ALL_REDUCE].pos = (sc_pos){"system.json", 7, 3};
    net = sw_network(SC_DIM_RING, 4, 50, 500);
    sw_dim(&net, SC_DIM_RING, 4, 50, 500);
    refused(SC_ALL_REDUCE, 7, "names 3 algorithms");
    sys.ccl[SC_ALL_REDUCE].n = 1;
    refused(SC_ALL_REDUCE, 7, "names 1 algorithms");
    sys.ccl[SC_ALL_REDUCE].n = 0;
    sys.splits = 0;
    assert_int_equal(run(SC_ALL_REDUCE, BYTES, 0), SC_OK);
    assert_non_null(strstr(out.warnings, "'all-reduce-implementation'"));
    assert_non_null(strstr(out.warnings, "'preferred-dataset-splits'"));
    opts.rules = sc_rules_find("astra-sim");
    refused(SC_ALL_REDUCE, 0, "all-reduce-implementation");
}

static void test_unfit_algorithm(void **state)
{
    (void)state;
    sys = sw_system(1, 1, SC_CCL_HALVING_DOUBLING);
    net = sw_network(SC_DIM_SWITCH, 6, 50, 500);
    double half = ns(SC_ALL_REDUCE, 6 << 20);
    assert_non_null(strstr(out.warnings, "cannot run with 6 members"));
    sys = sw_system(1, 1, SC_CCL_RING);
    assert_true(ns(SC_ALL_REDUCE, 6 << 20) == half);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_compatible_ring),
        TEST(test_compatible_direct),
        TEST(test_ports),
        TEST(test_both_ways),
        TEST(test_ring_all_to_all),
        TEST(test_halving_reduces_all),
        TEST(test_rooted),
        TEST(test_barrier),
        TEST(test_rooted_over_dimensions),
        TEST(test_compatible_barrier),
        TEST(test_lists),
        TEST(test_unfit_algorithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
