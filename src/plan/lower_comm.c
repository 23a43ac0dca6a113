/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_comm.c - finds the devices and links that an exchange uses, once for
 * every set of communicators.
 */
#include "base/util.h"
#include "cost/cost_traffic.h"
#include "plan/lower.h"

#include <string.h>

uint32_t lower_rank(const lowering *g, uint32_t dev, uint32_t member)
{
    uint32_t inner = member % g->stride, outer = member / g->stride;
    return (outer * g->pp + dev) * g->stride + inner;
}

void lower_place(const lowering *g, uint32_t rank, uint32_t *dev,
                 uint32_t *member)
{
    uint32_t outer = rank / (g->stride * g->pp);
    *dev = rank / g->stride % g->pp;
    *member = outer * g->stride + rank % g->stride;
}

/* ---- the table ---------------------------------------------------------- */

/* Operations refer to traffics by the order in which they were added. */
static void report_traffics(lowering *g)
{
    for (uint32_t k = 0; k < g->comms->n; k++)
        if (g->comms->all[k].moves)
            (void)sc_graph_add_traffic(g->b, g->comms->all[k].moves);
}

sc_status lower_comms_begin(lowering *g)
{
    struct sc_net_walks *x = lower_shared(g);
    uint32_t n = g->prog->n_items;
    if (x && x->comms[!g->clock]) {
        g->comms = x->comms[!g->clock];
        if (!g->clock) report_traffics(g);
        return SC_OK;
    }
    lower_comms *c = g->comms = SC_NEW(g->a, lower_comms);
    if (!c || !(c->asked = SC_NEW_N(g->a, struct lower_asked, n)))
        return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < n; i++) c->asked[i].comm = SC_NONE;
    if (x) x->comms[!g->clock] = c;
    return SC_OK;
}

static bool same(const lower_comm *c, const lower_comm *d)
{
    return c->coll == d->coll && c->n_groups == d->n_groups &&
           c->size == d->size &&
           memcmp(c->rank, d->rank,
                  (size_t)c->n_groups * c->size * sizeof *c->rank) == 0;
}

/* ---- new communicators -------------------------------------------------- */

/* Link loads of exchanges are kept, because finding them dominates the time of
 * a step on many devices, and a step is run with several numbers of
 * micro-batches. */
struct sc_net_links {
    sc_arena *a;

    struct loaded {
        struct loaded *next;
        const sc_hw *hw;
        sc_coll coll;
        sc_traffic_groups of;
        sc_traffic moves;
    } * first;
};

struct sc_net_links *sc_net_plan_links(sc_arena *a)
{
    struct sc_net_links *x = SC_NEW(a, struct sc_net_links);
    if (x) x->a = a;
    return x;
}

static bool is_of(const struct loaded *l, const sc_hw *hw, sc_coll coll,
                  const sc_traffic_groups *of)
{
    return l->hw == hw && l->coll == coll && l->of.n == of->n &&
           l->of.size == of->size &&
           memcmp(l->of.rank, of->rank,
                  (size_t)of->n * of->size * sizeof *of->rank) == 0;
}

static sc_status load(const sc_net_run *job, sc_coll coll,
                      const sc_traffic_groups *of, sc_arena *a,
                      struct loaded **out, sc_err *err)
{
    const sc_net_site *site = job->site;
    const sc_hw *hw = site ? site->hw : job->hw;
    size_t n = (size_t)of->n * of->size;
    struct loaded *l = SC_NEW(a, struct loaded);
    uint32_t *rank = SC_NEW_N(a, uint32_t, n);
    if (!l || !rank) return sc_error_nomem(err);
    memcpy(rank, of->rank, n * sizeof *rank);
    *l = (struct loaded){.hw = hw, .coll = coll, .of = {rank, of->n, of->size}};
    *out = l;
    if (site)
        return sc_traffic_all(hw, coll, of, site->seed, site->even, a,
                              &l->moves, err);
    return sc_traffic_of(hw, coll, of, 0, a, &l->moves, err);
}

/* Finds the link loads of an exchange.  They are not kept if each rank is a
 * device, because there are too many groups. */
static sc_status links_of(lowering *g, sc_coll coll,
                          const sc_traffic_groups *of, const sc_traffic **out)
{
    struct sc_net_links *all = g->members > 1 ? NULL : g->job->links;
    const sc_hw *hw = g->job->site ? g->job->site->hw : g->job->hw;
    struct loaded *l = all ? all->first : NULL;
    while (l && !is_of(l, hw, coll, of)) l = l->next;
    if (!l) {
        SC_TRY(load(g->job, coll, of, all ? all->a : g->a, &l, g->err));
        if (all) l->next = all->first;
        if (all) all->first = l;
    }
    *out = &l->moves;
    return SC_OK;
}

/* Ranks become devices of the whole machine. */
static sc_status on_site(const lowering *g, sc_traffic_groups *of)
{
    const sc_net_site *site = g->job->site;
    size_t n = (size_t)of->n * of->size;
    if (!site) return SC_OK;
    uint32_t *device = SC_NEW_N(g->a, uint32_t, n);
    if (!device) return sc_error_nomem(g->err);
    for (size_t i = 0; i < n; i++) device[i] = site->device[of->rank[i]];
    of->rank = device;
    return SC_OK;
}

