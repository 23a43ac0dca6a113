/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_flow.c - model flow: what neighbours send in all steps of a phase
 * together, as steady flows that begin to move after the latencies of all
 * steps.
 *
 * A phase begins at all members at once.
 */
#include "emu/delay_messages.h"

#define MOST  ((uint64_t)1 << 16) /* flows of one operation */
#define PAIRS 64u /* distances that stand for all of an all-to-all */

/* Sequential messages of a phase. */
static uint32_t hops(const msg_phase *p)
{
    return p->pattern == MSG_STAR || p->pattern == MSG_PAIRS ? 1 : p->steps;
}

/* Flows of a member: the k-th to whom, and its bytes; 0 flows: none. */
static uint32_t flows_of(const msg_flight *f, const msg_phase *p, uint32_t i)
{
    uint32_t n = msg_sends(f, p, i);
    if (p->pattern == MSG_RING || p->pattern == MSG_CHAIN) return n > 0;
    return p->pattern == MSG_PAIRS && n > PAIRS ? PAIRS : n;
}

static uint32_t to_whom(const msg_flight *f, const msg_phase *p, uint32_t i,
                        uint32_t k)
{
    uint32_t n = msg_sends(f, p, i);
    if (p->pattern == MSG_PAIRS && n > PAIRS)
        k = (uint32_t)((uint64_t)k * n / PAIRS);
    return msg_to(f, p, i, k);
}

static uint64_t bytes_of(const msg_flight *f, const msg_phase *p, uint32_t i,
                         uint32_t c, uint32_t k)
{
    uint32_t n = msg_sends(f, p, i), from = k, to = k + 1;
    uint64_t sum = 0;
    if (p->pattern == MSG_RING || p->pattern == MSG_CHAIN) {
        from = 0;
        to = n;
    } else if (p->pattern == MSG_PAIRS && n > PAIRS) {
        from = (uint32_t)((uint64_t)k * n / PAIRS);
        to = (uint32_t)(((uint64_t)k + 1) * n / PAIRS);
    }
    for (uint32_t j = from; j < to; j++) sum += msg_bytes(f, p, c, i, j);
    return sum;
}

static bool route(emu_delay *d, const msg_flight *f, const msg *m,
                  sc_fabric_path *out)
{
    const uint32_t *rank = f->group->rank + (size_t)m->sibling * f->group->n;
    sc_message to = {.src = rank[m->src], .dst = rank[m->dst]};
    return sc_fabric_route(d->messages->fabric, &to, out);
}

/* Seconds that bytes take on a way of their own. */
static double serial(const emu_delay *d, const sc_fabric_path *path,
                     uint64_t bytes)
{
    double most = 0;
    for (uint32_t k = 0; k < path->n; k++) {
        double bw = sc_flows_link_bw(d->messages->flows, path->links[k]);
        if ((double)bytes / bw > most) most = (double)bytes / bw;
    }
    return most;
}

/* Before anything moves at its steady rate: the longest way that a message of
 * the phase has, as often as there are steps; of a chain, what the first piece
 * takes to its end. */
static bool latency_of(emu_delay *d, const msg_flight *f, const msg *at,
                       sc_time *out)
{
    const msg_phase *p = &f->phase[at->phase];
    bool chain = p->pattern == MSG_CHAIN;
    sc_time most = 0, all = 0;
    double slowest = 0, filled = 0;
    for (uint32_t i = 0; i < f->group->n; i++)
        for (uint32_t k = 0; k < flows_of(f, p, i); k++) {
            msg m = {.sibling = at->sibling, .src = i};
            sc_fabric_path path;
            m.dst = to_whom(f, p, i, k);
            if (!route(d, f, &m, &path)) return false;
            if (path.latency > most) most = path.latency;
            all = delay_scaled(all + msg_latency(d, path.latency), 1);
            double s = serial(d, &path, msg_bytes(f, p, at->chunk, i, 0));
            if (s > slowest) slowest = s;
            filled += s;
        }
    *out = delay_sum(hops(p), msg_latency(d, most));
    if (chain) *out = all + delay_scaled(sc_time_from_s(filled - slowest), 1);
    if (at->chunk == 0 && at->phase == 0)
        *out = *out > f->credit ? *out - f->credit : 0;
    return true;
}

static sc_status too_many(const msg_flight *f, uint64_t n, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                    sc_pos_file("--delay-model flow"),
                    "use analytic for groups as large",
                    "%u x %u ranks have %llu flows in one operation, more than "
                    "%llu",
                    f->group->siblings, f->group->n, (unsigned long long)n,
                    (unsigned long long)MOST);
}

static sc_status start(emu_delay *d, msg_flight *f, msg m, sc_time t,
                       sc_err *err)
{
    if (!msg_ready(f, &m, 0)) return SC_OK;
    const msg_phase *p = &f->phase[m.phase];
    msg_state *s = msg_state_of(f, &m, 0);
    sc_time latency = 0;
    s->started = true;
    if (!latency_of(d, f, &m, &latency)) return sc_error_nomem(err);
    for (m.src = 0; m.src < f->group->n; m.src++)
        for (uint32_t k = 0; k < flows_of(f, p, m.src); k++) {
            sc_fabric_path path;
            m.dst = to_whom(f, p, m.src, k);
            if (!route(d, f, &m, &path)) return sc_error_nomem(err);
            sc_flow flow = {.links = path.links,
                            .n_links = path.n,
                            .bytes = bytes_of(f, p, m.src, m.chunk, k),
                            .weight = 1,
                            .latency = latency};
            SC_TRY(msg_send(d, f, &m, &flow, t, err));
            s->sent++;
        }
    return SC_OK;
}

sc_status msg_flow_end(emu_delay *d, const msg *m, sc_time t, sc_err *err)
{
    msg_flight *f = m->flight;
    msg_state *s = msg_state_of(f, m, 0);
    if (++s->received < s->sent) return SC_OK;
    msg_done(f, m, 0);
    msg after = *m, behind = *m;
    after.phase++;
    behind.chunk++;
    SC_TRY(start(d, f, after, t, err));
    return start(d, f, behind, t, err);
}

sc_status msg_flow_post(emu_delay *d, msg_flight *f, sc_time t, sc_err *err)
{
    const msg_group *g = f->group;
    uint64_t n = 0;
    for (uint32_t p = 0; p < f->n_phases; p++)
        for (uint32_t i = 0; i < g->n; i++) n += flows_of(f, &f->phase[p], i);
    n *= (uint64_t)f->chunks * g->siblings;
    if (n > MOST) return too_many(f, n, err);
    if (!msg_states(f, 1, d->a)) return sc_error_nomem(err);
    for (uint32_t s = 0; s < g->siblings; s++) {
        msg m = {.flight = f, .sibling = s};
        SC_TRY(start(d, f, m, t, err));
    }
    return SC_OK;
}
