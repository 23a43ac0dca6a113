/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - how long a message takes.
 *
 * With links, each link serves messages in the order in which they arrive; a
 * message crosses the dimensions in ascending order. Store-and-forward: a
 * message is sent on when all of it has arrived, which takes latency + bytes /
 * rate per link. Cut-through: the head moves on after the latency, and the tail
 * follows when the slowest link so far has carried the message.
 *
 * Without inner links, only the first and the last link of a route in each
 * dimension, the ports of its ends, serve messages in order (cut-through).
 * Without ports either, a message takes hops x latency + bytes / rate.
 */
#include "sim/world.h"

static uint32_t distance(const sim_dim *d, uint32_t from, uint32_t to,
                         bool *back)
{
    uint32_t forward = (to + d->size - from) % d->size;
    *back = d->size - forward < forward;
    return *back ? d->size - forward : forward;
}

/* ---- closed form ------------------------------------------------------- */

static double hops(const sim_dim *d, uint32_t from, uint32_t to)
{
    bool back;
    switch (d->kind) {
    case SC_DIM_RING: return distance(d, from, to, &back);
    case SC_DIM_MESH: return from < to ? to - from : from - to;
    case SC_DIM_SWITCH: return 2;
    default: return 1;
    }
}

sc_time sim_wire_time(const sim_world *w, uint32_t src, uint32_t dst,
                      uint64_t size)
{
    double latency = 0, slowest = 0;
    if (w->served || w->machine) return 0;
    for (uint32_t i = 0; i < w->n_dims; i++) {
        const sim_dim *d = &w->dim[i];
        uint32_t from = sim_coordinate(d, src), to = sim_coordinate(d, dst);
        if (from == to) continue;
        double bytes = (double)size / d->bytes_per_ns;
        if (w->rules->first_dim_only)
            return sim_ns(w, hops(d, from, to) * d->latency_ns + bytes);
        latency += hops(d, from, to) * d->latency_ns;
        if (bytes > slowest) slowest = bytes;
    }
    return sim_ns(w, latency + slowest);
}

sc_time sim_wire_serial(const sim_world *w, uint32_t src, uint32_t dst,
                        uint64_t size)
{
    double slowest = 0;
    for (uint32_t i = 0; i < w->n_dims; i++) {
        const sim_dim *d = &w->dim[i];
        if (sim_coordinate(d, src) == sim_coordinate(d, dst)) continue;
        double bytes = (double)size / d->bytes_per_ns;
        if (bytes > slowest) slowest = bytes;
    }
    return sim_ns(w, slowest);
}

/* ---- links ------------------------------------------------------------- */

/* The rank whose links a representative uses. */
static uint32_t seat(const sim_world *w, uint32_t rank)
{
    return w->symmetric ? w->rank[w->index[rank]].id : rank;
}

/* The dimension in which a message moves next; n_dims if it has arrived. */
static uint32_t next_dim(const sim_world *w, const sim_message *m)
{
    uint32_t i = 0;
    while (i < w->n_dims && sim_coordinate(&w->dim[i], m->at) ==
                                sim_coordinate(&w->dim[i], m->dst))
        i++;
    return i;
}

/* Between ports: first the sender's link, then the receiver's, which may be the
 * same. */
static uint64_t port(sim_message *m, const sim_dim *d, uint32_t here, bool back)
{
    uint32_t from = sim_coordinate(d, m->at), to = sim_coordinate(d, m->dst);
    uint32_t before = back ? (to + 1) % d->size : (to + d->size - 1) % d->size;
    bool far = before != from;
    m->inside = far;
    m->at += ((far ? before : to) - from) * d->stride;
    return d->first_link + 2 * (uint64_t)here + back;
}

/* The next link and where it leads. Inside a switch, `at` stays the rank from
 * which the message came until the message has left the switch. */
static uint64_t next_link(const sim_world *w, sim_message *m, uint32_t i)
{
    const sim_dim *d = &w->dim[i];
    uint32_t from = sim_coordinate(d, m->at), to = sim_coordinate(d, m->dst);
    uint32_t target = m->at + (to - from) * d->stride;
    uint64_t base = d->first_link;
    if (d->kind == SC_DIM_SWITCH && !m->inside) {
        m->inside = true;
        return base + 2 * (uint64_t)seat(w, m->at);
    }
    if (d->kind == SC_DIM_SWITCH) {
        m->inside = false;
        m->at = target;
        return base + 2 * (uint64_t)seat(w, target) + 1;
    }
    uint32_t here = seat(w, m->at);
    if (d->kind == SC_DIM_FULL) {
        uint32_t nth = (to + d->size - from) % d->size - 1;
        m->at = target;
        return base + (uint64_t)here * (d->size - 1) + nth;
    }
    bool back = to < from;
    if (d->kind == SC_DIM_RING) (void)distance(d, from, to, &back);
    if (!w->o->links) return port(m, d, here, back);
    uint32_t next =
        back ? (from + d->size - 1) % d->size : (from + 1) % d->size;
    m->at = m->at + (next - from) * d->stride;
    return base + 2 * (uint64_t)here + back;
}

static void account(sim_link *l, const sim_message *m, sc_time serial)
{
    l->busy += serial;
    l->bytes += m->size;
}

/* The link has sent the whole message and starts the next one. */
static void forward(sim_world *w, sim_message *m, const sim_dim *d,
                    uint64_t link)
{
    sim_link *l = &w->link[link];
    double bytes = (double)m->size / d->bytes_per_ns;
    sc_time serial = sim_ns(w, bytes);
    account(l, m, serial);
    l->taken = true;
    m->link = link;
    bool last = !m->inside && m->at == m->dst;
    m->e.kind = last ? SIM_EV_ARRIVE : SIM_EV_HOP;
    sim_push(w, &m->e, w->q.order.now + sim_ns(w, d->latency_ns + bytes));
    sim_link_event *f = sim_mem_alloc(w, sizeof *f);
    f->e.kind = SIM_EV_FREE;
    f->e.rank = (uint32_t)(d - w->dim);
    f->link = link;
    sim_push(w, &f->e, w->q.order.now + serial);
}

