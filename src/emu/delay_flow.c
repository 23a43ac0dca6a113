/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_flow.c - model flow: the messages of all steps of a phase are combined
 * into steady flows, which start after the latencies of all steps.
 *
 * All flows of a phase, including those of siblings, move at the rate of the
 * slowest.  So they are simulated as one flow over all their links, with a
 * share of its bytes on each.  The links are found once for each pattern of a
 * group.
 */
#include "emu/delay_messages.h"

#include <math.h>

#define MOST  ((uint64_t)1 << 16) /* flows of one pattern */
#define PAIRS 64u /* distances that represent all pairs of an all-to-all */

/* A message pattern of a group, as links. */
typedef struct msg_line {
    struct msg_line *next;
    sc_coll_phase phase;
    uint32_t root, to; /* SC_COLL_MESSAGE: from root to `to` */
    delay_route *route;
    double weight;     /* sum of weights: flows that share a bottleneck get
                          equal rates */
    sc_time most, all; /* nominal latency of messages: the longest, and the
                          sum */
    uint32_t n;        /* number of messages in `all` */
    double fill;       /* for a chain: seconds until it is full, per byte of a
                          piece */
} msg_line;

/* ---- flows of a pattern */

static uint32_t flows_of(const msg_flight *f, const msg_line *l, uint32_t i)
{
    const sc_coll_phase *p = &l->phase;
    if (p->pattern == SC_COLL_MESSAGE) return i == l->root;
    uint32_t n = sc_coll_sends(&f->schedule, p, i);
    if (p->pattern == SC_COLL_RING || p->pattern == SC_COLL_CHAIN) return n > 0;
    return p->pattern == SC_COLL_DIRECT && n > PAIRS ? PAIRS : n;
}

static uint32_t to_whom(const msg_flight *f, const msg_line *l, uint32_t i,
                        uint32_t k)
{
    if (l->phase.pattern == SC_COLL_MESSAGE) return l->to;
    uint32_t n = sc_coll_sends(&f->schedule, &l->phase, i);
    if (l->phase.pattern == SC_COLL_DIRECT && n > PAIRS)
        k = (uint32_t)((uint64_t)k * n / PAIRS);
    return sc_coll_to(&f->schedule, &l->phase, i, k);
}

/* Bytes of a flow per byte of the chunk. */
static double share_of(const sc_coll_phase *p, uint32_t k)
{
    uint64_t n = p->steps, from = k * n / PAIRS, to = (k + 1) * n / PAIRS;
    double parts = (double)p->part * p->slices;
    if (p->pattern == SC_COLL_RING) return (double)n / parts;
    if (p->pattern == SC_COLL_DIRECT && n > PAIRS)
        return (double)(to - from) / parts;
    if (p->pattern == SC_COLL_DIRECT || p->pattern == SC_COLL_STAR)
        return 1 / parts;
    return 1;
}

/* ---- their links */

typedef struct uses {
    sc_arena *a;
    delay_use *at;
    uint64_t *hop;
    uint32_t n, cap, n_hops, hop_cap;
} uses;

static bool find_route(const emu_delay *d, uses *u, uint32_t src, uint32_t dst)
{
    const sc_hw *hw = d->c->hw;
    while ((u->n_hops = sc_hw_route(hw, src, dst, d->c->seed, u->hop,
                                    u->hop_cap)) > u->hop_cap) {
        u->hop_cap = u->n_hops;
        if (!(u->hop = SC_NEW_N(u->a, uint64_t, u->hop_cap))) return false;
    }
    return true;
}

static bool add_uses(const emu_delay *d, uses *u, double share)
{
    for (uint32_t k = 0; k < u->n_hops; k++) {
        delay_use *at = sc_grow(u->a, u->at, u->n, &u->cap, 64, sizeof *at);
        if (at == NULL) return false;
        u->at = at;
        u->at[u->n++] =
            (delay_use){u->hop[k], share, sc_hw_link_bw(d->c->hw, u->hop[k])};
    }
    return true;
}

