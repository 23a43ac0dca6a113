/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h - shared by the files of the Gloo interposer.
 *
 * Threads: the program's own call c10d, which puts collectives into the queue
 * of a process group (gloo_pg). The group's workers take them out and call
 * gloo's functions, which are replaced here. Everything in this file is
 * thread-safe.
 */
#ifndef GLOO_INSIDE_H
#define GLOO_INSIDE_H

#include "abi.h"
#include "common/live.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- the interposed libraries (real.c) -------------------------- */

typedef enum gloo_lib { LIB_GLOO, LIB_TORCH, LIB_CXX } gloo_lib;

/* A symbol of the library; ends the process if there is none. */
void *gloo_real(gloo_lib lib, const char *symbol);

/* The function that the program meant, looked up once. */
#define GLOO_REAL(type, lib, symbol)                                 \
    __extension__({                                                  \
        static void *_Atomic at_;                                    \
        void *p_ = atomic_load_explicit(&at_, memory_order_acquire); \
        if (!p_) {                                                   \
            p_ = gloo_real(lib, symbol);                             \
            atomic_store_explicit(&at_, p_, memory_order_release);   \
        }                                                            \
        (type) p_;                                                   \
    })

/* Defines the replacement of a C++ function: under its name, and at an even
 * address, because odd addresses mark virtual functions in pointers to
 * members. */
#define GLOO_HOOK(symbol) \
    __asm__(symbol) __attribute__((visibility("default"), aligned(16)))

/* The rank, if this process is emulated; checks at first use whether the loaded
 * libraries match abi.h, and refuses others. */
live *gloo_live(void);

/* Throws std::runtime_error, as gloo does when its time limit passes. */
_Noreturn void gloo_throw(const char *fmt, ...) SC_PRINTF(1, 2);

/* ---- groups (group.c) ---------------------------------------------------- */

/* Members of a process group post in the order in which the program queued
 * their operations, whichever worker is first. */
typedef struct gloo_queue {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    uint64_t taken, served;
} gloo_queue;

/* A gloo context: a communicator. */
typedef struct gloo_group {
    const gloo_context *context;
    const void *owner; /* c10d's process group; NULL: made without one */
    uint32_t id;       /* of live_group() */
    uint32_t rank, size;
    uint32_t *world;        /* [size] ranks */
    uint32_t n_real, *real; /* [n_real] positions in the group, rising */
    uint32_t stream;        /* of the log: which communicator */
    gloo_queue *queue;
    struct gloo_group *next;
} gloo_group;

/* The group of a context that connectFullMesh() has seen; ends the process
 * otherwise. */
gloo_group *gloo_group_of(live *l, const gloo_context *c);
/* The queue of a process group; NULL: unknown. */
gloo_queue *gloo_group_queue(const void *owner);
/* Whether that member of the process group is emulated. */
bool gloo_group_emulated(const void *owner, int64_t member);

/* The ranks that the Python code creating a process group names, `size` of
 * them; false: there is no Python, or its code does not name them
 * (python.c). */
bool gloo_python_ranks(uint32_t size, uint32_t *rank, bool *whole);
/* Fills the buffers of the Python code that calls an object collective with an
 * emulated root; false: none does. */
bool gloo_python_objects(void);

/* ---- work of c10d (work.c) ----------------------------------------------- */

/* The operation that the calling thread, a worker, handles. */
typedef struct gloo_work {
    const void *work; /* c10d's object */
    bool floats;      /* its tensor's elements are floating point numbers */
    sc_time queued;   /* when the program reached it; -1: it is in no queue */
    uint64_t ticket;
    bool left;   /* it has left the queue */
    bool filled; /* its data from an emulated root are there */
    gloo_queue *queue;
    struct gloo_work *next;
} gloo_work;

/* The process group that the calling thread is creating. */
const void *gloo_work_owner(void);
/* Whether any work is in a queue or with a worker. */
bool gloo_work_any(void);
/* NULL: not a worker, or c10d was not involved. */
gloo_work *gloo_work_now(void);
/* Virtual clock: this thread's last operation ended then. */
void gloo_work_ended(sc_time end);
/* When the program reached the operation that this thread is about to post. */
sc_time gloo_work_time(live *l);
/* Waits until its ticket is served, and serves the next one. */
void gloo_work_enter(gloo_work *w);
void gloo_work_leave(gloo_work *w);

/* ---- operations (call.c) ------------------------------------------------- */

typedef struct gloo_call {
    live *l;
    gloo_group *g;
    live_op op;
    live_ticket ticket;
    int64_t timeout; /* ms */
    uint64_t number; /* of all posts */
    sc_time end;     /* virtual clock: when it ended */
} gloo_call;

/* Enters; false: the process is not emulated. */
bool gloo_call_begin(gloo_call *c, const gloo_context *context,
                     int64_t timeout);
/* Posts; `root` is a position in the group, -1: none. */
void gloo_call_post(gloo_call *c, sc_coll coll, int root, uint64_t bytes);
/* Pushes the data for other real members. */
void gloo_call_push(gloo_call *c, const void *data, size_t len);
/* The memory of a posted buffer, at least `len` bytes. */
char *gloo_call_memory(gloo_call *c, const gloo_buffer *b, size_t len);
/* Waits until it has ended, in a worker of c10d or the program itself; leaves
 * and throws if gloo's time limit passes first. */
void gloo_call_serve(gloo_call *c, bool worker);
void gloo_call_cancel(gloo_call *c);
/* The contribution of the real member at this position; ends the process if it
 * is not `len` bytes (SIZE_MAX: any). This rank's is `own`. */
const void *gloo_call_peer(gloo_call *c, uint32_t member, const void *own,
                           size_t len, size_t *got);
void gloo_call_done(gloo_call *c);

/* The real member whose data member `m` has: itself, or the one it mirrors. */
uint32_t gloo_call_like(const gloo_call *c, uint32_t m);

/* ---- the virtual clock (virtual.c) --------------------------------------- */

/* The calling thread is the program's: reports all operations that have ended
 * by now. */
void gloo_virtual_catch_up(live *l);
/* Sleeps until it has ended; false: not before `by`. */
bool gloo_virtual_wait(gloo_call *c, sc_time by);
/* Nobody will wait for it any more. */
void gloo_virtual_forget(live_ticket k);

/* ---- data (reduce.c) ----------------------------------------------------- */

/* The reduction over all members, of which the real ones have contributed
 * `real` [n_real]. */
void gloo_reduce_all(gloo_call *c, const cxx_function *f,
                     const void *const *real, size_t n, size_t size, void *out);
/* The data that an emulated rank sends: the last buffer of that length that
 * this rank sent, or zeros. */
void gloo_sent_before(live *l, void *out, size_t len);
/* The data of emulated member `m`, mirrored from `mine`. */
void gloo_peer_data(gloo_call *c, const void *mine, size_t len, size_t size,
                    void *out);

/* ---- buffers (buffer.c) -------------------------------------------------- */

gloo_buffer *gloo_buffer_new(gloo_context *c, void *ptr, size_t size);
bool gloo_buffer_ours(const gloo_buffer *b);
void gloo_buffer_free(gloo_buffer *b);

#endif
