/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_links.c - sets of links that all traffic uses with the same shares.
 * New traffic that does not use all links of a set splits it.
 */
#include "emu/delay_links.h"

#include <stdlib.h>
#include <string.h>

#define PER_PS 1e-12
#define NO_SET UINT32_MAX

/* Traffic that crosses all links of a set, and its share of bytes on them. */
typedef struct user {
    delay_route *route;
    double share;
} user;

typedef struct set {
    uint32_t first, n; /* list of links, connected by `next` */
    uint32_t least;    /* the link with the least rate, which represents the
                          set */
    user *user;        /* [n_users] */
    uint32_t n_users, user_cap;
} set;

typedef struct link {
    uint64_t key;
    double bw;
    uint32_t set, next; /* its set; the next link of the set */
    uint32_t flow;      /* index in the flow solver, or SC_FLOW_NONE */
    bool moves;         /* is being moved to a new set */
} link;

struct delay_links {
    sc_flows *flows;
    double factor;
    sc_arena *a;
    link *link;
    set *set;
    sc_map by_key; /* numbers of links */
    uint32_t n_links, link_cap, n_sets, set_cap;
};

delay_links *delay_links_new(sc_flows *flows, double factor, sc_arena *a)
{
    delay_links *x = SC_NEW(a, delay_links);
    if (x == NULL) return NULL;
    *x = (delay_links){.flows = flows, .factor = factor, .a = a};
    return x;
}

/* ---- links by key */

/* The number of a link; NO_SET when out of memory. */
static uint32_t find_link(delay_links *x, const delay_use *u)
{
    uint32_t i = sc_map_get(&x->by_key, u->key);
    if (i != SC_MAP_END) return i;
    link *l = sc_grow(x->a, x->link, x->n_links, &x->link_cap, 64, sizeof *l);
    if (l == NULL) return NO_SET;
    x->link = l;
    x->link[x->n_links] = (link){.key = u->key,
                                 .bw = u->bw * x->factor,
                                 .set = NO_SET,
                                 .flow = SC_FLOW_NONE};
    if (!sc_map_set(&x->by_key, x->a, u->key, x->n_links)) return NO_SET;
    return x->n_links++;
}

/* ---- routes */

static bool add_hop(delay_links *x, delay_route *r, uint32_t l, double share)
{
    link *k = &x->link[l];
    if (k->flow == SC_FLOW_NONE &&
        (k->flow = sc_flows_add_link(x->flows, k->bw)) == SC_FLOW_NONE)
        return false;
    uint32_t *hop = sc_grow(x->a, r->link, r->n, &r->cap, 4, sizeof *hop);
    double *part =
        sc_grow(x->a, r->share, r->n, &r->shares_cap, 4, sizeof *part);
    double *bw = sc_grow(x->a, r->bw, r->n, &r->bws_cap, 4, sizeof *bw);
    if (hop == NULL || part == NULL || bw == NULL) return false;
    r->link = hop;
    r->share = part;
    r->bw = bw;
    r->link[r->n] = k->flow;
    r->share[r->n] = share;
    r->bw[r->n++] = k->bw * PER_PS;
    return true;
}

static bool add_user(delay_links *x, set *s, user u)
{
    user *all =
        sc_grow(x->a, s->user, s->n_users, &s->user_cap, 2, sizeof *all);
    if (all == NULL) return false;
    s->user = all;
    s->user[s->n_users++] = u;
    return true;
}

/* ---- sets */

static bool less(const delay_links *x, uint32_t a, uint32_t b)
{
    const link *p = &x->link[a], *q = &x->link[b];
    return p->bw != q->bw ? p->bw < q->bw : p->key < q->key;
}

static void put(delay_links *x, uint32_t s, uint32_t l)
{
    set *to = &x->set[s];
    x->link[l].set = s;
    x->link[l].next = to->first;
    to->first = l;
    if (to->n++ == 0 || less(x, l, to->least)) to->least = l;
}

static uint32_t new_set(delay_links *x)
{
    set *s = sc_grow(x->a, x->set, x->n_sets, &x->set_cap, 16, sizeof *s);
    if (s == NULL) return NO_SET;
    x->set = s;
    x->set[x->n_sets] = (set){.first = NO_SET};
    return x->n_sets++;
}

