/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roll.h - which real ranks have come to a communicator, in the file `nccl` of
 * the run's folder: a record per rank and communicator, appended.
 */
#ifndef NCCL_ROLL_H
#define NCCL_ROLL_H

#include "nccl/api.h"
#include "nccl/member.h"

#define ROLL_MOST 256 /* others that are told of */

void roll_sign(const ncclUniqueId *id, uint32_t n, uint32_t place,
               uint32_t rank);
/* The others that have come with this id. */
uint32_t roll_read(const ncclUniqueId *id, uint32_t n, uint32_t rank,
                   member_at out[ROLL_MOST]);

#endif
