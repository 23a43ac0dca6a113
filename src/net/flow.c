/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - starts and ends flows, and advances the clock. */
#include "net/flow.h"

#include <string.h>

#define PER_PS 1e-12 /* bytes/s in bytes/ps */

/* ---- room ---- */

static void *copy(sc_arena *a, const void *from, uint32_t n, uint32_t cap,
                  size_t size)
{
    void *to = sc_alloc(a, cap, size);
    if (to != NULL && n > 0) memcpy(to, from, n * size);
    return to;
}

static bool grow_flows(sc_flows *x, uint32_t cap)
{
    net_share *share = copy(x->a, x->share, x->used, cap, sizeof *share);
    net_left *left = copy(x->a, x->left, x->used, cap, sizeof *left);
    net_path *path = copy(x->a, x->path, x->used, cap, sizeof *path);
    uint64_t *tag = copy(x->a, x->tag, x->used, cap, sizeof *tag);
    uint32_t *gone = copy(x->a, x->gone, x->n_gone, cap, sizeof *gone);
    uint32_t *solve = copy(x->a, x->solve, x->used, cap, sizeof *solve);
    uint32_t *open = SC_NEW_N(x->a, uint32_t, cap);
    double *before = SC_NEW_N(x->a, double, cap);
    net_step *step = SC_NEW_N(x->a, net_step, cap);
    sc_flow_end *end = SC_NEW_N(x->a, sc_flow_end, cap);
    uint32_t *found = SC_NEW_N(x->a, uint32_t, (size_t)cap + DUE_FAN);
    if (share == NULL || left == NULL || path == NULL || tag == NULL ||
        gone == NULL || solve == NULL || open == NULL || before == NULL ||
        step == NULL || end == NULL || found == NULL ||
        !due_grow(&x->due, cap, x->a))
        return false;
    x->share = share;
    x->left = left;
    x->path = path;
    x->tag = tag;
    x->gone = gone;
    x->solve = solve;
    x->open = open;
    x->before = before;
    x->flows.at = step;
    x->end = end; /* `end` is new memory, because a caller may read the last
                     ends */
    x->found = found;
    x->cap = cap;
    return true;
}

static bool grow_links(sc_flows *x, uint32_t cap)
{
    net_link *link = copy(x->a, x->link, x->n_links, cap, sizeof *link);
    uint32_t *seed = copy(x->a, x->seed, x->n_seeds, cap, sizeof *seed);
    uint32_t *opened = SC_NEW_N(x->a, uint32_t, cap);
    net_step *step = SC_NEW_N(x->a, net_step, cap);
    if (link == NULL || seed == NULL || opened == NULL || step == NULL)
        return false;
    x->link = link;
    x->seed = seed;
    x->opened = opened;
    x->links.at = step;
    x->link_cap = cap;
    return true;
}

sc_status sc_flows_new(sc_arena *a, sc_flows **out, sc_err *err)
{
    sc_flows *x = SC_NEW(a, sc_flows);
    if (x == NULL) return sc_error_nomem(err);
    x->a = a;
    x->free = SC_FLOW_NONE;
    x->cut = FLOW_NEW;
    if (!grow_flows(x, 64) || !grow_links(x, 64)) return sc_error_nomem(err);
    *out = x;
    return SC_OK;
}

sc_status sc_flows_reserve(sc_flows *x, uint32_t flows, sc_err *err)
{
    if (flows <= x->cap) return SC_OK;
    if (flows > (1u << 31) || !grow_flows(x, flows)) return sc_error_nomem(err);
    return SC_OK;
}

uint32_t sc_flows_add_link(sc_flows *x, double bw)
{
    if (!(bw >= 0 && bw <= 1e300)) return SC_FLOW_NONE;
    if (x->n_links == x->link_cap &&
        (x->n_links >= 1u << 30 || !grow_links(x, 2 * x->link_cap)))
        return SC_FLOW_NONE;
    x->link[x->n_links] = (net_link){.bw = bw * PER_PS, .fill = FLOW_NEW};
    return x->n_links++;
}

static uint32_t take_slot(sc_flows *x)
{
    uint32_t i = x->free;
    if (i != SC_FLOW_NONE) {
        x->free = (uint32_t)x->tag[i];
        return i;
    }
    if (x->used == x->cap && (x->cap > 1u << 30 || !grow_flows(x, 2 * x->cap)))
        return SC_FLOW_NONE;
    return x->used++;
}

static void free_slot(sc_flows *x, uint32_t i)
{
    x->path[i].state = NET_FREE;
    x->tag[i] = x->free;
    x->free = i;
}

/* ---- starts and ends ---- */

static void seed(sc_flows *x, uint32_t l)
{
    if (x->link[l].seed) return;
    x->link[l].seed = true;
    x->seed[x->n_seeds++] = l;
}

/* Only links crossed by a flow with shares have a list of shares. */
static bool enter(sc_flows *x, net_link *l, uint32_t flow, const double *share)
{
    uint32_t had = l->cap;
    uint32_t *flows = sc_grow(x->a, l->flow, l->n, &l->cap, 4, sizeof *flows);
    if (flows == NULL) return false;
    l->flow = flows;
    if (share != NULL && l->share == NULL) {
        l->share = SC_NEW_N(x->a, double, l->cap);
        for (uint32_t k = 0; l->share != NULL && k < l->n; k++) l->share[k] = 1;
    } else if (l->share != NULL && had < l->cap) {
        l->share = copy(x->a, l->share, l->n, l->cap, sizeof *l->share);
    }
    if (share != NULL && l->share == NULL) return false;
    if (l->share != NULL) l->share[l->n] = share != NULL ? *share : 1;
    l->flow[l->n++] = flow;
    return true;
}

