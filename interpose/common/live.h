/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - one real rank of an emulated world, as interposers see it.
 *
 * `stepcast emulate` starts the program with STEPCAST_EMULATE (folder of the
 * run) and STEPCAST_RANK in its environment and with the interposers preloaded.
 * The folder holds emulate.yml (options, see sc_emu_keys), log.<rank>
 * (emu_log.h) and, with several real ranks, `shared` (emu_shared.h), which names
 * the launcher's world. A rank alone has a world in this process.
 *
 * All functions are thread-safe. Fatal errors (no memory, members that call
 * different operations) are written to the log and to stderr as "stepcast:
 * error: ..." and end the process with exit code 3.
 *
 * Time is sc_time of the emulation's clock. Real clock: since the start of the
 * rank. Virtual clock: CPU time of the process without that of the interposers,
 * plus modelled waits.
 */
#ifndef LIVE_H
#define LIVE_H

#include "emu/emu.h"
#include "emu/emu_data.h"

#pragma GCC visibility push(default)

typedef struct live live;

/* The process's rank, opened at first use. NULL: the program does not run under
 * `stepcast emulate` (or the interposer does not apply), and every call goes to
 * the real library. A forked child has none. */
live *live_get(void);

/* The program says that this process is rank `rank` of `n`; call it before
 * live_get(). It decides if the program starts its ranks by itself and the
 * environment names none. It ends the process if the launcher started it as
 * another rank of a world of `n`. */
void live_say_rank(uint32_t rank, uint32_t n);
/* The program calls this library, for the report. */
void live_uses(live *l, sc_emu_api api);

uint32_t live_rank(const live *l);
uint32_t live_world(const live *l);
const sc_emu_config *live_config(const live *l);
sc_emu_data *live_data(
    live *l); /* random state of the calling thread, so that draws repeat */

sc_time live_now(live *l);

/* Sets how the interposed library progresses operations for which the program
 * does not wait, unless the user chose. Weak: an asynchronous operation begins
 * only when the program next waits or tests. */
void live_set_progress(live *l, bool weak);

/* Brackets everything an interposed function does: its own time, except that of
 * live_wait(), is overhead, not the program's. Calls nest. */
void live_enter(live *l);
void live_leave(live *l);

/* A group by the world's ranks, in its order, and its instance; see
 * sc_emu_group(). */
uint32_t live_group(live *l, const uint32_t *rank, uint32_t n,
                    uint64_t instance);

/* Real ranks that take places in a group of n members which they know by an
 * id: `rank` [n] gets their numbers, UINT32_MAX for members that are not known.
 * Returns how many are, when all n are or `at_most` (real time) after the first
 * one. Ends the process if it comes later than that. */
uint32_t live_join(live *l, uint64_t id, uint32_t n, uint32_t place,
                   uint32_t *rank, sc_time at_most);

/* ---- declared groups, for a library that learns only a group's size -------- */

#define LIVE_ANY UINT32_MAX

/* Another library (MPI), or a binding (PyTorch's), has made a group of these
 * ranks (copied; NULL: the world in its order). Returns its number, the same
 * for the same ranks. */
uint32_t live_declare(live *l, const uint32_t *rank, uint32_t n);
/* What the calling thread does until the next call belongs to one of these two
 * groups (LIVE_ANY: to any); a split makes the first of them. */
void live_declared_use(uint32_t declared, uint32_t or_this);
/* The group's members have received these bytes. */
void live_declared_told(uint32_t declared, const void *data, size_t len);

typedef struct live_found {
    bool there;
    bool sure;    /* it is in use, or told the id, or no other one fits */
    uint32_t nth; /* how often it was found before */
} live_found;

/* The group of n members with this rank at `place`: one in use, else the one
 * whose members were last told the `len` bytes of `id`; else one that was not
 * found before, the latest of these. `rank` [n] gets its members. */
live_found live_declared(uint32_t n, uint32_t place, const void *id, size_t len,
                         uint32_t *rank);
/* The members of the group in use among `rank` [n], by their positions; returns
 * their number. UINT32_MAX: none is in use. */
uint32_t live_declared_among(const uint32_t *rank, uint32_t n,
                             uint32_t *member);

/* ---- operations ---------------------------------------------------------- */

typedef struct live_op {
    sc_coll coll;
    uint32_t group;
    uint32_t peer; /* world rank: root, partner; receives: or SC_EMU_ANY */
    uint64_t bytes;
    /* of messages between real ranks, see sc_emu_op */
    int32_t tag;
    uint8_t take;
    bool eager, cuts;
    uint64_t seq;    /* SC_EMU_CLAIMED */
    uint32_t stream; /* of the log */
    bool async;      /* the program continues meanwhile */
    bool device;     /* SC_EMU_DEVICE */
    /* internal to the library (set-up): takes no time, is not logged */
    bool silent;
} live_op;

typedef uint64_t live_ticket;

/* The program reached the operation at `t` (live_now(), or when its stream
 * did). */
live_ticket live_post(live *l, const live_op *op, sc_time t);

