/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases.c - programs over the mock driver.  Their times are closed forms of
 * what the program does and of alpha + bytes / beta: exact in virtual time but
 * for the clock's nanosecond.
 */
#include "common/live.h"
#include "emu/emu_store.h"
#include "harness.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define MS  1000000.0
#define US  1000.0
#define F32 NCCL_FLOAT32
/* Bytes for one member, in ns at 1 GB/s. */
#define SHARE 400000

static double sync_at(CUstream s)
{
    OK(cuStreamSynchronize(s));
    return (double)mock_now();
}

/* ---- DDP: buckets behind the backward pass ------------------------------------------- */

typedef struct ddp {
    CUstream compute, side;
    CUevent ready[8], done;
    void *bucket;
    size_t count;
    ncclComm_t comm;
} ddp;

static ddp new_ddp(int world, size_t bytes)
{
    ddp d = {.compute = stream(), .side = stream(), .done = event()};
    for (int i = 0; i < 8; i++) d.ready[i] = event();
    d.bucket = device(bytes);
    d.count = bytes / 4;
    d.comm = comm_of(world, 0);
    return d;
}

static void ddp_step(ddp *d)
{
    for (int i = 0; i < 8; i++) {
        OK(mock_work(d->compute, (int64_t)MS));
        OK(cuEventRecord(d->ready[i], d->compute));
        OK(cuStreamWaitEvent(d->side, d->ready[i], 0));
        OK(nccl.AllReduce(d->bucket, d->bucket, d->count, F32, NCCL_SUM,
                          d->comm, d->side));
    }
    OK(cuEventRecord(d->done, d->side));
    OK(cuStreamWaitEvent(d->compute, d->done, 0));
    OK(mock_work(d->compute, (int64_t)(0.5 * MS)));
}

static void run_ddp(int world, size_t bytes, double closed, double tolerance)
{
    ddp d = new_ddp(world, bytes);
    for (int k = 0; k < 3; k++) {
        double t = (double)mock_now();
        ddp_step(&d);
        NEAR(sync_at(d.compute) - t, closed, tolerance);
    }
    OK(nccl.CommFinalize(d.comm));
    OK(nccl.CommDestroy(d.comm));
}

/* An operation is longer than a piece of compute: one waits for the other. */
static void case_ddp(void)
{
    start(&(setup){.world = 8});
    run_ddp(8, 4000000, 1 * MS + 8 * 4.01 * MS + 0.5 * MS, 20);
}

/* It is shorter: only the last one is seen. */
static void case_ddp_hidden(void)
{
    start(&(setup){.world = 8});
    run_ddp(8, 400000, 8 * MS + 0.41 * MS + 0.5 * MS, 20);
}

static void case_ddp_1024(void)
{
    start(&(setup){.world = 1024, .cluster = "dgx-h100:128"});
    run_ddp(1024, 4000000, 1 * MS + 8 * 4.01 * MS + 0.5 * MS, 20);
    CHECK(mock_hold_blocks() > 1 && mock_hold_blocks() <= 132);
}

/* Real time: a loaded machine is late, never early. */
static void case_real(void)
{
    unsetenv("STEPCAST_NCCL_SPIN_US");
    start(&(setup){.world = 8});
    ddp d = new_ddp(8, 4000000);
    ddp_step(&d);
    sync_at(d.compute);
    double t = (double)mock_now();
    ddp_step(&d);
    double ms = (sync_at(d.compute) - t) / MS;
    CHECK(ms > 33.55 && ms < 20000);
    OK(nccl.CommDestroy(d.comm));
}

static void case_values(void)
{
    setenv("STEPCAST_NCCL_HOLD", "values", 1);
    start(&(setup){.world = 8});
    /* The host sees an operation when it looks: every 50 us. */
    run_ddp(8, 4000000, 1 * MS + 8 * 4.01 * MS + 0.5 * MS, 8 * 50 * US);
}

