/* SPDX-License-Identifier: Apache-2.0 */
/* coll_memo.c - keeps prices of collectives. */
#include "cost/cost.h"

#include <string.h>

sc_coll_memo *sc_coll_memo_new(sc_arena *a, const sc_cost *cost,
                               const sc_hw *hw, uint32_t n)
{
    sc_coll_memo *m = SC_NEW(a, sc_coll_memo);
    struct sc_coll_kept *kept = SC_NEW_N(a, struct sc_coll_kept, n);
    if (!m || !kept) return NULL;
    *m = (sc_coll_memo){.cost = cost, .hw = hw, .n = n, .kept = kept};
    return m;
}

sc_status sc_cost_coll_kept(sc_coll_memo *memo, const sc_cost *c,
                            const sc_hw *hw, sc_coll coll, double bytes,
                            const sc_place *at, sc_coll_price *out, sc_err *err)
{
    if (!memo || memo->cost != c || memo->hw != hw || !(bytes > 0))
        return sc_cost_coll(c, hw, coll, bytes, at, -1, out, err);
    uint64_t hash = sc_hash(&bytes, sizeof bytes, (uint64_t)coll);
    hash = sc_mix(sc_hash(at, sizeof *at, hash));
    struct sc_coll_kept *k = &memo->kept[hash % memo->n];
    if (k->coll != coll || k->bytes != bytes ||
        memcmp(&k->at, at, sizeof *at) != 0) {
        sc_coll_price price;
        SC_TRY(sc_cost_coll(c, hw, coll, bytes, at, -1, &price, err));
        *k = (struct sc_coll_kept){coll, bytes, *at, price};
    }
    *out = k->price;
    return SC_OK;
}
