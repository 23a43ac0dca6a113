/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - point-to-point messages.
 *
 * A send to an emulated rank is timed and its bytes are kept; a receive from
 * one is timed and gets the bytes of that length that were last sent. Messages
 * to this rank and to real ranks carry the true bytes, and the world matches
 * them with receives by communicator, source and tag.
 */
#include "mpi/mp.h"

#include <stdlib.h>
#include <string.h>

/* Where members mirror, a receive from any source takes a message that is there
 * already, or alternates between the other members, so that a program that
 * expects one of each gets it. */
static uint32_t in_turn(mp_comm *c, int tag)
{
    live_guess(mp.l, "MPI_ANY_SOURCE");
    mp_got got;
    if (mp_look(c, MP_ANY, tag, SC_EMU_PROBE, false, &got)) return got.member;
    uint32_t i = c->any++ % (c->n - 1);
    return (c->me + 1 + i) % c->n;
}

bool mp_is_true(const mp_comm *c, uint32_t member)
{
    return member == MP_ANY || mp_is_real(c, member) ||
           live_scout_sends(mp.l, mp_world_rank(c, member));
}

uint32_t mp_any_member(mp_comm *c, int tag)
{
    for (uint32_t i = 0; c->n_real < c->n && i < c->n; i++)
        if (!mp_is_real(c, i) && !live_is_scouted(mp.l, mp_world_rank(c, i)))
            return in_turn(c, tag);
    return MP_ANY;
}

int mp_message_check(const mp_message *m, const char *name)
{
    const mp_comm *c = m->c;
    bool any = !m->send && m->peer == MPI_ANY_SOURCE;
    if (m->count < 0)
        return mp_fail(c, MPI_ERR_COUNT, "%s: a negative count", name);
    if (m->type == MPI_DATATYPE_NULL)
        return mp_fail(c, MPI_ERR_TYPE, "%s: no datatype", name);
    if (m->tag < 0 && (m->send || m->tag != MPI_ANY_TAG))
        return mp_fail(c, MPI_ERR_TAG, "%s: tag %d", name, m->tag);
    if (!any && m->peer != MPI_PROC_NULL &&
        (m->peer < 0 || (uint32_t)m->peer >= c->n))
        return mp_fail(c, MPI_ERR_RANK,
                       "%s: no rank %d in a communicator of %u ranks", name,
                       m->peer, c->n);
    return MPI_SUCCESS;
}

/* ---- sends ------------------------------------------------------------------------- */

static int start_send(mp_request *r)
{
    mp_message *m = &r->msg;
    live_view v;
    int code = mp_pack(m->buf, m->count, m->type, &v);
    if (code != MPI_SUCCESS) return code;
    /* The library takes ownership of it. */
    bool eager =
        m->mode == MP_BUFFERED || (m->mode == MP_STANDARD && v.len <= mp.eager);
    live_op op = {.coll = SC_SEND,
                  .group = m->c->group,
                  .peer = mp_world_rank(m->c, m->member),
                  .bytes = v.len,
                  .tag = m->tag,
                  .eager = eager,
                  .async = true};
    r->ticket = live_post(mp.l, &op, live_now(mp.l));
    r->pending = true;
    if (mp_is_real(m->c, m->member)) {
        live_push(mp.l, r->ticket, v.len ? v.p : "", v.len);
    } else {
        live_sent(mp.l, v.p, v.len);
        m->c->last_sent = v.len;
        m->c->last_tag = m->tag;
    }
    if (eager) {
        live_forget(mp.l, r->ticket);
        r->pending = false;
    }
    free(v.own);
    return MPI_SUCCESS;
}

/* ---- receives ---------------------------------------------------------------------- */

/* Places of world ranks in the communicator. */
static uint32_t member_of(const mp_comm *c, uint32_t rank)
{
    if (!c->rank) return rank;
    uint32_t i = 0;
    while (i + 1 < c->n && c->rank[i] != rank) i++;
    return i;
}

