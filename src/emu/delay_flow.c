/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_flow.c - model flow: what neighbours send in all steps together, as
 * steady flows, all of an operation at once.
 *
 * It begins to move after the latencies of all steps.
 */
#include "emu/delay_messages.h"

#define MOST  ((uint64_t)1 << 16) /* flows of one operation */
#define PAIRS 64u /* distances that stand for all of an all-to-all */

/* Sequential messages of a phase. */
static uint32_t hops(const msg_phase *p)
{
    if (p->pattern == MSG_CHAIN) return p->n - 1;
    return p->pattern == MSG_STAR ? 1 : p->steps;
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
                         uint32_t k)
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
    for (uint32_t c = 0; c < f->chunks; c++)
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

/* The longest way of each phase, as often as it has steps. */
static bool latency_of(emu_delay *d, const msg_flight *f, sc_time *out)
{
    *out = 0;
    for (uint32_t p = 0; p < f->n_phases; p++) {
        const msg_phase *ph = &f->phase[p];
        sc_time most = 0;
        for (uint32_t i = 0; i < f->group->n; i++)
            for (uint32_t k = 0; k < flows_of(f, ph, i); k++) {
                msg m = {.src = i, .dst = to_whom(f, ph, i, k)};
                sc_fabric_path path;
                if (!route(d, f, &m, &path)) return false;
                if (path.latency > most) most = path.latency;
            }
        *out += (sc_time)hops(ph) * msg_latency(d, most);
    }
    return true;
}

static sc_status too_many(const msg_flight *f, uint64_t n, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                    sc_pos_file("--delay-model flow"),
                    "use analytic for groups as large",
                    "an operation of %u groups of %u ranks is %llu flows, more "
                    "than %llu",
                    f->group->siblings, f->group->n, (unsigned long long)n,
                    (unsigned long long)MOST);
}

static sc_status post_phase(emu_delay *d, msg_flight *f, msg m, sc_time latency,
                            sc_time t, sc_err *err)
{
    const msg_phase *p = &f->phase[m.phase];
    for (m.src = 0; m.src < f->group->n; m.src++)
        for (uint32_t k = 0; k < flows_of(f, p, m.src); k++) {
            sc_fabric_path path;
            m.dst = to_whom(f, p, m.src, k);
            if (!route(d, f, &m, &path)) return sc_error_nomem(err);
            sc_flow flow = {.links = path.links,
                            .n_links = path.n,
                            .bytes = bytes_of(f, p, m.src, k),
                            .weight = 1,
                            .latency = latency};
            SC_TRY(msg_send(d, f, &m, &flow, t, err));
            f->left++;
            f->own += m.sibling == 0;
        }
    return SC_OK;
}

sc_status msg_flow_post(emu_delay *d, msg_flight *f, sc_time t, sc_err *err)
{
    const msg_group *g = f->group;
    uint64_t n = 0;
    sc_time latency = 0;
    for (uint32_t p = 0; p < f->n_phases; p++)
        for (uint32_t i = 0; i < g->n; i++) n += flows_of(f, &f->phase[p], i);
    if (n * g->siblings > MOST) return too_many(f, n * g->siblings, err);
    if (!latency_of(d, f, &latency)) return sc_error_nomem(err);
    latency = latency > f->credit ? latency - f->credit : 0;
    f->left = f->own = 0;
    for (uint32_t s = 0; s < g->siblings; s++)
        for (uint32_t p = 0; p < f->n_phases; p++) {
            msg m = {.sibling = s, .phase = p};
            SC_TRY(post_phase(d, f, m, latency, t, err));
        }
    return SC_OK;
}
