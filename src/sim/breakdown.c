/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakdown.c - where the time of one class went.
 *
 * The compute stream is either busy or waits.  A wait is followed backwards
 * along the causes: without a gap, since an op starts when its cause ends.
 */
#include <stepcast/sim.h>

#include <string.h>

typedef struct account {
    const sc_graph *g;
    const sc_result *r;
    uint32_t cls;
    sc_time *out; /* [SC_N_CATS] */
} account;

/* What the time of op `c`, on which `cls` waits, counts as.  `direct`: an op
 * of `cls` itself waited for c. */
static sc_cat reason(const account *x, sc_op c, bool direct)
{
    const sc_graph *g = x->g;
    if (g->cls[c] == x->cls) return (sc_cat)g->cat[c];
    bool to_us = direct || g->peer[c] == x->cls;
    return g->kind[c] == SC_OP_P2P && to_us ? SC_CAT_PP : SC_CAT_BUBBLE;
}

/* Charges [lo, hi), a wait that ended when op `c` completed. */
static void charge_wait(const account *x, sc_time lo, sc_time hi, sc_op c)
{
    bool direct = true;
    while (hi > lo && c != SC_NONE) {
        sc_time from = x->r->start[c] > lo ? x->r->start[c] : lo;
        sc_cat cat = reason(x, c, direct);
        if (from < hi) {
            x->out[cat] += hi - from;
            hi = from;
        }
        if (x->g->kind[c] != SC_OP_MARK) direct = x->g->cls[c] == x->cls;
        c = x->r->cause[c];
    }
    x->out[SC_CAT_BUBBLE] += hi - lo;
}

void sc_result_breakdown(const sc_graph *g, const sc_result *r, uint32_t cls,
                         sc_time until, sc_time out[SC_N_CATS])
{
    account x = {g, r, cls, out};
    sc_time at = 0;       /* everything before is charged */
    sc_op last = SC_NONE; /* the op of the class that ends last */
    memset(out, 0, SC_N_CATS * sizeof *out);
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (g->cls[i] != cls) continue;
        if (last == SC_NONE || r->end[i] >= r->end[last]) last = i;
        if (g->stream[i] != SC_S_COMPUTE || g->kind[i] == SC_OP_MARK) continue;
        sc_time from = r->start[i] < until ? r->start[i] : until;
        sc_time to = r->end[i] < until ? r->end[i] : until;
        if (from > at) charge_wait(&x, at, from, r->cause[i]);
        out[g->cat[i]] += to - from;
        at = to;
    }
    if (last != SC_NONE && r->end[last] > at) {
        sc_time to = r->end[last] < until ? r->end[last] : until;
        charge_wait(&x, at, to, last);
        at = to;
    }
    out[SC_CAT_BUBBLE] += until - at;
}
