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

static const int of_nccl[SC_N_NCCL_ALGOS] = {
    [SC_NCCL_TREE] = SC_ALGO_TREE,
    [SC_NCCL_RING] = SC_ALGO_RING,
    [SC_NCCL_COLLNET_DIRECT] = SC_ALGO_COLLNET,
    [SC_NCCL_COLLNET_CHAIN] = SC_ALGO_COLLNET,
    [SC_NCCL_NVLS] = SC_ALGO_NVLS,
    [SC_NCCL_NVLS_TREE] = SC_ALGO_NVLS_TREE,
    [SC_NCCL_PAT] = SC_ALGO_PAT};

/* The name in NCCL_ALGO of one of our algorithms; NULL: NCCL has none. */
static const char *nccl_list(int algorithm)
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

/* If the user names an algorithm, the cheapest protocol is used unless the
 * cluster sets the variables of the library. */
static bool has_a_say(const coll_query *k, int algorithm)
{
    if (k->coll == SC_ALL_TO_ALL || k->coll == SC_SENDRECV) return false;
    if (algorithm >= 0 &&
        (k->hw->nccl_options == NULL || nccl_list(algorithm) == NULL))
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

sc_status coll_select(const coll_query *k, int algorithm, coll_choice *out,
                      sc_err *err)
{
    sc_channels g;
    sc_choice c;
    sc_nccl_options o = {0};
    if (!has_a_say(k, algorithm)) return SC_NO;
    SC_TRY(sc_coll_channels(k->hw, k->at->m, k->at->nodes, &g, err));
    if (k->hw->nccl_options != NULL) o = *k->hw->nccl_options;
    if (algorithm >= 0) o.algo = nccl_list(algorithm);
    sc_status s = sc_coll_choose(&g, &o, k->coll, k->bytes, &c, err);
    if (s == SC_NO && algorithm < 0) return nothing_left(k, &o, err);
    SC_TRY(s);
    *out = (coll_choice){.algorithm = of_nccl[c.algo],
                         .protocol = (coll_protocol)c.proto,
                         .channels = c.n_channels,
                         .share = channel_fraction(&g, &o, c.algo)};
    return SC_OK;
}