static void case_no_kernels(void)
{
    setenv("MOCK_NO_KERNELS", "1", 1);
    start(&(setup){.world = 8});
    run_ddp(8, 4000000, 1 * MS + 8 * 4.01 * MS + 0.5 * MS, 8 * 50 * US);
}

/* ---- operations that share links --------------------------------------------------------- */

static void case_shared(void)
{
    start(&(setup){.world = 8});
    CUstream a = stream(), b = stream();
    ncclComm_t x = comm_of(8, 0), y = comm_of(8, 0);
    void *p = device(2000000), *q = device(2000000);
    double t = (double)mock_now();
    OK(nccl.AllReduce(p, p, 500000, F32, NCCL_SUM, x, a));
    OK(nccl.AllReduce(q, q, 500000, F32, NCCL_SUM, y, b));
    NEAR(sync_at(a) - t, 4.01 * MS, 1 * US);
    NEAR(sync_at(b) - t, 4.01 * MS, 1 * US);
    /* One joins when the other is half through. */
    t = (double)mock_now();
    OK(nccl.AllReduce(p, p, 500000, F32, NCCL_SUM, x, a));
    OK(mock_work(b, (int64_t)(1.01 * MS)));
    OK(nccl.AllReduce(q, q, 500000, F32, NCCL_SUM, y, b));
    NEAR(sync_at(a) - t, 3.01 * MS, 15 * US);
    NEAR(sync_at(b) - t, 4.02 * MS, 15 * US);
}

/* ---- a peer that computes longer ------------------------------------------------------------ */

/* What mirrors this rank takes half as long again for what it computes, but not
 * for what it waits. */
static void case_straggler(void)
{
    start(&(setup){.world = 8, .more = "what-if: ['straggler=3:1.5']\n"});
    CUstream s = stream();
    ncclComm_t c = comm_of(8, 0);
    void *p = device(4000000);
    double before = 0;
    for (int k = 0; k < 4; k++) {
        OK(mock_work(s, (int64_t)(2 * MS)));
        OK(nccl.AllReduce(p, p, 1000000, F32, NCCL_SUM, c, s));
        double t = sync_at(s);
        /* The host sees the end when it looks, and so peers compute from there
         * on. */
        if (k > 0) NEAR(t - before, (3 + 4.01) * MS, 60 * US);
        before = t;
    }
}

/* ---- captured ----------------------------------------------------------------------------- */

static void graph_of_ddp(const char *hold, double tolerance)
{
    CUgraph g;
    CUgraphExec e;
    if (hold) setenv("STEPCAST_NCCL_HOLD", hold, 1);
    start(&(setup){.world = 8});
    ddp d = new_ddp(8, 4000000);
    OK(cuStreamBeginCapture_v2(d.compute, 0));
    ddp_step(&d);
    OK(cuStreamEndCapture(d.compute, &g));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    for (int k = 0; k < 4; k++) {
        double t = (double)mock_now();
        OK(cuGraphLaunch(e, d.compute));
        NEAR(sync_at(d.compute) - t, 33.58 * MS, tolerance);
    }
    /* Two at once: one after the other. */
    double t = (double)mock_now();
    OK(cuGraphLaunch(e, d.compute));
    OK(cuGraphLaunch(e, d.compute));
    NEAR(sync_at(d.compute) - t, 2 * 33.58 * MS, 2 * tolerance);
}

static void case_graph(void)
{
    graph_of_ddp(NULL, 20);
}

static void case_graph_values(void)
{
    graph_of_ddp("values", 8 * 50 * US);
}

/* ---- groups ------------------------------------------------------------------------------- */

