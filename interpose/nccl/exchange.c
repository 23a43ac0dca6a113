/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - data between real ranks of one communicator, through pinned host
 * memory.
 */
#include "nccl/exchange.h"

#include "nccl/call.h"
#include "nccl/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 256

/* ---- pinned memory ------------------------------------------------------- */

typedef struct memory {
    struct memory *next;
    gpu *g;
    uint64_t stream; /* watch_stream_key() */
    size_t room;
    unsigned char *at;
} memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static memory *memories; /* the latest, and largest, of a stream first */

static unsigned char *pinned(gpu *g, size_t bytes)
{
    void *at = NULL;
    int mode = CU_CAPTURE_RELAXED;
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    CUresult rc = g->d->host_alloc(&at, bytes, CU_HOSTALLOC_PORTABLE);
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    return rc ? NULL : at;
}

unsigned char *exchange_memory(gpu *g, cudaStream_t s, size_t bytes,
                               bool captured)
{
    if (captured) return pinned(g, bytes);
    uint64_t key = watch_stream_key(s);
    pthread_mutex_lock(&lock);
    memory *m = memories;
    while (m && (m->g != g || m->stream != key)) m = m->next;
    if (!m || m->room < bytes) {
        /* The smaller one stays, because operations in flight use it. */
        size_t room = 4096;
        while (room < bytes) room *= 2;
        m = calloc(1, sizeof *m);
        unsigned char *at = m ? pinned(g, room) : NULL;
        if (at) {
            *m = (memory){memories, g, key, room, at};
            memories = m;
        } else {
            free(m);
            m = NULL;
        }
    }
    unsigned char *at = m ? m->at : NULL;
    pthread_mutex_unlock(&lock);
    return at;
}

/* ---- exchanges of a call ------------------------------------------------- */

static bool is_real(const struct ncclComm *m, uint32_t place)
{
    for (uint32_t i = 0; m->real && i < m->n_real; i++)
        if (m->real[i] == place) return true;
    return false;
}

/* Whether it is another real rank. */
static bool is_other(const struct ncclComm *m, uint32_t place)
{
    return place != m->rank && is_real(m, place);
}

static const sc_emu_type type_of[NCCL_N_TYPES] = {
    [NCCL_INT8] = SC_EMU_I8,          [NCCL_UINT8] = SC_EMU_U8,
    [NCCL_INT32] = SC_EMU_I32,        [NCCL_UINT32] = SC_EMU_U32,
    [NCCL_INT64] = SC_EMU_I64,        [NCCL_UINT64] = SC_EMU_U64,
    [NCCL_FLOAT16] = SC_EMU_F16,      [NCCL_FLOAT32] = SC_EMU_F32,
    [NCCL_FLOAT64] = SC_EMU_F64,      [NCCL_BFLOAT16] = SC_EMU_BF16,
    [NCCL_FLOAT8E4M3] = SC_EMU_BYTES, [NCCL_FLOAT8E5M2] = SC_EMU_BYTES,
};

static const sc_emu_reduce reduce_of[NCCL_N_OPS] = {
    [NCCL_SUM] = SC_EMU_SUM, [NCCL_PROD] = SC_EMU_PROD, [NCCL_MAX] = SC_EMU_MAX,
    [NCCL_MIN] = SC_EMU_MIN, [NCCL_AVG] = SC_EMU_AVG,
};

static bool reduces(sc_coll c)
{
    return c == SC_ALL_REDUCE || c == SC_REDUCE || c == SC_REDUCE_SCATTER;
}

/* Whether data is exchanged between real ranks at all. */
static bool is_wanted(const nccl_call *c)
{
    const struct ncclComm *m = c->comm;
    if (!m->real || live_config(m->l)->data == SC_EMU_DATA_NONE) return false;
    switch (c->coll) {
    case SC_SEND:
    case SC_RECV: return c->bytes || is_other(m, c->peer);
    case SC_BROADCAST:
    case SC_SCATTER:
    case SC_REDUCE:
    case SC_GATHER:
        if (!is_real(m, c->peer)) return false;
        break;
    default: break;
    }
    if (!reduces(c->coll)) return true;
    if (c->op < NCCL_N_OPS && type_of[c->type] != SC_EMU_BYTES) return true;
    live_warn(m->l, "NCCL: reductions of 8-bit floats and reductions with a "
                    "factor use this rank's data for the other real ranks");
    return false;
}

