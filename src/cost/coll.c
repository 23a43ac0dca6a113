/* SPDX-License-Identifier: Apache-2.0 */
/* The price of a collective: the cheapest way that NCCL has. */
#include "cost/coll.h"

static sc_status check_place(sc_coll coll, double bytes, const sc_place *at,
                             sc_err *err)
{
    if ((uint32_t)coll >= SC_N_COLLS || !(bytes >= 0) || bytes > 1e18 ||
        at->m == 0 || at->nodes == 0 || (uint64_t)at->m * at->nodes != at->n)
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
                        "leave the algorithm out: the cheapest is taken",
                        "%s can't run as %s over %u devices of %s",
                        sc_coll_names[coll], sc_algorithms(&n)[algorithm].name,
                        at->n, hw->name);
    return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(),
                    "give the cluster a network between nodes or links inside",
                    "no path for %s over %u devices on %u nodes of %s",
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
    coll_call k;
    coll_quote q[COLL_QUOTES];
    coll_call_init(&k, c, hw, coll, bytes, at);
    uint32_t n = coll_quotes(&k, algorithm, q);
    if (n == 0) return no_way(hw, coll, at, algorithm, err);
    const coll_quote *best = &q[0];
    for (uint32_t i = 1; i < n; i++)
        if (q[i].seconds < best->seconds) best = &q[i];
    *out = (sc_coll_price){
        .seconds = best->seconds,
        .algorithm = best->algorithm,
        .protocol = coll_protocol_names[best->protocol],
        .port_bytes = best->port_bytes,
        .nic_bytes = best->nic_bytes,
        .channels = coll_channels(&k, best),
    };
    return SC_OK;
}
