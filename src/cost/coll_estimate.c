/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_estimate.c - the time of a collective by one algorithm and protocol:
 *
 *   base + steps * hop + bytes / rate
 *
 * for each scope. If phases overlap, the slower one counts. Rates are fractions
 * of nominal port rates.
 */
#include "coll/coll_search.h"
#include "cost/coll.h"
#include "hw/hw_arch.h"

#include <math.h>
#include <string.h>

const char *const coll_protocol_names[] = {"LL", "LL128", "Simple", NULL};

/* ---- what all estimates share */

static double param(const coll_query *k, sc_param p)
{
    return k->c->p[p];
}

_Static_assert(SC_P_LINK_AMPERE == SC_P_LINK_VOLTA + 1 &&
                   SC_P_LINK_HOPPER == SC_P_LINK_VOLTA + 2 &&
                   SC_P_LINK_BLACKWELL == SC_P_LINK_VOLTA + 3,
               "generations are in rows 0 to 3");

static double by_gen(const coll_query *k, sc_param volta)
{
    return k->c->p[(uint32_t)volta + k->gen];
}

static double ring_fraction(const coll_query *k, const sc_dim *d)
{
    if (k->pcie) return param(k, SC_P_PCIE_FRACTION);
    if (k->xgmi) return param(k, SC_P_XGMI);
    double fraction = by_gen(k, SC_P_LINK_VOLTA);
    if (d->kind != SC_DIM_SWITCH) return fraction;
    double m = k->at->m;
    return fraction * (1 - param(k, SC_P_PAIR_LOSS) / (m * m));
}

/* With PXN or without rails an all-to-all stays on its rails.  Otherwise
 * messages to other members of a node cross the spines. */
static double spread_rate(const coll_query *k)
{
    if (k->forwards || k->at->m < 2) return k->net;
    double cross = (k->at->m - 1.0) / k->at->m;
    double other =
        sc_net_bw(k->hw, k->at, SC_SCOPE_NET, SC_PATTERN_OTHER_RAILS) / cross;
    return other < k->net ? other : k->net;
}

static const sc_dim *network_of(const sc_hw *hw)
{
    for (uint32_t i = 0; i < hw->n_dims; i++)
        if (hw->dim[i].ports > 0) return &hw->dim[i];
    return NULL;
}

/* Flows of different groups meet on links above the leaves.  The busiest link
 * delays a collective, and the more leaves, the busier it is. */
static double shared_links(const coll_query *k, const sc_dim *d)
{
    double leaf = d->leaf > 0 ? d->leaf : param(k, SC_P_FABRIC_LEAF);
    double leaves = ceil(k->at->nodes / leaf);
    if (!(leaves > 1)) return 1;
    double flows = k->c->p[SC_P_FABRIC_FLOWS_UNKNOWN + (int)d->network];
    return 1 / (1 + sqrt(2 * log(leaves) / flows));
}

static void share_network(coll_query *k)
{
    const sc_dim *d = network_of(k->hw);
    if (d == NULL || k->at->nodes < 2) return;
    double fraction = shared_links(k, d);
    k->step = k->c->p[SC_P_FABRIC_STEP_UNKNOWN + (int)d->network];
    k->ring_step =
        d->network == SC_NETWORK_EFA ? param(k, SC_P_EFA_RING) : k->step;
    k->kind = d->network;
    k->net *= fraction;
    k->one_nic *= fraction;
    k->spread *= fraction;
    k->rings *= fraction;
}

/* A ring leaves a node through the adapter by which it entered.  Without PXN,
 * members that do not share a PCI switch with it reach it through the host's
 * memory.  Where every device has an adapter, no measurement shows this.
 * Bytes/s of the group's share of the adapters, or 0. */
static double staged_rate(const coll_query *k, bool pxn)
{
    const sc_dim *d = network_of(k->hw);
    if (d == NULL || pxn || k->pcie || k->rccl || k->at->m < 2) return 0;
    uint32_t devices = k->hw->node_size / d->ports; /* of one adapter */
    if (devices < 2 || k->at->apart < devices) return 0;
    return k->net / d->port_bw * param(k, SC_P_NET_STAGED);
}

