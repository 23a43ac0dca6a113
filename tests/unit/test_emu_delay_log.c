/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of OSU, IMB, NetPIPE and nccl-tests as tables of times. */
#include "emu/delay_file.h"
#include "emu_delay.h"

#include <math.h>

static delay_row *row;
static uint32_t n_rows;

static sc_status read_log(const char *text, uint32_t ranks)
{
    assert_true(delay_log_is(text, strlen(text)));
    return delay_log_read(text, strlen(text), "x.log", ranks, &arena, &row,
                          &n_rows, &err);
}

/* The k-th row. */
static void is(uint32_t k, sc_coll op, uint32_t ranks, double bytes, double us)
{
    assert_true(k < n_rows);
    assert_int_equal(row[k].op, op);
    assert_int_equal(row[k].ranks, ranks);
    assert_true(row[k].bytes == bytes);
    if (fabs(row[k].time * 1e6 - us) > 1e-9 * us)
        fail_msg("%g us != %g us", row[k].time * 1e6, us);
}

/* ---- OSU ------------------------------------------------------------------- */

/* Bytes as nccl-tests counts them: of all ranks together. */
static void osu(void **state)
{
    (void)state;
    const char *const text =
        "mpirun: warning, 1 interface is down\n"
        "\n# OSU MPI Allreduce Latency Test v5.3\n"
        "# Size         Avg Latency(us)\n"
        "4                       539.65\n"
        "8                       177.62\n"
        "\n# OSU MPI Allgather Latency Test v5.3\n"
        "# Size         Avg Latency(us)\n"
        "1                        83.22\n"
        "# ranks: 16\n"
        "# OSU MPI-CUDA All-to-All Personalized Exchange Latency Test v7.3\n"
        "# Datatype: MPI_CHAR.\n"
        "# Size       Avg Latency(us)   Min Latency(us)  Max Latency(us)  "
        "Iterations\n"
        "[1,0]<stdout>:10        5.5   5.1   6.0  100\n"
        "\n# OSU MPI Barrier Latency Test v5.3\n"
        "# Avg Latency(us)\n"
        "         11422.30\n"
        "# OSU MPI Reduce_scatter Latency Test v5.3\n# Size Avg Latency(us)\n"
        "64 3\n"
        "# OSU MPI Broadcast Latency Test v5.3\n# Size Avg Latency(us)\n64 4\n"
        "# OSU MPI Reduce Latency Test v5.3\n# Size Avg Latency(us)\n64 5\n"
        "# OSU MPI Gather Latency Test v5.3\n# Size Avg Latency(us)\n64 6\n"
        "# OSU MPI Scatter Latency Test v5.3\n# Size Avg Latency(us)\n64 7\n"
        "# OSU MPI Latency Test v5.3\n# Size          Latency (us)\n"
        "0                      12.98\n";
    assert_int_equal(read_log(text, 8), SC_OK);
    assert_int_equal(n_rows, 11);
    is(0, SC_ALL_REDUCE, 8, 4, 539.65);
    is(2, SC_ALL_GATHER, 8, 8, 83.22);
    is(3, SC_ALL_TO_ALL, 16, 160, 5.5);
    is(4, SC_BARRIER, 16, 0, 11422.3);
    is(5, SC_REDUCE_SCATTER, 16, 64, 3);
    is(6, SC_BROADCAST, 16, 64, 4);
    is(7, SC_REDUCE, 16, 64, 5);
    is(8, SC_GATHER, 16, 1024, 6);
    is(9, SC_SCATTER, 16, 1024, 7);
    is(10, SC_SEND, 2, 0, 12.98);
}

/* ---- IMB ------------------------------------------------------------------- */

