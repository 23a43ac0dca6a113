/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - what the mock driver has of its own, on a real device: so that
 * the cases of tests/live/nccl run on both.
 */
#include "mock/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Waits for p_ns by the device's clock. */
static const char text[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry work(.param .u64 p_ns)\n{\n"
    ".reg .pred %p;\n.reg .b64 %t, %end, %ns;\n"
    "ld.param.u64 %ns, [p_ns];\nmov.u64 %end, %globaltimer;\n"
    "add.u64 %end, %end, %ns;\n"
    "AGAIN:\nmov.u64 %t, %globaltimer;\nsetp.lt.u64 %p, %t, %end;\n"
    "@%p bra AGAIN;\nret;\n}\n";

int64_t mock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void mock_host_work(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

unsigned mock_hold_blocks(void)
{
    return 2; /* the driver does not tell */
}

static CUfunction kernel(void)
{
    static CUfunction f;
    CUmodule m;
    CUresult rc = 0;
    if (!f) rc = cuModuleLoadData(&m, text);
    if (!f && !rc) rc = cuModuleGetFunction(&f, m, "work");
    if (rc) {
        fprintf(stderr, "the device takes no kernel: error %d\n", rc);
        exit(1);
    }
    return f;
}

CUresult mock_work(CUstream s, int64_t ns)
{
    void *args[] = {&ns};
    return cuLaunchKernel(kernel(), 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

/* 1024 threads and 48 KiB of shared memory to a block: at most two on a
 * multiprocessor, and none beside a held one. */
CUresult device_work(CUstream s, int64_t ns, unsigned blocks)
{
    void *args[] = {&ns};
    return cuLaunchKernel(kernel(), blocks, 1, 1, 1024, 1, 1, 48 * 1024, s,
                          args, NULL);
}
