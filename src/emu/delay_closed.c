/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_closed.c - operations whose duration alone is known, on links that
 * they share.
 *
 * An operation is its latency and then work: a flow of which a byte is a
 * picosecond of the work alone.  A link of its own lets it go on no faster
 * than alone; of the others it takes, per picosecond, what it moves there.
 * Flows have weights such that those that one link limits move their bytes at
 * the same rate.  (The same as sim/exec_net.c does for a step that is known
 * beforehand; here operations appear as they come.)
 */
#include "emu/delay_closed.h"

#include <math.h>

#define FULL 1e12 /* bytes/s of an own link: one per picosecond */

static sc_status read_file(const emu_delay *d, delay_file *out, sc_err *err)
{
    char *text = NULL;
    size_t len = 0;
    const char *name = d->c->delay_file;
    SC_TRY(sc_file_read(name, SC_DOC_MAX_BYTES, d->a, &text, &len, err));
    if (d->c->delay == SC_EMU_DELAY_TABLE)
        return delay_table_read(text, len, name, d->a, out, err);
    return delay_alpha_beta_read(text, len, name, d->a, out, err);
}

sc_status delay_closed_new(emu_delay *d, sc_err *err)
{
    delay_closed *x = SC_NEW(d->a, delay_closed);
    /* what comes by a port takes longer by itself where there is less */
    double factor = d->what.bandwidth;
    if (x == NULL) return sc_error_nomem(err);
    if (d->c->delay != SC_EMU_DELAY_ANALYTIC) {
        factor = 1;
        x->file = SC_NEW(d->a, delay_file);
        if (x->file == NULL) return sc_error_nomem(err);
        SC_TRY(read_file(d, x->file, err));
    }
    SC_TRY(sc_flows_new(d->a, &x->flows, err));
    x->pair_size = 16;
    x->pair = SC_NEW_N(d->a, closed_kind *, x->pair_size);
    x->links = delay_links_new(x->flows, factor, d->a);
    if (x->pair == NULL || x->links == NULL) return sc_error_nomem(err);
    d->closed = x;
    return SC_OK;
}

/* ---- flights --------------------------------------------------------------- */

/* All lists have room for all flights. */
static closed_flight *new_flight(delay_closed *x, sc_arena *a)
{
    uint32_t n = x->n_flights;
    closed_flight *f = SC_NEW(a, closed_flight);
    closed_flight **all =
        sc_grow(a, x->flight, n, &x->flight_cap, 16, sizeof f);
    uint32_t *moving =
        sc_grow(a, x->moving, n, &x->moving_cap, 16, sizeof *moving);
    uint32_t *unused = sc_grow(a, x->free, n, &x->free_cap, 16, sizeof *unused);
    if (f == NULL || all == NULL || moving == NULL || unused == NULL)
        return NULL;
    x->flight = all;
    x->moving = moving;
    x->free = unused;
    f->id = n;
    f->room = 4;
    f->link = SC_NEW_N(a, uint32_t, f->room);
    f->share = SC_NEW_N(a, double, f->room);
    if (f->link == NULL || f->share == NULL) return NULL;
    f->link[0] = sc_flows_add_link(x->flows, FULL);
    f->share[0] = 1;
    if (f->link[0] == SC_FLOW_NONE) return NULL;
    x->flight[x->n_flights++] = f;
    return f;
}

static closed_flight *take_flight(delay_closed *x, sc_arena *a)
{
    closed_flight *f =
        x->n_free > 0 ? x->flight[x->free[--x->n_free]] : new_flight(x, a);
    if (f == NULL) return NULL;
    f->at = x->n_moving;
    x->moving[x->n_moving++] = f->id;
    return f;
}

static void give_back(delay_closed *x, closed_flight *f)
{
    uint32_t last = x->moving[--x->n_moving];
    x->moving[f->at] = last;
    x->flight[last]->at = f->at;
    x->free[x->n_free++] = f->id;
}

