/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.c - the links that ops share, as flows.
 *
 * An op in flight is one flow of work: a byte of the flow is a picosecond of
 * the op's time alone, and what crosses a link per such byte is the op's bytes
 * on that link divided by that time. A private link keeps the op from running
 * faster than alone, times its rate beside overlapping ops. Weights of flows
 * are chosen so that flows limited by the same link move their bytes at the
 * same rate. A transfer that is priced faster than a link on its route takes as
 * long as its bytes need there. The links of a collective are those of rings,
 * whatever its algorithm. If the price of a collective would need more than the
 * capacity of a link, the collective saturates the link. Links that the same
 * traffic crosses with the same shares are merged into the one with the lowest
 * capacity.
 */
#include "hw/hw_link.h"
#include "sim/run.h"

#include <stdlib.h>
#include <string.h>

#define PER_PS 1e-12
#define FULL   1e12 /* bytes/s of a private link: one per picosecond */

typedef struct use {
    uint64_t link;
    double share;
    uint32_t traffic;
} use;

static int compare_uses(const void *p, const void *q)
{
    const use *a = p, *b = q;
    if (a->link != b->link) return a->link < b->link ? -1 : 1;
    return (a->traffic > b->traffic) - (a->traffic < b->traffic);
}

/* A link and the traffic that crosses it. */
typedef struct crossing {
    const use *use; /* [n] */
    uint32_t n;
    uint64_t hash; /* of traffic and shares */
    double bw;     /* bytes/s */
    bool slows;    /* collectives, too */
} crossing;

static uint64_t hash_of(const crossing *c)
{
    uint64_t h = c->n | (uint64_t)c->slows << 32;
    for (uint32_t k = 0; k < c->n; k++) {
        h = sc_hash(&c->use[k].traffic, sizeof c->use[k].traffic, h);
        h = sc_hash(&c->use[k].share, sizeof c->use[k].share, h);
    }
    return h;
}

/* Sorts equal crossings next to each other, the slowest link first. */
static int compare_crossings(const void *p, const void *q)
{
    const crossing *a = p, *b = q;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    if (a->slows != b->slows) return a->slows ? 1 : -1;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    for (uint32_t k = 0; k < a->n; k++) {
        const use *u = &a->use[k], *v = &b->use[k];
        if (u->traffic != v->traffic) return u->traffic < v->traffic ? -1 : 1;
        if (u->share != v->share) return u->share < v->share ? -1 : 1;
    }
    if (a->bw != b->bw) return a->bw < b->bw ? -1 : 1;
    return (a->use->link > b->use->link) - (a->use->link < b->use->link);
}

static bool same_uses(const crossing *a, const crossing *b)
{
    if (a->n != b->n || a->slows != b->slows || a->hash != b->hash)
        return false;
    for (uint32_t k = 0; k < a->n; k++)
        if (a->use[k].traffic != b->use[k].traffic ||
            a->use[k].share != b->use[k].share)
            return false;
    return true;
}

/* All (link, traffic) of traffic that an op has, by link. */
static sc_status collect(const sc_graph *g, sc_arena *a, use **out, uint32_t *n,
                         sc_err *err)
{
    bool *used = SC_NEW_N(a, bool, g->n_traffic);
    if (!used) return sc_error_nomem(err);
    for (sc_op i = 0; i < g->n_ops; i++)
        if (g->traffic[i] != SC_NONE && g->bytes[i] > 0 &&
            g->work[i] > g->latency[i])
            used[g->traffic[i]] = true;
    size_t all = 0;
    for (uint32_t t = 0; t < g->n_traffic; t++)
        if (used[t]) all += g->traffics[t].n;
    if (all >= SC_NONE)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "more than 2^32 - 2 links of all traffic");
    use *u = SC_NEW_N(a, use, all);
    if (!u) return sc_error_nomem(err);
    all = 0;
    for (uint32_t t = 0; t < g->n_traffic; t++) {
        const sc_traffic *f = &g->traffics[t];
        for (uint32_t k = 0; used[t] && k < f->n; k++)
            if (f->share[k] > 0) u[all++] = (use){f->link[k], f->share[k], t};
    }
    qsort(u, all, sizeof *u, compare_uses);
    size_t kept = 0; /* a link named twice is crossed once, with both shares */
    for (size_t k = 0; k < all; k++) {
        if (kept > 0 && compare_uses(&u[kept - 1], &u[k]) == 0)
            u[kept - 1].share += u[k].share;
        else
            u[kept++] = u[k];
    }
    *out = u;
    *n = (uint32_t)kept;
    return SC_OK;
}

