/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - how well streams are held: what was asked for against what the
 * device's events say, what a call costs, graphs, occupied multiprocessors,
 * data of every type.  Needs a driver and this project's library, no PyTorch.
 *
 *   measure holds|values      delays by kernels, or by stream values
 *   measure data              reductions of all types
 */
#include "harness.h"
#include "nccl/call.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define REPEATS 200
#define MAX     NCCL_MAX /* has no data to write: a delay and nothing else */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void show(const char *what, double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    printf("%-44s median %10.2f us   p10 %10.2f   p90 %10.2f\n", what, v[n / 2],
           v[n / 10], v[n * 9 / 10]);
}

/* Bytes are nanoseconds at 1 GB/s. */
static const char model[] = "default: {alpha: 0us, beta: 1GB/s}\n";

static void delays(ncclComm_t c, CUstream s)
{
    static const size_t asked[] = {4,      5000,    10000,   20000,
                                   100000, 1000000, 10000000};
    char *p = device(16 << 20);
    CUevent a = event(), b = event();
    for (size_t k = 0; k < sizeof asked / sizeof asked[0]; k++) {
        double took[REPEATS], call[REPEATS];
        char name[64];
        for (int i = 0; i < REPEATS; i++) {
            float ms;
            OK(cuEventRecord(a, s));
            int64_t t = mock_now();
            OK(nccl.AllReduce(p, p, asked[k], NCCL_UINT8, MAX, c, s));
            call[i] = (double)(mock_now() - t) / 1e3;
            OK(cuEventRecord(b, s));
            OK(cuStreamSynchronize(s));
            OK(cuEventElapsedTime(&ms, a, b));
            took[i] = (double)ms * 1e3 - (double)asked[k] / 1e3;
        }
        snprintf(name, sizeof name, "asked %g us: measured less that",
                 (double)asked[k] / 1e3);
        show(name, took, REPEATS);
        if (k == 0) show("host time of a call", call, REPEATS);
    }
}

/* No host between operations: only what the stream itself costs. */
static void back_to_back(ncclComm_t c, CUstream s)
{
    char *p = device(1 << 20);
    CUevent a = event(), b = event();
    double each[20];
    for (int k = 0; k < 20; k++) {
        float ms;
        OK(cuEventRecord(a, s));
        for (int i = 0; i < 50; i++)
            OK(nccl.AllReduce(p, p, 100000, NCCL_UINT8, MAX, c, s));
        OK(cuEventRecord(b, s));
        OK(cuStreamSynchronize(s));
        OK(cuEventElapsedTime(&ms, a, b));
        each[k] = (double)ms * 1e3 / 50 - 100;
    }
    show("50 in a row of 100 us: each, less that", each, 20);
}

static void graphs(ncclComm_t c, CUstream s)
{
    char *p = device(1 << 20);
    CUevent a = event(), b = event();
    CUgraph g;
    CUgraphExec e;
    double each[50];
    OK(cuStreamBeginCapture_v2(s, 0));
    for (int i = 0; i < 10; i++)
        OK(nccl.AllReduce(p, p, 100000, NCCL_UINT8, MAX, c, s));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    for (int k = 0; k < 50; k++) {
        float ms;
        OK(cuEventRecord(a, s));
        OK(cuGraphLaunch(e, s));
        OK(cuEventRecord(b, s));
        OK(cuStreamSynchronize(s));
        OK(cuEventElapsedTime(&ms, a, b));
        each[k] = (double)ms * 1e3 / 10 - 100;
    }
    show("10 of 100 us in a graph: each, less that", each, 50);
}

/* A kernel that needs every multiprocessor, alone and beside an operation. */
static void occupancy(ncclComm_t c, CUstream s)
{
    char *p = device(16 << 20);
    CUstream other = stream();
    CUevent a = event(), b = event();
    int sms = 0;
    float alone, beside;
    OK(cuDeviceGetAttribute(&sms, 16, 0));
    for (int k = 0; k < 2; k++) {
        OK(cuEventRecord(a, other));
        OK(device_work(other, 1000000, (unsigned)sms * 4));
        OK(cuEventRecord(b, other));
        OK(cuStreamSynchronize(other));
        OK(cuEventElapsedTime(&alone, a, b));
    }
    OK(nccl.AllReduce(p, p, 16000000, NCCL_UINT8, MAX, c, s));
    mock_host_work(1000000);
    OK(cuEventRecord(a, other));
    OK(device_work(other, 1000000, (unsigned)sms * 4));
    OK(cuEventRecord(b, other));
    OK(cuStreamSynchronize(other));
    OK(cuEventElapsedTime(&beside, a, b));
    OK(cuStreamSynchronize(s));
    printf("%d blocks on %d multiprocessors: %.3f ms alone, %.3f ms beside an "
           "operation\n",
           sms * 4, sms, (double)alone, (double)beside);
}

