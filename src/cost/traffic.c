/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic.c - the load of links by a collective, in bytes per byte of V.
 *
 * Members are sorted by node. If a group spans nodes, there are as many rings
 * as its smallest node has members. Each ring enters and leaves every node
 * once, through another member (each NCCL ring uses one NIC). Per ring edge an
 * all-reduce moves 2 (n - 1) / n of V, an all-gather or reduce-scatter (n - 1)
 * / n, and a broadcast or reduce all of V on all edges but one. If NCCL
 * searches the rings of a node (cube meshes, nodes given as a file), the search
 * gives one ring per channel. On a torus or mesh, members exchange data along
 * one side after the other.
 *
 * A route costs constant time, so the total time is linear in the ranks, and in
 * the pairs of an all-to-all of up to PAIRS members. In a larger all-to-all,
 * that many distances between members represent all, and fewer beyond 16384
 * members.
 */
#include "base/nodes.h"
#include "coll/coll_schedule.h"
#include "coll/coll_search.h"
#include "cost/cost_traffic.h"
#include "cost/node_channels.h"
#include "cost/traffic_alike.h"
#include "hw/hw_link.h"

#include <stdlib.h>
#include <string.h>

#define RANK_LINKS  8u         /* initial room for links per rank ... */
#define FIRST_LINKS (1u << 20) /* ... and its limit */
#define PAIRS       64u        /* distances considered in an all-to-all */
#define FLOWS       (1u << 20) /* most flows of an all-to-all */
#define LEAST_PAIRS 8u
#define KEPT_ALL    128u /* most links that are kept; others are represented */

typedef struct load {
    uint64_t link;
    double share; /* > 0; 0: unused entry */
} load;

/* Rings that the search finds among some devices of a node. */
typedef struct found {
    struct found *next;
    const uint32_t *dev; /* [n] */
    uint32_t n, channels;
    bool network;
    const uint32_t *order; /* [channels * n] dev; NULL: none found */
} found;

typedef struct loads {
    const sc_hw *hw;
    hw_map map;
    found *found;
    sc_arena *a;    /* memory while loads are summed */
    load *table;    /* [size] by link where `direct`, else [n] */
    sc_map by_link; /* numbers in the table, unless `direct` */
    bool direct;
    bool all;  /* keeps links that are alike */
    bool even; /* loads the first link of a bundle for all of them */
    uint64_t *hop;
    uint64_t seed;
    uint32_t n, size, hop_cap;
} loads;

/* The load of a link; NULL if out of memory. */
static load *load_of(loads *x, uint64_t link)
{
    if (x->direct) return &x->table[link];
    uint32_t i = sc_map_get(&x->by_link, link);
    if (i != SC_MAP_END) return &x->table[i];
    load *table = sc_grow(x->a, x->table, x->n, &x->size, 64, sizeof *table);
    if (table == NULL || !sc_map_set(&x->by_link, x->a, link, x->n))
        return NULL;
    x->table = table;
    return &table[x->n];
}

static bool add_load(loads *x, uint64_t link, double share)
{
    load *l = load_of(x, link);
    if (l == NULL) return false;
    x->n += !(l->share > 0);
    l->link = link;
    l->share += share;
    return true;
}

/* Adds `share` bytes from one rank to another. */
static bool add_flow(loads *x, uint32_t src, uint32_t dst, double share)
{
    if (src == dst || !(share > 0)) return true;
    uint32_t n;
    while ((n = hw_route(&x->map, src, dst, x->seed, x->hop, x->hop_cap)) >
           x->hop_cap) {
        if (!(x->hop = SC_NEW_N(x->a, uint64_t, n))) return false;
        x->hop_cap = n;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint64_t link = x->hop[k];
        if (x->even) link = hw_link_bundle(&x->map, link).first;
        if (!add_load(x, link, share)) return false;
    }
    return true;
}

/* ---- one group */

typedef struct group {
    sc_coll_schedule schedule; /* one phase: a ring, a chain or all pairs */
    sc_nodes node;
    uint32_t *rank; /* [n] by node */
    uint32_t n;
} group;

/* ---- along the sides of a torus or mesh */

/* Coordinates of members along one side. */
typedef struct side {
    uint32_t stride, size;
    uint32_t *index; /* [size] index of a coordinate among those of members */
    uint32_t n, gap; /* number of these; smallest distance between two of
                        them */
} side;

