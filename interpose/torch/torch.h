/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.h - process groups of PyTorch, for python/stepcast_torch.
 *
 * The program posts an operation and goes on. Whoever first needs the result
 * owns the operation from then on: a thread of the program that calls wait()
 * (stepcast_torch_wait()), or a thread of ours that completes futures, for
 * which C++ waits (stepcast_torch_next()). The owner moves the data, completes
 * the future and frees the operation.
 *
 * Functions may be called by any thread. Those that wait must be called without
 * Python's lock. Positions are those in the group; -1 is no position.
 */
#ifndef TORCH_TORCH_H
#define TORCH_TORCH_H

#include "common/moves.h"

#include <pthread.h>

typedef enum torch_status {
    TORCH_ENDED,
    TORCH_TIMED_OUT,
    TORCH_NO_REDUCTION, /* of this type */
    TORCH_TOO_LONG,     /* a message for the buffer */
    TORCH_OWNED         /* by another thread; ask the future */
} torch_status;

/* As library.py has it. */
typedef struct torch_call {
    uint32_t coll; /* sc_coll; SC_RECV with root -1: from any member */
    int32_t root;  /* or partner */
    uint32_t type, reduce;
    uint32_t n_in, n_out;
    uint64_t bytes; /* sc_emu_op */
    const live_block *in, *out;
    int64_t timeout; /* ms */
    int32_t tag;
    uint32_t stream; /* of the log */
} torch_call;

typedef struct torch_op torch_op;

struct torch_op {
    live_moves x; /* of `data` */
    live_host data;
    live_ticket ticket;
    sc_time by; /* its time limit */
    bool owned, filled;
    bool spent; /* its CPU time, by the completer */
    torch_status status;
    torch_op *next, *before; /* without an owner, in the order of posts */
    live_block block[];      /* in, then out */
};

/* ---- messages (message.c) ------------------------------------------------ */

#define TORCH_ANY UINT32_MAX

/* The partner of a message, the root: a position, or TORCH_ANY for a receive
 * from any member whose messages come when it sends them. */
uint32_t torch_partner(live *l, const live_members *m, const torch_call *c);
/* After the post of a send. */
void torch_send(torch_op *o);
/* Fills the buffer of a receive that has ended. */
torch_status torch_receive(torch_op *o);

/* ---- the program's threads (idle.c) -------------------------------------- */

/* Whether all threads but the caller sleep. `lock`: only for locks and
 * conditions, not for files, sockets or other processes. */
bool torch_all_sleep(bool *lock);

/* ---- what Python calls (api.c, queue.c) ----------------------------------- */

#pragma GCC visibility push(default)
/* live_say_rank() */
void stepcast_torch_say(uint32_t rank, uint32_t n);
/* The world's size and this rank; false: the process is no rank. */
bool stepcast_torch_open(uint32_t *world, uint32_t *rank);
bool stepcast_torch_is_real(uint32_t rank);
/* live_enter(), live_leave() */
void stepcast_torch_enter(void);
void stepcast_torch_leave(void);
/* Never freed; NULL: this rank is not among `rank` [n]. */
live_members *stepcast_torch_group(const uint32_t *rank, uint32_t n,
                                   uint64_t instance);
/* live_declare(), live_declared_use() */
uint32_t stepcast_torch_declare(const uint32_t *rank, uint32_t n);
void stepcast_torch_use(uint32_t declared, uint32_t or_this);
torch_op *stepcast_torch_post(const live_members *m, const torch_call *c);
/* Waits at most `timeout` ms (-1: as long as the call said). TORCH_OWNED: the
 * operation is not the caller's. */
int stepcast_torch_wait(torch_op *o, int64_t timeout);
/* Waits for an operation without an owner that has ended or timed out; its
 * time until stepcast_torch_leave() is not the program's. */
torch_op *stepcast_torch_next(void);
int stepcast_torch_status(const torch_op *o);
/* The member that sent a message. */
uint32_t stepcast_torch_source(const torch_op *o);
void stepcast_torch_free(torch_op *o);
/* The program has made a training step. */
void stepcast_torch_step(void);
/* The program ends: futures are completed no more. */
void stepcast_torch_stop(void);
#pragma GCC visibility pop

#endif
