/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mp.h - a world of MPI ranks of which one process is real.
 *
 * The program runs as a singleton: for the real library the world has one rank.
 * Every communicator derived from MPI_COMM_WORLD is a communicator of the real
 * library, of size 1, which carries attributes, names, error handlers and info;
 * an mp_comm has its members in the emulated world. Communicators
 * of one rank, such as MPI_COMM_SELF, are left to the real library. Groups, and
 * requests of emulated operations, are handles of our own, which differ from
 * all handles of the library (handle.h).
 *
 * Every function of MPI that takes one of them is in symbols.txt (replaced, or
 * known to be harmless), or refused by a function that the build generates from
 * the library's own header (refuse.awk).
 */
#ifndef MP_H
#define MP_H

#include "common/moves.h"

#include <mpi.h>
#include <pthread.h>
#include <stddef.h>

/* ---- communicators ------------------------------------------------------- */

typedef struct mp_cart {
    bool there;
    int n;               /* may be 0 */
    int *dims, *periods; /* [n] */
} mp_cart;

/* A graph: this rank's edges, and all of those of MPI_Graph_create(). */
typedef struct mp_graph {
    bool there, weighted;
    int n_in, n_out;
    int *in, *out;               /* [n_in], [n_out] */
    int *in_weight, *out_weight; /* NULL: none */
    int n_nodes;                 /* 0: only its own are known */
    int *index, *edge;           /* [n_nodes], as MPI has them */
} mp_graph;

typedef struct mp_comm {
    MPI_Comm handle;
    uint32_t n, me;       /* members; own position */
    const uint32_t *rank; /* [n] world ranks; NULL: 0 .. n-1 */
    uint32_t group;       /* of live.h; not of one rank */
    uint32_t declared;    /* live_declare() */
    uint32_t n_real;
    uint32_t *real;   /* [n_real] positions of real members, rising */
    uint64_t context; /* the same on all real members */
    uint32_t n_made;  /* communicators made from it by all members */
    uint32_t any;     /* number of receives from any source */
    mp_cart cart;
    mp_graph graph;
    struct mp_comm *messenger; /* of neighbour.c; NULL: none yet */
    uint64_t counts;  /* hash of numbers that all members said; 0: none */
    size_t last_sent; /* length of the last message to an emulated member */
    int last_tag;
    int probed_tag; /* what a probe of a rank that mirrors gave; -1: none */
    uint32_t refs;  /* the handle, and requests in flight */
} mp_comm;

/* The communicator in the emulated world; NULL: left to the real library (also
 * if nothing is emulated, and before MPI_Init and after MPI_Finalize, which the
 * library reports itself). */
mp_comm *mp_ours(MPI_Comm c);
/* The same, including communicators of one rank; NULL: not derived from
 * MPI_COMM_WORLD. */
mp_comm *mp_find(MPI_Comm c);

void mp_comm_start(void);
void mp_comm_hold(mp_comm *c);
void mp_comm_drop(mp_comm *c);
/* Derives a communicator from `from`: of these world ranks ([n], copied; `me` is
 * this rank's position), or of the first n members (NULL; `me` is not read). It
 * is MPI_COMM_NULL for n 0, and for other members. */
int mp_comm_make(mp_comm *from, const uint32_t *rank, uint32_t n, uint32_t me,
                 uint64_t context, MPI_Comm *out);
/* The same members under a duplicate of the library's communicator, with or
 * without the grid or graph. */
mp_comm *mp_comm_twin(mp_comm *from, MPI_Comm handle, bool topology);
void mp_comm_set_cart(mp_comm *c, int n, const int *dims, const int *periods);
void mp_comm_set_graph(mp_comm *c, const mp_graph *g); /* copied */
void mp_comm_free_graph(mp_comm *c);
/* Whom MPI_Cart_shift() by `by` reaches, or MPI_PROC_NULL. */
int mp_cart_shifted(const mp_comm *c, int dim, int by);
/* The context of the next one that all members make. */
uint64_t mp_context(mp_comm *c);

static inline uint32_t mp_world_rank(const mp_comm *c, uint32_t member)
{
    return c->rank ? c->rank[member] : member;
}