static side side_of(const loads *x, const uint32_t *rank, uint32_t n,
                    uint32_t stride, uint32_t size)
{
    side s = {stride, size, SC_NEW_N(x->a, uint32_t, size), 0, size};
    uint32_t before = 0;
    if (s.index == NULL) return s;
    for (uint32_t i = 0; i < n; i++) s.index[rank[i] / stride % size] = 1;
    for (uint32_t c = 0; c < size; c++) {
        if (s.index[c] == 0) continue;
        if (s.n > 0 && c - before < s.gap) s.gap = c - before;
        before = c;
        s.index[c] = s.n++;
    }
    return s;
}

/* Sides inside a node, those whose members are nearest first. */
static uint32_t sides_of(const loads *x, const uint32_t *rank, uint32_t n,
                         side *out)
{
    uint32_t sides = 0, stride = 1;
    for (uint32_t d = 0; d < x->hw->n_dims; d++) {
        const sc_dim *dim = &x->hw->dim[d];
        if (dim->ports > 0) break;
        if (dim->kind != SC_DIM_RING && dim->kind != SC_DIM_MESH) return 0;
        side s = side_of(x, rank, n, stride, dim->size);
        uint32_t at = sides++;
        for (; at > 0 && out[at - 1].gap > s.gap; at--) out[at] = out[at - 1];
        out[at] = s;
        stride *= dim->size;
    }
    return sides;
}

/* ---- rings */

/* Bytes per byte of V on each edge of all rings together. */
static double edge_fraction(const group *g)
{
    const sc_coll_phase *p = &g->schedule.phase[0];
    return p->pattern == SC_COLL_RING ? (double)p->steps / p->part : 1;
}

/* Members that fill a box of a torus or mesh. */
typedef struct box {
    side side[SC_HW_DIMS];
    uint32_t sides, near; /* number of sides; of these the first `near` have the
                             least gap */
    uint32_t *rank;       /* [n] the index on the first side varies fastest */
    uint32_t n;
} box;

static uint32_t place_in(const box *b, uint32_t rank)
{
    uint32_t at = 0;
    for (uint32_t d = b->sides; d-- > 0;) {
        const side *s = &b->side[d];
        at = at * s->n + s->index[rank / s->stride % s->size];
    }
    return at;
}

/* Finds the box of a node's members. */
static bool find_box(const loads *x, const group *g, uint32_t node, box *b,
                     bool *is)
{
    const uint32_t *rank = g->rank + g->node.first[node];
    uint32_t n = 1;
    *is = false;
    *b = (box){.n = g->node.first[node + 1] - g->node.first[node]};
    if (edge_fraction(g) == 1) return true; /* it has a root */
    b->sides = sides_of(x, rank, b->n, b->side);
    for (uint32_t d = 0; d < b->sides; d++) {
        if (b->side[d].index == NULL) return false;
        n *= b->side[d].n;
        b->near += b->side[d].gap == b->side[0].gap;
    }
    if (b->sides < 2 || n != b->n) return true;
    b->rank = SC_NEW_N(x->a, uint32_t, n);
    if (b->rank == NULL) return false;
    for (uint32_t i = 0; i < n; i++) b->rank[place_in(b, rank[i])] = rank[i];
    *is = true;
    return true;
}

/* Adds traffic in both directions along side `d`, `share` per member in
 * total. */
static bool add_side(loads *x, const box *b, uint32_t d, double share)
{
    uint32_t step = 1, n = b->side[d].n;
    for (uint32_t k = 0; k < d; k++) step *= b->side[k].n;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t at = i / step % n, first = i - at * step;
        uint32_t on = first + (at + 1) % n * step;
        if (!add_flow(x, b->rank[i], b->rank[on], share / 2) ||
            !add_flow(x, b->rank[on], b->rank[i], share / 2))
            return false;
    }
    return true;
}

/* Adds one side after the other, like TPUs: distant members first exchange
 * their own parts, then near members exchange all that they have gathered.  A
 * scatter has the reverse order. */
static bool add_box(loads *x, const group *g, const box *b)
{
    double passes = g->schedule.coll == SC_ALL_REDUCE ? 2 : 1;
    for (uint32_t turn = 0; turn < b->near; turn++) {
        double held = 1.0 / b->n;
        for (uint32_t k = b->sides; k-- > 0;) {
            uint32_t d = k < b->near ? (k + turn) % b->near : k;
            held *= b->side[d].n;
            double share = passes * held / b->near * (1 - 1.0 / b->side[d].n);
            if (!add_side(x, b, d, share)) return false;
        }
    }
    return true;
}