/* The calling thread, which is the program's, waits until the operation has
 * ended: it sleeps and then spins, or advances the virtual clock. The
 * operation's CPU time (sc_emu_cpu()) is spent in it. The ticket is freed. */
void live_wait(live *l, live_ticket k);
/* The same with a time limit `by` (on the virtual clock: if nothing ends
 * before). False: it has not ended, and the ticket remains. */
bool live_wait_by(live *l, live_ticket k, sc_time by);
/* The same for a thread of the library, while the program may compute (Gloo's
 * workers): on the virtual clock it does not wait, and the ticket remains until
 * the program's live_wait(). */
void live_serve(live *l, live_ticket k);
/* Whether it has ended; if so, the ticket is freed. */
bool live_test(live *l, live_ticket k);
/* The same, when the world has seen all that this rank posted: a probe that is
 * not done has found nothing. */
bool live_test_now(live *l, live_ticket k);
/* Whether it has ended by now; the ticket remains. *next: nothing ends before
 * that this rank knows of, if nothing else is posted. */
bool live_has_ended(live *l, live_ticket k, sc_time *next);
/* Spends at most so much of the operation's CPU time before it ends, in the
 * calling thread. Returns how much; 0: nothing is left. */
sc_time live_burn(live *l, live_ticket k, sc_time most);
/* Real clock: the calling thread has already spent this much of the operation's
 * CPU time by moving its data. */
void live_spent(live *l, live_ticket k, sc_time ps);
/* The program will not wait for it (a send that the library has buffered); the
 * ticket is freed. */
void live_forget(live *l, live_ticket k);
/* The program aborts the operation. False: it had ended before, and its ticket is
 * still to be waited for or forgotten. */
bool live_cancel(live *l, live_ticket k);
/* Whether it has ended; if not, it is canceled. */
bool live_ends_now(live *l, live_ticket k);

/* The program only waited from `from` to `to`, in a way that no other function
 * here has seen. */
void live_waited(live *l, sc_time from, sc_time to);
/* Real clock: the program only waits from now on (`waits`), or no longer, while
 * threads of the library call live_serve(). */
void live_idle(live *l, bool waits);

/* For a host thread that handles operations of device streams: everything that
 * has ended by `now`, and when to call again (SC_TIME_MAX: nothing is in
 * flight). The returned tickets are freed. */
typedef struct live_ended {
    live_ticket ticket;
    sc_time begin, end;
} live_ended;

uint32_t live_poll(live *l, sc_time now, live_ended *out, uint32_t cap,
                   sc_time *next);
/* The time at which the program continued with the result, for the log and the
 * statistics of late releases; call before the next live_poll(). */
void live_resumed(live *l, live_ticket k, sc_time waited, sc_time at);

/* ---- data between real ranks --------------------------------------------- */

/* This rank's contribution to the operation for other real members, copied;
 * call before live_wait(). Not needed for collectives if this rank is the only
 * real member. A message to the own rank counts as one between real ranks. */
void live_push(live *l, live_ticket k, const void *data, size_t len);
/* The contribution of real rank `rank`, after live_wait() and until
 * live_drop(); NULL: none. `rank` may be the own rank. */
const void *live_peer(live *l, live_ticket k, uint32_t rank, size_t *len);
void live_drop(live *l, live_ticket k);

/* What a receive or a probe got, after live_wait() and until live_drop(). */
typedef struct live_message {
    uint32_t from; /* world rank */
    int32_t tag;
    uint64_t bytes, seq;
} live_message;

/* False: nothing yet, or it came from an emulated rank without a scout. */
bool live_matched(live *l, live_ticket k, live_message *out);

/* The buffer of that shape that this rank last sent to anyone, or NULL: a
 * receive from an emulated rank gets it. live_sent() keeps a copy. */
void live_sent(live *l, const void *data, size_t len);
const void *live_last_sent(live *l, size_t len);

/* Whether this emulated rank has a scout, so that its messages, if any, are sent
 * at their times, with their tags and lengths; and whether it sends any to this
 * rank. */
bool live_is_scouted(const live *l, uint32_t rank);
bool live_scout_sends(const live *l, uint32_t rank);
/* Whether this process is a scout (scouts.h): it runs the program only up to
 * what the rank says. */
bool live_is_scout(void);

/* The program has made a training step. */
void live_step(live *l);

/* ---- messages ------------------------------------------------------------ */

/* "stepcast: warning: ..." once per text, to stderr and the log. */
void live_warn(live *l, const char *fmt, ...) SC_PRINTF(2, 3);
/* What the program does depends on when messages arrive, by its call `name`, and
 * some of them are of ranks that mirror. */
void live_guess(live *l, const char *name);
/* Reports an error in the same way; the process ends with exit code 3. `l` may
 * be NULL, before there is a rank. */
void live_die(live *l, const char *fmt, ...) SC_PRINTF(2, 3);
/* n zeroed elements, to be freed with free(); it dies if there is no memory. */
void *live_alloc(live *l, size_t n, size_t size);
/* Counts a call that went to the real library unmodelled. */
void live_passed(live *l);

#pragma GCC visibility pop

#endif
