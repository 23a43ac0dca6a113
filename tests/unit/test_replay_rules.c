/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a replay on small traces: what waits for what, and what can only be
 * repeated. */
#include "written_trace.h"

/* The predicted step in microseconds, with kernels `factor` times as long. */
static double run(double factor)
{
    sc_replay_change c;
    sc_replay_change_init(&c);
    c.factor[SC_REPLAY_COMPUTE] = factor;
    return (double)run_with(written(""), &c).rank[0].step[0].predicted / 1e6;
}

/* A wait of the host ends with the kernel, whatever it was recorded as. */
static void host_waits(void **state)
{
    (void)state;
    step(200);
    call("cudaLaunchKernel", 10, 5, 1);
    kernel("gemm", 7, 20, 100, 1);
    call("cudaDeviceSynchronize", 30, 93, 2);
    assert_true(run(1) == 200);
    assert_true(run(2) == 300);
    assert_true(run(0) == 200 - 93 + 3); /* the call itself takes 3 */
    assert_string_equal(notes.buf, "");
}

/* A stream that takes over waits for the one before. */
static void streams_wait(void **state)
{
    (void)state;
    step(400);
    call("cudaLaunchKernel", 10, 5, 1);
    kernel("gemm", 7, 20, 100, 1);
    call("cudaEventRecord", 20, 1, 2);
    call("cudaStreamWaitEvent", 25, 1, 3);
    call("cudaLaunchKernel", 30, 5, 4);
    kernel("reduce", 20, 121, 50, 4);
    call("cudaStreamSynchronize", 40, 133, 5);
    assert_true(run(1) == 400);
    assert_true(run(2) == 550);
}

/* A call inside another one comes before its return. */
static void nested_calls(void **state)
{
    (void)state;
    step(300);
    call("cudaMemcpy", 10, 200, 1);
    call("cuLaunchKernel", 20, 5, 2);
    kernel("fill", 7, 30, 100, 2);
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 7, 131, 70,
          "\"device\":0,\"stream\":7,\"correlation\":1,\"bytes\":64");
    assert_true(run(1) == 300);
    assert_true(run(2) == 400);
    assert_string_equal(notes.buf, "");
}

/* A first kernel that waits for what the trace does not have. */
static void work_from_before(void **state)
{
    (void)state;
    step(900);
    call("cudaLaunchKernel", 10, 5, 1);
    kernel("late", 7, 700, 10, 1);
    call("cudaLaunchKernel", 720, 5, 2);
    kernel("next", 7, 728, 10, 2);
    call("cudaLaunchKernel", 750, 5, 3);
    kernel("next", 7, 758, 10, 3);
    call("cudaDeviceSynchronize", 780, 5, 4);
    assert_true(run(1) == 900);
    assert_non_null(strstr(notes.buf, "work from before the trace"));
}

/* A synchronizing call without anything to wait for is repeated, and said. */
static void unexplained_wait(void **state)
{
    (void)state;
    step(500);
    call("cudaStreamSynchronize", 10, 400, 1);
    assert_true(run(1) == 500);
    assert_non_null(strstr(notes.buf, "for nothing that the trace has"));
}

/* Jobs that a unit runs at once are no queue. */
static void overlapping_lane(void **state)
{
    (void)state;
    step(300);
    call("cudaLaunchKernel", 10, 2, 1);
    call("cudaLaunchKernel", 14, 2, 2);
    kernel("a", 7, 20, 200, 1);
    kernel("b", 7, 24, 200, 2);
    call("cudaDeviceSynchronize", 30, 200, 3);
    assert_true(run(1) == 300);
    assert_true(run(2) == 500);
}

/* A launch returns only if the queue has room. */
static void queue(void **state)
{
    enum { LAUNCHES = 1200, QUEUE = 1022 };

    (void)state;
    step(60000);
    for (int i = 0; i < LAUNCHES; i++) {
        /* from the 1,023rd on, when the one 1,022 before has ended */
        double free = 10 + 40 * (i - QUEUE + 1);
        double at = i < QUEUE ? 4 * i : 40 * (i - QUEUE) + 4 * (double)QUEUE;
        if (at + 3 < free) at = free - 2;
        call("cudaLaunchKernel", at, 3, i + 1);
        kernel("k", 7, 10 + 40 * i, 40, i + 1);
    }
    double once = run(1), twice = run(2);
    assert_true(once > 59990 && once < 60010);
    /* the host is behind 178 kernels that take twice as long */
    assert_true(twice > once + 3000);
}

/* A kernel that starts before its launch would wait for itself. */
static void contradiction(void **state)
{
    (void)state;
    step(500);
    call("cudaLaunchKernel", 10, 5, 1);
    kernel("early", 7, 20, 50, 3);
    kernel("late", 7, 130, 100, 1);
    call("cudaStreamSynchronize", 200, 35, 2);
    call("cudaLaunchKernel", 300, 5, 3);
    double once = run(1);
    assert_true(once > 400 && once < 600);
    assert_non_null(strstr(notes.buf, "contradict each other: waits for"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(host_waits),
                                       TEST(streams_wait),
                                       TEST(nested_calls),
                                       TEST(work_from_before),
                                       TEST(unexplained_wait),
                                       TEST(overlapping_lane),
                                       TEST(queue),
                                       TEST(contradiction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