/* Whether the chain of a broadcast ends, or that of a reduction starts, on this
 * edge instead of closing the ring. */
static bool is_cut(const group *g, bool from_root, bool to_root)
{
    const sc_coll_phase *p = &g->schedule.phase[0];
    if (p->pattern != SC_COLL_CHAIN) return false;
    return sc_coll_to_root(p) ? from_root : to_root;
}

/* If the search finds no ring, members form one in their order. */
static void search_rings(loads *x, found *f, uint32_t nodes)
{
    sc_channels g;
    const sc_hw *hw = x->hw;
    if (cost_node_channels(hw, (sc_nccl)hw->nccl, f->dev, f->n, nodes, x->a, &g,
                           NULL))
        return;
    f->order = g.ring.order;
    f->channels = g.ring.n_channels;
}

static found *rings_of(loads *x, const group *g, uint32_t node)
{
    uint32_t n = g->node.first[node + 1] - g->node.first[node];
    uint32_t *dev = SC_NEW_N(x->a, uint32_t, n);
    bool network = g->node.n > 1;
    if (dev == NULL) return NULL;
    for (uint32_t i = 0; i < n; i++)
        dev[i] = g->rank[g->node.first[node] + i] % x->hw->node_size;
    for (found *f = x->found; f != NULL; f = f->next)
        if (f->n == n && f->network == network &&
            memcmp(f->dev, dev, n * sizeof *dev) == 0)
            return f;
    found *f = SC_NEW(x->a, found);
    if (f == NULL) return NULL;
    *f = (found){.next = x->found, .dev = dev, .n = n, .network = network};
    x->found = f;
    search_rings(x, f, g->node.n);
    return f;
}

/* Adds the searched rings of one node and the edges to the next node. */
static bool add_found(loads *x, const group *g, uint32_t node, const found *f,
                      const found *next)
{
    uint32_t size = x->hw->node_size, to = node + 1 < g->node.n ? node + 1 : 0;
    uint32_t base = g->rank[g->node.first[node]] / size * size;
    uint32_t there = g->rank[g->node.first[to]] / size * size;
    double share = edge_fraction(g) / f->channels;
    for (uint32_t c = 0; c < f->channels; c++) {
        const uint32_t *o = f->order + (size_t)c * f->n;
        uint32_t last = o[f->n - 1];
        const uint32_t *in =
            next->order + (size_t)(c % next->channels) * next->n;
        uint32_t root = g->rank[0] % size;
        for (uint32_t i = 0; i + 1 < f->n; i++) {
            bool cut =
                g->node.n == 1 && is_cut(g, o[i] == root, o[i + 1] == root);
            if (!cut && !add_flow(x, base + o[i], base + o[i + 1], share))
                return false;
        }
        bool cut = g->node.n == 1 ? is_cut(g, last == root, in[0] == root)
                                  : is_cut(g, node == 0, to == 0);
        if (!cut && !add_flow(x, base + last, there + in[0], share))
            return false;
    }
    return true;
}

static bool add_wired_rings(loads *x, const group *g, bool *done)
{
    *done = false;
    for (uint32_t k = 0; k < g->node.n; k++) {
        const found *f = rings_of(x, g, k);
        if (f == NULL) return false;
        if (f->order == NULL) return true;
    }
    for (uint32_t k = 0; k < g->node.n; k++) {
        const found *f = rings_of(x, g, k);
        const found *next = rings_of(x, g, k + 1 < g->node.n ? k + 1 : 0);
        if (f == NULL || next == NULL || !add_found(x, g, k, f, next))
            return false;
    }
    *done = true;
    return true;
}

/* Neighbours on a torus or mesh share links: rings in both directions have half
 * of the bytes each. */
static bool in_torus(const sc_hw *hw)
{
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        const sc_dim *d = &hw->dim[i];
        bool ring = d->kind == SC_DIM_RING || d->kind == SC_DIM_MESH;
        if (d->ports == 0 && ring && d->size > 2) return true;
    }
    return false;
}

static bool add_edge(loads *x, uint32_t from, uint32_t to, double share)
{
    if (!in_torus(x->hw)) return add_flow(x, from, to, share);
    return add_flow(x, from, to, share / 2) && add_flow(x, to, from, share / 2);
}

/* Position of a device on a path that follows the rows of a torus or mesh back
 * and forth, so that every step reaches a neighbour. */