static void imb(void **state)
{
    (void)state;
    const char *const text =
        "#----------------------------------------------------------------\n"
        "#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n"
        "# Benchmarking PingPong \n"
        "# #processes = 2 \n"
        "# ( 2 additional processes waiting in MPI_Barrier)\n"
        "#----------------------------------------------------------------\n"
        "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
        "            0         1000         0.94         0.00\n"
        "            1         1000         0.95         1.05\n"
        "# Benchmarking Exchange \n# #processes = 4 \n"
        " #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec\n"
        "            1         1000         9.95   9  9  1.05\n"
        "# Benchmarking Allgather \n"
        "# #processes = 4 \n"
        " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
        "            0         1000         0.05         0.05         0.05\n"
        "          512         1000         2.00         4.00         3.00\n"
        "      4194304   time-out.; Time limit (secs_per_sample) is over\n"
        "# Benchmarking Reduce_scatter_block \n# #processes = 4 \n"
        " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
        "          512         1000         2.00         4.00         3.50\n"
        "# Benchmarking Barrier \n# #processes = 4 \n"
        " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
        "         1000         1.00         1.20         1.10\n"
        "# All processes entering MPI_Finalize\n";
    assert_int_equal(read_log(text, 0), SC_OK);
    assert_int_equal(n_rows, 5);
    is(0, SC_SEND, 2, 0, 0.94);
    is(1, SC_SEND, 2, 1, 0.95);
    is(2, SC_ALL_GATHER, 4, 2048, 3);
    is(3, SC_REDUCE_SCATTER, 4, 2048, 3.5);
    is(4, SC_BARRIER, 4, 0, 1.1);
}

/* ---- NetPIPE and nccl-tests ------------------------------------------------ */

static void netpipe(void **state)
{
    (void)state;
    assert_int_equal(read_log("0: vm\nNow starting the main loop\n"
                              "  0:       1 bytes     20 times -->      8.05 "
                              "Mbps in       0.95 usec\n"
                              " 10:      48 bytes     20 times -->    357.21 "
                              "Mbps in       1.03 usec\n",
                              0),
                     SC_OK);
    assert_int_equal(n_rows, 2);
    is(0, SC_SEND, 2, 1, 0.95);
    is(1, SC_SEND, 2, 48, 1.03);
    assert_int_equal(read_log("       1 8.050314   0.00000095\n"
                              " 1048576 10152.242956   0.00078800\n",
                              0),
                     SC_OK);
    assert_int_equal(n_rows, 2);
    is(0, SC_SEND, 2, 1, 0.95);
    is(1, SC_SEND, 2, 1048576, 788);
}

#define NCCL                                                             \
    "# Collective test starting: all_gather_perf\n# nThread 1 nGpus 1\n" \
    "#  Rank  0 Pid  71 on a device  0 [0x07] NVIDIA H100 80GB HBM3\n"   \
    "#  Rank  1 Pid  72 on b device  1 [0x0b] NVIDIA H100 80GB HBM3\n"   \
    "#  size count type time algbw busbw error time algbw busbw error\n" \
    " 1048576 262144 float 50.0 20.97 10.48 0e+00 49.0 21.40 10.70 0e+00\n"

static void one_after_the_other(void **state)
{
    (void)state;
    assert_int_equal(read_log(NCCL "# OSU MPI Allreduce Latency Test v5.3\n"
                                   "# Size         Avg Latency(us)\n"
                                   "4                       539.65\n"
                                   "  64  542.516556  0.00000090\n",
                              16),
                     SC_OK);
    assert_int_equal(n_rows, 3);
    is(0, SC_ALL_REDUCE, 16, 4, 539.65);
    is(1, SC_SEND, 2, 64, 0.9);
    is(2, SC_ALL_GATHER, 2, 1048576, 50);
}

/* A table may say where its times are from. */
static void tables_are_no_logs(void **state)
{
    (void)state;
    const char *const table = "# OSU MPI Allreduce Latency Test v5.3\n"
                              "op,ranks,bytes,time_us\nall_reduce,2,8,20\n";
    delay_file file;
    assert_false(delay_log_is(table, strlen(table)));
    assert_false(delay_log_is("", 0));
    assert_int_equal(
        delay_table_read(table, strlen(table), "t.csv", 0, &arena, &file, &err),
        SC_OK);
    assert_int_equal(
        delay_table_read(table, strlen(table), "t.csv", 4, &arena, &file, &err),
        SC_EINPUT);
    assert_string_equal(err.d[0].msg, "a table has a column 'ranks'");
}

