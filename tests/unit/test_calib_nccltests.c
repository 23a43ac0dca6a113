/* SPDX-License-Identifier: Apache-2.0 */
/* test_calib_nccltests.c - logs of nccl-tests, and the profile fitted on
 * them. */
#include "calib/calib_nccltests.h"
#include "findings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HEAD                                                                 \
    "#\n#                                                              "     \
    "out-of-place                       in-place          \n"                \
    "#       size         count      type   redop    root     time   algbw " \
    "  busbw #wrong     time   algbw   busbw #wrong\n"                       \
    "#        (B)    (elements)                               (us)  (GB/s) " \
    " (GB/s)            (us)  (GB/s)  (GB/s)       \n"
#define NTHREAD                                                           \
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) " \
    "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n"  \
    "# Using devices\n"
#define PAIR                                                                   \
    "#  Rank  0 Group  0 Pid  71 on node-a device  0 [0x07] NVIDIA H100 80GB " \
    "HBM3\n"                                                                   \
    "#  Rank  1 Group  0 Pid  72 on node-a device  1 [0x0b] NVIDIA H100 80GB " \
    "HBM3\n"
#define ROW_A                                                               \
    "     1048576  262144  float  sum  -1   50.0   20.97  20.97  0  49.0  " \
    "21.40  21.40  0\n"
#define TEST "# Collective test starting: all_reduce_perf\n" NTHREAD PAIR HEAD

typedef struct reading {
    sc_arena a;
    sc_err err;
    sc_nccl_log log;
    sc_status status;
} reading;

static void read_as(reading *r, const char *file, const char *text,
                    const sc_nccl_opts *o)
{
    sc_arena_init(&r->a, 0);
    sc_err_init(&r->err);
    memset(&r->log, 0, sizeof r->log);
    r->status = sc_nccl_tests_read(text, strlen(text), file, o, &r->a, &r->log,
                                   &r->err);
}

static void good(reading *r, const char *file, const char *text)
{
    read_as(r, file, text, NULL);
    none_found(&r->err, text);
}

static void devices(char *buf, size_t size, int nodes, int per)
{
    for (int i = 0; i < nodes * per; i++) {
        size_t n = strlen(buf);
        snprintf(buf + n, size - n,
                 "[1,0]<stdout>:#  Rank %2d Group  0 Pid %6d on      gpu%03d "
                 "device %2d [0000:%02x:00] NVIDIA H100 80GB HBM3\n",
                 i, 1000 + i, i / per, i % per, i);
    }
}

static void row(char *buf, size_t size, const char *label, const char *op,
                double bytes, double us, double factor)
{
    size_t n = strlen(buf);
    double bw = bytes / us * 1e-3;
    snprintf(buf + n, size - n,
             "%s%12.0f  %12.0f  %8s  %6s  %6d  %7.1f  %6.2f  %6.2f  %6d  %7.1f "
             " %6.2f  %6.2f    N/A\n",
             label, bytes, bytes / 4, "float", op, -1, us, bw, bw * factor, 0,
             us * 1.01, bw / 1.01, bw / 1.01 * factor);
}

static void test_text(void **state)
{
    (void)state;
    static char log[20000];
    log[0] = '\0';
    strcat(log, "srun: job 12 queued and waiting for resources\n"
                "[node:1] PMIX ERROR: something in file x.c at line 3\n"
                "# nccl-tests version 2.17.6 nccl-headers=22807\n"
                "# Collective test starting: all_reduce_perf\n" NTHREAD);
    devices(log, sizeof log, 2, 8);
    strcat(log, "gpu000:17:17 [0] NCCL INFO Bootstrap : Using eth0\n" HEAD);
    row(log, sizeof log, "[1,0]<stdout>:", "sum", 0, 30, 1);
    row(log, sizeof log, "[1,0]<stdout>:", "sum", 1024, 30, 1.875);
    row(log, sizeof log, "", "sum", 1048576, 100, 1.875);
    strcat(log, "     2097152 524288 float sum gpu000:17:18 [0] NCCL INFO x\n");
    row(log, sizeof log, "0: ", "sum", 1073741824, 4000, 1.875);
    strcat(log, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100\n"
                "# Collective test concluded: all_reduce_perf\n"
                "# Collective test starting: all_gather_perf\n" NTHREAD);
    devices(log, sizeof log, 2, 8);
    strcat(log, HEAD);
    row(log, sizeof log, "", "none", 1073741824, 3000, 0.9375);
    strcat(log, "  2147483648  536870912  float  none  -1  6000"); /* killed */
    reading r;
    good(&r, "nccl.log", log);
    assert_int_equal(r.log.n_tables, 2);
    assert_int_equal(r.log.n_rows, 4);
    assert_int_equal(r.log.n_skipped, 2);  /* no bytes; torn */
    assert_int_equal(r.log.n_warnings, 2); /* torn; not complete */
    const sc_nccl_row *a = &r.log.rows[2], *g = &r.log.rows[3];
    assert_int_equal(a->coll, SC_ALL_REDUCE);
    assert_int_equal(a->ranks, 16);
    assert_int_equal(a->nodes, 2);
    assert_string_equal(a->device, "NVIDIA H100 80GB HBM3");
    assert_float_equal(a->bytes, 1073741824, 0);
    assert_float_equal(a->time_s, 4e-3, 1e-12);
    assert_float_equal(a->in_place_s, 4.04e-3, 1e-12);
    assert_float_equal(a->algbw, 268.44e9, 1);
    assert_int_equal(g->coll, SC_ALL_GATHER);
    assert_int_equal(g->table, 1);
    assert_true(g->pos.line > a->pos.line);
    sc_arena_free(&r.a);
}

