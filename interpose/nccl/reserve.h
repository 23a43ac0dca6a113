/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - device memory of communicators: copies of what was sent, and as
 * much as NCCL's own buffers would take, so that a program runs out of memory
 * where it would with NCCL.
 *
 * A connection is what one rank receives from another through one channel: a
 * buffer for each of the protocols Simple, LL128 and LL. NCCL connects ranks at
 * the first operation that needs it (since 2.22; before, at creation). Numbers
 * are from NCCL 2.30's sources: src/init.cc (buffers), src/transport/p2p.cc,
 * net.cc and nvls.cc (who allocates which), src/transport/generic.cc (which
 * connections a ring and a tree have).
 */
#ifndef NCCL_RESERVE_H
#define NCCL_RESERVE_H

#include "nccl/call.h"

/* Device memory, which becomes the first of one of the communicator's lists. */
CUresult reserve_alloc(struct ncclComm *c, size_t bytes, device_memory **list);

/* What the call needs beyond what its communicator has. */
ncclResult_t reserve_for(const nccl_call *c);
/* What a communicator takes when it is created. */
ncclResult_t reserve_new(struct ncclComm *c);
/* Gives back all that a communicator has. Freeing memory waits for everything on
 * the device, also for operations that never end; so while any is in flight, it
 * is kept until a later call finds none. */
void reserve_drop(struct ncclComm *c);

#endif
