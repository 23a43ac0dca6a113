/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.c - when emulated ranks arrive at an operation.
 *
 * An emulated rank runs the program of the real rank that it mirrors: it
 * computes `factor` times as long between the same operations, and waits where
 * that rank waits. For all ranks with the same peer model together, only their
 * delay (`lag`) is kept: computing changes it, a stall adds to it, and a wait
 * absorbs it up to its length, because a rank that arrives later waits less.
 * Deviations of n ranks are independent and only the largest matters, so one
 * number is drawn: the probability that it is below z is that of one rank to
 * the power of n.
 */
#include "emu/actor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- peer models --------------------------------------------------------- */

static bool follows(const emu_peers *p, uint32_t rank)
{
    return emu_actor_number(p->actors, rank) != EMU_NONE;
}

static sc_status add_peer_model(emu_peers *p, const emu_peer_model *b,
                                uint32_t *out, sc_err *err)
{
    emu_peer_model *v =
        sc_grow(p->a, p->v, p->n_peer_models, &p->cap, 4, sizeof *v);
    if (!v) return sc_error_nomem(err);
    p->v = v;
    *out = p->n_peer_models++;
    v[*out] = *b;
    return SC_OK;
}

/* The peer model of all ranks on devices that compute `factor` times as
 * long. */
static sc_status of_factor(emu_peers *p, double factor, uint32_t *out,
                           sc_err *err)
{
    emu_peer_model b = {.factor = factor, .fail = UINT64_MAX};
    for (*out = 0; *out < p->n_peer_models; ++*out)
        if (p->v[*out].factor == factor) return SC_OK;
    return add_peer_model(p, &b, out, err);
}

static int by_at(const void *a, const void *b)
{
    const emu_stall *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->t > y->t) - (x->t < y->t);
}

double sc_emu_straggler(const sc_emu_config *c, uint32_t rank)
{
    double factor = 1;
    for (uint32_t i = 0; i < c->n_whatif; i++)
        if (c->whatif[i].what == SC_EMU_STRAGGLER && c->whatif[i].rank == rank)
            factor *= c->whatif[i].value;
    return factor;
}

sc_status emu_peers_model(emu_peers *p, uint32_t rank, emu_peer_model *b,
                          sc_err *err)
{
    const sc_emu_config *c = p->c;
    *b = (emu_peer_model){.factor = 1, .fail = UINT64_MAX};
    if (c->compute_factor && !follows(p, rank) &&
        emu_real_number(c, rank) == EMU_NONE)
        b->factor = c->compute_factor[rank];
    b->stall = SC_NEW_N(p->a, emu_stall, c->n_whatif);
    if (!b->stall) return sc_error_nomem(err);
    for (uint32_t i = 0; i < c->n_whatif; i++) {
        const sc_emu_whatif *w = &c->whatif[i];
        if (w->rank != rank) continue;
        if (w->what == SC_EMU_FAIL && w->at < b->fail) b->fail = w->at;
        if (w->what == SC_EMU_STALL)
            b->stall[b->n_stalls++] =
                (emu_stall){w->at, sc_time_from_s(w->value)};
    }
    b->factor *= sc_emu_straggler(c, rank);
    qsort(b->stall, b->n_stalls, sizeof *b->stall, by_at);
    return SC_OK;
}

static bool is_of_rank(sc_emu_what what)
{
    return what == SC_EMU_STRAGGLER || what == SC_EMU_STALL ||
           what == SC_EMU_FAIL;
}

/* A rank with a what-if of its own never shares a peer model, so that the
 * numbers drawn for other ranks do not depend on its value. */
static sc_status set_rank(emu_peers *p, uint32_t rank, sc_err *err)
{
    emu_peer_model b;
    SC_TRY(emu_peers_model(p, rank, &b, err));
    return add_peer_model(p, &b, &p->of[rank], err);
}

static sc_status set_peer_models(emu_peers *p, sc_err *err)
{
    const sc_emu_config *c = p->c;
    bool differ = c->compute_factor != NULL;
    uint32_t alike;
    for (uint32_t i = 0; i < c->n_whatif; i++)
        differ = differ || is_of_rank(c->whatif[i].what);
    SC_TRY(of_factor(p, 1, &alike, err));
    if (!differ) return SC_OK;
    p->of = SC_NEW_N(p->a, uint32_t, c->world);
    if (!p->of) return sc_error_nomem(err);
    for (uint32_t r = 0; c->compute_factor && r < c->world; r++)
        if (!follows(p, r))
            SC_TRY(of_factor(p, c->compute_factor[r], &p->of[r], err));
    for (uint32_t i = 0; i < c->n_whatif; i++) {
        uint32_t rank = c->whatif[i].rank;
        /* only a model of a rank's own has room for stalls */
        if (is_of_rank(c->whatif[i].what) && !p->v[p->of[rank]].stall)
            SC_TRY(set_rank(p, rank, err));
    }
    return SC_OK;
}

sc_status emu_peers_new(const sc_emu_config *c, const emu_actors *actors,
                        sc_arena *a, emu_peers *out, sc_err *err)
{
    *out = (emu_peers){.c = c, .a = a, .actors = actors};
    SC_TRY(set_peer_models(out, err));
    for (uint32_t i = 0; i < c->n_whatif; i++)
        if (c->whatif[i].what == SC_EMU_JITTER)
            out->sigma = hypot(out->sigma, c->whatif[i].value);
    out->mirror = SC_NEW_N(a, emu_mirror, c->n_real);
    if (!out->mirror) return sc_error_nomem(err);
    for (uint32_t i = 0; i < c->n_real; i++) {
        emu_mirror *m = &out->mirror[i];
        m->factor = sc_emu_straggler(c, c->real[i]);
        m->lag = SC_NEW_N(a, sc_time, out->n_peer_models);
        if (!m->lag) return sc_error_nomem(err);
    }
    return SC_OK;
}

