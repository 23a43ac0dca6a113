/* SPDX-License-Identifier: Apache-2.0 */
/* Another batch, another number of ranks, and the memory of devices, on small
 * traces whose answers are known. */
#include "cost/cost_alone.h"
#include "hw/hw.h"
#include "written_trace.h"

#include <math.h>

#define A100 \
    "\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA A100-SXM4-80GB\"}],"
#define EIGHT \
    "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":0,\"world_size\":8},"

static sc_cost cost;

static void prices(sc_replay_change *c, const char *device)
{
    const char *why = NULL;
    sc_replay_change_init(c);
    sc_cost_builtin(&arena, &cost, &err);
    sc_cost_alone(&arena, &cost, &err);
    sc_device_nearest(device, &arena, &c->from, &why, &err);
    no_error();
    c->cost = &cost;
}

static sc_time time_of(const sc_replay_model *m, const sc_replay_change *c,
                       const char *kernel)
{
    uint32_t n;
    sc_replay_kernel *k;
    sc_replay_result r = run_with(m, c);
    sc_replay_kernels(m, &r, &arena, &k, &n, &err);
    no_error();
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(k[i].name, kernel) == 0) return k[i].predicted;
    fail_msg("no kernel %s", kernel);
    return 0;
}

/* An operator with the shapes of its inputs and one kernel of 100 us. */
static void shaped(const char *name, const char *dims, const char *kernel_name,
                   int id)
{
    event("cpu_op", name, 1, 20 * id, 15,
          "\"Input Dims\":%s,\"Input "
          "type\":[\"float\",\"float\",\"float\"]",
          dims);
    call("cudaLaunchKernel", 20 * id + 2, 5, id);
    kernel(kernel_name, 7, 150 * id, 100, id);
}

/* A layer forward, the gradient of its weight, and its optimizer. */
static void layer(void)
{
    event("user_annotation", "ProfilerStep#1", 1, 0, 2000, "\"x\":0");
    shaped("aten::addmm", "[[1024],[4096,2048],[2048,1024]]", "forward", 1);
    shaped("aten::gelu", "[[4096,1024]]", "gelu", 2);
    shaped("aten::mm", "[[1024,4096],[4096,2048]]", "gradient", 3);
    event("cpu_op", "torch::autograd::AccumulateGrad", 1, 75, 2,
          "\"Input Dims\":[[1024,2048]]");
    event("user_annotation", "Optimizer.step#SGD.step", 1, 80, 20, "\"x\":0");
    shaped("aten::_foreach_add_", "[[[1024,2048],[1024]],[[1024,2048],[1024]]]",
           "optimizer", 4);
}

static double ratio(const sc_kernel *more, const sc_kernel *k)
{
    const char *why = NULL;
    const sc_device *d;
    sc_device_nearest("NVIDIA A100-SXM4-80GB", &arena, &d, &why, &err);
    return sc_kernel_alone(&cost, d, more).seconds /
           sc_kernel_alone(&cost, d, k).seconds;
}

static void near(sc_time t, double us)
{
    if (fabs((double)t / 1e6 - us) > 1e-3)
        fail_msg("%.4f us instead of %.4f", (double)t / 1e6, us);
}

/* Samples are rows of a product, and what the gradient of a weight sums over; the
 * optimizer does not see them. */
static void batch_of_kernels(void **state)
{
    (void)state;
    sc_replay_change c;
    prices(&c, "NVIDIA A100-SXM4-80GB");
    layer();
    const sc_replay_model *m = written(A100);
    c.batch = 2;
    sc_kernel f = sc_kernel_product(SC_FP32, 1, 4096, 1024, 2048);
    sc_kernel f2 = sc_kernel_product(SC_FP32, 1, 8192, 1024, 2048);
    sc_kernel g = sc_kernel_product(SC_FP32, 1, 1024, 2048, 4096);
    sc_kernel g2 = sc_kernel_product(SC_FP32, 1, 1024, 2048, 8192);
    assert_true(ratio(&f2, &f) > 1.8);
    near(time_of(m, &c, "forward"), 100 * ratio(&f2, &f));
    near(time_of(m, &c, "gradient"), 100 * ratio(&g2, &g));
    assert_true(time_of(m, &c, "gelu") > 180000000);
    near(time_of(m, &c, "optimizer"), 100);
    c.batch = 0.5;
    assert_true(time_of(m, &c, "forward") < 60000000);
    near(time_of(m, &c, "optimizer"), 100);
    c.batch = 1;
    near(time_of(m, &c, "forward"), 100);
}