static void case_group(void)
{
    start(&(setup){.world = 8});
    CUstream s = stream();
    ncclComm_t c = comm_of(8, 0);
    void *p = device(1000000), *q = device(1000000);
    double t = (double)mock_now();
    OK(nccl.GroupStart());
    OK(nccl.AllReduce(p, p, 250000, F32, NCCL_SUM, c, s));
    OK(nccl.AllReduce(q, q, 250000, F32, NCCL_SUM, c, s));
    OK(nccl.GroupEnd());
    /* In flight together: one latency, the links shared. */
    NEAR(sync_at(s) - t, 2.01 * MS, 1 * US);
    /* With everyone: one all-to-all. */
    float *in = device(8 * SHARE), *out = device(8 * SHARE);
    for (int i = 0; i < 8 * SHARE / 4; i++) in[i] = (float)i;
    t = (double)mock_now();
    OK(nccl.GroupStart());
    for (int i = 0; i < 8; i++) {
        OK(nccl.Send(in + i * SHARE / 4, SHARE / 4, F32, i, c, s));
        OK(nccl.Recv(out + i * SHARE / 4, SHARE / 4, F32, i, c, s));
    }
    OK(nccl.GroupEnd());
    NEAR(sync_at(s) - t, 10 * US + 8 * SHARE, 1 * US);
    CHECK(memcmp(in, out, 8 * SHARE) == 0);
    ncclSimInfo_t info = {sizeof info, 0x74685283, 23000, -1};
    OK(nccl.GroupStart());
    OK(nccl.AllReduce(p, p, 250000, F32, NCCL_SUM, c, s));
    OK(nccl.GroupSimulateEnd(&info));
    CHECK(info.estimated_time > 0 && info.estimated_time < 1);
}

/* ---- a stage of a pipeline ------------------------------------------------------------------- */

static void case_pipeline(void)
{
    start(&(setup){.world = 4, .rank = 0});
    CUstream s = stream();
    ncclComm_t c = comm_of(4, 0);
    float *act = device(1000000), *grad = device(1000000);
    for (int i = 0; i < 250000; i++) act[i] = (float)(i % 77);
    memset(grad, 1, 1000000);
    OK(nccl.Recv(grad, 1000, F32, 1, c, s)); /* nothing was sent: zeros */
    sync_at(s);
    CHECK(grad[0] == 0 && grad[999] == 0 && grad[1000] != 0);
    double t = (double)mock_now();
    for (int k = 0; k < 4; k++) {
        OK(mock_work(s, (int64_t)MS));
        OK(nccl.Send(act, 250000, F32, 1, c, s));
        OK(nccl.Recv(grad, 250000, F32, 1, c, s));
        OK(mock_work(s, (int64_t)(2 * MS)));
    }
    NEAR(sync_at(s) - t, 4 * (3 + 2 * 1.01) * MS, 1 * US);
    CHECK(memcmp(act, grad, 1000000) == 0);
}

/* ---- data ------------------------------------------------------------------------------------ */

static void fill(float *p, int n)
{
    for (int i = 0; i < n; i++) p[i] = (float)(i % 13) - 3;
}

static void reductions(ncclComm_t c, CUstream s)
{
    float *x = device(4000), *y = device(4000);
    float half = 0.5F;
    ncclRedOp_t op;
    fill(x, 1000);
    OK(nccl.RedOpCreatePreMulSum(&op, &half, F32, 1, c));

    const struct {
        int op;
        double factor;
    } all[] = {
        {NCCL_SUM, 4}, {NCCL_AVG, 1}, {NCCL_MAX, 1}, {NCCL_MIN, 1}, {op, 2}};

    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        OK(nccl.AllReduce(x, y, 1000, F32, all[k].op, c, s));
        sync_at(s);
        for (int i = 0; i < 1000; i++)
            CHECK((double)y[i] == all[k].factor * (double)x[i]);
    }
    OK(nccl.AllReduce(x, y, 1000, F32, NCCL_PROD, c, s));
    sync_at(s);
    CHECK(y[0] == 81 && y[1] == 16 && y[4] == 1);
    CHECK(nccl.AllReduce(x, y, 1000, NCCL_FLOAT64, op, c, s) ==
          ncclInvalidArgument);
}

