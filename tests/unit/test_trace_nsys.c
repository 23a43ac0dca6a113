/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Databases of Nsight Systems: what two generations of the schema say, which operators,
 * steps and waits they are, and whose.
 */
#include "traces_nsys.h"

#ifdef STEPCAST_SQLITE

/* ---- what is read -------------------------------------------------------- */

static void check_usual(void)
{
    assert_int_equal(n_read, 1);
    assert_int_equal(ranks_read->rank, -1);
    assert_string_equal(ranks_read->device, "NVIDIA H100");
    assert_string_equal(notes.buf, "");
    assert_int_equal(ranks_read->n_spans, 13);
    const sc_trace_span *k = span_of(ranks_read, SC_SPAN_KERNEL, 0);
    const sc_trace_span *c = span_of(ranks_read, SC_SPAN_CALL, 0);
    assert_string_equal(name_of(k), "void gemm<float>(float*)");
    assert_int_equal(k->dur, 20500000);
    assert_int_equal(k->start - c->start, 10000000);
    assert_int_equal(k->id, 1);
    assert_int_equal(c->id, 1);
    assert_string_equal(ranks_read->name[args_of(k)->grid], "[4, 2, 1]");
    assert_int_equal(args_of(k)->stream, 7);
    assert_true(ranks_read->lanes[k->lane].device);
    assert_int_equal(ranks_read->lanes[k->lane].tid, 7);
    assert_string_equal(name_of(c), "cudaLaunchKernel");
    assert_int_equal(ranks_read->lanes[c->lane].pid, 100);
    assert_int_equal(ranks_read->lanes[c->lane].tid, 101);
    assert_int_equal(span_of(ranks_read, SC_SPAN_COLL, 0)->detail,
                     SC_ALL_REDUCE);
    assert_int_equal(span_of(ranks_read, SC_SPAN_CALL, 2)->detail,
                     SC_CALL_COPY);
    assert_int_equal(span_of(ranks_read, SC_SPAN_CALL, 4)->detail,
                     SC_CALL_STREAM_SYNC);
    const sc_trace_span *copy = span_of(ranks_read, SC_SPAN_COPY, 0);
    assert_string_equal(name_of(copy), "Memcpy DtoH (Device -> Pageable)");
    assert_int_equal(args_of(copy)->bytes, 64);
    assert_int_equal(args_of(span_of(ranks_read, SC_SPAN_SET, 0))->bytes, 32);
    assert_int_equal(args_of(span_of(ranks_read, SC_SPAN_SYNC, 0))->stream, 7);
    assert_string_equal(name_of(span_of(ranks_read, SC_SPAN_STEP, 0)),
                        "step 4");
    const sc_trace_span *op = span_of(ranks_read, SC_SPAN_OP, 0);
    assert_string_equal(name_of(op), "aten::addmm");
    assert_string_equal(ranks_read->name[args_of(op)->dims], "[[64], [8, 64]]");
    assert_string_equal(name_of(span_of(ranks_read, SC_SPAN_MARK, 0)),
                        "forward");
}

static void older(void **state)
{
    report r;
    (void)state;
    report_open(&r, false);
    fill_usual(&r);
    reads(&r);
    check_usual();
    assert_int_equal(ranks_read->origin_ns,
                     1010000); /* the first kernel's microsecond */
}

static void newer(void **state)
{
    report r;
    (void)state;
    report_open(&r, true);
    fill_usual(&r);
    report_sql(&r, "INSERT INTO ThreadNames VALUES (%d, 20, %lld)",
               report_string(&r, "pt_autograd_0"), report_tid(100, 101));
    reads(&r);
    check_usual();
    assert_int_equal(ranks_read->origin_ns, 1000000000000 + 1010000);
    const sc_trace_span *c = span_of(ranks_read, SC_SPAN_CALL, 0);
    assert_string_equal(ranks_read->name[ranks_read->lanes[c->lane].thread],
                        "pt_autograd_0");
}

