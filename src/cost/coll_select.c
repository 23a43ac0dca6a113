/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_select.c - determines the algorithm and protocol that NCCL chooses.
 *
 * NCCL does not use the fastest pair but the one that its table prefers. On 8
 * V100 an all-reduce of 8 MiB took 238 us, while a Simple ring would take 147.
 * The table of coll/ chooses; the time is priced separately.
 */
#include "coll/coll_search.h"
#include "cost/coll.h"

#include <math.h>
#include <string.h>

/* Sizes, each twice the one before, and rates of links, each half, for which
 * the table is asked. */
enum { LARGER_SIZES = 5, SLOWER_LINKS = 5 };

static const int of_nccl[SC_N_NCCL_ALGOS] = {
    [SC_NCCL_TREE] = SC_ALGO_TREE,
    [SC_NCCL_RING] = SC_ALGO_RING,
    [SC_NCCL_COLLNET_DIRECT] = SC_ALGO_COLLNET,
    [SC_NCCL_COLLNET_CHAIN] = SC_ALGO_COLLNET,
    [SC_NCCL_NVLS] = SC_ALGO_NVLS,
    [SC_NCCL_NVLS_TREE] = SC_ALGO_NVLS_TREE,
    [SC_NCCL_PAT] = SC_ALGO_PAT};

const char *coll_nccl_name(int algorithm)
{
    switch (algorithm) {
    case SC_ALGO_RING: return "Ring";
    case SC_ALGO_TREE: return "Tree";
    case SC_ALGO_NVLS: return "NVLS";
    case SC_ALGO_NVLS_TREE: return "NVLSTree";
    case SC_ALGO_COLLNET: return "CollNetDirect,CollNetChain";
    case SC_ALGO_PAT: return "PAT";
    default: return NULL;
    }
}

/* The EFA plugin of NCCL has a tuner, which replaces NCCL's table by times
 * over EFA. */
static bool tuner_chooses(const coll_query *k)
{
    return k->kind == SC_NETWORK_EFA && k->coll == SC_ALL_REDUCE &&
           k->hw->nccl_options == NULL;
}

/* If the user names an algorithm, the cheapest protocol is used unless the
 * cluster sets the variables of the library. */
static bool has_a_say(const coll_query *k, int algorithm)
{
    if (algorithm < 0 && tuner_chooses(k)) return false;
    if (k->coll == SC_ALL_TO_ALL || k->coll == SC_SENDRECV) return false;
    if (algorithm >= 0 &&
        (k->hw->nccl_options == NULL || coll_nccl_name(algorithm) == NULL))
        return false;
    return sc_nccl_sm(k->hw) > 0 && (k->at->nodes == 1 || k->net > 0);
}

/* Each channel has the rate of its search, so fewer channels carry less. */
static double channel_fraction(const sc_channels *g, const sc_nccl_options *o,
                               sc_nccl_algo a)
{
    bool nvls = a == SC_NCCL_NVLS || a == SC_NCCL_NVLS_TREE;
    double full = nvls ? g->nvls.n_channels : g->n_channels;
    if (o->max_channels == 0 || !(o->max_channels < full)) return 1;
    return o->max_channels / full;
}

/* NCCL itself stops with "no algorithm/protocol available". */
static sc_status nothing_left(const coll_query *k, const sc_nccl_options *o,
                              sc_err *err)
{
    sc_pos pos = o->algo != NULL ? o->algo_pos : o->proto_pos;
    if (o->algo == NULL && o->proto == NULL) return SC_NO;
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                    "from NCCL 2.24 a list can be for one collective: "
                    "allreduce:tree",
                    "NCCL_ALGO and NCCL_PROTO exclude every algorithm for "
                    "%s over %u devices on %u nodes",
                    sc_coll_names[k->coll], k->at->n, k->at->nodes);
}

/* The same machine with links of a fraction of the rate: between nodes if
 * there are several, otherwise inside the node. */
static sc_hw slower(const coll_query *k, double fraction)
{
    sc_hw hw = *k->hw;
    for (uint32_t i = 0; i < hw.n_dims; i++) {
        sc_dim *d = &hw.dim[i];
        if ((d->ports > 0) != (k->at->nodes > 1)) continue;
        d->bw *= fraction;
        d->port_bw *= fraction;
    }
    return hw;
}

