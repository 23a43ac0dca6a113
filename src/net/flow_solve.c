/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow_solve.c - weighted max-min fair rates after a change.
 *
 * Progressive filling: all levels rise together from 0 until links are full.
 * Below the level of a flow that ended, and below the level that a new flow will
 * get, nothing changes.  So filling starts at that level, `cut`.
 *
 * Above it, only some links change.  A link is opened when a flow on it starts,
 * ends or gets another level than before; its flows above the present level are
 * then open.  A link that is not opened is full at the level where it was, so an
 * open flow that it limited stops there.  If an open flow rises above its old
 * level, or stops below it, its other links are opened as well.
 *
 * Tracking this costs more than it saves if nearly everything changes.  After a
 * quarter of all flows, everything reachable is opened at once, also in the next
 * solves.  Opening more than needed does not change the result.
 */
#include "base/assert.h"
#include "base/heap.h"
#include "net/flow.h"

#include <string.h>

/* Equal levels that are computed in two ways differ by rounding, so everything
 * this close to the present level is opened as well. */
#define NEAR 1e-9

/* Levels that are closer than this are equal. */
#define SAME 1e-12

/* If opening everything at once was better, so many further solves do it
 * too. */
#define AT_ONCE 16

/* Fraction of a duration that counts as rounding error. */
#define NOISE 0x1p-45

/* Capacity that the k-th flow of a link takes per unit of level. */
static inline double weight_of(const net_link *l, uint32_t k, double weight)
{
    return l->share == NULL ? weight : weight * l->share[k];
}

/* A new flow gets at least the level at which all flows of one of its links share
 * it evenly. */
static double find_cut(const sc_flows *x)
{
    double cut = x->cut;
    for (uint32_t k = 0; k < x->n_seeds; k++) {
        const net_link *l = &x->link[x->seed[k]];
        if (!l->grew) continue;
        double total = 0;
        for (uint32_t i = 0; i < l->n; i++)
            if (x->share[l->flow[i]].level != FLOW_GONE)
                total += weight_of(l, i, x->share[l->flow[i]].weight);
        double even = l->bw / total;
        if (!(even >= cut)) cut = even;
    }
    return cut > 0 && !x->solve_all ? cut * (1 - NEAR) : 0;
}

/* ---- heaps ---- */

static bool is_lower(const void *none, net_step x, net_step y)
{
    (void)none;
    return x.level < y.level;
}

SC_HEAP(steps, net_step, void, is_lower)

static void push(net_heap *h, double level, uint32_t id)
{
    steps_push(NULL, h->at, h->n++, (net_step){level, id});
}

static void pop(net_heap *h)
{
    (void)steps_pop(NULL, h->at, h->n--);
}

/* ---- opening ---- */

/* Opens the flows of a link that lie above a level, removes those that have
 * ended, and computes the bandwidth that is left for the open ones. */
static void open_flows(sc_flows *x, net_link *l, double from)
{
    uint32_t *flow = l->flow, kept = 0, open = 0;
    double left = l->bw, weight = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = flow[k];
        net_share *s = &x->share[i];
        double level = s->level;
        if (level >= from && x->solve[i] != x->n_solves) {
            x->solve[i] = x->n_solves;
            x->before[i] = level;
            x->open[x->n_open++] = i;
            s->level = level = FLOW_OPEN;
        }
        if (level == FLOW_OPEN) {
            weight += weight_of(l, k, s->weight);
            open++;
        } else if (level == FLOW_GONE) {
            continue;
        } else {
            left -= level * weight_of(l, k, s->weight);
        }
        if (l->share != NULL) l->share[kept] = l->share[k];
        flow[kept++] = i;
    }
    l->n = kept;
    l->left = left > 0 ? left : 0;
    l->weight = weight;
    l->open = open;
}

static double filled_at(const net_link *l)
{
    double level = l->left / l->weight;
    return level > 0 ? level : 0;
}

/* Watches flows opened since `first`: a link that is not open may limit them at
 * their old level. */