/* Shares that this rank sends, and shares that it receives. */
static uint32_t shares_in(const nccl_call *c)
{
    const struct ncclComm *m = c->comm;
    switch (c->coll) {
    case SC_RECV: return 0;
    case SC_REDUCE_SCATTER:
    case SC_ALL_TO_ALL: return m->n;
    case SC_SCATTER: return c->peer == m->rank ? m->n : 0;
    case SC_BROADCAST: return c->peer == m->rank;
    default: return 1;
    }
}

static uint32_t shares_out(const nccl_call *c)
{
    const struct ncclComm *m = c->comm;
    switch (c->coll) {
    case SC_SEND: return 0;
    case SC_ALL_GATHER:
    case SC_ALL_TO_ALL: return m->n;
    case SC_GATHER: return c->peer == m->rank ? m->n : 0;
    case SC_REDUCE: return c->peer == m->rank;
    case SC_SCATTER: /* its root has it already */
    case SC_BROADCAST: return c->peer != m->rank;
    default: return 1;
    }
}

static size_t room_of(size_t len)
{
    return (len + ALIGN - 1) / ALIGN * ALIGN;
}

size_t exchange_plan(nccl_call *c)
{
    exchange *x = &c->x;
    *x = (exchange){.coll = c->coll};
    if (!is_wanted(c)) return 0;
    x->type = type_of[c->type];
    x->root = c->peer;
    x->count = c->count;
    x->share = c->count * call_type_size(c->type);
    if (reduces(c->coll)) x->op = reduce_of[c->op];
    x->in_len = x->share * shares_in(c);
    x->out_len = x->share * shares_out(c);
    if (c->bytes) {
        x->coll = SC_ALL_TO_ALL;
        x->merged = true;
        x->share = c->bytes / c->comm->n;
        x->in_len = x->out_len = c->bytes;
    }
    return room_of(x->in_len) + room_of(x->out_len);
}

size_t exchange_place(nccl_call *c, unsigned char *at)
{
    exchange *x = &c->x;
    x->in = at;
    x->out = at + room_of(x->in_len);
    return room_of(x->in_len) + room_of(x->out_len);
}

/* ---- in the stream ------------------------------------------------------- */

/* A part of a group's exchange whose partner is another real rank. */
static bool is_part(const nccl_call *c, sc_coll coll)
{
    return c->x.merged && c->coll == coll && is_other(c->comm, c->peer);
}

bool exchange_fills(const nccl_call *c)
{
    return c->x.merged ? is_part(c, SC_RECV) : c->x.out_len > 0;
}

CUresult exchange_out(const nccl_call *c)
{
    const exchange *x = &c->x;
    const driver *d = c->comm->g->d;
    size_t part = c->count * call_type_size(c->type);
    if (is_part(c, SC_SEND))
        return d->copy_out(x->in + c->peer * x->share, c->send, part,
                           c->stream);
    if (x->merged || !x->in_len) return 0;
    return d->copy_out(x->in, c->send, x->in_len, c->stream);
}

CUresult exchange_in(const nccl_call *c)
{
    const exchange *x = &c->x;
    const driver *d = c->comm->g->d;
    size_t part = c->count * call_type_size(c->type);
    if (is_part(c, SC_RECV))
        return d->copy_in(c->recv, x->out + c->peer * x->share, part,
                          c->stream);
    if (x->merged || !x->out_len) return 0;
    return d->copy_in(c->recv, x->out, x->out_len, c->stream);
}

/* ---- by the watching thread ---------------------------------------------- */

void exchange_push(live *l, live_ticket k, const exchange *x)
{
    if (x->in_len) live_push(l, k, x->in, x->in_len);
}

/* Contributions of real members, in the order of `m->real`. */
typedef struct given {
    const unsigned char *at;
    size_t len;
} given;

