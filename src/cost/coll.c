/* SPDX-License-Identifier: Apache-2.0 */
/* coll.c - the price of a collective. */
#include "cost/coll.h"

#include <math.h>
#include <string.h>

static sc_status check_place(sc_coll coll, double bytes, const sc_place *at,
                             sc_err *err)
{
    if ((uint32_t)coll >= SC_N_COLLS || sc_coll_priced(coll) != coll ||
        !(bytes >= 0) || bytes > 1e18 || at->m == 0 || at->nodes == 0 ||
        (uint64_t)at->m * at->nodes != at->n)
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "collective %d of %g bytes over %u = %u x %u members",
                        (int)coll, bytes, at->n, at->m, at->nodes);
    return SC_OK;
}

static sc_status no_way(const sc_hw *hw, sc_coll coll, const sc_place *at,
                        int algorithm, sc_err *err)
{
    uint32_t n;
    if (algorithm >= 0)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                        "leave the algorithm out to take the cheapest",
                        "%s can't run as %s over %u devices of %s",
                        sc_coll_names[coll], sc_algorithms(&n)[algorithm].name,
                        at->n, hw->name);
    return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(),
                    "give the cluster a network between nodes or links inside",
                    "there is no path for %s over %u devices on %u nodes of %s",
                    sc_coll_names[coll], at->n, at->nodes, hw->name);
}

sc_status sc_cost_coll(const sc_cost *c, const sc_hw *hw, sc_coll coll,
                       double bytes, const sc_place *at, int algorithm,
                       sc_coll_price *out, sc_err *err)
{
    if (at->n <= 1 || bytes == 0) {
        *out = (sc_coll_price){.algorithm = algorithm,
                               .protocol = coll_protocol_names[COLL_LL]};
        return SC_OK;
    }
    SC_TRY(check_place(coll, bytes, at, err));
    coll_query k;
    coll_estimate q;
    SC_TRY(coll_query_init(&k, c, hw, coll, bytes, at, err));
    sc_status s = coll_best(&k, algorithm, &q, err);
    if (s == SC_NO) return no_way(hw, coll, at, algorithm, err);
    SC_TRY(s);
    *out = (sc_coll_price){
        .seconds = q.seconds,
        .link_s = {q.link_s[SC_SCOPE_NODE], q.link_s[SC_SCOPE_NET]},
        .bound = q.bound,
        .algorithm = q.algorithm,
        .protocol = coll_protocol_names[q.protocol],
        .port_bytes = q.port_bytes,
        .nic_bytes = q.nic_bytes,
        .channels = q.channels,
    };
    return SC_OK;
}

/* ---- intervals ----------------------------------------------------------- */

/* Measurements on n nodes are used up to 4 n nodes. */
static const double reach = 4;

static double node_nics(const sc_hw *hw)
{
    for (uint32_t i = 0; i < hw->n_dims; i++)
        if (hw->dim[i].ports > 0) return hw->dim[i].ports * hw->dim[i].port_bw;
    return 0;
}

bool sc_cost_calibrated(const sc_cost *c, const sc_hw *hw, const sc_place *at)
{
    if (at->nodes <= 1) return true;
    double nics = node_nics(hw);
    for (uint32_t i = 0; i < c->n_calibrated; i++) {
        const sc_calibrated *n = &c->calibrated[i];
        if (strcmp(n->device, hw->device->name) == 0 &&
            fabs(n->nic_bw / nics - 1) < 0.02 && at->nodes <= reach * n->nodes)
            return true;
    }
    return false;
}

void sc_cost_coll_interval(const sc_cost *c, const sc_hw *hw,
                           const sc_place *at, double bytes,
                           const sc_coll_price *price, double *low,
                           double *high)
{
    const double *p = c->p;
    bool known = sc_cost_calibrated(c, hw, at);
    double f = p[bytes > 1048576 ? SC_P_INTERVAL_LARGE : SC_P_INTERVAL_SMALL];
    if (!known && f < p[SC_P_INTERVAL_NETWORK]) f = p[SC_P_INTERVAL_NETWORK];
    double nics = node_nics(hw), bound = 0;
    if (price->nic_bytes > 0 && nics > 0) bound = price->nic_bytes / nics;
    *low = fmax(price->seconds / f, bound);
    *high = price->seconds * f;
}

/* ---- token dispatch */

double sc_cost_dispatch_factor(const sc_cost *c, const sc_place *at, bool dedup,
                               double hidden)
{
    const double *p = c->p;
    if (dedup && at->nodes > 1) return p[SC_P_A2A_NET] / p[SC_P_EP_NET];
    return (1 + p[SC_P_EP_ROW] / (2 * hidden)) / p[SC_P_EP_RATE];
}

double sc_cost_dispatch_copies(double ranks, double topk)
{
    return ranks * (1 - pow(1 - 1 / ranks, topk)) / topk;
}
