/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the device code, as text that the driver compiles.
 *
 * Written for compute capability 5.0 and later without any newer instruction:
 * words shared with the host are read and written as volatile, with a
 * system-wide barrier between them.
 *
 *   mark(slot, gen)   one thread: globaltimer to slot.time, then gen to
 *                     slot.started; gen 0: one more than it was (a captured
 *                     launch, which runs again and again)
 *   hold(slot, gen)   one thread of every block waits until slot.released has
 *                     come to gen; gen 0: to slot.started
 *   spread(dst, src, bytes, n)   n copies of src one after the other; where
 *                     one of them is src itself it is left out
 *   moments_T(src, count, out)  sum and sum of squares of the block's share
 *                     to out[2 * block], in blocks of at most 256 threads
 *   scale_T(dst, src, count, factor, scalar, power)   dst = src * factor, and
 *                     times *scalar unless that is 0; power > 0: src ^ power
 *   noise_T(dst, n, moments, parts, count, k, seed)  dst += k * s * e, with the
 *                     standard deviation s of the `count` numbers of which
 *                     moments[2 * parts] are the moments, e standard normal
 */
#ifndef NCCL_KERNELS_H
#define NCCL_KERNELS_H

extern const char *const kernel_text;         /* PTX */
extern const char *const kernel_type_names[]; /* "i8" ..., by NCCL_INT8 ... */

#endif
