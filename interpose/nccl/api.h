/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - names, values and layouts of NCCL's header, in which this library
 * must agree with programs that were compiled with it.
 *
 * A function is defined as
 *
 *   NCCL_API(ncclResult_t, ncclCommCount, const ncclComm_t comm, int *count) {...}
 *
 * and also gets its second name, with a p in front.
 */
#ifndef NCCL_API_H
#define NCCL_API_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_API(ret, name, ...)                              \
    ret name(__VA_ARGS__);                                    \
    ret p##name(__VA_ARGS__)                                  \
        __attribute__((alias(#name), visibility("default"))); \
    __attribute__((visibility("default"))) ret name(__VA_ARGS__)

typedef struct ncclComm *ncclComm_t;
typedef struct nccl_window *ncclWindow_t;
typedef struct CUstream_st *cudaStream_t;

typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;

typedef enum ncclResult {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclTimeout = 8
} ncclResult_t;

typedef int ncclDataType_t;
typedef int ncclRedOp_t;
typedef int ncclScalarResidence_t; /* 0: on the device, 1: on the host, now */

enum {
    NCCL_INT8,
    NCCL_UINT8,
    NCCL_INT32,
    NCCL_UINT32,
    NCCL_INT64,
    NCCL_UINT64,
    NCCL_FLOAT16,
    NCCL_FLOAT32,
    NCCL_FLOAT64,
    NCCL_BFLOAT16,
    NCCL_FLOAT8E4M3,
    NCCL_FLOAT8E5M2,
    NCCL_N_TYPES
};

enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_N_OPS };

#define NCCL_UNDEF          INT_MIN
#define NCCL_NO_COLOR       (-1)
#define NCCL_MAGIC          0xcafebeefU
#define NCCL_SHRINK_ABORT   1
#define NCCL_WIN_SYMMETRIC  1
#define NCCL_VERSION_OF_ABI 23100 /* the newest version that is known here */

/* The part that is read; `size` says how much of it the program has. */
typedef struct ncclConfig {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share, traffic_class;
    const char *comm_name;
} ncclConfig_t;

typedef struct ncclSimInfo {
    size_t size;
    unsigned magic, version;
    float estimated_time; /* seconds */
} ncclSimInfo_t;

typedef struct ncclTeam {
    int n_ranks, rank, stride;
} ncclTeam_t;

/* Every public function: implemented ones, and those that only report that they
 * are not. The second column is the version that introduced it. */
#define NCCL_SUPPORTED(X)              \
    X(ncclGetVersion, 20000)           \
    X(ncclGetUniqueId, 20000)          \
    X(ncclCommInitRank, 20000)         \
    X(ncclCommInitAll, 20000)          \
    X(ncclCommInitRankConfig, 21400)   \
    X(ncclCommInitRankScalable, 22300) \
    X(ncclCommSplit, 21800)            \
    X(ncclCommShrink, 22700)           \
    X(ncclCommFinalize, 21400)         \
    X(ncclCommDestroy, 20000)          \
    X(ncclCommAbort, 20400)            \
    X(ncclCommRevoke, 22800)           \
    X(ncclCommSuspend, 22900)          \
    X(ncclCommResume, 22900)           \
    X(ncclCommMemStats, 22900)         \
    X(ncclGetErrorString, 20000)       \
    X(ncclGetLastError, 21300)         \
    X(ncclResetDebugInit, 22400)       \
    X(ncclCommGetAsyncError, 20400)    \
    X(ncclCommCount, 20000)            \
    X(ncclCommCuDevice, 20000)         \
    X(ncclCommUserRank, 20000)         \
    X(ncclMemAlloc, 21900)             \
    X(ncclMemFree, 21900)              \
    X(ncclCommRegister, 21900)         \
    X(ncclCommDeregister, 21900)       \
    X(ncclCommWindowRegister, 22700)   \
    X(ncclCommWindowDeregister, 22700) \
    X(ncclWinGetUserPtr, 22900)        \
    X(ncclRedOpCreatePreMulSum, 21100) \
    X(ncclRedOpDestroy, 21100)         \
    X(ncclReduce, 20000)               \
    X(ncclBcast, 20000)                \
    X(ncclBroadcast, 20200)            \
    X(ncclAllReduce, 20000)            \
    X(ncclReduceScatter, 20000)        \
    X(ncclAllGather, 20000)            \
    X(ncclAlltoAll, 22800)             \
    X(ncclGather, 22800)               \
    X(ncclScatter, 22800)              \
    X(ncclReduceConfig, 23100)         \
    X(ncclBroadcastConfig, 23100)      \
    X(ncclAllReduceConfig, 23100)      \
    X(ncclReduceScatterConfig, 23100)  \
    X(ncclAllGatherConfig, 23100)      \
    X(ncclAlltoAllConfig, 23100)       \
    X(ncclGatherConfig, 23100)         \
    X(ncclScatterConfig, 23100)        \
    X(ncclSend, 20700)                 \
    X(ncclRecv, 20700)                 \
    X(ncclGroupStart, 20000)           \
    X(ncclGroupEnd, 20000)             \
    X(ncclGroupSimulateEnd, 22200)     \
    X(ncclTeamWorld, 22800)            \
    X(ncclTeamLsa, 22800)              \
    X(ncclTeamRail, 22800)             \
    X(ncclTeamRankToWorld, 22800)      \
    X(ncclTeamRankToLsa, 22800)        \
    X(ncclLLA2ACalcSlots, 22800)       \
    X(ncclParamDumpAll, 23000)

#define NCCL_UNSUPPORTED(X)                    \
    X(ncclCommGetUniqueId, 22900)              \
    X(ncclCommGrow, 22900)                     \
    X(ncclPutSignal, 22900)                    \
    X(ncclSignal, 22900)                       \
    X(ncclWaitSignal, 22900)                   \
    X(ncclCommQueryProperties, 22900)          \
    X(ncclDevCommCreate, 22800)                \
    X(ncclDevCommDestroy, 22800)               \
    X(ncclGetLsaMultimemDevicePointer, 22900)  \
    X(ncclGetMultimemDevicePointer, 22900)     \
    X(ncclGetLsaDevicePointer, 22900)          \
    X(ncclGetPeerDevicePointer, 22900)         \
    X(ncclLsaBarrierCreateRequirement, 22800)  \
    X(ncclGinBarrierCreateRequirement, 22800)  \
    X(ncclGinInboxA2ACreateRequirement, 22800) \
    X(ncclGinOutboxCreateRequirement, 22800)   \
    X(ncclLLA2ACreateRequirement, 22800)       \
    X(ncclParamBind, 23000)                    \
    X(ncclParamGetI8, 23000)                   \
    X(ncclParamGetI16, 23000)                  \
    X(ncclParamGetI32, 23000)                  \
    X(ncclParamGetI64, 23000)                  \
    X(ncclParamGetU8, 23000)                   \
    X(ncclParamGetU16, 23000)                  \
    X(ncclParamGetU32, 23000)                  \
    X(ncclParamGetU64, 23000)                  \
    X(ncclParamGetStr, 23000)                  \
    X(ncclParamGet, 23000)                     \
    X(ncclParamGetParameter, 23000)            \
    X(ncclParamGetAllParameterKeys, 23000)

#endif
