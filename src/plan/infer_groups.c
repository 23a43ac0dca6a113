/* SPDX-License-Identifier: Apache-2.0 */
/* infer_groups.c - finds the communicators of exchanges, with their ranks and
 * prices, each once. */
#include "plan/infer_groups.h"

#include "plan/internal.h"

#include <math.h>
#include <string.h>

/* Flag of keys of groups across pipeline devices; others are bits of axes. */
#define ACROSS (1u << 31)

/* Prices that were computed before. */
struct asked_price {
    struct asked_price *next;
    double bytes;
    infer_exchange_price price;
};

uint32_t infer_groups_size(const inference *f, uint32_t axes)
{
    uint32_t n = 1;
    for (uint32_t ax = 0; ax < f->mesh.n_axes; ax++)
        if (axes >> ax & 1) n *= f->mesh.size[ax];
    return n;
}

/* Rank of the i-th coordinate along the axes in `mask`, outermost first. */
static uint32_t offset(const inference *f, uint32_t mask, uint32_t i)
{
    uint32_t sum = 0;
    for (uint32_t ax = f->mesh.n_axes; ax-- > 0;) {
        if (!(mask >> ax & 1)) continue;
        sum += i % f->mesh.size[ax] * f->stride[ax];
        i /= f->mesh.size[ax];
    }
    return sum;
}

static uint32_t other_axes(const inference *f, uint32_t axes)
{
    uint32_t all = (1u << f->mesh.n_axes) - 1;
    if (f->pp >= 0) all &= ~(1u << f->pp);
    return all & ~axes;
}

static sc_place place_of(const inference *f, uint32_t axes)
{
    uint32_t size[SC_MESH_AXES], stride[SC_MESH_AXES], n = 0;
    for (uint32_t i = 0; i < f->mesh.n_axes; i++) {
        uint32_t ax = f->mesh.inner_first[i];
        if (!(axes >> ax & 1) || f->mesh.size[ax] <= 1) continue;
        size[n] = f->mesh.size[ax];
        stride[n++] = f->stride[ax];
    }
    return sc_hw_place(f->job->hw, n, size, stride);
}

static struct infer_groups *add_groups(inference *f, uint32_t device,
                                       uint32_t axes, uint32_t n, uint32_t size,
                                       const uint32_t *rank)
{
    struct infer_groups *g = SC_NEW(f->a, struct infer_groups);
    if (!g || !rank) return NULL;
    *g = (struct infer_groups){.next = *f->groups,
                               .device = device,
                               .axes = axes,
                               .n = n,
                               .size = size,
                               .rank = rank};
    *f->groups = g;
    return g;
}

