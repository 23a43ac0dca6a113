/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - types shared by the parts of an emulated world.
 *
 * Real ranks are numbered by their place in sc_emu_config.real. Emulated ranks
 * with the same factor, stalls and failure share one peer model; a group knows
 * how many of its emulated members have which model.
 */
#ifndef EMU_WORLD_H
#define EMU_WORLD_H

#include "emu/delay.h"

#define EMU_NONE UINT32_MAX

/* Emulated members of one group with the same peer model. */
typedef struct emu_share {
    uint32_t peer_model, n, rank; /* the first of these members */
} emu_share;

/* What world.c keeps of a group (emu_group.world). */
typedef struct emu_members {
    uint64_t instance;
    uint64_t scope;   /* see emu_scope(); 0: no real rank has it yet */
    uint32_t *number; /* [n_real] their numbers among the real ranks */
    /* [n_real] first open operation that it has not joined; EMU_NONE: the next
     * one to be opened */
    uint32_t *next;
    uint64_t *posts; /* [n_real] operations so far */
    uint32_t tail;   /* the last open operation; EMU_NONE: there is none */
    uint32_t n_shares;
    emu_share *share;    /* of emulated members; none if all mirror exactly */
    uint32_t n_emulated; /* members that are not real */
    bool regular;        /* base + stride * i */
    uint32_t base, stride;
    uint64_t *order; /* [n] rank << 32 | position, rising; NULL: regular */
    bool siblings_known;
} emu_members;

/* ---- peers.c: when emulated ranks arrive --------------------------------- */

typedef struct emu_stall {
    uint64_t at;
    sc_time t;
} emu_stall;

typedef struct emu_peer_model {
    double factor;     /* of compute times */
    uint64_t fail;     /* first operation that it misses; UINT64_MAX */
    uint32_t n_stalls; /* of `stall`, by rising `at` */
    emu_stall *stall;
} emu_peer_model;

/* What peers need to know of a real rank's program. */
typedef struct emu_mirror {
    sc_time seen;    /* accounted for up to here */
    sc_time compute; /* since its last operation, waits left out */
    uint64_t posts;  /* operations so far */
    double factor;   /* compute time of its own over that of its device */
    sc_time *lag;    /* [n_peer_models] delay of each peer model */
} emu_mirror;

typedef struct emu_actors emu_actors; /* actor.h */

typedef struct emu_peers {
    const sc_emu_config *c;
    sc_arena *a;
    uint32_t n_peer_models, cap;
    emu_peer_model *v;        /* [0]: as the mirrored rank */
    uint32_t *of;             /* [world] peer model; NULL: all are 0 */
    emu_mirror *mirror;       /* [n_real] */
    double sigma;             /* of jitter */
    const emu_actors *actors; /* do not mirror; NULL: there are none */
} emu_peers;

/* When the last emulated member arrives. */
typedef struct emu_arrival {
    sc_time t;     /* of the last one; INT64_MIN: none are emulated */
    uint32_t rank; /* who */
    bool fails;    /* it never arrives */
    uint64_t at;   /* from which operation on */
} emu_arrival;

sc_status emu_peers_new(const sc_emu_config *c, const emu_actors *actors,
                        sc_arena *a, emu_peers *out, sc_err *err);

/* The peer model of one rank, from all what-ifs about it. */
sc_status emu_peers_model(emu_peers *p, uint32_t rank, emu_peer_model *b,
                          sc_err *err);
/* The deviation of a compute time `d` of one rank. */
double emu_peers_deviation(const emu_peers *p, double d, uint64_t draw,
                           uint32_t rank);

/* Fills in the peer models of a group's emulated members, and those that have
 * traces. */
sc_status emu_peers_count(emu_peers *p, const emu_group *g, emu_members *m,
                          sc_err *err);

/* Real rank number `real` reached an operation at `t`: advances its peers'
 * clocks. Call before emu_peers_arrive(). */
void emu_peers_post(emu_peers *p, uint32_t real, sc_time t);
/* Counts the operation; call after emu_peers_arrive(). */
void emu_peers_posted(emu_peers *p, uint32_t real);
void emu_peers_waited(emu_peers *p, uint32_t real, sc_time from, sc_time to);

/* Real rank number `real` posts at `t`: updates the arrival of the emulated
 * members that mirror it. `draw` seeds the jitter. */
void emu_peers_arrive(emu_peers *p, uint32_t real, sc_time t,
                      const emu_members *m, uint64_t draw, emu_arrival *inout);
/* The same for one emulated rank. */
void emu_peers_arrive_one(emu_peers *p, uint32_t real, sc_time t, uint32_t rank,
                          uint64_t draw, emu_arrival *inout);

/* ---- group.c ------------------------------------------------------------- */

typedef struct emu_groups {
    emu_group **v;
    uint32_t n, cap;
    sc_map by_ranks;
} emu_groups;

/* The number of `rank` among the real ones; EMU_NONE: it is emulated. */
uint32_t emu_real_number(const sc_emu_config *c, uint32_t rank);

/* Finds the group or makes it. */
sc_status emu_groups_get(emu_groups *s, const sc_emu_config *c, emu_peers *p,
                         const uint32_t *rank, uint32_t n, uint64_t instance,
                         sc_arena *a, uint32_t *out, sc_err *err);

/* A number for the communicator, the same in every run of the program:
 * `instance` counts those of real ranks with these members. Never 0. */
uint64_t emu_scope(const uint32_t *rank, uint32_t n, uint32_t instance);
/* A real rank has the group. */
void emu_group_called(emu_groups *s, uint32_t group);

/* Whether its members are these, in this order. */
bool emu_group_is(const emu_group *g, const uint32_t *rank, uint32_t n);

uint32_t emu_group_rank_at(const emu_group *g, uint32_t member);
/* Position of `rank`; EMU_NONE: it is no member. */
uint32_t emu_group_member(const emu_group *g, uint32_t rank);

/* Lists the ranks of sibling groups for models that follow flows. */
sc_status emu_group_siblings(emu_group *g, const sc_emu_config *c, sc_arena *a,
                             sc_err *err);

#endif
