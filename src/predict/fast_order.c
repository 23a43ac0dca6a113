/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_order.c - lists the passes of a schedule so that each follows all that
 * it waits for, and keeps lists of schedules that were used before.
 *
 * The end of a pass is kept in a place until the only pass that waits for it
 * has begun; another end then takes the place, so that few are in use.
 */
#include "predict/fast_period.h"

/* Most bytes of kept lists; beyond, all are dropped. */
#define KEPT ((size_t)24 << 20)

typedef struct maker {
    const sc_run *r;
    fast_order *out;
    sc_arena *a;               /* for what is needed only here */
    uint32_t *done_f, *done_b; /* [n_stages * ga] places; 0: not yet */
    uint32_t *unused, n_unused, n_places;
    uint32_t *pos, *n_order; /* [pp] */
    sc_slot **order;         /* [pp] */
    uint32_t *first, *last;  /* [chunks] sc_schedule_ends() */
    uint32_t n_stages, per_device;
} maker;

/* ---- places --------------------------------------------------------------- */

static uint32_t take(maker *m)
{
    return m->n_unused > 0 ? m->unused[--m->n_unused] : m->n_places++;
}

static void give(maker *m, uint32_t place)
{
    if (place >= FAST_PLACES) m->unused[m->n_unused++] = place;
}

/* ---- one pass ------------------------------------------------------------- */

/* Whether the next pass of a device has what it waits for; then lists it. */
static bool list_next(maker *m, uint32_t dev)
{
    const sc_run *r = m->r;
    const sc_slot *o = &m->order[dev][m->pos[dev]];
    uint32_t c = dev * m->per_device + o->chunk, v = m->out->stage[c];
    size_t i = (size_t)v * r->ga + o->mb;
    bool bwd = o->pass != SC_FWD, top = v + 1 == m->n_stages;
    fast_slot s = {
        .in = FAST_START, .out = FAST_NOWHERE, .chunk = c, .pass = o->pass};
    if (!bwd && o->mb == m->first[c]) s.how |= FAST_FIRST;
    if (fast_makes_gradients((sc_pass)o->pass) && o->mb == m->last[c])
        s.how |= FAST_LAST;
    if (o->pass != SC_BWD_W) {
        if (!bwd && v > 0) s.in = m->done_f[i - r->ga];
        if (bwd) s.in = top ? m->done_f[i] : m->done_b[i + r->ga];
        if ((bwd || v > 0) && (s.in == 0 || (bwd && m->done_f[i] == 0)))
            return false;
        give(m, s.in);
        uint32_t to = bwd ? v - 1 : v + 1; /* the stage that waits for it */
        bool waits = bwd ? v > 0 : !top || !r->forward_only;
        if (waits) s.out = take(m);
        (bwd ? m->done_b : m->done_f)[i] = s.out;
        if (waits && (bwd || !top) && sc_run_device(r, to, o->mb) != dev)
            s.how |= FAST_SENDS;
    }
    m->pos[dev]++;
    m->out->slot[m->out->n++] = s;
    return true;
}

/* ---- the list ------------------------------------------------------------- */

static sc_status maker_open(maker *m, sc_arena *to, sc_err *err)
{
    const sc_run *r = m->r;
    sc_arena *a = m->a;
    uint32_t pp = r->size[SC_AX_PP], all = 0;
    m->per_device = sc_run_chunks(r);
    m->n_stages = sc_run_stages(r);
    m->n_places = FAST_PLACES;
    size_t n = (size_t)m->n_stages * r->ga, chunks = (size_t)pp * m->per_device;
    m->done_f = SC_NEW_N(a, uint32_t, n);
    m->done_b = SC_NEW_N(a, uint32_t, n);
    m->unused = SC_RAW_N(a, uint32_t, 2 * n + FAST_PLACES);
    m->pos = SC_NEW_N(a, uint32_t, pp);
    m->n_order = SC_NEW_N(a, uint32_t, pp);
    m->order = SC_NEW_N(a, sc_slot *, pp);
    m->first = SC_NEW_N(a, uint32_t, chunks);
    m->last = SC_NEW_N(a, uint32_t, chunks);
    m->out->stage = SC_NEW_N(to, uint32_t, chunks);
    m->out->device = SC_NEW_N(to, uint32_t, chunks);
    if (!m->done_f || !m->done_b || !m->unused || !m->pos || !m->n_order ||
        !m->order || !m->first || !m->last || !m->out->stage || !m->out->device)
        return sc_error_nomem(err);
    for (uint32_t dev = 0; dev < pp; dev++) {
        m->order[dev] = SC_RAW_N(a, sc_slot, sc_run_slots(r));
        if (!m->order[dev]) return sc_error_nomem(err);
        m->n_order[dev] = sc_run_order(r, dev, m->order[dev]);
        all += m->n_order[dev];
        for (uint32_t k = 0; k < m->per_device; k++) {
            uint32_t c = dev * m->per_device + k;
            m->out->stage[c] = sc_run_stage(r, dev, k);
            m->out->device[c] = dev;
            sc_schedule_ends(m->order[dev], m->n_order[dev], k, &m->first[c],
                             &m->last[c]);
        }
    }
    m->out->slot = SC_RAW_N(to, fast_slot, all);
    return m->out->slot ? SC_OK : sc_error_nomem(err);
}

static sc_status make(const sc_run *r, sc_arena *a, sc_arena *to,
                      fast_order **out, sc_err *err)
{
    maker m = {.r = r, .out = SC_NEW(to, fast_order), .a = a};
    if (!m.out) return sc_error_nomem(err);
    SC_TRY(maker_open(&m, to, err));
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++)
            if (m.pos[dev] < m.n_order[dev] && list_next(&m, dev)) moved = true;
    }
    m.out->n_places = m.n_places;
    m.out->n_stages = m.n_stages;
    *out = m.out;
    return fast_period_find(r, m.out, a, to, err);
}

/* ---- kept lists ----------------------------------------------------------- */

uint64_t fast_order_key(const sc_run *r)
{
    const uint64_t key[] = {
        r->size[SC_AX_PP],     r->vpp,          r->ga,
        (uint64_t)r->schedule, r->forward_only, (uint64_t)(uintptr_t)r->order};
    return sc_hash(key, sizeof key, 0);
}

sc_status fast_order_of(const sc_run *r, predict_orders *kept, sc_arena *a,
                        const fast_order **out, sc_err *err)
{
    fast_order *own = NULL;
    uint64_t key = fast_order_key(r);
    uint32_t at = 0;
    if (!kept) {
        SC_TRY(make(r, a, a, &own, err));
        *out = own;
        return SC_OK;
    }
    if ((*out = sc_map_next_ptr(&kept->by_key, key, &at))) return SC_OK;
    if (kept->bytes > KEPT) {
        sc_arena_reset(&kept->a);
        kept->by_key = (sc_map){0};
        kept->bytes = 0;
    }
    sc_arena_mark mark = sc_arena_save(a);
    SC_TRY(make(r, a, &kept->a, &own, err));
    sc_arena_restore(a, mark);
    kept->bytes += own->n * sizeof *own->slot;
    if (!sc_map_add_ptr(&kept->by_key, &kept->a, key, own))
        return sc_error_nomem(err);
    *out = own;
    return SC_OK;
}
