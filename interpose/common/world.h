/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - the world of a rank (emu/emu_shared.h), for the files behind
 * live.h. All functions run under the mutex of `live`.
 */
#ifndef LIVE_WORLD_H
#define LIVE_WORLD_H

#include "common/inside.h"
#include "emu/emu_shared.h"

/* Real members of a group. */
typedef struct world_group {
    uint32_t *real; /* [n_real] world ranks, in the group's order */
    uint32_t n_real;
} world_group;

typedef struct world_cpu {
    uint64_t key;
    sc_time cpu;
} world_cpu;

struct world_of_rank {
    sc_emu_port *port;
    world_group *group;
    uint32_t n_groups;
    world_cpu cpu[64];
    _Atomic sc_time slept; /* virtual time of the last sleep with others */
};

/* `path`: the file that names the launcher's memory, if it owns the world. */
void world_open(live *l, const char *path);
void world_leave(live *l);

const world_group *world_group_at(const live *l, uint32_t group);

/* ---- exchange.c: data between real ranks --------------------------------- */

/* An operation that has something to exchange, until live_drop(). */
typedef struct exchange_of {
    live_ticket ticket; /* 0: none */
    live_op op;
    sc_emu_key key;
} exchange_of;

void exchange_open(live *l);
/* Counts the operation of the slot; NULL: there is no other real member. */
exchange_of *exchange_note(live *l, const live_slot *s);
/* A receive has got this message. */
void exchange_matched(live *l, const live_slot *s, const sc_emu_op *message);

#endif
