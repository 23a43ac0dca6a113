/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - arguments of collectives: validity, sizes, and data. */
#include "mpi/mp.h"

#include <stdlib.h>
#include <string.h>

static bool rooted(const mp_call *k)
{
    return k->kind == SC_BROADCAST || k->kind == SC_REDUCE ||
           k->kind == SC_GATHER || k->kind == SC_SCATTER;
}

static bool is_root(const mp_call *k)
{
    return k->root == (int)k->c->me;
}

/* Whether the call uses its receive side (or its send side). */
static bool receives(const mp_call *k)
{
    return (k->kind != SC_REDUCE && k->kind != SC_GATHER) || is_root(k);
}

static bool sends(const mp_call *k)
{
    return k->send != MPI_IN_PLACE && k->kind != SC_BROADCAST &&
           (k->kind != SC_SCATTER || is_root(k));
}

static bool negative(const mp_call *k, const int *counts, int one)
{
    if (!counts) return one < 0;
    for (uint32_t i = 0; i < k->c->n; i++)
        if (counts[i] < 0) return true;
    return false;
}

int mp_check(const mp_call *k)
{
    const mp_comm *c = k->c;
    if (k->kind == SC_BARRIER) return MPI_SUCCESS;
    if (rooted(k) && (k->root < 0 || (uint32_t)k->root >= c->n))
        return mp_fail(c, MPI_ERR_ROOT,
                       "%s: no root %d in a communicator of "
                       "%u ranks",
                       k->name, k->root, c->n);
    if ((sends(k) && negative(k, k->sends, k->n_send)) ||
        (receives(k) && negative(k, k->recvs, k->n_recv)))
        return mp_fail(c, MPI_ERR_COUNT, "%s: a negative count", k->name);
    if ((sends(k) && !k->reduces && !k->send_types &&
         k->send_type == MPI_DATATYPE_NULL) ||
        (receives(k) && !k->recv_types && k->recv_type == MPI_DATATYPE_NULL))
        return mp_fail(c, MPI_ERR_TYPE, "%s: no datatype", k->name);
    if (k->reduces && k->op == MPI_OP_NULL)
        return mp_fail(c, MPI_ERR_OP, "%s: no operation", k->name);
    return MPI_SUCCESS;
}

/* ---- sizes --------------------------------------------------------------- */

static uint64_t size_of(MPI_Datatype t)
{
    mp_type y;
    return mp_type_of(t, &y) == MPI_SUCCESS ? y.size : 0;
}

static uint64_t largest(const mp_call *k, const int *counts, int one)
{
    if (!counts) return (uint64_t)one;
    int most = 0;
    for (uint32_t i = 0; i < k->c->n; i++)
        if (counts[i] > most) most = counts[i];
    return (uint64_t)most;
}

/* The blocks of all members on one side of an all-to-all. */
static uint64_t side(const mp_call *k, const int *counts, int one,
                     MPI_Datatype t, const MPI_Datatype *types)
{
    if (!counts) return k->c->n * (uint64_t)one * size_of(t);
    uint64_t sum = 0;
    uint64_t size = types ? 0 : size_of(t);
    for (uint32_t i = 0; i < k->c->n; i++)
        sum += (uint64_t)counts[i] * (types ? size_of(types[i]) : size);
    return sum;
}

uint64_t mp_volume(const mp_call *k)
{
    uint64_t n = k->c->n, in, out;
    switch (k->kind) {
    case SC_BARRIER: return 0;
    case SC_BROADCAST:
    case SC_REDUCE:
    case SC_ALL_REDUCE:
    case SC_SCAN: return (uint64_t)k->n_recv * size_of(k->recv_type);
    case SC_REDUCE_SCATTER:
    case SC_ALL_GATHER:
        return n * largest(k, k->recvs, k->n_recv) * size_of(k->recv_type);
    case SC_GATHER:
        if (!is_root(k)) return n * (uint64_t)k->n_send * size_of(k->send_type);
        return n * largest(k, k->recvs, k->n_recv) * size_of(k->recv_type);
    case SC_SCATTER:
        if (!is_root(k)) return n * (uint64_t)k->n_recv * size_of(k->recv_type);
        return n * largest(k, k->sends, k->n_send) * size_of(k->send_type);
    case SC_ALL_TO_ALL:
        in = side(k, k->recvs, k->n_recv, k->recv_type, k->recv_types);
        if (k->send == MPI_IN_PLACE) return in;
        out = side(k, k->sends, k->n_send, k->send_type, k->send_types);
        return in > out ? in : out;
    default: return 0;
    }
}

