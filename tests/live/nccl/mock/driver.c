/* SPDX-License-Identifier: Apache-2.0 */
#include "mock/mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16

struct CUctx_st {
    int device;
};

static struct CUctx_st primary;
static _Thread_local CUcontext stack[DEPTH];
static _Thread_local int depth;
static unsigned hold_blocks;

CUresult cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

CUresult cuDeviceGet(CUdevice *out, int n)
{
    *out = n;
    return n ? 101 : 0;
}

CUresult cuDeviceGetAttribute(int *out, int what, CUdevice d)
{
    (void)d;
    *out = what == 16 ? 132 : what == 75 ? 9 : 0;
    return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d)
{
    *out = &primary;
    return d ? 101 : 0;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    *out = depth ? stack[depth - 1] : NULL;
    return 0;
}

CUresult cuCtxSetCurrent(CUcontext c)
{
    if (!depth) depth = 1;
    stack[depth - 1] = c;
    return 0;
}

CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    if (depth == DEPTH) return 1;
    stack[depth++] = c;
    return 0;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    if (!depth) return 201;
    *out = stack[--depth];
    return 0;
}

CUresult cuCtxGetDevice(CUdevice *out)
{
    *out = 0;
    return depth ? 0 : 201;
}

CUresult cuGetErrorName(CUresult rc, const char **out)
{
    *out = rc == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
    return 0;
}

/* ---- memory: the host's ----------------------------------------------------------------- */

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    void *p = aligned_alloc(256, (size + 255) & ~(size_t)255);
    *out = (CUdeviceptr)(uintptr_t)p;
    return p ? 0 : 2;
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags)
{
    (void)flags;
    return cuMemAlloc_v2(out, size);
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
    free((void *)(uintptr_t)p);
    return 0;
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    CUdeviceptr p;
    (void)flags;
    CUresult rc = cuMemAlloc_v2(&p, size);
    *out = (void *)(uintptr_t)p;
    return rc;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned flags)
{
    (void)flags;
    *out = (CUdeviceptr)(uintptr_t)p;
    return 0;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n)
{
    memcpy((void *)(uintptr_t)to, from, n);
    return 0;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n)
{
    memcpy(to, (void *)(uintptr_t)from, n);
    return 0;
}

/* ---- what goes into streams ---------------------------------------------------------------- */

static CUresult push(CUstream s, const item *i)
{
    pthread_mutex_lock(&mock_lock);
    stream_push(stream_of(s), i);
    mock_move();
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n,
                              CUstream s)
{
    return push(s,
                &(item){.kind = ITEM_COPY, .to = to, .from = from, .bytes = n});
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    return cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)to, from, n, s);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n,
                              CUstream s)
{
    return cuMemcpyDtoDAsync_v2(to, (CUdeviceptr)(uintptr_t)from, n, s);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s)
{
    return push(s, &(item){.kind = ITEM_SET, .to = to, .value = v, .bytes = n});
}

CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr at, uint32_t v,
                                 unsigned flags)
{
    (void)flags;
    return push(s, &(item){.kind = ITEM_WRITE_VALUE, .to = at, .value = v});
}

CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr at, uint32_t v,
                                unsigned flags)
{
    if (flags != 0) return 801; /* only "greater or equal" is known here */
    return push(s, &(item){.kind = ITEM_WAIT_VALUE, .to = at, .value = v});
}

CUresult mock_work(CUstream s, int64_t ns)
{
    return push(s, &(item){.kind = ITEM_WORK, .ns = ns});
}

/* 132 multiprocessors, whatever else they do. */
CUresult device_work(CUstream s, int64_t ns, unsigned blocks)
{
    return mock_work(s, ns * ((blocks + 131) / 132));
}

/* ---- modules: .visible .entry NAME(.param .uNN ..., ...) --------------------------------------- */

CUresult cuModuleLoadData(CUmodule *out, const void *text)
{
    const char *refuse = getenv("MOCK_NO_KERNELS");
    if (refuse) return 218; /* CUDA_ERROR_INVALID_PTX */
    *out = (CUmodule)(uintptr_t)text;
    return 0;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
    const char *text = (const char *)m;
    char head[96];
    snprintf(head, sizeof head, ".entry %s(", name);
    const char *at = strstr(text, head);
    if (!at) return 500; /* CUDA_ERROR_NOT_FOUND */
    const char *end = strchr(at, ')');
    CUfunction f = calloc(1, sizeof *f);
    if (!f || !end) abort();
    snprintf(f->name, sizeof f->name, "%s", name);
    while ((at = strstr(at + 1, ".param .")) && at < end) {
        if (f->n_args == KERNEL_ARGS) abort();
        f->size[f->n_args++] = strncmp(at + 9, "32", 2) == 0 ? 4 : 8;
    }
    *out = f;
    return 0;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream s, void **args, void **extra)
{
    item i = {.kind = ITEM_KERNEL, .f = f, .blocks = gx};
    (void)shared;
    if (extra || gx < 1 || gy != 1 || gz != 1 || bx < 1 || bx > 1024 ||
        by != 1 || bz != 1)
        return 1;
    for (uint32_t k = 0; k < f->n_args; k++)
        memcpy(&i.arg[k], args[k], f->size[k]);
    if (strcmp(f->name, "stepcast_hold") == 0) hold_blocks = gx;
    if (strcmp(f->name, "work") == 0) { /* of tests/gpu/device.c */
        i.kind = ITEM_WORK;
        i.ns = (int64_t)i.arg[0];
    }
    return push(s, &i);
}

unsigned mock_hold_blocks(void)
{
    return hold_blocks;
}
