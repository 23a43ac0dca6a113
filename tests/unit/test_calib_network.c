/* SPDX-License-Identifier: Apache-2.0 */
/* The network table: what is read and skipped, and how well the fit does. */
#include "calib/network.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER                                                       \
    "source,where,collective,gpu,gpus,nodes,nic,size_bytes,time_us," \
    "algbw_GBps,busbw_GBps,algo,notes\n"

static sc_csv parse(const char *text)
{
    sc_csv t;
    assert_int_equal(
        sc_csv_parse(text, strlen(text), "net.csv", &arena, &t, &err), SC_OK);
    return t;
}

static sc_csv load(const char *name)
{
    const char *root = getenv("STEPCAST_SOURCE");
    char path[1024], *text;
    size_t len;
    snprintf(path, sizeof(path), "%s/data/validation/%s", root ? root : ".",
             name);
    assert_int_equal(
        sc_file_read(path, (size_t)1 << 24, &arena, &text, &len, &err), SC_OK);
    return parse(text);
}

static void reads_rows(void **state)
{
    (void)state;
    sc_csv t = parse(
        HEADER
        "vTrain x,,all_reduce,V100,4,1,NVLink,1048576,50,,,,\n"
        "log,,all_gather,H100-SXM,16,2,8x CX-7 400G RoCE,16000000,,,40,,\n"
        "log,,all_reduce,A100-SXM,16,2,EFA v2 400 Gb/s,8,1,,,Ring (old),\n"
        "log,,all_reduce,A100-SXM,16,2,8x mlx5 (NDR likely; 468 GB/s),8,1,,,,\n"
        "log,,all_reduce,A100-SXM,16,2,unstated,8,1,,,,\n"
        "log,,scatter,A100-SXM,8,1,,8,1,,,,\n"
        "log,,all_reduce,ZX-81,8,1,,8,1,,,,\n"
        "log,,all_reduce,A100-SXM,8,1,,8,,,,,\n"
        "log,,all_reduce,A100-SXM,8,1,,8,1,,,NVLS,\n"
        "log,,all_reduce,H100-PCIe,2,1,NVLink bridge,8,1,,,,\n");
    sc_cost c;
    network_rows r;
    sc_cost_centres(&c);
    assert_int_equal(network_read(&t, &c, &arena, &r, &err), SC_OK);
    assert_int_equal(r.n, 4);
    assert_int_equal(r.skipped[NETWORK_SKIP_NIC], 1);
    assert_int_equal(r.skipped[NETWORK_SKIP_COLLECTIVE], 1);
    assert_int_equal(r.skipped[NETWORK_SKIP_DEVICE], 1);
    assert_int_equal(r.skipped[NETWORK_SKIP_NUMBERS], 1);
    assert_int_equal(r.skipped[NETWORK_SKIP_PLACE], 1);
    assert_int_equal(r.skipped[NETWORK_SKIP_LINK], 1);
    /* Four of the cube mesh's eight. */
    assert_int_equal(r.row[0].harness, NETWORK_HOST);
    assert_int_equal(r.row[0].hw->dim[0].kind, SC_DIM_CUBE);
    assert_int_equal(r.row[0].at.dim_n[0], 4);
    assert_int_equal(r.row[0].at.peers, 1);
    assert_true(fabs(r.row[0].seconds - 50e-6) < 1e-12);
    /* 15/16 of 16 MB at 40 GB/s. */
    assert_true(fabs(r.row[1].seconds - 375e-6) < 1e-12);
    static const double nic[] = {0, 400e9, 50e9, 400e9};
    for (int i = 1; i < 4; i++) {
        const sc_dim *d = &r.row[i].hw->dim[1];
        assert_true(fabs(d->ports * d->port_bw / nic[i] - 1) < 1e-9);
    }
    assert_int_equal(r.row[2].algorithm, SC_ALGO_RING);
    assert_int_equal(r.row[1].algorithm, -1);
    assert_int_equal(r.n_groups, 3);
}

