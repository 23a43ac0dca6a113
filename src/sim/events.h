/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the events of a simulated workload. */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include "sim/radix.h"
#include "sim/sim_workload.h"

typedef struct sim_rank sim_rank;

enum {
    SIM_EV_BATCH,
    SIM_EV_HOP,
    SIM_EV_ARRIVE,
    SIM_EV_DEFERRED,
    SIM_EV_FREE,
    SIM_EV_FLOW,
    SIM_EV_TIER
};

typedef struct sim_event {
    sc_time due;
    uint32_t kind;
    uint32_t rank;
} sim_event;

typedef struct sim_item {
    sc_time due;
    sim_event *event;
} sim_item;

typedef struct sim_bucket {
    sim_item *item;
    uint32_t n, cap;
} sim_bucket;

/* Events never move, so buckets are arrays; events of one time leave in the
 * order in which they were added. */
typedef struct sim_queue {
    radix_order order;
    uint32_t taken; /* of bucket 0 */
    sim_bucket bucket[RADIX_BUCKETS];
} sim_queue;

/* Calls that a rank schedules for itself. */
enum {
    SIM_CALL_TASK,   /* .task has ended */
    SIM_CALL_BUNDLE, /* a packet of a stream left the memory bus */
    SIM_CALL_POOL,   /* remote memory is free */
    SIM_CALL_CUSTOM, /* .task of a custom collective has ended */
    SIM_CALL_BUS     /* the shared memory bus continues */
};

typedef struct sim_call {
    struct sim_call *next;
    void *what; /* sim_stream, sim_coll_member ... */
    uint64_t size;
    uint32_t kind;
    uint32_t task; /* or flags of the kind */
} sim_call;

typedef struct sim_batch {
    sim_event e;
    sim_call *first, *last;
    struct sim_batch *next; /* open batches of the rank */
} sim_batch;

#endif