static void net_rates(coll_query *k)
{
    const sc_nccl_options *o = k->hw->nccl_options;
    bool has_pxn = (k->rccl || sc_nccl_sm(k->hw) > 0) &&
                   k->hw->nccl != SC_NCCL_2_10_3 &&
                   !(o != NULL && o->pxn_disable);
    k->net = sc_net_bw(k->hw, k->at, SC_SCOPE_NET, SC_PATTERN_NEIGHBOURS);
    k->one_nic = sc_net_bw(k->hw, k->at, SC_SCOPE_NET, SC_PATTERN_PAIR);
    k->forwards = has_pxn && !k->pcie && k->at->m > 1;
    k->staged = staged_rate(k, has_pxn);
    k->spread = spread_rate(k);
    k->rings = k->net;
    if (o != NULL && o->cross_nic == 2)
        k->rings =
            sc_net_bw(k->hw, k->at, SC_SCOPE_NET, SC_PATTERN_OTHER_RAILS);
}

static sc_status node_rates(coll_query *k, sc_err *err)
{
    sc_wiring w;
    if (k->at->m > 1 && sc_coll_wired(k->hw)) {
        SC_TRY(sc_coll_wiring(k->hw, k->at->m, &w, err));
        k->node = w.ring;
        k->all_pairs = w.all_pairs;
        k->pair = w.pair;
        return SC_OK;
    }
    k->node = sc_net_bw(k->hw, k->at, SC_SCOPE_NODE, SC_PATTERN_NEIGHBOURS);
    k->all_pairs = sc_net_bw(k->hw, k->at, SC_SCOPE_NODE, SC_PATTERN_ALL_PAIRS);
    k->pair = sc_net_bw(k->hw, k->at, SC_SCOPE_NODE, SC_PATTERN_PAIR);
    return SC_OK;
}

sc_status coll_query_init(coll_query *k, const sc_cost *c, const sc_hw *hw,
                          sc_coll coll, double bytes, const sc_place *at,
                          sc_err *err)
{
    const sc_dim *d = sc_net_node_dim(hw, at);
    *k = (coll_query){.c = c, .hw = hw, .at = at, .coll = coll, .bytes = bytes};
    k->gen = sc_arch_of(hw->device->arch)->nccl_row;
    k->pcie = d->kind == SC_DIM_TREE;
    k->rccl =
        hw->device->vendor != NULL && strcmp(hw->device->vendor, "amd") == 0;
    k->xgmi = k->rccl && !k->pcie;
    SC_TRY(node_rates(k, err));
    net_rates(k);
    share_network(k);
    k->ring = k->node * ring_fraction(k, d);
    k->lat_node = sc_net_latency(hw, SC_SCOPE_NODE);
    k->lat_net = sc_net_latency(hw, SC_SCOPE_NET);
    return SC_OK;
}

/* ---- rates, hops, bases */

static double protocol_fraction(const coll_query *k, coll_protocol p)
{
    if (p == COLL_LL) return param(k, SC_P_LL_FRACTION);
    return p == COLL_LL128 ? by_gen(k, SC_P_LL128_VOLTA) : 1;
}

static bool in_switch(int algorithm)
{
    return algorithm == SC_ALGO_NVLS || algorithm == SC_ALGO_NVLS_TREE;
}

#define NVLS_LARGEST_CHUNK 131072.0

/* Synchronisation of a chunk in the switch costs as much as `lost` bytes. */
static double nvls_loss(const coll_query *k, double chunk)
{
    bool late = k->gen >= SC_NCCL_BLACKWELL;
    double lost = param(k, late ? SC_P_NVLS_CHUNK_BLACKWELL : SC_P_NVLS_CHUNK);
    return 1 + lost / chunk;
}

static double switch_rate(const coll_query *k)
{
    bool late = k->gen >= SC_NCCL_BLACKWELL;
    double rate = k->node * param(k, late ? SC_P_NVLS_BLACKWELL : SC_P_NVLS);
    if (k->at->nodes == 1) return rate;
    return rate * param(k, SC_P_NVLS_TREE) / nvls_loss(k, NVLS_LARGEST_CHUNK);
}

