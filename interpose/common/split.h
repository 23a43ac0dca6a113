/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - the members of a part of a split communicator. */
#ifndef LIVE_SPLIT_H
#define LIVE_SPLIT_H

#include "common/moves.h"
#include "emu/emu_colours.h"

#pragma GCC visibility push(default)

/* Gives `mine` to the other real members and takes what each gives, in their
 * order and with this rank's own; takes no emulated time. */
typedef void live_taker(void *x, uint32_t member, const void *p, size_t len);
void live_tell_real(live *l, const live_members *m, const void *mine,
                    size_t len, live_taker *take, void *x);

/* All real members call `call`. `member` [m->n] gets the positions of the part
 * that contains this rank, by key and position; returns their number, 0 if its
 * colour is `none`. `split` is the same number on all members, and in no other
 * split. The process ends if the part cannot be known. */
uint32_t live_split(live *l, const live_members *m, const char *call,
                    uint64_t split, sc_emu_choice mine, int32_t none,
                    uint32_t *member);

#pragma GCC visibility pop

#endif
