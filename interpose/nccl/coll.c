/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - the collectives as programs call them.
 */
#include "nccl/call.h"

/* Per-call configuration, the part that is read. */
typedef struct ncclCollConfig {
    size_t size;
    unsigned magic, version;
    void *ext;
    int min_ctas, max_ctas;
} ncclCollConfig_t;

uint64_t call_bytes(const nccl_call *c)
{
    uint64_t share = c->count * call_type_size(c->type);
    if (c->bytes) return c->bytes;
    switch (c->coll) {
    case SC_ALL_GATHER:
    case SC_REDUCE_SCATTER:
    case SC_ALL_TO_ALL:
    case SC_GATHER:
    case SC_SCATTER: return share * c->comm->n;
    default: return share;
    }
}

CUdeviceptr call_source(const nccl_call *c)
{
    bool leaf = c->coll == SC_BROADCAST && c->peer != c->comm->rank;
    return leaf ? c->recv : c->send;
}

bool call_reduces(const nccl_call *c)
{
    return c->coll == SC_ALL_REDUCE || c->coll == SC_REDUCE ||
           c->coll == SC_REDUCE_SCATTER;
}

static ncclResult_t check(const nccl_call *c, const char *name)
{
    const struct ncclComm *m = c->comm;
    ncclResult_t rc = comm_usable(m, name);
    if (rc) return rc;
    if (!call_type_size(c->type))
        return comm_fail(ncclInvalidArgument, "%s: no data type %d", name,
                         c->type);
    if (c->peer >= m->n)
        return comm_fail(ncclInvalidArgument, "%s: rank %d of %u", name,
                         (int)c->peer, m->n);
    if (!call_reduces(c)) return ncclSuccess;
    bool own = c->op >= NCCL_N_OPS && c->op < NCCL_N_OPS + COMM_RED_OPS &&
               m->op[c->op - NCCL_N_OPS].used;
    if (c->op < 0 || (c->op >= NCCL_N_OPS && !own))
        return comm_fail(ncclInvalidArgument, "%s: no reduction %d", name,
                         c->op);
    if (own && m->op[c->op - NCCL_N_OPS].type != c->type)
        return comm_fail(ncclInvalidArgument,
                         "%s: the reduction is for another data type", name);
    return ncclSuccess;
}

static ncclResult_t submit(nccl_call c, const char *name)
{
    ncclResult_t rc = check(&c, name);
    if (!rc && c.count) rc = call_submit(&c, name);
    return group_note(rc);
}

static ncclResult_t submit_config(nccl_call c, const ncclCollConfig_t *f,
                                  const char *name)
{
    if (f && f->magic != NCCL_MAGIC)
        return group_note(comm_fail(ncclInvalidArgument,
                                    "%s: a configuration was not initialized",
                                    name));
    if (f && f->max_ctas > 0) c.max_blocks = (uint32_t)f->max_ctas;
    return submit(c, name);
}

#define AT(p) ((CUdeviceptr)(uintptr_t)(p))

/* Both forms of a collective: arguments ARGS, from which CALL is made. */
#define COLLECTIVE(NAME, CALL, ...)                                    \
    NCCL_API(ncclResult_t, NAME, __VA_ARGS__, ncclComm_t comm,         \
             cudaStream_t stream)                                      \
    {                                                                  \
        return submit((nccl_call)CALL, #NAME);                         \
    }                                                                  \
    NCCL_API(ncclResult_t, NAME##Config, __VA_ARGS__, ncclComm_t comm, \
             cudaStream_t stream, const ncclCollConfig_t *config)      \
    {                                                                  \
        return submit_config((nccl_call)CALL, config, #NAME "Config"); \
    }

#define CALL_OF(COLL, OP, PEER)                                                \
    {                                                                          \
        .coll = COLL, .comm = comm, .send = AT(send), .recv = AT(recv),        \
        .count = count, .type = type, .op = OP, .peer = PEER, .stream = stream \
    }

COLLECTIVE(ncclAllReduce, CALL_OF(SC_ALL_REDUCE, op, 0), const void *send,
           void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op)
COLLECTIVE(ncclReduceScatter, CALL_OF(SC_REDUCE_SCATTER, op, 0),
           const void *send, void *recv, size_t count, ncclDataType_t type,
           ncclRedOp_t op)
COLLECTIVE(ncclAllGather, CALL_OF(SC_ALL_GATHER, 0, 0), const void *send,
           void *recv, size_t count, ncclDataType_t type)
COLLECTIVE(ncclAlltoAll, CALL_OF(SC_ALL_TO_ALL, 0, 0), const void *send,
           void *recv, size_t count, ncclDataType_t type)
COLLECTIVE(ncclReduce, CALL_OF(SC_REDUCE, op, (uint32_t)root), const void *send,
           void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
           int root)
COLLECTIVE(ncclBroadcast, CALL_OF(SC_BROADCAST, 0, (uint32_t)root),
           const void *send, void *recv, size_t count, ncclDataType_t type,
           int root)
COLLECTIVE(ncclGather, CALL_OF(SC_GATHER, 0, (uint32_t)root), const void *send,
           void *recv, size_t count, ncclDataType_t type, int root)
COLLECTIVE(ncclScatter, CALL_OF(SC_SCATTER, 0, (uint32_t)root),
           const void *send, void *recv, size_t count, ncclDataType_t type,
           int root)

NCCL_API(ncclResult_t, ncclBcast, void *buffer, size_t count,
         ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    void *send = buffer, *recv = buffer;
    return submit((nccl_call)CALL_OF(SC_BROADCAST, 0, (uint32_t)root),
                  "ncclBcast");
}

NCCL_API(ncclResult_t, ncclSend, const void *send, size_t count,
         ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    void *recv = NULL;
    return submit((nccl_call)CALL_OF(SC_SEND, 0, (uint32_t)peer), "ncclSend");
}

NCCL_API(ncclResult_t, ncclRecv, void *recv, size_t count, ncclDataType_t type,
         int peer, ncclComm_t comm, cudaStream_t stream)
{
    void *send = NULL;
    return submit((nccl_call)CALL_OF(SC_RECV, 0, (uint32_t)peer), "ncclRecv");
}

/* ---- reductions of the program's own ------------------------------------------------ */

NCCL_API(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar,
         ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm)
{
    ncclResult_t rc = comm_usable(comm, "ncclRedOpCreatePreMulSum");
    if (rc) return rc;
    if (!op || !scalar || !call_type_size(type) || residence < 0 ||
        residence > 1)
        return comm_fail(ncclInvalidArgument,
                         "ncclRedOpCreatePreMulSum: no such scalar");
    int i = 0;
    while (i < COMM_RED_OPS && comm->op[i].used) i++;
    if (i == COMM_RED_OPS)
        return comm_fail(ncclInvalidUsage, "more than %d reductions at once",
                         COMM_RED_OPS);
    red_op *o = &comm->op[i];
    *o = (red_op){.used = true, .type = type};
    if (residence == 0) {
        o->scalar = AT(scalar);
    } else {
        o->value = call_scalar(scalar, type);
        o->whole = (int64_t)o->value;
    }
    *op = NCCL_N_OPS + i;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm)
{
    int i = op - NCCL_N_OPS;
    if (!comm || i < 0 || i >= COMM_RED_OPS || !comm->op[i].used)
        return comm_fail(ncclInvalidArgument, "ncclRedOpDestroy: no reduction "
                                              "of the program's own");
    comm->op[i].used = false;
    return ncclSuccess;
}