/* ---- blocks -------------------------------------------------------------- */

typedef struct block {
    void *p;
    int count;
    MPI_Datatype type;
} block;

static block block_of(const void *buf, uint32_t i, const int *counts, int one,
                      const int *at, MPI_Datatype t, const MPI_Datatype *types)
{
    block b = {NULL, counts ? counts[i] : one, types ? types[i] : t};
    MPI_Aint index = at ? at[i] : (MPI_Aint)i * one;
    mp_type y = {.extent = 1};
    if (index && !types) mp_type_of(t, &y);
    b.p = (void *)mp_at(buf, index, y.extent);
    return b;
}

static block recv_block(const mp_call *k, uint32_t i)
{
    return block_of(k->recv, i, k->recvs, k->n_recv, k->recv_at, k->recv_type,
                    k->recv_types);
}

static block send_block(const mp_call *k, uint32_t i)
{
    if (k->send == MPI_IN_PLACE) return recv_block(k, i);
    return block_of(k->send, i, k->sends, k->n_send, k->send_at, k->send_type,
                    k->send_types);
}

/* ---- how blocks are moved ------------------------------------------------- */

/* The argument of the mover. */
typedef struct data {
    const mp_call *k;
    int code; /* of the library, if the mover fails */
} data;

static const mp_call *call_of(const live_moves *x)
{
    const data *d = x->arg;
    return d->k;
}

static bool check(live_moves *x, int code)
{
    data *d = x->arg;
    d->code = code;
    return code == MPI_SUCCESS;
}

/* The block of the contribution to a reduce-scatter for a member. */
static block summand(const mp_call *k, const void *buf, uint32_t member)
{
    uint64_t first = (uint64_t)member * (uint64_t)k->n_recv;
    mp_type y = {0};
    mp_type_of(k->recv_type, &y);
    if (k->recvs) {
        first = 0;
        for (uint32_t i = 0; i < member; i++) first += (uint64_t)k->recvs[i];
    }
    return (block){(void *)mp_at(buf, (MPI_Aint)first, y.extent),
                   k->recvs ? k->recvs[member] : k->n_recv, k->recv_type};
}

static bool read_block(live_moves *x, uint32_t member, live_view *out)
{
    const mp_call *k = call_of(x);
    const void *buf = k->send == MPI_IN_PLACE ? k->recv : k->send;
    block b;
    switch (k->kind) {
    case SC_BROADCAST: b = recv_block(k, 0); break;
    case SC_REDUCE_SCATTER: b = summand(k, buf, member); break;
    case SC_SCATTER:
    case SC_ALL_TO_ALL: b = send_block(k, member); break;
    case SC_ALL_GATHER:
    case SC_GATHER:
        b = k->send == MPI_IN_PLACE
                ? recv_block(k, k->c->me)
                : (block){(void *)buf, k->n_send, k->send_type};
        break;
    default: b = (block){(void *)buf, k->n_recv, k->recv_type};
    }
    return check(x, mp_pack(b.p, b.count, b.type, out));
}

/* A result of one block may have its size among those of all members. */
static block result_block(const mp_call *k, uint32_t i)
{
    if (k->kind != SC_REDUCE_SCATTER) return recv_block(k, i);
    return (block){k->recv, k->recvs ? k->recvs[k->c->me] : k->n_recv,
                   k->recv_type};
}

static bool copy(live_moves *x, uint32_t i, const live_view *from)
{
    block b = result_block(call_of(x), i);
    return check(x, mp_place(b.p, b.count, b.type, from->p, from->len));
}

static bool nothing(void)
{
    return live_config(mp.l)->data == SC_EMU_DATA_NONE;
}

/* An emulated member's block: like `v`, with noise if asked for. */
static int place_peer(block b, const live_view *v)
{
    mp_type y;
    int code = mp_type_of(b.type, &y);
    if (code != MPI_SUCCESS || !y.flat || y.kind == SC_N_EMU_TYPES ||
        live_config(mp.l)->data != SC_EMU_DATA_NOISE ||
        v->len != (size_t)b.count * y.size)
        return code == MPI_SUCCESS
                   ? mp_place(b.p, b.count, b.type, v->p, v->len)
                   : code;
    sc_emu_data_peer(live_data(mp.l), v->p, (size_t)b.count, y.kind, b.p);
    return MPI_SUCCESS;
}

