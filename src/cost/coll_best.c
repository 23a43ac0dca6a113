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

/* ---- choices of NCCL that are priced much slower than others */

/* The cheapest pair that the variables of NCCL could force. */
static bool best_forced(const coll_query *k, double fraction,
                        coll_estimate *out)
{
    coll_estimate q[COLL_ESTIMATES];
    bool can[SC_N_ALGOS][COLL_N_PROTOCOLS];
    bool found = false;
    if (coll_forced(k, can, NULL) != SC_OK) return false;
    uint32_t n = coll_estimates(k, -1, q);
    for (uint32_t i = 0; i < n; i++) {
        if (!can[q[i].algorithm][q[i].protocol]) continue;
        narrow(&q[i], fraction);
        if (!found || q[i].seconds < out->seconds) *out = q[i];
        found = true;
    }
    return found;
}

bool sc_cost_coll_slow(const sc_cost *c, const sc_hw *hw, sc_coll coll,
                       double bytes, const sc_place *at, sc_coll_slow *out)
{
    coll_query k;
    coll_choice choice[COLL_CHOICES];
    coll_estimate own, best = {0}, taken;
    uint32_t n;
    if (at->n <= 1 || !(bytes > 0) ||
        coll_query_init(&k, c, hw, coll, bytes, at, NULL) != SC_OK ||
        coll_select(&k, -1, choice, &n, NULL) != SC_OK || n == 0 ||
        !estimate(&k, &choice[0], true, &own) ||
        own.protocol != choice[0].protocol ||
        !best_forced(&k, choice[0].fraction, &best) ||
        own.seconds < SC_SLOW_CHOICE * best.seconds ||
        coll_best(&k, -1, &taken, NULL) != SC_OK)
        return false;
    *out = (sc_coll_slow){.algorithm = coll_nccl_name(own.algorithm),
                          .protocol = coll_protocol_names[own.protocol],
                          .best_algorithm = coll_nccl_name(best.algorithm),
                          .best_protocol = coll_protocol_names[best.protocol],
                          .seconds = own.seconds,
                          .best_s = best.seconds,
                          .price_s = taken.seconds};
    return true;
}

void sc_cost_coll_slow_text(const sc_coll_slow *s, sc_coll coll, double bytes,
                            const sc_place *at, double step_s, sc_text *out)
{
    char size[32], slow[32], fast[32], price[32];
    sc_unit_print_short(bytes, SC_U_BYTES, size, sizeof size);
    sc_unit_print_short(s->seconds, SC_U_TIME, slow, sizeof slow);
    sc_unit_print_short(s->best_s, SC_U_TIME, fast, sizeof fast);
    sc_unit_print_short(s->price_s, SC_U_TIME, price, sizeof price);
    sc_text_add(out,
                "NCCL chooses %s %s for %s of %s over %u devices, %u per node; "
                "this is priced at %s, %.2g times %s %s (%s)",
                s->algorithm, s->protocol, sc_coll_names[coll], size, at->n,
                at->m, slow, s->seconds / s->best_s, s->best_algorithm,
                s->best_protocol, fast);
    if (step_s > 0) {
        sc_unit_print_short(step_s, SC_U_TIME, slow, sizeof slow);
        sc_text_add(out, ", and costs up to %s more per step", slow);
    }
    bool same = s->algorithm == s->best_algorithm;
    sc_text_add(out, "; NCCL_%s=%s", same ? "PROTO" : "ALGO",
                same ? s->best_protocol : s->best_algorithm);
    if (!same && s->protocol != s->best_protocol)
        sc_text_add(out, " NCCL_PROTO=%s", s->best_protocol);
    sc_text_add(out, " forces the faster one; the price taken here is %s",
                price);
}
