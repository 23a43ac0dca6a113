/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - operations on streams, and the host thread that handles them.
 *
 * What a stream does at one place (one operation, or those of a group) is a
 * unit. It has a slot of 64 bytes that host and device share: the stream writes
 * there that it has reached the unit, and continues when the host has written
 * that the unit has ended. The thread posts a unit's operations with the time
 * at which the stream arrived, follows what live_poll() returns, and releases.
 *
 * There are two ways to hold a stream, with one protocol each:
 *
 * kernels: `started` counts up (a generation per launch), and `released`
 * follows; a captured unit runs again with every replay of its graph.
 *
 * values: `started` becomes 1 and the host resets it; `released` becomes 1 and
 * the stream resets it.
 */
#ifndef NCCL_WATCH_H
#define NCCL_WATCH_H

#include "nccl/exchange.h"

#include <stdatomic.h>

typedef struct nccl_slot {
    _Atomic uint64_t time;     /* globaltimer, ns */
    _Atomic uint32_t started;  /* by the device */
    _Atomic uint32_t released; /* by the host */
    uint8_t rest[48];
} nccl_slot;

typedef struct unit_op {
    live_op op;
    struct ncclComm *comm; /* counted */
    live_ticket ticket;
    sc_time post;
    bool flying;
    exchange x;
} unit_op;

struct queue;

typedef struct unit {
    struct unit *next;
    struct unit *next_active;  /* started, not released */
    struct unit *next_started; /* in the same look, not before it */
    sc_time reached;           /* by the stream, since the last release */
    struct queue *queue;
    gpu *g;
    cudaStream_t stream;
    nccl_slot *slot;
    CUdeviceptr at; /* of the slot */
    /* eager: the value to which the slot counts; captured: the last one seen */
    uint32_t gen;
    bool captured;       /* runs once per replay */
    uint32_t index;      /* of a captured one, see ring.h */
    CUdeviceptr count;   /* the same: counts its blocks; 0 with values */
    uint64_t key;        /* of the stream */
    bool active;         /* see next_active */
    atomic_bool dropped; /* its launches failed */
    uint32_t left;       /* operations in flight */
    uint32_t blocks;     /* of the stream's kernel, which waits for the end */
    uint32_t n;
    unit_op op[];
} unit;

/* Starts the thread at the first call. False: *why. */
bool watch_start(live *l, const char **why);

/* What distinguishes streams: handles, except that each thread has a default
 * stream of its own (cudaStreamPerThread). */
uint64_t watch_stream_key(cudaStream_t s);
/* A unit for n operations; NULL: no memory. */
unit *watch_alloc(gpu *g, cudaStream_t s, uint32_t n, bool captured);
/* Call before its launches: the thread handles it from now on, and frees it.
 * Units of one stream are queued in the order of their launches. Never waits
 * for the thread. */
void watch_queue(unit *u);
/* Its launches failed: it will never start. */
void watch_drop(unit *u);

/* Whether nothing that was launched on a stream, and no captured operation that
 * has started, waits for its end. */
bool watch_idle(void);

/* Ends every operation of the communicator now, and all later ones at once. */
void watch_abort(struct ncclComm *c);
/* Compares the device's clock with live_now(), by a few launches of mark. */
bool watch_calibrate(live *l, gpu *g);

#endif
