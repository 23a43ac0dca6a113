/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_shared.h - a world and its real ranks, each a process.
 *
 * A rank's port is a set of up to 65536 cells, one per operation or request,
 * which the rank fills in and the server of the world answers in place. Several
 * ranks have a world of their launcher's, which serves it in a thread: they
 * reach it through memory that the launcher shares, and the file "shared" of
 * the run's folder names it. A rank alone has a world in its own process, and
 * requests are answered while they are made.
 *
 * Real clock: operations are posted when the server sees them, with the times
 * at which the ranks reached them. Virtual clock: every rank has a time of its
 * own, and the world advances to a time only when no running rank can reach
 * anything earlier, so that results do not depend on how the ranks were
 * scheduled. A rank that uses no CPU time and sends nothing for a while (it
 * waits for something else) does not delay the others.
 *
 * Needs Linux: futexes between processes, and /proc to reach the memory.
 */
#ifndef SC_EMU_SHARED_H
#define SC_EMU_SHARED_H

#include "emu/emu.h"

/* ---- the launcher's side ------------------------------------------------- */

typedef struct sc_emu_shared sc_emu_shared;

/* Creates the world and writes `path` ("RUN/shared"). c->plugin is set if the
 * delay model is a plug-in. The server owns the arena from here on. */
sc_status sc_emu_shared_new(const char *path, const sc_emu_config *c,
                            sc_arena *a, sc_emu_shared **out, sc_err *err);

/* Serves the ranks in the calling thread until sc_emu_shared_stop(), or until a
 * fatal error, which is reported to every rank and returned. Errors of one rank
 * (members that call different operations) are answers to that rank, not this
 * function's. */
sc_status sc_emu_serve_world(sc_emu_shared *s, sc_err *err);

/* May be called from any thread: the rank's process has ended. */
void sc_emu_shared_gone(sc_emu_shared *s, uint32_t rank);
void sc_emu_shared_stop(sc_emu_shared *s);

/* After serving; ranks that still run keep what they have mapped. */
void sc_emu_shared_close(sc_emu_shared *s);

/* ---- a rank's side ------------------------------------------------------- */

typedef struct sc_emu_port sc_emu_port;

/* A cell of the port, in use until sc_emu_port_free(). */
typedef uint32_t sc_emu_cell;

#define SC_EMU_NO_CELL UINT32_MAX

/* One thread at a time, but for sc_emu_port_sleep().  SC_C_CONFLICT: the rank
 * has run already. */
sc_status sc_emu_port_open(const char *path, uint32_t rank, sc_arena *a,
                           sc_emu_port **out, sc_err *err);
/* A port with a world of its own, with one real rank. The port owns the arena
 * from here on. */
sc_status sc_emu_port_alone(const sc_emu_config *c, sc_arena *a,
                            sc_emu_port **out, sc_err *err);
bool sc_emu_port_is_alone(const sc_emu_port *p);
/* The rank ends and sends no more requests. */
void sc_emu_port_leave(sc_emu_port *p);
/* CLOCK_MONOTONIC at 0 of the emulation's real clock. */
sc_time sc_emu_port_start(const sc_emu_port *p);

/* Sends a request and waits for the answer; `now` is the rank's time.  See
 * sc_emu_group(), sc_emu_cpu(), sc_emu_why(). */
sc_status sc_emu_port_group(sc_emu_port *p, const uint32_t *rank, uint32_t n,
                            uint64_t instance, sc_time now, uint32_t *group,
                            uint32_t *n_real, sc_err *err);
sc_status sc_emu_port_cpu(sc_emu_port *p, const sc_emu_op *op, sc_time now,
                          sc_time *cpu, sc_err *err);
sc_status sc_emu_port_why(sc_emu_port *p, sc_emu_cell cell, sc_time now,
                          sc_text *out, sc_err *err);
/* Returns when all ends up to `now` are known: on the virtual clock, and alone.
 * Otherwise the server knows the time itself. */
sc_status sc_emu_port_look(sc_emu_port *p, sc_time now, sc_err *err);

/* Returns when all that this rank posted has been seen. */
sc_status sc_emu_port_settle(sc_emu_port *p, sc_time now, sc_err *err);

/* Returns at once. `silent`: the real members only synchronize, which takes no
 * time. Errors: SC_C_TOO_BIG, too many at once; errors of the operation itself
 * come from sc_emu_port_done(). */
sc_status sc_emu_port_post(sc_emu_port *p, const sc_emu_op *op, bool silent,
                           sc_time t, sc_emu_cell *out, sc_err *err);
sc_status sc_emu_port_waited(sc_emu_port *p, sc_time from, sc_time to,
                             sc_err *err);
/* Waits for the answer. `canceled`: false if the operation had ended before;
 * the cell is then still to be freed. */
sc_status sc_emu_port_cancel(sc_emu_port *p, sc_emu_cell cell, sc_time now,
                             bool *canceled, sc_err *err);

/* Virtual clock: the rank is idle until the operation has ended (`cell`
 * SC_EMU_NO_CELL: there is none) or the world has reached `by`; then the cell
 * is done. */
sc_status sc_emu_port_await(sc_emu_port *p, sc_emu_cell cell, sc_time now,
                            sc_time by, sc_emu_cell *out, sc_err *err);

/* Whether the cell is answered; for an operation, whether it has ended. Returns
 * an error if the answer is one, or if the world has failed. */
sc_status sc_emu_port_done(sc_emu_port *p, sc_emu_cell cell, bool *done,
                           sc_time *begin, sc_time *end, sc_err *err);
void sc_emu_port_free(sc_emu_port *p, sc_emu_cell cell);
/* An operation of this rank that was answered since the last call, each once;
 * false: there is none. A cell may have been freed meanwhile. */
bool sc_emu_port_told(sc_emu_port *p, sc_emu_cell *out);
/* The operation of a cell; of a RECV that has ended, the message's source, tag,
 * bytes and number. */
const sc_emu_op *sc_emu_port_op(const sc_emu_port *p, sc_emu_cell cell);

/* The world's error, if it has failed. */
sc_status sc_emu_port_failed(const sc_emu_port *p, sc_err *err);
/* As sc_emu_next(), as far as this rank knows. */
sc_time sc_emu_port_next(const sc_emu_port *p);

/* Sleeps until something is answered after `seen` was read, or for that
 * long. */
uint32_t sc_emu_port_seen(const sc_emu_port *p);
void sc_emu_port_sleep(sc_emu_port *p, uint32_t seen, sc_time at_most);

/* ---- data between ranks -------------------------------------------------- */

/* The operation of a group (or of a pair, for SEND and RECV) to which data
 * belong; all members count alike. */
typedef struct sc_emu_key {
    uint32_t group;
    uint32_t from, to; /* of a message; else SC_EMU_NO_CELL */
    uint64_t seq;
} sc_emu_key;

/* Copies the data, which stay until they were dropped `readers` >= 1 times, by
 * any rank. */
sc_status sc_emu_port_push(sc_emu_port *p, const sc_emu_key *key,
                           const void *data, size_t len, uint32_t readers,
                           sc_err *err);
/* The data that `rank` pushed under the key; NULL: not pushed yet. Valid until
 * dropped. */
const void *sc_emu_port_peek(sc_emu_port *p, uint32_t rank,
                             const sc_emu_key *key, size_t *len);
/* False: there is nothing (yet). */
bool sc_emu_port_drop(sc_emu_port *p, uint32_t rank, const sc_emu_key *key);
/* Whether the rank has ended. */
bool sc_emu_port_is_gone(const sc_emu_port *p, uint32_t rank);
#endif
