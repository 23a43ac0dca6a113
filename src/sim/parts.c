/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - ops of several parts, timed as a whole or part by part. */
#include "sim/parts.h"

static void begin(const sc_parts *p, sim_slot *x, uint32_t part)
{
    x->left = (double)(p->end[part] - (part ? p->end[part - 1] : 0));
    x->bit = (uint8_t)(1u << p->kind[part]);
    x->rate = 0;
}

void parts_start(const sc_graph *g, sim_slot *x, sim_seq *q)
{
    *q = (sim_seq){0};
    begin(g->parts[x->op], x, 0);
}

/* Whether a sequence of kinds slows, or is slowed by, others. */
static bool acts(const sim_rates *rates, unsigned kinds, unsigned others)
{
    for (unsigned k = 0; others && k < SIM_N_KINDS; k++)
        if (((kinds >> k & 1) && rates->at[k][others] < 1) ||
            ((others >> k & 1) && rates->at[k][kinds] < 1))
            return true;
    return false;
}

/* The end of a part of an op that began at `from` and always ran alone. */
static void keep_ends(const sc_graph *g, sc_result *r, sc_op op, uint32_t part,
                      uint32_t until, sc_time from)
{
    const sc_parts *p = g->parts[op];
    for (; part < until; part++)
        r->part_end[g->part_head[op] + part] = from + p->end[part];
}

/* Finds the part of an op that runs at `now`. */
static void advance(const sc_graph *g, sc_result *r, sim_slot *x, sim_seq *q,
                    sc_time now)
{
    const sc_parts *p = g->parts[x->op];
    sc_time rest = (sc_time)ceil(x->left);
    sc_time from = x->since + rest - p->end[q->part];
    if (now - x->since < rest) return;
    uint32_t next = q->part + 1;
    SC_FIRST(next, p->n - 1, mid, from + p->end[mid] > now);
    if (q->late) keep_ends(g, r, x->op, q->part, next, from);
    q->part = next;
    begin(p, x, next);
    x->since = from + p->end[next - 1];
    x->rate = 1;
}

void parts_beside(const sim_rates *rates, const sc_graph *g, sc_result *r,
                  sim_slot *x, sim_seq *q, unsigned others, sc_time now)
{
    bool single = acts(rates, g->parts[x->op]->kinds, others);
    if (single == q->single) return;
    if (x->rate > 0 && single) advance(g, r, x, q, now);
    x->left -= (double)(now - x->since) * x->rate;
    x->since = now;
    x->rate = 0;
    q->single = single;
    q->late |= single;
}

bool parts_ended(const sc_graph *g, sc_result *r, sim_slot *x, sim_seq *q,
                 sc_time now)
{
    const sc_parts *p = g->parts[x->op];
    uint32_t until = q->single ? q->part + 1 : p->n;
    if (q->late)
        keep_ends(g, r, x->op, q->part, until, now - p->end[until - 1]);
    if (until == p->n) return true;
    q->part = until;
    begin(p, x, until);
    x->since = now;
    return false;
}

void parts_retime(const sc_graph *g, sim_radix *queue, uint32_t slot,
                  const sim_seq *q, double rate, sc_time now)
{
    sim_slot *x = &queue->slot[slot];
    const sc_parts *p = g->parts[x->op];
    sc_time room = SC_TIME_MAX - now;
    x->left -= (double)(now - x->since) * x->rate;
    double dt = x->left > 0 ? ceil(x->left / rate) : 0;
    if (!q->single) dt += (double)(p->end[p->n - 1] - p->end[q->part]);
    if (x->queued) radix_unlink(queue, slot);
    x->since = now;
    x->rate = rate;
    x->due = now + (dt < (double)room ? (sc_time)dt : room);
    radix_link(queue, slot);
}
