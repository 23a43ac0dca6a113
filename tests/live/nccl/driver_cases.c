/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_cases.c - what the library asks of the driver: launches, contexts,
 * threads' streams, device memory, and what happens with operations in flight.
 */
#include "harness.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define MS  1000000.0
#define US  1000.0
#define MIB (1024.0 * 1024.0)
#define F32 NCCL_FLOAT32

static double sync_at(CUstream s)
{
    OK(cuStreamSynchronize(s));
    return (double)mock_now();
}

/* ---- one kernel per operation ------------------------------------------------------ */

static CUstream s;
static ncclComm_t c;
static float *x, *y;

static void all_reduce(void)
{
    OK(nccl.AllReduce(x, y, 1000, F32, NCCL_SUM, c, s));
}

static void all_gather(void)
{
    OK(nccl.AllGather(x, y, 1000, F32, c, s));
}

static void broadcast(void)
{
    OK(nccl.Broadcast(x, y, 1000, F32, 0, c, s));
}

static void two_reductions(void)
{
    OK(nccl.GroupStart());
    OK(nccl.AllReduce(x, y, 1000, F32, NCCL_SUM, c, s));
    OK(nccl.AllReduce(x, y + 1000, 500, F32, NCCL_AVG, c, s));
    OK(nccl.GroupEnd());
}

static void everyone(void)
{
    OK(nccl.GroupStart());
    for (int i = 0; i < 8; i++) {
        OK(nccl.Send(x + i * 100, 100, F32, i, c, s));
        OK(nccl.Recv(y + i * 100, 100, F32, i, c, s));
    }
    OK(nccl.GroupEnd());
}

/* Numbers of two types. */
static void two_types(void)
{
    OK(nccl.GroupStart());
    OK(nccl.AllReduce(x, y, 1000, F32, NCCL_SUM, c, s));
    OK(nccl.AllReduce(x, y + 1000, 1000, NCCL_INT32, NCCL_SUM, c, s));
    OK(nccl.GroupEnd());
}

static unsigned launches_of(void (*call)(void))
{
    unsigned before = mock_launches();
    call();
    unsigned n = mock_launches() - before;
    sync_at(s);
    return n;
}

static void open_world(const char *more)
{
    start(&(setup){.world = 8,
                   .model = "default: {alpha: 200us, beta: 1GB/s}\n",
                   .more = more});
    s = stream();
    c = comm_of(8, 0);
    x = device(32000);
    y = device(32000);
    for (int i = 0; i < 8000; i++) x[i] = (float)i;
}

static void case_one_kernel(void)
{
    open_world(NULL);
    CHECK(launches_of(all_reduce) == 1);
    CHECK(y[999] == 8 * 999);
    CHECK(launches_of(all_gather) == 1);
    CHECK(launches_of(broadcast) == 1);
    CHECK(launches_of(two_reductions) == 1);
    CHECK(y[999] == 8 * 999 && y[1499] == 499);
    CHECK(launches_of(everyone) == 1);
    CHECK(y[799] == 799);
    CHECK(launches_of(two_types) == 2);
    CHECK(y[999] == 8 * 999);
}

/* Noise needs the moments first, between the begin and the end. */
static void case_noise_in_graph(void)
{
    CUgraph g;
    CUgraphExec e;
    open_world("peer-data: noise:0.5\n");
    CHECK(launches_of(all_reduce) == 5);
    OK(cuStreamBeginCapture_v2(s, 0));
    all_reduce();
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    for (int k = 0; k < 3; k++) {
        double t = (double)mock_now();
        OK(cuGraphLaunch(e, s));
        NEAR(sync_at(s) - t, 204 * US, 20);
    }
}

/* By the driver's stream values, kernels only write data. */
static void case_values_kernels(void)
{
    setenv("STEPCAST_NCCL_HOLD", "values", 1);
    open_world(NULL);
    CHECK(launches_of(all_reduce) == 1);
    CHECK(y[999] == 8 * 999);
    CHECK(launches_of(two_reductions) == 1);
}

/* ---- contexts ---------------------------------------------------------------------- */

