/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h - the state of a world, and the matching of its members'
 * calls. */
#ifndef EMU_RENDEZVOUS_H
#define EMU_RENDEZVOUS_H

#include "emu/world.h"

#define EMU_SLOT_BITS 20 /* bits of a ticket that index its post */

typedef enum emu_op_state {
    EMU_FREE,
    EMU_OPEN,    /* not all real members have called it */
    EMU_STUCK,   /* an emulated one never arrives */
    EMU_PENDING, /* they arrive later */
    EMU_FLYING,
    EMU_DROPPED /* cancelled while open; later calls wait for ever */
} emu_op_state;

typedef struct emu_op {
    emu_group *g;
    emu_op_state state;
    sc_coll coll;      /* SEND stands for both sides of a message */
    uint32_t root, to; /* positions; see emu_flight */
    uint64_t bytes, seq;
    uint32_t expected, n_posts; /* real members; those that have called it */
    uint32_t first, last;       /* posts */
    uint32_t next;              /* next open operation; free list */
    sc_time begin;              /* the latest call so far */
    emu_arrival emulated;
} emu_op;

typedef struct emu_posted {
    uint64_t ticket; /* UINT64_MAX: free */
    uint32_t rank, op, next;
} emu_posted;

/* Messages in one direction between two real ranks of a group that wait for the
 * other side's call. */
typedef struct emu_pair {
    uint32_t group, from, to; /* positions */
    uint32_t head, tail;
    bool sent;      /* the waiting side is the sender */
    uint64_t calls; /* of either side */
} emu_pair;

struct sc_emu {
    sc_emu_config c;
    sc_arena *a;
    emu_groups groups;
    emu_peers peers;
    emu_delay *delay;
    sc_time now;
    sc_status failed; /* the delay model failed; `err` has the reason */
    sc_err err;
    uint64_t tickets, seq;
    emu_op *op;
    uint32_t n_ops, cap_ops, free_op;
    emu_posted *post;
    uint32_t n_posts, cap_posts, free_post;
    uint32_t *heap; /* pending ones, earliest first */
    uint32_t n_heap, cap_heap;
    sc_emu_end *end;
    uint32_t n_ends, cap_ends;
    emu_pair *pair;
    uint32_t n_pairs, cap_pairs;
    sc_map pairs; /* by group and ranks */
};

/* A record without members; NULL: out of memory. */
emu_op *emu_op_alloc(sc_emu *e, uint32_t *out, sc_err *err);

/* Finds the operation that a call joins, or opens it; `all`: the call is the
 * last real one. */
sc_status emu_rendezvous_join(sc_emu *e, const sc_emu_op *op, uint32_t *out,
                              bool *all, sc_err *err);

/* Members of a group as text: "the group of ranks 0-7". */
void emu_group_print(const emu_group *g, char *buf, size_t size);

#endif
