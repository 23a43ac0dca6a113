/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_sweep.c - the clocks of all devices along the passes of a schedule.
 *
 * A pass begins when the pass that it waits for has ended and its device is
 * free.  Runs with the same order are swept together, a lane each: their
 * numbers lie side by side, so that one instruction serves several runs.
 */
#include "predict/fast_period.h"

#include <math.h>
#include <string.h>

/* Numbers of all lanes lie together: [...][lanes]. */
typedef struct sweep {
    fast_engine *const *x; /* [n] */
    const fast_order *o;
    uint32_t n, lanes;  /* runs; at least as many lanes */
    double *end;        /* [n_places] */
    double *at, *busy;  /* [pp] the device's clock, and the end of its exchanges
                        * of weights and gradients */
    double *send;       /* [pp] seconds of a transfer without other exchanges */
    double *pass;       /* [SC_N_PASSES * chunks] seconds of a pass that has
                        * no exchanges beside it: its least */
    double *left;       /* [pp] the sum of a device's further passes, of one
                        * lane with a limit; else NULL */
    bool *idle;         /* [n_stages] no work in the backward pass */
    fast_period period; /* of a single lane */
    bool each;          /* passes have no durations of their own */
    bool blocks;        /* transfers block the device */
} sweep;

/* ---- one pass -------------------------------------------------------------- */

/* A slot waits for a transfer from another device and for its place in the
 * order. */
static void charge_wait(const fast_engine *x, uint32_t dev, double wait,
                        bool sends)
{
    double way = x->c[dev].send.seconds < wait ? x->c[dev].send.seconds : wait;
    x->cat[dev][SC_CAT_PP] += way + (sends ? x->c[dev].send.seconds : 0);
    x->cat[dev][SC_CAT_BUBBLE] += wait - way;
}

/* When the exchanges of a device end. */
static double busy_until(const fast_engine *x, uint32_t dev)
{
    const fast_device *d = &x->device[dev];
    return fast_larger(d->gathers.end, d->grads.end);
}

static double pass_of(const sweep *s, const fast_slot *k, uint32_t lane)
{
    uint32_t chunks = s->x[0]->chunks * s->x[0]->p->run.size[SC_AX_PP];
    return s->pass[(k->pass * chunks + k->chunk) * s->lanes + lane];
}

/* A pass of one run by itself: exchanges may run beside it. */
static void alone(sweep *s, uint32_t lane, const fast_slot *k, uint32_t dev)
{
    fast_engine *x = s->x[lane];
    uint32_t n = s->lanes, v = s->o->stage[k->chunk];
    double *at = &s->at[dev * n + lane], in = s->end[k->in * n + lane];
    double *out = &s->end[k->out * n + lane];
    bool bwd = k->pass != SC_FWD;
    if (bwd && s->idle[v]) { /* without work, nothing waits */
        if (k->pass != SC_BWD_W) *out = in;
        return;
    }
    double start = fast_larger(in, *at);
    double d = fast_pass(x, dev, k->chunk, (sc_pass)k->pass,
                         k->how & FAST_FIRST, k->how & FAST_LAST, start);
    double end = start + d, sent = end;
    if (x->cat) fast_charge(x, dev, k->chunk, (sc_pass)k->pass, d);
    bool sends = k->how & FAST_SENDS && !(bwd && s->idle[v - 1]);
    double busy = busy_until(x, dev);
    if (sends)
        sent += busy > end ? fast_send(x, dev, end) : s->send[dev * n + lane];
    if (x->cat && k->pass != SC_BWD_W)
        charge_wait(x, dev, start - *at, s->blocks && sent > end);
    s->busy[dev * n + lane] = sends ? busy_until(x, dev) : busy;
    *at = s->blocks ? sent : end;
    *out = sent;
    if (!s->left) return;
    sc_assert(d >= pass_of(s, k, lane) * (1 - 1e-9));
    s->left[dev] -= pass_of(s, k, lane);
    if (*at + s->left[dev] > x->limit_s) x->late_s = *at + s->left[dev];
}

/* Transfers of those runs whose device still exchanges weights or gradients. */
static void sends_beside(sweep *s, uint32_t dev, const double *end,
                         double *sent)
{
    uint32_t n = s->lanes;
    for (uint32_t l = 0; l < s->n; l++) {
        if (s->busy[dev * n + l] <= end[l]) continue;
        sent[l] = end[l] + fast_send(s->x[l], dev, end[l]);
        s->busy[dev * n + l] = busy_until(s->x[l], dev);
    }
}

static uint32_t skip(sweep *s, uint32_t slot)
{
    fast_clocks c = {s->end, s->at, s->busy, s->left};
    return fast_period_skip(s->x[0], s->o, slot, &c, &s->period);
}

