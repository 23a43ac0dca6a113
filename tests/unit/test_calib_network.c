/* SPDX-License-Identifier: Apache-2.0 */
/* The network table: what is read and skipped, and how well the fit does. */
#include "calib/calib_nccltests.h"
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
    /* the fit has the other tables too */
    sc_network_score node, extra;
    sc_csv one = load("network-node.csv"), more = load("network-extra.csv");
    assert_int_equal(sc_network_check(&one, &c, &node, NULL, &arena, &err),
                     SC_OK);
    assert_int_equal(sc_network_check(&more, &c, &extra, NULL, &arena, &err),
                     SC_OK);
    assert_true(n_free * 20 <= after.rows - after.skipped + node.rows -
                                   node.skipped + extra.rows - extra.skipped);
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

/* ---- what the tables must show ------------------------------------------- */

typedef bool row_filter(const sc_csv *t, uint32_t row, void *ctx);

static sc_csv filter(const sc_csv *t, row_filter *keep, void *ctx)
{
    sc_csv out = *t;
    out.n_rows = 0;
    out.cells = SC_NEW_N(&arena, const char *, (size_t)t->n_rows * t->n_cols);
    out.line = SC_NEW_N(&arena, uint32_t, t->n_rows);
    assert_non_null(out.cells);
    assert_non_null(out.line);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        if (!keep(t, i, ctx)) continue;
        memcpy(out.cells + (size_t)out.n_rows * t->n_cols,
               t->cells + (size_t)i * t->n_cols, t->n_cols * sizeof *t->cells);
        out.line[out.n_rows++] = t->line[i];
    }
    return out;
}

static const char *cell(const sc_csv *t, uint32_t row, const char *column)
{
    return sc_csv_get(t, row, sc_csv_col(t, column));
}

static double size_of(const sc_csv *t, uint32_t row)
{
    double v = 0;
    assert_int_equal(sc_unit_parse(cell(t, row, "size_bytes"), SC_U_NONE,
                                   sc_pos_none(), &v, &err),
                     SC_OK);
    return v;
}

static bool same_group(const sc_csv *t, uint32_t a, uint32_t b)
{
    static const char *const by[] = {"gpu", "gpus", "nodes", "collective"};
    for (size_t i = 0; i < SC_COUNT(by); i++)
        if (strcmp(cell(t, a, by[i]), cell(t, b, by[i])) != 0) return false;
    return true;
}

/* Place of each row's size among the sizes of its group, from 0. */
static uint32_t *places(const sc_csv *t)
{
    uint32_t n = t->n_rows, *group = SC_NEW_N(&arena, uint32_t, n);
    uint32_t *place = SC_NEW_N(&arena, uint32_t, n);
    double *size = SC_NEW_N(&arena, double, n);
    assert_true(group != NULL && place != NULL && size != NULL);
    for (uint32_t i = 0; i < n; i++) {
        size[i] = size_of(t, i);
        for (group[i] = 0; !same_group(t, i, group[i]);) group[i]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        double last = 0, next = 0;
        for (place[i] = 0; next != size[i]; place[i] += next != size[i]) {
            next = size[i];
            for (uint32_t k = 0; k < n; k++)
                if (group[k] == group[i] && size[k] > last && size[k] < next)
                    next = size[k];
            last = next;
        }
    }
    return place;
}

typedef struct half {
    const uint32_t *place;
    uint32_t rest;
} half;

static bool of_half(const sc_csv *t, uint32_t row, void *ctx)
{
    (void)t;
    const half *h = ctx;
    return h->place[row] % 2 == h->rest;
}

/* Mean over (device, ranks, nodes, collective) of the group's mean error. */
static double mean_error(const sc_csv *t, const sc_cost *c)
{
    sc_network_score s;
    assert_int_equal(sc_network_check(t, c, &s, NULL, &arena, &err), SC_OK);
    uint32_t n = s.groups[0] + s.groups[1];
    assert_true(n > 0);
    return (s.error[0] * s.groups[0] + s.error[1] * s.groups[1]) / n;
}