live_op mp_receive_op(const mp_comm *c, uint32_t member, int tag, size_t bytes)
{
    bool any = member == MP_ANY;
    return (live_op){.coll = SC_RECV,
                     .group = c->group,
                     .peer = any ? SC_EMU_ANY : mp_world_rank(c, member),
                     .bytes = bytes,
                     .tag = tag == MPI_ANY_TAG ? SC_EMU_ANY_TAG : tag,
                     .cuts = true,
                     .async = true};
}

bool mp_got_of(const mp_comm *c, live_ticket k, mp_got *out)
{
    live_message m;
    if (!live_matched(mp.l, k, &m)) return false;
    *out = (mp_got){.member = member_of(c, m.from),
                    .tag = m.tag,
                    .len = m.bytes,
                    .seq = m.seq};
    return true;
}

static int start_receive(mp_request *r)
{
    mp_message *m = &r->msg;
    mp_type y;
    int code = mp_type_of(m->type, &y);
    if (code != MPI_SUCCESS) return code;
    m->room = (size_t)m->count * y.size;
    /* Its tag is not known, and the trace of a scout should not say so. */
    bool guessed = m->tag == m->c->probed_tag && !mp_is_true(m->c, m->member);
    live_op op =
        mp_receive_op(m->c, m->member, guessed ? MPI_ANY_TAG : m->tag, m->room);
    if (m->claimed) {
        op.take = SC_EMU_CLAIMED;
        op.seq = m->got.seq;
    }
    r->ticket = live_post(mp.l, &op, live_now(mp.l));
    r->pending = true;
    return MPI_SUCCESS;
}

/* From an emulated rank, or one whose data are not known. */
static int place_mirrored(mp_message *m, size_t len)
{
    if (live_config(mp.l)->data == SC_EMU_DATA_NONE) return MPI_SUCCESS;
    const void *p = m->like.p ? m->like.p : live_last_sent(mp.l, len);
    mp_type y;
    mp_type_of(m->type, &y);
    if (m->like.p && len > m->like.len) len = m->like.len;
    int whole = (int)(y.size ? len / y.size : 0);
    return mp_place(m->buf, whole, m->type, p, p ? len : 0);
}

static int finish_receive(mp_request *r)
{
    mp_message *m = &r->msg;
    mp_type y;
    mp_type_of(m->type, &y);
    if (!mp_got_of(m->c, r->ticket, &m->got)) {
        if (!m->claimed)
            m->got =
                (mp_got){.member = m->member,
                         .tag = m->tag == MPI_ANY_TAG ? m->c->last_tag : m->tag,
                         .len = m->room};
        return place_mirrored(m, m->got.len < m->room ? m->got.len : m->room);
    }
    mp_got *g = &m->got;
    size_t len = 0, fits = g->len < m->room ? g->len : m->room;
    uint32_t from = mp_world_rank(m->c, g->member);
    const void *p = live_peer(mp.l, r->ticket, from, &len);
    int whole = (int)(y.size ? fits / y.size : 0), code;
    if (p)
        code = mp_place(m->buf, whole, m->type, p, (size_t)whole * y.size);
    else
        code = place_mirrored(m, fits);
    if (g->len <= m->room) return code;
    size_t sent = g->len;
    g->len = m->room;
    return mp_fail(m->c, MPI_ERR_TRUNCATE,
                   "a message of %zu bytes of rank %u for a buffer of %zu",
                   sent, from, m->room);
}

int mp_message_start(mp_request *r)
{
    mp_message *m = &r->msg;
    r->state = MP_ACTIVE;
    r->error = MPI_SUCCESS;
    r->pending = false;
    if (m->peer == MPI_PROC_NULL) return MPI_SUCCESS;
    m->member = m->peer == MPI_ANY_SOURCE ? mp_any_member(m->c, m->tag)
                                          : (uint32_t)m->peer;
    return m->send ? start_send(r) : start_receive(r);
}

void mp_waits_for_self(void)
{
    live_die(mp.l, "rank %u waits for a message to itself that it has not sent",
             live_rank(mp.l));
}

/* Nobody else could send it. */
static void wait_for_self(const mp_request *r)
{
    const mp_message *m = &r->msg;
    if (m->send || m->member != m->c->me || live_test_now(mp.l, r->ticket))
        return;
    mp_waits_for_self();
}