void sim_wire_free(sim_world *w, sim_link_event *f)
{
    sim_link *l = &w->link[f->link];
    const sim_dim *d = &w->dim[f->e.rank];
    sim_message *m = l->head;
    sim_mem_free(w, f, sizeof *f);
    l->taken = false;
    if (!m) return;
    l->head = m->next;
    if (!l->head) l->tail = NULL;
    forward(w, m, d, m->link);
}

static void wait_for(sim_link *l, sim_message *m, uint64_t link)
{
    m->link = link;
    m->next = NULL;
    if (l->tail)
        l->tail->next = m;
    else
        l->head = m;
    l->tail = m;
}

/* The head moves on; the tail follows. */
static void cut_through(sim_world *w, sim_message *m, const sim_dim *d,
                        sim_link *l, double latency_ns)
{
    sc_time now = w->q.order.now, start = l->free > now ? l->free : now;
    sc_time serial = sim_ns(w, (double)m->size * m->load / d->bytes_per_ns);
    sc_time latency = sim_ns(w, latency_ns);
    sc_time tail = start + serial + latency;
    l->free = start + serial;
    account(l, m, serial);
    m->tail += latency;
    if (m->tail < tail) m->tail = tail;
    bool last = !m->inside && m->at == m->dst;
    m->e.kind = last ? SIM_EV_ARRIVE : SIM_EV_HOP;
    sim_push(w, &m->e, last ? m->tail : start + latency);
}

sc_time sim_wire_claim(sim_world *w, uint32_t dim, uint32_t rank, bool down,
                       uint64_t bytes)
{
    const sim_dim *d = &w->dim[dim];
    uint64_t at = 2 * (uint64_t)seat(w, rank) + down;
    sim_link *l = w->link ? &w->link[d->first_link + at] : NULL;
    sc_time *free = l ? &l->free : &w->port[(uint64_t)dim * 2 * w->n_npus + at];
    sc_time serial = sim_ns(w, (double)bytes / d->bytes_per_ns);
    sc_time start = *free > w->q.order.now ? *free : w->q.order.now;
    *free = start + serial;
    if (l) {
        l->busy += serial;
        l->bytes += bytes;
    }
    return start;
}

void sim_wire_hop(sim_world *w, sim_message *m)
{
    if (w->machine) {
        sim_machine_hop(w, m);
        return;
    }
    uint32_t i = next_dim(w, m);
    const sim_dim *d = &w->dim[i];
    uint32_t from = sim_coordinate(d, m->at);
    uint64_t link = next_link(w, m, i);
    sim_link *l = &w->link[link];
    double steps = 1;
    if (!w->o->links && m->inside && d->kind != SC_DIM_SWITCH)
        steps = hops(d, from, sim_coordinate(d, m->at));
    if (!w->store_and_forward)
        cut_through(w, m, d, l, steps * d->latency_ns);
    else if (l->taken)
        wait_for(l, m, link);
    else
        forward(w, m, d, link);
}

/* ---- ------------------------------------------------------------------- */

void sim_wire_send(sim_world *w, sim_message *m, sc_time delay)
{
    w->n_messages++;
    m->at = m->src;
    if (m->src == m->dst) {
        m->e.kind = SIM_EV_ARRIVE;
        sim_push(w, &m->e, w->q.order.now);
    } else if (w->machine) {
        sim_machine_send(w, m);
    } else if (w->served) {
        sim_loads_count(w, m);
        sim_wire_hop(w, m);
    } else {
        m->e.kind = SIM_EV_ARRIVE;
        sim_push(w, &m->e, w->q.order.now + delay);
    }
}

void sim_wire_arrive(sim_world *w, sim_message *m)
{
    if (m->kind == SIM_MSG_COLL || m->kind == SIM_MSG_COLL_ASK)
        sim_transfer_arrive(w, m);
    else
        sim_pair_arrive(w, m);
    sim_mem_free(w, m, sizeof *m);
}

sc_status sim_wire_init(sim_world *w)
{
    uint32_t stride = 1;
    for (uint32_t i = 0; i < w->net->n_dims; i++) {
        const sc_net_dim *from = &w->net->dim[i];
        sim_dim *d = &w->dim[i];
        d->kind = from->kind;
        d->size = from->size;
        d->stride = stride;
        d->latency_ns = from->latency_ns;
        d->bytes_per_ns = from->gib_per_s * (1 << 30) / 1e9;
        stride *= d->size;
        d->first_link = w->n_links;
        w->n_links += w->n_npus * sim_links_per_rank(d->kind, d->size);
    }
    w->n_dims = w->net->n_dims;
    w->served =
        w->o->links || (!w->rules->ports_unlimited && w->sys->port_limit);
    w->store_and_forward =
        w->rules->store_and_forward ||
        (w->o->links && w->sys->switching == SC_STORE_AND_FORWARD);
    if (w->o->hw || !w->served) {
        w->n_links = 0;
        if (w->sys->in_network) {
            w->port = sc_alloc(w->a, (size_t)w->n_dims * w->n_npus * 2,
                               sizeof *w->port);
            if (!w->port) return sc_error_nomem(w->err);
        }
        return w->o->hw ? sim_machine_init(w) : SC_OK;
    }
    w->link = sc_alloc(w->a, w->n_links, sizeof *w->link);
    return w->link ? SC_OK : sc_error_nomem(w->err);
}
