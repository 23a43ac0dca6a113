/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - contributions of emulated ranks on the device, by --peer-data
 * (emu_data.h).
 *
 * Everything is launched into the call's stream, between its begin and its end,
 * so that it takes no extra time if the operation takes longer.
 */
#include "nccl/call.h"

#include <math.h>

#define THREADS 256

static CUresult copy(const nccl_call *c, CUdeviceptr to, CUdeviceptr from,
                     size_t bytes)
{
    if (to == from || !bytes) return 0;
    return c->comm->g->d->copy(to, from, bytes, c->stream);
}

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
                        double times, noise *out)
{
    gpu *g = c->comm->g;
    const sc_emu_config *f = live_config(c->comm->l);
    *out = (noise){0, count, times * f->sigma};
    if (f->data != SC_EMU_DATA_NOISE || !g->kernels || !g->noise[c->type] ||
        !count || times == 0)
        return 0;
    out->moments = g->scratch + (CUdeviceptr)16 * MOMENTS_BLOCKS *
                                    (g->n_scratch++ % MOMENTS_TENSORS);
    void *args[] = {&at, &out->count, &out->moments};
    return gpu_launch(g, g->moments[c->type], MOMENTS_BLOCKS, THREADS,
                      c->stream, args);
}

static CUresult add_noise(const nccl_call *c, CUdeviceptr at, uint64_t n,
                          noise *z)
{
    gpu *g = c->comm->g;
    uint32_t parts = MOMENTS_BLOCKS;
    if (!z->moments || !n) return 0;
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

/* count elements of one member, reduced over all. */
static CUresult reduce(const nccl_call *c, CUdeviceptr to, CUdeviceptr from,
                       uint64_t count)
{
    gpu *g = c->comm->g;
    scaling s = scaling_of(c);
    noise z;
    bool plain = s.factor == 1 && s.whole == 1 && !s.scalar && !s.power;
    CUresult rc = measure(c, from, count, s.noise, &z);
    if (rc) return rc;
    if (plain || no_kernels(c)) {
        rc = copy(c, to, from, count * call_type_size(c->type));
    } else {
        void *factor = c->type < NCCL_FLOAT16 ? (void *)&s.whole : &s.factor;
        void *args[] = {&to, &from, &count, factor, &s.scalar, &s.power};
        rc = gpu_launch(g, g->scale[c->type], blocks_for(g, count), THREADS,
                        c->stream, args);
    }
    return rc ? rc : add_noise(c, to, count, &z);
}

/* ---- the others -------------------------------------------------------------------- */

static CUresult spread(const nccl_call *c, CUdeviceptr to, CUdeviceptr from,
                       uint64_t bytes)
{
    gpu *g = c->comm->g;
    uint32_t n = c->comm->n;
    CUresult rc = 0;
    if (!g->kernels) {
        for (uint32_t i = 0; i < n && !rc; i++)
            rc = copy(c, to + i * bytes, from, bytes);
        return rc;
    }
    void *args[] = {&to, &from, &bytes, &n};
    return gpu_launch(g, g->fixed[KERNEL_SPREAD], blocks_for(g, bytes / 16),
                      THREADS, c->stream, args);
}

/* The shares of all n members that this rank mirrors; its own is exact. */
static CUresult gather(const nccl_call *c)
{
    uint64_t size = call_type_size(c->type), rank = c->comm->rank;
    noise z;
    CUresult rc = measure(c, c->send, c->count, 1, &z);
    if (!rc) rc = spread(c, c->recv, c->send, c->count * size);
    if (!rc) rc = add_noise(c, c->recv, c->count * rank, &z);
    if (rc) return rc;
    return add_noise(c, c->recv + (rank + 1) * c->count * size,
                     c->count * (c->comm->n - 1 - rank), &z);
}

static CUresult remember_sent(const nccl_call *c, size_t bytes)
{
    struct ncclComm *m = c->comm;
    const driver *d = m->g->d;
    sent_copy *s = m->sent;
    while (s < m->sent + m->n_sent && s->bytes != bytes) s++;
    if (s == m->sent + COMM_SENT) return 0;
    if (s == m->sent + m->n_sent) {
        int mode = CU_CAPTURE_RELAXED;
        if (d->capture_mode) d->capture_mode(&mode);
        CUresult rc = d->alloc(&s->at, bytes);
        if (d->capture_mode) d->capture_mode(&mode);
        if (rc) {
            live_warn(m->l, "NCCL: there is no device memory for copies of the "
                            "data sent; receives get zeros");
            return 0;
        }
        s->bytes = bytes;
        m->n_sent++;
    }
    return copy(c, s->at, c->send, bytes);
}

/* The buffer of that size that the group sends, to the partner itself first;
 * else the last one sent; else zeros. */
static CUresult receive(const nccl_call *c, size_t bytes, const nccl_call *all,
                        uint32_t n)
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
    if (!from) return m->g->d->set(c->recv, 0, bytes, c->stream);
    noise z;
    CUresult rc = copy(c, c->recv, from, bytes);
    if (!rc && c->peer != m->rank)
        rc = measure(c, c->recv, c->count, 1, &z);
    else
        return rc;
    return rc ? rc : add_noise(c, c->recv, c->count, &z);
}

CUresult data_fill(const nccl_call *c, const nccl_call *all, uint32_t n)
{
    const struct ncclComm *m = c->comm;
    size_t bytes = c->count * call_type_size(c->type);
    bool root = c->peer == m->rank;
    if (live_config(m->l)->data == SC_EMU_DATA_NONE && m->n > 1) return 0;
    switch (c->coll) {
    case SC_ALL_REDUCE: return reduce(c, c->recv, c->send, c->count);
    case SC_REDUCE: return root ? reduce(c, c->recv, c->send, c->count) : 0;
    case SC_REDUCE_SCATTER:
        return reduce(c, c->recv, c->send + m->rank * bytes, c->count);
    case SC_ALL_GATHER: return gather(c);
    case SC_GATHER: return root ? gather(c) : 0;
    case SC_BROADCAST: return root ? copy(c, c->recv, c->send, bytes) : 0;
    case SC_ALL_TO_ALL: return copy(c, c->recv, c->send, bytes * m->n);
    case SC_SCATTER:
        return root ? copy(c, c->recv, c->send + m->rank * bytes, bytes)
                    : receive(c, bytes, NULL, 0);
    case SC_SEND: return root ? 0 : remember_sent(c, bytes);
    case SC_RECV: return receive(c, bytes, all, n);
    default: break;
    }
    return 0;
}
