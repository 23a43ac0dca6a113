/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - decides how many repetitions of a sequence make a step. */
#ifndef EMU_STEPS_H
#define EMU_STEPS_H

#include "emu/emu_log.h"

/* Repetitions of a sequence, in order. */
typedef struct steps_unit {
    uint64_t *at;     /* [n] first record of each; becomes that of each step */
    uint64_t n, many; /* their number; repetitions per step */
    bool sure;
} steps_unit;

/* Sets `many` from `at` and `n`, which become those of the steps. */
sc_status steps_unit_find(const sc_emu_run *r, sc_arena *a, steps_unit *u,
                          sc_err *err);

/* z[i], i < n: length of the common prefix of text[i...] and text[0...]; Gusfield
 * 1997, algorithm Z, in linear time. */
void emu_prefixes(const uint64_t *text, uint64_t n, uint64_t *z);

#endif