static double bw_of(const hw_map *map, const double share[2], uint64_t link,
                    bool *above)
{
    const sc_hw *hw = map->hw;
    hw_link l;
    bool known = hw_link_get(map, link, &l);
    *above = known && hw_link_above(&l);
    if (!known) /* wired as a file describes */
        return sc_hw_link_bw(hw, link) * share[sc_hw_link_scope(hw, link)];
    bool net = hw->dim[l.dim].ports > 0;
    return l.bw * share[net ? SC_SCOPE_NET : SC_SCOPE_NODE];
}

static sc_status find_crossings(const sc_sim_opts *o, const use *u,
                                uint32_t n_uses, sc_arena *a, crossing **out,
                                uint32_t *n, sc_err *err)
{
    const sc_hw *hw = o->hw;
    bool above;
    uint32_t all = 0, kept = 0;
    for (uint32_t k = 0; k < n_uses; k++)
        all += k == 0 || u[k].link != u[k - 1].link;
    crossing *c = SC_NEW_N(a, crossing, all);
    hw_map map = hw_map_of(hw);
    uint64_t n_links = sc_hw_n_links(hw);
    if (!c) return sc_error_nomem(err);
    all = 0;
    for (uint32_t k = 0; k < n_uses; all++) {
        uint64_t link = u[k].link;
        uint32_t first = k;
        if (link >= n_links)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "traffic %u crosses link %llu, which the machine "
                            "does not have",
                            u[k].traffic, (unsigned long long)link);
        while (k < n_uses && u[k].link == link) k++;
        c[all] = (crossing){.use = u + first, .n = k - first};
        c[all].bw = bw_of(&map, o->link_fraction, link, &above);
        c[all].slows = o->slow_above && above;
        c[all].hash = hash_of(&c[all]);
    }
    if (all) qsort(c, all, sizeof *c, compare_crossings);
    for (uint32_t k = 0; k < all; k++)
        if (c[k].bw > 0 && (kept == 0 || !same_uses(&c[kept - 1], &c[k])))
            c[kept++] = c[k];
    *out = c;
    *n = kept;
    return SC_OK;
}

/* Every traffic's list of links, from the links' lists of traffic. */
static sc_status fill_routes(const crossing *c, uint32_t n, uint32_t n_traffic,
                             sc_arena *a, sim_net *net, sc_err *err)
{
    net->route = SC_NEW_N(a, sim_route, n_traffic);
    if (!net->route) return sc_error_nomem(err);
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t k = 0; k < c[l].n; k++)
            net->route[c[l].use[k].traffic].n++;
    for (uint32_t t = 0; t < n_traffic; t++) {
        sim_route *r = &net->route[t];
        r->link = SC_NEW_N(a, uint32_t, r->n);
        r->share = SC_NEW_N(a, double, r->n);
        r->bw = SC_NEW_N(a, double, r->n);
        r->slows = SC_NEW_N(a, bool, r->n);
        if (!r->link || !r->share || !r->bw || !r->slows)
            return sc_error_nomem(err);
        r->n = 0;
    }
    for (uint32_t l = 0; l < n; l++) {
        uint32_t id = sc_flows_add_link(net->flows, c[l].bw);
        if (id == SC_FLOW_NONE) return sc_error_nomem(err);
        for (uint32_t k = 0; k < c[l].n; k++) {
            sim_route *r = &net->route[c[l].use[k].traffic];
            double pace = c[l].use[k].share / (c[l].bw * PER_PS);
            if (pace > r->pace) r->slowest = c[l].use[k].link;
            if (pace > r->pace) r->pace = pace;
            r->link[r->n] = id;
            r->bw[r->n] = c[l].bw * PER_PS;
            r->slows[r->n] = c[l].slows;
            r->share[r->n++] = c[l].use[k].share;
        }
    }
    return SC_OK;
}

sc_status sim_net_init(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                       sim_net *net, sc_err *err)
{
    use *u = NULL;
    crossing *c = NULL;
    uint32_t n_uses = 0, n = 0;
    *net = (sim_net){.a = a};
    SC_TRY(collect(g, a, &u, &n_uses, err));
    if (n_uses == 0) return SC_OK;
    SC_TRY(find_crossings(o, u, n_uses, a, &c, &n, err));
    SC_TRY(sc_flows_new(a, &net->flows, err));
    return fill_routes(c, n, g->n_traffic, a, net, err);
}

