/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - how a time on the devices of a rank is spent. */
#ifndef REPLAY_SPLIT_H
#define REPLAY_SPLIT_H

#include "replay/replay.h"

/* A device op in time. */
typedef struct replay_busy {
    sc_time from, to;
    sc_time arrived; /* of a member of a collective: when it began to work;
                          from, where that is not known */
    uint8_t class;   /* sc_replay_class */
    bool host_bound; /* it waited for its launch */
    sc_time latest;  /* largest `to` up to this one, by replay_sort_busy() */
} replay_busy;

/* Sorts `v` by from, and sets `latest`. */
void replay_sort_busy(replay_busy *v, uint32_t n);

/* Splits [from, to), of ops sorted by from. `tmp` gets what it needs. */
sc_status replay_split(const replay_busy *v, uint32_t n, sc_time from,
                       sc_time to, sc_arena *tmp, sc_replay_split *out,
                       sc_err *err);

/* Facts of the ops that start in [from, to). */
sc_status replay_facts(const replay_busy *v, uint32_t n, sc_time from,
                       sc_time to, sc_arena *tmp, sc_replay_facts *out,
                       sc_err *err);

#endif
