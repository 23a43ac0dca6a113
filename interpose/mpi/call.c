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
    mp_type y = {0};
    if (!types) mp_type_of(t, &y);
    MPI_Aint index = at ? at[i] : (MPI_Aint)i * one;
    b.p = (void *)mp_at(buf, index, types ? 1 : y.extent);
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

static int pack_block(block b, mp_view *out)
{
    return mp_pack(b.p, b.count, b.type, out);
}

/* The blocks for the real members, each after its length. */
static int pack_blocks(const mp_call *k, mp_view *out)
{
    const mp_comm *c = k->c;
    *out = (mp_view){0};
    mp_view *v = mp_alloc(c->n_real * sizeof *v);
    int code = MPI_SUCCESS;
    for (uint32_t i = 0; i < c->n_real; i++) {
        int failed = pack_block(send_block(k, c->real[i]), &v[i]);
        if (failed != MPI_SUCCESS) code = failed;
        out->len += sizeof(uint64_t) + v[i].len;
    }
    unsigned char *p = out->own = mp_alloc(out->len);
    out->p = p;
    for (uint32_t i = 0; i < c->n_real; i++) {
        uint64_t len = v[i].len;
        memcpy(p, &len, sizeof len);
        p += sizeof len;
        if (len) memcpy(p, v[i].p, len);
        p += len;
        free(v[i].own);
    }
    free(v);
    return code;
}

/* The block for this rank in another's contribution; empty for the own one. */
static mp_view my_block(const mp_call *k, mp_view given)
{
    const unsigned char *p = given.p;
    size_t left = given.len;
    for (uint32_t i = 0; p && left >= sizeof(uint64_t); i++) {
        uint64_t len;
        memcpy(&len, p, sizeof len);
        p += sizeof len;
        left -= sizeof len;
        if (len > left) break;
        if (i == k->c->me_real) return (mp_view){p, len, NULL};
        p += len;
        left -= len;
    }
    return (mp_view){0};
}

int mp_contribution(const mp_call *k, mp_view *out)
{
    const mp_comm *c = k->c;
    *out = (mp_view){0};
    switch (k->kind) {
    case SC_BARRIER: return MPI_SUCCESS;
    case SC_BROADCAST:
        if (!is_root(k)) return MPI_SUCCESS;
        return mp_pack(k->recv, k->n_recv, k->recv_type, out);
    case SC_REDUCE:
    case SC_ALL_REDUCE:
    case SC_SCAN:
        return mp_pack(k->send == MPI_IN_PLACE ? k->recv : k->send, k->n_recv,
                       k->recv_type, out);
    case SC_REDUCE_SCATTER: {
        uint64_t sum = side(k, k->recvs, k->n_recv, MPI_BYTE, NULL);
        return mp_pack(k->send == MPI_IN_PLACE ? k->recv : k->send, (int)sum,
                       k->recv_type, out);
    }
    case SC_ALL_GATHER:
    case SC_GATHER:
        if (k->send == MPI_IN_PLACE)
            return pack_block(recv_block(k, c->me), out);
        return mp_pack(k->send, k->n_send, k->send_type, out);
    case SC_SCATTER: return is_root(k) ? pack_blocks(k, out) : MPI_SUCCESS;
    case SC_ALL_TO_ALL:
        return c->n_real > 1 ? pack_blocks(k, out)
                             : pack_block(send_block(k, c->me), out);
    default: return MPI_SUCCESS;
    }
}

/* ---- sources of data ----------------------------------------------------- */

static bool nothing(void)
{
    return live_config(mp.l)->data == SC_EMU_DATA_NONE;
}

/* Writes an emulated member's block: like `v`, with noise if asked for. */
static int place_peer(block b, mp_view v)
{
    mp_type y;
    if (nothing()) return MPI_SUCCESS;
    int code = mp_type_of(b.type, &y);
    if (code != MPI_SUCCESS || !y.flat || y.kind == SC_N_EMU_TYPES ||
        live_config(mp.l)->data != SC_EMU_DATA_NOISE ||
        v.len != (size_t)b.count * y.size)
        return code == MPI_SUCCESS ? mp_place(b.p, b.count, b.type, v.p, v.len)
                                   : code;
    sc_emu_data_peer(live_data(mp.l), v.p, (size_t)b.count, y.kind, b.p);
    return MPI_SUCCESS;
}

/* Writes everyone's block, from given[]: for gathers and all-to-alls. */
static int fill(const mp_call *k, const mp_view *given, bool by_block)
{
    const mp_comm *c = k->c;
    /* This rank's blocks may overlap those of others. */
    mp_view *v = mp_alloc(c->n_real * sizeof *v);
    for (uint32_t i = 0; i < c->n_real; i++) {
        v[i] = by_block ? my_block(k, given[i]) : given[i];
        if (i != c->me_real || !v[i].len) continue;
        v[i].own = memcpy(mp_alloc(v[i].len), v[i].p, v[i].len);
        v[i].p = v[i].own;
    }
    int code = MPI_SUCCESS;
    for (uint32_t i = 0; i < c->n && code == MPI_SUCCESS; i++) {
        block b = recv_block(k, i);
        mp_view from = v[mp_source(c, i)];
        code = mp_is_real(c, i)
                   ? mp_place(b.p, b.count, b.type, from.p, from.len)
                   : place_peer(b, from);
    }
    free(v[c->me_real].own);
    free(v);
    return code;
}