static double node_rate(const coll_query *k, int algorithm, coll_protocol p)
{
    if (in_switch(algorithm)) return switch_rate(k);
    double rate = k->ring * protocol_fraction(k, p);
    if (algorithm != SC_ALGO_TREE || p == COLL_LL) return rate;
    rate *= param(k, SC_P_TREE_FRACTION);
    return p == COLL_LL128 ? rate * param(k, SC_P_TREE_LL128) : rate;
}

static double net_rate(const coll_query *k, int algorithm, coll_protocol p)
{
    bool ring = algorithm == SC_ALGO_RING || algorithm == SC_ALGO_HIERARCHICAL;
    double rate = (ring ? k->rings : k->net) * param(k, SC_P_NET_W);
    if (algorithm == SC_ALGO_RING) rate *= by_gen(k, SC_P_NET_RING_VOLTA);
    if (algorithm == SC_ALGO_PAT) rate *= param(k, SC_P_NET_PAT);
    if (algorithm == SC_ALGO_TREE) rate *= param(k, SC_P_NET_TREE);
    if (k->staged > 0) rate = fmin(rate, k->staged);
    if (p == COLL_LL) return rate * param(k, SC_P_NET_LL);
    return p == COLL_LL128 ? rate * param(k, SC_P_NET_LL128) : rate;
}

static double node_hop(const coll_query *k, int algorithm, coll_protocol p)
{
    if (in_switch(algorithm)) return k->lat_node;
    double h = p == COLL_LL      ? by_gen(k, SC_P_HOP_LL_VOLTA)
               : p == COLL_LL128 ? param(k, SC_P_HOP_LL128)
                                 : param(k, SC_P_HOP_SIMPLE);
    if (k->pcie) h *= param(k, SC_P_PCIE_HOP);
    return h > k->lat_node ? h : k->lat_node;
}

static double net_hop(const coll_query *k, int algorithm, coll_protocol p)
{
    static const sc_param tree[] = {SC_P_XTREE_LL, SC_P_XTREE_LL128,
                                    SC_P_XTREE_SIMPLE};
    static const sc_param ring[] = {SC_P_XRING_LL, SC_P_XRING_LL128,
                                    SC_P_XRING_SIMPLE};
    double step = algorithm == SC_ALGO_RING ? k->ring_step : k->step;
    double fixed =
        k->lat_net +
        step * (p == COLL_SIMPLE ? 1 : param(k, SC_P_FABRIC_STEP_SMALL)) +
        (k->rccl ? param(k, SC_P_NET_RCCL_STEP) : 0);
    if (in_switch(algorithm)) return param(k, SC_P_XTREE_NVLS) + fixed;
    if (algorithm == SC_ALGO_COLLNET) return param(k, SC_P_XCOLLNET) + fixed;
    const sc_param *hop = algorithm == SC_ALGO_TREE ? tree : ring;
    return param(k, hop[p]) + fixed;
}

static double base(const coll_query *k, int algorithm, coll_protocol p)
{
    if (in_switch(algorithm))
        return param(k, SC_P_NVLS_BASE) +
               (k->at->nodes > 1 ? param(k, SC_P_NVLS_TREE_BASE) : 0);
    if (p == COLL_LL) return by_gen(k, SC_P_BASE_LL_VOLTA);
    if (p == COLL_SIMPLE) return by_gen(k, SC_P_BASE_SIMPLE_VOLTA);
    bool flags = k->at->nodes > 1 && !k->rccl;
    return by_gen(k, SC_P_BASE_LL128_VOLTA) +
           (flags ? param(k, SC_P_NET_LL128_BASE) : 0);
}

/* ---- sums over phases */

static void sum_phases(const sc_phases *ph, double node_h, double net_h,
                       coll_estimate *q)
{
    double pending = 0;
    for (uint32_t i = 0; i < ph->n; i++) {
        const sc_phase *p = &ph->p[i];
        bool node = p->scope == SC_SCOPE_NODE;
        double t = p->bytes / (node ? q->node_bw : q->net_bw);
        q->hops += p->steps * (node ? node_h : net_h);
        if (p->overlaps) {
            pending = pending > t ? pending : t;
        } else {
            q->transfer += pending;
            pending = t;
        }
    }
    q->transfer += pending;
}

