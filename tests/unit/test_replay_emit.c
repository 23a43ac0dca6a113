/* SPDX-License-Identifier: Apache-2.0 */
/* A replay as a workload: every rank has its host work and its kernels, what waited
 * for a launch waits for the work before it, and collectives have their sizes. */
#include "tiny_workload.h"
#include "trace/trace.h"
#include "written_trace.h"

static const sc_replay_model *example(uint32_t n)
{
    const sc_profiled *m[2];
    sc_text said;
    sc_text_init(&said);
    for (uint32_t k = 0; k < n; k++) {
        sc_profiled *x = SC_NEW(&arena, sc_profiled);
        sc_profiled_read(k ? "examples/replay/rank1.json"
                           : "examples/replay/rank0.json",
                         &arena, &said, x, &err);
        no_error();
        m[k] = x;
    }
    sc_text_free(&said);
    return prepare(m, n);
}

static sc_workload emitted(const sc_replay_model *m, const sc_replay_result *r,
                           sc_text *said)
{
    sc_workload w;
    sc_replay_workload(m, r, &arena, said, &w, &err);
    no_error();
    return w;
}

static void both_ranks(void **state)
{
    (void)state;
    sc_text said;
    sc_text_init(&said);
    const sc_replay_model *m = example(2);
    sc_replay_result r = run_with(m, NULL);
    sc_workload w = emitted(m, &r, &said);
    assert_string_equal(said.buf, "");
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
    sc_text_free(&said);
}

/* Alone, a rank's collective is known by its duration only. */
static void one_rank(void **state)
{
    (void)state;
    sc_text said;
    sc_text_init(&said);
    const sc_replay_model *m = example(1);
    sc_replay_result r = run_with(m, NULL);
    sc_workload w = emitted(m, &r, &said);
    const sc_task_list *l = &w.classes[0];
    uint32_t colls = 0;
    assert_non_null(strstr(said.buf, "1 collectives have a duration"));
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (l->kind[i] != SC_TASK_COLL) continue;
        colls++;
        assert_true(l->flags[i] & SC_TASK_NO_COMM);
        assert_true(l->duration[i] > 1000000000);
    }
    assert_int_equal(colls, 1);
    sc_text_free(&said);
}

/* Both doors give the same step: shorter by the latencies of launches that it
 * waits for, at most 1 % here; the traces have whole nanoseconds. */
static void simulated_again(void **state)
{
    (void)state;
    static const double compute[] = {1, 0.25, 4, 1}, host[] = {1, 1, 1, 40};
    const sc_replay_model *m = example(1);
    for (int i = 0; i < 4; i++) {
        sc_text said;
        sc_replay_change c;
        sc_text_init(&said);
        sc_replay_change_init(&c);
        c.factor[SC_REPLAY_COMPUTE] = compute[i];
        c.factor[SC_REPLAY_HOST] = host[i];
        sc_replay_result r = run_with(m, &c);
        tiny t;
        tiny_init(&t);
        tiny_dim(&t, SC_DIM_RING, 2, 100, 500, SC_CCL_RING);
        t.w = emitted(m, &r, &said);
        t.sys.replay_only = true;
        assert_int_equal(tiny_run(&t), SC_OK);
        sc_time less = r.predicted - t.r.makespan;
        if (less < -1000 || less > r.predicted / 100)
            fail_msg("compute x %g, host x %g: %.3f instead of %.3f ms",
                     compute[i], host[i], (double)t.r.makespan / 1e9,
                     (double)r.predicted / 1e9);
        tiny_free(&t);
        sc_text_free(&said);
    }
}

static void exchange(const char *args, double at, double until, int id)
{
    event("cpu_op", "record_param_comms", 1, at, 8,
          "%s,\"dtype\":\"Float\",\"In msg nelems\":65536", args);
    call("cudaLaunchKernel", at + 1, 5, id);
    kernel("ncclDevKernel_Generic", 9, at + 10, until - at - 10, id);
}

/* Of four ranks, 0 and 1 are one stage and 2 and 3 the next: a stage reduces among
 * its ranks, then 0 sends to 2 and 1 to 3. */
static const sc_profiled *staged(int rank)
{
    char args[160];
    sc_text_free(&events);
    sc_text_init(&events);
    step(1000);
    snprintf(args, sizeof args,
             "\"Collective name\":\"allreduce\",\"Group size\":2,"
             "\"Process Group Ranks\":\"[%d, %d]\"",
             rank & 2, rank | 1);
    exchange(args, 100, 200, 1);
    snprintf(args, sizeof args,
             "\"Collective name\":\"%s\",\"Group size\":4,\"%s Rank\":%d",
             rank < 2 ? "send" : "recv", rank < 2 ? "Dst" : "Src", rank ^ 2);
    exchange(args, 300, 400, 2);
    call("cudaDeviceSynchronize", 310, 95, 3);
    snprintf(args, sizeof args,
             "\"distributedInfo\":{\"rank\":%d,\"world_size\":4},", rank);
    return read_written(args);
}

static void check_stages(const sc_workload *w)
{
    assert_int_equal(w->n_groups, 2);
    for (uint32_t k = 0; k < 4; k++) {
        const sc_task_list *l = &w->classes[w->ranks[k].cls];
        uint32_t colls = 0, messages = 0;
        for (uint32_t i = 0; i < l->n_tasks; i++) {
            bool send = l->kind[i] == SC_TASK_SEND;
            if (l->kind[i] == SC_TASK_COLL) {
                const sc_rank_group *g =
                    &w->groups[w->ranks[k].groups[l->group[i]]];
                assert_int_equal(g->n, 2);
                assert_int_equal(g->rank[0], k & 2);
                assert_int_equal(g->rank[1], k | 1);
                assert_int_equal(l->coll[i], SC_ALL_REDUCE);
                assert_int_equal(l->size[i], 4 * 65536);
                colls++;
            } else if (send || l->kind[i] == SC_TASK_RECV) {
                assert_true(send == (k < 2));
                assert_int_equal(w->ranks[k].peers[l->peer[i]], k ^ 2);
                assert_int_equal(l->size[i], 4 * 65536);
                messages++;
            }
        }
        assert_int_equal(colls, 1);
        assert_int_equal(messages, 1);
    }
}

/* Groups and messages keep their members, and the files say the same. */
static void groups_and_messages(void **state)
{
    (void)state;
    const sc_profiled *m[4];
    sc_workload back;
    sc_text lines;
    sc_text_init(&lines);
    for (int k = 0; k < 4; k++) m[k] = staged(k);
    const sc_replay_model *x = prepare(m, 4);
    sc_replay_result r = run_with(x, NULL);
    sc_workload w = emitted(x, &r, &lines);
    assert_string_equal(lines.buf, "");
    check_stages(&w);
    char folder[] = "/tmp/stepcast-emit-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *prefix = sc_sprintf(&arena, "%s/job", folder);
    sc_trace_write(&w, prefix, &err);
    no_error();
    sc_trace_opts o = {.n_groups = w.n_groups, .groups = w.groups};
    sc_trace_read(prefix, 4, &o, &arena, &back, &err);
    no_error();
    check_stages(&back);
    archive_remove(folder);
    sc_text_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(both_ranks), TEST(one_rank),
                                       TEST(simulated_again),
                                       TEST(groups_and_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
