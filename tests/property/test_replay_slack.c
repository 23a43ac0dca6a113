/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of real traces: an op that grows by its slack leaves the end
 * where it is, and by more moves it by the rest.  Kernels that take longer never
 * shorten a step, and if all take very long, the busiest stream decides.
 */
#include "traces.h"

#include <math.h>

#define OPS 40 /* that are stretched in each trace */

static sc_time rerun(const sc_replay_result *r)
{
    sc_sim_opts o;
    sc_result out;
    sc_sim_opts_init(&o);
    sc_arena_mark mark = sc_arena_save(&arena);
    assert_int_equal(sc_sim_run(r->graph, &o, &arena, &out, &err), SC_OK);
    sc_time end = out.end[r->end];
    sc_arena_restore(&arena, mark);
    return end;
}

static void stretch(const sc_replay_result *r, const sc_time *slack, sc_op i,
                    const char *name)
{
    sc_time *work = &r->graph->work[i], own = *work, more = 1234567;
    if (slack[i] == SC_TIME_MAX) {
        *work = own + 1000000000000;
        assert_true(rerun(r) == r->predicted);
        *work = own;
        return;
    }
    *work = own + slack[i];
    if (rerun(r) != r->predicted)
        fail_msg("%s: op %u grows by its slack and moves the end", name, i);
    *work = own + slack[i] + more;
    if (rerun(r) != r->predicted + more)
        fail_msg("%s: op %u grows by more than its slack, and the end moves by "
                 "another time",
                 name, i);
    *work = own;
}

static void slacks(void **state)
{
    (void)state;
    sc_csv t = trace_facts();
    uint32_t n = 0;
    uint64_t seed = 20261129;
    for (uint32_t k = 0; k <= t.n_rows; k++) {
        const char *name = "the DLRM job";
        const sc_replay_model *m;
        if (k == t.n_rows) {
            m = dlrm_job(&t);
        } else {
            name = sc_csv_get(&t, k, sc_csv_col(&t, "file"));
            const sc_profiled *x = read_trace(name);
            m = prepare(&x, 1);
        }
        sc_replay_result r = run_with(m, NULL);
        sc_time *slack;
        assert_int_equal(
            sc_result_slack(r.graph, r.run, r.end, &arena, &slack, &err),
            SC_OK);
        for (sc_op i = r.end; i != SC_NONE; i = r.run->cause[i])
            assert_true(slack[i] == 0);
        for (uint32_t i = 0; i < OPS; i++, n++)
            stretch(&r, slack, (sc_op)sc_random_below(&seed, r.n_ops), name);
    }
    printf("%u ops were stretched\n", n);
}

static void scaling(void **state)
{
    (void)state;
    static const double factor[] = {0, 1, 2, 10, 100, 1000};
    sc_csv t = trace_facts();
    for (uint32_t k = 0; k < t.n_rows; k++) {
        const char *name = sc_csv_get(&t, k, sc_csv_col(&t, "file"));
        const sc_profiled *x = read_trace(name);
        const sc_replay_model *m = prepare(&x, 1);
        sc_time last = 0;
        sc_replay_result r = run_with(m, NULL);
        for (size_t i = 0; i < SC_COUNT(factor); i++) {
            sc_replay_change c;
            sc_replay_change_init(&c);
            for (int kind = 0; kind < SC_REPLAY_HOST; kind++)
                c.factor[kind] = factor[i];
            sc_replay_result s = run_with(m, &c);
            if (s.predicted < last)
                fail_msg("%s: slower devices end sooner", name);
            last = s.predicted;
            /* one kind alone never gains more than it takes */
            if (i != 2) continue;
            sc_replay_change_init(&c);
            c.factor[SC_REPLAY_COMPUTE] = 2;
            s = run_with(m, &c);
            assert_true(s.predicted >= r.predicted);
            if (r.rank[0].facts.streams < 2)
                assert_true((double)(s.predicted - r.predicted) <=
                            1.01 * (double)r.rank[0].facts.busy_sum + 1e9);
        }
        /* the busiest stream decides */
        double limit = 1000 * (double)r.rank[0].facts.busy_sum;
        if (r.rank[0].facts.streams == 1 && limit > 20 * (double)r.predicted &&
            fabs((double)last / limit - 1) > 0.01)
            fail_msg("%s: a thousand times slower, %.4f of the busiest stream",
                     name, (double)last / limit);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(slacks), TEST(scaling)};
    if (no_traces()) return 77;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_traces();
    return failed;
}