static void bound(const sc_phases *ph, double node, double net,
                  coll_estimate *q)
{
    double a = sc_phases_bytes(ph, SC_SCOPE_NODE);
    double b = sc_phases_bytes(ph, SC_SCOPE_NET);
    double *t = q->link_s;
    t[SC_SCOPE_NODE] = a > 0 ? a / node : 0;
    t[SC_SCOPE_NET] = b > 0 ? b / net : 0;
    q->bound = t[0] > t[1] ? t[0] : t[1];
}

static bool has_scopes(const sc_phases *ph, double node, double net)
{
    return !(sc_phases_bytes(ph, SC_SCOPE_NODE) > 0 && !(node > 0)) &&
           !(sc_phases_bytes(ph, SC_SCOPE_NET) > 0 && !(net > 0));
}

/* A pipeline that needs `full` seconds to fill is filled in part by a short
 * message. */
static double ramp(double full, double t)
{
    return full > 0 && t > 0 ? full * t * t / (full * full + t * t) : 0;
}

static double nvls_channels(const coll_query *k)
{
    return param(k, k->gen >= SC_NCCL_BLACKWELL ? SC_P_NVLS_CHANNELS_BLACKWELL
                                                : SC_P_NVLS_CHANNELS);
}

/* NCCL takes larger chunks from some sizes on, given in rounds of all channels
 * and heads; a larger message is never faster than the largest with smaller
 * chunks.  Over several nodes chunks are the largest. */
static double nvls_transfer(const coll_query *k, double seconds)
{
    static const double chunk[] = {16384, 32768, 65536, NVLS_LARGEST_CHUNK};
    static const double rounds[] = {2 * 32768.0, 8 * 65536.0, 64 * 131072.0};
    if (k->at->nodes > 1) return seconds;
    double round = k->at->m * nvls_channels(k);
    double most = 0;
    for (size_t i = 0; i < SC_COUNT(chunk); i++) {
        bool last = i + 1 == SC_COUNT(chunk) || k->bytes < rounds[i] * round;
        double part = last ? 1 : rounds[i] * round / k->bytes;
        most = fmax(most, seconds * part * nvls_loss(k, chunk[i]));
        if (last) break;
    }
    return most;
}

static void fill_switch(const coll_query *k, coll_estimate *q)
{
    double pipe = param(k, SC_P_NVLS_PIPE) / q->node_bw;
    q->transfer = nvls_transfer(k, q->transfer);
    q->fill =
        ramp(k->at->nodes > 1 ? param(k, SC_P_NET_RAMP) : pipe, q->transfer);
}

/* Members copy their own part from the input to the output. */
static double own_part(const coll_query *k, sc_param rate)
{
    if (k->pcie || k->rccl || !(k->node > 0)) return 0;
    return k->bytes / k->at->n / (k->node * param(k, rate));
}

static void fill_ring(const coll_query *k, coll_estimate *q)
{
    if (q->protocol != COLL_SIMPLE) return;
    if (k->at->nodes > 1) {
        q->fill = ramp(param(k, SC_P_NET_RAMP), q->transfer);
        return;
    }
    if (k->coll == SC_ALL_GATHER) q->transfer += own_part(k, SC_P_GATHER_COPY);
    if (k->coll == SC_REDUCE_SCATTER)
        q->transfer += own_part(k, SC_P_SCATTER_COPY);
    q->fill = ramp(param(k, SC_P_RING_RAMP), q->transfer);
}

void coll_finish(coll_estimate *q)
{
    double t = q->base + q->hops + q->fill + q->transfer;
    q->seconds = t > q->bound ? t : q->bound;
}

/* NCCL limits the bus bandwidth of LL over several nodes. */
static double ll_limit(const coll_query *k)
{
    return sc_coll_bus_factor(k->coll, k->at->n) * k->bytes /
           by_gen(k, SC_P_NET_LL_MAX_VOLTA);
}

static bool enabled(const coll_query *k, int algorithm, coll_protocol p)
{
    if (in_switch(algorithm) || algorithm == SC_ALGO_DIRECT ||
        algorithm == SC_ALGO_COLLNET || algorithm == SC_ALGO_PAT)
        return p == COLL_SIMPLE;
    return p != COLL_LL128 || !k->pcie;
}

