/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_network.c - a phase that the switch of a dimension runs: it adds the data
 * of its members and multicasts the result.
 *
 * Every member sends all of its data up (its part for a gather, otherwise
 * everything) and receives its data after the phase.  The switch passes bytes
 * on as soon as it has them from all members (cut-through), so that M bytes,
 * the larger of both directions, take
 *
 *   endpoint + M / rate + 2 latency + endpoint
 *
 * where all start together and the ports are idle.  Up and down are the ports
 * that other messages of the members use too.
 */
#include "sim/world.h"

/* Members of one phase at the switch. */
struct sim_gathering {
    uint32_t n;         /* that have sent */
    sc_time head, tail; /* first and last byte are there from all of these */
    sim_stream **who;
};

/* A group lies in one dimension where all its members differ only there. */
static bool one_dimension(const sim_world *w, const sim_comm *c, uint32_t *dim)
{
    uint32_t mask = c->mask;
    for (uint32_t m = 1; c->rank && m < c->n; m++)
        for (uint32_t d = 0; d < w->n_dims; d++) {
            const sim_dim *x = &w->dim[d];
            if (c->rank[m] / x->stride % x->size !=
                c->rank[0] / x->stride % x->size)
                mask |= 1u << d;
        }
    if (mask == 0 || (mask & (mask - 1)) != 0) return false;
    *dim = (uint32_t)__builtin_ctz(mask);
    return true;
}

bool sim_in_network_can(const sim_world *w, const sim_builder *d, int op,
                        uint32_t *dim)
{
    if (w->rules->switches_only_forward || !w->sys->in_network ||
        op == SC_ALL_TO_ALL)
        return false;
    bool flat = d->comm->flat || d->list->dim[*dim].flat;
    if (flat && !one_dimension(w, d->comm, dim)) return false;
    return w->sys->in_network >> *dim & 1;
}

sc_status sim_in_network_init(sim_world *w)
{
    if (w->o->hw && w->sys->in_network && !w->rules->switches_only_forward)
        return sc_error(w->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        w->sys->in_network_pos,
                        "use --fidelity chunk and a network of dimensions",
                        "switches reduce on the links of dimensions only, not "
                        "on those of a machine or among flows");
    if (w->rules->switches_only_forward) return SC_OK;
    for (uint32_t d = 0; d < 32; d++) {
        if (!(w->sys->in_network >> d & 1)) continue;
        if (d < w->n_dims && w->dim[d].kind == SC_DIM_SWITCH) continue;
        const char *what = d < w->n_dims ? "is no switch" : "does not exist";
        return sc_error(w->err, SC_EINPUT, SC_C_CONFLICT,
                        w->sys->in_network_pos,
                        "name dimensions whose topology is Switch",
                        "in-network-collectives: dimension %u of the network "
                        "%s",
                        d, what);
    }
    return SC_OK;
}

static const sim_phase *phase_of(const sim_stream *s)
{
    return &s->phases[s->phase];
}

/* The member whose mailbox collects the arrivals of the others. */
static sim_stream *host_of(sim_world *w, sim_stream *s, const sim_phase *p)
{
    if (s->coll->comm->symmetric) return s;
    uint32_t first = s->member - sim_place(s, p) * p->stride;
    return sim_stream_of(w, s->coll, first, s->index);
}

static uint32_t expected(const sim_stream *s, const sim_phase *p)
{
    return s->coll->comm->symmetric ? 1 : p->n;
}

static void defer(sim_world *w, sim_stream *s, uint32_t kind, sc_time at)
{
    sim_deferred *k = sim_mem_alloc(w, sizeof *k);
    k->e.kind = SIM_EV_DEFERRED;
    k->what = s;
    k->kind = kind;
    k->phase = s->phase;
    sim_push(w, &k->e, at);
}

static sc_time serial(const sim_world *w, const sim_dim *d, uint64_t bytes)
{
    return sim_ns(w, (double)bytes / d->bytes_per_ns);
}

static void send_up(sim_world *w, sim_stream *s)
{
    const sim_phase *p = phase_of(s);
    const sim_dim *d = &w->dim[p->port];
    sim_stream *host = host_of(w, s, p);
    uint32_t need = expected(s, p);
    if (!host) return;
    struct sim_gathering **at = &host->mailbox[s->phase].gathering, *m = *at;
    if (!m) {
        m = *at = sim_mem_alloc(w, sizeof *m);
        m->who = sim_mem_alloc(w, need * sizeof(sim_stream *));
        if (w->status != SC_OK) return;
    }
    sc_time start = sim_wire_claim(w, p->port, s->rank->id, false, p->size);
    sc_time head = start + sim_ns(w, d->latency_ns);
    sc_time tail = head + serial(w, d, p->size);
    if (head > m->head) m->head = head;
    if (tail > m->tail) m->tail = tail;
    m->who[m->n++] = s;
    w->n_messages++;
    if (m->n == need) defer(w, host, SIM_DEFERRED_SWITCH, m->head);
}

/* `host` itself may not have reached this phase if it is not a member. */
static void multicast(sim_world *w, sim_stream *host, uint32_t phase)
{
    struct sim_gathering *m = host->mailbox[phase].gathering;
    const sim_phase *p = &host->phases[phase];
    const sim_dim *d = &w->dim[p->port];
    sc_time latency = sim_ns(w, d->latency_ns);
    uint64_t down = sim_phase_leaves(p);
    host->mailbox[phase].gathering = NULL;
    for (uint32_t i = 0; i < m->n; i++) {
        sim_stream *s = m->who[i];
        sc_time start = sim_wire_claim(w, p->port, s->rank->id, true, down);
        sc_time end = start + serial(w, d, down);
        if (end < m->tail) end = m->tail;
        w->n_messages++;
        defer(w, s, SIM_DEFERRED_LANDED, end + latency);
    }
    sim_mem_free(w, m->who, m->n * sizeof(sim_stream *));
    sim_mem_free(w, m, sizeof *m);
}

enum { PREPARE, SENT, LANDED };

void sim_in_network_start(sim_world *w, sim_stream *s)
{
    s->state = PREPARE;
    sim_bundle(w, s, true, false, false, phase_of(s)->size);
}

void sim_in_network_bundle(sim_world *w, sim_stream *s)
{
    if (s->state == LANDED) {
        sim_stream_leave(w, s);
        return;
    }
    s->state = SENT;
    send_up(w, s);
}

void sim_in_network_wake(sim_world *w, const sim_deferred *k)
{
    sim_stream *s = k->what;
    if (k->kind == SIM_DEFERRED_SWITCH) {
        multicast(w, s, k->phase);
        return;
    }
    s->state = LANDED;
    sim_bundle(w, s, false, false, false, sim_phase_leaves(phase_of(s)));
}