/* Valid as long as the communicator. */
static inline live_members mp_members(const mp_comm *c)
{
    return (live_members){.group = c->group,
                          .n = c->n,
                          .me = c->me,
                          .rank = c->rank,
                          .n_real = c->n_real,
                          .real = c->real};
}

bool mp_is_real(const mp_comm *c, uint32_t member);

/* Of several ranks that have opened the file; NULL: it is left to the real
 * library. */
mp_comm *mp_file_comm(MPI_File f);

/* ---- groups -------------------------------------------------------------- */

typedef struct mp_group {
    uint32_t n;
    uint32_t *rank; /* [n] world ranks */
} mp_group;

/* NULL: not one of our groups. */
const mp_group *mp_group_of(MPI_Group g);
/* The members of `c`; NULL: this rank alone. */
int mp_group_of_comm(const mp_comm *c, MPI_Group *out);
uint32_t mp_group_find(const mp_group *g, uint32_t rank); /* UINT32_MAX: not */

/* ---- buffers ------------------------------------------------------------- */

typedef struct mp_type {
    size_t size;
    MPI_Aint extent;
    bool flat;        /* elements lie side by side, without gaps */
    sc_emu_type kind; /* SC_N_EMU_TYPES: not a number that emu_data.h knows */
} mp_type;

void mp_types_start(void);
int mp_type_of(MPI_Datatype t, mp_type *out);
/* Whether it is the library's own, which is never freed. */
bool mp_type_is_named(MPI_Datatype t);
sc_emu_reduce mp_op_of(MPI_Op op); /* SC_N_EMU_REDUCES: another */

/* The buffer's bytes: in place, or a copy. */
int mp_pack(const void *buf, int count, MPI_Datatype t, live_view *out);
/* Fills the buffer with the bytes, repeated if there are fewer; with zeros if
 * there are none. They may overlap. */
int mp_place(void *buf, int count, MPI_Datatype t, const void *p, size_t len);
void *mp_alloc(size_t n); /* dies if there is none */

static inline const void *mp_at(const void *buf, MPI_Aint index,
                                MPI_Aint extent)
{
    return (const char *)buf + index * extent;
}

/* Counts and displacements of the forms with large ones (MPI 4): *fits becomes
 * false if an int does not hold them. `v` [n] has numbers of 64 bits; NULL gives
 * NULL. */
int mp_int(MPI_Count n, bool *fits);
int *mp_ints(const void *v, uint32_t n, bool *fits);

/* out = x[0]^m[0] op x[1]^m[1] ...: n arrays of count elements, by the
 * library's own reduction, doubling. */
int mp_reduce_local(const void *const *x, const uint32_t *times, uint32_t n,
                    int count, MPI_Datatype t, MPI_Op op, void *out);

/* ---- collectives --------------------------------------------------------- */

/* Arguments of a collective; the arrays of the v and w forms belong to the
 * program. */
typedef struct mp_call {
    sc_coll kind;
    bool exclusive; /* a scan without the own contribution */
    const char *name;
    mp_comm *c;
    const void *send;
    void *recv;
    int n_send, n_recv;
    const int *sends, *recvs, *send_at, *recv_at;
    MPI_Datatype send_type, recv_type;
    const MPI_Datatype *send_types, *recv_types; /* displacements are bytes */
    MPI_Op op;
    int root;
    bool reduces;
    bool early; /* a user-defined operation, which may be freed meanwhile */
    /* copies, if types and arrays may be freed meanwhile */
    MPI_Datatype *held; /* [n_held] */
    uint32_t n_held;
    void *lists[6];
} mp_call;

/* Copies what the program may free or change before the operation ends, as MPI
 * allows for all but the buffers. */
void mp_call_hold(mp_call *k);
void mp_call_release(mp_call *k);

int mp_check(const mp_call *k);
uint64_t mp_volume(const mp_call *k);
/* live_moves_push() and live_moves_fill(); an error code. */
int mp_push(const mp_call *k, live_ticket t);
int mp_fill(const mp_call *k, live_ticket t);

/* ---- requests ------------------------------------------------------------ */