/* ---- data --------------------------------------------------------------------------- */

static const char *const names[] = {"i8",  "u8",   "i32",  "u32",
                                    "i64", "u64",  "f16",  "f32",
                                    "f64", "bf16", "e4m3", "e5m2"};

/* 1, 2, 3 and 4 in the type. */
static void put(char *at, int type, int v)
{
    static const uint16_t f16[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400},
                          bf16[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080};
    static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48},
                         e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};
    int64_t whole = v;
    float f = (float)v;
    double d = v;
    if (type == NCCL_FLOAT16)
        memcpy(at, &f16[v], 2);
    else if (type == NCCL_BFLOAT16)
        memcpy(at, &bf16[v], 2);
    else if (type == NCCL_FLOAT8E4M3)
        memcpy(at, &e4m3[v], 1);
    else if (type == NCCL_FLOAT8E5M2)
        memcpy(at, &e5m2[v], 1);
    else if (type == NCCL_FLOAT32)
        memcpy(at, &f, 4);
    else if (type == NCCL_FLOAT64)
        memcpy(at, &d, 8);
    else
        memcpy(at, &whole, call_type_size(type));
}

static void check_type(ncclComm_t c, CUstream s, int type)
{
    enum { N = 5003 };

    size_t size = call_type_size(type);
    char *x = device(N * 8), *y = device(N * 8), host[8];
    int wrong = 0;
    for (int i = 0; i < N; i++) put(x + (size_t)i * size, type, 1 + i % 4);

    static const struct {
        int op;
        double k;
        const char *name;
    } ops[] = {
        {NCCL_SUM, 4, "sum"}, {NCCL_AVG, 1, "avg"}, {NCCL_PROD, 0, "prod"}};

    for (size_t k = 0; k < 3; k++) {
        OK(nccl.AllReduce(x, y, N, type, ops[k].op, c, s));
        OK(cuStreamSynchronize(s));
        for (int i = 0; i < N; i++) {
            double v = 1 + i % 4,
                   want = ops[k].k > 0 ? v * ops[k].k : pow(v, 4);
            memcpy(host, y + (size_t)i * size, size);
            if (type <= NCCL_UINT8 && want > 127) continue;
            /* 81 has more digits than the narrow ones. */
            double slack = type >= NCCL_BFLOAT16 ? want / 7 : 0;
            wrong += fabs(call_scalar(host, type) - want) > slack;
        }
    }
    printf("data of %-5s %s\n", names[type], wrong ? "WRONG" : "right");
    CHECK(!wrong);
}

static void check_data(ncclComm_t c, CUstream s)
{
    for (int t = 0; t < NCCL_N_TYPES; t++) check_type(c, s, t);
    char *x = device(4 * 1003), *y = device(16 * 1003);
    for (int i = 0; i < 4 * 1003; i++) x[i] = (char)(i * 7);
    for (size_t n = 997; n <= 1003; n++) { /* also what 16 does not divide */
        OK(nccl.AllGather(x, y, n, NCCL_UINT8, c, s));
        OK(cuStreamSynchronize(s));
        for (size_t k = 0; k < 4; k++) CHECK(!memcmp(x, y + k * n, n));
    }
    puts("all-gather  right");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "holds";
    bool data = strcmp(what, "data") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(300);
    unsetenv("STEPCAST_NCCL_SPIN_US");
    setenv("STEPCAST_NCCL_SPIN_US", "60", 1);
    setenv("STEPCAST_NCCL_POLL_US", "5", 0);
    if (strcmp(what, "values") == 0) setenv("STEPCAST_NCCL_HOLD", what, 1);
    start(&(setup){.world = 4, .model = model});
    ncclComm_t c = comm_of(4, 0);
    CUstream s = stream();
    printf("== %s\n", what);
    if (data) {
        check_data(c, s);
    } else {
        delays(c, s);
        back_to_back(c, s);
        graphs(c, s);
        occupancy(c, s);
    }
    finish(0);
}
