/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - captured units that have started. */
#include "nccl/ring.h"

#include <pthread.h>
#include <string.h>

#define COUNTS 16384u /* words that are allocated at once */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Words of zero, without waiting for the program's streams. */
static CUdeviceptr zeros(const gpu *g, uint32_t n)
{
    const driver *d = g->d;
    CUdeviceptr at = 0;
    cudaStream_t s = NULL;
    int mode = CU_CAPTURE_RELAXED;
    if (d->capture_mode) d->capture_mode(&mode);
    bool ok =
        d->alloc(&at, n * sizeof(uint32_t)) == 0 && d->stream_new(&s, 1) == 0 &&
        d->set(at, 0, n * sizeof(uint32_t), s) == 0 && d->stream_sync(s) == 0;
    if (s) d->stream_free(s);
    if (d->capture_mode) d->capture_mode(&mode);
    return ok ? at : 0;
}

bool ring_set_up(gpu *g)
{
    const size_t bytes = KERNEL_RING * sizeof *g->ring;
    void *memory = gpu_pinned(g, bytes, &g->ring_at);
    if (!memory) return false;
    g->ring = memset(memory, 0, bytes);
    g->tickets = zeros(g, 1);
    return g->tickets != 0;
}

CUdeviceptr ring_count(gpu *g)
{
    pthread_mutex_lock(&lock);
    if (!g->n_counts) {
        g->counts = zeros(g, COUNTS);
        g->n_counts = g->counts ? COUNTS : 0;
    }
    CUdeviceptr at = 0;
    if (g->n_counts) at = g->counts + sizeof(uint32_t) * --g->n_counts;
    pthread_mutex_unlock(&lock);
    return at;
}

bool ring_read(gpu *g, uint32_t *index)
{
    uint64_t v = atomic_load_explicit(&g->ring[g->ring_next % KERNEL_RING],
                                      memory_order_acquire);
    if ((uint32_t)v != g->ring_next + 1) return false;
    g->ring_next++;
    *index = (uint32_t)(v >> 32);
    return true;
}
