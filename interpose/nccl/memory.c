/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - allocation, registration and windows: they succeed, because
 * nothing leaves the device; functions that need the memory of real peers fail.
 */
#include "nccl/comm.h"

#include <stdlib.h>

struct nccl_window {
    void *buffer;
};

NCCL_API(ncclResult_t, ncclMemAlloc, void **out, size_t size)
{
    const char *why = NULL;
    CUdeviceptr at = 0;
    if (!out) return comm_fail(ncclInvalidArgument, "ncclMemAlloc: no result");
    *out = NULL;
    if (!size) return ncclSuccess;
    gpu *g = gpu_get(&why);
    if (!g) return comm_fail(ncclUnhandledCudaError, "ncclMemAlloc: %s", why);
    bool entered = gpu_enter(g);
    CUresult rc = g->d->alloc(&at, size);
    gpu_leave(g, entered);
    if (rc)
        return comm_fail(ncclUnhandledCudaError, "ncclMemAlloc: %s",
                         driver_error(g->d, rc));
    *out = (void *)(uintptr_t)at;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclMemFree, void *at)
{
    const char *why = NULL;
    gpu *g = gpu_get(&why);
    if (!g) return comm_fail(ncclUnhandledCudaError, "ncclMemFree: %s", why);
    bool entered = gpu_enter(g);
    CUresult rc = at ? g->d->free((CUdeviceptr)(uintptr_t)at) : 0;
    gpu_leave(g, entered);
    return rc ? comm_fail(ncclUnhandledCudaError, "ncclMemFree: %s",
                          driver_error(g->d, rc))
              : ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void *buffer,
         size_t size, void **handle)
{
    (void)size;
    ncclResult_t rc = comm_usable(comm, "ncclCommRegister");
    if (!rc && !handle) rc = comm_fail(ncclInvalidArgument, "no handle");
    if (!rc) *handle = buffer;
    return rc;
}

NCCL_API(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void *handle)
{
    (void)handle;
    return comm ? ncclSuccess
                : comm_fail(ncclInvalidArgument, "no communicator");
}

NCCL_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void *buffer,
         size_t size, ncclWindow_t *win, int flags)
{
    (void)size;
    ncclResult_t rc = comm_usable(comm, "ncclCommWindowRegister");
    if (rc) return rc;
    if (!win) return comm_fail(ncclInvalidArgument, "no window");
    if (flags & NCCL_WIN_SYMMETRIC)
        live_warn(comm->l,
                  "NCCL: symmetric memory: collectives on it are modelled; "
                  "kernels of the program that read windows of peers directly "
                  "move data without NCCL and are not modelled");
    *win = malloc(sizeof **win);
    if (!*win) return comm_fail(ncclSystemError, "out of memory");
    (*win)->buffer = buffer;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm,
         ncclWindow_t win)
{
    (void)comm;
    free(win);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win,
         void **out)
{
    (void)comm;
    if (!win || !out)
        return comm_fail(ncclInvalidArgument, "ncclWinGetUserPtr: no window");
    *out = win->buffer;
    return ncclSuccess;
}