/* Gives the links of set `from` that move a set of their own, with the same
 * users, which then cross the representatives of both sets. */
static uint32_t split(delay_links *x, uint32_t from, bool *longer)
{
    uint32_t to = new_set(x);
    if (to == NO_SET) return to;
    set *old = &x->set[from];
    uint32_t next, l = old->first, least = old->least;
    old->first = NO_SET;
    old->n = 0;
    for (; l != NO_SET; l = next) {
        next = x->link[l].next;
        put(x, x->link[l].moves ? to : from, l);
    }
    /* the old representative still represents the set that it is in */
    uint32_t other = x->link[least].moves ? old->least : x->set[to].least;
    for (uint32_t k = 0; k < old->n_users; k++) {
        if (!add_user(x, &x->set[to], old->user[k]) ||
            !add_hop(x, old->user[k].route, other, old->user[k].share))
            return NO_SET;
        old->user[k].route->version++;
        *longer = true;
    }
    return to;
}

/* ---- traffic */

/* A use of a link whose number is known. */
typedef struct found {
    uint32_t set, link;
    float share; /* rounded, so that sums in another order are equal */
    double exact;
} found;

static int compare_keys(const void *p, const void *q)
{
    const delay_use *a = p, *b = q;
    return (a->key > b->key) - (a->key < b->key);
}

static int compare_found(const void *p, const void *q)
{
    const found *a = p, *b = q;
    if (a->set != b->set) return a->set < b->set ? -1 : 1;
    if (a->share != b->share) return a->share < b->share ? -1 : 1;
    return (a->link > b->link) - (a->link < b->link);
}

/* Adds the route as a user of links f[0..n), which are in one set and have one
 * share. */
static bool use_set(delay_links *x, const found *f, uint32_t n, delay_route *r,
                    bool *longer)
{
    uint32_t s = f->set;
    if (s == NO_SET) {
        if ((s = new_set(x)) == NO_SET) return false;
        for (uint32_t k = 0; k < n; k++) put(x, s, f[k].link);
    } else if (n < x->set[s].n) {
        for (uint32_t k = 0; k < n; k++) x->link[f[k].link].moves = true;
        s = split(x, s, longer);
        for (uint32_t k = 0; k < n; k++) x->link[f[k].link].moves = false;
        if (s == NO_SET) return false;
    }
    return add_user(x, &x->set[s], (user){r, f->exact}) &&
           add_hop(x, r, x->set[s].least, f->exact);
}

static bool add_all(delay_links *x, delay_use *use, uint32_t n, found *f,
                    delay_route *r, bool *longer)
{
    uint32_t kept = 0;
    qsort(use, n, sizeof *use, compare_keys);
    for (uint32_t k = 0; k < n; k++) {
        if (k > 0 && use[k].key == use[k - 1].key) {
            f[kept - 1].exact += use[k].share;
            f[kept - 1].share = (float)f[kept - 1].exact;
            continue;
        }
        uint32_t l = find_link(x, &use[k]);
        if (l == NO_SET) return false;
        f[kept++] = (found){.set = x->link[l].set,
                            .link = l,
                            .share = (float)use[k].share,
                            .exact = use[k].share};
    }
    qsort(f, kept, sizeof *f, compare_found);
    for (uint32_t k = 0, first = 0; k < kept; first = k) {
        while (k < kept && f[k].set == f[first].set &&
               f[k].share == f[first].share)
            k++;
        if (!use_set(x, f + first, k - first, r, longer)) return false;
    }
    return true;
}

delay_route *delay_links_add(delay_links *x, delay_use *use, uint32_t n,
                             bool *longer)
{
    delay_route *r = SC_NEW(x->a, delay_route);
    sc_arena scratch;
    sc_arena_init(&scratch, 0);
    found *f = SC_NEW_N(&scratch, found, n);
    *longer = false;
    bool ok =
        r != NULL && f != NULL && (n == 0 || add_all(x, use, n, f, r, longer));
    sc_arena_free(&scratch);
    return ok ? r : NULL;
}
