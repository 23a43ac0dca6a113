/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - which captured units have started, in a ring that the device writes:
 * the host need not look at those of graphs that do not run.
 *
 * As a unit that has started waits for its release, there are never more unread
 * elements than kernels that run at once, of which the ring has many more.
 */
#ifndef NCCL_RING_H
#define NCCL_RING_H

#include "nccl/driver.h"

/* At the set-up of a context, which is current. False: no memory. */
bool ring_set_up(gpu *g);
/* A word of zero in device memory for a captured launch to count its blocks; 0:
 * no memory. */
CUdeviceptr ring_count(gpu *g);
/* By the watching thread: the index of the next unit that has started. */
bool ring_read(gpu *g, uint32_t *index);

#endif