static int runtime_device = -1;

/* Of the CUDA runtime, where a program has it. */
__attribute__((visibility("default"))) int cudaGetDevice(int *out);

int cudaGetDevice(int *out)
{
    *out = runtime_device;
    return runtime_device < 0;
}

static void *without_context(void *local_rank)
{
    CUcontext now;
    ncclComm_t comm;
    int d;
    void *p;
    if (local_rank) setenv("LOCAL_RANK", local_rank, 1);
    OK(cuCtxGetCurrent(&now));
    CHECK(!now);
    comm = comm_of(8, 0);
    OK(nccl.CommCuDevice(comm, &d));
    OK(cuCtxGetCurrent(&now));
    CHECK(!now); /* as before */
    CUstream own = stream();
    CHECK(nccl.MemAlloc(&p, 4000) == ncclSuccess);
    OK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, comm, own));
    sync_at(own);
    OK(nccl.MemFree(p));
    OK(cuCtxGetCurrent(&now));
    CHECK(!now);
    OK(nccl.CommDestroy(comm));
    return (void *)(intptr_t)d;
}

/* A thread of the mock's virtual time takes turns with this one. */
static intptr_t device_of_thread(const char *local_rank)
{
    CUcontext none = NULL;
    OK(cuCtxSetCurrent(none));
    return (intptr_t)without_context((void *)(uintptr_t)local_rank);
}

static void case_contexts(void)
{
    start(&(setup){.world = 8});
    unsetenv("LOCAL_RANK");
    CHECK(device_of_thread(NULL) == 0);
    CHECK(device_of_thread("2") == 2);
    CHECK(device_of_thread("7") == 3); /* of four devices */
    runtime_device = 1;
    CHECK(device_of_thread("2") == 1);
}

/* ---- each thread's default stream ---------------------------------------------------- */

static CUstream const per_thread = (CUstream)(uintptr_t)2;
static double took[2];
static _Atomic bool short_ended;

static void *short_one(void *comm)
{
    CUcontext ctx;
    OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuCtxSetCurrent(ctx));
    mock_host_work(1000); /* from here on, time waits for this thread */
    double t = (double)mock_now();
    OK(nccl.AllReduce(y, y, 1000, F32, NCCL_SUM, comm, per_thread));
    took[1] = sync_at(per_thread) - t;
    short_ended = true;
    return NULL;
}

/* An operation of another thread neither waits for this one's nor is released
 * with it. */
static void case_thread_streams(void)
{
    pthread_t other;
    open_world(NULL);
    ncclComm_t second = comm_of(8, 0);
    OK(mock_work(per_thread, (int64_t)(20 * MS)));
    double t = (double)mock_now();
    OK(nccl.AllReduce(x, x, 1000, F32, NCCL_SUM, c, per_thread));
    CHECK(pthread_create(&other, NULL, short_one, second) == 0);
    took[0] = sync_at(per_thread) - t;
    /* Time passes only while this thread waits for the machine. */
    while (!short_ended) mock_host_work(1000);
    CHECK(pthread_join(other, NULL) == 0);
    /* When the other thread starts decides when the watch thread looks. */
    NEAR(took[0], 20 * MS + 204 * US, 10 * US);
    CHECK(took[1] < MS);
}

/* ---- groups that fail ------------------------------------------------------------------ */

static void case_group_errors(void)
{
    open_world(NULL);
    unsigned before = mock_launches();
    y[0] = -1;
    OK(nccl.GroupStart());
    OK(nccl.AllReduce(x, y, 1000, F32, NCCL_SUM, c, s));
    CHECK(nccl.AllReduce(x, y, 1000, 99, NCCL_SUM, c, s) ==
          ncclInvalidArgument);
    OK(nccl.GroupStart()); /* inner groups do not report it */
    CHECK(nccl.Send(x, 1, F32, 8, c, s) == ncclInvalidArgument);
    OK(nccl.GroupEnd());
    CHECK(nccl.GroupEnd() == ncclInvalidArgument);
    sync_at(s);
    CHECK(mock_launches() == before && y[0] == -1);
    /* The next group is another one. */
    two_reductions();
    sync_at(s);
    CHECK(y[1] == 8);
    /* Outside of groups nothing stays. */
    CHECK(nccl.Send(x, 1, F32, 8, c, s) == ncclInvalidArgument);
    two_reductions();
    ncclComm_t bad;
    ncclUniqueId id = {{0}};
    OK(nccl.GroupStart());
    CHECK(nccl.CommInitRank(&bad, 9, id, 0) == ncclInvalidArgument);
    CHECK(nccl.GroupEnd() == ncclInvalidArgument);
}

