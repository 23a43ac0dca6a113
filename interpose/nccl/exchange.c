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

unsigned char *exchange_memory(gpu *g, cudaStream_t s, size_t bytes,
                               bool captured)
{
    if (captured) return gpu_pinned(g, bytes, NULL);
    uint64_t key = watch_stream_key(s);
    pthread_mutex_lock(&lock);
    memory *m = memories;
    while (m && (m->g != g || m->stream != key)) m = m->next;
    if (!m || m->room < bytes) {
        /* The smaller one stays, because operations in flight use it. */
        size_t room = 4096;
        while (room < bytes) room *= 2;
        m = calloc(1, sizeof *m);
        unsigned char *at = m ? gpu_pinned(g, room, NULL) : NULL;
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

/* Whether the host has the reduction, if it is one. */
static bool can_reduce(const nccl_call *c)
{
    if (!call_reduces(c)) return true;
    if (c->op < NCCL_N_OPS && type_of[c->type] != SC_EMU_BYTES) return true;
    live_warn(c->comm->l,
              "NCCL: reductions of 8-bit floats and reductions with a "
              "factor use this rank's data for the other real ranks");
    return false;
}

static live_moves moves_of(live *l, const live_members *m, exchange *x)
{
    return (live_moves){.l = l,
                        .m = m,
                        .coll = x->coll,
                        .root = x->root,
                        .bytes = x->in_len + x->out_len,
                        .by = &live_in_host,
                        .arg = &x->data};
}

static size_t room_of(size_t len)
{
    return (len + ALIGN - 1) / ALIGN * ALIGN;
}

size_t exchange_plan(nccl_call *c)
{
    exchange *x = &c->x;
    const live_members m = comm_members(c->comm, false);
    *x =
        (exchange){.coll = c->bytes ? SC_ALL_TO_ALL : c->coll, .root = c->peer};
    if (m.n_real < 2 || live_config(c->comm->l)->data == SC_EMU_DATA_NONE)
        return 0;
    const live_moves moves = moves_of(c->comm->l, &m, x);
    uint32_t n_in = live_moves_n_in(&moves), n_out = 0;
    if (!live_moves_alone(&moves)) n_out = live_moves_n_out(&moves);
    if (n_in + n_out == 0 || !can_reduce(c)) return 0;
    x->merged = c->bytes != 0;
    size_t block =
        c->bytes ? c->bytes / m.n : c->count * call_type_size(c->type);
    x->data = (live_host){.in = {.first = {NULL, block}, .n = n_in},
                          .out = {.first = {NULL, block}, .n = n_out},
                          .type = type_of[c->type],
                          .reduce = call_reduces(c) ? reduce_of[c->op] : 0,
                          .cuts = true};
    x->in_len = block * n_in;
    x->out_len = block * n_out;
    return room_of(x->in_len) + room_of(x->out_len);
}

size_t exchange_place(nccl_call *c, unsigned char *at)
{
    exchange *x = &c->x;
    x->data.in.first.at = at;
    x->data.out.first.at = at + room_of(x->in_len);
    return room_of(x->in_len) + room_of(x->out_len);
}

/* ---- in the stream ------------------------------------------------------- */

/* A part of a group's exchange whose partner is another real rank. */
static bool is_part(const nccl_call *c, sc_coll coll)
{
    const live_members m = comm_members(c->comm, false);
    return c->x.merged && c->coll == coll && c->peer != m.me &&
           live_members_is_real(&m, c->peer);
}

static unsigned char *part_of(const live_blocks *b, uint32_t member)
{
    return (unsigned char *)b->first.at + member * b->first.len;
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
        return d->copy_out(part_of(&x->data.in, c->peer), c->send, part,
                           c->stream);
    if (x->merged || !x->in_len) return 0;
    return d->copy_out(x->data.in.first.at, call_source(c), x->in_len,
                       c->stream);
}

CUresult exchange_in(const nccl_call *c)
{
    const exchange *x = &c->x;
    const driver *d = c->comm->g->d;
    size_t part = c->count * call_type_size(c->type);
    if (is_part(c, SC_RECV))
        return d->copy_in(c->recv, part_of(&x->data.out, c->peer), part,
                          c->stream);
    if (x->merged || !x->out_len) return 0;
    return d->copy_in(c->recv, x->data.out.first.at, x->out_len, c->stream);
}

/* ---- by the watching thread ---------------------------------------------- */

void exchange_push(live *l, live_ticket k, const struct ncclComm *c,
                   exchange *x)
{
    const live_members m = comm_members(c, false);
    live_moves moves = moves_of(l, &m, x);
    if (x->in_len) live_moves_push(&moves, k);
}

void exchange_pull(live *l, live_ticket k, const struct ncclComm *c,
                   exchange *x)
{
    const live_members m = comm_members(c, false);
    live_moves moves = moves_of(l, &m, x);
    if (x->out_len)
        live_moves_fill(&moves, k);
    else
        exchange_drop(l, k, x);
}

void exchange_drop(live *l, live_ticket k, const exchange *x)
{
    if (x->in_len || x->out_len) live_drop(l, k);
}
