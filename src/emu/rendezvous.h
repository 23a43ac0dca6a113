/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h - the state of a world, and the matching of its members' calls:
 * of collectives (rendezvous.c), of messages (messages.c). */
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
    EMU_LANDING, /* it ends at `due` */
    EMU_LANDED,  /* a message that has arrived before its receive */
    EMU_ACTING,  /* no operation: an actor computes until `due` */
    EMU_DROPPED  /* cancelled while open; later calls wait for ever */
} emu_op_state;

/* The list that has a message. */
typedef enum emu_box { EMU_NO_BOX, EMU_SENT, EMU_CLAIMED } emu_box;

typedef struct emu_list {
    uint32_t head, tail; /* EMU_NONE: it is empty */
} emu_list;

typedef struct emu_op {
    emu_group *g;
    emu_op_state state;
    sc_coll coll;      /* SEND stands for both sides of a message */
    uint32_t root, to; /* positions; see emu_flight */
    uint64_t bytes, seq;
    uint32_t expected, n_real; /* real members; those that have called it */
    uint32_t missing;          /* actors that have not */
    uint32_t n_posts;
    emu_list posts;
    uint32_t next; /* next open operation, or message in its box; free list */
    sc_time begin; /* the latest call so far */
    sc_time due;   /* PENDING: it begins; LANDING, LANDED: it ends */
    emu_arrival emulated;
    /* of messages between real ranks */
    uint64_t id; /* the sender's number */
    int32_t tag; /* SC_EMU_ANY_TAG: an actor's, whose trace has no tags */
    bool eager;
    uint64_t scope; /* of its group; 0: an actor's, whose trace has none */
    emu_box box;
    uint32_t actor; /* of ACTING */
} emu_op;

typedef struct emu_posted {
    uint64_t ticket; /* UINT64_MAX: free */
    uint32_t rank, next;
    uint32_t op;   /* EMU_NONE: a receive without a message */
    uint32_t task; /* of an actor */
    bool probes;
    sc_time t;
    sc_emu_op call; /* of a receive */
    uint64_t scope; /* as in emu_op */
} emu_posted;

/* What waits at a real rank. */
typedef struct emu_mail {
    emu_list sent, claimed; /* messages, in the order of their posts */
    emu_list receives;      /* posts */
} emu_mail;

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
    emu_mail *mail; /* [c.n_real and actors] */
    emu_actors *actors;
};

/* A record without members; NULL: out of memory. */
emu_op *emu_op_alloc(sc_emu *e, uint32_t *out, sc_err *err);
/* Whether one of its posts is of the rank. */
bool emu_op_has(const sc_emu *e, const emu_op *o, uint32_t rank);

/* A record of a call; *out is its number. */
sc_status emu_post_add(sc_emu *e, const sc_emu_op *call, sc_time t,
                       uint32_t *out, sc_err *err);
/* The operation has it as its last. */
void emu_post_join(sc_emu *e, uint32_t post, uint32_t op);
void emu_post_free(sc_emu *e, uint32_t post);
/* Frees the operation with its posts. */
void emu_op_free(sc_emu *e, uint32_t op);
/* All real members have called it. */
sc_status emu_op_begin(sc_emu *e, uint32_t op, sc_err *err);
/* EMU_PENDING: it begins at `t`. EMU_LANDING: it ends, for all of its posts.
 * EMU_ACTING: emu_actor_computed(). */
sc_status emu_op_schedule(sc_emu *e, uint32_t op, emu_op_state state, sc_time t,
                          sc_err *err);

/* ---- messages.c ---------------------------------------------------------- */

/* A message of a call, without posts; NULL: out of memory. */
emu_op *emu_message_open(sc_emu *e, const sc_emu_op *call, uint32_t *out,
                         sc_err *err);

void emu_list_append(sc_emu *e, emu_list *l, uint32_t post);
void emu_list_remove(sc_emu *e, emu_list *l, uint32_t post);

/* A call of a message between real ranks and actors (or of a receive from any
 * source); the second has its post. */
sc_status emu_message_post(sc_emu *e, const sc_emu_op *op, sc_time t,
                           uint64_t *ticket, sc_err *err);
sc_status emu_message_call(sc_emu *e, uint32_t post, sc_err *err);
/* A message of an actor whose partner is neither. */
sc_status emu_message_alone(sc_emu *e, const sc_emu_op *op, sc_time t,
                            uint32_t task, sc_err *err);
/* A receive that has no message is gone. */
void emu_message_unpost(sc_emu *e, uint32_t post);
/* The message leaves its box. */
void emu_message_unbox(sc_emu *e, uint32_t op);
/* A receive or probe no longer waits for its eager message, which goes on and
 * can be taken by another; false: it is nothing of that kind. */
bool emu_message_leave(sc_emu *e, uint32_t post);

/* ---- rendezvous.c -------------------------------------------------------- */

/* Finds the collective, or message with an emulated rank, that a call joins, or
 * opens it; `all`: the call is the last real one. */
sc_status emu_rendezvous_join(sc_emu *e, const sc_emu_op *op, uint32_t *out,
                              bool *all, sc_err *err);

/* The parts of members may differ, and each knows only its own. */
bool emu_coll_may_differ(sc_coll c);

/* Members of a group as text: "the group of ranks 0-7". */
void emu_group_print(const emu_group *g, char *buf, size_t size);

#endif
