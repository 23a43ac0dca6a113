/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - communicators: the ranks of the emulated world that they join.
 */
#ifndef NCCL_COMM_H
#define NCCL_COMM_H

#include "common/moves.h"
#include "nccl/driver.h"

#include <stdatomic.h>

/* Made by ncclRedOpCreatePreMulSum(). */
typedef struct red_op {
    bool used;
    ncclDataType_t type;
    CUdeviceptr scalar; /* on the device; 0: `value` */
    double value;
    int64_t whole; /* integers' */
} red_op;

#define COMM_RED_OPS 64

/* Device memory that a communicator keeps (reserve.h). */
typedef struct device_memory {
    struct device_memory *next;
    gpu *g;
    CUdeviceptr at;
    size_t bytes;
} device_memory;

#define COMM_SENT 16 /* sizes of buffers of which copies are kept */

struct ncclComm {
    live *l;
    gpu *g;
    uint32_t n, rank;  /* members, own position */
    uint32_t *world;   /* [n] world ranks */
    uint64_t instance; /* of live_group() */
    uint64_t number;   /* of itself, the same on all members */
    uint32_t group;    /* live.h's */
    uint32_t n_real;
    uint32_t *real; /* [n_real] places of real members */
    atomic_int refs;
    atomic_uint open;    /* eager operations that have not ended */
    atomic_bool aborted; /* aborted or revoked: its operations end at once */
    bool revoked, finalized, suspended, blocking;
    uint32_t n_splits; /* children so far */
    uint32_t min_blocks, max_blocks;
    red_op op[COMM_RED_OPS];
    device_memory *sent;     /* copies of the last buffers, by size */
    device_memory *reserved; /* in the place of NCCL's buffers */
    bool split_share;        /* its children use its buffers */
    bool shares;             /* it uses those of its parent */
    bool counted;            /* NCCL's memory is taken at all */
    uint32_t connected;      /* bits by SC_ALGO_* */
    bool *peer;    /* [n] messages in the node were received from; NULL */
    bool net_pool; /* messages went over the network */
};

/* Records a failure, whose text ncclGetLastError() returns, and reports it
 * once. As in NCCL, each thread has its last failure. */
ncclResult_t comm_fail(ncclResult_t rc, const char *fmt, ...) SC_PRINTF(2, 3);

/* ncclSuccess, or why it accepts no operation. */
ncclResult_t comm_usable(const struct ncclComm *c, const char *call);

/* Its members, of which this rank `only` counts as real, or all real ones do. */
static inline live_members comm_members(const struct ncclComm *c, bool only)
{
    return (live_members){.group = c->group,
                          .n = c->n,
                          .me = c->rank,
                          .rank = c->world,
                          .n_real = only ? 1 : c->n_real,
                          .real = only ? &c->rank : c->real};
}

void comm_hold(struct ncclComm *c);
void comm_release(struct ncclComm *c);

/* detect.c: warns about each library in the process that moves data in other
 * ways. */
void detect_bypass(live *l);
/* version.c: the version of NCCL that the library claims to be, 22705 for
 * 2.27.5. */
int version_get(void);

#endif