/* Adds the latency of the last route. */
static void add_latency(const emu_delay *d, const uses *u, msg_line *l,
                        double *slowest)
{
    double s = 0, per_byte = 0;
    for (uint32_t k = 0; k < u->n_hops; k++) {
        double bw = sc_hw_link_bw(d->c->hw, u->hop[k]) * d->what.bandwidth;
        s += sc_hw_link_latency(d->c->hw, u->hop[k]);
        per_byte = fmax(per_byte, 1 / bw);
    }
    sc_time t = sc_time_from_s(s);
    if (t > l->most) l->most = t;
    l->all = delay_scaled(l->all + delay_scaled(t, 1), 1);
    l->n++;
    l->fill += per_byte;
    *slowest = fmax(*slowest, per_byte);
}

static bool walk(const emu_delay *d, const msg_flight *f, msg_line *l, uses *u)
{
    const msg_group *g = f->group;
    double slowest = 0;
    for (uint32_t s = 0; s < g->siblings; s++)
        for (uint32_t i = 0; i < g->n; i++)
            for (uint32_t k = 0; k < flows_of(f, l, i); k++) {
                const uint32_t *rank = g->rank + (size_t)s * g->n;
                uint32_t to = to_whom(f, l, i, k);
                if (!find_route(d, u, rank[i], rank[to]) ||
                    !add_uses(d, u, share_of(&l->phase, k)))
                    return false;
                if (s == 0) add_latency(d, u, l, &slowest);
            }
    l->fill -= slowest;
    return true;
}

/* ---- patterns */

static bool same(const msg_line *l, const sc_coll_phase *p, uint32_t root,
                 uint32_t to)
{
    const sc_coll_phase *q = &l->phase;
    bool chain = p->pattern == SC_COLL_CHAIN; /* the size of its pieces makes no
                                                 difference */
    return q->pattern == p->pattern &&
           sc_coll_to_root(q) == sc_coll_to_root(p) && q->n == p->n &&
           q->stride == p->stride && q->slices == p->slices &&
           (chain || (q->steps == p->steps && q->part == p->part)) &&
           (sc_coll_is_symmetric(p->pattern) ||
            (l->root == root && l->to == to));
}

static sc_status too_many(const msg_flight *f, uint64_t n, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                    sc_pos_file("--delay-model flow"),
                    "use --delay-model analytic for groups of this size",
                    "%u x %u ranks have %llu flows in one operation, more than "
                    "%llu",
                    f->group->siblings, f->group->n, (unsigned long long)n,
                    (unsigned long long)MOST);
}

static sc_status make(emu_delay *d, const msg_flight *f, msg_line *l,
                      sc_err *err)
{
    delay_flights *x = &d->messages->flights;
    uint64_t n = 0;
    bool longer = false;
    for (uint32_t i = 0; i < f->group->n; i++) n += flows_of(f, l, i);
    n *= f->group->siblings;
    if (n > MOST) return too_many(f, n, err);
    sc_arena scratch;
    sc_arena_init(&scratch, 0);
    uses u = {.a = &scratch, .hop_cap = 16};
    u.hop = SC_NEW_N(&scratch, uint64_t, u.hop_cap);
    if (u.hop != NULL && walk(d, f, l, &u))
        l->route = delay_links_add(x->links, u.at, u.n, &longer);
    sc_arena_free(&scratch);
    l->weight = 1 / share_of(&l->phase, 0);
    if (l->route == NULL || (longer && !delay_flights_reroute(x)))
        return sc_error_nomem(err);
    return SC_OK;
}

static sc_status line_of(emu_delay *d, const msg_flight *f,
                         const sc_coll_phase *p, uint32_t root, uint32_t to,
                         msg_line **out, sc_err *err)
{
    msg_group *g = f->group;
    for (msg_line **at = &g->lines; *at != NULL; at = &(*at)->next) {
        msg_line *l = *at;
        if (!same(l, p, root, to)) continue;
        *at = l->next; /* move to the front: it is likely to be used again */
        l->next = g->lines;
        g->lines = l;
        *out = l;
        return SC_OK;
    }
    msg_line *l = SC_NEW(d->a, msg_line);
    if (l == NULL) return sc_error_nomem(err);
    *l = (msg_line){.phase = *p, .root = root, .to = to};
    SC_TRY(make(d, f, l, err));
    l->next = g->lines;
    g->lines = l;
    *out = l;
    return SC_OK;
}