static void start(sc_flows *x, uint32_t i, sc_time t)
{
    net_path *p = &x->path[i];
    p->state = NET_MOVES;
    x->n_moving++;
    x->share[i].level = FLOW_NEW;
    x->left[i].since = t;
    due_set(&x->due, i, SC_TIME_MAX);
    for (uint32_t k = 0; k < p->n; k++) {
        net_link *l = &x->link[p->link[k]];
        if (!enter(x, l, i, p->share == NULL ? NULL : &p->share[k])) {
            x->failed = true;
            return;
        }
        l->grew = true;
        seed(x, p->link[k]);
    }
}

/* The slot becomes free after the next solve, when no link lists it any
 * more. */
static void stop(sc_flows *x, uint32_t i)
{
    const net_path *p = &x->path[i];
    bool moves = p->state == NET_MOVES;
    for (uint32_t k = 0; k < p->n; k++) {
        net_link *l = &x->link[p->link[k]];
        l->posted--;
        if (!moves) continue;
        seed(x, p->link[k]);
    }
    due_set(&x->due, i, SC_TIME_MAX);
    if (!moves) {
        free_slot(x, i);
        return;
    }
    x->n_moving--;
    if (x->share[i].level < x->cut) x->cut = x->share[i].level;
    x->share[i].level = FLOW_GONE;
    x->gone[x->n_gone++] = i;
}

static bool valid(const sc_flows *x, const sc_flow *f, sc_time t)
{
    if (t < x->now || f->latency < 0 || f->latency > SC_TIME_MAX - 1 - t)
        return false;
    if (!(f->weight > 0 && f->weight <= 1e100) || x->failed) return false;
    for (uint32_t k = 0; k < f->n_links; k++)
        if (f->links[k] >= x->n_links ||
            (f->share != NULL && !(f->share[k] > 0 && f->share[k] <= 1e100)))
            return false;
    return true;
}

uint32_t sc_flows_post(sc_flows *x, const sc_flow *f, sc_time t)
{
    if (!valid(x, f, t)) return SC_FLOW_NONE;
    uint32_t i = take_slot(x);
    if (i == SC_FLOW_NONE) return i;
    bool empty = f->n_links == 0 || f->bytes == 0;
    sc_time from = t + f->latency;
    x->share[i] = (net_share){FLOW_NEW, f->weight};
    x->left[i] = (net_left){(double)f->bytes, from};
    x->path[i] = (net_path){f->links, f->share, f->n_links,
                            empty ? NET_EMPTY : NET_WAITS};
    x->tag[i] = f->tag;
    for (uint32_t k = 0; k < f->n_links; k++) x->link[f->links[k]].posted++;
    if (empty || from > x->now)
        due_set(&x->due, i, from);
    else
        start(x, i, from);
    return i;
}

void sc_flows_cancel(sc_flows *x, uint32_t i)
{
    stop(x, i);
}

void sc_flows_set_bw(sc_flows *x, uint32_t l, double bw)
{
    x->link[l].bw = bw * PER_PS;
    x->cut = 0;
    seed(x, l);
}

/* ---- the clock ---- */

static void settle(sc_flows *x)
{
    if (x->n_seeds > 0) flow_solve(x);
    while (x->n_gone > 0) free_slot(x, x->gone[--x->n_gone]);
}

sc_time sc_flows_next(sc_flows *x)
{
    settle(x);
    return due_resolve(&x->due);
}

static void finish(sc_flows *x, uint32_t i)
{
    x->end[x->n_ends++] = (sc_flow_end){x->tag[i], x->now, i};
    stop(x, i);
}

uint32_t sc_flows_advance(sc_flows *x, sc_time t, const sc_flow_end **ends)
{
    x->n_ends = 0;
    for (;;) {
        sc_time due = sc_flows_next(x);
        if (due > t || due == SC_TIME_MAX || x->failed) break;
        sc_assert(due >= x->now);
        x->now = due;
        uint32_t n = due_find(&x->due, due, x->found);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t i = x->found[k];
            if (x->path[i].state == NET_WAITS)
                start(x, i, due);
            else
                finish(x, i);
        }
        /* New rates are computed after the caller has posted the flows that
         * follow at t. */
        if (due == t) break;
    }
    if (t > x->now) x->now = t;
    *ends = x->end;
    return x->failed ? SC_FLOW_NONE : x->n_ends;
}

/* ---- queries ---- */

double sc_flows_rate(sc_flows *x, uint32_t i)
{
    settle(x);
    if (x->path[i].state != NET_MOVES) return 0;
    return x->share[i].level * x->share[i].weight / PER_PS;
}

double sc_flows_left(sc_flows *x, uint32_t i)
{
    double rate = sc_flows_rate(x, i) * PER_PS;
    double left = x->left[i].bytes - rate * (double)(x->now - x->left[i].since);
    return left > 0 ? left : 0;
}

double sc_flows_link_rate(sc_flows *x, uint32_t l)
{
    double sum = 0;
    settle(x);
    const net_link *at = &x->link[l];
    for (uint32_t k = 0; k < at->n; k++)
        sum += sc_flows_rate(x, at->flow[k]) *
               (at->share == NULL ? 1 : at->share[k]);
    return sum;
}

uint32_t sc_flows_link_load(const sc_flows *x, uint32_t l)
{
    return x->link[l].posted;
}

double sc_flows_link_bw(const sc_flows *x, uint32_t l)
{
    return x->link[l].bw / PER_PS;
}

uint64_t sc_flows_rated(const sc_flows *x)
{
    return x->rated;
}
