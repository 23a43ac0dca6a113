/* SPDX-License-Identifier: Apache-2.0 */
/* slot.c - slots of 64 bytes that host and device share. */
#include "nccl/slot.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 512 /* of one piece of memory */
/* This many slots rest before one is reused: the last blocks of a kernel may
 * not have seen its slot's release yet. */
#define RESTING 128

typedef struct piece {
    struct piece *next;
    nccl_slot *slot;
    CUdeviceptr at;
} piece;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static piece *_Atomic pieces;
static nccl_slot **ring; /* ring of free slots, allocated at the front */
static uint32_t front, n_free, room;

/* Room for all slots, so that freeing one can't fail. */
static bool widen(uint32_t total)
{
    nccl_slot **larger = malloc(total * sizeof *larger);
    if (!larger) return false;
    for (uint32_t i = 0; i < n_free; i++) larger[i] = ring[(front + i) % room];
    free(ring);
    ring = larger;
    front = 0;
    room = total;
    return true;
}

static bool grow(gpu *g)
{
    const size_t bytes = SLOTS * sizeof(nccl_slot);
    piece *p = calloc(1, sizeof *p);
    if (p) p->slot = gpu_pinned(g, bytes, &p->at);
    if (!p || !p->slot) {
        free(p);
        return false;
    }
    memset(p->slot, 0, bytes);
    pthread_mutex_lock(&lock);
    if (!widen(room + SLOTS)) {
        pthread_mutex_unlock(&lock);
        g->d->host_free(p->slot);
        free(p);
        return false;
    }
    p->next = pieces;
    pieces = p;
    for (uint32_t i = 0; i < SLOTS; i++)
        ring[(front + n_free++) % room] = &p->slot[i];
    pthread_mutex_unlock(&lock);
    return true;
}

static CUdeviceptr address(const nccl_slot *s)
{
    for (const piece *p = pieces; p; p = p->next)
        if (s >= p->slot && s < p->slot + SLOTS)
            return p->at + (CUdeviceptr)((s - p->slot) * (ptrdiff_t)sizeof *s);
    return 0;
}

nccl_slot *slot_alloc(gpu *g, CUdeviceptr *at)
{
    nccl_slot *s = NULL;
    pthread_mutex_lock(&lock);
    if (n_free < RESTING) {
        pthread_mutex_unlock(&lock);
        grow(g);
        pthread_mutex_lock(&lock);
    }
    if (n_free) {
        s = ring[front];
        front = (front + 1) % room;
        n_free--;
        *at = address(s);
    }
    pthread_mutex_unlock(&lock);
    return s;
}

void slot_free(nccl_slot *s)
{
    pthread_mutex_lock(&lock);
    ring[(front + n_free++) % room] = s;
    pthread_mutex_unlock(&lock);
}

void slot_release_all(void)
{
    for (piece *p = pieces; p; p = p->next)
        for (uint32_t i = 0; i < SLOTS; i++)
            atomic_store(&p->slot[i].released, INT32_MAX);
}
