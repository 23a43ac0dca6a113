/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h - time that a change adds to the work of a thread, over its time in the
 * trace. */
#ifndef REPLAY_PACE_H
#define REPLAY_PACE_H

#include "base/base.h"

typedef struct replay_pace {
    uint32_t n;
    sc_time *at;   /* [n] rising, in the time of the trace */
    double *added; /* [n] until then, ps; between two it is linear */
} replay_pace;

/* For at most `n` points. False: out of memory. */
bool replay_pace_new(uint32_t n, sc_arena *a, replay_pace *out);

/* The next point: `more` was added since the one before. */
void replay_pace_add(replay_pace *p, sc_time at, double more);

/* What the pace adds between two times of the trace. */
double replay_pace_added(const replay_pace *p, sc_time from, sc_time to);

#endif