/* ---- device memory ----------------------------------------------------------------------- */

/* NCCL 2.30's buffers of a connection, in MiB: Simple, LL128, LL. */
#define CONNECTION (4 + 4.6875 + 0.5)

static double grown_by(void (*call)(void))
{
    size_t before = mock_memory();
    call();
    double mib = (double)(mock_memory() - before) / MIB;
    sync_at(s);
    return mib;
}

static void large_reduce(void)
{
    OK(nccl.AllReduce(x, x, 16 << 20, F32, NCCL_SUM, c, s));
}

static void one_message(void)
{
    OK(nccl.Recv(y, 100, F32, 1, c, s));
}

static void case_memory(void)
{
    open_world(NULL);
    x = device(64 << 20);
    CHECK(grown_by(all_reduce) > 0);
    NEAR(grown_by(all_reduce), 0, 0); /* it is there */
    /* In the switch: 16 channels, 8 heads, 2 directions, 8 steps of 128 KiB. */
    NEAR(grown_by(large_reduce), 256, 0.1);
    double message = grown_by(one_message);
    CHECK(message >= CONNECTION);
    NEAR(message / CONNECTION, (int)(message / CONNECTION + 0.5), 1e-9);
    uint64_t total;
    OK(nccl.CommMemStats(c, 2, &total));
    CHECK((double)total >= (256 + message) * MIB);
    size_t before = mock_memory();
    OK(nccl.CommDestroy(c));
    CHECK(before - mock_memory() == total);
}

/* Four nodes: also trees between them, each rank with two other nodes in both
 * directions (LL's buffer of what is sent is on the host); messages to other
 * nodes share 2 x 32 x 16 x 128 KiB. */
static void case_memory_nodes(void)
{
    start(&(setup){.world = 32, .cluster = "dgx-h100:4"});
    s = stream();
    c = comm_of(32, 0);
    x = device(64 << 20);
    y = device(4000);
    NEAR(grown_by(large_reduce), 256 + 16 * 2 * (2 * CONNECTION - 0.5), 0.1);
    NEAR(grown_by(one_message), 4 * CONNECTION, 0.1);
    OK(nccl.GroupStart());
    size_t before = mock_memory();
    for (int i = 8; i < 32; i++) OK(nccl.Recv(y, 10, F32, i, c, s));
    OK(nccl.GroupEnd());
    NEAR((double)(mock_memory() - before) / MIB, 128, 0.1);
    sync_at(s);
}

static void case_memory_off(void)
{
    setenv("STEPCAST_NCCL_MEMORY", "0", 1);
    open_world(NULL);
    x = device(64 << 20);
    NEAR(grown_by(all_reduce), 0, 0);
    NEAR(grown_by(large_reduce), 0, 0);
    NEAR(grown_by(one_message), 0, 0);
}

/* Before 2.22 all is connected at creation. */
static void case_memory_old(void)
{
    setenv("STEPCAST_NCCL_VERSION", "2.21.5", 1);
    open_world(NULL);
    x = device(64 << 20);
    CHECK((double)mock_memory() / MIB > 256 + 2 * 8 * CONNECTION);
    NEAR(grown_by(large_reduce), 0, 0);
}

static void case_out_of_memory(void)
{
    setenv("MOCK_MEMORY", "201000000", 1); /* 100 MB are the program's */
    open_world(NULL);
    x = device(100 << 20);
    CHECK(nccl.AllReduce(x, x, 16 << 20, F32, NCCL_SUM, c, s) ==
          ncclUnhandledCudaError);
    CHECK(strstr(nccl.GetLastError(c), "CUDA_ERROR_OUT_OF_MEMORY"));
    CHECK(strstr(nccl.GetLastError(c), "256.0 MiB"));
}

