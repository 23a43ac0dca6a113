/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scouts.h - copies of the program that find out what emulated ranks would say.
 *
 * Before a program can know its rank, a process is forked from it that waits
 * (the camp). When something depends on what emulated ranks say - the colours
 * of a split - the camp forks a copy for each of them, which runs the program
 * as that rank, alone, by the virtual clock and without input or output, up to
 * its answer. All splits that it comes by on its way are remembered.
 *
 * A split is a number that is the same on all its members.
 */
#ifndef LIVE_SCOUTS_H
#define LIVE_SCOUTS_H

#include "common/live.h"
#include "emu/emu_colours.h"

#pragma GCC visibility push(default)

/* Makes the camp, if some ranks are emulated. It returns again in every
 * scout, where the process's rank is not open yet (live_get()). */
void live_scouts_camp(void);

/* This rank's own choice; a scout that was sent for it ends here. */
void live_scouts_tell(const live *l, uint64_t split, sc_emu_choice mine);
/* What the world's ranks `rank` [n] choose; choices of ranks that could not be
 * asked are not known. */
void live_scouts_ask(uint64_t split, const uint32_t *rank, uint32_t n,
                     sc_emu_choice *out);

/* All choices at a split, for the scouts of later ones. */
void live_scouts_keep(uint64_t split, const sc_emu_choice *all, uint32_t n);
bool live_scouts_kept(uint64_t split, sc_emu_choice *all, uint32_t n);

#pragma GCC visibility pop

#endif
