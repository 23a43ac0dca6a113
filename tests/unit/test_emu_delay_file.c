/* SPDX-License-Identifier: Apache-2.0 */
/* Files of operations' times: what they mean, and what is wrong with them. */
#include "emu/delay_file.h"
#include "emu_delay.h"

#include <math.h>

static delay_file file;

static sc_status table(const char *text)
{
    return delay_table_read(text, strlen(text), "t.csv", 0, &arena, &file,
                            &err);
}

static sc_status alpha_beta(const char *text)
{
    return delay_alpha_beta_read(text, strlen(text), "ab.yml", &arena, &file,
                                 &err);
}

static void near(double a, double b)
{
    if (fabs(a - b) > 1e-12 * fabs(b)) fail_msg("%.17g != %.17g", a, b);
}

/* Microseconds that an operation over `n` ranks takes. */
static double us(sc_coll coll, uint32_t n, double bytes)
{
    delay_fit fit;
    if (delay_file_fit(&file, coll, n, &fit, &err)) no_error();
    double alpha = delay_curve_at(&fit.rows->time, 0);
    double rest = delay_curve_at(&fit.rows->time, bytes) - alpha;
    return (alpha * fit.latency + rest * fit.work) * 1e6;
}

/* ---- tables ---------------------------------------------------------------- */

static void between_sizes(void **state)
{
    (void)state;
    assert_int_equal(table("# measured\nop,ranks,bytes,time_us\n"
                           "all_reduce,2,10000,100\n"
                           "all_reduce,2,100,20\n"
                           "# the same again: the median of three\n"
                           "all_reduce,2,100,10\n"
                           "all_reduce,2,100,90\n"
                           "all_reduce,2,20000,180\n"
                           "all_reduce,2,40000,90\n"),
                     SC_OK);
    near(us(SC_ALL_REDUCE, 2, 100), 20);
    near(us(SC_ALL_REDUCE, 2, 10000), 100);
    /* straight between logarithms */
    near(us(SC_ALL_REDUCE, 2, 1000), 20 * sqrt(5));
    /* never falls, and goes on as the last two do */
    near(us(SC_ALL_REDUCE, 2, 40000), 180);
    near(us(SC_ALL_REDUCE, 2, 80000), 180);
    /* before the first: as the first two do, in bytes, but not below 0 */
    near(us(SC_ALL_REDUCE, 2, 0), 20 - 100 * 80.0 / 9900);
    near(us(SC_ALL_REDUCE, 2, 50), 20 - 50 * 80.0 / 9900);
    assert_int_equal(table("op,ranks,bytes,time_us\nsend,2,100,1\n"
                           "send,2,200,3\nsend,2,300,4\nrecv,2,1000,7\n"),
                     SC_OK);
    near(us(SC_SEND, 2, 50), 0.5);
    near(us(SC_SEND, 2, 0), 0);
    near(us(SC_SEND, 2, 500), 6);
    /* one size: up to it the same, then in proportion */
    near(us(SC_RECV, 2, 1), 7);
    near(us(SC_RECV, 2, 3000), 21);
}

static void other_groups(void **state)
{
    (void)state;
    assert_int_equal(table("op,ranks,bytes,time_us\n"
                           "all_reduce,4,0,30\nall_reduce,4,1000,130\n"
                           "all_reduce,8,0,80\nall_reduce,8,1000,280\n"
                           "broadcast,4,0,8\nbroadcast,4,1000,108\n"),
                     SC_OK);
    near(us(SC_ALL_REDUCE, 4, 1000), 130);
    near(us(SC_ALL_REDUCE, 8, 1000), 280);
    /* the nearest below, else the smallest: latency by steps, 2 (n - 1), the
     * rest by bus factors, 2 (n - 1) / n */
    near(us(SC_ALL_REDUCE, 6, 1000), 30 * 10 / 6.0 + 100 * (5 / 6.0) / 0.75);
    near(us(SC_ALL_REDUCE, 2, 1000), 30 * 2 / 6.0 + 100 * 0.5 / 0.75);
    near(us(SC_ALL_REDUCE, 16, 0), 80 * 30 / 14.0);
    /* trees: log2 n */
    near(us(SC_BROADCAST, 64, 1000), 8 * 6 / 2.0 + 100);
}

