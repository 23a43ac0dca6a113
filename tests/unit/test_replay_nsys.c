/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same training step as a trace of PyTorch's profiler and as a database of
 * Nsight Systems takes the same time, as it was and with changes.
 */
#include <stepcast/job.h>

#include "traces.h"
#include "traces_nsys.h"

#ifdef STEPCAST_SQLITE

typedef enum what { STEP, OP, CALL, KERNEL, COPY, SET, RECORD, WAIT } what;

/* Times are microseconds; `at` is a thread or a stream. */
typedef struct act {
    what what;
    const char *name;
    int at;
    double from, dur;
    int id, other; /* WAIT: the record's number; RECORD: the stream */
} act;

/* A forward pass on the main thread, a backward pass on autograd's with an
 * all-reduce on another stream, the optimizer, a loss that is read. */
static const act acts[] = {
    {STEP, "ProfilerStep#3", 1, 100, 900, 0, 0},
    {OP, "aten::to", 1, 105, 30, 0, 0},
    {CALL, "cudaMemcpyAsync", 1, 110, 8, 1, 0},
    {COPY, "Memcpy HtoD (Pinned -> Device)", 7, 121, 40, 1, 4096},
    {CALL, "cudaStreamSynchronize", 1, 120, 42.5, 2, 7},
    {OP, "aten::addmm", 1, 170, 20, 0, 0},
    {CALL, "cudaLaunchKernel", 1, 175, 6, 3, 0},
    {KERNEL, "ampere_sgemm_128x64_tn", 7, 185.125, 150, 3, 0},
    {OP, "aten::gelu", 1, 195, 15, 0, 0},
    {CALL, "cudaLaunchKernel", 1, 199, 5, 4, 0},
    {KERNEL, "void at::native::vectorized_elementwise_kernel<4>", 7, 336.5, 30,
     4, 0},
    {OP, "AddmmBackward0", 2, 250, 40, 0, 0},
    {CALL, "cudaLaunchKernel", 2, 258, 6, 5, 0},
    {KERNEL, "ampere_sgemm_128x64_nn", 7, 368, 160, 5, 0},
    {OP, "c10d::allreduce_", 2, 300, 40, 0, 0},
    {CALL, "cudaEventRecord", 2, 305, 2, 6, 7},
    {CALL, "cudaStreamWaitEvent", 2, 310, 2, 7, 0},
    {RECORD, "", 7, 0, 0, 6, 0},
    {WAIT, "", 20, 311, 0.5, 7, 6},
    {CALL, "cudaLaunchKernel", 2, 318, 7, 8, 0},
    {KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 20, 530,
     200, 8, 0},
    {CALL, "cudaEventRecord", 2, 330, 2, 9, 20},
    {RECORD, "", 20, 0, 0, 9, 0},
    {OP, "Optimizer.step#SGD.step", 1, 380, 100, 0, 0},
    {CALL, "cudaStreamWaitEvent", 1, 385, 2, 10, 0},
    {WAIT, "", 7, 385.5, 0.5, 10, 9},
    {CALL, "cudaMemsetAsync", 1, 400, 4, 11, 0},
    {SET, "Memset (Device)", 7, 733, 3, 11, 1024},
    {CALL, "cudaLaunchKernel", 1, 420, 5, 12, 0},
    {KERNEL, "void at::native::multi_tensor_apply_kernel<>", 7, 737, 60, 12, 0},
    {OP, "aten::item", 1, 500, 330, 0, 0},
    {CALL, "cudaDeviceSynchronize", 1, 510, 295, 13, 0},
};

/* The second rank computes longer, so the first waits for it. */
static act of_rank(const act *a, int rank)
{
    act x = *a;
    double late = rank ? 25.25 : 0;
    if (x.id == 5 && x.what == KERNEL) x.dur += late;
    if (x.id >= 8 && x.what >= KERNEL && x.what <= SET) x.from += late;
    if (!rank && x.id == 8 && x.what == KERNEL) x.dur += 25.25;
    if (!rank && x.id > 8 && x.what >= KERNEL && x.what <= SET) x.from += 25.25;
    if (x.id == 13) x.dur += 25.25;
    return x;
}

