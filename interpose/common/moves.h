/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.h - the data of a collective or a message: which members'
 * contributions form each block of the result.
 *
 * One table (moves.c) says so for all libraries; how a library reads, copies
 * and reduces blocks is its live_mover. A member contributes one block, or one
 * for every member if the operation distributes them; the result is one block,
 * or one of every member if the operation collects them. Blocks of the result
 * come from:
 *
 * a real member: what it contributed (live_push()). If it has contributed
 * nothing, because its process has ended, this rank's data are used for it, or
 * zeros for a root's.
 *
 * an emulated member: what a real one contributed, the real members in turn,
 * changed by --peer-data. An emulated root of a broadcast has the data of the
 * first real member. An emulated root of a scatter, or sender of a message,
 * sends what this rank sent last (live_sent()).
 *
 * One thread at a time uses an exchange.
 */
#ifndef LIVE_MOVES_H
#define LIVE_MOVES_H

#include "common/live.h"

#pragma GCC visibility push(default)

/* The members of a communicator. */
typedef struct live_members {
    uint32_t group; /* of live_group() */
    uint32_t n, me;
    const uint32_t *rank; /* [n] of the world; NULL: 0 .. n-1 */
    uint32_t n_real;
    const uint32_t *real; /* [n_real] positions, rising */
} live_members;

/* Never freed; `rank` [n] is copied and must contain this rank. NULL: it does
 * not. */
live_members *live_members_new(live *l, const uint32_t *rank, uint32_t n,
                               uint64_t instance);
/* Positions of real ranks among `rank` ([n]; NULL: the whole world), rising;
 * returns their number. `real` has room for all real ranks of the world. */
uint32_t live_members_real(live *l, const uint32_t *rank, uint32_t n,
                           uint32_t *real);
bool live_members_is_real(const live_members *m, uint32_t member);

static inline uint32_t live_members_rank(const live_members *m, uint32_t member)
{
    return m->rank ? m->rank[member] : member;
}

/* Bytes of a block, side by side. */
typedef struct live_view {
    const void *p; /* NULL: none were given */
    size_t len;
    void *own; /* to be freed; NULL: not */
} live_view;

typedef struct live_moves live_moves;

/* How a library moves blocks. False: it fails, and so does the operation. */
typedef struct live_mover {
    /* This rank's contribution: its block, or the one for `member`. A broadcast
     * has one on every member. */
    bool (*read)(live_moves *x, uint32_t member, live_view *out);
    /* Block i of the result becomes `from`; zeros if there is none. */
    bool (*copy)(live_moves *x, uint32_t i, const live_view *from);
    /* Blocks i .. i + n - 1 become those of emulated members that mirror
     * `from`. */
    bool (*mirror)(live_moves *x, uint32_t i, uint32_t n,
                   const live_view *from);
    /* The result becomes the reduction over n members, of which `real` [n_real]
     * are contributions of `len` bytes each and the others mirror these in
     * turn. */
    bool (*reduce)(live_moves *x, const void *const *real, uint32_t n_real,
                   uint32_t n, size_t len);
    /* The result becomes the block of its length that was sent last. */
    bool (*sent)(live_moves *x);
} live_mover;

struct live_moves {
    live *l;
    const live_members *m;
    sc_coll coll;
    uint32_t root;  /* position: root, partner */
    bool exclusive; /* a scan without the own contribution */
    bool in_place;  /* this rank's own block of the result is there already */
    uint64_t bytes; /* of the live_op */
    const live_mover *by;
    void *arg; /* the mover's */
};

/* The number of blocks that this rank contributes to what real members receive,
 * and that it receives. */
uint32_t live_moves_n_in(const live_moves *x);
uint32_t live_moves_n_out(const live_moves *x);
/* Whether the result needs no other real member, so that it is known before
 * the operation has ended. */
bool live_moves_alone(const live_moves *x);
/* Gives this rank's blocks to the other real members; after live_post(). */
bool live_moves_push(live_moves *x, live_ticket k);
/* Fills the result; after the operation has ended, unless it is alone. Ends the
 * process if a real member's contribution to a reduction has another length. */
bool live_moves_fill(live_moves *x, live_ticket k);
/* Whether `from` gives data to `to` in a collective; world ranks, `real`
 * [n_real] those of the real members in the group's order. */
bool live_moves_gives(const live_op *op, const uint32_t *real, uint32_t n_real,
                      uint32_t from, uint32_t to);

/* ---- blocks in host memory (moves_host.c) --------------------------------- */

typedef struct live_block {
    void *at;
    size_t len;
} live_block;

/* n blocks: a list or, if it is NULL, equal ones side by side. */
typedef struct live_blocks {
    const live_block *list;
    live_block first;
    uint32_t n;
} live_blocks;

/* The argument of live_in_host. Real members' blocks of another length are cut
 * (`cuts`) or end the process; a mirrored block that is longer than its source
 * repeats it. `in` may be empty for a broadcast, which then has its block in
 * `out`. Integers are always mirrored as they are, because they are sizes,
 * counts and text. */
typedef struct live_host {
    live_blocks in, out;
    sc_emu_type type;
    sc_emu_reduce reduce;
    bool cuts;
} live_host;

/* Fails if the reduction does not exist for the type. */
extern const live_mover live_in_host;

#pragma GCC visibility pop

#endif
