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

#define NCCL_UNDEF         INT_MIN
#define NCCL_NO_COLOR      (-1)
#define NCCL_MAGIC         0xcafebeefU
#define NCCL_SHRINK_ABORT  1
#define NCCL_WIN_SYMMETRIC 1

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

#endif