/* ---- with operations in flight --------------------------------------------------------------- */

static void case_destroy(void)
{
    open_world("what-if: ['fail=5@1']\n");
    CUstream other = stream();
    ncclComm_t never = comm_of(8, 0), pair = comm_of(2, 0);
    OK(nccl.Send(x, 1000, F32, 1, pair, s)); /* of which copies are kept */
    sync_at(s);
    OK(nccl.Send(x, 1000, F32, 5, never, s));
    OK(nccl.Send(x, 1000, F32, 5, never, s));
    mock_host_work((int64_t)(100 * MS));
    CHECK(cuStreamQuery(s) != 0);
    size_t before = mock_memory();
    OK(nccl.CommDestroy(never));
    OK(nccl.CommDestroy(pair));
    CHECK(mock_memory() == before); /* freeing would wait */
    /* The others go on. */
    ncclComm_t next = comm_of(2, 0);
    mock_host_work(1000); /* from here on, time waits for this thread */
    double t = (double)mock_now();
    OK(nccl.AllReduce(y, y, 1000, F32, NCCL_SUM, next, other));
    NEAR(sync_at(other) - t, 204 * US, 100);
    mock_host_work((int64_t)MS);
}

static void case_abort_frees(void)
{
    open_world("what-if: ['fail=5@1']\n");
    ncclComm_t never = comm_of(8, 0), pair = comm_of(2, 0);
    OK(nccl.Send(x, 1000, F32, 1, pair, s));
    sync_at(s);
    size_t before = mock_memory();
    OK(nccl.Send(x, 1000, F32, 5, never, s));
    OK(nccl.Send(x, 1000, F32, 5, never, s));
    mock_host_work((int64_t)(10 * MS));
    OK(nccl.CommDestroy(pair)); /* kept */
    CHECK(cuStreamQuery(s) != 0 && mock_memory() > before);
    OK(nccl.CommAbort(never));
    sync_at(s);
    OK(nccl.CommDestroy(c)); /* nothing is in flight: all are freed */
    CHECK(mock_memory() < before);
}

/* ---- many captured operations ------------------------------------------------------------------ */

/* CAPTURED of them in graphs of 100, of which one runs: every replay takes its
 * time, and a look costs no more than without the others. */
static void case_captured(void)
{
    const char *text = getenv("CAPTURED");
    int n = text ? atoi(text) / 100 : 20;
    CUgraph g;
    CUgraphExec e = NULL;
    open_world(NULL);
    for (int k = 0; k < n; k++) {
        OK(cuStreamBeginCapture_v2(s, 0));
        for (int i = 0; i < 100; i++) all_reduce();
        OK(cuStreamEndCapture(s, &g));
        if (!e || k == n / 2) OK(cuGraphInstantiateWithFlags(&e, g, 0));
    }
    for (int k = 0; k < 3; k++) {
        double t = (double)mock_now();
        OK(cuGraphLaunch(e, s));
        NEAR(sync_at(s) - t, 100 * 204 * US, 2 * US);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"one_kernel", case_one_kernel},
    {"noise_in_graph", case_noise_in_graph},
    {"values_kernels", case_values_kernels},
    {"contexts", case_contexts},
    {"thread_streams", case_thread_streams},
    {"group_errors", case_group_errors},
    {"memory", case_memory},
    {"memory_nodes", case_memory_nodes},
    {"memory_off", case_memory_off},
    {"memory_old", case_memory_old},
    {"out_of_memory", case_out_of_memory},
    {"destroy", case_destroy},
    {"abort_frees", case_abort_frees},
    {"captured", case_captured},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc < 2)
            puts(cases[i].name);
        else if (strcmp(cases[i].name, argv[1]) == 0) {
            alarm(600);
            cases[i].run();
            finish(0);
        }
    }
    return argc < 2 ? 0 : 2;
}