/* A registered text has a number; older versions write an empty text, too. */
static void registered_texts(void **state)
{
    (void)state;
    for (int generation = 0; generation < 2; generation++) {
        report r;
        report_open(&r, generation);
        launch(&r, 1000000, 1, "gemm");
        report_range(&r, 100, 101, 1, 2, 59, "");
        report_sql(&r, "UPDATE NVTX_EVENTS SET textId = %d",
                   report_string(&r, "aten::mm"));
        if (generation) report_sql(&r, "UPDATE NVTX_EVENTS SET text = NULL");
        reads(&r);
        assert_string_equal(name_of(span_of(ranks_read, SC_SPAN_OP, 0)),
                            "aten::mm");
    }
}

/* Whole graphs, where their kernels are not recorded. */
static void graphs(void **state)
{
    report r;
    (void)state;
    report_open(&r, true);
    report_call(&r, 100, 101, 1000, 9000, 1, "cudaGraphLaunch_v10000");
    report_sql(&r,
               "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10000, "
               "50000, 0, 1, 7, 1, %lld, 12, 13)",
               report_pid(100));
    reads(&r);
    const sc_trace_span *g = span_of(ranks_read, SC_SPAN_KERNEL, 0);
    assert_string_equal(name_of(g), "CUDA graph 12");
    assert_int_equal(g->id, 1);
    assert_int_equal(span_of(ranks_read, SC_SPAN_CALL, 0)->detail,
                     SC_CALL_GRAPH_LAUNCH);
}

static void memory(void **state)
{
    static const int rows[][4] = {/* time, bytes, kind, 1: freed */
                                  {5000, 100, 2, 0},
                                  {9000, 40, 2, 1},
                                  {7000, 30, 4, 0},
                                  {6000, 999, 1, 0}}; /* of the host */
    report r;
    (void)state;
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    for (size_t i = 0; i < SC_COUNT(rows); i++)
        report_sql(&r,
                   "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (%d, %lld, "
                   "0, %d, %d, %d)",
                   rows[i][0], report_pid(100), rows[i][1], rows[i][2],
                   rows[i][3]);
    reads(&r);
    assert_int_equal(ranks_read->n_changes, 3);
    assert_int_equal(ranks_read->change[0].total, 100);
    assert_int_equal(ranks_read->change[1].total, 130);
    assert_int_equal(ranks_read->change[2].bytes, -40);
    assert_int_equal(ranks_read->change[2].total, 90);
}

/* ---- events -------------------------------------------------------------- */

/* Three records of one event on three streams, and a wait behind the second. */
static void fill_events(report *r, int link)
{
    launch(r, 1000000, 1, "gemm");
    report_record(r, 100, 0, 20, 14, 5, 3);
    report_record(r, 100, 0, 7, 10, 5, 1);
    report_record(r, 100, 0, 9, 12, 5, 2);
    report_record(r, 100, 0, 30, 12, 6, 9);
    report_wait(r, 100, 22, 1100000, 1101000, 13, 2, 5, link);
}

static void records(void **state)
{
    report r;
    (void)state;
    report_open(&r, false);
    fill_events(&r, 0);
    reads(&r);
    const sc_trace_span *w = span_of(ranks_read, SC_SPAN_SYNC, 0);
    assert_string_equal(name_of(w), "Stream Wait Event");
    assert_int_equal(args_of(w)->record, 12); /* the last before it */
    assert_int_equal(args_of(w)->wait_stream, 9);
    assert_int_equal(args_of(w)->stream, 22);
    assert_int_equal(ranks_read->lanes[w->lane].tid, 22);
    report_open(&r, true);
    fill_events(&r, 1);
    reads(&r);
    w = span_of(ranks_read, SC_SPAN_SYNC, 0);
    assert_int_equal(args_of(w)->record, 10); /* the one it is linked to */
    assert_int_equal(args_of(w)->wait_stream, 7);
    /* without its record, a replay finds the reason in the order of calls */
    report_open(&r, true);
    fill_events(&r, 8);
    reads(&r);
    assert_int_equal(count(SC_SPAN_SYNC), 0);
}

/* ---- ranges -------------------------------------------------------------- */

