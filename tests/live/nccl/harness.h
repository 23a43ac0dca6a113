/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - one real rank over the mock driver: its run folder, the library
 * under test, and NCCL's functions in it.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include "mock/cuda.h"
#include "nccl/api.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                \
    do {                                                        \
        if (x) break;                                           \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
        finish(1);                                              \
    } while (0)
#define OK(x)         CHECK((x) == 0)
#define NEAR(a, b, d) check_near(__FILE__, __LINE__, #a, a, b, d)

void check_near(const char *file, int line, const char *what, double a,
                double b, double d);
/* The run's folder goes; exit. */
void finish(int rc) __attribute__((noreturn));

typedef struct setup {
    uint32_t world, rank;
    const char *model; /* of alpha-beta; NULL: 10 us and 1 GB/s */
    const char *more;  /* lines of emulate.yml */
    const char *cluster;
} setup;

/* The library, loaded under these options. */
void start(const setup *s);

/* A function of the library, or of one that it has loaded. */
void find(const char *name, void *out);

#define NCCL_USED(X)                                                           \
    X(GetVersion, (int *))                                                     \
    X(GetUniqueId, (ncclUniqueId *))                                           \
    X(CommInitRank, (ncclComm_t *, int, ncclUniqueId, int))                    \
    X(CommInitAll, (ncclComm_t *, int, const int *))                           \
    X(CommInitRankConfig,                                                      \
      (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *))                  \
    X(CommSplit, (ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *))         \
    X(CommShrink, (ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int)) \
    X(CommFinalize, (ncclComm_t))                                              \
    X(CommDestroy, (ncclComm_t))                                               \
    X(CommAbort, (ncclComm_t))                                                 \
    X(CommRevoke, (ncclComm_t, int))                                           \
    X(CommGetAsyncError, (ncclComm_t, ncclResult_t *))                         \
    X(CommCount, (ncclComm_t, int *))                                          \
    X(CommUserRank, (ncclComm_t, int *))                                       \
    X(CommCuDevice, (ncclComm_t, int *))                                       \
    X(CommMemStats, (ncclComm_t, int, uint64_t *))                             \
    X(RedOpCreatePreMulSum, (ncclRedOp_t *, void *, int, int, ncclComm_t))     \
    X(AllReduce,                                                               \
      (const void *, void *, size_t, int, int, ncclComm_t, CUstream))          \
    X(ReduceScatter,                                                           \
      (const void *, void *, size_t, int, int, ncclComm_t, CUstream))          \
    X(AllGather, (const void *, void *, size_t, int, ncclComm_t, CUstream))    \
    X(AlltoAll, (const void *, void *, size_t, int, ncclComm_t, CUstream))     \
    X(Broadcast,                                                               \
      (const void *, void *, size_t, int, int, ncclComm_t, CUstream))          \
    X(Send, (const void *, size_t, int, int, ncclComm_t, CUstream))            \
    X(Recv, (void *, size_t, int, int, ncclComm_t, CUstream))                  \
    X(GroupStart, (void))                                                      \
    X(GroupEnd, (void))                                                        \
    X(GroupSimulateEnd, (ncclSimInfo_t *))                                     \
    X(CommGrow, (void))                                                        \
    X(MemAlloc, (void **, size_t))                                             \
    X(MemFree, (void *))

typedef struct nccl_calls {
#define X(name, args) ncclResult_t(*name) args;
    NCCL_USED(X)
#undef X
    const char *(*GetLastError)(ncclComm_t);
} nccl_calls;

extern nccl_calls nccl;

ncclComm_t comm_of(int n, int rank);
void *device(size_t bytes); /* zeroed */
CUstream stream(void);
CUevent event(void);

#endif