static void shares(ncclComm_t c, CUstream s)
{
    float *x = device(4000), *y = device(16000);
    fill(x, 1000);
    OK(nccl.AllGather(x, y, 1000, F32, c, s));
    sync_at(s);
    for (int k = 0; k < 4; k++) CHECK(memcmp(x, y + 1000 * k, 4000) == 0);
    for (int i = 0; i < 4000; i++) y[i] = (float)(i / 1000);
    OK(nccl.AllGather(y + 2000, y, 1000, F32, c, s)); /* in place */
    sync_at(s);
    for (int i = 0; i < 4000; i++) CHECK(y[i] == 2);
    for (int i = 0; i < 4000; i++) y[i] = (float)(i / 1000);
    OK(nccl.ReduceScatter(y, x, 1000, F32, NCCL_SUM, c, s));
    sync_at(s);
    for (int i = 0; i < 1000; i++) CHECK(x[i] == 8);
    uint16_t *h = device(2000); /* bf16: 1.5 */
    for (int i = 0; i < 1000; i++) h[i] = 0x3fc0;
    OK(nccl.AllReduce(h, h, 1000, NCCL_BFLOAT16, NCCL_SUM, c, s));
    sync_at(s);
    for (int i = 0; i < 1000; i++) CHECK(h[i] == 0x40c0); /* 6 */
    OK(nccl.Broadcast(x, y, 1000, F32, 2, c, s));
    sync_at(s);
    CHECK(memcmp(x, y, 4000) == 0);
}

static void case_data(void)
{
    start(&(setup){.world = 4, .rank = 2});
    ncclComm_t c = comm_of(4, 2);
    CUstream s = stream();
    reductions(c, s);
    shares(c, s);
}

/* The mean over four peers has a quarter of ... the noise of sqrt(3) / 4. */
static void case_noise(void)
{
    start(&(setup){.world = 4, .more = "peer-data: noise:0.5\n"});
    ncclComm_t c = comm_of(4, 0);
    CUstream s = stream();
    int n = 100000;
    float *x = device(4 * (size_t)n), *y = device(4 * (size_t)n);
    for (int i = 0; i < n; i++) x[i] = i % 2 ? 3.0F : -1.0F; /* deviation 2 */
    OK(nccl.AllReduce(x, y, (size_t)n, F32, NCCL_AVG, c, s));
    sync_at(s);
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        double e = (double)y[i] - (double)x[i];
        sum += e / n;
        squares += e * e / n;
    }
    NEAR(sum, 0, 0.01);
    NEAR(sqrt(squares), 0.5 * 2 * sqrt(3) / 4, 0.01);
}

/* ---- what goes wrong ---------------------------------------------------------------------------- */

static void case_abort(void)
{
    start(&(setup){.world = 8, .more = "what-if: ['fail=5@1']\n"});
    CUstream s = stream();
    ncclComm_t c = comm_of(8, 0);
    void *p = device(4000);
    OK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, c, s));
    sync_at(s);
    OK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, c, s));
    OK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, c, s));
    mock_host_work((int64_t)(100 * MS));
    CHECK(cuStreamQuery(s) != 0); /* rank 5 never comes */
    double t = (double)mock_now();
    OK(nccl.CommAbort(c));
    NEAR(sync_at(s) - t, 0, 100 * US);
    c = comm_of(8, 0);
    OK(nccl.CommRevoke(c, 0));
    CHECK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, c, s) == ncclInvalidUsage);
    CHECK(strstr(nccl.GetLastError(c), "revoked"));
}

/* The process ends with operations that never would: it does not hang. */
static void case_leave(void)
{
    start(&(setup){.world = 8, .more = "what-if: ['fail=5@0']\n"});
    CUstream s = stream();
    ncclComm_t c = comm_of(8, 0);
    void *p = device(4000);
    OK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, c, s));
    mock_host_work((int64_t)(10 * MS));
}