static sc_trace_span_kind kind_of(const char *name)
{
    for (uint64_t i = 0; i < ranks_read->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(ranks_read, i);
        if (strcmp(name_of(s), name) == 0) return (sc_trace_span_kind)s->kind;
    }
    return SC_N_SPAN_KINDS;
}

/* Started ranges that overlap others are left out, and counted. */
static void overlaps(void **state)
{
    report r;
    (void)state;
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    report_range(&r, 100, 101, 1000, 9000, 59, "pushed");
    report_range(&r, 100, 101, 2000, 3000, 60, "inside");
    report_range(&r, 100, 101, 500, 5000, 60, "begins before");
    report_range(&r, 100, 101, 8000, 9500, 60, "ends behind");
    report_range(&r, 100, 101, 100, 99000, 60, "around");
    report_range(&r, 100, 101, 4000, 4100, 60, "elsewhere");
    report_sql(&r,
               "UPDATE NVTX_EVENTS SET endGlobalTid = %lld WHERE text = "
               "'elsewhere'",
               report_tid(100, 102));
    report_range(&r, 100, 101, 5000, 6000, 59, "open");
    report_sql(&r, "UPDATE NVTX_EVENTS SET end = NULL WHERE text = 'open'");
    report_range(&r, 100, 101, 5000, 6000, 34, "mark");
    reads(&r);
    assert_int_equal(kind_of("pushed"), SC_SPAN_MARK);
    assert_int_equal(kind_of("inside"), SC_SPAN_MARK);
    assert_int_equal(kind_of("around"), SC_SPAN_MARK);
    assert_int_equal(count(SC_SPAN_MARK), 3);
    assert_non_null(strstr(notes.buf, "3 ranges of NVTX overlap"));
    assert_non_null(strstr(notes.buf, "1 ranges of NVTX have no end"));
}

static void operators(void **state)
{
    static const struct {
        const char *text, *name, *dims;
        sc_trace_span_kind kind;
    } ranges[] = {
        {"aten::mm, op_id = 5", "aten::mm", "", SC_SPAN_OP},
        {"aten::mm", "aten::mm", "", SC_SPAN_OP},
        {"MmBackward0, seq = 5, op_id = 7, sizes = [[1, 2], []], "
         "input_op_ids = [[5, 0]]",
         "MmBackward0", "[[1, 2], []]", SC_SPAN_OP},
        {"autograd::engine::evaluate_function: MmBackward0, op_id = 6",
         "autograd::engine::evaluate_function: MmBackward0", "", SC_SPAN_OP},
        {"f(a, b), seq = 1", "f(a, b)", "", SC_SPAN_OP},
        {"f(a, seq = x)", "f(a, seq = x)", "", SC_SPAN_MARK},
        {"x, sizes = [[1, 2]", "x", "", SC_SPAN_OP},
        {"nccl:all_reduce, op_id = 5", "nccl:all_reduce", "", SC_SPAN_MARK},
        {"epoch 3", "epoch 3", "", SC_SPAN_MARK},
        {"a part: x::y", "a part: x::y", "", SC_SPAN_MARK},
        {"", "", "", SC_SPAN_MARK},
    };

    (void)state;
    for (size_t i = 0; i < SC_COUNT(ranges); i++) {
        report r;
        report_open(&r, true);
        launch(&r, 1000, 1, "gemm");
        report_range(&r, 100, 101, 1000, 9000, 59, ranges[i].text);
        reads(&r);
        const sc_trace_span *s =
            sc_trace_span_at(ranks_read, ranks_read->n_spans - 1);
        if (s->kind != ranges[i].kind ||
            strcmp(name_of(s), ranges[i].name) != 0 ||
            strcmp(ranks_read->name[args_of(s)->dims], ranges[i].dims) != 0)
            fail_msg("%s", ranges[i].text);
    }
}