/* Which collective it was, from wherever it can be known. */
static void test_collective(void **state)
{
    (void)state;
    static const char unnamed[] = NTHREAD PAIR HEAD;
    static char log[8000];
    reading r;
    log[0] = '\0';
    strcat(log, NTHREAD);
    devices(log, sizeof log, 1, 8);
    strcat(log, HEAD);
    size_t head = strlen(log);
    row(log, sizeof log, "", "sum", 1e9, 5000, 1.75);
    good(&r, "x", log); /* only an all-reduce has these columns */
    assert_int_equal(r.log.rows[0].coll, SC_ALL_REDUCE);
    assert_int_equal(r.log.rows[0].nodes, 1);
    sc_arena_free(&r.a);
    log[head] = '\0';
    row(log, sizeof log, "", "none", 1e9, 5000, 0.875);
    read_as(&r, "x", log, NULL);
    assert_int_equal(r.status, SC_EINPUT);
    sc_arena_free(&r.a);
    good(&r, "dir/2024-all-to-all.log", log); /* of the file's name */
    assert_int_equal(r.log.rows[0].coll, SC_ALL_TO_ALL);
    sc_arena_free(&r.a);
    sc_nccl_opts o = {.coll = SC_ALL_GATHER};
    read_as(&r, "x", log, &o);
    assert_int_equal(r.log.rows[0].coll, SC_ALL_GATHER);
    sc_arena_free(&r.a);
    static char command[9000];
    snprintf(command, sizeof command,
             "$ mpirun -np 8 ./build/all_gather_perf -b 8 -e 1G\n%s", log);
    good(&r, "x", command); /* of the command line */
    assert_int_equal(r.log.rows[0].coll, SC_ALL_GATHER);
    sc_arena_free(&r.a);
    assert_true(sizeof unnamed > 1);
}

/* Columns of other versions: no root, "error" instead of "#wrong"; times of
 * each iteration. */
static void test_columns(void **state)
{
    (void)state;
    reading r;
    good(&r, "all_reduce.log",
         "# nThread: 1 nGpus: 2\n# Using devices\n"
         "#   Rank  0 Pid 5 on host device  0 [0x3d] Tesla V100-SXM2-32GB\n"
         "#   Rank  1 Pid 5 on host device  1 [0x3e] Tesla V100-SXM2-32GB\n"
         "#  size  count  type  redop  time  algbw  busbw  error  time  algbw "
         " busbw  error\n"
         "1048576 262144 float sum 50.0 20.97 20.97 2e-07 51.0 20.56 20.56 "
         "0e+00\n");
    assert_int_equal(r.log.n_rows, 1);
    assert_float_equal(r.log.rows[0].time_s, 50e-6, 1e-12);
    assert_float_equal(r.log.rows[0].in_place_s, 51e-6, 1e-12);
    sc_arena_free(&r.a);
    good(&r, "x",
         "# Collective test starting: all_reduce_perf\n" NTHREAD PAIR
         "# size count type redop root time algbw busbw #wrong i_min i_max "
         "i_p99 i_cv% time algbw busbw #wrong i_min i_max i_p99 i_cv% "
         "timestamp\n"
         "1048576 262144 float sum -1 50.0 20.97 20.97 0 1 2 3 4 52.0 20.16 "
         "20.16 0 1 2 3 4 2025-01-01 10:00:00\n");
    assert_float_equal(r.log.rows[0].time_s, 50e-6, 1e-12);
    assert_float_equal(r.log.rows[0].in_place_s, 52e-6, 1e-12);
    assert_float_equal(r.log.rows[0].busbw, 20.97e9, 1);
    sc_arena_free(&r.a);
}

