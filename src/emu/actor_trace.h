/* SPDX-License-Identifier: Apache-2.0 */
/* actor_trace.h - actors, and what their traces say. */
#ifndef EMU_ACTOR_TRACE_H
#define EMU_ACTOR_TRACE_H

#include "emu/actor.h"

typedef struct ending {
    uint32_t actor, task;
    sc_time t;
} ending;

/* A rank that runs a trace. */
typedef struct actor {
    uint32_t rank;
    const sc_task_list *l;
    const sc_rank_trace *r;
    uint32_t *left;    /* [n_tasks] nodes that each waits for, in this round */
    uint32_t *again;   /* [n_tasks] the same in all rounds but the first */
    uint32_t n_left;   /* nodes of this round that have not ended */
    uint8_t *ready;    /* [n_tasks] computation that may begin */
    uint32_t n_ready;  /* number of these */
    uint32_t first;    /* none before it is ready */
    bool busy, failed; /* it computes; it makes no call any more */
    sc_time began;     /* this round */
    uint64_t round, calls;
    uint32_t n_stalled; /* stalls that are over */
    emu_peer_model b;
    emu_list pending; /* posts of collectives without operation */
    sc_map known;     /* what its trace calls */
    uint64_t *scope;  /* [n_groups] see emu_members; 0: unknown */
    uint32_t n_steps; /* of `step` */
    int32_t step[4];  /* different sc_rank_trace.tag_steps, not 0 */
} actor;

struct emu_actors {
    const sc_workload *w;
    bool tagged; /* with the program's tags */
    sc_arena *a;
    uint32_t n;
    actor *v;
    uint32_t *number; /* [world] */
    uint32_t *op;     /* operations that wait for actors */
    uint32_t n_ops, cap_ops;
    ending *ending;
    uint32_t n_endings, cap_endings;
};

bool actor_is_call(const sc_task_list *l, uint32_t i);
sc_coll actor_coll(const sc_task_list *l, uint32_t i);
/* The group's ranks; NULL: all of the world. */
const sc_rank_group *actor_group(const emu_actors *x, const actor *a,
                                 uint32_t i);
/* As sc_emu_op counts them. */
uint64_t actor_bytes(const emu_actors *x, const actor *a, uint32_t i);
/* SC_EMU_ANY_TAG: traces that are not scouts' number messages as they like. */
int32_t actor_tag(const emu_actors *x, const actor *a, uint32_t i);
/* See emu_scope(); 0: unknown. */
uint64_t actor_scope(const actor *a, uint32_t i);
/* Equal for calls of one collective by its members. `rank` NULL: all. */
uint64_t actor_collective_key(sc_coll c, uint64_t bytes, const uint32_t *rank,
                              uint32_t n);

#endif
