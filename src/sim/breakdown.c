/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakdown.c - the time of one class by category.
 *
 * The compute stream is either busy or waits. A wait is followed backwards
 * along the causes.
 */
#include "sim/sim.h"

#include <string.h>

typedef struct account {
    const sc_graph *g;
    const sc_result *r;
    uint32_t cls;
    sc_time *out; /* [SC_N_CATS] */
} account;

static bool is_on(const account *c, sc_op i)
{
    const sc_graph *g = c->g;
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++)
        if (g->cls[p] == c->cls) return true;
    return false;
}

/* The category of op `i` while the class waits for it. `direct`: an op of the
 * class itself waited for it. */
static sc_cat reason(const account *c, sc_op i, bool own, bool direct)
{
    if (own) return (sc_cat)c->g->cat[i];
    return c->g->kind[i] == SC_OP_P2P && direct ? SC_CAT_PP : SC_CAT_BUBBLE;
}

/* Charges [lo, hi), a wait that ended when op `i` completed. */
static void charge_wait(const account *c, sc_time lo, sc_time hi, sc_op i)
{
    bool direct = true;
    while (hi > lo && i != SC_NONE) {
        bool own = is_on(c, i);
        sc_time from = c->r->start[i] > lo ? c->r->start[i] : lo;
        sc_cat cat = reason(c, i, own, direct);
        /* an op may have waited in a queue after its cause */
        sc_time end = c->r->end[i] < hi ? c->r->end[i] : hi;
        if (end < hi && end >= lo) {
            c->out[SC_CAT_BUBBLE] += hi - end;
            hi = end;
        }
        if (from < hi) {
            c->out[cat] += hi - from;
            hi = from;
        }
        if (c->g->kind[i] != SC_OP_MARK) direct = own;
        i = c->r->cause[i];
    }
    c->out[SC_CAT_BUBBLE] += hi - lo;
}

/* The time of an op on the compute stream, up to `until`. */
static void charge_op(const account *c, sc_op i, sc_time until)
{
    const sc_parts *p = c->g->parts ? c->g->parts[i] : NULL;
    sc_time from = c->r->start[i], end = c->r->end[i];
    if (p && end <= until && end - from == c->g->work[i]) {
        for (int k = 0; k < SC_N_CATS; k++) c->out[k] += p->by_cat[k];
        return;
    }
    for (uint32_t k = 0; k < (p ? p->n : 1) && from < until; k++) {
        end = sc_part_end(c->g, c->r, i, k);
        if (end > until) end = until;
        c->out[p ? p->cat[k] : c->g->cat[i]] += end - from;
        from = end;
    }
}

void sc_result_breakdown(const sc_graph *g, const sc_result *r, uint32_t cls,
                         sc_time until, sc_time out[SC_N_CATS])
{
    account c = {g, r, cls, out};
    sc_time at = 0;       /* everything before is accounted for */
    sc_op last = SC_NONE; /* the op of the class that ends last */
    memset(out, 0, SC_N_CATS * sizeof *out);
    for (uint32_t k = 0; k < g->n_ops; k++) {
        sc_op i = r->order ? r->order[k] : k;
        if (!is_on(&c, i)) continue;
        if (last == SC_NONE || r->end[i] >= r->end[last]) last = i;
        if (g->stream[i] != SC_S_COMPUTE || g->kind[i] == SC_OP_MARK) continue;
        sc_time from = r->start[i] < until ? r->start[i] : until;
        sc_time to = r->end[i] < until ? r->end[i] : until;
        if (from > at) charge_wait(&c, at, from, r->cause[i]);
        charge_op(&c, i, until);
        at = to;
    }
    if (last != SC_NONE && r->end[last] > at) {
        sc_time to = r->end[last] < until ? r->end[last] : until;
        charge_wait(&c, at, to, last);
        at = to;
    }
    out[SC_CAT_BUBBLE] += until - at;
}