/* ---- what is wrong --------------------------------------------------------- */

static void wrong(const char *text, const char *want)
{
    char all[2000] = "";
    size_t at = 0;
    assert_int_equal(read_log(text, 0), SC_EINPUT);
    for (uint32_t i = 0; i < err.n; i++) {
        at += sc_diag_format(&err.d[i], all + at, sizeof all - at);
        at += (size_t)snprintf(all + at, sizeof all - at, "\n");
    }
    assert_string_equal(all, want);
    sc_err_init(&err);
}

static void wrong_logs(void **state)
{
    (void)state;
    wrong("\n# OSU MPI Allreduce Latency Test v5.3\n# Size Avg Latency(us)\n"
          "4 5\n8 6\n",
          "x.log:2:3: error: the log does not name the number of ranks; write "
          "table:FILE,ranks=16, or a line '# ranks: 16' above it\n");
    wrong("# OSU MPI Bandwidth Test v5.3\n# Size Bandwidth (MB/s)\n1 2.0\n"
          "# OSU MPI Non-blocking Allgather Latency Test v5.3\n"
          "# OSU MPI Gatherv Latency Test v5.3\n",
          "x.log:1:3: error: 'OSU MPI Bandwidth Test' does not give the time "
          "of an operation; it has many messages in flight; osu_latency "
          "measures the time of one\nx.log:4:3: error: 'OSU MPI Non-blocking "
          "Allgather Latency Test' does not give the time of an operation; it "
          "measures overlap; use the test of the blocking "
          "operation\nx.log:5:3: error: 'OSU MPI Gatherv Latency Test' does "
          "not give the time of an operation; the tests are osu_allreduce "
          "osu_allgather osu_reduce_scatter osu_alltoall osu_bcast osu_reduce "
          "osu_gather osu_scatter osu_barrier osu_latency\n");
    wrong("# ranks: 1\n# ranks = 4\n# OSU MPI Bcast Test\n",
          "x.log:1:10: error: 1 ranks; write '# ranks: 16'\nx.log:3:3: error: "
          "'OSU MPI Bcast Test' does not give the time of an operation; the "
          "tests are osu_allreduce osu_allgather osu_reduce_scatter "
          "osu_alltoall osu_bcast osu_reduce osu_gather osu_scatter "
          "osu_barrier osu_latency\n");
    wrong("# OSU MPI Latency Test v5.3\n# Size Latency (us)\n"
          "4 fast\n4.5 1\n4 -1\n 8\n",
          "x.log:3:3: error: 'fast' is not a number\nx.log:4:1: error: '4.5' "
          "is not a whole number\nx.log:5:3: error: '-1' is out of "
          "range\nx.log:6:2: error: the row has 1 of 2 columns\n");
    wrong("# OSU MPI Latency Test v5.3\n# Size Latency (us)\n8",
          "x.log:3:1: error: the row has 1 of 2 columns; the log ends inside "
          "the row: remove the row\n");
    wrong("# Benchmarking Bcast\n# #processes = 4\n 1 1000 1 1 1\n"
          "#bytes #repetitions t_min[usec]\n",
          "x.log:3:2: error: a row of numbers comes before the names of its "
          "columns; keep the log's headers\nx.log:4:1: error: there is no "
          "column t_avg[usec] or t[usec]\n");
    wrong("# Benchmarking Sendrecv\n",
          "x.log: error: the log has no time of an operation; did the job "
          "start?\n");
    wrong("  0: 1 B 20 times --> 8.05 Mbps in 0.95 usecs\n",
          "x.log:1:6: error: the line has no bytes or no usec; NetPIPE 3 "
          "prints: 0: 1 bytes 100 times --> 2.3 Mbps in 3.2 usec\n");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(osu),
        TEST(imb),
        TEST(netpipe),
        TEST(one_after_the_other),
        TEST(tables_are_no_logs),
        TEST(wrong_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
