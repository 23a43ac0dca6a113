/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock.h - a CUDA driver without a device, for tests only.
 *
 * A stream is a queue of items, each of which the machine does when it is the
 * first of its queue and its time has come.  Time is virtual: it stands still
 * while any thread of the process runs, and goes on to the next end of a
 * kernel or of a sleep when all are blocked in the mock (which takes the place
 * of libc's clocks, sleeps and semaphores for that).  Kernels are recognised by
 * name and done in C; but for mock_work() they take no time.
 */
#ifndef MOCK_H
#define MOCK_H

#include "mock/cuda.h"

#include <pthread.h>
#include <stdbool.h>

typedef enum item_kind {
    ITEM_WORK,   /* takes `ns` */
    ITEM_RECORD, /* event */
    ITEM_WAIT,   /* event, count */
    ITEM_KERNEL, /* done at once, or when it lets the stream go on */
    ITEM_COPY,
    ITEM_SET,
    ITEM_WRITE_VALUE,
    ITEM_WAIT_VALUE
} item_kind;

#define KERNEL_ARGS 9
#define KERNEL_BLOB 2048 /* the last argument may be an array */

typedef struct item {
    struct item *next;
    item_kind kind;
    bool begun;
    int64_t ns, end;
    CUevent event;
    uint64_t count;
    CUfunction f;
    uint64_t arg[KERNEL_ARGS];
    unsigned char *blob;  /* freed with the item */
    uint32_t blocks, gen; /* gen: of an operation that has begun */
    CUdeviceptr to, from;
    size_t bytes;
    uint32_t value;
    uint32_t lane; /* of a captured one: which of the graph's streams */
} item;

struct CUstream_st {
    struct CUstream_st *next;
    item *first, *last;
    struct CUgraph_st *capture;
    uint32_t lane;
};

struct CUevent_st {
    uint64_t recorded, done; /* how often */
    int64_t time;
    struct CUgraph_st *capture; /* recorded in it */
};

struct CUfunc_st {
    char name[64];
    uint32_t n_args;
    uint16_t size[KERNEL_ARGS];
};

/* ---- machine.c --------------------------------------------------------------------- */

extern pthread_mutex_t mock_lock;
bool mock_virtual(void);
/* Under the lock. */
int64_t mock_time(void);
void mock_move(void); /* all that can be done now */
/* The calling thread waits until ready() says so; under the lock. */
void mock_block(bool (*ready)(void *), void *arg, int64_t wake);
/* Under the lock: threads whose wait is over go on. */
void mock_wake(void);

/* ---- stream.c ------------------------------------------------------------------------ */

void stream_push(CUstream s, const item *i); /* captured or queued */
CUstream stream_of(CUstream s);              /* NULL: the default one */
CUstream stream_new(void);
void stream_sync_all(void);

/* ---- kernels.c ----------------------------------------------------------------------- */

/* Does it; false: the stream has to wait. */
bool kernel_run(item *i);

#endif
