/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_colours.h - colours and keys of all members of a communicator that is
 * split, from those of as few members as tell them.
 *
 * Programs mostly split by arithmetic on the position i: one number per
 * member, base + scale * f(i) with f one of (i / a) % b, min(i / a, b), i * b /
 * n; two parts (i < k, or f(i) = c and all others); all members that agree in
 * two of three coordinates of a grid. The first and last members, powers of two
 * and those around the middle are asked, because programs give them other tasks
 * than their neighbours. While more than one such rule gives the
 * numbers that are known, a member is asked on which they disagree; then some
 * at random. If no rule is left, all are asked. A rule can hide another member
 * that follows none. If members that could not be asked leave several rules, it
 * is the first one with parts of equal size.
 */
#ifndef SC_EMU_COLOURS_H
#define SC_EMU_COLOURS_H

#include "base/arena.h"
#include "base/err.h"

/* Up to so many members are all asked. */
#define SC_EMU_ASK_ALL 64u

typedef struct sc_emu_choice {
    int32_t colour, key; /* colour: or the library's number for none */
    bool known;
} sc_emu_choice;

/* Fills all[at[i]] of those of the positions `at` [n] that can be told. */
typedef void sc_emu_ask(void *x, const uint32_t *at, uint32_t n,
                        sc_emu_choice *all);

typedef struct sc_emu_colours_found {
    uint32_t n_asked;
    uint32_t n_silent; /* asked, but could not be told */
    uint32_t n_ruled;  /* taken from a rule */
} sc_emu_colours_found;

/* Completes `all` [n], of which at least one is known. SC_EINPUT: some could
 * not be told, and no rule gives those that could. */
sc_status sc_emu_colours(sc_emu_choice *all, uint32_t n, sc_emu_ask *ask,
                         void *x, sc_emu_colours_found *out, sc_err *err);

/* `member` [n] gets the positions of the part with `me`, by key and position,
 * *n_members their number. */
sc_status sc_emu_part(const sc_emu_choice *all, uint32_t n, uint32_t me,
                      uint32_t *member, uint32_t *n_members, sc_err *err);

#endif
