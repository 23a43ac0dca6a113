/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_kind.c - finds the links that an operation crosses.
 *
 * Analytic model: the links of its traffic and that of its siblings
 * (cost_traffic.h).  A link's rate is the rate that the largest operation
 * reaches alone, so that two of them at once take twice as long.
 *
 * Hosts, files: a port per device inside a node or per node between nodes, and
 * direction.  An operation alone fills its ports.
 */
#include "base/util.h"
#include "cost/cost_traffic.h"
#include "emu/delay_closed.h"

#define LARGE 1e12 /* bytes; latency is negligible */
#define FULL  1e12 /* bytes/s: one per picosecond of work */

/* ---- links of the machine */

/* The ranks of the kind, siblings included; *size of each group, *n groups. */
static const uint32_t *ranks_of(const closed_kind *k, sc_arena *a, uint32_t *n,
                                uint32_t *size)
{
    const emu_group *g = k->group;
    bool pair = sc_coll_is_message(k->coll);
    *n = g->siblings == NULL ? 1 : g->n_siblings;
    *size = pair ? 2 : g->n;
    if (!pair && g->siblings != NULL) return g->siblings;
    uint32_t *r = SC_NEW_N(a, uint32_t, (size_t)*n * *size);
    for (uint32_t s = 0; r != NULL && s < *n; s++)
        for (uint32_t i = 0; i < *size; i++) {
            uint32_t at = pair ? (i == 0 ? k->from : k->to) : i;
            r[(size_t)s * *size + i] = g->siblings == NULL
                                           ? delay_rank(g, at)
                                           : g->siblings[(size_t)s * g->n + at];
        }
    return r;
}

/* The fraction of the fullest link's rate that the largest operations get. */
static sc_status part_of(const emu_delay *d, const closed_kind *k,
                         const sc_traffic *t, double *out, sc_err *err)
{
    sc_coll_price p;
    SC_TRY(sc_cost_coll(d->c->cost, d->c->hw, sc_coll_priced(k->coll), LARGE,
                        &k->place, -1, &p, err));
    *out = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        double part = t->share[i] * LARGE / p.seconds /
                      sc_hw_link_bw(d->c->hw, t->link[i]);
        if (part > *out) *out = part;
    }
    if (!(*out > 0 && *out < 1)) *out = 1;
    return SC_OK;
}

static sc_status machine_links(emu_delay *d, closed_kind *k, sc_arena *a,
                               delay_use **out, uint32_t *n, sc_err *err)
{
    sc_traffic t = {0};
    sc_traffic_groups of;
    double part = 1;
    of.rank = ranks_of(k, a, &of.n, &of.size);
    if (of.rank == NULL) return sc_error_nomem(err);
    SC_TRY(sc_traffic_of(d->c->hw, sc_coll_priced(k->coll), &of, d->c->seed, a,
                         &t, err));
    if (t.n > 0) SC_TRY(part_of(d, k, &t, &part, err));
    delay_use *u = SC_NEW_N(a, delay_use, t.n);
    if (u == NULL) return sc_error_nomem(err);
    for (uint32_t i = 0; i < t.n; i++)
        u[i] = (delay_use){t.link[i], t.share[i] / part,
                           sc_hw_link_bw(d->c->hw, t.link[i])};
    *out = u;
    *n = t.n;
    return SC_OK;
}

/* ---- ports */

static uint64_t port(bool net, bool in, uint32_t number)
{
    return (uint64_t)net << 33 | (uint64_t)in << 32 | number;
}

static sc_status ports(const emu_delay *d, const closed_kind *k, sc_arena *a,
                       delay_use **out, uint32_t *n, sc_err *err)
{
    bool net = k->place.nodes > 1, pair = sc_coll_is_message(k->coll);
    uint32_t *number = SC_NEW_N(a, uint32_t, k->n), kept = 0;
    delay_use *u = SC_NEW_N(a, delay_use, 2 * (size_t)k->n);
    if (number == NULL || u == NULL) return sc_error_nomem(err);
    for (uint32_t i = 0; i < k->n; i++) {
        uint32_t at = pair ? (i == 0 ? k->from : k->to) : i;
        uint32_t rank = delay_rank(k->group, at);
        number[i] = net ? rank / d->c->hw->node_size : rank;
    }
    if (pair) {
        u[0] = (delay_use){port(net, false, number[0]), 1, FULL};
        u[1] = (delay_use){port(net, true, number[1]), 1, FULL};
        *out = u;
        *n = 2;
        return SC_OK;
    }
    sc_sort_numbers(number, k->n);
    for (uint32_t i = 0; i < k->n; i++) {
        if (i > 0 && number[i] == number[i - 1]) continue;
        u[kept++] = (delay_use){port(net, false, number[i]), 1, FULL};
        u[kept++] = (delay_use){port(net, true, number[i]), 1, FULL};
    }
    *out = u;
    *n = kept;
    return SC_OK;
}

