/* SPDX-License-Identifier: Apache-2.0 */
/* shared_server.h - the ranks as the owner of their world sees them. */
#ifndef EMU_SHARED_SERVER_H
#define EMU_SHARED_SERVER_H

#include "emu/shared.h"

#include <time.h>

/* A silent collective that some of its real members have joined. */
typedef struct server_rendezvous {
    uint32_t group;
    uint64_t seq;
    sc_time t;      /* of the last one */
    uint32_t *who;  /* [n] number of the rank << 16 | cell */
    uint32_t n_who; /* number of members that have joined */
} server_rendezvous;

typedef struct server_rank {
    uint32_t rank;
    shared_port *port;
    uint32_t n_flying, n_awaits;
    uint16_t flying[SHARED_CELLS]; /* cells of operations in flight */
    uint16_t await[SHARED_CELLS];  /* cells of questions for their ends */
    bool answered; /* something was answered since the rank was last woken */
    bool failed;   /* one of its operations was refused */
    bool known;    /* server_keep_up() knows its scheduling class */

    /* virtual clock */
    sc_time bound; /* the rank makes no earlier request */
    bool blocked;  /* the rank waits for the answer to an AWAIT */
    bool idle;     /* the rank waits for another answer */
    double factor; /* scale of its CPU time on that clock */
    sc_time since; /* real time of its last request or answer */
    sc_time cpu;   /* CPU time of its process at that time */
} server_rank;

struct sc_emu_shared {
    shared_head *head;
    size_t size;
    int fd, *data; /* [n_real] */
    sc_arena *a;
    sc_emu *emu;
    bool virt;
    uint32_t n;
    server_rank *rank;             /* [n] */
    server_rendezvous *rendezvous; /* [n_rendezvous] open */
    uint32_t n_rendezvous, n_made,
        cap_rendezvous; /* the first n_made entries have memory */
    sc_err err;         /* scratch */
};

/* shared.c: the state of a server without memory for its ranks, and what they
 * find in it. */
sc_status server_new(const sc_emu_config *c, sc_arena *a, sc_emu_shared **out,
                     sc_err *err);
void server_fill(sc_emu_shared *s, const sc_emu_config *c);
/* The world has failed: reports that to every rank. */
void server_give_up_all(sc_emu_shared *s, const sc_err *err);

/* shared.c: raises the calling thread's scheduling class to that of the
 * rank. */
void server_keep_up(server_rank *r);

/* shared_answer.c: answers the oldest question of a rank; delivers all ends up
 * to `t`; ends the awaits that give up at `by`; the first such time of a rank. */
void server_serve(sc_emu_shared *s, uint32_t rank);
sc_status server_advance(sc_emu_shared *s, sc_time t, sc_err *err);
void server_give_up(sc_emu_shared *s, sc_time by);
sc_time server_gives_up(const server_rank *r);
void server_wake(sc_emu_shared *s);

/* The first question in the ring, NULL: none. */
shared_cell *server_first(const server_rank *r);

/* shared_virtual.c: performs the next step; false: none is possible. */
sc_status server_step(sc_emu_shared *s, bool *done, sc_err *err);
/* Finds ranks that block others although they do not compute, and ignores
 * them. */
void server_look_after(sc_emu_shared *s);

#endif
