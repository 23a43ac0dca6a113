/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - communicators: which ranks of the emulated world they join.
 */
#ifndef NCCL_COMM_H
#define NCCL_COMM_H

#include "common/live.h"
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

/* Device memory with a copy of what was last sent, by size. */
typedef struct sent_copy {
    size_t bytes;
    CUdeviceptr at;
} sent_copy;

#define COMM_SENT 16

struct ncclComm {
    live *l;
    gpu *g;
    uint32_t n, rank; /* members, own position */
    uint32_t *world;  /* [n] world ranks */
    uint32_t group;   /* live.h's */
    uint32_t n_real;
    uint32_t *real; /* [n_real] places of real members; NULL: only this one */
    atomic_int refs;
    atomic_uint open;    /* eager operations that have not ended */
    atomic_bool aborted; /* or revoked: its operations end at once */
    bool revoked, finalized, suspended, blocking;
    uint32_t n_splits; /* children so far */
    uint32_t min_blocks, max_blocks;
    red_op op[COMM_RED_OPS];
    sent_copy sent[COMM_SENT];
    uint32_t n_sent;
};

/* A failure: its text stays for ncclGetLastError(), and is told once.  The
 * calling thread's last failure, as NCCL has it. */
ncclResult_t comm_fail(ncclResult_t rc, const char *fmt, ...) SC_PRINTF(2, 3);

/* ncclSuccess, or why no operation can be given to it. */
ncclResult_t comm_usable(const struct ncclComm *c, const char *call);

void comm_hold(struct ncclComm *c);
void comm_release(struct ncclComm *c);

#endif