/* ---- Kineto -------------------------------------------------------------- */

static const char *const categories[] = {
    "user_annotation", "cpu_op",     "cuda_runtime", "kernel",
    "gpu_memcpy",      "gpu_memset", NULL,           "cuda_sync"};

static void add_args(sc_text *t, const act *x, int rank)
{
    sc_text_add(t, "\"x\":0");
    if (strcmp(x->name, "aten::addmm") == 0)
        sc_text_add(t, ",\"Input Dims\":[[64],[8,64]]");
    if (x->id) sc_text_add(t, ",\"correlation\":%d", x->id);
    if (x->what >= KERNEL)
        sc_text_add(t, ",\"device\":%d,\"stream\":%d", rank, x->at);
    if (x->what == COPY || x->what == SET)
        sc_text_add(t, ",\"bytes\":%d", x->other);
    if (x->what != WAIT) return;
    sc_text_add(t, ",\"wait_on_stream\":%d", x->other == 6 ? 7 : 20);
    sc_text_add(t, ",\"wait_on_cuda_event_record_corr_id\":%d", x->other);
}

static const sc_profiled *as_kineto(int rank)
{
    sc_profiled *out = SC_NEW(&arena, sc_profiled);
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t,
                "{\"distributedInfo\":{\"rank\":%d},\"baseTimeNanoseconds\":"
                "1000000000000,\"traceEvents\":[{}",
                rank);
    for (size_t i = 0; i < SC_COUNT(acts); i++) {
        act x = of_rank(&acts[i], rank);
        if (x.what == RECORD) continue;
        const char *name = x.what == WAIT ? "Stream Wait Event" : x.name;
        sc_text_add(&t,
                    ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,"
                    "\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
                    categories[x.what], name, 100 + rank, x.at, x.from, x.dur);
        add_args(&t, &x, rank);
        sc_text_add(&t, "}}");
    }
    sc_text_add(&t, "]}");
    sc_profiled_read_memory(t.buf, t.len, "t.json", &arena, &notes, out, &err);
    no_error();
    sc_text_free(&t);
    return out;
}

/* ---- Nsight Systems ------------------------------------------------------ */

static void add_range(report *r, int pid, const act *x, long long from,
                      long long to)
{
    char text[200];
    bool shaped = strcmp(x->name, "aten::addmm") == 0;
    snprintf(text, sizeof text, "%s%s%s", x->name,
             x->what == STEP ? "" : ", op_id = 5",
             shaped ? ", sizes = [[64], [8, 64]]" : "");
    report_range(r, pid, x->at, from, to, 59, text);
}

static void add_rank(report *r, int rank)
{
    int pid = 100 + rank;
    for (size_t i = 0; i < SC_COUNT(acts); i++) {
        act x = of_rank(&acts[i], rank);
        char name[100];
        long long from = (long long)(x.from * 1000);
        long long to = from + (long long)(x.dur * 1000);
        snprintf(name, sizeof name, "%s_v3020", x.name);
        switch (x.what) {
        case STEP:
        case OP: add_range(r, pid, &x, from, to); break;
        case CALL: report_call(r, pid, x.at, from, to, x.id, name); break;
        case KERNEL:
            report_kernel(r, pid, rank, x.at, from, to, x.id, x.name);
            break;
        case COPY:
            report_copy(r, pid, rank, x.at, from, to, x.id, x.other);
            break;
        case SET:
            report_set(r, pid, rank, x.at, from, to, x.id, x.other);
            break;
        case RECORD: report_record(r, pid, rank, x.at, x.id, 5, x.id); break;
        case WAIT:
            report_wait(r, pid, x.at, from, to, x.id, 2, 5, x.other);
            break;
        }
    }
}

