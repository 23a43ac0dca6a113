/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbour.c - collectives among the neighbours of a grid or a graph.
 *
 * A collective is one message along each edge, on a duplicate of the
 * communicator, so that receives of the program do not meet them. On a grid,
 * neighbours 2 * d and 2 * d + 1 are those below and above in dimension d, and
 * the tag is the receiver's number of the edge: one rank may be both.
 */
#include "mpi/mp.h"

#include <stdlib.h>

/* ---- edges ------------------------------------------------------------------ */

/* One side of a collective: NULL arrays stand for equal parts. */
typedef struct side {
    const void *buf;
    int n;         /* elements of a part */
    bool same;     /* all parts are the first one */
    const int *ns; /* or of each */
    const int *at; /* extents */
    const MPI_Aint *at_bytes;
    MPI_Datatype type;
    const MPI_Datatype *types;
} side;

typedef struct edges {
    int n_in, n_out;
    int *in, *out;
} edges;

static const void *part(const side *s, int i, int *n, MPI_Datatype *type)
{
    MPI_Aint low, extent;
    *n = s->ns ? s->ns[i] : s->n;
    *type = s->types ? s->types[i] : s->type;
    if (s->at_bytes) return (const char *)s->buf + s->at_bytes[i];
    if (s->same) return s->buf;
    if (PMPI_Type_get_extent(*type, &low, &extent) != MPI_SUCCESS) extent = 0;
    return mp_at(s->buf, s->at ? s->at[i] : (MPI_Aint)i * s->n, extent);
}

static edges edges_of(const mp_comm *c)
{
    const mp_graph *g = &c->graph;
    edges e = {.n_in = g->n_in, .n_out = g->n_out, .in = g->in, .out = g->out};
    if (g->there) return e;
    int n = 2 * c->cart.n;
    int *rank = mp_alloc((size_t)n * sizeof *rank);
    for (int i = 0; i < n; i++)
        rank[i] = mp_cart_shifted(c, i / 2, i % 2 * 2 - 1);
    return (edges){n, n, rank, rank};
}

/* The duplicate for the messages: all members reach their first collective
 * together. */
static int messenger(mp_comm *c, MPI_Comm *out)
{
    if (!c->messenger) {
        MPI_Comm h;
        int code = PMPI_Comm_dup(c->handle, &h);
        if (code != MPI_SUCCESS) return code;
        c->messenger = mp_comm_twin(c, h, false);
    }
    *out = c->messenger->handle;
    return MPI_SUCCESS;
}

/* An emulated neighbour sends what this rank sends along its own edge of that
 * kind: on a grid the opposite one, on a graph the one of that number. */
static int mirror(const mp_comm *c, const edges *e, const side *s, int i,
                  MPI_Request r)
{
    int n, edge = c->graph.there ? i : i ^ 1;
    MPI_Datatype type;
    if (e->in[i] == MPI_PROC_NULL || edge >= e->n_out ||
        mp_is_real(c, (uint32_t)e->in[i]))
        return MPI_SUCCESS;
    const void *p = part(s, edge, &n, &type);
    return mp_pack(p, n, type, &mp_request_of(r)->msg.like);
}

/* Posts all messages; `r` [n_in + n_out]. */
static int post(const mp_comm *c, const edges *e, MPI_Comm with, const side *s,
                const side *d, MPI_Request *r)
{
    int code = MPI_SUCCESS, n, k = 0;
    MPI_Datatype type;
    for (int i = 0; i < e->n_in && code == MPI_SUCCESS; i++) {
        void *p = (void *)part(d, i, &n, &type);
        code = MPI_Irecv(p, n, type, e->in[i], c->graph.there ? 0 : i, with,
                         &r[k++]);
        if (code == MPI_SUCCESS) code = mirror(c, e, s, i, r[k - 1]);
    }
    for (int i = 0; i < e->n_out && code == MPI_SUCCESS; i++) {
        const void *p = part(s, i, &n, &type);
        code = MPI_Isend(p, n, type, e->out[i], c->graph.there ? 0 : i ^ 1,
                         with, &r[k++]);
    }
    return code;
}