static void other_operations(void **state)
{
    (void)state;
    assert_int_equal(table("op,ranks,bytes,time_us\n"
                           "all_reduce,4,0,30\nall_reduce,4,1000,130\n"),
                     SC_OK);
    near(us(SC_ALL_GATHER, 4, 1000), 15 + 50);
    near(us(SC_REDUCE_SCATTER, 4, 1000), 15 + 50);
    near(us(SC_SCAN, 4, 1000), 130);
    near(us(SC_BARRIER, 4, 0), 30);
    near(us(SC_BROADCAST, 4, 1000), 30 * 2 / 6.0 + 100 / 1.5);
    delay_fit fit;
    assert_int_equal(delay_file_fit(&file, SC_SEND, 2, &fit, &err), SC_EINPUT);
    assert_string_equal(err.d[0].file, "t.csv");
    assert_string_equal(
        err.d[0].msg, "the file has no time for send, which the program calls");
    assert_string_equal(err.d[0].hint, "measure send or recv as well");
}

/* ---- alpha-beta ------------------------------------------------------------ */

static void lines(void **state)
{
    (void)state;
    assert_int_equal(alpha_beta("default: {alpha: 20us, beta: 1MB/s}\n"
                                "all_reduce: {alpha: 30us, beta: 2MB/s}\n"
                                "send: {alpha: 3us, beta: 1MB/s, ranks: 2}\n"),
                     SC_OK);
    near(us(SC_ALL_REDUCE, 2, 100), 30 + 50);
    near(us(SC_ALL_REDUCE, 64, 100), 30 + 50);
    near(us(SC_ALL_GATHER, 2, 100), 20 + 100);
    near(us(SC_RECV, 2, 100), 20 + 100);
    near(us(SC_SEND, 2, 100), 3 + 100);
    assert_int_equal(
        alpha_beta("ranks: 2\nall_reduce: {alpha: 30us, beta: 2MB/s}\n"),
        SC_OK);
    near(us(SC_ALL_REDUCE, 2, 100), 30 + 50);
    near(us(SC_ALL_REDUCE, 4, 100), 90 + 75);
    near(us(SC_ALL_GATHER, 4, 100), 45 + 37.5);
    delay_fit fit;
    assert_int_equal(delay_file_fit(&file, SC_RECV, 2, &fit, &err), SC_EINPUT);
    assert_string_equal(err.d[0].hint, "add recv, send or default");
}

/* ---- CPU time -------------------------------------------------------------- */

static void cpu(void **state)
{
    (void)state;
    use_file(SC_EMU_DELAY_ALPHA_BETA,
             "default: {alpha: 20us, beta: 1GB/s}\n"
             "all_reduce: {alpha: 30us, beta: 2GB/s, cpu_alpha: 4us,"
             " cpu_beta: 1GB/s}\n");
    begin();
    emu_group *g = ranks(0, 2, 1);
    assert_int_equal(emu_delay_cpu(model_of_delay, g, SC_ALL_REDUCE, 1000),
                     5000000);
    assert_int_equal(emu_delay_cpu(model_of_delay, g, SC_ALL_GATHER, 1000), 0);
    use_file(SC_EMU_DELAY_TABLE, "op,ranks,bytes,time_us,cpu_us\n"
                                 "send,2,0,9,2\nsend,2,1000,99,12\n"
                                 "recv,2,1000,99,\n");
    begin();
    assert_int_equal(emu_delay_cpu(model_of_delay, g, SC_SEND, 500), 7000000);
    assert_int_equal(emu_delay_cpu(model_of_delay, g, SC_RECV, 500), 0);
    assert_int_equal(
        emu_delay_cpu(model_of_delay, ranks(0, 1, 1), SC_SEND, 500), 0);
    use_machine("dgx-h100:4", SC_EMU_DELAY_ANALYTIC);
    begin();
    assert_int_equal(emu_delay_cpu(model_of_delay, g, SC_ALL_REDUCE, 1000), 0);
}

/* ---- what is wrong --------------------------------------------------------- */