/* A message that came. */
typedef struct mp_got {
    uint32_t member; /* its source */
    int tag;
    size_t len;
    uint64_t seq;
} mp_got;

#define MP_ANY UINT32_MAX /* any member, all of which are real */

typedef enum mp_mode { MP_STANDARD, MP_SYNCHRONOUS, MP_BUFFERED } mp_mode;

typedef struct mp_message {
    mp_comm *c;
    bool send;
    mp_mode mode;
    void *buf;
    int count;
    MPI_Datatype type;
    bool held;       /* `type` is a copy */
    int peer, tag;   /* as named by the program */
    uint32_t member; /* its partner; this rank: c->me; or MP_ANY */
    size_t room;     /* bytes that a receive takes */
    bool claimed;    /* a receive of the message `got` */
    live_view like;  /* what an emulated member sends; NULL: the last message of
                        that length */
    mp_got got;      /* by a receive */
} mp_message;

typedef enum mp_state { MP_FREE, MP_INACTIVE, MP_ACTIVE, MP_DONE } mp_state;

typedef struct mp_request {
    uint32_t index;
    mp_state state;
    bool persistent, is_call, dropped, canceled;
    bool pending; /* `ticket` is in flight */
    live_ticket ticket;
    mp_call call;
    mp_message msg;
    MPI_Request *part; /* [n_parts] messages of which it consists; NULL: it is
                          one operation */
    int n_parts;
    int error;
    struct mp_request *next; /* free */
} mp_request;

mp_request *mp_request_new(MPI_Request *out);
mp_request *mp_request_of(MPI_Request r); /* NULL: the library's */
/* Whether all have ended; with `wait`, waits for that. *error: of those that
 * failed, the last one's. */
bool mp_parts_done(MPI_Request *part, int n, bool wait, int *error);
void mp_leftovers(void); /* at MPI_Finalize */

int mp_call_start(mp_request *r);
bool mp_call_done(mp_request *r, bool wait);
int mp_message_check(const mp_message *m, const char *name);
int mp_message_start(mp_request *r);
bool mp_message_done(mp_request *r, bool wait);
/* The program frees the request of a receive in flight: fills its buffer if the
 * data are known by now, else warns. */
void mp_message_abandon(mp_request *r);
void mp_message_status(const mp_request *r, MPI_Status *s);
/* Starts it; blocks until it is done. */
int mp_message_begin(mp_message m, const char *name, bool persistent,
                     MPI_Request *out);
int mp_message_run(mp_message m, const char *name, MPI_Status *status);

/* Whose message a receive from any source gets. */
uint32_t mp_any_member(mp_comm *c, int tag);
/* Whether messages of the member come when it sends them, with its tags and
 * lengths: it is real, or has a scout. */
bool mp_is_true(const mp_comm *c, uint32_t member);
live_op mp_receive_op(const mp_comm *c, uint32_t member, int tag, size_t bytes);
/* What a receive or probe that has ended got; false: from a rank that
 * mirrors. */
bool mp_got_of(const mp_comm *c, live_ticket k, mp_got *out);
void mp_got_status(const mp_got *g, MPI_Status *s);
/* Probes for a message of a member, or of any; with `wait`, waits for it. */
bool mp_look(const mp_comm *c, uint32_t member, int tag, sc_emu_take take,
             bool wait, mp_got *got);
/* It dies, as nobody else could send the message. */
void mp_waits_for_self(void);

/* ---- the state of the process -------------------------------------------- */

typedef struct mp_state_all {
    live *l;
    bool ready; /* between MPI_Init and MPI_Finalize of an emulated rank */
    pthread_mutex_t lock; /* recursive; never held while waiting */
    size_t eager;         /* standard sends up to this size do not wait */
    mp_comm *world;
} mp_all;

extern mp_all mp;

void mp_lock(void);
void mp_unlock(void);

/* Through the communicator's error handler; returns `code`. */
int mp_fail(const mp_comm *c, int code, const char *fmt, ...) SC_PRINTF(3, 4);
/* Reports that the call is not emulated. */
int mp_refuse(MPI_Comm c, const char *name);

#endif
