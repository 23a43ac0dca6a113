/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - a host that works as in other traces. */
#ifndef REPLAY_HOST_H
#define REPLAY_HOST_H

#include "replay/model.h"
#include "replay/pace.h"
#include "replay/replay_host.h"

/* The pace of a thread (`lane` of the trace) whose overheads become those of `o`. What
 * `own`, those of the trace itself, calls no overhead stays as it is. */
sc_status replay_host_pace(const replay_rank *r, uint32_t lane,
                           const sc_host_overheads *own,
                           const sc_host_overheads *o, sc_arena *a,
                           replay_pace *out, sc_err *err);

#endif