static void case_errors(void)
{
    start(&(setup){.world = 8});
    ncclComm_t c, d;
    ncclUniqueId id = {{0}};
    ncclConfig_t bad = {sizeof bad, 1, 0, .blocking = 1};
    ncclResult_t state;
    int v;
    CHECK(nccl.CommInitRank(&c, 9, id, 0) == ncclInvalidArgument);
    CHECK(strstr(nccl.GetLastError(NULL), "world of 8"));
    CHECK(nccl.CommInitRank(&c, 4, id, 4) == ncclInvalidArgument);
    CHECK(nccl.CommInitRankConfig(&c, 8, id, 0, &bad) == ncclInvalidArgument);
    bad.magic = NCCL_MAGIC;
    bad.blocking = 0;
    CHECK(nccl.CommInitRankConfig(&c, 8, id, 0, &bad) == ncclInProgress);
    OK(nccl.CommGetAsyncError(c, &state));
    CHECK(state == ncclSuccess);
    CHECK(nccl.CommGrow() == ncclInvalidUsage);
    CHECK(strstr(nccl.GetLastError(NULL), "ncclCommGrow"));
    CHECK(nccl.AllReduce(&v, &v, 1, 99, NCCL_SUM, c, NULL) ==
          ncclInvalidArgument);
    CHECK(nccl.AllReduce(&v, &v, 1, F32, 5, c, NULL) == ncclInvalidArgument);
    CHECK(nccl.Send(&v, 1, F32, 8, c, NULL) == ncclInvalidArgument);
    CHECK(nccl.GroupEnd() == ncclInvalidUsage);
    CHECK(nccl.CommShrink(c, (int[]){3}, 1, &d, NULL, 0) == ncclInProgress);
    OK(nccl.CommCount(d, &v));
    CHECK(v == 7);
    OK(nccl.CommSplit(c, -1, 0, &d, NULL));
    CHECK(d == NULL);
    OK(nccl.CommDestroy(c));
}

/* A process is one rank. */
static void case_devices(void)
{
    start(&(setup){.world = 8});
    ncclComm_t c[2];
    ncclUniqueId id;
    int n;
    CHECK(nccl.CommInitAll(c, 2, NULL) == ncclInvalidUsage);
    CHECK(strstr(nccl.GetLastError(NULL), "2 devices"));
    CHECK(strstr(nccl.GetLastError(NULL), "start one per device"));
    OK(nccl.CommInitAll(c, 1, NULL));
    OK(nccl.CommCount(c[0], &n));
    CHECK(n == 1);
    OK(nccl.GetUniqueId(&id));
    OK(nccl.CommInitRank(c, 2, id, 0));
    CHECK(nccl.CommInitRank(c + 1, 2, id, 1) == ncclInvalidUsage);
    CHECK(strstr(nccl.GetLastError(NULL), "start one per device"));
    OK(nccl.CommInitRank(c + 1, 2, id, 0)); /* the same again */
}

static void case_version(void)
{
    int v;
    setenv("STEPCAST_NCCL_VERSION", "2.21.5", 1);
    start(&(setup){.world = 2});
    OK(nccl.GetVersion(&v));
    CHECK(v == 22105);
}

/* ---- which ranks: seen by what a straggler among them does ----------------------------------------- */

static double one_reduce(ncclComm_t c)
{
    CUstream s = stream();
    void *p = device(4000);
    double t = (double)mock_now();
    OK(mock_work(s, (int64_t)MS));
    OK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, c, s));
    return sync_at(s) - t;
}

static void (*use)(uint32_t, uint32_t);
static uint32_t (*declare)(live *, const uint32_t *, uint32_t);
static void (*told)(uint32_t, const void *, size_t);
static live *(*get)(void);

/* What a binding calls. */
static void find_live(void)
{
    find("live_get", &get);
    find("live_declare", &declare);
    find("live_declared_use", &use);
    find("live_declared_told", &told);
}

