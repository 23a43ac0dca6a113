/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - virtual time, for the library that answers time calls with it. */
#ifndef LIVE_CLOCK_H
#define LIVE_CLOCK_H

#include "base/base.h"

#pragma GCC visibility push(default)

/* CPU time of the process in ps, without that of the interposers, plus waits;
 * never runs backwards, not even after fork(). */
sc_time live_clock_virtual(void);
/* Advances it to `t`, unless it is later already. */
void live_clock_forward(sc_time t);
/* The same of a thread that sleeps: once no other real rank is earlier. */
void live_clock_sleep(sc_time t);
/* Whether the calling thread is inside an interposer, whose calls are not the
 * program's. */
bool live_clock_inside(void);

/* Calls `start` when this process becomes a rank. */
void live_clock_on_rank(void (*start)(void));

#pragma GCC visibility pop

#endif
