/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads.c - loads of links between ports, if messages queue at ports only.
 *
 * Without inner links (fidelity analytic) a message that passes other ranks of
 * a ring or a mesh ignores everything else that crosses the links there. Two
 * corrections keep results above what these links can carry: in each phase of a
 * collective the ports are slower by the ratio of the loads of the most loaded
 * link and the most loaded port; and a run lasts at least as long as its most
 * loaded link needs for all it carried.
 *
 * Messages along a line are added to a difference array, so that each costs the
 * same over any distance; a prefix sum gives the load of each link.
 */
#include "sim/world.h"

#include <stdlib.h>

struct sim_loads {
    int64_t *diff;  /* [n_links] bytes, as differences along each line */
    int64_t *port;  /* [n_links] bytes of a phase at ports */
    bool *seen;     /* [n_links] line or port is in `list` */
    uint64_t *list; /* [n_links] first links of lines, and ports */
    uint32_t *dim;  /* [n_links] position of the entry in `list` */
    uint64_t n;
    struct sim_loads *phase; /* for measuring one phase */
};

static bool is_line(const sim_dim *d)
{
    return d->kind == SC_DIM_RING || d->kind == SC_DIM_MESH;
}

static struct sim_loads *make(sim_world *w, bool ports)
{
    struct sim_loads *x = SC_NEW(w->a, struct sim_loads);
    if (!x) return NULL;
    x->diff = sc_alloc(w->a, w->n_links, sizeof *x->diff);
    x->seen = sc_alloc(w->a, w->n_links, sizeof *x->seen);
    x->list = sc_alloc(w->a, w->n_links, sizeof *x->list);
    x->dim = sc_alloc(w->a, w->n_links, sizeof *x->dim);
    if (ports) x->port = sc_alloc(w->a, w->n_links, sizeof *x->port);
    bool ok = x->diff && x->seen && x->list && x->dim;
    return ok && (!ports || x->port) ? x : NULL;
}

sc_status sim_loads_init(sim_world *w)
{
    bool any = false;
    for (uint32_t i = 0; i < w->n_dims; i++)
        any = any || (is_line(&w->dim[i]) && w->dim[i].size > 3);
    /* representatives only send to neighbours */
    if (w->o->links || w->machine || !w->served || w->symmetric || !any)
        return SC_OK;
    w->loads = make(w, false);
    if (w->loads) w->loads->phase = make(w, true);
    return w->loads && w->loads->phase ? SC_OK : sc_error_nomem(w->err);
}

static void note(struct sim_loads *x, uint64_t link, uint32_t dim)
{
    if (x->seen[link]) return;
    x->seen[link] = true;
    x->dim[x->n] = dim;
    x->list[x->n++] = link;
}

static void at_port(struct sim_loads *x, uint64_t link, uint32_t dim,
                    int64_t size)
{
    if (!x->port) return;
    x->port[link] += size;
    note(x, link, dim);
}

/* `size` bytes over `hops` links of the line from the rank `at`. */
static void along(struct sim_loads *x, const sim_dim *d, uint32_t dim,
                  uint32_t at, uint32_t hops, bool back, int64_t size)
{
    uint32_t n = d->size, place = sim_coordinate(d, at);
    uint32_t zero = at - place * d->stride;
    /* links of one direction by the place that they leave */
    uint32_t first = back ? (place + 1 + n - hops) % n : place;
    uint64_t base = d->first_link + 2 * (uint64_t)zero + back;
    uint64_t step = 2 * (uint64_t)d->stride;
    note(x, base, dim);
    x->diff[base + first * step] += size;
    if (first + hops > n) x->diff[base] += size;
    if (first + hops != n) x->diff[base + (first + hops) % n * step] -= size;
    if (!x->port) return;
    uint32_t last = back ? first : (place + hops - 1) % n;
    at_port(x, base + place * step, dim, size);
    if (hops > 1) at_port(x, base + last * step, dim, size);
}

static void cross(const sim_world *w, struct sim_loads *x, uint32_t dim,
                  uint32_t at, uint32_t to, int64_t size)
{
    const sim_dim *d = &w->dim[dim];
    uint32_t from = sim_coordinate(d, at), n = d->size;
    if (is_line(d)) {
        uint32_t ahead = (to + n - from) % n;
        bool ring = d->kind == SC_DIM_RING;
        bool back = ring ? n - ahead < ahead : to < from;
        along(x, d, dim, at, back ? n - ahead : ahead, back, size);
    } else if (d->kind == SC_DIM_FULL) {
        uint64_t link = (uint64_t)at * (n - 1) + (to + n - from) % n - 1;
        at_port(x, d->first_link + link, dim, size);
    } else {
        uint32_t end = at + (to - from) * d->stride;
        at_port(x, d->first_link + 2 * (uint64_t)at, dim, size);
        at_port(x, d->first_link + 2 * (uint64_t)end + 1, dim, size);
    }
}