static void batch_needs_facts(void **state)
{
    (void)state;
    sc_replay_change c;
    sc_replay_result r;
    sc_replay_change_init(&c);
    c.batch = 2;
    layer();
    const sc_replay_model *m = written("");
    assert_true(sc_replay_run(m, &c, &arena, &r, &err) == SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "the device of the kernels"));
    sc_err_init(&err);
    sc_text_free(&events);
    sc_text_init(&events);
    step(200);
    call("cudaLaunchKernel", 10, 5, 1);
    kernel("gemm", 7, 20, 100, 1);
    m = written(A100);
    assert_true(sc_replay_run(m, &c, &arena, &r, &err) == SC_EINPUT);
    assert_non_null(strstr(err.d[0].hint, "record_shapes=True"));
    sc_err_init(&err);
}

/* Without a device, operators compute: what they take beyond the overhead of a
 * call grows, with all that is inside of a product. */
static void batch_of_the_host(void **state)
{
    (void)state;
    sc_replay_change c;
    sc_replay_change_init(&c);
    step(1000);
    event("cpu_op", "aten::view", 1, 0, 2, "\"Input Dims\":[[64,32]]");
    event("cpu_op", "aten::bmm", 1, 10, 302,
          "\"Input Dims\":[[64,128,32],[64,32,128]]");
    event("cpu_op", "aten::select", 1, 20, 100, "\"x\":0");
    event("cpu_op", "aten::relu", 1, 400, 102, "\"Input Dims\":[[64,32]]");
    event("cpu_op", "torch::autograd::AccumulateGrad", 1, 600, 100,
          "\"Input Dims\":[[32,32]]");
    event("cpu_op", "aten::end", 1, 990, 1, "\"x\":0");
    const sc_replay_model *m = written("");
    near(run_with(m, &c).predicted, 1000);
    c.batch = 2;
    /* three parts of bmm, each less 2 us; relu less 2 us */
    near(run_with(m, &c).predicted, 1000 + 302 - 3 * 2 + 100);
    c.batch = 3;
    near(run_with(m, &c).predicted, 1000 + 2 * (302 - 3 * 2 + 100));
}

static void message(const char *coll, const char *dims, int elements, int id)
{
    event("cpu_op", "record_param_comms", 1, 20 * id, 15,
          "\"Input Dims\":%s,\"Collective name\":\"%s\",\"dtype\":\"Float\","
          "\"In msg nelems\":%d,\"Out msg nelems\":%d,\"Group size\":8,"
          "\"Process Group Ranks\":\"[0, 1, 2, 3, 4, 5, 6, 7]\"",
          dims, coll, elements, elements);
    call("cudaLaunchKernel", 20 * id + 2, 5, id);
    char name[64];
    snprintf(name, sizeof name, "ncclDevKernel_AllReduce_%d", id);
    event("kernel", name, 9, 150 * id, 100,
          "\"device\":0,\"stream\":9,\"correlation\":%d", id);
}