static uint64_t on_the_way(const sc_hw *hw, uint32_t rank)
{
    uint32_t left = rank % hw->node_size, inner = hw->node_size;
    uint64_t place = 0;
    for (uint32_t i = hw->n_dims; i-- > 0;) {
        uint32_t size = hw->dim[i].size;
        if (hw->dim[i].ports != 0) continue;
        inner /= size;
        uint32_t at = left / inner;
        left %= inner;
        place = place * size + (place % 2 ? size - 1 - at : at);
    }
    return place;
}

static void order_on_torus(const sc_hw *hw, group *g)
{
    bool rooted = g->schedule.phase[0].pattern == SC_COLL_CHAIN;
    if (rooted || !in_torus(hw)) return;
    for (uint32_t k = 0; k < g->node.n; k++)
        for (uint32_t i = g->node.first[k] + 1; i < g->node.first[k + 1]; i++) {
            uint32_t r = g->rank[i], j = i;
            uint64_t place = on_the_way(hw, r);
            for (;
                 j > g->node.first[k] && on_the_way(hw, g->rank[j - 1]) > place;
                 j--)
                g->rank[j] = g->rank[j - 1];
            g->rank[j] = r;
        }
}

static bool add_rings(loads *x, group *g)
{
    bool done = false;
    if (sc_coll_wired(x->hw) && !add_wired_rings(x, g, &done)) return false;
    if (done) return true;
    double all = edge_fraction(g), rings = (double)g->node.least;
    order_on_torus(x->hw, g);
    for (uint32_t k = 0; k < g->node.n; k++) {
        uint32_t next = k + 1 < g->node.n ? k + 1 : 0;
        const uint32_t *here = g->rank + g->node.first[k];
        const uint32_t *there = g->rank + g->node.first[next];
        uint32_t n = g->node.first[k + 1] - g->node.first[k];
        uint32_t m = g->node.first[next + 1] - g->node.first[next];
        bool one = g->node.n == 1;
        /* each ring omits one edge between the members of a node */
        double inside = one ? all : all * (1 - 1 / (double)n);
        box b;
        bool is;
        if (!find_box(x, g, k, &b, &is) || (is && !add_box(x, g, &b)))
            return false;
        for (uint32_t i = 0; i < n && n > 1 && !is; i++) {
            uint32_t j = i + 1 < n ? i + 1 : 0;
            if (one && is_cut(g, i == 0, j == 0)) continue;
            if (!add_edge(x, here[i], here[j], inside)) return false;
        }
        if (one || is_cut(g, k == 0, next == 0)) continue;
        for (uint32_t r = 0; r < g->node.least; r++)
            if (!add_flow(x, here[r * n / g->node.least],
                          there[r * m / g->node.least], all / rings))
                return false;
    }
    return true;
}

static bool add_pairs(loads *x, const group *g)
{
    uint32_t n = g->n, steps = n - 1 < PAIRS ? n - 1 : PAIRS;
    if ((uint64_t)steps * n > FLOWS)
        steps = FLOWS / n > LEAST_PAIRS ? FLOWS / n : LEAST_PAIRS;
    double share = (double)(n - 1) / n / steps;
    for (uint32_t s = 0; s < steps; s++) {
        uint64_t distance = 1 + (uint64_t)s * (n - 1) / steps;
        for (uint32_t i = 0; i < n; i++)
            if (!add_flow(x, g->rank[i], g->rank[(i + distance) % n], share))
                return false;
    }
    return true;
}

static bool add_group(loads *x, group *g, const uint32_t *rank)
{
    if (g->schedule.coll == SC_ALL_TO_ALL) return add_pairs(x, g);
    if (g->schedule.coll != SC_SENDRECV) return add_rings(x, g);
    if (g->n == 2) return add_flow(x, rank[0], rank[1], 1);
    for (uint32_t i = 0; i < g->n; i++)
        if (!add_flow(x, rank[i], rank[i + 1 < g->n ? i + 1 : 0], 1))
            return false;
    return true;
}

/* ---- the result */

static int compare_links(const void *p, const void *q)
{
    const cost_link *a = p, *b = q;
    return (a->link > b->link) - (a->link < b->link);
}

/* Divides the load of each bundle by its links. */
static bool spread_bundles(loads *x)
{
    uint32_t n = x->direct ? x->size : x->n;
    for (uint32_t i = 0; i < n && x->even; i++) {
        const load l = x->table[i];
        if (!(l.share > 0)) continue;
        hw_bundle b = hw_link_bundle(&x->map, l.link);
        if (b.n < 2 || b.first != l.link) continue;
        x->table[i].share = l.share / (double)b.n;
        for (uint64_t k = 1; k < b.n; k++)
            if (!add_load(x, b.first + 2 * k, l.share / (double)b.n))
                return false;
    }
    return true;
}

