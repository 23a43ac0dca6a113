/* SPDX-License-Identifier: Apache-2.0 */
/* coll_best.c - the estimate that a collective's price is. */
#include "cost/coll.h"

/* There are fewer channels than the links need. */
static void narrow(coll_estimate *q, double fraction)
{
    if (fraction >= 1) return;
    q->node_bw *= fraction;
    q->net_bw *= fraction;
    q->transfer /= fraction;
    coll_finish(q);
}

static const coll_estimate *cheapest(const coll_estimate *q, uint32_t n)
{
    const coll_estimate *best = n > 0 ? &q[0] : NULL;
    for (uint32_t i = 1; i < n; i++)
        if (q[i].seconds < best->seconds) best = &q[i];
    return best;
}

/* The estimate of one choice; false if it can't be priced here.  A protocol
 * that cannot run is replaced by the cheapest.  `own`: the choice is for this
 * message on this machine, and so is its number of channels. */
static bool estimate(const coll_query *k, const coll_choice *c, bool own,
                     coll_estimate *out)
{
    coll_estimate q[COLL_ESTIMATES];
    uint32_t n = coll_estimates(k, c->algorithm, q);
    const coll_estimate *best = cheapest(q, n);
    for (uint32_t i = 0; i < n; i++)
        if (q[i].protocol == c->protocol) best = &q[i];
    if (best == NULL) return false;
    *out = *best;
    if (c->channels < out->channels || own) out->channels = c->channels;
    narrow(out, c->fraction);
    return true;
}

static bool best_choice(const coll_query *k, const coll_choice *c, uint32_t n,
                        coll_estimate *out)
{
    bool found = false;
    for (uint32_t i = 0; i < n; i++) {
        coll_estimate q;
        bool unusual = coll_unusual(k, c[i].protocol);
        if ((unusual && k->hw->nccl_options == NULL) ||
            !estimate(k, &c[i], i == 0, &q))
            continue;
        if (!found || q.seconds < out->seconds) *out = q;
        found = true;
    }
    return found;
}

sc_status coll_best(const coll_query *k, int algorithm, coll_estimate *out,
                    sc_err *err)
{
    coll_estimate q[COLL_ESTIMATES];
    coll_choice c[COLL_CHOICES];
    uint32_t n;
    sc_status s = coll_select(k, algorithm, c, &n, err);
    if (s != SC_OK && s != SC_NO) return s;
    if (s == SC_OK && best_choice(k, c, n, out)) return SC_OK;
    const coll_estimate *best = cheapest(q, coll_estimates(k, algorithm, q));
    if (best == NULL) return SC_NO;
    *out = *best;
    return SC_OK;
}
