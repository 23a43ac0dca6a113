/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - contributions of emulated ranks on the device, by --peer-data
 * (emu_data.h).
 *
 * Everything is written in the call's stream, between its begin and its end, so
 * that it takes no extra time if the operation takes longer: by the operation's
 * own kernel, except for noise.
 */
#include "nccl/call.h"
#include "nccl/reserve.h"

#include <math.h>
#include <string.h>

#define THREADS 256

static uint32_t blocks_for(const gpu *g, uint64_t n)
{
    uint64_t b = (n + THREADS - 1) / THREADS;
    return (uint32_t)(b < 1 ? 1 : b < 2 * g->sms ? b : 2 * g->sms);
}

static bool no_kernels(const nccl_call *c)
{
    if (c->comm->g->kernels) return false;
    live_warn(c->comm->l, "NCCL: the driver took no kernels: sums have the "
                          "contribution of one rank only");
    return true;
}

/* ---- noise ------------------------------------------------------------------------- */

typedef struct noise {
    CUdeviceptr moments; /* 0: none */
    uint64_t count;
    double k; /* in standard deviations of the tensor */
} noise;

static uint64_t next_seed(const live *l)
{
    static _Atomic uint64_t draws;
    uint64_t z = live_config(l)->seed * 0x9e3779b97f4a7c15U +
                 atomic_fetch_add(&draws, 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

/* Moments of the present contents. */
static CUresult measure(const nccl_call *c, CUdeviceptr at, uint64_t count,
                        double times, noise *out, pieces *p)
{
    gpu *g = c->comm->g;
    const sc_emu_config *f = live_config(c->comm->l);
    *out = (noise){0, count, times * f->sigma};
    if (f->data != SC_EMU_DATA_NOISE || !g->kernels || !g->noise[c->type] ||
        !count || times == 0)
        return 0;
    CUresult rc = pieces_flush(p);
    if (rc) return rc;
    out->moments = g->scratch + (CUdeviceptr)16 * MOMENTS_BLOCKS *
                                    (g->n_scratch++ % MOMENTS_TENSORS);
    void *args[] = {&at, &out->count, &out->moments};
    return gpu_launch(g, g->moments[c->type], MOMENTS_BLOCKS, THREADS,
                      c->stream, args);
}

static CUresult add_noise(const nccl_call *c, CUdeviceptr at, uint64_t n,
                          noise *z, pieces *p)
{
    gpu *g = c->comm->g;
    uint32_t parts = MOMENTS_BLOCKS;
    if (!z->moments || !n) return 0;
    CUresult rc = pieces_flush(p);
    if (rc) return rc;
    uint64_t seed = next_seed(c->comm->l);
    void *args[] = {&at, &n, &z->moments, &parts, &z->count, &z->k, &seed};
    return gpu_launch(g, g->noise[c->type], blocks_for(g, n), THREADS,
                      c->stream, args);
}

/* ---- reductions -------------------------------------------------------------------- */

typedef struct scaling {
    double factor;
    int64_t whole; /* the same for integers */
    CUdeviceptr scalar;
    uint32_t power;
    double noise; /* a peer's share of the result, in standard deviations */
} scaling;

static scaling scaling_of(const nccl_call *c)
{
    uint32_t n = c->comm->n;
    double rest = sqrt((double)n - 1);
    scaling s = {1, 1, 0, 0, 0};
    if (c->op == NCCL_AVG) s.noise = rest / n;
    if (c->op == NCCL_PROD) s.power = n;
    if (c->op != NCCL_SUM && c->op < NCCL_N_OPS) return s;
    s = (scaling){n, n, 0, 0, rest};
    if (c->op < NCCL_N_OPS) return s;
    const red_op *o = &c->comm->op[c->op - NCCL_N_OPS];
    s.scalar = o->scalar;
    s.factor *= o->scalar ? 1 : o->value;
    s.whole *= o->scalar ? 1 : o->whole;
    s.noise *= o->scalar ? 1 : o->value;
    return s;
}

static uint64_t factor_bits(const scaling *s, ncclDataType_t type)
{
    uint64_t bits = (uint64_t)s->whole;
    if (type >= NCCL_FLOAT16) memcpy(&bits, &s->factor, sizeof bits);
    return bits;
}

/* count elements of one member, reduced over all. */
static CUresult reduce(const nccl_call *c, CUdeviceptr to, CUdeviceptr from,
                       uint64_t count, pieces *p)
{
    scaling s = scaling_of(c);
    noise z;
    bool plain = s.factor == 1 && s.whole == 1 && !s.scalar && !s.power;
    CUresult rc = measure(c, from, count, s.noise, &z, p);
    if (rc) return rc;
    if (plain || no_kernels(c))
        rc = pieces_copy(p, to, from, count * call_type_size(c->type), 1);
    else
        rc = pieces_scale(p, c->type,
                          &(kernel_fill){.dst = to,
                                         .src = from,
                                         .n = count,
                                         .factor = factor_bits(&s, c->type),
                                         .scalar = s.scalar,
                                         .power = s.power});
    return rc ? rc : add_noise(c, to, count, &z, p);
}

/* ---- the others -------------------------------------------------------------------- */

/* The shares of all n members that this rank mirrors; its own is exact. */
static CUresult gather(const nccl_call *c, pieces *p)
{
    uint64_t size = call_type_size(c->type), rank = c->comm->rank;
    noise z;
    CUresult rc = measure(c, c->send, c->count, 1, &z, p);
    if (!rc) rc = pieces_copy(p, c->recv, c->send, c->count * size, c->comm->n);
    if (!rc) rc = add_noise(c, c->recv, c->count * rank, &z, p);
    if (rc) return rc;
    return add_noise(c, c->recv + (rank + 1) * c->count * size,
                     c->count * (c->comm->n - 1 - rank), &z, p);
}

/* Device memory for the last buffer of that size that was sent; NULL: none. */
static sent_copy *copy_of_sent(struct ncclComm *m, size_t bytes)
{
    sent_copy *s = m->sent;
    while (s < m->sent + m->n_sent && s->bytes != bytes) s++;
    if (s == m->sent + COMM_SENT) return NULL;
    if (s < m->sent + m->n_sent) return s;
    if (reserve_alloc(m->g, bytes, &s->at)) {
        live_warn(m->l, "NCCL: there is no device memory for copies of the "
                        "data sent; receives get zeros");
        return NULL;
    }
    s->bytes = bytes;
    m->n_sent++;
    return s;
}

/* The last of the group that has this size is copied: pieces are written in no
 * order. */
static CUresult remember_sent(const nccl_call *c, size_t bytes,
                              const nccl_call *end, pieces *p)
{
    for (const nccl_call *later = c + 1; later < end; later++)
        if (later->coll == SC_SEND && later->comm == c->comm &&
            later->peer != c->comm->rank &&
            later->count * call_type_size(later->type) == bytes)
            return 0;
    sent_copy *s = copy_of_sent(c->comm, bytes);
    return s ? pieces_copy(p, s->at, c->send, bytes, 1) : 0;
}

/* The buffer of that size that the group sends, to the partner itself first;
 * else the last one sent; else zeros. */
static CUresult receive(const nccl_call *c, size_t bytes, const nccl_call *all,
                        uint32_t n, pieces *p)
{
    const struct ncclComm *m = c->comm;
    CUdeviceptr from = 0;
    for (uint32_t i = 0; i < n; i++) {
        const nccl_call *s = &all[i];
        if (s->coll != SC_SEND || s->comm != m || s->stream != c->stream ||
            s->count * call_type_size(s->type) != bytes)
            continue;
        if (!from || s->peer == c->peer) from = s->send;
    }
    for (uint32_t i = 0; i < m->n_sent && !from; i++)
        if (m->sent[i].bytes == bytes) from = m->sent[i].at;
    noise z;
    CUresult rc = pieces_copy(p, c->recv, from, bytes, 1);
    if (!rc && from && c->peer != m->rank)
        rc = measure(c, c->recv, c->count, 1, &z, p);
    else
        return rc;
    return rc ? rc : add_noise(c, c->recv, c->count, &z, p);
}

CUresult data_fill(const nccl_call *c, const nccl_call *all, uint32_t n,
                   pieces *p)
{
    const struct ncclComm *m = c->comm;
    size_t bytes = c->count * call_type_size(c->type);
    bool root = c->peer == m->rank;
    CUdeviceptr own = c->send + m->rank * bytes; /* of shares */
    if (live_config(m->l)->data == SC_EMU_DATA_NONE && m->n > 1) return 0;
    switch (c->coll) {
    case SC_ALL_REDUCE: return reduce(c, c->recv, c->send, c->count, p);
    case SC_REDUCE: return root ? reduce(c, c->recv, c->send, c->count, p) : 0;
    case SC_REDUCE_SCATTER: return reduce(c, c->recv, own, c->count, p);
    case SC_ALL_GATHER: return gather(c, p);
    case SC_GATHER: return root ? gather(c, p) : 0;
    case SC_BROADCAST:
        return root ? pieces_copy(p, c->recv, c->send, bytes, 1) : 0;
    case SC_ALL_TO_ALL:
        return pieces_copy(p, c->recv, c->send, bytes * m->n, 1);
    case SC_SCATTER:
        return root ? pieces_copy(p, c->recv, own, bytes, 1)
                    : receive(c, bytes, NULL, 0, p);
    case SC_SEND: return root ? 0 : remember_sent(c, bytes, all + n, p);
    case SC_RECV: return receive(c, bytes, all, n, p);
    default: break;
    }
    return 0;
}
