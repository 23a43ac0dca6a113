/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - what of CUDA's driver the tests use: declarations that fit the real
 * libcuda.so.1 and the mock, and a few functions of the mock's own.
 */
#ifndef MOCK_CUDA_H
#define MOCK_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

#define CUDA_CALLS(X)                                                          \
    X(cuInit, (unsigned))                                                      \
    X(cuDeviceGet, (CUdevice *, int))                                          \
    X(cuDeviceGetCount, (int *))                                               \
    X(cuDeviceGetAttribute, (int *, int, CUdevice))                            \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                       \
    X(cuCtxGetCurrent, (CUcontext *))                                          \
    X(cuCtxSetCurrent, (CUcontext))                                            \
    X(cuCtxPushCurrent_v2, (CUcontext))                                        \
    X(cuCtxPopCurrent_v2, (CUcontext *))                                       \
    X(cuCtxGetDevice, (CUdevice *))                                            \
    X(cuGetErrorName, (CUresult, const char **))                               \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                  \
    X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned))                    \
    X(cuMemFree_v2, (CUdeviceptr))                                             \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                             \
    X(cuMemFreeHost, (void *))                                                 \
    X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned))         \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))      \
    X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))           \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))     \
    X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                    \
    X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                          \
    X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))         \
    X(cuStreamCreate, (CUstream *, unsigned))                                  \
    X(cuStreamDestroy_v2, (CUstream))                                          \
    X(cuStreamSynchronize, (CUstream))                                         \
    X(cuStreamQuery, (CUstream))                                               \
    X(cuStreamWaitEvent, (CUstream, CUevent, unsigned))                        \
    X(cuStreamWriteValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned))    \
    X(cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned))     \
    X(cuStreamIsCapturing, (CUstream, int *))                                  \
    X(cuThreadExchangeStreamCaptureMode, (int *))                              \
    X(cuStreamBeginCapture_v2, (CUstream, int))                                \
    X(cuStreamEndCapture, (CUstream, CUgraph *))                               \
    X(cuGraphInstantiateWithFlags,                                             \
      (CUgraphExec *, CUgraph, unsigned long long))                            \
    X(cuGraphLaunch, (CUgraphExec, CUstream))                                  \
    X(cuEventCreate, (CUevent *, unsigned))                                    \
    X(cuEventRecord, (CUevent, CUstream))                                      \
    X(cuEventElapsedTime, (float *, CUevent, CUevent))                         \
    X(cuModuleLoadData, (CUmodule *, const void *))                            \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))             \
    X(cuLaunchKernel,                                                          \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
       unsigned, CUstream, void **, void **))

#define X(name, args) CUresult name args;
CUDA_CALLS(X)
#undef X

/* ---- the mock's own ----------------------------------------------------------------- */

/* Time of the machine, ns: virtual unless MOCK_REAL is set. */
int64_t mock_now(void);
/* A kernel of the program's that takes so long. */
CUresult mock_work(CUstream s, int64_t ns);
/* The same by so many blocks, each with a multiprocessor of its own. */
CUresult device_work(CUstream s, int64_t ns, unsigned blocks);
/* Bytes of device memory that are allocated (MOCK_MEMORY: as many there are). */
size_t mock_memory(void);
/* Kernels so far. */
unsigned mock_launches(void);
/* Of the last kernel that waits. */
unsigned mock_hold_blocks(void);
/* The host's program computes. */
void mock_host_work(int64_t ns);
int64_t mock_event_time(CUevent e);

#endif
