/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - the memory between the owner of a world and its real ranks.
 *
 *   head | ports [n_real] | lists [n_real][world] of ranks
 *
 * Two threads use a port: the rank fills cells and pushes their numbers into
 * the ring; the server pops them and answers in the cell. Words that both sides
 * access are atomic; the memory that they guard is not.
 */
#ifndef EMU_SHARED_H
#define EMU_SHARED_H

#include "emu/emu_shared.h"

#include <stdatomic.h>

#define SHARED_MAGIC 0x7368617265643031u
#define SHARED_CELLS 65536u /* power of 2; only those in use take memory */
#define SHARED_TEXT  480
#define SHARED_ROOM \
    ((size_t)16 << 30) /* addresses for the data that a rank pushes */

typedef enum shared_kind {
    SHARED_POST,
    SHARED_JOIN, /* an operation without a time (emu_shared.h) */
    SHARED_GROUP,
    SHARED_CPU,
    SHARED_WHY,
    SHARED_LOOK,
    SHARED_WAITED, /* the server frees it */
    SHARED_CANCEL, /* the same */
    SHARED_AWAIT
} shared_kind;

typedef enum shared_state {
    CELL_FREE,
    CELL_ASKED,
    CELL_DONE,
    CELL_FAILED /* the port's text has the reason */
} shared_state;

typedef struct shared_cell {
    _Atomic uint32_t state; /* shared_state */
    uint8_t kind;           /* shared_kind */
    sc_emu_op op;
    uint32_t other; /* cell that a question refers to; members of a list */
    uint32_t reply[2];
    sc_time t;          /* the rank's time of the question */
    sc_time begin, end; /* answer; WAITED: from, to; AWAIT: end is `by` */
    uint64_t ticket;    /* the world's; GROUP: the instance */
    uint32_t next;      /* used by the rank: next of a list of free cells */
} shared_cell;

typedef struct shared_port {
    _Atomic uint32_t attached; /* 1: a process is attached; 2: it has left */
    _Atomic uint32_t gone;     /* set by the launcher */
    _Atomic int32_t pid;
    _Atomic uint32_t answers;  /* futex: counts what the server wrote */
    _Atomic uint32_t sleepers; /* threads in it */
    _Atomic uint32_t pushed;   /* ring: written by the rank */
    _Atomic uint32_t popped;   /* by the server */
    uint32_t ring[SHARED_CELLS];
    _Atomic uint32_t ended; /* operations that were answered, in `done` */
    uint32_t done[SHARED_CELLS];
    shared_cell cell[SHARED_CELLS];
    char text[SHARED_TEXT]; /* of FAILED, of WHY */
} shared_port;

typedef struct shared_head {
    uint64_t magic;
    uint64_t size;
    uint32_t world, n_real;
    bool virt;
    sc_time start;           /* CLOCK_MONOTONIC */
    _Atomic uint32_t asked;  /* futex: counts what ranks wrote */
    _Atomic uint32_t asleep; /* the server sleeps on it */
    _Atomic uint32_t stop;
    _Atomic uint32_t failed; /* the world has failed; `text` has the reason */
    _Atomic sc_time next;
    char text[SHARED_TEXT];
} shared_head;

static inline shared_port *shared_port_at(shared_head *h, uint32_t i)
{
    return (shared_port *)(void *)(h + 1) + i;
}

static inline uint32_t *shared_list_at(shared_head *h, uint32_t i)
{
    uint32_t *lists = (uint32_t *)(void *)shared_port_at(h, h->n_real);
    return lists + (size_t)i * h->world;
}

static inline size_t shared_size(uint32_t n_real, uint32_t world)
{
    return sizeof(shared_head) +
           n_real * (sizeof(shared_port) + (size_t)world * sizeof(uint32_t));
}

/* shared_wait.c */

/* Sleeps while *word is `seen`, at most so long (SC_TIME_MAX: for ever). */
void shared_sleep(_Atomic uint32_t *word, uint32_t seen, sc_time at_most);
void shared_wake(_Atomic uint32_t *word);
sc_time shared_now(void); /* CLOCK_MONOTONIC */

#endif