static bool same_place(const sc_place *a, const sc_place *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Equal places have equal prices, unless their rings are searched. */
static struct infer_groups *with_prices(inference *f, struct infer_groups *g)
{
    if (!g) return NULL;
    for (const struct infer_groups *o = g->next; o; o = o->next)
        if (!f->rules->ring_simple && same_place(&o->place, &g->place)) {
            g->price = o->price;
            return g;
        }
    g->price = SC_NEW_N(f->a, struct asked_price *, SC_N_COLLS);
    return g->price ? g : NULL;
}

struct infer_groups *infer_groups_of(inference *f, uint32_t device,
                                     uint32_t axes)
{
    for (struct infer_groups *g = *f->groups; g; g = g->next)
        if (g->device == device && g->axes == axes) return g;
    uint32_t others = other_axes(f, axes), size = infer_groups_size(f, axes);
    uint32_t n = infer_groups_size(f, others);
    uint32_t base = f->pp < 0 ? 0 : device * f->stride[f->pp];
    uint32_t *rank = SC_NEW_N(f->a, uint32_t, (size_t)n * size);
    for (uint32_t i = 0; rank && i < n; i++)
        for (uint32_t k = 0; k < size; k++)
            rank[i * size + k] =
                base + offset(f, others, i) + offset(f, axes, k);
    struct infer_groups *g = add_groups(f, device, axes, n, size, rank);
    if (g) g->place = place_of(f, axes);
    return with_prices(f, g);
}

/* Ranks of several pipeline devices with the same other coordinates. */
struct infer_groups *infer_groups_across(inference *f, const uint32_t *device,
                                         uint32_t n)
{
    uint32_t key = 0;
    for (uint32_t i = 0; i < n; i++) key = key * 4099 + device[i] + 1;
    key |= ACROSS;
    for (struct infer_groups *g = *f->groups; g; g = g->next) {
        bool same = g->axes == key && g->size == n;
        for (uint32_t i = 0; same && i < n; i++)
            same = g->rank[i] == device[i] * f->stride[f->pp];
        if (same) return g;
    }
    uint32_t others = other_axes(f, 0), count = infer_groups_size(f, others);
    uint32_t *rank = SC_NEW_N(f->a, uint32_t, (size_t)count * n);
    for (uint32_t i = 0; rank && i < count; i++)
        for (uint32_t k = 0; k < n; k++)
            rank[i * n + k] =
                device[k] * f->stride[f->pp] + offset(f, others, i);
    struct infer_groups *g = add_groups(f, device[0], key, count, n, rank);
    if (g)
        g->place = sc_hw_place_axis(f->job->hw, f->mesh.size[f->pp],
                                    f->stride[f->pp], n, device);
    return with_prices(f, g);
}

/* Communicators over the ranks of all pipeline devices. */
struct infer_groups *infer_groups_all(inference *f)
{
    uint32_t *device = SC_NEW_N(f->a, uint32_t, f->devices);
    for (uint32_t i = 0; device && i < f->devices; i++) device[i] = i;
    return device ? infer_groups_across(f, device, f->devices) : NULL;
}

/* Price with the library's choice, or always with a ring and the Simple
 * protocol. */
static sc_status price_of(inference *f, struct infer_groups *g, sc_coll coll,
                          double bytes, infer_exchange_price *out)
{
    sc_coll_price p;
    sc_ring_price r;
    if (!f->rules->ring_simple) {
        SC_TRY(sc_cost_coll_kept(f->job->kept, f->job->cost, f->job->hw, coll,
                                 bytes, &g->place, &p, f->err));
        *out = (infer_exchange_price){.seconds = p.seconds,
                                      .link_s = {p.link_s[0], p.link_s[1]},
                                      .channels = p.channels};
        return SC_OK;
    }
    if (!g->searched)
        SC_TRY(sc_cost_ring_group(f->job->hw, g->rank, g->size, f->a, &g->ring,
                                  f->err));
    g->searched = true;
    /* Its all-to-all sends to one rank at a time. */
    if (coll == SC_ALL_TO_ALL) bytes /= g->size;
    SC_TRY(sc_cost_ring_simple(&g->ring, coll, bytes, &r, f->err));
    *out = (infer_exchange_price){.seconds = r.seconds};
    return SC_OK;
}

static sc_status known_price(inference *f, struct infer_groups *g, sc_coll coll,
                             double bytes, infer_exchange_price *out)
{
    for (const struct asked_price *p = g->price[coll]; p; p = p->next)
        if (p->bytes == bytes) {
            *out = p->price;
            return SC_OK;
        }
    struct asked_price *new = SC_NEW(f->a, struct asked_price);
    if (!new) return sc_error_nomem(f->err);
    SC_TRY(price_of(f, g, coll, bytes, out));
    *new = (struct asked_price){g->price[coll], bytes, *out};
    g->price[coll] = new;
    return SC_OK;
}

/* Seconds that the program adds to an exchange between nodes. */
static double waited(const inference *f, const struct infer_groups *g,
                     sc_coll coll)
{
    const sc_software *sw = f->job->sw;
    if (g->place.nodes < 2) return 0;
    bool pair = coll == SC_SENDRECV && g->axes & ACROSS;
    uint32_t tp = f->tp >= 0 ? f->mesh.size[f->tp] : 1;
    if (!pair) return 0;
    return plan_transfer_wait(sw, f->job->cost, f->job->hw, tp, &g->place);
}

/* In each step of a point-to-point ring a rank passes on one part. */
sc_status infer_groups_price(inference *f, struct infer_groups *g, sc_coll coll,
                             bool ring, double bytes, infer_exchange_price *out)
{
    double steps = ring ? g->size - 1.0 : 1;
    infer_exchange_price least; /* of a few bytes */
    if (ring) {
        coll = SC_SENDRECV;
        bytes /= g->size;
    }
    SC_TRY(known_price(f, g, coll, 8, &least));
    SC_TRY(known_price(f, g, coll, bytes, out));
    double bound = fmax(out->link_s[0], out->link_s[1]);
    out->latency = steps * plan_latency(least.seconds, out->seconds, bound);
    out->seconds *= steps;
    for (int s = 0; s < 2; s++) out->link_s[s] *= steps;
    double wait = waited(f, g, coll);
    out->seconds += wait;
    out->latency += wait;
    return SC_OK;
}
