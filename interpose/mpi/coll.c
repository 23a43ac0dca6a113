/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - collectives: each has a blocking, a non-blocking and (from MPI 4) a
 * persistent form with the same arguments.
 */
#include "mpi/mp.h"

#include <stdlib.h>

static live_ticket post(const mp_call *k, bool async)
{
    live_op op = {.coll = k->kind,
                  .group = k->c->group,
                  .peer = mp_world_rank(k->c, (uint32_t)k->root),
                  .bytes = mp_volume(k),
                  .async = async};
    return live_post(mp.l, &op, live_now(mp.l));
}

static bool on_real_clock(void)
{
    return live_config(mp.l)->clock == SC_EMU_REAL;
}

/* Smaller copies take less time than reading the clock twice. */
#define TIMED_BYTES 4096

/* As the only real member, which need not wait: on the real clock the time of
 * copying is part of the operation. */
static int fill_timed(const mp_call *k, live_ticket t)
{
    if (!on_real_clock() || mp_volume(k) < TIMED_BYTES) return mp_fill(k, t);
    sc_time from = live_now(mp.l);
    int code = mp_fill(k, t);
    live_spent(mp.l, t, live_now(mp.l) - from);
    return code;
}

static int blocking(const mp_call *k)
{
    int code = mp_check(k);
    if (code != MPI_SUCCESS) return code;
    live_enter(mp.l);
    live_ticket t = post(k, false);
    bool several = k->c->n_real > 1;
    code = several ? mp_push(k, t) : fill_timed(k, t);
    live_wait(mp.l, t);
    if (several && code == MPI_SUCCESS) code = mp_fill(k, t);
    live_leave(mp.l);
    return code == MPI_SUCCESS
               ? code
               : mp_fail(k->c, code,
                         "%s: this version cannot exchange its data", k->name);
}

/* ---- those that go on meanwhile ------------------------------------------------- */

static int start(const mp_call *k, MPI_Request *out, bool persistent)
{
    int code = mp_check(k);
    if (code != MPI_SUCCESS) return code;
    live_enter(mp.l);
    mp_request *r = mp_request_new(out);
    r->is_call = true;
    r->persistent = persistent;
    r->call = *k;
    mp_comm_hold(k->c);
    r->call.early = k->reduces && mp_op_of(k->op) == SC_N_EMU_REDUCES;
    if (persistent || k->c->n_real > 1 || on_real_clock())
        mp_call_hold(&r->call);
    if (!persistent) code = mp_call_start(r);
    live_leave(mp.l);
    return code;
}

/* Emulated data are moved by the call that ends the operation on the real
 * clock, so that they take no time from what the program computes meanwhile; on
 * the virtual clock it makes no difference. */
static bool moves_late(const mp_request *r)
{
    return on_real_clock() && r->call.c->n_real == 1 && !r->call.early;
}

int mp_call_start(mp_request *r)
{
    const mp_call *k = &r->call;
    r->state = MP_ACTIVE;
    r->ticket = post(k, true);
    r->pending = true;
    r->error = k->c->n_real > 1 ? mp_push(k, r->ticket)
               : moves_late(r)  ? MPI_SUCCESS
                                : mp_fill(k, r->ticket);
    return r->error;
}

bool mp_call_done(mp_request *r, bool wait)
{
    bool late = moves_late(r);
    bool ended = (!wait || late) && live_test(mp.l, r->ticket);
    if (!wait && !ended) return false;
    if (late) r->error = fill_timed(&r->call, r->ticket);
    if (!ended) live_wait(mp.l, r->ticket);
    r->pending = false;
    if (r->call.c->n_real > 1 && r->error == MPI_SUCCESS)
        r->error = mp_fill(&r->call, r->ticket);
    return true;
}

/* ---- the calls --------------------------------------------------------------------- */

#define LIST(...) __VA_ARGS__
#define ENTER(text, kind_, real, run, ...)                                  \
    mp_comm *c_ = mp_ours(comm);                                            \
    if (!c_) return real;                                                   \
    const mp_call k_ = {.kind = kind_, .name = text, .c = c_, __VA_ARGS__}; \
    return run

#define TWO(f, i, kind_, params, args, ...)                         \
    int MPI_##f(LIST params)                                        \
    {                                                               \
        ENTER("MPI_" #f, kind_, PMPI_##f(LIST args), blocking(&k_), \
              __VA_ARGS__);                                         \
    }                                                               \
    int MPI_##i(LIST params, MPI_Request *request)                  \
    {                                                               \
        ENTER("MPI_" #i, kind_, PMPI_##i(LIST args, request),       \
              start(&k_, request, false), __VA_ARGS__);             \
    }

#if MPI_VERSION >= 4
#define COLL(f, i, kind_, params, args, ...)                             \
    TWO(f, i, kind_, params, args, __VA_ARGS__)                          \
    int MPI_##f##_init(LIST params, MPI_Info info, MPI_Request *request) \
    {                                                                    \
        ENTER("MPI_" #f "_init", kind_,                                  \
              PMPI_##f##_init(LIST args, info, request),                 \
              start(&k_, request, true), __VA_ARGS__);                   \
    }
