/* SPDX-License-Identifier: Apache-2.0 */
/* A replay as a workload: every rank has its host work and its kernels, what waited
 * for a launch waits for the work before it, and collectives have their sizes. */
#include "tiny_workload.h"
#include "traces.h"

static const sc_replay_model *example(uint32_t n)
{
    const sc_profiled *m[2];
    sc_text notes;
    sc_text_init(&notes);
    for (uint32_t k = 0; k < n; k++) {
        sc_profiled *x = SC_NEW(&arena, sc_profiled);
        sc_profiled_read(k ? "examples/replay/rank1.json"
                           : "examples/replay/rank0.json",
                         &arena, &notes, x, &err);
        no_error();
        m[k] = x;
    }
    sc_text_free(&notes);
    return prepare(m, n);
}

static sc_workload emitted(const sc_replay_model *m, const sc_replay_result *r,
                           sc_text *notes)
{
    sc_workload w;
    sc_replay_workload(m, r, &arena, notes, &w, &err);
    no_error();
    return w;
}

static void both_ranks(void **state)
{
    (void)state;
    sc_text notes;
    sc_text_init(&notes);
    const sc_replay_model *m = example(2);
    sc_replay_result r = run_with(m, NULL);
    sc_workload w = emitted(m, &r, &notes);
    assert_string_equal(notes.buf, "");
    assert_int_equal(w.n_ranks, 2);
    for (uint32_t k = 0; k < 2; k++) {
        const sc_task_list *l = &w.classes[w.ranks[k].cls];
        uint32_t colls = 0, kernels = 0, roots = 0;
        sc_time host = 0, device = 0;
        for (uint32_t i = 0; i < l->n_tasks; i++) {
            bool cpu = l->flags[i] & SC_TASK_CPU;
            roots += l->n_preds[i] == 0;
            if (l->kind[i] == SC_TASK_COLL) {
                colls++;
                assert_int_equal(l->coll[i], SC_ALL_REDUCE);
                assert_int_equal(l->size[i], 4 * 16777216);
                assert_int_equal(l->flags[i], 0);
                /* it waits for kernels, and the optimizer for it */
                assert_true(l->n_preds[i] > 0);
                assert_true(l->succ_head[i] < l->succ_head[i + 1]);
            } else if (cpu) {
                host += l->duration[i];
            } else {
                kernels++;
                device += l->duration[i];
                assert_true(l->n_preds[i] > 0);
            }
        }
        assert_int_equal(colls, 1);
        assert_int_equal(kernels, 19);
        assert_true(roots >= 1);
        assert_true(host > 0 && device > 3000000000);
    }
    sc_text_free(&notes);
}

/* Alone, a rank's collective is known by its duration only. */
static void one_rank(void **state)
{
    (void)state;
    sc_text notes;
    sc_text_init(&notes);
    const sc_replay_model *m = example(1);
    sc_replay_result r = run_with(m, NULL);
    sc_workload w = emitted(m, &r, &notes);
    const sc_task_list *l = &w.classes[0];
    uint32_t colls = 0;
    assert_non_null(strstr(notes.buf, "1 collectives have a duration"));
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (l->kind[i] != SC_TASK_COLL) continue;
        colls++;
        assert_true(l->flags[i] & SC_TASK_NO_COMM);
        assert_true(l->duration[i] > 1000000000);
    }
    assert_int_equal(colls, 1);
    sc_text_free(&notes);
}

/* Both doors give the same step: shorter by the latencies of launches that it
 * waits for, at most 1 % here; the traces have whole nanoseconds. */
static void simulated_again(void **state)
{
    (void)state;
    static const double compute[] = {1, 0.25, 4, 1}, host[] = {1, 1, 1, 40};
    const sc_replay_model *m = example(1);
    for (int i = 0; i < 4; i++) {
        sc_text notes;
        sc_replay_change c;
        sc_text_init(&notes);
        sc_replay_change_init(&c);
        c.factor[SC_REPLAY_COMPUTE] = compute[i];
        c.factor[SC_REPLAY_HOST] = host[i];
        sc_replay_result r = run_with(m, &c);
        tiny t;
        tiny_init(&t);
        tiny_dim(&t, SC_DIM_RING, 2, 100, 500, SC_CCL_RING);
        t.w = emitted(m, &r, &notes);
        t.sys.replay_only = true;
        assert_int_equal(tiny_run(&t), SC_OK);
        sc_time less = r.predicted - t.r.makespan;
        if (less < -1000 || less > r.predicted / 100)
            fail_msg("compute x %g, host x %g: %.3f instead of %.3f ms",
                     compute[i], host[i], (double)t.r.makespan / 1e9,
                     (double)r.predicted / 1e9);
        tiny_free(&t);
        sc_text_free(&notes);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(both_ranks), TEST(one_rank),
                                       TEST(simulated_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