static sc_status traffic(lowering *g, lower_comm *c, uint32_t group,
                         uint32_t n_groups, uint32_t *out)
{
    const sc_traffic *t = NULL;
    *out = SC_NONE;
    if (!g->job->hw || g->rules->links_private || g->clock) return SC_OK;
    sc_traffic_groups of = {c->rank + (size_t)group * c->size, n_groups,
                            c->size};
    SC_TRY(on_site(g, &of));
    SC_TRY(links_of(g, (sc_coll)c->coll, &of, &t));
    if (t->n == 0) return SC_OK;
    c->moves = t;
    *out = sc_graph_add_traffic(g->b, t);
    return SC_OK;
}

static sc_status devices(lowering *g, lower_comm *c)
{
    uint32_t dev, member, n = c->n_groups * c->size;
    c->dev = SC_NEW_N(g->a, uint32_t, g->pp);
    if (!c->dev) return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < n; i++) {
        lower_place(g, c->rank[i], &dev, &member);
        uint32_t k = 0;
        while (k < c->n_dev && c->dev[k] != dev) k++;
        if (k == c->n_dev) c->dev[c->n_dev++] = dev;
    }
    return SC_OK;
}

static sc_status create(lowering *g, const lower_comm *wanted, uint32_t *out)
{
    lower_comm c = *wanted;
    SC_TRY(devices(g, &c));
    uint32_t n = g->members > 1 ? c.n_groups : 1;
    c.traffic = SC_NEW_N(g->a, uint32_t, n);
    lower_comms *x = g->comms;
    lower_comm *all = sc_grow_raw(g->a, x->all, x->n, &x->cap, 64, sizeof *all);
    if (!c.traffic || !all) return sc_error_nomem(g->err);
    x->all = all;
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(traffic(g, &c, g->members > 1 ? i : 0,
                       g->members > 1 ? 1 : c.n_groups, &c.traffic[i]));
    all[x->n] = c;
    *out = x->n++;
    return SC_OK;
}

/* Moves the inferred ranks to this device if they are on another device of the
 * same stage.  Collectives over several devices are not changed. */
static sc_status moved(lowering *g, const sc_net_exchange *x,
                       const program_item *it, uint32_t dev, uint32_t to,
                       lower_comm *c)
{
    uint32_t n = x->n_groups * x->size, at, member, first;
    bool pair = x->p2p && it->to != SC_NONE, moves = false;
    lower_place(g, x->rank[0], &first, &member);
    for (uint32_t i = 0; i < n; i++) {
        lower_place(g, x->rank[i], &at, &member);
        if (!pair && at != first) return SC_OK;
        moves = moves || at != (pair && i % 2 ? to : dev);
    }
    if (!moves) return SC_OK;
    uint32_t *rank = SC_NEW_N(g->a, uint32_t, n);
    if (!rank) return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < n; i++) {
        lower_place(g, x->rank[i], &at, &member);
        rank[i] = lower_rank(g, pair && i % 2 ? to : dev, member);
    }
    c->rank = rank;
    return SC_OK;
}

sc_status lower_comm_add(lowering *g, const lower_comm *wanted, uint32_t *out)
{
    uint64_t content =
        sc_hash(wanted->rank,
                (size_t)wanted->n_groups * wanted->size * sizeof *wanted->rank,
                (uint64_t)wanted->coll << 32 | wanted->size);
    uint32_t at = 0;
    while ((*out = sc_map_next(&g->comms->by_ranks, content, &at)) !=
           SC_MAP_END)
        if (same(&g->comms->all[*out], wanted)) return SC_OK;
    SC_TRY(create(g, wanted, out));
    return sc_map_add(&g->comms->by_ranks, g->a, content, *out)
               ? SC_OK
               : sc_error_nomem(g->err);
}

static sc_status look_up(lowering *g, const program_item *it, uint32_t dev,
                         uint32_t to, uint32_t *id)
{
    const sc_net_exchange *x = &g->p->exchange[it->exchange];
    uint64_t key[6] = {
        (uintptr_t)x->rank, x->coll, x->n_groups, x->size, dev, to};
    uint64_t hash = sc_hash(key, sizeof key, 0);
    uint32_t at = 0;
    if ((*id = sc_map_next(&g->comms->by_place, hash, &at)) != SC_MAP_END)
        return SC_OK;
    lower_comm c = {.coll = x->coll,
                    .n_groups = x->n_groups,
                    .size = x->size,
                    .rank = x->rank};
    SC_TRY(moved(g, x, it, dev, to, &c));
    SC_TRY(lower_comm_add(g, &c, id));
    return sc_map_add(&g->comms->by_place, g->a, hash, *id)
               ? SC_OK
               : sc_error_nomem(g->err);
}

sc_status lower_comm_of(lowering *g, uint32_t i, uint32_t dev, uint32_t to,
                        const lower_comm **out)
{
    struct lower_asked *t = &g->comms->asked[i];
    if (t->comm == SC_NONE || t->dev != dev || t->to != to)
        SC_TRY(look_up(g, &g->prog->item[i], dev, to, &t->comm));
    t->dev = dev;
    t->to = to;
    *out = &g->comms->all[t->comm];
    return SC_OK;
}