#else
#define COLL TWO
#endif

COLL(Barrier, Ibarrier, SC_BARRIER, (MPI_Comm comm), (comm),
     .send_type = MPI_DATATYPE_NULL, .recv_type = MPI_DATATYPE_NULL)

COLL(Bcast, Ibcast, SC_BROADCAST,
     (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm),
     (buffer, count, datatype, root, comm), .send_type = MPI_DATATYPE_NULL,
     .recv = buffer, .n_recv = count, .recv_type = datatype, .root = root)

#define REDUCED                                                       \
    .send_type = MPI_DATATYPE_NULL, .send = sendbuf, .recv = recvbuf, \
    .recv_type = datatype, .op = op, .reduces = true

COLL(Reduce, Ireduce, SC_REDUCE,
     (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
      MPI_Op op, int root, MPI_Comm comm),
     (sendbuf, recvbuf, count, datatype, op, root, comm), REDUCED,
     .n_recv = count, .root = root)

#define REDUCE_LIKE(f, i, kind_, less)                           \
    COLL(f, i, kind_,                                            \
         (const void *sendbuf, void *recvbuf, int count,         \
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),      \
         (sendbuf, recvbuf, count, datatype, op, comm), REDUCED, \
         .n_recv = count, .exclusive = less)

REDUCE_LIKE(Allreduce, Iallreduce, SC_ALL_REDUCE, false)
REDUCE_LIKE(Scan, Iscan, SC_SCAN, false)
REDUCE_LIKE(Exscan, Iexscan, SC_SCAN, true)

COLL(Reduce_scatter_block, Ireduce_scatter_block, SC_REDUCE_SCATTER,
     (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype,
      MPI_Op op, MPI_Comm comm),
     (sendbuf, recvbuf, recvcount, datatype, op, comm), REDUCED,
     .n_recv = recvcount)

COLL(Reduce_scatter, Ireduce_scatter, SC_REDUCE_SCATTER,
     (const void *sendbuf, void *recvbuf, const int recvcounts[],
      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
     (sendbuf, recvbuf, recvcounts, datatype, op, comm), REDUCED,
     .recvs = recvcounts)

#define BOTH                                                 \
    .send = sendbuf, .recv = recvbuf, .send_type = sendtype, \
    .recv_type = recvtype

COLL(Allgather, Iallgather, SC_ALL_GATHER,
     (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
      int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), BOTH,
     .n_send = sendcount, .n_recv = recvcount)

COLL(Allgatherv, Iallgatherv, SC_ALL_GATHER,
     (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
      const int recvcounts[], const int displs[], MPI_Datatype recvtype,
      MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
      comm),
     BOTH, .n_send = sendcount, .recvs = recvcounts, .recv_at = displs)

COLL(Gather, Igather, SC_GATHER,
     (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
      int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
     BOTH, .n_send = sendcount, .n_recv = recvcount, .root = root)

COLL(Gatherv, Igatherv, SC_GATHER,
     (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
      const int recvcounts[], const int displs[], MPI_Datatype recvtype,
      int root, MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
      comm),
     BOTH, .n_send = sendcount, .recvs = recvcounts, .recv_at = displs,
     .root = root)

COLL(Scatter, Iscatter, SC_SCATTER,
     (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
      int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
     BOTH, .n_send = sendcount, .n_recv = recvcount, .root = root)

COLL(Scatterv, Iscatterv, SC_SCATTER,
     (const void *sendbuf, const int sendcounts[], const int displs[],
      MPI_Datatype sendtype, void *recvbuf, int recvcount,
      MPI_Datatype recvtype, int root, MPI_Comm comm),
     (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
      comm),
     BOTH, .sends = sendcounts, .send_at = displs, .n_recv = recvcount,
     .root = root)

COLL(Alltoall, Ialltoall, SC_ALL_TO_ALL,
     (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
      int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), BOTH,
     .n_send = sendcount, .n_recv = recvcount)

COLL(Alltoallv, Ialltoallv, SC_ALL_TO_ALL,
     (const void *sendbuf, const int sendcounts[], const int sdispls[],
      MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
      const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
     (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
      recvtype, comm),
     BOTH, .sends = sendcounts, .send_at = sdispls, .recvs = recvcounts,
     .recv_at = rdispls)

COLL(Alltoallw, Ialltoallw, SC_ALL_TO_ALL,
     (const void *sendbuf, const int sendcounts[], const int sdispls[],
      const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
      const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
     (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
      recvtypes, comm),
     .send = sendbuf, .recv = recvbuf, .send_type = MPI_DATATYPE_NULL,
     .recv_type = MPI_DATATYPE_NULL, .sends = sendcounts, .send_at = sdispls,
     .send_types = sendtypes, .recvs = recvcounts, .recv_at = rdispls,
     .recv_types = recvtypes)