static void watch(sc_flows *x, uint32_t first)
{
    for (uint32_t k = first; k < x->n_open; k++) {
        uint32_t i = x->open[k];
        const net_path *p = &x->path[i];
        for (uint32_t j = 0; j < p->n; j++) {
            if (x->link[p->link[j]].opened) continue;
            push(&x->flows, x->before[i], i);
            break;
        }
    }
}

static void open_link(sc_flows *x, uint32_t id, double level)
{
    net_link *l = &x->link[id];
    l->opened = true;
    x->opened[x->n_opened++] = id;
    open_flows(x, l, level * (1 - NEAR));
    l->was = l->fill;
    if (l->open > 0 || l->n == 0) l->fill = FLOW_NEW;
}

/* Opens the links of a flow whose level differs from before. */
static void open_path(sc_flows *x, const net_path *p, double level)
{
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t id = p->link[k], first = x->n_open;
        const net_link *l = &x->link[id];
        if (l->opened) continue;
        open_link(x, id, level);
        watch(x, first);
        if (l->open > 0) push(&x->links, filled_at(l), id);
    }
}

/* Opens all that is reachable from open flows, so that none has to be tracked. */
static void open_rest(sc_flows *x, double level)
{
    for (uint32_t at = 0; at < x->n_open; at++) {
        const net_path *p = &x->path[x->open[at]];
        if (x->share[x->open[at]].level != FLOW_OPEN) continue;
        for (uint32_t k = 0; k < p->n; k++) {
            uint32_t id = p->link[k];
            const net_link *l = &x->link[id];
            if (l->opened) continue;
            open_link(x, id, level);
            if (l->open > 0) push(&x->links, filled_at(l), id);
        }
    }
    x->flows.n = 0;
}

static bool is_most(const sc_flows *x)
{
    return x->n_open > x->n_moving / 4;
}

static void open_seeds(sc_flows *x, double cut)
{
    x->n_open = x->n_opened = x->links.n = x->flows.n = 0;
    if (++x->n_solves == 0) { /* 2^32 solves */
        memset(x->solve, 0, x->cap * sizeof *x->solve);
        x->n_solves = 1;
    }
    for (uint32_t k = 0; k < x->n_seeds; k++) {
        open_link(x, x->seed[k], cut);
        x->link[x->seed[k]].seed = x->link[x->seed[k]].grew = false;
    }
    for (uint32_t k = 0; k < x->n_seeds; k++) {
        const net_link *l = &x->link[x->seed[k]];
        if (l->open == 0) continue;
        x->links.at[x->links.n++] = (net_step){filled_at(l), x->seed[k]};
    }
    steps_build(NULL, x->links.at, x->links.n);
    if (x->at_once > 0)
        open_rest(x, cut);
    else
        watch(x, 0);
}

/* ---- filling ---- */

static void stop_at(sc_flows *x, uint32_t flow, double level)
{
    net_share *s = &x->share[flow];
    const net_path *p = &x->path[flow];
    s->level = level;
    for (uint32_t k = 0; k < p->n; k++) {
        net_link *m = &x->link[p->link[k]];
        double weight = p->share == NULL ? s->weight : s->weight * p->share[k];
        m->left -= level * weight;
        m->weight -= weight;
        m->open--;
    }
}

/* Handles a link that is full, unless it becomes full at a later level than the
 * heap has. */
static void fill_link(sc_flows *x, double *level)
{
    net_step *first = &x->links.at[0];
    net_link *l = &x->link[first->id];
    if (l->open > 0) {
        double now = filled_at(l);
        if (now > first->level) {
            steps_sink(NULL, first, x->links.n, 0, (net_step){now, first->id});
            return;
        }
        if (now > *level) *level = now;
        double diff = *level - l->was;
        bool same = diff <= SAME * *level && -diff <= SAME * *level;
        l->fill = same ? l->was : *level;
    }
    pop(&x->links);
    for (uint32_t k = 0; l->open > 0 && k < l->n; k++) {
        uint32_t i = l->flow[k];
        if (x->share[i].level != FLOW_OPEN) continue;
        stop_at(x, i, l->fill);
        if (x->before[i] != l->fill) open_path(x, &x->path[i], *level);
    }
}