/* ---- kinds */

/* The route of another kind of the group that loads the same links, or NULL.
 * Others know only ports; on the machine, a barrier loads the links of an
 * all-reduce. */
static delay_route *same_route(const emu_delay *d, const closed_kind *k)
{
    if (sc_coll_is_message(k->coll)) return NULL;
    for (uint32_t c = 0; c < SC_N_COLLS; c++) {
        const closed_kind *other = k->group->delay[c];
        if (other == NULL || other->route == NULL) continue;
        if (d->closed->ports ||
            sc_coll_priced(other->coll) == sc_coll_priced(k->coll))
            return other->route;
    }
    return NULL;
}

static sc_status make(emu_delay *d, closed_kind *k, bool *longer, sc_err *err)
{
    delay_use *use = NULL;
    uint32_t n = 0;
    sc_arena scratch;
    sc_status s = SC_OK;
    const emu_group *g = k->group;
    k->n = sc_coll_is_message(k->coll) ? 2 : g->n;
    k->place = g->place;
    if (sc_coll_is_message(k->coll)) {
        uint32_t a = delay_rank(g, k->from), b = delay_rank(g, k->to);
        uint32_t rank[2] = {a < b ? a : b, a < b ? b : a};
        if (a == b) k->n = 1;
        k->place = sc_hw_place_ranks(d->c->hw, k->n, rank);
    }
    if (k->n >= 2 && d->closed->file != NULL)
        SC_TRY(delay_file_fit(d->closed->file, k->coll, k->n, &k->fit, err));
    if ((k->route = same_route(d, k)) != NULL) return SC_OK;
    sc_arena_init(&scratch, 0);
    if (k->n >= 2)
        s = d->closed->ports ? ports(d, k, &scratch, &use, &n, err)
                             : machine_links(d, k, &scratch, &use, &n, err);
    if (s == SC_OK) {
        k->route = delay_links_add(d->closed->flights.links, use, n, longer);
        if (k->route == NULL) s = sc_error_nomem(err);
    }
    sc_arena_free(&scratch);
    return s;
}

static uint64_t pair_hash(const closed_kind *key)
{
    uint64_t pair = (uint64_t)key->from << 32 | key->to;
    return sc_mix(pair ^ key->group->id * 0x9e3779b97f4a7c15u);
}

static closed_kind *find_pair(const delay_closed *x, const closed_kind *key)
{
    uint32_t at = 0;
    closed_kind *k;
    do k = sc_map_next_ptr(&x->pairs, pair_hash(key), &at);
    while (k != NULL && (k->group != key->group || k->from != key->from ||
                         k->to != key->to || k->coll != key->coll));
    return k;
}

sc_status closed_kind_of(emu_delay *d, const emu_flight *f, closed_kind **out,
                         bool *longer, sc_err *err)
{
    delay_closed *x = d->closed;
    bool pair = sc_coll_is_message(f->coll);
    closed_kind key = {.group = f->group, .coll = f->coll};
    *longer = false;
    if (pair) {
        key.from = f->root;
        key.to = f->to;
        *out = find_pair(x, &key);
    } else {
        *out = f->group->delay[f->coll];
    }
    if (*out != NULL) return SC_OK;
    closed_kind *k = SC_NEW(d->a, closed_kind);
    if (k == NULL) return sc_error_nomem(err);
    *k = key;
    SC_TRY(make(d, k, longer, err));
    if (!pair)
        f->group->delay[f->coll] = k;
    else if (!sc_map_add_ptr(&x->pairs, d->a, pair_hash(k), k))
        return sc_error_nomem(err);
    *out = k;
    return SC_OK;
}
