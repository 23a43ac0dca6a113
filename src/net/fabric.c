/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.c - keeps the routes of used pairs of devices, and sends messages as
 * flows. */
#include "net/net_fabric.h"

#include <string.h>

#define DRAWS 16 /* routes from which an adaptive choice is made */

/* The routes of a pair (and label, for ECMP). */
typedef struct routes {
    uint32_t src, dst;
    uint64_t label;
    uint32_t n;
    sc_fabric_path *path;
} routes;

struct sc_fabric {
    const sc_hw *hw;
    sc_fabric_opts o;
    sc_arena *a;
    sc_flows *flows;
    sc_map routes;     /* by pair and label */
    sc_map links;      /* link numbers of the flow object, by those of the
                      machine */
    uint64_t *link_of; /* [n_links] the reverse */
    uint64_t *hop;     /* [hop_cap] room for one route */
    uint32_t n_links, link_cap, hop_cap;
};

sc_status sc_fabric_new(const sc_hw *hw, const sc_fabric_opts *opts,
                        sc_arena *a, sc_fabric **out, sc_err *err)
{
    sc_fabric *f = SC_NEW(a, sc_fabric);
    if (f == NULL) return sc_error_nomem(err);
    *f = (sc_fabric){.hw = hw, .o = *opts, .a = a};
    for (int s = 0; s < 2; s++)
        if (f->o.fraction[s] == 0) f->o.fraction[s] = 1;
    SC_TRY(sc_flows_new(a, &f->flows, err));
    f->hop_cap = 16;
    f->hop = SC_NEW_N(a, uint64_t, f->hop_cap);
    if (f->hop == NULL) return sc_error_nomem(err);
    *out = f;
    return SC_OK;
}

sc_flows *sc_fabric_flows(sc_fabric *f)
{
    return f->flows;
}

uint64_t sc_fabric_link(const sc_fabric *f, uint32_t link)
{
    return f->link_of[link];
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t state = a ^ b * 0x9e3779b97f4a7c15u;
    return sc_random(&state);
}

/* ---- links ---- */

/* The link's number in the flow object; SC_FLOW_NONE if out of memory. */
static uint32_t flow_link(sc_fabric *f, uint64_t hw)
{
    uint32_t id = sc_map_get(&f->links, hw);
    if (id != SC_MAP_END) return id;
    uint64_t *of =
        sc_grow(f->a, f->link_of, f->n_links, &f->link_cap, 64, sizeof *of);
    if (of == NULL) return SC_FLOW_NONE;
    f->link_of = of;
    double fraction = f->o.fraction[sc_hw_link_scope(f->hw, hw)];
    id = sc_flows_add_link(f->flows, sc_hw_link_bw(f->hw, hw) * fraction);
    if (id == SC_FLOW_NONE || !sc_map_set(&f->links, f->a, hw, id))
        return SC_FLOW_NONE;
    f->link_of[f->n_links++] = hw;
    return id;
}

/* ---- routes ---- */

/* Finds a route of the machine and stores it in `hop`; its length, or
 * UINT32_MAX. */
static uint32_t draw(sc_fabric *f, const routes *r, uint64_t seed)
{
    for (;;) {
        uint32_t n =
            sc_hw_route(f->hw, r->src, r->dst, seed, f->hop, f->hop_cap);
        if (n <= f->hop_cap) return n;
        f->hop = SC_NEW_N(f->a, uint64_t, n);
        if (f->hop == NULL) return UINT32_MAX;
        f->hop_cap = n;
    }
}

static bool known(const sc_fabric *f, const routes *r, uint32_t n)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const sc_fabric_path *p = &r->path[i];
        uint32_t k = 0;
        if (p->n != n) continue;
        while (k < n && f->link_of[p->links[k]] == f->hop[k]) k++;
        if (k == n) return true;
    }
    return false;
}

/* Translates the route in `hop` to links of the flow object. */
static bool translate(sc_fabric *f, uint32_t n, sc_fabric_path *out)
{
    uint32_t *links = SC_NEW_N(f->a, uint32_t, n);
    double latency = 0;
    if (links == NULL) return false;
    for (uint32_t k = 0; k < n; k++) {
        links[k] = flow_link(f, f->hop[k]);
        if (links[k] == SC_FLOW_NONE) return false;
        latency += sc_hw_link_latency(f->hw, f->hop[k]);
    }
    *out = (sc_fabric_path){links, n, sc_time_from_s(latency)};
    return true;
}

static bool draw_routes(sc_fabric *f, routes *r)
{
    uint32_t draws = f->o.rule == SC_ROUTE_ADAPTIVE ? DRAWS : 1;
    r->path = SC_NEW_N(f->a, sc_fabric_path, draws);
    if (r->path == NULL) return false;
    for (uint32_t k = 0; k < draws; k++) {
        uint32_t n = draw(f, r, mix(mix(f->o.seed, r->label), k));
        if (n == UINT32_MAX) return false;
        if (known(f, r, n)) continue;
        if (!translate(f, n, &r->path[r->n])) return false;
        r->n++;
    }
    return true;
}

static routes *routes_of(sc_fabric *f, const sc_message *m)
{
    routes key = {.src = m->src, .dst = m->dst}, *r;
    if (f->o.rule == SC_ROUTE_ECMP) key.label = m->label;
    uint64_t hash = mix((uint64_t)key.src << 32 | key.dst, key.label + 1);
    uint32_t at = 0;
    while ((r = sc_map_next_ptr(&f->routes, hash, &at)) != NULL)
        if (r->src == key.src && r->dst == key.dst && r->label == key.label)
            return r;
    r = SC_NEW(f->a, routes);
    if (r == NULL || !draw_routes(f, &key) ||
        !sc_map_add_ptr(&f->routes, f->a, hash, r))
        return NULL;
    *r = key;
    return r;
}

/* ---- choice ---- */

typedef struct load {
    double most, sum; /* messages per bytes/s, including this one */
} load;

static load load_of(const sc_fabric *f, const sc_fabric_path *p)
{
    load x = {0, 0};
    for (uint32_t k = 0; k < p->n; k++) {
        double one = (sc_flows_link_load(f->flows, p->links[k]) + 1.0) /
                     sc_flows_link_bw(f->flows, p->links[k]);
        if (one > x.most) x.most = one;
        x.sum += one;
    }
    return x;
}

bool sc_fabric_route(sc_fabric *f, const sc_message *m, sc_fabric_path *out)
{
    if (m->src >= f->hw->n_devices || m->dst >= f->hw->n_devices) return false;
    const routes *r = routes_of(f, m);
    if (r == NULL) return false;
    *out = r->path[0];
    if (r->n == 1) return true;
    load best = load_of(f, out);
    for (uint32_t k = 1; k < r->n; k++) {
        load x = load_of(f, &r->path[k]);
        if (x.most > best.most || (x.most == best.most && x.sum >= best.sum))
            continue;
        best = x;
        *out = r->path[k];
    }
    return true;
}

uint32_t sc_fabric_post(sc_fabric *f, const sc_message *m, sc_time t)
{
    sc_fabric_path p;
    if (!sc_fabric_route(f, m, &p)) return SC_FLOW_NONE;
    sc_flow flow = {.links = p.links,
                    .n_links = p.n,
                    .bytes = m->bytes,
                    .weight = m->weight == 0 ? 1 : m->weight,
                    .latency = p.latency,
                    .tag = m->tag};
    return sc_flows_post(f->flows, &flow, t);
}