static void locates_bad_cells(void **state)
{
    (void)state;
    sc_cost c;
    network_rows r;
    sc_cost_centres(&c);
    sc_csv t = parse(HEADER "log,,all_reduce,V100,4,1,,8,fast,,,,\n"
                            "log,,all_reduce,V100,4,1,,-8,1,,,,\n");
    assert_int_equal(network_read(&t, &c, &arena, &r, &err), SC_EINPUT);
    assert_int_equal(err.n, 2);
    assert_int_equal(err.d[0].line, 2);
    assert_int_equal(err.d[1].line, 3);
    sc_err_init(&err);
    t = parse("a,b\n1,2\n");
    assert_int_equal(network_read(&t, &c, &arena, &r, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_MISSING);
}

/* Harness terms are in what is measured, not in what is predicted. */
static void harness_terms(void **state)
{
    (void)state;
    sc_csv t =
        parse(HEADER "log,,all_reduce,A100-SXM,8,1,,1024,1,,,,\n"
                     "vTrain x,,all_reduce,A100-SXM,8,1,,1024,1,,,,\n"
                     "ml-engineering all_reduce_bench,,all_reduce,A100-SXM,8,"
                     "1,,1024,1,,,,\n");
    sc_cost c;
    network_rows r;
    sc_cost_centres(&c);
    assert_int_equal(network_read(&t, &c, &arena, &r, &err), SC_OK);
    double plain = network_predict(&r.row[0], &c);
    sc_coll_price p;
    assert_int_equal(sc_cost_coll(&c, r.row[0].hw, SC_ALL_REDUCE, 1024,
                                  &r.row[0].at, -1, &p, &err),
                     SC_OK);
    assert_true(plain == p.seconds);
    double floor = c.p[SC_P_HARNESS_HOST0] + 8 * c.p[SC_P_HARNESS_HOST1];
    assert_true(network_predict(&r.row[1], &c) == floor);
    assert_true(network_predict(&r.row[2], &c) ==
                plain + c.p[SC_P_HARNESS_BENCH]);
}

static void fits_the_table(void **state)
{
    (void)state;
    sc_csv t = load("network.csv");
    sc_cost c;
    static sc_fit_result res;
    sc_network_score before, after;
    sc_text report;
    sc_text_init(&report);
    sc_cost_centres(&c);
    assert_int_equal(sc_network_check(&t, &c, &before, NULL, &arena, &err),
                     SC_OK);
    assert_int_equal(sc_fit_network(&t, &c, &res, &report, &arena, &err),
                     SC_OK);
    assert_int_equal(sc_network_check(&t, &c, &after, NULL, &arena, &err),
                     SC_OK);
    assert_true(after.groups[0] >= 9);
    assert_true(after.used[0] >= 1100);
    assert_true(after.error[0] < 0.03);
    assert_true(after.error[0] < before.error[0]);
    assert_true(after.error[1] < 0.05);
    assert_non_null(strstr(report.buf, "a100-sxm-80g"));
    assert_non_null(strstr(report.buf, "skipped"));
    uint32_t n_free = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        if (sc_params[i].set != SC_SET_NETWORK) {
            assert_true(c.p[i] == sc_params[i].centre);
            continue;
        }
        n_free += sc_params[i].sd > 0;
        assert_true(c.p[i] >= sc_params[i].lo && c.p[i] <= sc_params[i].hi);
    }
    assert_true(n_free * 20 <= after.rows - after.skipped);
    sc_text_free(&report);
}

/* A rank count left out is predicted from the others on a switch. */
static void leaves_out_a_rank_count(void **state)
{
    (void)state;
    static const char *const left[] = {"3", "6"};
    sc_csv all = load("network.csv");
    int gpu = sc_csv_col(&all, "gpu"), gpus = sc_csv_col(&all, "gpus");
    for (int k = 0; k < 2; k++) {
        sc_csv part[2] = {all, all};
        for (int p = 0; p < 2; p++) {
            part[p].n_rows = 0;
            part[p].cells =
                SC_NEW_N(&arena, const char *, (size_t)all.n_rows *all.n_cols);
            assert_non_null(part[p].cells);
        }
        for (uint32_t i = 0; i < all.n_rows; i++) {
            sc_csv *to =
                &part[strcmp(sc_csv_get(&all, i, gpu), "A100-SXM") == 0 &&
                      strcmp(sc_csv_get(&all, i, gpus), left[k]) == 0];
            memcpy(to->cells + (size_t)to->n_rows++ * all.n_cols,
                   all.cells + (size_t)i * all.n_cols,
                   all.n_cols * sizeof(*all.cells));
        }
        sc_cost c;
        static sc_fit_result res;
        sc_network_score s;
        sc_cost_centres(&c);
        assert_int_equal(part[1].n_rows, 135);
        assert_int_equal(sc_fit_network(&part[0], &c, &res, NULL, &arena, &err),
                         SC_OK);
        assert_int_equal(sc_network_check(&part[1], &c, &s, NULL, &arena, &err),
                         SC_OK);
        assert_true(s.error[0] < 0.04);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_rows),
        TEST(locates_bad_cells),
        TEST(harness_terms),
        TEST(fits_the_table),
        TEST(leaves_out_a_rank_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
