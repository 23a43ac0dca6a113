/* SPDX-License-Identifier: Apache-2.0 */
/* use.c - the bytes of each link, with names for reports. */
#include "sim/world.h"

#include <stdio.h>

uint64_t sim_links_per_rank(sc_dim_kind kind, uint32_t size)
{
    return kind == SC_DIM_FULL ? size - 1 : 2;
}

/* ---- names --------------------------------------------------------------- */

typedef struct place {
    uint32_t dim, stride, rank, which; /* of the links of the rank */
} place;

static place place_of(const sc_network *net, uint64_t link)
{
    place p = {.stride = 1};
    for (;; p.dim++) {
        const sc_net_dim *d = &net->dim[p.dim];
        uint64_t each = sim_links_per_rank(d->kind, d->size);
        uint64_t all = each * net->n_ranks;
        if (link < all || p.dim + 1 == net->n_dims) {
            p.rank = (uint32_t)(link / each);
            p.which = (uint32_t)(link % each);
            return p;
        }
        link -= all;
        p.stride *= d->size;
    }
}

uint32_t sc_simulate_link_dim(const sc_network *net, uint64_t link)
{
    return place_of(net, link).dim;
}

uint64_t sc_simulate_dim_links(const sc_network *net, uint32_t dim)
{
    const sc_net_dim *d = &net->dim[dim];
    uint64_t each = sim_links_per_rank(d->kind, d->size);
    uint64_t open = d->kind == SC_DIM_MESH ? 2 * net->n_ranks / d->size : 0;
    return each * net->n_ranks - open;
}

void sc_simulate_link_name(const sc_network *net, uint64_t link, char *buf,
                           size_t size)
{
    place p = place_of(net, link);
    const sc_net_dim *d = &net->dim[p.dim];
    if (d->kind == SC_DIM_SWITCH) {
        snprintf(buf, size, "dim%u %s %u", p.dim, p.which ? "down" : "up",
                 p.rank);
        return;
    }
    uint32_t from = p.rank / p.stride % d->size;
    uint32_t step = d->kind == SC_DIM_FULL ? p.which + 1
                    : p.which              ? d->size - 1
                                           : 1;
    uint32_t to = (from + step) % d->size;
    snprintf(buf, size, "dim%u %u->%u", p.dim, p.rank,
             p.rank + (to - from) * p.stride);
}

/* ---- counters ------------------------------------------------------------ */

/* The links of a represented rank carry what those of its representative do. */
static const sim_link *link_of(const sim_world *w, const sim_dim *d,
                               uint32_t rank, uint64_t which)
{
    if (w->symmetric && rank < w->w->n_ranks) rank = w->rank[w->index[rank]].id;
    uint64_t each = sim_links_per_rank(d->kind, d->size);
    return &w->link[d->first_link + rank * each + which];
}

/* Counts links in use, and writes them to `out` unless it is NULL. */
static uint64_t used(const sim_world *w, sc_link_use *out)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < w->n_dims; i++) {
        const sim_dim *d = &w->dim[i];
        uint64_t each = sim_links_per_rank(d->kind, d->size);
        for (uint32_t r = 0; r < w->n_npus; r++)
            for (uint64_t k = 0; k < each; k++) {
                const sim_link *l = link_of(w, d, r, k);
                if (l->bytes == 0 && l->busy == 0) continue;
                if (out)
                    out[n] = (sc_link_use){d->first_link + r * each + k,
                                           l->bytes, l->busy};
                n++;
            }
    }
    return n;
}

sc_status sim_links_use(sim_world *w, sc_simulate_result *out)
{
    if (w->machine) return sim_machine_use(w, out);
    if (!w->o->links) return SC_OK;
    out->n_links = used(w, NULL);
    out->link = SC_NEW_N(w->a, sc_link_use, out->n_links);
    if (!out->link) return sc_error_nomem(w->err);
    (void)used(w, out->link);
    return SC_OK;
}