static void before_any_fit(void **state)
{
    (void)state;
    sc_csv t = load("network.csv");
    sc_cost c;
    sc_cost_centres(&c);
    assert_true(mean_error(&t, &c) < 0.15);
}

/* Every second size of each group is fitted, the others are predicted. */
static void calibrated_on_half(void **state)
{
    (void)state;
    sc_csv t = load("network.csv");
    uint32_t *place = places(&t);
    half first = {place, 0}, second = {place, 1};
    sc_csv fitted = filter(&t, of_half, &first);
    sc_csv held = filter(&t, of_half, &second);
    assert_true(fitted.n_rows > 500 && held.n_rows > 500);
    sc_cost c;
    sc_nccl_fit fit;
    sc_cost_centres(&c);
    double before = mean_error(&held, &c);
    assert_int_equal(
        sc_fit_network_table(&fitted, &c, &fit, NULL, &arena, &err), SC_OK);
    double after = mean_error(&held, &c);
    print_message("held-out sizes: %.2f %% from the catalogue, %.2f %% "
                  "calibrated\n",
                  100 * before, 100 * after);
    assert_true(after < before);
    assert_true(after < 0.05);
    assert_int_equal(c.n_calibrated, 1);
    assert_string_equal(c.calibrated[0].device, "h100-sxm");
}

static bool large(const sc_csv *t, uint32_t row, void *ctx)
{
    (void)ctx;
    return size_of(t, row) >= 268435456;
}

/* Published curves of other clusters, with the parameters that are built in. */
static void published_elsewhere(void **state)
{
    (void)state;
    sc_csv all = load("network-extra.csv"), t = filter(&all, large, NULL);
    sc_cost c;
    sc_network_score s;
    assert_int_equal(sc_cost_builtin(&arena, &c, &err), SC_OK);
    double error = mean_error(&t, &c);
    print_message("network-extra from 256 MiB: %.2f %%\n", 100 * error);
    assert_true(error < 0.12);
    assert_int_equal(sc_network_check(&t, &c, &s, NULL, &arena, &err), SC_OK);
    assert_true(s.used[0] + s.used[1] >= 150);
}

/* Rows of one device are predicted by a fit without them: an unseen
 * device. */
static void leaves_out_devices(void **state)
{
    (void)state;
    sc_csv extra = load("network-extra.csv"), t = filter(&extra, large, NULL);
    sc_validation all, left;
    sc_validate_opts o = {.engine = 0};
    assert_int_equal(sc_validate(&t, 1, &o, &arena, &all, &err), SC_OK);
    assert_int_equal(
        sc_validate_leave_out(&t, 1, "device", &o, &arena, &left, &err), SC_OK);
    assert_int_equal(all.n_rows, left.n_rows);
    assert_string_equal(left.left_out, "device");
    assert_true(left.n_parts >= 7);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < left.n_parts; i++) {
        assert_false(left.parts[i].is_kind);
        rows += left.parts[i].rows;
        print_message("%s left out: %.1f %%\n", left.parts[i].name,
                      100 * left.parts[i].mape);
    }
    assert_int_equal(rows, left.n_rows - left.skipped);
    for (uint32_t i = 0; i < all.n_rows; i++) {
        const sc_valid_row *r = &left.rows[i];
        assert_string_equal(r->id, all.rows[i].id);
        assert_true((r->reason == NULL) == (all.rows[i].reason == NULL));
        if (r->reason) continue;
        assert_true(r->predicted > 0 && r->low < r->predicted);
        assert_true(r->predicted < r->high);
    }
    assert_int_equal(
        sc_validate_leave_out(&t, 1, "colour", &o, &arena, &left, &err),
        SC_EUSAGE);
    o.anchors = 1;
    sc_err_init(&err);
    assert_int_equal(
        sc_validate_leave_out(&t, 1, "family", &o, &arena, &left, &err),
        SC_EUSAGE);
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
        TEST(before_any_fit),
        TEST(calibrated_on_half),
        TEST(published_elsewhere),
        TEST(leaves_out_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