/* Room for `n` links. */
static bool make_room(closed_flight *f, uint32_t n, sc_arena *a)
{
    if (n <= f->room) return true;
    uint32_t own = f->link[0], room = 2 * f->room > n ? 2 * f->room : n;
    uint32_t *link = SC_NEW_N(a, uint32_t, room);
    double *share = SC_NEW_N(a, double, room);
    if (link == NULL || share == NULL) return false;
    f->link = link;
    f->share = share;
    f->room = room;
    f->link[0] = own;
    f->share[0] = 1;
    return true;
}

/* Sends what is left of a flight. */
static bool send(delay_closed *x, closed_flight *f, sc_time t, sc_arena *a)
{
    const delay_route *r = f->kind->route;
    if (!make_room(f, r->n + 1, a)) return false;
    for (uint32_t k = 0; k < r->n; k++) {
        double part = r->share[k] * f->per_ps;
        f->link[k + 1] = r->link[k];
        f->share[k + 1] = part < r->bw[k] ? part : r->bw[k];
    }
    f->version = r->version;
    sc_flow flow = {.links = f->link,
                    .share = f->share,
                    .n_links = r->n + 1,
                    .bytes = f->work,
                    .weight = f->weight,
                    .latency = f->starts > t ? f->starts - t : 0,
                    .tag = f->id};
    f->flow = sc_flows_post(x->flows, &flow, t);
    return f->flow != SC_FLOW_NONE;
}

/* Flights over a route that has become longer go on over all of it. */
static bool reroute(delay_closed *x, sc_arena *a)
{
    for (uint32_t k = 0; k < x->n_moving; k++) {
        closed_flight *f = x->flight[x->moving[k]];
        if (f->version == f->kind->route->version) continue;
        double left = sc_flows_left(x->flows, f->flow);
        sc_flows_cancel(x->flows, f->flow);
        f->work = (uint64_t)ceil(left - 1e-3); /* but for rounding */
        if (!send(x, f, x->now, a)) return false;
    }
    return true;
}

sc_status delay_closed_post(emu_delay *d, const emu_flight *op, sc_time t,
                            sc_time credit, sc_err *err)
{
    delay_closed *x = d->closed;
    closed_kind *k = NULL;
    const closed_price *p = NULL;
    bool longer;
    SC_TRY(closed_kind_of(d, op, &k, &longer, err));
    if (longer && !reroute(x, d->a)) return sc_error_nomem(err);
    SC_TRY(closed_price_of(d, k, op->bytes, &p, err));
    closed_flight *f = take_flight(x, d->a);
    if (f == NULL) return sc_error_nomem(err);
    sc_time latency = p->latency > credit ? p->latency - credit : 0;
    double bytes = closed_bytes(op->coll, op->bytes);
    f->kind = k;
    f->tag = op->tag;
    f->work = (uint64_t)p->work;
    f->starts = t + latency;
    f->weight = 1;
    if (p->work > 0 && bytes > 0) f->weight = (double)p->work / bytes;
    f->per_ps = x->file == NULL ? 1 / f->weight : 1;
    if (!send(x, f, t, d->a)) return sc_error_nomem(err);
    return SC_OK;
}

/* ---- the clock ------------------------------------------------------------- */

sc_time delay_closed_next(emu_delay *d)
{
    return sc_flows_next(d->closed->flows);
}

uint32_t delay_closed_advance(emu_delay *d, sc_time t,
                              const emu_delay_end **ends)
{
    delay_closed *x = d->closed;
    const sc_flow_end *end;
    uint32_t n = sc_flows_advance(x->flows, t, &end);
    if (n == SC_FLOW_NONE || !delay_ends(d, n)) return SC_FLOW_NONE;
    if (t > x->now) x->now = t;
    for (uint32_t k = 0; k < n; k++) {
        closed_flight *f = x->flight[end[k].tag];
        d->end[k] = (emu_delay_end){f->tag, end[k].t};
        give_back(x, f);
    }
    *ends = d->end;
    return n;
}

void delay_closed_cancel(emu_delay *d, uint64_t tag)
{
    delay_closed *x = d->closed;
    for (uint32_t k = 0; k < x->n_moving; k++) {
        closed_flight *f = x->flight[x->moving[k]];
        if (f->tag != tag) continue;
        sc_flows_cancel(x->flows, f->flow);
        give_back(x, f);
        return;
    }
}