static void estimate_pipelined(const coll_query *k, const sc_phases *ph,
                               coll_estimate *q)
{
    int a = q->algorithm;
    coll_protocol p = q->protocol;
    q->node_bw = node_rate(k, a, p);
    q->net_bw = net_rate(k, a, p);
    q->base = base(k, a, p);
    bound(ph, k->node, k->net, q);
    sum_phases(ph, node_hop(k, a, p), net_hop(k, a, p), q);
    if (in_switch(a))
        fill_switch(k, q);
    else
        fill_ring(k, q);
    if (p == COLL_LL && k->at->nodes > 1) {
        double t = ll_limit(k);
        if (t > q->transfer) q->transfer = t;
    }
    coll_finish(q);
}

/* ---- point to point */

/* The fixed time of one transfer, which grows up to 64 KiB. */
static double p2p_base(const coll_query *k, double message)
{
    bool net = k->at->nodes > 1;
    double t0 = param(k, net ? SC_P_P2P_NET_T0 : SC_P_P2P_T0);
    double t1 = param(k, net ? SC_P_P2P_NET_T1 : SC_P_P2P_T1);
    double latency =
        net ? k->lat_net + k->step * param(k, SC_P_FABRIC_STEP_SMALL)
            : k->lat_node;
    double part = message / 65536;
    return t0 + (t1 - t0) * (part < 1 ? part : 1) + latency;
}

static double fourth(double x)
{
    return x * x * x * x;
}

/* The fixed time of the kernel and a long transfer overlap. */
static void estimate_transfer(const coll_query *k, coll_estimate *q)
{
    q->base = p2p_base(k, k->bytes);
    double t = sqrt(sqrt(fourth(q->base) + fourth(q->transfer)));
    q->seconds = t > q->bound ? t : q->bound;
}

/* Bytes that leave by another member's NIC, and therefore cross its port
 * first. */
static double forwarded(const coll_query *k)
{
    if (k->coll != SC_ALL_TO_ALL || !k->forwards || k->at->nodes < 2) return 0;
    double out = (double)(k->at->n - k->at->m) / k->at->n * k->bytes;
    return out * (k->at->m - 1.0) / k->at->m;
}

static double direct_fraction(const coll_query *k)
{
    if (k->pcie) return param(k, SC_P_PCIE_FRACTION);
    return param(k, k->xgmi ? SC_P_XGMI : SC_P_P2P_FRACTION);
}

static bool estimate_direct(const coll_query *k, sc_phases *ph,
                            coll_estimate *q)
{
    bool pair = k->coll == SC_SENDRECV;
    double node = pair ? k->pair : k->all_pairs;
    double net = pair ? k->one_nic : k->spread;
    if (!has_scopes(ph, node, net)) return false;
    for (uint32_t i = 0; i < ph->n; i++)
        if (ph->p[i].scope == SC_SCOPE_NODE) ph->p[i].bytes += forwarded(k);
    q->port_bytes = sc_phases_bytes(ph, SC_SCOPE_NODE);
    bound(ph, node, net, q);
    q->node_bw = node * direct_fraction(k);
    q->net_bw = net * param(k, pair      ? SC_P_NET_W
                               : k->rccl ? SC_P_A2A_NET_RCCL
                                         : SC_P_A2A_NET);
    sum_phases(ph, 0, 0, q);
    if (pair) {
        estimate_transfer(k, q);
        return true;
    }
    /* Eight peers per batch of kernels. */
    uint32_t batches = (k->at->n - 1 + 7) / 8;
    q->base = p2p_base(k, k->bytes / k->at->n);
    if (k->coll == SC_ALL_TO_ALL && k->at->nodes > 1)
        q->base += param(k, SC_P_A2A_NET_BASE);
    if (k->coll == SC_ALL_TO_ALL && k->at->nodes == 1) {
        q->base += by_gen(k, SC_P_A2A_BASE_VOLTA) - param(k, SC_P_P2P_T0);
        q->transfer +=
            own_part(k, (sc_param)(SC_P_A2A_COPY_VOLTA + (int)k->gen));
        q->fill = ramp(param(k, SC_P_A2A_RAMP), q->transfer);
    }
    q->hops = (batches * (k->coll == SC_ALL_REDUCE ? 2u : 1u) - 1) *
              param(k, SC_P_HOP_SIMPLE);
    coll_finish(q);
    return true;
}