bool mp_message_done(mp_request *r, bool wait)
{
    mp_message *m = &r->msg;
    if (m->peer == MPI_PROC_NULL) return true;
    if (r->pending) {
        if (wait) {
            wait_for_self(r);
            live_wait(mp.l, r->ticket);
        } else if (!live_test(mp.l, r->ticket)) {
            return false;
        }
        if (!m->send) r->error = finish_receive(r);
        live_drop(mp.l, r->ticket);
        r->pending = false;
    }
    return true;
}

void mp_message_abandon(mp_request *r)
{
    const mp_message *m = &r->msg;
    if (mp_message_done(r, false)) return;
    if (mp_is_true(m->c, m->member))
        live_warn(mp.l,
                  "MPI_Request_free: rank %u receives a message whose data "
                  "are lost; wait for its request instead",
                  live_rank(mp.l));
    else
        finish_receive(r);
}

void mp_got_status(const mp_got *g, MPI_Status *s)
{
    if (s == MPI_STATUS_IGNORE) return;
    s->MPI_SOURCE = (int)g->member;
    s->MPI_TAG = g->tag;
    PMPI_Status_set_elements_x(s, MPI_BYTE, (MPI_Count)g->len);
}

void mp_message_status(const mp_request *r, MPI_Status *s)
{
    const mp_message *m = &r->msg;
    if (s == MPI_STATUS_IGNORE) return;
    if (!m->send && m->peer != MPI_PROC_NULL) {
        mp_got_status(&m->got, s);
        return;
    }
    s->MPI_SOURCE = m->send ? MPI_ANY_SOURCE : MPI_PROC_NULL;
    s->MPI_TAG = MPI_ANY_TAG;
    PMPI_Status_set_elements(s, MPI_BYTE, 0);
}

/* ---- the calls --------------------------------------------------------------------- */

int mp_message_begin(mp_message m, const char *name, bool persistent,
                     MPI_Request *out)
{
    int code = mp_message_check(&m, name);
    if (code != MPI_SUCCESS) return code;
    live_enter(mp.l);
    mp_request *r = mp_request_new(out);
    r->persistent = persistent;
    mp_type y;
    if (mp_type_of(m.type, &y) == MPI_SUCCESS && !y.flat)
        m.held = PMPI_Type_dup(m.type, &m.type) == MPI_SUCCESS;
    r->msg = m;
    mp_comm_hold(m.c);
    if (!persistent) code = mp_message_start(r);
    live_leave(mp.l);
    return code;
}

int mp_message_run(mp_message m, const char *name, MPI_Status *status)
{
    int code = mp_message_check(&m, name);
    if (code != MPI_SUCCESS) return code;
    live_enter(mp.l);
    mp_request r = {.msg = m};
    code = mp_message_start(&r);
    if (code == MPI_SUCCESS) {
        mp_message_done(&r, true);
        code = r.error;
        mp_message_status(&r, status);
    }
    live_leave(mp.l);
    return code;
}

#define SEND_PARAMS                                                       \
    const void *buf, int count, MPI_Datatype datatype, int dest, int tag, \
        MPI_Comm comm
#define SEND_ARGS buf, count, datatype, dest, tag, comm
#define SEND_OF(b, n, t, to, tag_, mode_)                                    \
    (mp_message)                                                             \
    {                                                                        \
        .c = c, .send = true, .mode = mode_, .buf = (void *)(b), .count = n, \
        .type = t, .peer = to, .tag = tag_                                   \
    }
#define RECV_OF(b, n, t, from, tag_)                                       \
    (mp_message)                                                           \
    {                                                                      \
        .c = c, .buf = b, .count = n, .type = t, .peer = from, .tag = tag_ \
    }
#define SEND_MESSAGE(mode) SEND_OF(buf, count, datatype, dest, tag, mode)