/* `request` NULL: waits. */
static int run(mp_comm *c, const char *name, side s, side d,
               MPI_Request *request)
{
    MPI_Comm with = MPI_COMM_NULL;
    if (!c->graph.there && !c->cart.there)
        return mp_fail(c, MPI_ERR_TOPOLOGY,
                       "%s: the communicator has no neighbours", name);
    live_enter(mp.l);
    edges e = edges_of(c);
    int n = e.n_in + e.n_out, code = messenger(c, &with);
    MPI_Request *r = mp_alloc((size_t)n * sizeof *r);
    if (code == MPI_SUCCESS) code = post(c, &e, with, &s, &d, r);
    if (!c->graph.there) free(e.in);
    if (code == MPI_SUCCESS && request) {
        mp_request *whole = mp_request_new(request);
        whole->state = MP_ACTIVE;
        whole->msg = (mp_message){.c = c, .send = true, .peer = MPI_PROC_NULL};
        whole->part = r;
        whole->n_parts = n;
        mp_comm_hold(c);
    } else {
        if (code == MPI_SUCCESS) mp_parts_done(r, n, true, &code);
        free(r);
    }
    live_leave(mp.l);
    return code;
}

/* ---- the calls ---------------------------------------------------------------- */

#define LIST(...) __VA_ARGS__
/* `from` and `to` initialize the sides. */
#define NEIGHBOURS(f, i, params, args, from, to)                             \
    int MPI_##f(LIST params)                                                 \
    {                                                                        \
        mp_comm *c_ = mp_ours(comm);                                         \
        if (!c_) return PMPI_##f(LIST args);                                 \
        return run(c_, "MPI_" #f, (side){LIST from}, (side){LIST to}, NULL); \
    }                                                                        \
    int MPI_##i(LIST params, MPI_Request *request)                           \
    {                                                                        \
        mp_comm *c_ = mp_ours(comm);                                         \
        if (!c_) return PMPI_##i(LIST args, request);                        \
        return run(c_, "MPI_" #i, (side){LIST from}, (side){LIST to},        \
                   request);                                                 \
    }

NEIGHBOURS(Neighbor_allgather, Ineighbor_allgather,
           (const void *sendbuf, int sendcount, MPI_Datatype sendtype,
            void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
           (.buf = sendbuf, .n = sendcount, .type = sendtype, .same = true),
           (.buf = recvbuf, .n = recvcount, .type = recvtype))

NEIGHBOURS(Neighbor_allgatherv, Ineighbor_allgatherv,
           (const void *sendbuf, int sendcount, MPI_Datatype sendtype,
            void *recvbuf, const int recvcounts[], const int displs[],
            MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
            comm),
           (.buf = sendbuf, .n = sendcount, .type = sendtype, .same = true),
           (.buf = recvbuf, .ns = recvcounts, .at = displs, .type = recvtype))

NEIGHBOURS(Neighbor_alltoall, Ineighbor_alltoall,
           (const void *sendbuf, int sendcount, MPI_Datatype sendtype,
            void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
           (.buf = sendbuf, .n = sendcount, .type = sendtype),
           (.buf = recvbuf, .n = recvcount, .type = recvtype))

NEIGHBOURS(Neighbor_alltoallv, Ineighbor_alltoallv,
           (const void *sendbuf, const int sendcounts[], const int sdispls[],
            MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
            const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
            rdispls, recvtype, comm),
           (.buf = sendbuf, .ns = sendcounts, .at = sdispls, .type = sendtype),
           (.buf = recvbuf, .ns = recvcounts, .at = rdispls, .type = recvtype))

NEIGHBOURS(
    Neighbor_alltoallw, Ineighbor_alltoallw,
    (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
     const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
     const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
     recvtypes, comm),
    (.buf = sendbuf, .ns = sendcounts, .at_bytes = sdispls, .types = sendtypes),
    (.buf = recvbuf, .ns = recvcounts, .at_bytes = rdispls, .types = recvtypes))