/* ---- flights */

static sc_status send(emu_delay *d, msg_flight *f, const msg *key,
                      const msg_line *l, uint64_t bytes, sc_time latency,
                      sc_time t, sc_err *err)
{
    msg *m = msg_record(d, f, key);
    if (m == NULL) return sc_error_nomem(err);
    delay_flight go = {.route = l->route,
                       .tag = m->id,
                       .bytes = bytes,
                       .starts = t + latency,
                       .weight = l->weight};
    m->flow = delay_flights_send(&d->messages->flights, &go, t);
    return m->flow == SC_FLOW_NONE ? sc_error_nomem(err) : SC_OK;
}

/* The time until the flows of the phase have their steady rate: the longest
 * latency of a message in the phase times its steps; for a chain, the time of
 * the first piece to the end. */
static sc_time latency_of(const emu_delay *d, const msg_flight *f,
                          const msg_line *l, const msg *at, uint64_t chunk)
{
    const sc_coll_phase *p = &f->schedule.phase[at->phase];
    bool at_once = p->pattern == SC_COLL_STAR || p->pattern == SC_COLL_DIRECT;
    uint32_t hops = at_once ? 1 : p->steps;
    sc_time t = delay_sum(hops, msg_latency(d, l->most));
    if (p->pattern == SC_COLL_CHAIN) {
        double fill = l->fill * (double)chunk / p->part;
        t = delay_scaled(l->all, d->what.latency) +
            delay_sum(l->n, d->what.hop) +
            delay_scaled(sc_time_from_s(fill), 1);
    }
    if (at->chunk == 0 && at->phase == 0) t = t > f->credit ? t - f->credit : 0;
    return t;
}

static sc_status start(emu_delay *d, msg_flight *f, const msg *m, sc_time t,
                       sc_err *err)
{
    msg_line *l = NULL;
    if (!msg_ready(f, m, 0)) return SC_OK;
    SC_TRY(line_of(d, f, &f->schedule.phase[m->phase], f->schedule.root, 0, &l,
                   err));
    uint64_t chunk = f->schedule.bytes / f->schedule.chunks +
                     (m->chunk < f->schedule.bytes % f->schedule.chunks);
    msg_state_of(f, m, 0)->started = true;
    return send(d, f, m, l, chunk, latency_of(d, f, l, m, chunk), t, err);
}

sc_status msg_flow_end(emu_delay *d, const msg *m, sc_time t, sc_err *err)
{
    msg_flight *f = m->flight;
    msg after = *m, behind = *m;
    msg_done(f, m, 0);
    after.phase++;
    behind.chunk++;
    SC_TRY(start(d, f, &after, t, err));
    return start(d, f, &behind, t, err);
}

sc_status msg_flow_post(emu_delay *d, msg_flight *f, sc_time t, sc_err *err)
{
    const msg m = {.flight = f};
    if (!msg_states(f, 1, 1, d->a)) return sc_error_nomem(err);
    return start(d, f, &m, t, err);
}

sc_status msg_flow_pair(emu_delay *d, msg_flight *f, const msg *m, sc_time t,
                        sc_err *err)
{
    const sc_coll_phase pair = {
        .pattern = SC_COLL_MESSAGE, .part = 1, .slices = 1};
    msg_line *l = NULL;
    SC_TRY(line_of(d, f, &pair, m->src, m->dst, &l, err));
    sc_time latency = m->src == m->dst ? 0 : msg_latency(d, l->most);
    latency = latency > f->credit ? latency - f->credit : 0;
    return send(d, f, m, l, m->src == m->dst ? 0 : f->schedule.bytes, latency,
                t, err);
}