/* Handles a flow that reaches its old level. */
static void reach_level(sc_flows *x, double *level)
{
    uint32_t i = x->flows.at[0].id;
    const net_path *p = &x->path[i];
    pop(&x->flows);
    if (x->share[i].level != FLOW_OPEN) return;
    if (x->before[i] > *level) *level = x->before[i];
    for (uint32_t k = 0; k < p->n; k++) {
        const net_link *l = &x->link[p->link[k]];
        if (l->opened || l->fill > x->before[i] * (1 + SAME)) continue;
        stop_at(x, i, x->before[i]);
        return;
    }
    open_path(x, p, *level);
}

static void fill(sc_flows *x, double level)
{
    while (x->links.n > 0 || x->flows.n > 0) {
        if (x->flows.n > 0 && is_most(x)) {
            open_rest(x, level);
            x->at_once = AT_ONCE + 1;
        }
        bool link = x->flows.n == 0 ||
                    (x->links.n > 0 &&
                     x->links.at[0].level <= x->flows.at[0].level * (1 + SAME));
        if (link)
            fill_link(x, &level);
        else
            reach_level(x, &level);
    }
}

/* ---- when flows end at their new rates ---- */

static sc_time end_of(sc_time now, double bytes, double rate)
{
    if (bytes <= 0) return now;
    double ps = bytes / rate * (1 - NOISE);
    if (!(ps < 9e18)) return SC_TIME_MAX;
    sc_time whole = (sc_time)ps;
    whole += (double)whole < ps;
    return whole < SC_TIME_MAX - now ? now + whole : SC_TIME_MAX;
}

static void rate_flows(sc_flows *x)
{
    for (uint32_t k = 0; k < x->n_open; k++) {
        uint32_t i = x->open[k];
        const net_share *s = &x->share[i];
        double before = x->before[i];
        if (s->level == before) continue;
        net_left *l = &x->left[i];
        if (before != FLOW_NEW)
            l->bytes -= before * s->weight * (double)(x->now - l->since);
        l->since = x->now;
        due_set(&x->due, i, end_of(x->now, l->bytes, s->level * s->weight));
    }
    x->rated += x->n_open;
}

/* If no flow is left on a link, removes those that have ended. */
static void clear_seeds(sc_flows *x)
{
    for (uint32_t k = 0; k < x->n_seeds; k++) {
        net_link *l = &x->link[x->seed[k]];
        l->n = 0;
        l->fill = FLOW_NEW;
        l->seed = l->grew = false;
    }
    x->n_seeds = x->at_once = 0;
    x->cut = FLOW_NEW;
}

/* Whether the links of the last solve are within their capacities. */
bool flow_fits(const sc_flows *x)
{
    for (uint32_t k = 0; k < x->n_opened; k++) {
        const net_link *l = &x->link[x->opened[k]];
        double sum = 0;
        for (uint32_t i = 0; i < l->n; i++) {
            const net_share *s = &x->share[l->flow[i]];
            if (s->level != FLOW_GONE)
                sum += s->level * weight_of(l, i, s->weight);
        }
        if (!(sum <= l->bw * (1 + 1e-6))) return false;
    }
    return true;
}

void flow_solve(sc_flows *x)
{
    if (x->n_moving == 0) {
        clear_seeds(x);
        return;
    }
    double cut = find_cut(x);
    if (x->solve_all)
        for (uint32_t l = 0; l < x->n_links; l++)
            if (!x->link[l].seed) x->seed[x->n_seeds++] = l;
    open_seeds(x, cut);
    fill(x, cut);
    if (x->at_once > 0) x->at_once = is_most(x) ? x->at_once - 1 : 0;
    rate_flows(x);
    sc_assert(flow_fits(x));
    for (uint32_t k = 0; k < x->n_opened; k++)
        x->link[x->opened[k]].opened = false;
    x->n_seeds = 0;
    x->cut = FLOW_NEW;
}
