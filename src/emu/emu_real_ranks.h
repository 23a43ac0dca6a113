/* SPDX-License-Identifier: Apache-2.0 */
/* emu_real_ranks.h - which ranks of a network to run for real. */
#ifndef SC_EMU_REAL_RANKS_H
#define SC_EMU_REAL_RANKS_H

#include "emu/emu.h"
#include "plan/plan_net.h"

/* Like sc_emu_real_ranks(): ranks that differ by pipeline stage, or by the
 * weights of operators that a rule assigns to them in turn (tables of an
 * embedding). Unequal parts of a split are not distinguished: every part is as
 * large as the largest. */
sc_status sc_emu_real_ranks_of_net(const sc_net_plan *p, sc_arena *a,
                                   sc_emu_role **out, uint32_t *n, sc_err *err);
#endif
