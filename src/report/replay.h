/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - what the two reports of replayed traces share. */
#ifndef REPORT_REPLAY_H
#define REPORT_REPLAY_H

#include "report/report_replay.h"

/* All steps of a rank, and how long they take together. */
sc_replay_split report_sum_split(const sc_replay_rank *r, sc_time *all);

sc_time report_per_step(sc_time t, uint32_t steps);

/* "compute" ..., "latency". */
const char *report_replay_class(uint8_t class);

#endif