#define SENDS(f, i, mode)                                                    \
    int MPI_##f(SEND_PARAMS)                                                 \
    {                                                                        \
        mp_comm *c = mp_ours(comm);                                          \
        if (!c) return PMPI_##f(SEND_ARGS);                                  \
        return mp_message_run(SEND_MESSAGE(mode), "MPI_" #f,                 \
                              MPI_STATUS_IGNORE);                            \
    }                                                                        \
    int MPI_##i(SEND_PARAMS, MPI_Request *request)                           \
    {                                                                        \
        mp_comm *c = mp_ours(comm);                                          \
        if (!c) return PMPI_##i(SEND_ARGS, request);                         \
        return mp_message_begin(SEND_MESSAGE(mode), "MPI_" #i, false,        \
                                request);                                    \
    }                                                                        \
    int MPI_##f##_init(SEND_PARAMS, MPI_Request *request)                    \
    {                                                                        \
        mp_comm *c = mp_ours(comm);                                          \
        if (!c) return PMPI_##f##_init(SEND_ARGS, request);                  \
        return mp_message_begin(SEND_MESSAGE(mode), "MPI_" #f "_init", true, \
                                request);                                    \
    }

SENDS(Send, Isend, MP_STANDARD)
SENDS(Rsend, Irsend, MP_STANDARD)
SENDS(Ssend, Issend, MP_SYNCHRONOUS)
SENDS(Bsend, Ibsend, MP_BUFFERED)

#define RECVS(f, last_param, last, run)                                     \
    int MPI_##f(void *buf, int count, MPI_Datatype datatype, int source,    \
                int tag, MPI_Comm comm, last_param)                         \
    {                                                                       \
        mp_comm *c = mp_ours(comm);                                         \
        if (!c)                                                             \
            return PMPI_##f(buf, count, datatype, source, tag, comm, last); \
        return run;                                                         \
    }
#define RECV_MESSAGE RECV_OF(buf, count, datatype, source, tag)

RECVS(Recv, MPI_Status *status, status,
      mp_message_run(RECV_MESSAGE, "MPI_Recv", status))
RECVS(Irecv, MPI_Request *request, request,
      mp_message_begin(RECV_MESSAGE, "MPI_Irecv", false, request))
RECVS(Recv_init, MPI_Request *request, request,
      mp_message_begin(RECV_MESSAGE, "MPI_Recv_init", true, request))

/* Both at once; the first error counts. */
static int exchange(mp_message out, mp_message in, const char *name,
                    MPI_Status *status)
{
    int code = mp_message_check(&out, name);
    if (code == MPI_SUCCESS) code = mp_message_check(&in, name);
    if (code != MPI_SUCCESS) return code;
    live_enter(mp.l);
    mp_request r = {.msg = in}, s = {.msg = out};
    code = mp_message_start(&r);
    if (code == MPI_SUCCESS) code = mp_message_start(&s);
    if (code == MPI_SUCCESS) {
        mp_message_done(&s, true);
        mp_message_done(&r, true);
        code = r.error;
        mp_message_status(&r, status);
    }
    live_leave(mp.l);
    return code;
}

int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                 int dest, int sendtag, void *recvbuf, int recvcount,
                 MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                 MPI_Status *status)
{
    mp_comm *c = mp_ours(comm);
    if (!c)
        return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag,
                             recvbuf, recvcount, recvtype, source, recvtag,
                             comm, status);
    return exchange(
        SEND_OF(sendbuf, sendcount, sendtype, dest, sendtag, MP_STANDARD),
        RECV_OF(recvbuf, recvcount, recvtype, source, recvtag), "MPI_Sendrecv",
        status);
}

/* The sent bytes are copied before the receive fills the buffer. */
int MPI_Sendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest,
                         int sendtag, int source, int recvtag, MPI_Comm comm,
                         MPI_Status *status)
{
    mp_comm *c = mp_ours(comm);
    if (!c)
        return PMPI_Sendrecv_replace(buf, count, datatype, dest, sendtag,
                                     source, recvtag, comm, status);
    return exchange(SEND_OF(buf, count, datatype, dest, sendtag, MP_STANDARD),
                    RECV_OF(buf, count, datatype, source, recvtag),
                    "MPI_Sendrecv_replace", status);
}
