/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_alloc.h - a caching allocator as PyTorch's: sizes and addresses, no
 * memory.
 *
 * Requests are rounded to 512 bytes.  Up to 1 MiB they come from segments of 2
 * MiB, below 10 MiB from segments of 20 MiB, beyond from segments of their own
 * size rounded to 2 MiB; small and large ones are never mixed.  The smallest
 * free block that is large enough is taken, of equals the one of the lowest
 * address, and split if the rest can be used: at least 512 bytes for small
 * requests, more than 1 MiB for large ones.  A freed block is merged with its
 * free neighbours and kept.  Entirely free segments are returned only if a new
 * segment would not fit on the device.
 */
#ifndef SIM_MEMORY_ALLOC_H
#define SIM_MEMORY_ALLOC_H

#include "base/base.h"

typedef struct alloc_block {
    uint64_t address, size;
    uint32_t before, after; /* neighbours in the segment, or ALLOC_NONE */
    uint32_t left, right;   /* in the tree of free blocks */
    uint32_t weight;        /* of the tree's balance; heavier is higher */
    bool free, small;
} alloc_block;

#define ALLOC_NONE UINT32_MAX

typedef struct alloc {
    sc_arena *a;
    alloc_block *block; /* [n] */
    uint32_t n, cap;
    uint32_t unused;  /* unused records, linked by .after */
    uint32_t tree[2]; /* free blocks by size and address: large, small */
    uint64_t end;     /* first address that no segment has had */
    uint64_t live, reserved;
    uint64_t limit; /* limit of `reserved`; segments beyond it are still
                       allocated */
} alloc;

void alloc_init(alloc *x, sc_arena *a, uint64_t limit);

uint64_t alloc_rounded(uint64_t bytes);

/* A block for `bytes` > 0; ALLOC_NONE when out of memory. */
uint32_t alloc_take(alloc *x, uint64_t bytes);
void alloc_give(alloc *x, uint32_t block);

#endif