/* ---- ops in flight ------------------------------------------------------- */

static sim_path *path_new(sim_net *net, const sim_route *r)
{
    sim_path *p = SC_NEW(net->a, sim_path);
    if (!p || !(p->link = SC_NEW_N(net->a, uint32_t, (size_t)r->n + 1)) ||
        !(p->share = SC_NEW_N(net->a, double, (size_t)r->n + 1)))
        return NULL;
    memcpy(p->link, r->link, r->n * sizeof *p->link);
    p->link[r->n] = sc_flows_add_link(net->flows, FULL);
    p->share[r->n] = p->own = 1;
    return p->link[r->n] == SC_FLOW_NONE ? NULL : p;
}

void sim_net_rate(sim_net *net, sim_path *p, uint32_t traffic, double rate)
{
    if (rate == p->own) return;
    p->own = rate;
    sc_flows_set_bw(net->flows, p->link[net->route[traffic].n], FULL * rate);
}

/* The part of what a collective's rings would move that its links below the
 * leaves' can carry: no more than that goes above. */
static double carried_part(const sim_route *r, double per_ps)
{
    double part = 1;
    for (uint32_t k = 0; k < r->n; k++)
        if (!r->slows[k] && r->share[k] * per_ps * part > r->bw[k])
            part = r->bw[k] / (r->share[k] * per_ps);
    return part;
}

sim_path *sim_net_post(sim_net *net, const sc_graph *g, sc_op i, double rate,
                       sc_time now)
{
    sim_route *r = &net->route[g->traffic[i]];
    sim_path *p = r->free;
    if (p)
        r->free = p->next;
    else if (!(p = path_new(net, r)))
        return NULL;
    sim_net_rate(net, p, g->traffic[i], rate);
    uint64_t ps = (uint64_t)(g->work[i] - g->latency[i]);
    double per_ps = (double)g->bytes[i] / (double)ps;
    bool exact = g->kind[i] == SC_OP_P2P;
    double most = exact ? 1 : carried_part(r, per_ps);
    for (uint32_t k = 0; k < r->n; k++) {
        double part = r->share[k] * per_ps;
        if (r->slows[k]) part *= most;
        p->share[k] = exact || r->slows[k] || part < r->bw[k] ? part : r->bw[k];
    }
    sc_flow f = {.links = p->link,
                 .share = p->share,
                 .n_links = r->n + 1,
                 .bytes = ps,
                 .weight = 1 / per_ps,
                 .tag = i};
    return sc_flows_post(net->flows, &f, now) == SC_FLOW_NONE ? NULL : p;
}

void sim_net_free(sim_net *net, uint32_t traffic, sim_path *p)
{
    p->next = net->route[traffic].free;
    net->route[traffic].free = p;
}

/* ---- bounds -------------------------------------------------------------- */

/* Times are whole picoseconds, and rates are summed in doubles. */
static bool fits(double ps, sc_time took)
{
    return ps <= (double)took * (1 + 1e-9) + 2;
}

static sc_status beyond(const sc_sim_opts *o, uint64_t link, const char *name,
                        double bytes, sc_time took, sc_err *err)
{
    char text[96];
    sc_hw_link_name(o->hw, link, text, sizeof text);
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "%s: %.0f bytes over link %s in %lld ps, which carries "
                    "%.4g bytes/s",
                    name, bytes, text, (long long)took,
                    sc_hw_link_bw(o->hw, link) *
                        o->link_fraction[sc_hw_link_scope(o->hw, link)]);
}

sc_status sim_net_check(const sim_net *net, const sc_graph *g,
                        const sc_sim_opts *o, const sc_result *r, sc_err *err)
{
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (g->kind[i] != SC_OP_P2P || !sim_net_has(net, g, i)) continue;
        const sim_route *route = &net->route[g->traffic[i]];
        sc_time took = r->end[i] - r->start[i] - g->latency[i];
        if (!fits((double)g->bytes[i] * route->pace, took))
            return beyond(o, route->slowest, g->name[i], (double)g->bytes[i],
                          took, err);
    }
    return SC_OK;
}