static bool mirror(live_moves *x, uint32_t i, uint32_t n, const live_view *from)
{
    const mp_call *k = call_of(x);
    int code = MPI_SUCCESS;
    if (nothing()) return true;
    for (uint32_t end = i + n; i < end && code == MPI_SUCCESS; i++)
        code = place_peer(recv_block(k, i), from);
    return check(x, code);
}

/* By emu_data.h or, if that does not know the type or the operation, by the
 * library. */
static int reduce_to(const mp_call *k, block to, const void *const *real,
                     uint32_t n_real, uint32_t n)
{
    mp_type y;
    int code = mp_type_of(to.type, &y);
    if (code != MPI_SUCCESS || !to.count) return code;
    sc_emu_reduce op = mp_op_of(k->op);
    if (y.flat && y.kind != SC_N_EMU_TYPES && op != SC_N_EMU_REDUCES &&
        sc_emu_data_reduce(live_data(mp.l), real, n_real, n, (size_t)to.count,
                           y.kind, op, to.p))
        return MPI_SUCCESS;
    if (nothing()) return MPI_SUCCESS;
    uint32_t *times = mp_alloc(n_real * sizeof *times);
    for (uint32_t i = 0; i < n_real; i++)
        times[i] = n / n_real + (i < n % n_real);
    code = mp_reduce_local(real, times, n_real, to.count, to.type, k->op, to.p);
    free(times);
    return code;
}

static bool reduce(live_moves *x, const void *const *real, uint32_t n_real,
                   uint32_t n, size_t len)
{
    const mp_call *k = call_of(x);
    (void)len;
    return check(x, reduce_to(k, result_block(k, 0), real, n_real, n));
}

static bool sent(live_moves *x)
{
    block b = recv_block(call_of(x), 0);
    size_t len = (size_t)b.count * size_of(b.type);
    if (nothing()) return true;
    const void *last = live_last_sent(mp.l, len);
    return check(x, mp_place(b.p, b.count, b.type, last, last ? len : 0));
}

static const live_mover mover = {read_block, copy, mirror, reduce, sent};

/* Runs `move` for the call. */
static int with_data(const mp_call *k, live_ticket t,
                     bool (*move)(live_moves *x, live_ticket k))
{
    if (k->kind == SC_BARRIER) return MPI_SUCCESS;
    const live_members m = mp_members(k->c);
    data d = {k, MPI_SUCCESS};
    live_moves x = {.l = mp.l,
                    .m = &m,
                    .coll = k->kind,
                    .root = (uint32_t)k->root,
                    .exclusive = k->exclusive,
                    .in_place = k->kind == SC_BROADCAST ||
                                k->send == MPI_IN_PLACE ||
                                k->recv == MPI_IN_PLACE,
                    .bytes = m.n_real > 1 ? mp_volume(k) : 0,
                    .by = &mover,
                    .arg = &d};
    move(&x, t);
    return d.code;
}

/* It may be the id of a communicator of NCCL. */
static void note_told(const mp_call *k)
{
    block b = recv_block(k, 0);
    mp_type y;
    if (mp_type_of(b.type, &y) == MPI_SUCCESS && y.flat)
        live_declared_told(k->c->declared, b.p, (size_t)b.count * y.size);
}

int mp_push(const mp_call *k, live_ticket t)
{
    return with_data(k, t, live_moves_push);
}

/* Numbers that members gave this rank can be the sizes of parts that follow. */
static void keep_counts(const mp_call *k)
{
    bool counts = k->kind == SC_ALL_TO_ALL || k->kind == SC_ALL_GATHER;
    if (!counts || k->recvs || k->n_recv != 1 || k->c->n_real == k->c->n ||
        size_of(k->recv_type) != sizeof(int) || nothing())
        return;
    k->c->counts = sc_hash(k->recv, k->c->n * sizeof(int), 1);
}

static void warn_of_counts(const mp_call *k)
{
    if (!k->c->counts || !k->recvs ||
        sc_hash(k->recvs, k->c->n * sizeof(int), 1) != k->c->counts)
        return;
    live_warn(mp.l,
              "%s: the parts are as large as members of the communicator said "
              "before, but emulated ones have said what this rank did: make "
              "all ranks real (--ranks all)",
              k->name);
}

int mp_fill(const mp_call *k, live_ticket t)
{
    warn_of_counts(k);
    int code = with_data(k, t, live_moves_fill);
    if (k->kind == SC_BROADCAST && code == MPI_SUCCESS) note_told(k);
    keep_counts(k);
    return code;
}