static void as_nsys(bool newer, int ranks, const sc_profiled **out)
{
    report r;
    report_open(&r, newer);
    report_gpu(&r, 0, "NVIDIA H100");
    for (int i = ranks; i-- > 0;) add_rank(&r, i);
    reads(&r);
    assert_int_equal(n_read, ranks);
    for (int i = 0; i < ranks; i++) {
        ranks_read[i].rank = i;
        out[i] = &ranks_read[i];
    }
}

/* ---- both ---------------------------------------------------------------- */

static void changes(sc_replay_change *c, int i)
{
    sc_replay_change_init(c);
    if (i == 1) c->factor[SC_REPLAY_COMPUTE] = 2;
    if (i == 2) c->factor[SC_REPLAY_COMM] = 0.25;
    if (i == 3) c->factor[SC_REPLAY_HOST] = 3;
    if (i == 4) c->overlap = true;
    if (i == 5) c->no_sync = true;
    if (i == 6) c->fuse = true;
    if (i == 7) c->cuda_graphs = true;
}

static void compare(const sc_profiled *const *a, const sc_profiled *const *b,
                    uint32_t n_ranks)
{
    sc_replay_model *x = prepare(a, n_ranks), *y = prepare(b, n_ranks);
    for (int i = 0; i < 8; i++) {
        sc_replay_change c;
        changes(&c, i);
        sc_replay_result p = run_with(x, &c), q = run_with(y, &c);
        sc_time off = p.predicted - q.predicted;
        if (off < -1000000 || off > 1000000)
            fail_msg("change %d: %lld ps", i, (long long)off);
        if (i > 0 && i < 4) assert_true(p.predicted != p.measured);
        if (i == 0) assert_int_equal(q.predicted, q.measured);
        assert_int_equal(p.measured, q.measured);
    }
}

static void same_step(void **state)
{
    (void)state;
    for (int generation = 0; generation < 2; generation++) {
        const sc_profiled *a = as_kineto(0), *b;
        as_nsys(generation, 1, &b);
        compare(&a, &b, 1);
        assert_int_equal(a->n_spans, b->n_spans);
        assert_int_equal(a->n_lanes, b->n_lanes);
    }
}

/* Two files of one rank each, and one file of both. */
static void same_ranks(void **state)
{
    (void)state;
    for (int generation = 0; generation < 2; generation++) {
        const sc_profiled *a[2] = {as_kineto(0), as_kineto(1)}, *b[2];
        as_nsys(generation, 2, b);
        compare(a, b, 2);
    }
}

/* `stepcast replay report.sqlite` replays all ranks of the file. */
static void all_ranks(void **state)
{
    const sc_profiled *m[2];
    double seconds = 0, rank = -1;
    stepcast_errors *errors = stepcast_errors_new();
    stepcast_job *job = stepcast_job_new("replay");
    stepcast_document *d = NULL;
    (void)state;
    as_nsys(true, 2, m);
    sc_replay_result r = run_with(prepare(m, 2), NULL);
    assert_int_equal(stepcast_job_add(job, report_path, errors), STEPCAST_OK);
    assert_int_equal(stepcast_job_run(job, &d, errors), STEPCAST_OK);
    stepcast_document_number(d, "step_time_s", &seconds);
    assert_true(seconds == sc_time_to_s(r.predicted));
    for (int i = 0; i < 2; i++) {
        char path[40];
        snprintf(path, sizeof path, "ranks.%d.rank", i);
        assert_int_equal(stepcast_document_number(d, path, &rank), STEPCAST_OK);
        assert_true(rank == i);
    }
    stepcast_document_free(d);
    stepcast_job_free(job);
    stepcast_errors_free(errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(same_step), TEST(same_ranks),
                                       TEST(all_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: stepcast was built without SQLite\n");
    return 77;
}

#endif