static void add(const sim_world *w, struct sim_loads *x, uint32_t src,
                uint32_t dst, uint64_t size)
{
    uint32_t at = src;
    for (uint32_t i = 0; i < w->n_dims; i++) {
        const sim_dim *d = &w->dim[i];
        uint32_t from = sim_coordinate(d, at), to = sim_coordinate(d, dst);
        if (from == to) continue;
        cross(w, x, i, at, to, (int64_t)size);
        at += (to - from) * d->stride;
    }
}

void sim_loads_count(sim_world *w, const sim_message *m)
{
    if (w->loads) add(w, w->loads, m->src, m->dst, m->size);
}

/* Nanoseconds of the most loaded link of a line. */
static double most_of_line(const struct sim_loads *x, const sim_dim *d,
                           uint64_t base)
{
    int64_t load = 0, most = 0;
    for (uint32_t i = 0; i < d->size; i++) {
        load += x->diff[base + (uint64_t)i * 2 * d->stride];
        if (load > most) most = load;
    }
    return (double)most / d->bytes_per_ns;
}

/* Whether an entry of the list is the beginning of a line. */
static bool begins_line(const sim_dim *d, uint64_t link)
{
    return is_line(d) &&
           sim_coordinate(d, (uint32_t)((link - d->first_link) / 2)) == 0;
}

sc_time sim_loads_most(const sim_world *w, uint32_t *dim)
{
    double most = 0;
    for (uint64_t i = 0; w->loads && i < w->loads->n; i++) {
        const sim_dim *d = &w->dim[w->loads->dim[i]];
        double ns = most_of_line(w->loads, d, w->loads->list[i]);
        if (ns > most) *dim = w->loads->dim[i];
        if (ns > most) most = ns;
    }
    return sim_ns(w, most);
}

/* ---- one phase ----------------------------------------------------------- */

/* The load of the most loaded link relative to the most loaded port; resets all
 * loads to zero. */
static double ratio(const sim_world *w, struct sim_loads *x)
{
    double link = 0, port = 0;
    for (uint64_t i = 0; i < x->n; i++) {
        const sim_dim *d = &w->dim[x->dim[i]];
        double at = (double)x->port[x->list[i]] / d->bytes_per_ns, line = 0;
        if (begins_line(d, x->list[i])) line = most_of_line(x, d, x->list[i]);
        if (at > port) port = at;
        if (line > link) link = line;
    }
    for (uint64_t i = 0; i < x->n; i++) {
        const sim_dim *d = &w->dim[x->dim[i]];
        uint64_t at = x->list[i], step = 2 * (uint64_t)d->stride;
        if (begins_line(d, at))
            for (uint32_t k = 0; k < d->size; k++) x->diff[at + k * step] = 0;
        x->port[at] = 0;
        x->seen[at] = false;
    }
    x->n = 0;
    return link > port && port > 0 ? link / port : 1;
}

/* Adds the messages that members of the phase's line send at once; for
 * halving-doubling those of one distance. */
static double measure(const sim_world *w, const sim_comm *c, const sim_phase *p,
                      uint32_t off)
{
    struct sim_loads *x = w->loads->phase;
    bool all = p->kind == SC_COLL_DIRECT;
    bool pairs = p->kind == SC_COLL_HALVING;
    for (uint32_t a = 0; a < p->n; a++) {
        uint32_t src = sim_comm_rank(w, c, a * p->stride);
        for (uint32_t k = all ? 1 : off; k <= (all ? p->n - 1 : off); k++) {
            uint32_t b = pairs ? a ^ k : (a + k) % p->n;
            if (b < p->n) add(w, x, src, sim_comm_rank(w, c, b * p->stride), 1);
        }
    }
    return ratio(w, x);
}

double sim_loads_factor(sim_world *w, const sim_comm *c, const sim_phase *p,
                        uint32_t from, uint32_t to)
{
    bool pairs = p->kind == SC_COLL_HALVING;
    bool ring = p->kind == SC_COLL_RING, direct = p->kind == SC_COLL_DIRECT;
    if (!w->loads || !p->load || p->n < 3 || (!ring && !direct && !pairs))
        return 1;
    if (pairs && (p->n & (p->n - 1)) != 0) return 1;
    uint32_t off = pairs ? from ^ to : 1, at = 0;
    while (pairs && off >> (at + 1)) at++;
    if (!(p->load[at] > 0)) p->load[at] = measure(w, c, p, off);
    return p->load[at];
}
