/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow_solve.c - weighted max-min fair rates after a change.
 *
 * Picture all levels rising together from 0 until links fill.  Below the level
 * of a flow that went, and below the level that a flow that came will get, the
 * picture is as it was.  So nothing below `cut` changes, and of what lies
 * above only what is reached from the changed links through flows that lie
 * above, too.  Those flows are opened, and filling goes on from `cut`.
 */
#include "net/flow.h"

/* Equal levels, computed on two ways, differ by rounding: what is this near
 * to the cut is rated again. */
#define NEAR 1e-9

/* Parts of a duration that are taken for rounding. */
#define NOISE 0x1p-45

/* A flow that came will be limited no lower than where all flows of one of its
 * links share it evenly. */
static double find_cut(const sc_flows *x)
{
    double cut = x->cut;
    for (uint32_t k = 0; k < x->n_seeds; k++) {
        const net_link *l = &x->link[x->seed[k]];
        if (!l->grew) continue;
        double total = 0;
        for (uint32_t i = 0; i < l->n; i++)
            if (x->share[l->flow[i]].level != FLOW_GONE)
                total += x->share[l->flow[i]].weight;
        double even = l->bw / total;
        if (!(even >= cut)) cut = even;
    }
    return cut > 0 && !x->whole ? cut * (1 - NEAR) : 0;
}

static void see(sc_flows *x, uint32_t l)
{
    if (x->link[l].seen) return;
    x->link[l].seen = true;
    if (x->link[l].n > 0) x->unseen--;
    x->full[x->n_full++].link = l;
}

/* Opens the flows of a link that lie above the cut, forgets those that are
 * gone, and finds what is left for the open ones. */
static void open_link(sc_flows *x, net_link *l, double cut)
{
    uint32_t *flow = l->flow, kept = 0, open = 0;
    double left = l->bw, weight = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = flow[k];
        net_share *s = &x->share[i];
        double level = s->level;
        if (level >= cut) {
            x->open[x->n_open++] = (net_open){level, i};
            s->level = level = FLOW_OPEN;
        }
        if (level == FLOW_OPEN) {
            weight += s->weight;
            open++;
        } else if (level == FLOW_GONE) {
            continue;
        } else {
            left -= level * s->weight;
        }
        flow[kept++] = i;
    }
    if (l->n > 0 && kept == 0) x->live--;
    l->n = kept;
    l->left = left > 0 ? left : 0;
    l->weight = weight;
    l->open = open;
}

/* Everything that can notice; the links of `full` grow meanwhile. */
static void open_all(sc_flows *x, double cut)
{
    uint32_t next = 0, at = 0;
    x->n_open = x->n_full = 0;
    x->unseen = x->live;
    for (uint32_t k = 0; k < x->n_seeds; k++) {
        x->link[x->seed[k]].seed = x->link[x->seed[k]].grew = false;
        see(x, x->seed[k]);
    }
    for (; at < x->n_full; at++) {
        open_link(x, &x->link[x->full[at].link], cut);
        for (; next < x->n_open && x->unseen > 0; next++) {
            const net_path *p = &x->path[x->open[next].flow];
            for (uint32_t k = 0; k < p->n; k++) see(x, p->link[k]);
        }
    }
}

/* ---- the heap of links ---- */

static void sift(net_full *h, uint32_t n, uint32_t i)
{
    net_full moved = h[i];
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= n) break;
        if (c + 1 < n && h[c + 1].level < h[c].level) c++;
        if (!(h[c].level < moved.level)) break;
        h[i] = h[c];
        i = c;
    }
    h[i] = moved;
}

static double filled_at(const net_link *l)
{
    double level = l->left / l->weight;
    return level > 0 ? level : 0;
}

static void make_heap(sc_flows *x)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->n_full; k++) {
        net_link *l = &x->link[x->full[k].link];
        l->seen = false;
        if (l->open == 0) continue;
        x->full[n++] = (net_full){filled_at(l), x->full[k].link};
    }
    x->n_full = n;
    for (uint32_t i = n / 2; i-- > 0;) sift(x->full, n, i);
}

/* ---- filling ---- */

static void limit_flows(sc_flows *x, const net_link *l, double level)
{
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = l->flow[k];
        net_share *s = &x->share[i];
        if (s->level != FLOW_OPEN) continue;
        const net_path *p = &x->path[i];
        double weight = s->weight, rate = level * weight;
        s->level = level;
        for (uint32_t j = 0; j < p->n; j++) {
            net_link *m = &x->link[p->link[j]];
            m->left -= rate;
            m->weight -= weight;
            m->open--;
        }
    }
}

static void fill(sc_flows *x, double level)
{
    net_full *h = x->full;
    uint32_t n = x->n_full;
    while (n > 0) {
        net_link *l = &x->link[h[0].link];
        if (l->open > 0) {
            double now = filled_at(l);
            if (now > h[0].level) {
                h[0].level = now;
                sift(h, n, 0);
                if (x->link + h[0].link != l) continue;
            }
            if (now > level) level = now;
            limit_flows(x, l, level);
        }
        h[0] = h[--n];
        sift(h, n, 0);
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
        net_open o = x->open[k];
        const net_share *s = &x->share[o.flow];
        if (s->level == o.before) continue;
        net_left *l = &x->left[o.flow];
        if (o.before != FLOW_NEW)
            l->bytes -= o.before * s->weight * (double)(x->now - l->since);
        l->since = x->now;
        due_set(&x->due, o.flow,
                end_of(x->now, l->bytes, s->level * s->weight));
    }
    x->rated += x->n_open;
}

void flow_solve(sc_flows *x)
{
    double cut = find_cut(x);
    if (x->whole)
        for (uint32_t l = 0; l < x->n_links; l++)
            if (!x->link[l].seed) x->seed[x->n_seeds++] = l;
    open_all(x, cut);
    make_heap(x);
    fill(x, cut);
    rate_flows(x);
    x->n_seeds = 0;
    x->cut = FLOW_NEW;
}