/* Flat buffers have no samples, and groups of the whole job grow with it. */
static void other_jobs(void **state)
{
    (void)state;
    sc_replay_change c;
    prices(&c, "NVIDIA A100-SXM4-80GB");
    step(1000);
    event("cpu_op", "aten::relu", 1, 5, 2, "\"Input Dims\":[[64,32]]");
    message("allreduce", "[[4194304]]", 4194304, 1);
    message("allreduce", "[[64,128,512]]", 4194304, 2);
    const sc_replay_model *m = written(A100 EIGHT);
    c.batch = 2;
    near(time_of(m, &c, "ncclDevKernel_AllReduce_1"), 100);
    near(time_of(m, &c, "ncclDevKernel_AllReduce_2"), 200);
    sc_hw_build("dgx-a100:4", sc_pos_none(), &arena, &c.hw, &err);
    no_error();
    sc_time flat = time_of(m, &c, "ncclDevKernel_AllReduce_1");
    sc_time layered = time_of(m, &c, "ncclDevKernel_AllReduce_2");
    c.batch = 1;
    sc_time same = time_of(m, &c, "ncclDevKernel_AllReduce_2");
    assert_true(flat == same && layered > same + same / 2);
    c.ranks = 8;
    assert_true(time_of(m, &c, "ncclDevKernel_AllReduce_1") == flat);
    c.ranks = 32;
    uint32_t rank[32];
    for (uint32_t i = 0; i < 32; i++) rank[i] = i;
    sc_place all = sc_hw_place_ranks(c.hw, 32, rank);
    sc_coll_price p;
    sc_cost_coll(&cost, c.hw, SC_ALL_REDUCE, 4.0 * 4194304, &all, -1, &p, &err);
    no_error();
    near(time_of(m, &c, "ncclDevKernel_AllReduce_1"), p.seconds * 1e6);
    c.ranks = 1; /* nobody to exchange with */
    near(time_of(m, &c, "ncclDevKernel_AllReduce_1"), 0);
    c.ranks = 64;
    sc_replay_result r;
    assert_true(sc_replay_run(m, &c, &arena, &r, &err) == SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "on 32 devices"));
    sc_err_init(&err);
}

/* A message to or from the other of two ranks. */
static void message_with(int rank, bool send, double launched, double ts,
                         double dur, int id)
{
    event("cpu_op", "record_param_comms", 1, launched - 1, 8,
          "\"Collective name\":\"%s\",\"dtype\":\"Float\",\"In msg "
          "nelems\":1048576,\"Group size\":2,\"%s Rank\":%d",
          send ? "send" : "recv", send ? "Dst" : "Src", 1 - rank);
    call("cudaLaunchKernel", launched, 5, id);
    kernel("ncclDevKernel_SendRecv", 9, ts, dur, id);
}

static const sc_profiled *of_rank(int rank)
{
    const sc_profiled *m = read_written(
        rank ? "\"distributedInfo\":{\"rank\":1,\"world_size\":2},"
             : "\"distributedInfo\":{\"rank\":0,\"world_size\":2},");
    sc_text_free(&events);
    sc_text_init(&events);
    return m;
}

/* The receiver waits for its sender, but not the sender of a short message for its
 * receiver. */
static void messages(void **state)
{
    (void)state;
    sc_replay_change c;
    const sc_profiled *m[2];
    step(1000);
    call("cudaLaunchKernel", 10, 5, 1);
    kernel("gemm", 7, 20, 300, 1);
    call("cudaStreamSynchronize", 30, 293, 2);
    message_with(0, true, 330, 340, 60, 3);
    message_with(0, false, 700, 710, 20, 4); /* was sent at 450 */
    call("cudaDeviceSynchronize", 720, 12, 5);
    m[0] = of_rank(0);
    step(1000);
    message_with(1, false, 10, 20, 381, 1);
    call("cudaDeviceSynchronize", 30, 373, 2);
    message_with(1, true, 440, 450, 10, 3);
    m[1] = of_rank(1);
    const sc_replay_model *x = prepare(m, 2);
    sc_replay_result r = run_with(x, NULL);
    near(r.rank[0].step[0].predicted, 1000);
    near(r.rank[1].step[0].predicted, 1000);
    sc_replay_change_init(&c);
    c.factor[SC_REPLAY_COMPUTE] = 2;
    r = run_with(x, &c);
    near(r.rank[0].step[0].predicted, 1300);
    near(r.rank[1].step[0].predicted, 1300);
    prices(&c, "NVIDIA A100-SXM4-80GB");
    sc_hw_build("dgx-a100:1", sc_pos_none(), &arena, &c.hw, &err);
    no_error();
    sc_coll_price p;
    uint32_t rank[2] = {0, 1};
    sc_place at = sc_hw_place_ranks(c.hw, 2, rank);
    sc_cost_coll(&cost, c.hw, SC_SENDRECV, 4.0 * 1048576, &at, -1, &p, &err);
    no_error();
    r = run_with(
        x, &c); /* was 60 us from the arrival of the sender on, and 1 more */
    near(r.rank[1].step[0].predicted, 1000 - 61 + p.seconds * 1e6);
}