static sc_status write_links(const loads *x, sc_arena *a, sc_traffic *out,
                             sc_err *err)
{
    cost_link *all = SC_NEW_N(x->a, cost_link, x->n);
    uint32_t n = 0;
    if (all == NULL) return sc_error_nomem(err);
    for (uint32_t i = 0; i < (x->direct ? x->size : x->n); i++) {
        const load *l = &x->table[i];
        if (!(l->share > 0)) continue;
        all[n] = (cost_link){.link = l->link, .share = l->share};
        cost_describe_link(&x->map, &all[n++]);
    }
    if (n > KEPT_ALL && !x->all) all = cost_thin_out(x->a, all, &n);
    if (all == NULL) return sc_error_nomem(err);
    qsort(all, n, sizeof *all, compare_links);
    uint64_t *link = SC_NEW_N(a, uint64_t, n);
    double *share = SC_NEW_N(a, double, n);
    if (link == NULL || share == NULL) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        link[i] = all[i].link;
        share[i] = all[i].share;
    }
    *out = (sc_traffic){n, link, share};
    return SC_OK;
}

static sc_status sum_groups(loads *x, group *g, const sc_traffic_groups *of,
                            sc_err *err)
{
    uint64_t ranks = (uint64_t)of->n * g->n;
    x->size = 64;
    while (x->size < RANK_LINKS * ranks && x->size < FIRST_LINKS) x->size *= 2;
    x->direct = sc_hw_n_links(x->hw) <= 2 * (uint64_t)x->size;
    if (x->direct) x->size = (uint32_t)sc_hw_n_links(x->hw);
    x->hop_cap = 16;
    x->table = SC_NEW_N(x->a, load, x->size);
    x->hop = SC_NEW_N(x->a, uint64_t, x->hop_cap);
    g->rank = SC_NEW_N(x->a, uint32_t, g->n);
    if (!x->table || !x->hop || !g->rank ||
        !sc_nodes_init(&g->node, x->a, g->n, x->hw->n_nodes))
        return sc_error_nomem(err);
    for (uint32_t k = 0; k < of->n; k++) {
        const uint32_t *members = of->rank + (size_t)k * g->n;
        sc_nodes_sort(&g->node, members, g->n, x->hw->node_size);
        for (uint32_t i = 0; i < g->n; i++)
            g->rank[i] = members[g->node.order[i]];
        if (!add_group(x, g, members)) return sc_error_nomem(err);
    }
    return SC_OK;
}

static sc_status traffic_of(loads *x, sc_coll coll, const sc_traffic_groups *of,
                            sc_arena *a, sc_traffic *out, sc_err *err)
{
    for (size_t i = 0; i < (size_t)of->n * of->size; i++)
        if (of->rank[i] >= x->hw->n_devices)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "rank %u is not on a machine of %u devices",
                            of->rank[i], x->hw->n_devices);
    sc_traffic none = {0};
    if (of->size < 2 || of->n == 0) {
        *out = none;
        return SC_OK;
    }
    sc_arena scratch;
    sc_arena_init(&scratch, 0);
    x->map = hw_map_of(x->hw);
    x->a = &scratch;
    sc_coll_group all = {.n = of->size};
    group g = {.n = of->size};
    if (!sc_coll_schedule_ring(coll, all, 1, &g.schedule))
        (void)sc_coll_schedule_direct(coll, all, &g.schedule);
    sc_status s = sum_groups(x, &g, of, err);
    if (s == SC_OK && !spread_bundles(x)) s = sc_error_nomem(err);
    if (s == SC_OK) s = write_links(x, a, out, err);
    sc_arena_free(&scratch);
    return s;
}

sc_status sc_traffic_of(const sc_hw *hw, sc_coll coll,
                        const sc_traffic_groups *of, uint64_t seed, sc_arena *a,
                        sc_traffic *out, sc_err *err)
{
    loads x = {.hw = hw, .seed = seed};
    return traffic_of(&x, coll, of, a, out, err);
}

sc_status sc_traffic_all(const sc_hw *hw, sc_coll coll,
                         const sc_traffic_groups *of, uint64_t seed, bool even,
                         sc_arena *a, sc_traffic *out, sc_err *err)
{
    loads x = {.hw = hw, .seed = seed, .all = true, .even = even};
    return traffic_of(&x, coll, of, a, out, err);
}