#define JSON_DEVICE(rank, host)                                 \
    "{\"rank\": " #rank ", \"group\": 0, \"hostname\": \"" host \
    "\", \"device\": 0, \"device_info\": \"NVIDIA H100 80GB HBM3\"}"
#define JSON_HEAD                                                          \
    "{\"version\": 2,\n\"args\": [\"./build/all_reduce_perf\", \"-b\"],\n" \
    "\"env\": [\"A=1\"],\n\"config\": {\"nthreads\": 1,\n\"devices\": "    \
    "[" JSON_DEVICE(0, "a") ", " JSON_DEVICE(1, "b") "]},\n"
#define JSON_HALF \
    "{\"time\": 50.0, \"alg_bw\": 20.97, \"bus_bw\": 20.97, \"nwrong\": null}"

static void test_json(void **state)
{
    (void)state;
    reading r;
    good(&r, "x",
         JSON_HEAD
         "\"results\": [{\"size\": 1048576, \"count\": 262144, \"type\": "
         "\"float\", \"redop\": \"sum\", \"root\": \"    -1\", "
         "\"out_of_place\": " JSON_HALF ", \"in_place\": {\"cpu_time\": 60.0, "
         "\"alg_bw\": 17.5, \"bus_bw\": 17.5, \"nwrong\": 0.0}},\n"
         "{\"size\": 1048576, \"type\": \"float\", \"redop\": \"sum\", "
         "\"root\": \"-1\", \"out_of_place\": null, \"in_place\": " JSON_HALF
         "}],\n\"average_bus_bandwidth\": {\"bandwidth\": 20.0}}\n");
    assert_int_equal(r.log.n_rows, 2);
    assert_int_equal(r.log.rows[0].coll, SC_ALL_REDUCE);
    assert_int_equal(r.log.rows[0].ranks, 2);
    assert_int_equal(r.log.rows[0].nodes, 2);
    assert_float_equal(r.log.rows[0].time_s, 50e-6, 1e-12);
    /* of the bandwidth: 60 us are what the CPU took */
    assert_true(fabs(r.log.rows[0].in_place_s - 1048576 / 17.5e9) < 1e-12);
    assert_float_equal(r.log.rows[1].time_s, 50e-6, 1e-12);
    assert_int_equal(r.log.rows[1].pos.line, 7);
    sc_arena_free(&r.a);
}

/* -C prints the time that the CPU took in the place of the collective's. */
static void test_cpu_time(void **state)
{
    (void)state;
    reading r;
    good(&r, "x",
         "# Collective test starting: all_reduce_perf\n" NTHREAD PAIR
         "# size count type redop root cputime algbw busbw #wrong cputime "
         "algbw busbw #wrong\n"
         " 4 1 float sum -1 3.1 0.00 0.00 0 3.0 0.00 0.00 0\n"
         " 1048576 262144 float sum -1 3.2 20.97 20.97 0 3.1 26.21 26.21 0\n");
    assert_int_equal(r.log.n_rows, 1);
    assert_int_equal(r.log.n_skipped, 1);
    assert_true(fabs(r.log.rows[0].time_s - 1048576 / 20.97e9) < 1e-12);
    assert_true(fabs(r.log.rows[0].in_place_s - 1048576 / 26.21e9) < 1e-12);
    sc_arena_free(&r.a);
}