sc_status emu_peers_count(emu_peers *p, const emu_group *g, emu_members *m,
                          sc_err *err)
{
    /* A rank that mirrors exactly is never late. */
    if (!p->of && p->sigma == 0) return SC_OK;
    emu_share *v = SC_NEW_N(p->a, emu_share, p->n_peer_models);
    if (!v) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t rank = emu_group_rank_at(g, i);
        uint32_t b = p->of ? p->of[rank] : 0;
        if (emu_real_number(p->c, rank) != EMU_NONE || follows(p, rank))
            continue;
        if (v[b].n++ == 0) v[b].rank = rank;
        v[b].peer_model = b;
    }
    for (uint32_t b = 0; b < p->n_peer_models; b++)
        if (v[b].n > 0) v[m->n_shares++] = v[b];
    m->share = v;
    return SC_OK;
}

/* ---- clocks -------------------------------------------------------------- */

static sc_time saturated(sc_time a, double b)
{
    double sum = (double)a + b;
    if (sum >= 9.2e18) return SC_TIME_MAX;
    return sum <= -9.2e18 ? -SC_TIME_MAX : a + (sc_time)b;
}

static double ratio(const emu_peers *p, const emu_mirror *m, uint32_t b)
{
    return p->v[b].factor / m->factor;
}

/* The program computed up to `t`. */
static void computed(const emu_peers *p, emu_mirror *m, sc_time t)
{
    if (t <= m->seen) return;
    sc_time d = t - m->seen;
    m->seen = t;
    m->compute += d;
    for (uint32_t b = 0; b < p->n_peer_models; b++) {
        double more = ratio(p, m, b) - 1;
        if (more != 0)
            m->lag[b] = saturated(m->lag[b], floor(more * (double)d));
    }
}

void emu_peers_post(emu_peers *p, uint32_t real, sc_time t)
{
    emu_mirror *m = &p->mirror[real];
    computed(p, m, t);
    for (uint32_t b = 1; b < p->n_peer_models; b++)
        for (uint32_t i = 0; i < p->v[b].n_stalls; i++)
            if (p->v[b].stall[i].at == m->posts)
                m->lag[b] = saturated(m->lag[b], (double)p->v[b].stall[i].t);
}

void emu_peers_posted(emu_peers *p, uint32_t real)
{
    p->mirror[real].posts++;
    p->mirror[real].compute = 0;
}

void emu_peers_waited(emu_peers *p, uint32_t real, sc_time from, sc_time to)
{
    emu_mirror *m = &p->mirror[real];
    computed(p, m, from);
    if (to <= m->seen) return;
    sc_time wait = to - m->seen;
    m->seen = to;
    for (uint32_t b = 0; b < p->n_peer_models; b++)
        m->lag[b] = m->lag[b] > wait ? m->lag[b] - wait : 0;
}

/* ---- arrivals ------------------------------------------------------------ */

static double draw_unit(uint64_t draw, uint64_t who)
{
    uint64_t state = sc_hash(&who, sizeof who, draw);
    double u = sc_random_unit(&state);
    return u > 0 ? u : 0x1p-54;
}

static void note_arrival(emu_arrival *x, uint32_t rank, sc_time t)
{
    if (t <= x->t) return;
    x->t = t;
    if (!x->fails) x->rank = rank;
}

static void note_failure(emu_arrival *x, uint32_t rank, uint64_t at)
{
    if (x->fails && x->at <= at) return;
    x->fails = true;
    x->rank = rank;
    x->at = at;
}

/* The deviation of the largest of `n` compute times of `d` each. */
static double deviation(const emu_peers *p, double d, uint64_t draw,
                        const emu_share *s)
{
    if (p->sigma <= 0 || d <= 0) return 0;
    uint64_t who = s->n > 1 ? s->peer_model : (uint64_t)1 << 32 | s->rank;
    double z = sc_normal_max(draw_unit(draw, who), s->n) * p->sigma;
    return floor(d * (z > -1 ? z : -1)); /* no time is below zero */
}

double emu_peers_deviation(const emu_peers *p, double d, uint64_t draw,
                           uint32_t rank)
{
    return deviation(p, d, draw, &(emu_share){.n = 1, .rank = rank});
}

static sc_time mirrored(const emu_peers *p, const emu_mirror *m, sc_time t,
                        const emu_share *s, uint64_t draw)
{
    double d = ratio(p, m, s->peer_model) * (double)m->compute;
    t = saturated(t, (double)m->lag[s->peer_model]);
    return saturated(t, deviation(p, d, draw, s));
}

static void arrive_all(const emu_peers *p, const emu_mirror *m, sc_time t,
                       const emu_share *s, uint64_t draw, emu_arrival *x)
{
    uint64_t fail = p->v[s->peer_model].fail;
    if (fail <= m->posts) note_failure(x, s->rank, fail);
    note_arrival(x, s->rank, mirrored(p, m, t, s, draw));
}

void emu_peers_arrive(emu_peers *p, uint32_t real, sc_time t,
                      const emu_members *m, uint64_t draw, emu_arrival *inout)
{
    for (uint32_t i = 0; i < m->n_shares; i++)
        arrive_all(p, &p->mirror[real], t, &m->share[i], draw, inout);
}

void emu_peers_arrive_one(emu_peers *p, uint32_t real, sc_time t, uint32_t rank,
                          uint64_t draw, emu_arrival *inout)
{
    emu_share s = {p->of ? p->of[rank] : 0, 1, rank};
    arrive_all(p, &p->mirror[real], t, &s, draw, inout);
}
