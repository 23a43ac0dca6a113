/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h - data between real ranks of one communicator.
 *
 * Before an operation begins, its stream copies this rank's contribution into
 * pinned host memory. When it begins, the watching thread pushes that to the
 * others. When it ends, the thread collects theirs and composes what this rank
 * receives (common/moves.h). After the release the stream copies the result to
 * the device.
 */
#ifndef NCCL_EXCHANGE_H
#define NCCL_EXCHANGE_H

#include "common/moves.h"
#include "nccl/driver.h"

struct ncclComm;

typedef struct exchange {
    sc_coll coll;
    uint32_t root;          /* place: root, partner */
    size_t in_len, out_len; /* bytes; both 0: nothing is exchanged */
    /* a group's sends and receives: one block per member, as large as the
     * largest */
    bool merged;
    live_host data; /* blocks in pinned memory */
} exchange;

/* Pinned memory of a stream, reused by its next unit (which starts after this
 * one is read), or a captured unit's own. NULL: there is none. */
unsigned char *exchange_memory(gpu *g, cudaStream_t s, size_t bytes,
                               bool captured);

/* Called by the watching thread: the operation was posted; it has ended. */
void exchange_push(live *l, live_ticket k, const struct ncclComm *c,
                   exchange *x);
void exchange_pull(live *l, live_ticket k, const struct ncclComm *c,
                   exchange *x);
/* It was aborted. */
void exchange_drop(live *l, live_ticket k, const exchange *x);

#endif
