/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the entry points of CUDA's driver that the library needs, found by
 * name in the process's libcuda.so.1, and what it keeps per context: kernels,
 * and their view of the slots.
 */
#ifndef NCCL_DRIVER_H
#define NCCL_DRIVER_H

#include "nccl/api.h"
#include "nccl/kernels.h"

#include <stdatomic.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

enum {
    CU_CAPTURE_RELAXED = 2,
    CU_HOSTALLOC_PORTABLE = 1,
    CU_HOSTALLOC_MAPPED = 2,
    CU_WAIT_GEQ = 0,
    CU_ATTRIBUTE_SMS = 16
};

/* field, name, needed, arguments */
#define DRIVER_CALLS(X)                                                        \
    X(ctx_get, "cuCtxGetCurrent", 1, (CUcontext *))                            \
    X(ctx_push, "cuCtxPushCurrent_v2", 1, (CUcontext))                         \
    X(ctx_pop, "cuCtxPopCurrent_v2", 1, (CUcontext *))                         \
    X(ctx_device, "cuCtxGetDevice", 1, (CUdevice *))                           \
    X(device_count, "cuDeviceGetCount", 0, (int *))                            \
    X(retain, "cuDevicePrimaryCtxRetain", 0, (CUcontext *, CUdevice))          \
    X(attribute, "cuDeviceGetAttribute", 0, (int *, int, CUdevice))            \
    X(error_name, "cuGetErrorName", 0, (CUresult, const char **))              \
    X(host_alloc, "cuMemHostAlloc", 1, (void **, size_t, unsigned))            \
    X(host_device, "cuMemHostGetDevicePointer_v2", 1,                          \
      (CUdeviceptr *, void *, unsigned))                                       \
    X(host_free, "cuMemFreeHost", 1, (void *))                                 \
    X(alloc, "cuMemAlloc_v2", 1, (CUdeviceptr *, size_t))                      \
    X(free, "cuMemFree_v2", 1, (CUdeviceptr))                                  \
    X(copy, "cuMemcpyDtoDAsync_v2", 1,                                         \
      (CUdeviceptr, CUdeviceptr, size_t, cudaStream_t))                        \
    X(copy_out, "cuMemcpyDtoHAsync_v2", 1,                                     \
      (void *, CUdeviceptr, size_t, cudaStream_t))                             \
    X(copy_in, "cuMemcpyHtoDAsync_v2", 1,                                      \
      (CUdeviceptr, const void *, size_t, cudaStream_t))                       \
    X(set, "cuMemsetD8Async", 1,                                               \
      (CUdeviceptr, unsigned char, size_t, cudaStream_t))                      \
    X(stream_new, "cuStreamCreate", 1, (cudaStream_t *, unsigned))             \
    X(stream_free, "cuStreamDestroy_v2", 1, (cudaStream_t))                    \
    X(stream_sync, "cuStreamSynchronize", 1, (cudaStream_t))                   \
    X(capturing, "cuStreamIsCapturing", 0, (cudaStream_t, int *))              \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", 0, (int *))           \
    X(module_load, "cuModuleLoadData", 0, (CUmodule *, const void *))          \
    X(module_get, "cuModuleGetFunction", 0,                                    \
      (CUfunction *, CUmodule, const char *))                                  \
    X(launch, "cuLaunchKernel", 0,                                             \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
       unsigned, cudaStream_t, void **, void **))                              \
    X(write_value, "cuStreamWriteValue32_v2", 0,                               \
      (cudaStream_t, CUdeviceptr, uint32_t, unsigned))                         \
    X(wait_value, "cuStreamWaitValue32_v2", 0,                                 \
      (cudaStream_t, CUdeviceptr, uint32_t, unsigned))

typedef struct driver {
#define X(field, name, needed, args) CUresult(*field) args;
    DRIVER_CALLS(X)
#undef X
} driver;

const char *driver_error(const driver *d, CUresult rc);

/* ---- one context --------------------------------------------------------------- */

/* Partial sums of tensors' moments, two doubles per block, for this many
 * tensors at a time. */
#define MOMENTS_BLOCKS  64
#define MOMENTS_TENSORS 256
#define MOMENTS_BYTES   ((size_t)16 * MOMENTS_BLOCKS * MOMENTS_TENSORS)

typedef struct gpu {
    const driver *d;
    CUcontext ctx;
    CUdevice device;
    uint32_t sms;
    bool kernels; /* the driver has accepted them */
    bool values;  /* streams are held by write and wait values */
    CUfunction op[NCCL_N_TYPES];
    CUfunction moments[NCCL_N_TYPES], noise[NCCL_N_TYPES]; /* floats only */
    CUdeviceptr scratch;                                   /* MOMENTS_BYTES */
    uint32_t n_scratch;                                    /* tensors so far */
    bool calibrated;
    int64_t ahead; /* ps to add to the device's clock */
    int64_t least; /* difference of the last n_seen looks */
    uint32_t n_seen;
    /* ring.h: elements in memory of the host and their address there, the
     * counter of tickets, the next element to be read; words for counts, of
     * which some are not used yet */
    _Atomic uint64_t *ring;
    CUdeviceptr ring_at, tickets;
    uint32_t ring_next;
    CUdeviceptr counts;
    uint32_t n_counts;
    struct gpu *next, *next_ring;
} gpu;

/* The state of the calling thread's current context, set up at first use. If
 * there is none: of the primary one of the device that the CUDA runtime would
 * use (cudaGetDevice), or else of device LOCAL_RANK; it does not stay current.
 * NULL: *why gives the reason. */
gpu *gpu_get(const char **why);

/* Brackets calls that need g's context; does nothing if it is current. */
bool gpu_enter(gpu *g);
void gpu_leave(gpu *g, bool entered);

/* Memory of the host that copies of streams may use; if `at` is not NULL, the
 * device's kernels, too, where it is at *at. NULL: there is none. */
void *gpu_pinned(gpu *g, size_t bytes, CUdeviceptr *at);

/* Arguments of the kernel op_T. */
typedef struct kernel_op {
    CUdeviceptr slot, count, ring, tickets;
    uint32_t gen, flags, index, n;
    kernel_fill fill[KERNEL_FILLS];
} kernel_op;

CUresult gpu_op(gpu *g, ncclDataType_t type, uint32_t blocks, cudaStream_t s,
                kernel_op *o);
CUresult gpu_launch(gpu *g, CUfunction f, uint32_t blocks, uint32_t threads,
                    cudaStream_t s, void **args);

#endif