/* ---- all of them */

/* Channels to one peer of another node: one per 14 GB/s, at least 2, a power of
 * two (NCCL 2.30 init.cc, ncclTopoGetNchannels). */
static double peer_channels(const coll_query *k)
{
    double n = 2;
    while (n * 14e9 < k->net && n < 64) n *= 2;
    return n;
}

/* The number of channels if the library does not choose: one for this many
 * bytes. */
static uint32_t usual_channels(const coll_query *k, const coll_estimate *q)
{
    static const double worth[] = {4096, 5120, 32768};
    double most = by_gen(k, SC_P_CHANNELS_VOLTA);
    if (in_switch(q->algorithm)) most = nvls_channels(k);
    if (q->algorithm == SC_ALGO_DIRECT) most = param(k, SC_P_P2P_CHANNELS);
    if (k->coll == SC_SENDRECV && k->at->nodes > 1)
        most = fmin(most, peer_channels(k));
    double n = ceil(k->bytes / worth[q->protocol]);
    if (n > most) n = most;
    return n < 1 ? 1 : (uint32_t)n;
}

/* Estimates of one algorithm, one per protocol; 0: it cannot run here. */
static uint32_t estimate_algorithm(const coll_query *k, int algorithm,
                                   coll_estimate *out)
{
    uint32_t n = 0;
    sc_phases ph;
    if (!sc_algorithm_phases(algorithm, k->coll, k->bytes, k->at, k->hw, &ph))
        return 0;
    coll_estimate q0 = {.algorithm = algorithm};
    q0.port_bytes = sc_phases_bytes(&ph, SC_SCOPE_NODE);
    q0.nic_bytes = sc_phases_bytes(&ph, SC_SCOPE_NET);
    if (algorithm == SC_ALGO_DIRECT) {
        q0.protocol = COLL_SIMPLE;
        q0.channels = usual_channels(k, &q0);
        out[0] = q0;
        return estimate_direct(k, &ph, &out[0]) ? 1 : 0;
    }
    if (!has_scopes(&ph, k->node, k->net)) return 0;
    for (coll_protocol p = COLL_LL; p < COLL_N_PROTOCOLS; p++) {
        if (!enabled(k, algorithm, p)) continue;
        out[n] = q0;
        out[n].protocol = p;
        out[n].channels = usual_channels(k, &out[n]);
        estimate_pipelined(k, &ph, &out[n++]);
    }
    return n;
}

/* LL128 between nodes needs adapters that share a switch with their devices;
 * no log of EFA or TCPX shows it. */
bool coll_unusual(const coll_query *k, coll_protocol p)
{
    if (k->at->nodes == 1 || k->rccl) return false;
    return p == COLL_LL128 && k->kind >= SC_NETWORK_EFA;
}

uint32_t coll_estimates(const coll_query *k, int algorithm,
                        coll_estimate out[COLL_ESTIMATES])
{
    static const int usual[] = {SC_ALGO_RING,    SC_ALGO_TREE,
                                SC_ALGO_NVLS,    SC_ALGO_NVLS_TREE,
                                SC_ALGO_COLLNET, SC_ALGO_PAT};
    if (algorithm >= 0) return estimate_algorithm(k, algorithm, out);
    if (k->coll == SC_ALL_TO_ALL || k->coll == SC_SENDRECV)
        return estimate_algorithm(k, SC_ALGO_DIRECT, out);
    bool spread = k->coll == SC_ALL_REDUCE && k->at->nodes > 1;
    uint32_t n = 0;
    for (size_t i = 0; i < SC_COUNT(usual); i++) {
        if (usual[i] == SC_ALGO_TREE && !spread) continue;
        if (in_switch(usual[i]) && k->gen < SC_NCCL_HOPPER) continue;
        n += estimate_algorithm(k, usual[i], out + n);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!coll_unusual(k, out[i].protocol)) out[kept++] = out[i];
    return kept;
}