/* Where a node is searched, the channels of the search at lower rates: another
 * search for each rate would take too long. */
static void slow_down(sc_channels *g, double fraction)
{
    sc_search *const all[] = {&g->ring, &g->tree, &g->nvls};
    for (size_t i = 0; i < SC_COUNT(all); i++) {
        if (g->nodes == 1) all[i]->intra *= fraction;
        all[i]->inter *= fraction;
    }
}

/* Of a pair that is known, `fewer` keeps the smaller number of blocks: what
 * carries the data of a slower link carries those of a faster one. */
static void add_choice(coll_choice c, bool fewer, coll_choice *out, uint32_t *n)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (out[i].algorithm != c.algorithm || out[i].protocol != c.protocol)
            continue;
        if (fewer && c.channels < out[i].channels) out[i].channels = c.channels;
        return;
    }
    if (*n < COLL_CHOICES) out[(*n)++] = c;
}

/* NCCL's choices on one machine, for this message and larger ones. */
static sc_status choices(const coll_query *k, const sc_hw *hw, double fraction,
                         const sc_nccl_options *o, uint32_t sizes,
                         coll_choice *out, uint32_t *n, sc_err *err)
{
    sc_channels g;
    sc_tuning t;
    SC_TRY(sc_coll_channels(hw, k->at->m, k->at->nodes, &g, err));
    if (sc_coll_wired(hw)) slow_down(&g, fraction);
    SC_TRY(sc_coll_tune_one(&g, o, k->coll, &t, err));
    for (uint32_t i = 0; i < sizes; i++) {
        sc_choice c;
        SC_TRY(sc_coll_select(&t, k->coll, ldexp(k->bytes, (int)i), 1, &c));
        add_choice((coll_choice){.algorithm = of_nccl[c.algo],
                                 .protocol = (coll_protocol)c.proto,
                                 .channels = c.n_channels,
                                 .fraction = channel_fraction(&g, o, c.algo)},
                   i == 0 && k->at->nodes > 1, out, n);
    }
    return SC_OK;
}

sc_status coll_select(const coll_query *k, int algorithm,
                      coll_choice out[COLL_CHOICES], uint32_t *n, sc_err *err)
{
    sc_nccl_options o = {0};
    *n = 0;
    if (!has_a_say(k, algorithm)) return SC_NO;
    if (k->hw->nccl_options != NULL) o = *k->hw->nccl_options;
    if (algorithm >= 0) o.algo = coll_nccl_name(algorithm);
    bool alone = k->hw->nccl_options != NULL;
    uint32_t sizes = alone ? 1 : LARGER_SIZES;
    sc_status s = choices(k, k->hw, 1, &o, sizes, out, n, err);
    if (s == SC_NO && algorithm < 0) return nothing_left(k, &o, err);
    SC_TRY(s);
    for (int i = 1; i < SLOWER_LINKS && !alone; i++) {
        double fraction = ldexp(1, -i);
        sc_hw hw = slower(k, fraction);
        bool wired = sc_coll_wired(k->hw);
        SC_TRY(
            choices(k, wired ? k->hw : &hw, fraction, &o, sizes, out, n, err));
    }
    return SC_OK;
}

sc_status coll_forced(const coll_query *k,
                      bool out[SC_N_ALGOS][COLL_N_PROTOCOLS], sc_err *err)
{
    const sc_nccl_options none = {0};
    sc_channels g;
    sc_tuning t;
    sc_choice c;
    memset(out, 0, sizeof(bool[SC_N_ALGOS][COLL_N_PROTOCOLS]));
    SC_TRY(sc_coll_channels(k->hw, k->at->m, k->at->nodes, &g, err));
    SC_TRY(sc_coll_tune_one(&g, &none, k->coll, &t, err));
    for (int a = 0; a < SC_N_NCCL_ALGOS; a++)
        for (coll_protocol p = COLL_LL; p < COLL_N_PROTOCOLS; p++)
            if (sc_coll_table(&t, k->coll, (sc_nccl_algo)a, (sc_nccl_proto)p,
                              k->bytes, 1, &c) == SC_OK)
                out[of_nccl[a]][p] = !coll_unusual(k, p);
    return SC_OK;
}