static void steps(void **state)
{
    static const char *const are[] = {
        "step 1",         "Step_1",           "iteration 12",    "ITER:3",
        "train_step 4",   "global_step=7",    "training step 1", "iter7",
        "ProfilerStep#2", "step 5, op_id = 9"};
    static const char *const are_not[] = {
        "step",   "optimizer.step 1", "step 1 of 4", "steps 1", "epoch 1",
        "1 step", "stepping 3",       "step x1",     "batch 3", "trainstep"};
    (void)state;
    for (size_t i = 0; i < SC_COUNT(are) + SC_COUNT(are_not); i++) {
        bool is = i < SC_COUNT(are);
        const char *text = is ? are[i] : are_not[i - SC_COUNT(are)];
        report r;
        report_open(&r, true);
        launch(&r, 1000, 1, "gemm");
        report_range(&r, 100, 101, 1000, 9000, 59, text);
        reads(&r);
        if (count(SC_SPAN_STEP) != is) fail_msg("%s", text);
    }
}

/* Steps in steps, and of threads that make fewer calls, are annotations. */
static void only_outer_steps(void **state)
{
    report r;
    (void)state;
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    report_range(&r, 100, 102, 500, 99000, 59, "step 9");
    report_range(&r, 100, 101, 1000, 5000, 59, "iteration 1");
    report_range(&r, 100, 101, 2000, 3000, 59, "step 0");
    report_range(&r, 100, 101, 5000, 7000, 59, "iteration 2");
    reads(&r);
    assert_int_equal(count(SC_SPAN_STEP), 2);
    assert_int_equal(kind_of("iteration 2"), SC_SPAN_STEP);
    assert_int_equal(kind_of("step 0"), SC_SPAN_MARK);
    assert_int_equal(kind_of("step 9"), SC_SPAN_MARK);
}

/* ---- ranks --------------------------------------------------------------- */

/* Processes that run kernels, by their devices; numbers of calls are their own. */
static void ranks(void **state)
{
    report r;
    (void)state;
    report_open(&r, true);
    report_gpu(&r, 0, "first");
    report_gpu(&r, 1, "second");
    for (int pid = 200; pid >= 199; pid--) {
        int device = pid == 199;
        report_call(&r, pid, pid + 1, 1000, 2000, 1, "cudaLaunchKernel");
        report_kernel(&r, pid, device, 7, 3000, 4000 + pid, 1, "gemm");
    }
    report_call(&r, 50, 50, 1000, 2000, 1, "cudaGetDeviceCount"); /* launcher */
    report_copy(&r, 51, 0, 7, 1000, 2000, 2, 8); /* runs no kernel */
    reads(&r);
    assert_int_equal(n_read, 2);
    for (uint32_t i = 0; i < n_read; i++) {
        assert_int_equal(ranks_read[i].n_spans, 2);
        assert_int_equal(span_of(&ranks_read[i], SC_SPAN_KERNEL, 0)->dur,
                         i ? 1199000 : 1200000);
        assert_string_equal(ranks_read[i].device, i ? "second" : "first");
        assert_int_equal(ranks_read[i].origin_ns, ranks_read[0].origin_ns);
    }
    sc_profiled one;
    sc_err_init(&err);
    assert_int_equal(sc_profiled_read(report_path, &arena, &notes, &one, &err),
                     SC_EINPUT);
}

/* The oldest reports say of no kernel whose it is. */
static void no_process(void **state)
{
    report r;
    (void)state;
    report_open(&r, false);
    launch(&r, 1000, 1, "gemm");
    report_sql(&r, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN "
                   "globalPid");
    reads(&r);
    assert_int_equal(n_read, 1);
    assert_int_equal(ranks_read->n_spans, 2);
    assert_string_equal(notes.buf, "");
    report_open(&r, false);
    launch(&r, 1000, 1, "gemm");
    report_call(&r, 200, 201, 1000, 2000, 2, "cudaLaunchKernel");
    report_sql(&r, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN "
                   "globalPid");
    reads(&r);
    assert_non_null(strstr(notes.buf, "do not state their process"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(older),
                                       TEST(newer),
                                       TEST(registered_texts),
                                       TEST(graphs),
                                       TEST(memory),
                                       TEST(records),
                                       TEST(overlaps),
                                       TEST(operators),
                                       TEST(steps),
                                       TEST(only_outer_steps),
                                       TEST(ranks),
                                       TEST(no_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: stepcast was built without SQLite\n");
    return 77;
}

#endif
