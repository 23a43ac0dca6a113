/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the device code, as text that the driver compiles.
 *
 * Written for compute capability 5.0 and later without any newer instruction:
 * words shared with the host are read and written as volatile, with a
 * system-wide barrier between them.
 *
 *   op_T(slot, count, ring, tickets, gen, flags, index, n, fill[])
 *                     one operation of NCCL: begins, writes its data, and stays
 *                     until it has ended. All parts are optional (flags).
 *     OP_MARK         the first block writes globaltimer to slot.time, then the
 *                     generation to slot.started. The generation is `gen`; if
 *                     `count` is not 0 (a captured launch, which runs again and
 *                     again), it is gen + 1 + the number of launches before,
 *                     found by counting blocks in *count. If `tickets` is not 0,
 *                     an element of ring (KERNEL_RING of 64 bits, in memory of
 *                     the host) says that `index` has started: the lower half
 *                     is the number of the ticket and rises by 1 with each.
 *     fill[n]         the data, by all threads of the grid
 *     OP_WAIT         one thread of every block waits until slot.released has
 *                     come to the generation; without OP_MARK and with gen 0:
 *                     to slot.started
 *   moments_T(src, count, out)  sum and sum of squares of the block's share
 *                     to out[2 * block], in blocks of at most 256 threads
 *   noise_T(dst, n, moments, parts, count, k, seed)  dst += k * s * e, with the
 *                     standard deviation s of the `count` numbers of which
 *                     moments[2 * parts] are the moments, e standard normal
 */
#ifndef NCCL_KERNELS_H
#define NCCL_KERNELS_H

#include <stdint.h>

/* Threads of a block of op, as in NCCL's largest kernels. */
#define KERNEL_THREADS 640
#define KERNEL_RING    4096u /* elements */

enum { OP_MARK = 1, OP_WAIT = 2 };

/* A piece of an operation's data. copies > 0: `n` bytes of src, so many times
 * one after the other; a copy that is src itself is left out, and src 0 means
 * zeros. Otherwise dst = src * factor for n numbers of the kernel's type, and
 * times *scalar unless that is 0; power > 0: src ^ power. */
typedef struct kernel_fill {
    uint64_t dst, src;
    uint64_t n;
    uint64_t factor; /* bits of a double, or an integer */
    uint64_t scalar;
    uint32_t copies, power;
} kernel_fill;

#define KERNEL_FILLS     40u
#define KERNEL_FILL_ROOM 1920 /* bytes of them */

extern const char *const kernel_text;         /* PTX */
extern const char *const kernel_type_names[]; /* of op, by NCCL_INT8 ... */

#endif