static void on_device(int device, double ts, long bytes, long total)
{
    sc_text_add(&events,
                ",{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,"
                "\"ts\":%.3f,\"args\":{\"Device Type\":1,\"Device Id\":%d,"
                "\"Bytes\":%ld,\"Total Allocated\":%ld,\"Addr\":9}}",
                ts, device, bytes, total);
}

static void allocation(int tid, double ts, long bytes, long total, int address)
{
    sc_text_add(&events,
                ",{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":%d,"
                "\"ts\":%.3f,\"args\":{\"Device Type\":1,\"Device Id\":0,"
                "\"Bytes\":%ld,\"Total Allocated\":%ld,\"Addr\":%d}}",
                tid, ts, bytes, total, address);
}

/* What is held at the peak was allocated and not freed, by operators. */
static void memory(void **state)
{
    (void)state;
    uint32_t n;
    sc_replay_memory *x;
    event("cpu_op", "aten::before", 1, 0, 5, "\"x\":0");
    allocation(1, 2, 100, 1100, 1);
    event("user_annotation", "ProfilerStep#1", 1, 10, 200, "\"x\":0");
    event("cpu_op", "aten::linear", 1, 20, 50, "\"x\":0");
    event("cpu_op", "aten::addmm", 1, 30, 20, "\"x\":0");
    allocation(1, 35, 500, 1600, 2);
    allocation(1, 60, 70, 1670, 3); /* behind addmm */
    allocation(1, 65, -70, 1600, 3);
    event("cpu_op", "aten::addmm", 1, 80, 20, "\"x\":0");
    allocation(1, 85, 400, 2000, 3);
    allocation(1, 110, -500, 1500, 2);
    call("cudaLaunchKernel", 120, 5, 1);
    kernel("gemm", 7, 130, 10, 1);
    const sc_replay_model *m = written("");
    sc_replay_memory_of(m, &arena, &x, &n, &err);
    no_error();
    assert_int_equal(n, 1);
    assert_false(x->relative);
    assert_int_equal(x->peak, 2000);
    near(x->peak_at, 75);
    assert_string_equal(x->peak_step, "ProfilerStep#1");
    assert_string_equal(x->peak_path, "aten::addmm");
    assert_int_equal(x->n_holders, 3);
    assert_string_equal(x->holder[0].path, "aten::linear > aten::addmm");
    assert_int_equal(x->holder[0].bytes, 500);
    assert_string_equal(x->holder[1].path, "aten::addmm");
    assert_string_equal(x->holder[2].path, "aten::before");
    assert_int_equal(x->before, 1000);
    assert_int_equal(x->n_parts, SC_REPLAY_BYTES);
    assert_int_equal(x->part[0].most, 1100);
    assert_int_equal(x->part[74].most, 1600); /* until 75 us */
    assert_int_equal(x->part[75].most, 2000);
    assert_int_equal(x->part[199].most, 1500);
}

/* A process with two devices: the fullest one counts, alone. */
static void devices(void **state)
{
    (void)state;
    uint32_t n;
    sc_replay_memory *x;
    event("user_annotation", "ProfilerStep#1", 1, 10, 200, "\"x\":0");
    on_device(0, 20, 700, 700);
    on_device(1, 30, 900, 900);
    on_device(0, 40, 100, 800);
    call("cudaLaunchKernel", 120, 5, 1);
    kernel("gemm", 7, 130, 10, 1);
    const sc_replay_model *m = written("");
    sc_replay_memory_of(m, &arena, &x, &n, &err);
    no_error();
    assert_int_equal(n, 1);
    assert_int_equal(x->device, 1);
    assert_int_equal(x->peak, 900);
    assert_int_equal(x->part[SC_REPLAY_BYTES - 1].most, 900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(batch_of_kernels),
                                       TEST(batch_needs_facts),
                                       TEST(batch_of_the_host),
                                       TEST(other_jobs),
                                       TEST(messages),
                                       TEST(memory),
                                       TEST(devices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
