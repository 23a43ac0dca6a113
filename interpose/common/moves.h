/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.h - the data of a collective: which parts of the members'
 * contributions form each block of the result.
 *
 * Each member has `in`: one block, or one for every member if the operation
 * distributes them. Real members see each other's blocks (live_push()). An
 * emulated member has those of a real one, the real members in turn, with the
 * noise of --peer-data; a block that is longer than its source repeats it. An
 * emulated root of a broadcast has the data of the first real member, and an
 * emulated root of a scatter sends what this rank sent last (live_sent()).
 *
 * One thread at a time uses an exchange.
 */
#ifndef LIVE_MOVES_H
#define LIVE_MOVES_H

#include "common/live.h"

/* The members of a communicator. */
typedef struct live_members {
    uint32_t group; /* of live_group() */
    uint32_t n, me;
    uint32_t *rank;         /* [n] of the world */
    uint32_t n_real, *real; /* [n_real] positions, rising */
} live_members;

/* Allocates; `rank` [n] is copied and must contain this rank. NULL: it does
 * not. */
live_members *live_members_new(live *l, const uint32_t *rank, uint32_t n,
                               uint64_t instance);
void live_members_free(live_members *m);
bool live_members_is_real(const live_members *m, uint32_t member);

typedef struct live_block {
    void *at;
    size_t len;
} live_block;

typedef struct live_moves live_moves;

/* How blocks are moved; NULL: in host memory, as emu_data.h does. */
typedef struct live_mover {
    void (*copy)(live_moves *x, void *to, const void *from, size_t len);
    /* The block of an emulated member, mirrored from `from`. */
    void (*mirror)(live_moves *x, void *to, const void *from, size_t len);
    /* Over all members; `real` [n_real]; false: no such reduction. */
    bool (*reduce)(live_moves *x, const void *const *real, size_t len,
                   void *to);
} live_mover;

struct live_moves {
    live *l;
    const live_members *m;
    sc_coll coll;
    uint32_t root; /* position */
    /* [1], or [n] for scatter (at the root), all-to-all and reduce-scatter;
     * of a broadcast, that of the root and of nobody else */
    const live_block *in;
    uint32_t n_in;
    /* [1], or [n] for gather (at the root), all-gather and all-to-all */
    const live_block *out;
    uint32_t n_out;
    sc_emu_type type;
    sc_emu_reduce reduce;
    const live_mover *mover;
    void *arg; /* the mover's */
};

/* Whether only this rank's data are used, so that the result is known before
 * the operation has ended. */
bool live_moves_alone(const live_moves *x);
/* Gives this rank's blocks to the other real members; after live_post(). */
void live_moves_push(live_moves *x, live_ticket k);
/* Fills `out`; after the operation has ended, unless it is alone. False: the
 * reduction does not exist. Ends the process if a real member's blocks have
 * other lengths. */
bool live_moves_fill(live_moves *x, live_ticket k);

#endif