static void test_errors(void **state)
{
    (void)state;

    static const struct {
        const char *text, *errors;
    } cases[] = {
        {"", "missing 0:0"},
        {"srun: error: node: task 0: Exited with exit code 1\n"
         "[n:1] PMIX ERROR: ERROR in file gds_ds12.c\n",
         "missing 0:0"},
        {TEST, "missing 0:0"},
        {ROW_A, "syntax 1:6"},
        {TEST "1048576 262144 float sum -1 50.0 20.97\nx\n", "missing 11:1"},
        {TEST "1048576 262144 float sum -1 50us 20.97 20.97 0 49 21 21 0\n",
         "type 11:29"},
        {TEST "1048576 262144 float sum -1 50 20.97 -3 0 49 x 21 0\n",
         "range 11:38, type 11:46"},
        {TEST "1048576 262144 float sum -1 1e13 20 20 0 49 21 21 0\n",
         "range 11:1"},
        {TEST "9999999999999999999 1 float sum -1 50 20 20 0 49 21 21 0\n",
         "range 11:1"},
        {TEST "1048576 262144 float sum -1 50 20.97 39.3 0 49 21 21 0\n",
         "conflict 11:1"},
        {"# Collective test starting: all_reduce_perf\n" NTHREAD HEAD ROW_A
             ROW_A,
         "missing 9:6"},
        {"# Collective test starting: all_reduce_perf\n" NTHREAD
         "#  Rank  0 Group  0 Pid 7 on a device  0 [0x07] NVIDIA H100\n"
         "#  Rank  3 Group  0 Pid 7 on a device  3 [0x08] NVIDIA H100\n" HEAD
             ROW_A,
         "missing 5:4"},
        {"# Collective test starting: all_reduce_perf\n" NTHREAD
         "#  Rank  0 Group  0 Pid 7 on a device  0 [0x07] NVIDIA H100\n"
         "#  Rank  0 Group  0 Pid 8 on b device  0 [0x07] NVIDIA H100\n" HEAD
             ROW_A,
         "conflict 5:4"},
        {"# Collective test starting: all_reduce_perf\n" NTHREAD
         "#  Rank  0 Group  0 Pid 7 on a device  0 [0x07] NVIDIA H100\n"
         "#  Rank  1 Group  0 Pid 8 on b device  0 [0x07] NVIDIA A100\n" HEAD
             ROW_A,
         "unsupported 5:4"},
        {"# Collective test starting: all_reduce_perf\n" NTHREAD
         "#  Rank  0 Group  0 Pid 7 on a device  0 [0x07] NVIDIA H100\n" HEAD
             ROW_A,
         "conflict 5:4"},
        {"# Collective test starting: gather_perf\n" NTHREAD PAIR HEAD ROW_A,
         "unsupported 11:6"},
        {NTHREAD PAIR HEAD ROW_A, "missing 10:6"},
        /* JSON */
        {"{\"results\": [", "syntax 1:14"},
        {"{\"version\": 2}", "missing 1:1"},
        {"{\"results\": []}", "missing 1:1"},
        {JSON_HEAD "\"results\": 3}", "type 6:12"},
        {JSON_HEAD "\"results\": [{\"size\": \"x\",\n\"out_of_place\": 3}]}",
         "type 6:22, type 7:17"},
        {JSON_HEAD "\"results\": [{\"size\": 8,\n\"out_of_place\": {\"time\": "
                   "-1, \"alg_bw\": 1}}]}",
         "range 7:26, missing 7:17"},
        {JSON_HEAD "\"results\": [4]}", "type 6:13"},
        {"{\"devices\": [7, {\"rank\": \"a\"}], \"results\": []}",
         "type 1:14, type 1:26, missing 1:17, missing 1:17"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        reading r;
        char got[FINDINGS];
        read_as(&r, "f", cases[i].text, NULL);
        findings(&r.err, got);
        if (r.status != SC_EINPUT || strcmp(got, cases[i].errors) != 0)
            fail_msg("case %zu: %s instead of %s", i, got, cases[i].errors);
        assert_int_equal(r.log.n_rows, 0);
        sc_arena_free(&r.a);
    }
}

/* ---- fit ------------------------------------------------------------------- */

/* A cluster whose parameters are known, measured by its own prices. */
static uint32_t measure(const sc_cost *truth, const sc_hw *hw, sc_nccl_row *out)
{
    static const struct {
        sc_coll coll;
        uint32_t ranks, nodes;
    } tests[] = {{SC_ALL_REDUCE, 32, 4}, {SC_ALL_GATHER, 32, 4}};

    uint32_t n = 0;
    for (size_t t = 0; t < SC_COUNT(tests); t++)
        for (double bytes = 65536; bytes < 9e9; bytes *= 4) {
            const uint32_t size[] = {tests[t].ranks / tests[t].nodes,
                                     tests[t].nodes};
            const uint32_t stride[] = {1, hw->node_size};
            sc_place at = sc_hw_place(hw, 2, size, stride);
            sc_coll_price p;
            at.peers = 1;
            assert_int_equal(sc_cost_coll(truth, hw, tests[t].coll, bytes, &at,
                                          -1, &p, NULL),
                             SC_OK);
            out[n] = (sc_nccl_row){.coll = tests[t].coll,
                                   .bytes = bytes,
                                   .time_s = p.seconds,
                                   .ranks = tests[t].ranks,
                                   .nodes = tests[t].nodes,
                                   .device = "NVIDIA H100 80GB HBM3",
                                   .table = (uint32_t)t,
                                   .pos = {"f", n + 2, 1}};
            n++;
        }
    return n;
}

static void test_fit(void **state)
{
    (void)state;
    sc_arena a;
    sc_err err;
    const sc_hw *hw;
    sc_cost builtin, truth, c;
    sc_nccl_row rows[64];
    sc_nccl_fit fit;
    sc_text report, yml;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_text_init(&report);
    sc_text_init(&yml);
    assert_int_equal(sc_hw_build("dgx-h100:4", sc_pos_none(), &a, &hw, &err),
                     SC_OK);
    assert_int_equal(sc_cost_builtin(&a, &builtin, &err), SC_OK);
    truth = builtin;
    int share = sc_param_find("net_fraction");
    assert_true(share >= 0);
    truth.p[share] = 0.6; /* a network that gives two thirds of the usual */
    uint32_t n = measure(&truth, hw, rows);
    c = builtin;
    assert_int_equal(
        sc_fit_nccl_tests(rows, n, hw, &c, &fit, &report, &a, &err), SC_OK);
    assert_in_range(fit.n, 1, SC_NCCL_FIT_MAX);
    assert_int_equal(fit.n_groups, 2);
    assert_true(fit.error_before > 0.2);
    assert_true(fit.error_after < 0.02);
    assert_true(fabs(c.p[share] / 0.6 - 1) < 0.1);
    assert_non_null(strstr(report.buf, "net_fraction"));
    /* the profile reads as the fitted values */
    sc_nccl_fit_write(&fit, "two tests\nof f", &yml);
    sc_cost again = builtin;
    assert_int_equal(sc_cost_read(yml.buf, yml.len, "p.yml", &a, &again, &err),
                     SC_OK);
    for (uint32_t i = 0; i < fit.n; i++)
        assert_true(fabs(again.p[fit.param[i]] / fit.value[i] - 1) < 1e-5);
    assert_non_null(strstr(yml.buf, "# of f\n"));
    sc_text_free(&report);
    sc_text_free(&yml);
    sc_arena_free(&a);
}

static void test_fit_errors(void **state)
{
    (void)state;
    sc_arena a;
    const sc_hw *hw;
    sc_cost c;
    sc_nccl_fit fit;

    static const struct {
        sc_nccl_row row;
        const char *code;
    } cases[] = {
        {{SC_ALL_REDUCE,
          1e6,
          1e-3,
          0,
          0,
          0,
          16,
          2,
          "NVIDIA A100-SXM4-80GB",
          "float",
          0,
          {"f", 3, 1}},
         "conflict"},
        {{SC_ALL_REDUCE,
          1e6,
          1e-3,
          0,
          0,
          0,
          16,
          2,
          "Some GPU",
          "float",
          0,
          {"f", 3, 1}},
         "conflict"},
        {{SC_ALL_REDUCE,
          1e6,
          1e-3,
          0,
          0,
          0,
          64,
          8,
          "",
          "float",
          0,
          {"f", 3, 1}},
         "conflict"},
        {{SC_ALL_REDUCE,
          1e6,
          1e-3,
          0,
          0,
          0,
          32,
          2,
          "",
          "float",
          0,
          {"f", 3, 1}},
         "conflict"},
    };

    sc_err err;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    assert_int_equal(sc_hw_build("dgx-h100:4", sc_pos_none(), &a, &hw, &err),
                     SC_OK);
    sc_cost_centres(&c);
    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        sc_nccl_row rows[2] = {cases[i].row, cases[i].row};
        sc_err_init(&err);
        assert_int_equal(
            sc_fit_nccl_tests(rows, 2, hw, &c, &fit, NULL, &a, &err),
            SC_EINPUT);
        assert_int_equal(err.n, 1); /* once for a table */
        assert_int_equal(err.d[0].line, 3);
        assert_string_equal(sc_code_name(err.d[0].code), cases[i].code);
    }
    sc_err_init(&err);
    assert_int_equal(sc_fit_nccl_tests(NULL, 0, hw, &c, &fit, NULL, &a, &err),
                     SC_EINPUT);
    sc_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),    cmocka_unit_test(test_collective),
        cmocka_unit_test(test_columns), cmocka_unit_test(test_cpu_time),
        cmocka_unit_test(test_json),    cmocka_unit_test(test_errors),
        cmocka_unit_test(test_fit),     cmocka_unit_test(test_fit_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
