/* SPDX-License-Identifier: Apache-2.0 */
/* Overheads of the host: T1 to T5 of operators, and a host with those of another
 * trace. */
#include "replay/replay_host.h"
#include "written_trace.h"

static void op(const char *name, double ts, double dur)
{
    event("cpu_op", name, 1, ts, dur, "\"x\":0");
}

/* `n` times an operator with two launches behind one without any; each part takes
 * `slow` times as long. */
static double loop(int n, double slow)
{
    double at = 10;
    for (int i = 0; i < n; i++) {
        op("aten::view", at, 2 * slow); /* T5 */
        at += (2 + 3) * slow;           /* T1 */
        op("aten::mm", at, 25 * slow);
        op("aten::inner", at + slow, 20 * slow); /* is part of it */
        call("cudaLaunchKernel", at + 4 * slow, 6 * slow, 2 * i + 1); /* T2 4 */
        call("cudaLaunchKernel", at + 15 * slow, 6 * slow,
             2 * i + 2); /* T5 5 */
        kernel("gemm", 7, at + 20 * slow, 1, 2 * i + 1);
        kernel("gemm", 7, at + 28 * slow, 1, 2 * i + 2);
        at += (25 + 3) * slow; /* T3 4, T1 3 */
    }
    return at;
}

static void is(const sc_host_overheads *o, sc_host_part part, const char *name,
               uint32_t n, double us)
{
    const sc_host_overhead *x = sc_host_overhead_of(o, part, name);
    assert_non_null(x);
    assert_int_equal(x->n, n);
    assert_true(x->mean > us * 1e6 * 0.999 && x->mean < us * 1e6 * 1.001);
}

static void statistics(void **state)
{
    (void)state;
    sc_host_overheads o;
    step(1000);
    loop(10, 1);
    op("aten::mm", 600, 200); /* loads a library */
    call("cudaLaunchKernel", 790, 6, 99);
    kernel("gemm", 7, 800, 1, 99);
    const sc_replay_model *m = written("");
    sc_host_overheads_of(&m, 1, &arena, &o, &err);
    no_error();
    is(&o, SC_HOST_T1, "", 20, 3); /* less one that is longer */
    is(&o, SC_HOST_T2, "aten::mm", 11, 4);
    is(&o, SC_HOST_T3, "aten::mm", 11, 4);
    is(&o, SC_HOST_T4, "cudaLaunchKernel", 21, 6);
    is(&o, SC_HOST_T5, "aten::mm", 10, 5);
    is(&o, SC_HOST_T5, "aten::view", 10, 2);
    assert_null(sc_host_overhead_of(&o, SC_HOST_T5, "aten::inner"));
    for (uint32_t i = 1; i < o.n; i++)
        assert_true(o.of[i - 1].total >= o.of[i].total);
    const sc_replay_model *twice[] = {m, m};
    sc_host_overheads_of(twice, 2, &arena, &o, &err);
    is(&o, SC_HOST_T2, "aten::mm", 22, 4);
}

/* The same program on a host that is half as fast, from the overheads of a trace on
 * it; what both do not have in common stays. */
static void other_host(void **state)
{
    (void)state;
    sc_host_overheads slow;
    sc_replay_change c;
    step(2000);
    loop(20, 2);
    const sc_replay_model *m = written("");
    sc_host_overheads_of(&m, 1, &arena, &slow, &err);
    sc_text_free(&events);
    sc_text_init(&events);
    step(1000);
    double end = loop(10, 1);
    op("aten::mm", 600, 200);
    call("cudaLaunchKernel", 790, 6, 99);
    kernel("gemm", 7, 800, 1, 99);
    m = written("");
    sc_replay_change_init(&c);
    assert_true(run_with(m, &c).predicted == 1000000000);
    c.host = &slow;
    /* the loop but its last gap, and T4 and T3 of the slow call */
    double more = end - 10 - 3 + 6 + 4;
    double seen = (double)run_with(m, &c).predicted / 1e6 - 1000;
    if (seen < more - 0.01 || seen > more + 0.01)
        fail_msg("%.3f us more instead of %.3f", seen, more);
}

/* Where operators compute, their time is no overhead. */
static void no_device(void **state)
{
    (void)state;
    sc_host_overheads o;
    sc_replay_change c;
    sc_replay_result r;
    step(1000);
    op("aten::mm", 10, 100);
    op("aten::mm", 200, 100);
    const sc_replay_model *m = written("");
    sc_host_overheads_of(&m, 1, &arena, &o, &err);
    sc_replay_change_init(&c);
    c.host = &o;
    assert_int_equal(sc_replay_run(m, &c, &arena, &r, &err), SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "compute on the host"));
    sc_err_init(&err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(statistics), TEST(other_host),
                                       TEST(no_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
