/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - probes, and messages that were claimed by one. */
#include "mpi/handle.h"

#include <stdlib.h>

/* ---- claimed messages ---------------------------------------------------- */

typedef struct claim {
    mp_comm *c; /* NULL: the handle is free */
    mp_got got;
} claim;

static struct {
    claim *v;
    uint32_t n, cap;
} claims;

static MPI_Message claim_make(mp_comm *c, const mp_got *got)
{
    mp_lock();
    uint32_t i = 0;
    while (i < claims.n && claims.v[i].c) i++;
    if (i == claims.cap) {
        claims.cap = claims.cap ? 2 * claims.cap : 16;
        claims.v = realloc(claims.v, claims.cap * sizeof *claims.v);
        if (!claims.v) live_die(mp.l, "out of memory");
    }
    if (i == claims.n) claims.n++;
    claims.v[i] = (claim){c, *got};
    mp_unlock();
    mp_comm_hold(c);
    return handle_make(MPI_Message, HANDLE_MESSAGE, i);
}

/* False: it is a message of the library's, or none. */
static bool claim_take(MPI_Message *message, claim *out)
{
    uint32_t i;
    if (!mp.ready || !handle_is(handle_bits(*message), HANDLE_MESSAGE, &i))
        return false;
    mp_lock();
    bool there = i < claims.n && claims.v[i].c;
    if (there) {
        *out = claims.v[i];
        claims.v[i].c = NULL;
    }
    mp_unlock();
    if (!there) live_die(mp.l, "a message was received twice");
    *message = MPI_MESSAGE_NULL;
    return true;
}

/* ---- probes -------------------------------------------------------------- */

bool mp_look(const mp_comm *c, uint32_t member, int tag, sc_emu_take take,
             bool wait, mp_got *got)
{
    live_op op = mp_receive_op(c, member, tag, 0);
    op.take = (uint8_t)take;
    live_ticket k = live_post(mp.l, &op, live_now(mp.l));
    if (wait)
        live_wait(mp.l, k);
    else if (!live_ends_now(mp.l, k))
        return false;
    bool found = mp_got_of(c, k, got);
    live_drop(mp.l, k);
    return found;
}

/* A rank that mirrors always has a message, as long as the last one sent. */
static bool probe(mp_comm *c, int source, int tag, sc_emu_take take, bool wait,
                  mp_got *got)
{
    uint32_t member =
        source == MPI_ANY_SOURCE ? mp_any_member(c, tag) : (uint32_t)source;
    if (!mp_is_true(c, member)) {
        if (!wait) live_guess(mp.l, "MPI_Iprobe");
        if (tag == MPI_ANY_TAG) c->probed_tag = c->last_tag;
        *got = (mp_got){.member = member,
                        .tag = tag == MPI_ANY_TAG ? c->last_tag : tag,
                        .len = c->last_sent};
        return true;
    }
    bool self = member == c->me;
    bool found = mp_look(c, member, tag, take, wait && !self, got);
    if (!found && wait && self) mp_waits_for_self();
    return found;
}

typedef struct asked {
    int source, tag;
    bool wait;
    int *flag;
    MPI_Message *message; /* NULL: it is not claimed */
} asked;

static int run(mp_comm *c, const asked *a, const char *name, MPI_Status *status)
{
    mp_message m = {.c = c, .peer = a->source, .tag = a->tag, .type = MPI_BYTE};
    int code = mp_message_check(&m, name);
    if (code != MPI_SUCCESS) return code;
    mp_got got;
    bool found = true;
    if (a->source == MPI_PROC_NULL) {
        mp_request r = {.msg = {.peer = MPI_PROC_NULL}};
        mp_message_status(&r, status);
        if (a->message) *a->message = MPI_MESSAGE_NO_PROC;
    } else {
        live_enter(mp.l);
        found = probe(c, a->source, a->tag,
                      a->message ? SC_EMU_CLAIM : SC_EMU_PROBE, a->wait, &got);
        if (found) mp_got_status(&got, status);
        if (found && a->message) *a->message = claim_make(c, &got);
        live_leave(mp.l);
    }
    if (a->flag) *a->flag = found;
    if (!found && a->message) *a->message = MPI_MESSAGE_NULL;
    return MPI_SUCCESS;
}

#define LIST(...) __VA_ARGS__
#define PROBES(f, params, args, waits, flag, message)                         \
    int MPI_##f(int source, int tag, MPI_Comm comm, LIST params)              \
    {                                                                         \
        mp_comm *c = mp_ours(comm);                                           \
        if (!c) return PMPI_##f(source, tag, comm, LIST args);                \
        return run(c, &(asked){source, tag, waits, flag, message}, "MPI_" #f, \
                   status);                                                   \
    }

PROBES(Probe, (MPI_Status * status), (status), true, NULL, NULL)
PROBES(Iprobe, (int *flag, MPI_Status *status), (flag, status), false, flag,
       NULL)
PROBES(Mprobe, (MPI_Message * message, MPI_Status *status), (message, status),
       true, NULL, message)
PROBES(Improbe, (int *flag, MPI_Message *message, MPI_Status *status),
       (flag, message, status), false, flag, message)

/* ---- their receives ------------------------------------------------------ */

static mp_message receive_of(const claim *x, void *buf, int count,
                             MPI_Datatype type)
{
    return (mp_message){.c = x->c,
                        .buf = buf,
                        .count = count,
                        .type = type,
                        .peer = (int)x->got.member,
                        .tag = x->got.tag,
                        .claimed = true,
                        .got = x->got};
}

int MPI_Mrecv(void *buf, int count, MPI_Datatype datatype, MPI_Message *message,
              MPI_Status *status)
{
    claim x;
    if (!claim_take(message, &x))
        return PMPI_Mrecv(buf, count, datatype, message, status);
    int code = mp_message_run(receive_of(&x, buf, count, datatype), "MPI_Mrecv",
                              status);
    mp_comm_drop(x.c);
    return code;
}

int MPI_Imrecv(void *buf, int count, MPI_Datatype datatype,
               MPI_Message *message, MPI_Request *request)
{
    claim x;
    if (!claim_take(message, &x))
        return PMPI_Imrecv(buf, count, datatype, message, request);
    int code = mp_message_begin(receive_of(&x, buf, count, datatype),
                                "MPI_Imrecv", false, request);
    mp_comm_drop(x.c);
    return code;
}
