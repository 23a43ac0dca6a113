/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - the members of a part of a split communicator. */
#ifndef SPLIT_H
#define SPLIT_H

#include "emu/emu_colours.h"
#include "mpi/mp.h"

/* `member` [c->n] gets the positions in `c` of the part that contains this
 * rank, by key and position; returns their number, 0 if this rank is in none.
 * `split`: of live_scouts_tell(). */
uint32_t split_members(mp_comm *c, uint64_t split, sc_emu_choice mine,
                       uint32_t *member);

#endif