static void ends(ncclComm_t c)
{
    NEAR(one_reduce(c), 1 * MS + 14 * US, 100);
}

static void never_ends(ncclComm_t c)
{
    CUstream s = stream();
    void *p = device(4000);
    OK(nccl.AllReduce(p, p, 1000, F32, NCCL_SUM, c, s));
    mock_host_work((int64_t)(100 * MS));
    CHECK(cuStreamQuery(s) != 0);
}

/* Rank 6 never comes; rank 5 is real. */
#define WITHOUT_6                                                \
    &(setup)                                                     \
    {                                                            \
        .world = 8, .rank = 5, .more = "what-if: ['fail=6@0']\n" \
    }

/* Nothing is known: neighbours. */
static void case_assumed(void)
{
    start(WITHOUT_6);
    ends(comm_of(2, 1));       /* 4 5 */
    ends(comm_of(4, 3));       /* 2 3 4 5 */
    never_ends(comm_of(4, 2)); /* 3 4 5 6 */
}

static void case_declared(void)
{
    start(WITHOUT_6);
    find_live();
    const uint32_t odd[] = {1, 3, 5, 7}, last[] = {2, 4, 5, 6}, pair[] = {5, 6};
    uint32_t l = declare(get(), last, 4), o = declare(get(), odd, 4),
             p = declare(get(), pair, 2);
    CHECK(declare(get(), odd, 4) == o);
    ncclUniqueId id = {SC_STORE_ID_TAG "1"};
    ncclComm_t c;
    ends(comm_of(4, 2)); /* the latest one */
    never_ends(comm_of(4, 2));
    use(l, LIVE_ANY);
    never_ends(comm_of(4, 2));
    use(p, o); /* a group, and a pair for messages in it */
    ends(comm_of(4, 2));
    never_ends(comm_of(2, 0));
    use(LIVE_ANY, LIVE_ANY);
    char more[200] = {0};
    memcpy(more + 30, &id, sizeof id);
    told(l, more, sizeof more);
    told(o, more, sizeof more);
    OK(nccl.CommInitRank(&c, 4, id, 2));
    ends(c);
    told(l, more, sizeof more);
    OK(nccl.CommInitRank(&c, 4, id, 2));
    never_ends(c);
    ncclComm_t world = comm_of(8, 5), s;
    int n, r;
    use(declare(get(), (uint32_t[]){1, 5, 7}, 3), LIVE_ANY);
    OK(nccl.CommSplit(world, 1, 0, &s, NULL));
    OK(nccl.CommCount(s, &n));
    OK(nccl.CommUserRank(s, &r));
    CHECK(n == 3 && r == 1);
    ends(s);
    use(declare(get(), (uint32_t[]){2, 3}, 2), LIVE_ANY);
    OK(nccl.CommSplit(world, -1, 0, &s, NULL));
    CHECK(!s);
}

/* Of one real rank's colour there is only one rule: that all members have it. */
static void case_split(void)
{
    start(WITHOUT_6);
    ncclComm_t world = comm_of(8, 5), s;
    int n, r;
    OK(nccl.CommSplit(world, 1, 5, &s, NULL));
    OK(nccl.CommCount(s, &n));
    OK(nccl.CommUserRank(s, &r));
    CHECK(n == 8 && r == 5);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"ddp", case_ddp},           {"ddp_hidden", case_ddp_hidden},
    {"ddp_1024", case_ddp_1024}, {"real", case_real},
    {"values", case_values},     {"no_kernels", case_no_kernels},
    {"shared", case_shared},     {"straggler", case_straggler},
    {"graph", case_graph},       {"graph_values", case_graph_values},
    {"group", case_group},       {"pipeline", case_pipeline},
    {"data", case_data},         {"noise", case_noise},
    {"abort", case_abort},       {"leave", case_leave},
    {"errors", case_errors},     {"devices", case_devices},
    {"version", case_version},   {"assumed", case_assumed},
    {"declared", case_declared}, {"split", case_split},
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