/* This rank's data is mirrored if a rank has contributed nothing. */
static given ask(live *l, live_ticket k, const struct ncclComm *m,
                 const exchange *x, uint32_t place)
{
    given v = {x->in, x->in_len};
    if (place == m->rank) return v;
    given other = {NULL, 0};
    other.at = live_peer(l, k, m->world[place], &other.len);
    if (other.at && other.len >= x->in_len) return other;
    if (other.at && x->merged) return other;
    live_warn(l,
              "NCCL: real rank %u has contributed no data to an operation; the "
              "data of this rank are used for it",
              m->world[place]);
    return v;
}

static void copy_share(const exchange *x, uint32_t to,
                       const unsigned char *from, size_t len)
{
    memcpy(x->out + to * x->share, from, len < x->share ? len : x->share);
}

/* Writes one share of every member; emulated ones mirror the real ones in
 * turn. */
static void gather(live *l, const struct ncclComm *m, const exchange *x,
                   const given *v)
{
    size_t n = x->type == SC_EMU_BYTES ? x->share : x->count;
    for (uint32_t i = 0; i < m->n; i++)
        if (!is_real(m, i))
            sc_emu_data_peer(live_data(l), v[i % m->n_real].at, n, x->type,
                             x->out + i * x->share);
    for (uint32_t k = 0; k < m->n_real; k++)
        copy_share(x, m->real[k], v[k].at, v[k].len);
}

/* Writes every member's share for this rank; an emulated member sends the data
 * that is sent to it. Shares of a group may differ in size. */
static void all_to_all(const struct ncclComm *m, const exchange *x,
                       const given *v)
{
    memcpy(x->out, x->in, x->out_len);
    for (uint32_t k = 0; k < m->n_real; k++) {
        size_t share = v[k].len / m->n;
        copy_share(x, m->real[k], v[k].at + m->rank * share, share);
    }
}

static void reduce(live *l, const struct ncclComm *m, const exchange *x,
                   const given *v, const void **from)
{
    size_t at = x->coll == SC_REDUCE_SCATTER ? m->rank * x->share : 0;
    for (uint32_t k = 0; k < m->n_real; k++) from[k] = v[k].at + at;
    if (!sc_emu_data_reduce(live_data(l), from, m->n_real, m->n, x->count,
                            x->type, x->op, x->out))
        live_warn(
            l, "NCCL: a reduction needs data of real ranks that are missing");
}

static void one(live *l, live_ticket k, const struct ncclComm *m,
                const exchange *x)
{
    given v = {NULL, 0};
    v.at = live_peer(l, k, m->world[x->root], &v.len);
    memset(x->out, 0, x->out_len);
    if (!v.at)
        live_warn(l, "NCCL: real rank %u has sent no data; zeros are received",
                  m->world[x->root]);
    else if (x->coll != SC_SCATTER)
        copy_share(x, 0, v.at, v.len);
    else if (v.len >= (m->rank + 1) * x->share)
        copy_share(x, 0, v.at + m->rank * x->share, x->share);
}

static void all(live *l, live_ticket k, const struct ncclComm *m,
                const exchange *x)
{
    given *v = calloc(m->n_real, sizeof *v);
    const void **from = calloc(m->n_real, sizeof *from);
    if (!v || !from) live_die(l, "out of memory");
    for (uint32_t i = 0; i < m->n_real; i++) v[i] = ask(l, k, m, x, m->real[i]);
    if (reduces(x->coll))
        reduce(l, m, x, v, from);
    else if (x->coll == SC_ALL_TO_ALL)
        all_to_all(m, x, v);
    else
        gather(l, m, x, v);
    free(from);
    free(v);
}

void exchange_drop(live *l, live_ticket k, const exchange *x)
{
    if (x->in_len || x->out_len) live_drop(l, k);
}

void exchange_pull(live *l, live_ticket k, const struct ncclComm *m,
                   const exchange *x)
{
    bool single =
        x->coll == SC_RECV || x->coll == SC_BROADCAST || x->coll == SC_SCATTER;
    if (x->out_len && single)
        one(l, k, m, x);
    else if (x->out_len)
        all(l, k, m, x);
    exchange_drop(l, k, x);
}