/* All errors, as they are printed. */
static void wrong(sc_status s, const char *want)
{
    char text[2000] = "";
    size_t at = 0;
    assert_int_equal(s, SC_EINPUT);
    for (uint32_t i = 0; i < err.n; i++) {
        at += sc_diag_format(&err.d[i], text + at, sizeof text - at);
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    assert_string_equal(text, want);
    sc_err_init(&err);
}

static void wrong_tables(void **state)
{
    (void)state;
    wrong(table("# every cell\nop,ranks,bytes,time_us,cpu_us\n"
                "allreduce,2,8,20,1\n"
                "gossip,2,8,20,1\n"
                "all_reduce,1,8,20,1\n"
                "all_reduce,2,8.5,20,1\n"
                "all_reduce,2,8,-1,1\n"
                "all_reduce,two,8,20us,-3\n"
                "all_reduce,2,8\n"),
          "t.csv:9:14: error: 3 cells in a row of a table of 5 columns; every "
          "row needs as many cells as the header\nt.csv:3:1: error: unknown "
          "operation 'allreduce'; did you mean all_reduce?\nt.csv:4:1: error: "
          "unknown operation 'gossip'; the names are those in `collectives` of "
          "--json\nt.csv:5:12: error: ranks '1' is outside [2, "
          "1e+09]\nt.csv:6:14: error: bytes '8.5' is not a whole "
          "number\nt.csv:7:16: error: time_us '-1' is outside [0, "
          "1e+12]\nt.csv:8:12: error: \"two\" is not a number; write it like "
          "0.5\nt.csv:8:18: error: \"us\" is not a unit of a number; a number "
          "without unit, or 20%\nt.csv:8:23: error: cpu_us '-3' is outside [0, "
          "1e+12]\n");
    wrong(table("op,size,time_us\n"),
          "t.csv: error: no column 'ranks'; the header is "
          "op,ranks,bytes,time_us[,cpu_us]\n"
          "t.csv: error: no column 'bytes'; the header is "
          "op,ranks,bytes,time_us[,cpu_us]\n"
          "t.csv: error: unknown column 'size'; the header is "
          "op,ranks,bytes,time_us[,cpu_us]\n");
    wrong(table("op,ranks,bytes,time_us\n# none\n"),
          "t.csv: error: the table has no row below the header\n");
    wrong(table("# nothing\n"),
          "t.csv:1:1: error: the table is empty; the first line names the "
          "columns\n");
}

static void wrong_lines(void **state)
{
    (void)state;
    wrong(alpha_beta("ranks: 1\n"
                     "allreduce: {alpha: 30us, beta: 1GB/s}\n"
                     "all_reduce: {alpha: 30, bta: 1GB/s}\n"
                     "default: {alpha: -1us, beta: 0GB/s}\n"
                     "broadcast: 5us\n"),
          "ab.yml:1:8: error: ranks is out of range: 1; ranks is from 2 to "
          "4294967295\nab.yml:2:1: error: unknown key \"allreduce\"; did you "
          "mean \"all_reduce\"?\nab.yml:3:21: error: \"30\" has no unit, a "
          "time needs one; write 30us, 30ms or 30s\nab.yml:3:25: error: "
          "unknown key \"bta\"; did you mean \"beta\"?\nab.yml:3:13: error: "
          "missing key \"beta\"; bytes per second\nab.yml:5:12: error: not a "
          "mapping; write \"key: value\" lines\nab.yml:4:18: error: alpha is "
          "out of range: -1us; alpha is from 0s to 1d\nab.yml:4:30: error: "
          "beta is out of range: 0GB/s; beta is at least 1B/s\n");
    wrong(alpha_beta("ranks: 2\n"),
          "ab.yml: error: no operation has a time; write default: {alpha: "
          "20us, beta: 1GB/s}\n");
    wrong(alpha_beta("- a\n"), "ab.yml:1:1: error: not a mapping; write \"key: "
                               "value\" lines\n");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(between_sizes), TEST(other_groups), TEST(other_operations),
        TEST(lines),         TEST(cpu),          TEST(wrong_tables),
        TEST(wrong_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