/* The passes of all runs; `n` lanes, a constant where it is called. */
static inline __attribute__((always_inline)) void passes(sweep *s,
                                                         const uint32_t n)
{
    const fast_order *o = s->o;
    uint32_t chunks = s->x[0]->chunks * s->x[0]->p->run.size[SC_AX_PP];
    for (uint32_t i = 0; i < o->n; i++) {
        if (n == 1 && i == s->period.next) i += skip(s, i);
        if (n == 1 && i == o->n) return;
        const fast_slot *k = &o->slot[i];
        uint32_t dev = o->device[k->chunk];
        if (s->each || k->how & (FAST_FIRST | FAST_LAST)) {
            for (uint32_t l = 0; l < s->n; l++) alone(s, l, k, dev);
            if (s->left && s->x[0]->late_s > 0) return;
            continue;
        }
        const double *in = &s->end[k->in * n], *busy = &s->busy[dev * n];
        const double *d = &s->pass[(k->pass * chunks + k->chunk) * n];
        const double *send = &s->send[dev * n];
        double *at = &s->at[dev * n], *out = &s->end[k->out * n];
        double end[FAST_LANES], sent[FAST_LANES];
        for (uint32_t l = 0; l < n; l++)
            end[l] = fast_larger(in[l], at[l]) + d[l];
        if (!(k->how & FAST_SENDS)) {
            for (uint32_t l = 0; l < n; l++) at[l] = out[l] = end[l];
            continue;
        }
        uint32_t beside = 0;
        for (uint32_t l = 0; l < n; l++) {
            sent[l] = end[l] + send[l];
            beside += busy[l] > end[l];
        }
        if (beside) sends_beside(s, dev, end, sent);
        const double *next = s->blocks ? sent : end;
        for (uint32_t l = 0; l < n; l++) {
            at[l] = next[l];
            out[l] = sent[l];
        }
    }
}

/* ---- all passes -------------------------------------------------------------- */

/* Whether durations of the run's passes depend on what runs beside them, stages
 * have no work, or time is divided into categories. */
static bool by_itself(const fast_engine *x)
{
    bool idle = false;
    uint32_t n = x->p->run.size[SC_AX_PP] * x->chunks;
    for (uint32_t c = 0; c < n && !idle; c++) idle = x->chunk[c].n_bwd == 0;
    return idle || x->cat || x->shards || x->each;
}

static sc_status open_limit(sweep *s, sc_arena *a, sc_err *err)
{
    const fast_order *o = s->o;
    if (!s->each || s->x[0]->limit_s == INFINITY || s->x[0]->cat) return SC_OK;
    s->left = SC_NEW_N(a, double, s->x[0]->p->run.size[SC_AX_PP]);
    if (!s->left) return sc_error_nomem(err);
    for (uint32_t i = 0; i < o->n; i++) {
        const fast_slot *k = &o->slot[i];
        if (k->pass == SC_FWD || !s->idle[o->stage[k->chunk]])
            s->left[o->device[k->chunk]] += pass_of(s, k, 0);
    }
    return SC_OK;
}

static sc_status sweep_open(sweep *s, sc_arena *a, sc_err *err)
{
    const fast_engine *x = s->x[0];
    uint32_t n = s->lanes, pp = x->p->run.size[SC_AX_PP];
    uint32_t chunks = pp * x->chunks;
    s->end = SC_RAW_N(a, double, (size_t)s->o->n_places *n);
    s->at = SC_NEW_N(a, double, (size_t)3 * pp * n);
    s->pass = SC_RAW_N(a, double, (size_t)SC_N_PASSES *chunks *n);
    s->idle = SC_NEW_N(a, bool, s->o->n_stages);
    if (!s->end || !s->at || !s->pass || !s->idle) return sc_error_nomem(err);
    /* a pass writes its own place before others read it */
    memset(s->end, 0, sizeof *s->end * FAST_PLACES * n);
    if (s->n < n)
        memset(s->pass, 0, sizeof *s->pass * SC_N_PASSES * chunks * n);
    s->busy = s->at + (size_t)pp * n;
    s->send = s->busy + (size_t)pp * n;
    s->blocks = x->c[0].send_blocks;
    for (uint32_t l = 0; l < s->n; l++) {
        x = s->x[l];
        for (uint32_t c = 0; c < chunks; c++) {
            const fast_chunk *k = &x->chunk[c];
            double *to = &s->pass[c * n + l];
            to[SC_FWD * chunks * n] = k->f;
            to[SC_BWD * chunks * n] = k->b;
            to[SC_BWD_X * chunks * n] = k->b - k->w;
            to[SC_BWD_W * chunks * n] = k->w;
            s->idle[s->o->stage[c]] = k->n_bwd == 0;
        }
        for (uint32_t d = 0; d < pp; d++)
            s->send[d * n + l] = x->c[d].send.seconds;
    }
    SC_TRY(open_limit(s, a, err));
    s->period.next = UINT32_MAX;
    return s->n == 1 ? fast_period_open(x, s->o, a, &s->period, err) : SC_OK;
}

/* Wider instructions where the processor has them; results are the same. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

WIDE static void passes_together(sweep *s)
{
    passes(s, FAST_LANES);
}

static sc_status sweep_of(fast_engine *const *x, uint32_t n,
                          const fast_order *o, bool each, sc_arena *a,
                          sc_err *err)
{
    sc_arena_mark mark = sc_arena_save(a);
    sweep s = {.x = x, .o = o, .n = n, .each = each};
    s.lanes = n == 1 ? 1 : FAST_LANES;
    SC_TRY(sweep_open(&s, a, err));
    if (n == 1)
        passes(&s, 1);
    else
        passes_together(&s);
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t d = 0; d < x[l]->p->run.size[SC_AX_PP]; d++)
            x[l]->at[d] = s.at[d * s.lanes + l];
    sc_arena_restore(a, mark);
    return SC_OK;
}

sc_status fast_sweep(fast_engine *const *x, uint32_t n, const fast_order *o,
                     sc_arena *a, sc_err *err)
{
    fast_engine *together[FAST_LANES];
    uint32_t n_together = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool own = by_itself(x[i]) ||
                   (n_together > 0 &&
                    x[i]->c[0].send_blocks != together[0]->c[0].send_blocks);
        if (own) SC_TRY(sweep_of(&x[i], 1, o, true, a, err));
        if (!own) together[n_together++] = x[i];
    }
    if (n_together == 0) return SC_OK;
    return sweep_of(together, n_together, o, false, a, err);
}