/* Data from an emulated root, like those of a message of that length. */
static int from_emulated(void *p, int count, MPI_Datatype t)
{
    size_t len = (size_t)count * size_of(t);
    if (nothing()) return MPI_SUCCESS;
    const void *sent = live_last_sent(mp.l, len);
    return mp_place(p, count, t, sent, sent ? len : 0);
}

static int deliver_bcast(const mp_call *k, const mp_view *given)
{
    uint32_t root = (uint32_t)k->root;
    /* An emulated root has this rank's data. */
    if (is_root(k) || !mp_is_real(k->c, root)) return MPI_SUCCESS;
    mp_view v = given[mp_source(k->c, root)];
    return mp_place(k->recv, k->n_recv, k->recv_type, v.p, v.len);
}

static int deliver_scatter(const mp_call *k, const mp_view *given)
{
    uint32_t root = (uint32_t)k->root;
    if (is_root(k)) {
        if (k->recv == MPI_IN_PLACE) return MPI_SUCCESS;
        mp_view v;
        int code = pack_block(send_block(k, k->c->me), &v);
        if (code == MPI_SUCCESS)
            code = mp_place(k->recv, k->n_recv, k->recv_type, v.p, v.len);
        free(v.own);
        return code;
    }
    if (!mp_is_real(k->c, root))
        return from_emulated(k->recv, k->n_recv, k->recv_type);
    mp_view v = my_block(k, given[mp_source(k->c, root)]);
    return mp_place(k->recv, k->n_recv, k->recv_type, v.p, v.len);
}

/* The reduction over members 0 .. n-1 of x[i], the contributions of all real
 * members; emulated ones mirror them. */
static int reduce(const mp_call *k, const void *const *x, uint32_t n_real,
                  uint32_t n, int count, void *out)
{
    mp_type y;
    int code = mp_type_of(k->recv_type, &y);
    if (code != MPI_SUCCESS) return code;
    sc_emu_reduce op = mp_op_of(k->op);
    if (y.flat && y.kind != SC_N_EMU_TYPES && op != SC_N_EMU_REDUCES &&
        sc_emu_data_reduce(live_data(mp.l), x, n_real, n, (size_t)count, y.kind,
                           op, out))
        return MPI_SUCCESS;
    if (nothing()) return MPI_SUCCESS;
    uint32_t *times = mp_alloc(n_real * sizeof *times);
    for (uint32_t i = 0; i < n_real; i++)
        times[i] = 1 + (n - n_real) / n_real + (i < (n - n_real) % n_real);
    code = mp_reduce_local(x, times, n_real, count, k->recv_type, k->op, out);
    free(times);
    return code;
}

/* The contributions of real members before position `end`; this rank's if there
 * are none. */
static uint32_t before(const mp_call *k, const mp_view *given, uint32_t end,
                       size_t skip, const void **x)
{
    const mp_comm *c = k->c;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_real && c->real[i] < end; i++)
        if (given[i].p) x[n++] = (const char *)given[i].p + skip;
    if (!n) x[n++] = (const char *)given[c->me_real].p + skip;
    return n;
}

static int deliver_reduced(const mp_call *k, const mp_view *given)
{
    const mp_comm *c = k->c;
    uint32_t end = c->n;
    int count = k->n_recv;
    size_t skip = 0;
    if (k->kind == SC_REDUCE && !is_root(k)) return MPI_SUCCESS;
    if (k->kind == SC_SCAN) end = k->exclusive ? c->me : c->me + 1;
    if (k->kind == SC_REDUCE_SCATTER) {
        uint64_t first = (uint64_t)c->me * (uint64_t)k->n_recv;
        if (k->recvs) {
            count = k->recvs[c->me];
            first = 0;
            for (uint32_t i = 0; i < c->me; i++) first += (uint64_t)k->recvs[i];
        }
        skip = first * size_of(k->recv_type);
    }
    if (!count || !end) return MPI_SUCCESS;
    const void **x = mp_alloc(c->n_real * sizeof *x);
    uint32_t n = before(k, given, end, skip, x);
    int code = reduce(k, x, n, end, count, k->recv);
    free(x);
    return code;
}

int mp_deliver(const mp_call *k, const mp_view *given)
{
    switch (k->kind) {
    case SC_BARRIER: return MPI_SUCCESS;
    case SC_BROADCAST: return deliver_bcast(k, given);
    case SC_SCATTER: return deliver_scatter(k, given);
    case SC_GATHER: return is_root(k) ? fill(k, given, false) : MPI_SUCCESS;
    case SC_ALL_GATHER: return fill(k, given, false);
    case SC_ALL_TO_ALL: return fill(k, given, k->c->n_real > 1);
    default: return deliver_reduced(k, given);
    }
}
