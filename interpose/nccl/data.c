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
    return sc_mix(live_config(l)->seed * 0x9e3779b97f4a7c15U +
                  atomic_fetch_add(&draws, 1));
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
static CUresult reduce_all(const nccl_call *c, CUdeviceptr to, CUdeviceptr from,
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

/* ---- messages --------------------------------------------------------------------- */

/* Device memory for the last buffer of that size that was sent; NULL: none. */
static const device_memory *copy_of_sent(struct ncclComm *m, size_t bytes)
{
    const device_memory *s = m->sent;
    uint32_t n = 0;
    for (; s && s->bytes != bytes; s = s->next) n++;
    if (s || n == COMM_SENT) return s;
    if (reserve_alloc(m, bytes, &m->sent)) {
        live_warn(m->l, "NCCL: there is no device memory for copies of the "
                        "data sent; receives get zeros");
        return NULL;
    }
    return m->sent;
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
    const device_memory *s = copy_of_sent(c->comm, bytes);
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
    for (const device_memory *s = m->sent; s && !from; s = s->next)
        if (s->bytes == bytes) from = s->at;
    noise z;
    CUresult rc = pieces_copy(p, c->recv, from, bytes, 1);
    if (!rc && from && c->peer != m->rank)
        rc = measure(c, c->recv, c->count, 1, &z, p);
    else
        return rc;
    return rc ? rc : add_noise(c, c->recv, c->count, &z, p);
}

/* ---- collectives ------------------------------------------------------------------- */

/* The argument of the mover, whose addresses are the device's. */
typedef struct filling {
    const nccl_call *c;
    pieces *p;
    noise z; /* of this rank's block */
    bool measured;
    CUresult rc;
} filling;

static CUdeviceptr device_at(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

static size_t block_bytes(const nccl_call *c)
{
    return c->count * call_type_size(c->type);
}

static bool read_block(live_moves *x, uint32_t member, live_view *out)
{
    const filling *f = x->arg;
    size_t len = block_bytes(f->c);
    CUdeviceptr at = call_source(f->c);
    if (live_moves_n_in(x) > 1) at += member * len;
    *out = (live_view){(const void *)(uintptr_t)at, len, NULL};
    return true;
}

static bool copy_block(live_moves *x, uint32_t i, const live_view *from)
{
    filling *f = x->arg;
    f->rc = pieces_copy(f->p, f->c->recv + i * from->len, device_at(from->p),
                        from->len, 1);
    return f->rc == 0;
}

static bool mirror(live_moves *x, uint32_t i, uint32_t n, const live_view *from)
{
    filling *f = x->arg;
    const nccl_call *c = f->c;
    CUdeviceptr at = device_at(from->p), to = c->recv + i * from->len;
    if (!f->measured) f->rc = measure(c, at, c->count, 1, &f->z, f->p);
    f->measured = true;
    if (!f->rc) f->rc = pieces_copy(f->p, to, at, from->len, n);
    if (!f->rc) f->rc = add_noise(c, to, c->count * n, &f->z, f->p);
    return f->rc == 0;
}

static bool reduce(live_moves *x, const void *const *real, uint32_t n_real,
                   uint32_t n, size_t len)
{
    filling *f = x->arg;
    (void)n_real; /* this rank */
    (void)n;
    (void)len;
    f->rc = reduce_all(f->c, f->c->recv, device_at(*real), f->c->count, f->p);
    return f->rc == 0;
}

static bool sent(live_moves *x)
{
    filling *f = x->arg;
    f->rc = receive(f->c, block_bytes(f->c), NULL, 0, f->p);
    return f->rc == 0;
}

static const live_mover mover = {read_block, copy_block, mirror, reduce, sent};

CUresult data_fill(const nccl_call *c, const nccl_call *all, uint32_t n,
                   pieces *p)
{
    struct ncclComm *comm = c->comm;
    const live_members m = comm_members(comm, true);
    if (live_config(comm->l)->data == SC_EMU_DATA_NONE && m.n > 1) return 0;
    if (c->coll == SC_RECV) return receive(c, block_bytes(c), all, n, p);
    if (c->coll == SC_SEND)
        return c->peer == m.me ? 0
                               : remember_sent(c, block_bytes(c), all + n, p);
    filling f = {.c = c, .p = p};
    live_moves x = {.l = comm->l,
                    .m = &m,
                    .coll = c->coll,
                    .root = c->peer,
                    .by = &mover,
                    .arg = &f};
    live_moves_fill(&x, 0);
    return f.rc;
}
