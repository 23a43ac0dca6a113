/* SPDX-License-Identifier: Apache-2.0 */
#include "mock/mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16

struct CUctx_st {
    int device;
};

#define DEVICES 4

static struct CUctx_st primary[DEVICES] = {{0}, {1}, {2}, {3}};
static size_t taken; /* bytes of device memory */
static unsigned launches;
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
    return n < DEVICES ? 0 : 101;
}

CUresult cuDeviceGetCount(int *out)
{
    *out = DEVICES;
    return 0;
}

CUresult cuDeviceGetAttribute(int *out, int what, CUdevice d)
{
    (void)d;
    *out = what == 16 ? 132 : what == 75 ? 9 : 0;
    return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d)
{
    if (d < 0 || d >= DEVICES) return 101;
    *out = &primary[d];
    return 0;
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
    if (!depth || !stack[depth - 1]) return 201;
    *out = stack[depth - 1]->device;
    return 0;
}

CUresult cuGetErrorName(CUresult rc, const char **out)
{
    *out = rc == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
    return 0;
}

/* ---- memory: the host's ----------------------------------------------------------------- */

/* The size is before it. */
static void *allocate(size_t size)
{
    char *p = aligned_alloc(256, ((size + 255) & ~(size_t)255) + 256);
    if (!p) return NULL;
    memcpy(p, &size, sizeof size);
    return p + 256;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    const char *most = getenv("MOCK_MEMORY");
    if (!depth || !stack[depth - 1]) return 201;
    if (most && taken + size > strtoull(most, NULL, 10)) return 2;
    void *p = allocate(size);
    if (p) taken += size;
    *out = (CUdeviceptr)(uintptr_t)p;
    return p ? 0 : 2;
}

size_t mock_memory(void)
{
    return taken;
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags)
{
    (void)flags;
    return cuMemAlloc_v2(out, size);
}

/* Waits for everything on the device. */
CUresult cuMemFree_v2(CUdeviceptr p)
{
    size_t size;
    char *at = (char *)(uintptr_t)p - 256;
    if (!p) return 0;
    stream_sync_all();
    memcpy(&size, at, sizeof size);
    taken -= size;
    free(at);
    return 0;
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    *out = allocate(size);
    return *out ? 0 : 2;
}

CUresult cuMemFreeHost(void *p)
{
    free((char *)p - 256);
    return 0;
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
        const char *array =
            strncmp(at + 8, "align", 5) ? NULL : strchr(at, '[');
        size_t size = array ? strtoul(array + 1, NULL, 10) : 0;
        if (size > KERNEL_BLOB) abort();
        if (!array) size = strncmp(at + 9, "32", 2) == 0 ? 4 : 8;
        f->size[f->n_args++] = (uint16_t)size;
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
    launches++;
    for (uint32_t k = 0; k < f->n_args; k++) {
        void *to = &i.arg[k];
        if (f->size[k] > 8) to = i.blob = malloc(f->size[k]);
        if (!to) abort();
        memcpy(to, args[k], f->size[k]);
    }
    if (strncmp(f->name, "stepcast_op_", 12) == 0 && i.arg[5] & 2)
        hold_blocks = gx;
    if (strcmp(f->name, "work") == 0) { /* of tests/gpu/device.c */
        i.kind = ITEM_WORK;
        i.ns = (int64_t)i.arg[0];
    }
    CUresult rc = push(s, &i);
    free(i.blob);
    return rc;
}

unsigned mock_launches(void)
{
    return launches;
}

unsigned mock_hold_blocks(void)
{
    return hold_blocks;
}
