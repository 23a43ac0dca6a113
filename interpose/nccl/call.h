/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - a collective as the program called it, on its way to a stream.
 */
#ifndef NCCL_CALL_H
#define NCCL_CALL_H

#include "nccl/comm.h"
#include "nccl/exchange.h"

typedef struct nccl_call {
    sc_coll coll;
    struct ncclComm *comm;
    CUdeviceptr send, recv;
    /* as in the call: elements of one member's share if there are shares */
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    uint32_t peer; /* place: root, partner; unused elsewhere */
    cudaStream_t stream;
    uint32_t max_blocks; /* bytes of this call alone; 0: of the communicator */
    /* exchange of all with all that another call of the group represents */
    bool part;
    uint64_t bytes; /* bytes of that exchange (0: by `count`) */
    exchange x;
} nccl_call;

size_t call_type_size(ncclDataType_t type); /* 0: no such type */
/* A number of that type in host memory. */
double call_scalar(const void *at, ncclDataType_t type);
bool call_reduces(const nccl_call *c);
/* The buffer of its contribution. */
CUdeviceptr call_source(const nccl_call *c);
/* nccl-tests' V, of all members together for gather and scatter. */
uint64_t call_bytes(const nccl_call *c);

/* ---- group.c ------------------------------------------------------------- */

/* Launches the call, or keeps it until the group ends. */
ncclResult_t call_submit(const nccl_call *c, const char *name);
/* Returns rc. If it is a failure, the calling thread's open group fails: it
 * launches nothing and ncclGroupEnd() returns the first one. */
ncclResult_t group_note(ncclResult_t rc);

/* ---- launch.c ------------------------------------------------------------ */

/* Launches all at once; calls on one stream become one unit. */
ncclResult_t call_launch(nccl_call *call, uint32_t n);

/* ---- pieces.c: what a stream does for a unit ----------------------------- */

/* One kernel marks the begin, writes all pieces of data and waits for the end.
 * There are more if they do not fit into one, or if something else has to be
 * launched in between. */
typedef struct pieces {
    gpu *g;
    cudaStream_t stream;
    uint32_t blocks; /* of a kernel that waits */
    bool waits;      /* marks and waits; else only data */
    bool begun;      /* marked */
    bool typed;      /* has numbers of this type */
    ncclDataType_t type;
    kernel_op op;
} pieces;

/* Numbers of a type that are scaled (f->copies 0). */
CUresult pieces_scale(pieces *p, ncclDataType_t type, const kernel_fill *f);
/* `n` copies of `bytes`, one after the other; from 0: zeros. */
CUresult pieces_copy(pieces *p, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                     uint32_t n);
/* Launches what has been collected, and the mark, without waiting. */
CUresult pieces_flush(pieces *p);
/* Launches the rest, and waits. */
CUresult pieces_end(pieces *p);

/* ---- data.c: the contents of buffers afterwards -------------------------- */

/* Adds its data movement; `all` [n] are the calls of the group, which include
 * c. */
CUresult data_fill(const nccl_call *c, const nccl_call *all, uint32_t n,
                   pieces *p);

/* ---- exchange.c: between real ranks -------------------------------------- */

/* Fills c->x except for its address; returns its size there, 0: nothing. */
size_t exchange_plan(nccl_call *c);
/* Returns the same. */
size_t exchange_place(nccl_call *c, unsigned char *at);
/* The call receives its data from there instead of data_fill(). */
bool exchange_fills(const nccl_call *c);
/* Launched in the stream before its begin and after its end. */
CUresult exchange_out(const nccl_call *c);
CUresult exchange_in(const nccl_call *c);

/* ---- price.c ------------------------------------------------------------- */

/* Blocks that NCCL's kernel would occupy; at least 1. */
uint32_t price_blocks(const nccl_call *c);
/* Seconds that it would take alone; 0: unknown. */
double price_seconds(const nccl_call *c);
/* Of sc_algorithms(); -1: unknown. */
int price_algorithm(const nccl_call *c);
/* Where the members are; only with a cluster. */
sc_place price_place(const struct ncclComm *m);
/* Channels of an operation of this size, by `algorithm`, or the best one if it
 * is -1; 0: it is not possible, or the price is unknown. */
uint32_t price_channels(const struct ncclComm *m, sc_coll coll, double bytes,
                        int algorithm, sc_coll_price *out);

#endif
