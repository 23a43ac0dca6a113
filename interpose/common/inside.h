/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h - shared by the files behind live.h.
 *
 * A slot is an operation from its post until the program has its result.
 * Everything in `live` that is not atomic is guarded by its mutex.
 */
#ifndef LIVE_INSIDE_H
#define LIVE_INSIDE_H

#include "common/clock.h"
#include "common/live.h"
#include "emu/emu_log.h"

#include <pthread.h>
#include <stdatomic.h>

#define LIVE_NONE UINT32_MAX

/* ---- clocks (clock.c) ---------------------------------------------------- */

/* The source of virtual time: CPU time of the process and of the calling
 * thread, in ps. Tests replace it before anything else is called. */
typedef struct live_cpu {
    sc_time (*process)(void);
    sc_time (*thread)(void);
} live_cpu;

void live_clock_source(const live_cpu *cpu);

sc_time live_clock_mono(void); /* CLOCK_MONOTONIC, ps */

/* From here on, this thread's time is not the program's; calls nest. The
 * outermost leave returns the time spent inside without waits. */
void live_clock_enter(bool virt);
sc_time live_clock_leave(bool virt);
/* Of the time since live_clock_enter(), this much was spent waiting. */
void live_clock_waited(sc_time ps);

void live_clock_burn(sc_time ps); /* CPU time of this thread */
/* Multiplies the program's CPU time from now on; once. */
void live_clock_slow(double factor);
/* Call around fork(): 0 in the parent before, 1 in the child after. */
void live_clock_fork(int stage);

/* ---- operations ---------------------------------------------------------- */

typedef enum slot_state {
    SLOT_FREE,
    SLOT_NEW,
    SLOT_HELD,   /* weak progress: not posted to the world yet */
    SLOT_FLYING, /* posted */
    SLOT_ENDED,
    SLOT_POLLED /* returned by live_poll(), kept for live_resumed() */
} slot_state;

typedef struct live_slot {
    live_op op;
    sc_time post, begin, end, waited;
    uint64_t ticket;      /* the world's */
    uint64_t log;         /* index; UINT64_MAX: not logged */
    uint32_t self, gen;   /* together they form its live_ticket */
    uint32_t next, prev;  /* links in the list of its state */
    uint8_t state;        /* slot_state */
    bool burnt;           /* its CPU time has been spent */
    sc_time spent;        /* ... the part that has been spent so far */
    sc_time waits_before; /* live.waits at its post */
    bool noted;           /* live_world_note() */
    bool exchanges;       /* exchange.c knows it */
    bool dropped;         /* the program will not wait for it: freed when it
                            has ended */
    bool canceled;
    bool held; /* it was SLOT_HELD before it was posted */
} live_slot;

typedef struct slot_list {
    uint32_t first, last;
} slot_list;

typedef struct world_of_rank world_of_rank; /* world.c */
typedef struct live_exchange live_exchange; /* exchange.c */

#define LIVE_PAGE 256 /* slots at once */

struct live {
    uint32_t rank, world;
    sc_emu_config config;
    bool virt, weak;
    /* [world] see live_is_scouted(), live_scout_sends(); NULL: none is */
    bool *scouted, *sends;
    sc_time start; /* CLOCK_MONOTONIC at 0 of the emulation's clock */

    pthread_mutex_t mutex; /* recursive */
    pthread_cond_t moved;
    sc_time waits;     /* sum of the program's waits so far */
    sc_time wait_used; /* the first part of that sum, in which operations had
                              the processor or which was before their posts */
    sc_time idle;      /* the program waits since then; -1: it does not */
    sc_time idle_reported; /* operations have been reported up to there */
    uint32_t n_waiting;    /* in `moved` */
    _Atomic uint32_t era;  /* counts what may move due times */

    sc_arena arena;
    sc_err err; /* scratch */
    world_of_rank *w;
    live_exchange *x;
    sc_time next; /* of the world; valid until the next post */

    live_slot **page; /* [n_slots / LIVE_PAGE] */
    uint32_t n_slots;
    slot_list unused, held, ended, polled;
    sc_map by_ticket; /* slots by the world's tickets */

    sc_time polled_at, poll_step; /* virtual clock: tests in a row */

    sc_emu_log *log;
    sc_emu_totals totals;
    _Atomic sc_time overhead;
    _Atomic uint64_t passed;
    uint32_t n_reported; /* hashes of reported texts */
    uint64_t told[64];

    _Atomic uint32_t n_threads; /* that drew data */
    struct sent *sent;          /* data.c: latest first */
    size_t sent_bytes;
};

/* Brackets what an interposed function does with the rank's state. */
static inline void live_begin(live *l)
{
    live_enter(l);
    pthread_mutex_lock(&l->mutex);
}

static inline void live_end(live *l)
{
    pthread_mutex_unlock(&l->mutex);
    live_leave(l);
}

/* rank.c: the rank of this process; it ends if it has none. */
uint32_t live_find_rank(const sc_emu_config *c);
/* open.c: whether live_get() was called. */
bool live_is_open(void);
/* In a copy of the process: the next live_get() opens it as a scout of `rank`
 * (scouts.c). */
void live_open_as(uint32_t rank);

/* slots.c */
live_slot *live_slot_new(live *l, live_ticket *k);
live_slot *live_slot_find(live *l, live_ticket k); /* NULL: dropped */
live_ticket live_slot_ticket(const live_slot *s);
void live_slot_free(live *l, live_slot *s);
void live_slot_move(live *l, live_slot *s, slot_state to);
live_slot *live_slot_at(const live *l, uint32_t i);
void live_index_add(live *l, uint64_t ticket, live_slot *s);
live_slot *live_index_find(const live *l, uint64_t ticket);
void live_index_remove(live *l, uint64_t ticket);

/* world.c; under the mutex */
void live_world_note(live *l, live_slot *s); /* before data are pushed */
void live_world_post(live *l, live_slot *s, sc_time t);
/* Delivers everything that ends up to `now`; l->next is up to date
 * afterwards. */
void live_world_look(live *l, sc_time now);
void live_world_settle(live *l);               /* sc_emu_port_settle() */
void live_world_release(live *l, sc_time now); /* held operations begin */
void live_slot_log(live *l, const live_slot *s, sc_time end, sc_time resumed);

/* False: it had ended before, which has been delivered. */
bool live_world_cancel(live *l, live_slot *s);
void live_world_waited(live *l, sc_time from, sc_time to);
sc_time live_world_cpu(live *l, const live_slot *s);
void live_world_why(live *l, const live_slot *s, sc_text *out);
/* Virtual clock: returns when the operation has ended, or at `by`; reports why
 * it does not. The mutex is free meanwhile. */
void live_world_await(live *l, live_ticket k, sc_time by);
/* Real clock, with a world of the launcher's: the same, or when something else
 * was answered, or after `at_most`. */
void live_world_sleep(live *l, live_ticket k, sc_time by, sc_time at_most);

/* wait.c */
bool live_slot_ended(const live_slot *s);
void live_slot_done(live *l, live_slot *s, sc_time resumed);

/* Warns why the operation does not end; `still`: ends the process if it never
 * will. */
void live_report_stuck(live *l, const live_slot *s, bool still);
/* when a wait is reported, and then once more */
#define LIVE_STUCK_PS (5 * SC_PS_PER_S)
#define LIVE_STILL_PS (30 * SC_PS_PER_S)

/* talk.c */
void live_die_err(live *l, const sc_err *err);

#endif
