/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo.h - keeps results that are expensive to compute for a machine.
 *
 * A machine is immutable and shared between threads. The memo keeps results of
 * pure functions of the machine, so it never changes a result. No thread waits
 * for another: a thread that finds an entry being written computes the result
 * itself.
 */
#ifndef HW_MEMO_H
#define HW_MEMO_H

#include "hw/hw.h"

#define HW_MEMO_BYTES 1024 /* most bytes of one result */

struct hw_memo *hw_memo_new(sc_arena *a);

/* Copies the result kept under `key` (not 0) to `out`; false if there is none.
 * `memo` may be NULL. */
bool hw_memo_get(struct hw_memo *memo, uint64_t key, void *out, size_t size);

/* Keeps a copy if there is space. */
void hw_memo_put(struct hw_memo *memo, uint64_t key, const void *data,
                 size_t size);

#endif
