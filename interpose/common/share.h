/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.h - a world that the launcher owns (emu/emu_shared.h), for the files
 * behind live.h. All functions run under the mutex of `live`.
 */
#ifndef LIVE_SHARE_H
#define LIVE_SHARE_H

#include "common/inside.h"
#include "emu/emu_shared.h"

void share_open(live *l, const char *path);
void share_leave(live *l);
sc_time share_start(const live *l); /* CLOCK_MONOTONIC at 0 of all ranks */

uint32_t share_group(live *l, const uint32_t *rank, uint32_t n,
                     uint64_t instance);
uint32_t share_group_real(const live *l, uint32_t group);

/* Silent operations among real members take part, others have ended. */
void share_post(live *l, live_slot *s, sc_time t);
/* Its contribution may be pushed before it is posted. */
void share_hold(live *l, live_slot *s);
/* Delivers operations that have ended; on the virtual clock, by `now`. */
void share_look(live *l, sc_time now);
void share_cancel(live *l, live_slot *s);
void share_waited(live *l, sc_time from, sc_time to);
sc_time share_cpu(live *l, const live_slot *s);
void share_why(live *l, const live_slot *s, sc_text *out);

/* Returns when the operation has ended, at `by`, or when something else has
 * been answered; releases the mutex meanwhile. */
void share_wait(live *l, live_ticket k, sc_time by, sc_time at_most);

void share_push(live *l, live_ticket k, const void *data, size_t len);
const void *share_peer(live *l, live_ticket k, uint32_t rank, size_t *len);
void share_drop(live *l, live_ticket k);

#endif
