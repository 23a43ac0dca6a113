/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.c - NCCL's table of latencies and bandwidths, and its choice.
 *
 * t = L * operations + V / BW.  The table only chooses: above 1 MiB its times
 * are a tenth too short on average, and the choice is not always the fastest.
 *
 * Numbers in this file are NCCL's, from src/graph/tuning.cc of 2.10.3 and of
 * 2.30.7 (ncclTopoTuneModel, ncclTopoGetAlgoTime: factors, caps, latencies,
 * what is enabled), src/enqueue.cc (channels and threads of one message) and
 * src/graph/connect.cc (channels of a communicator); `old` is 2.10.3.
 */
#include "coll/tuning.h"

#include <math.h>
#include <string.h>

typedef struct maker {
    const sc_channels *g;
    const tuning_table *table;
    const sc_nccl_options *options;
    sc_tuning *out;
    bool old;
    double n, nodes, local; /* ranks, nodes, ranks per node */
    double depth;           /* depth of a tree over nodes */
    tuning_gen gen;         /* generation of the GPUs */
    uint32_t column;        /* column of the caps */
    double ll_max;
} maker;

static const sc_search *graph_of(const maker *k, sc_nccl_algo a)
{
    if (a == SC_NCCL_RING) return &k->g->ring;
    if (a == SC_NCCL_NVLS || a == SC_NCCL_NVLS_TREE) return &k->g->nvls;
    return &k->g->tree;
}

/* The number of channels: ring and tree have equally many; CollNet and PAT use
 * the tree's. */
static uint32_t channels_of(const maker *k, sc_nccl_algo a)
{
    return a == SC_NCCL_NVLS || a == SC_NCCL_NVLS_TREE ? k->g->nvls.n_channels
                                                       : k->g->n_channels;
}

static bool is_collnet(sc_nccl_algo a)
{
    return a == SC_NCCL_COLLNET_DIRECT || a == SC_NCCL_COLLNET_CHAIN;
}

static bool is_nvls(sc_nccl_algo a)
{
    return a == SC_NCCL_NVLS || a == SC_NCCL_NVLS_TREE;
}

static bool halves(sc_coll c)
{
    return c == SC_ALL_GATHER || c == SC_REDUCE_SCATTER;
}

static double steps(const maker *k, sc_coll c)
{
    if (c == SC_ALL_REDUCE) return 2 * (k->n - 1);
    return halves(c) ? k->n - 1 : k->n;
}

/* ---- bandwidth */

static double ring_bw(const maker *k, sc_coll c, sc_nccl_proto p, double bus)
{
    double n = channels_of(k, SC_NCCL_RING);
    double cap = n * k->table->ring_ll128.bw[k->gen][k->column];
    bool reduces = c == SC_ALL_REDUCE || c == SC_REDUCE;
    if (p == SC_NCCL_LL) {
        double fraction = !k->old                   ? 0.5
                          : k->nodes > 1 || reduces ? 1.0 / 4
                                                    : 1.0 / 3;
        return fmin(k->ll_max, bus * fraction);
    }
    if (p == SC_NCCL_LL128)
        return fmin(bus * (k->old && k->local < 2 ? 0.7 : 0.92), cap);
    return bus;
}

static double tree_bw(const maker *k, sc_nccl_proto p, double bus)
{
    double n = channels_of(k, SC_NCCL_TREE);
    bus = fmin(bus * 0.92, n * k->table->tree.bw[k->gen][k->column]);
    if (p == SC_NCCL_LL) bus = fmin(bus / 3.8, k->ll_max);
    if (p == SC_NCCL_LL128)
        bus = fmin(bus * (k->nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                   n * k->table->tree_ll128.bw[k->gen][k->column]);
    return !k->old && k->g->tree.pattern == SC_TOPO_TREE ? bus * 0.85 : bus;
}

static double nvls_bw(const maker *k, sc_coll c, sc_nccl_algo a)
{
    const sc_search *s = &k->g->nvls;
    double n = s->n_channels;
    if (n < 2 || (halves(c) && (a == SC_NCCL_NVLS_TREE || k->local > 32)))
        return 0;
    double inside = s->intra * k->table->nvls_efficiency[k->gen] * (n - 1) / n;
    inside *= c == SC_ALL_REDUCE ? 2 : (k->local - 1) / k->local;
    bool tree = a == SC_NCCL_NVLS_TREE;
    double bw = inside;
    if (k->nodes > 1) bw = fmin(bw, s->inter * (tree && k->nodes <= 2 ? 2 : 1));
    if (tree) bw = fmin(bw, k->table->nvls_tree.bw[k->gen][k->column]);
    return n * bw;
}

static double collnet_bw(const maker *k, sc_coll c, sc_nccl_algo a, double bus)
{
    const sc_search *s = &k->g->tree;
    if (k->old || a == SC_NCCL_COLLNET_CHAIN)
        return k->old && a == SC_NCCL_COLLNET_CHAIN ? 0 : bus;
    if (halves(c)) return k->local * fmin(s->intra, s->inter * 0.9);
    double per_nic = k->local / channels_of(k, a);
    bus /= per_nic - (per_nic - 1) / 2;
    return k->gen >= TUNING_HOPPER ? bus * 0.85 : bus;
}

/* Bus bandwidth of a pair; 0 if the pair does not exist. */
static double bus_bw(const maker *k, sc_coll c, sc_nccl_algo a, sc_nccl_proto p)
{
    const sc_search *s = graph_of(k, a);
    bool inside = k->nodes <= 2 || is_collnet(a);
    double bus = channels_of(k, a) * (inside ? s->intra : s->inter);
    if (k->old && k->g->min_sm == 80 && k->g->max_sm == 80)
        bus = fmin(bus, 235);
    switch (a) {
    case SC_NCCL_RING: return ring_bw(k, c, p, bus);
    case SC_NCCL_TREE: return tree_bw(k, p, bus);
    case SC_NCCL_PAT: return bus * 0.75;
    case SC_NCCL_NVLS:
    case SC_NCCL_NVLS_TREE: return nvls_bw(k, c, a);
    default: return collnet_bw(k, c, a, bus);
    }
}

/* ---- latency */

static double net_overhead(const maker *k)
{
    return k->g->arch == SC_CPU_X86 && k->g->vendor == SC_CPU_AMD ? 2 : 1;
}

/* Latency of a hop in the node and of one between nodes. */
typedef struct hops {
    double inside, across;
    tuning_wire wire; /* in the node */
} hops;

static hops hops_of(const maker *k, sc_nccl_algo a, sc_nccl_proto p)
{
    const sc_search *s = graph_of(k, a);
    hops h = {.wire =
                  s->type_intra == SC_PATH_NVL ? TUNING_NVLINK : TUNING_PCI};
    h.inside = k->table->hop[h.wire][a][p];
    if (!k->old && k->g->arch == SC_CPU_POWER && h.wire == TUNING_PCI &&
        a == SC_NCCL_TREE && p == SC_NCCL_SIMPLE)
        h.inside = k->table->hop[TUNING_PCI][SC_NCCL_RING][p];
    h.across = k->table->hop[TUNING_NET][a][p];
    if (k->old) {
        if (k->nodes > 1 && p == SC_NCCL_LL) h.inside *= 1.8;
        return h;
    }
    /* with one GPU per node there is no overlap */
    if (k->local == 1) h.across = k->table->hop[TUNING_NET][SC_NCCL_TREE][p];
    h.across += s->net_latency_us * (p == SC_NCCL_SIMPLE ? 2 : 1);
    return h;
}

static double ring_latency(const maker *k, sc_coll c, sc_nccl_proto p, hops h)
{
    tuning_wire wire = k->nodes > 1 ? TUNING_NET : h.wire;
    double n = steps(k, c);
    if (c == SC_BROADCAST || c == SC_REDUCE) {
        if (k->g->ring.same_channels)
            return k->table->hop[wire][SC_NCCL_RING][p];
        sc_nccl_algo chunk = p == SC_NCCL_SIMPLE ? SC_NCCL_TREE : SC_NCCL_RING;
        return n * k->table->hop[wire][chunk][p];
    }
    double between = (c == SC_ALL_REDUCE ? 2 : 1) * (k->nodes - 1);
    if (!k->old && k->nodes > 1)
        h.inside =
            fmax(h.inside, net_overhead(k) * (p == SC_NCCL_SIMPLE ? 3 : 1));
    return (n - between) * h.inside + between * h.across;
}

static double latency(const maker *k, sc_coll c, sc_nccl_algo a,
                      sc_nccl_proto p)
{
    hops h = hops_of(k, a, p);
    double base = k->table->base[a][p], depth = k->depth;
    double others = k->local - 1;
    switch (a) {
    case SC_NCCL_RING: return base + ring_latency(k, c, p, h);
    case SC_NCCL_TREE: return base + 2 * (others * h.inside + depth * h.across);
    case SC_NCCL_COLLNET_DIRECT:
        return base +
               2 * (fmin(1, others) * h.inside +
                    others * k->table->collnet_arity_us) +
               h.across;
    case SC_NCCL_COLLNET_CHAIN: return base + 2 * others * h.inside + h.across;
    case SC_NCCL_NVLS: return h.inside + (k->nodes > 1 ? h.across : 0);
    case SC_NCCL_NVLS_TREE: return base + h.inside + 2 * depth * h.across;
    default: return base + depth * h.across / 3.5 + k->n * 2.8; /* PAT */
    }
}

/* ---- what is enabled */

static bool has_ll128(const maker *k, sc_nccl_algo a)
{
    const sc_search *s = graph_of(k, a);
    uint32_t least = k->g->min_sm, most = k->g->max_sm;
    if (k->old)
        return s->type_inter <= SC_PATH_PXB && s->type_intra <= SC_PATH_NVL &&
               least == most && (least == 70 || least == 80);
    return s->type_inter <= (least >= 90 ? SC_PATH_PXN : SC_PATH_PXB) &&
           s->type_intra <= SC_PATH_NVB && least >= 70 &&
           (least == most || least >= 90);
}

/* Whether NCCL has the algorithm for the collective. */
static bool has_algo(const maker *k, sc_coll c, sc_nccl_algo a)
{
    bool collnet = k->options->collnet && k->nodes > 1;
    if (c == SC_ALL_TO_ALL) return false;
    if (a == SC_NCCL_RING) return true;
    if (c == SC_BROADCAST || c == SC_REDUCE) return false;
    if (k->old)
        return c == SC_ALL_REDUCE &&
               (a == SC_NCCL_TREE || (a == SC_NCCL_COLLNET_DIRECT && collnet));
    switch (a) {
    case SC_NCCL_TREE: return c == SC_ALL_REDUCE;
    case SC_NCCL_NVLS: return k->nodes == 1 || collnet;
    case SC_NCCL_NVLS_TREE: return c == SC_ALL_REDUCE && k->nodes > 1;
    case SC_NCCL_PAT: return halves(c) && k->local == 1 && k->g->min_sm >= 60;
    case SC_NCCL_COLLNET_DIRECT:
        return collnet && k->g->nvswitch && k->local <= 8;
    default: return collnet && c == SC_ALL_REDUCE;
    }
}

static void fill_cell(const maker *k, sc_coll c, sc_nccl_algo a,
                      sc_nccl_proto p)
{
    sc_tuning_cell *cell = &k->out->cell[c][a][p];
    double bus = bus_bw(k, c, a, p);
    double ratio = a == SC_NCCL_RING || is_nvls(a) ? k->n / steps(k, c) : 0.5;
    /* later versions change only the ring's ratio */
    if (!k->old && a != SC_NCCL_RING && halves(c)) ratio = 1;
    cell->bandwidth = bus * ratio;
    cell->latency_us = latency(k, c, a, p);
}

static void fill_protocols(const maker *k, sc_coll c, sc_nccl_algo a,
                           const bool *proto)
{
    bool simple_only = is_nvls(a) || is_collnet(a) || a == SC_NCCL_PAT;
    for (int p = 0; p < SC_N_NCCL_PROTOS; p++) {
        if (!proto[p] || (simple_only && p != SC_NCCL_SIMPLE)) continue;
        if (p == SC_NCCL_LL128 && k->options->proto == NULL && !has_ll128(k, a))
            continue;
        fill_cell(k, c, a, (sc_nccl_proto)p);
    }
}

static sc_pos blamed(sc_pos given, const char *variable)
{
    return given.file != NULL ? given : sc_pos_file(variable);
}

/* Fills the rows of the collectives from `first` to before `end`. */
static sc_status fill(const maker *k, int first, int end, sc_err *err)
{
    bool algo[SC_N_TUNED_COLLS * SC_N_NCCL_ALGOS];
    bool proto[SC_N_TUNED_COLLS * SC_N_NCCL_PROTOS];
    memset(algo, true, sizeof algo);
    memset(proto, true, sizeof proto);
    SC_TRY(tuning_list(blamed(k->options->algo_pos, "NCCL_ALGO"),
                       k->options->algo, sc_nccl_algo_names, SC_N_NCCL_ALGOS,
                       algo, err));
    SC_TRY(tuning_list(blamed(k->options->proto_pos, "NCCL_PROTO"),
                       k->options->proto, sc_nccl_proto_names, SC_N_NCCL_PROTOS,
                       proto, err));
    for (int c = first; c < end; c++)
        for (int a = 0; a < SC_N_NCCL_ALGOS; a++) {
            bool on = has_algo(k, (sc_coll)c, (sc_nccl_algo)a);
            /* 2.10 uses NCCL_ALGO for all-reduce only. */
            if (!k->old || c == SC_ALL_REDUCE)
                on = on && algo[c * SC_N_NCCL_ALGOS + a];
            if (on)
                fill_protocols(k, (sc_coll)c, (sc_nccl_algo)a,
                               &proto[(size_t)c * SC_N_NCCL_PROTOS]);
        }
    return SC_OK;
}

/* ---- channels */

static void fill_channels(const maker *k)
{
    const sc_search *ring = &k->g->ring;
    uint32_t most = k->table->max_channels, n = 2 * k->g->n_channels;
    if (!k->old && k->g->min_sm >= 90 && k->nodes > 1 && ring->intra > 45 &&
        n < 16)
        n *= 2;
    if (n > most) n = most;
    uint32_t lo = k->options->min_channels, hi = k->options->max_channels;
    if (hi > 0 && n > hi) n = hi;
    if (lo > n) n = lo < most ? lo : most;
    k->out->n_channels = n;
    uint32_t nvls = k->gen < TUNING_BLACKWELL ? 16 : k->nodes > 1 ? 32 : 24;
    if (hi > 0 && nvls > hi) nvls = hi;
    if (lo > nvls) nvls = lo < most ? lo : most;
    k->out->nvls_channels = k->g->nvls.n_channels >= 2 ? nvls : 0;
    for (int a = 0; a < SC_N_NCCL_ALGOS; a++)
        for (int p = 0; p < SC_N_NCCL_PROTOS; p++) {
            bool wide = a != SC_NCCL_RING && a != SC_NCCL_TREE;
            k->out->threads[a][p] =
                p == SC_NCCL_LL128 || (wide && !k->old) ? 640 : 512;
        }
    if (ring->intra * ring->n_channels <= 12)
        k->out->threads[SC_NCCL_RING][SC_NCCL_SIMPLE] = 256;
}

static tuning_gen generation(const sc_channels *g)
{
    if (g->version == SC_NCCL_2_10_3)
        return g->min_sm == 80 && g->max_sm == 80 ? TUNING_AMPERE
                                                  : TUNING_VOLTA;
    return g->min_sm >= 100  ? TUNING_BLACKWELL
           : g->min_sm >= 90 ? TUNING_HOPPER
           : g->min_sm >= 80 ? TUNING_AMPERE
                             : TUNING_VOLTA;
}

/* Rows of the collectives from `first` on, before `end`; others are not
 * written. */
static sc_status tune(const sc_channels *g, const sc_nccl_options *options,
                      int first, int end, sc_tuning *out, sc_err *err)
{
    static const sc_nccl_options none;
    memset(out->cell[first], 0, (size_t)(end - first) * sizeof out->cell[0]);
    out->version = g->version;
    out->n = g->n_local * g->nodes;
    out->nodes = g->nodes;
    out->min_sm = g->min_sm;
    out->x86 = g->arch == SC_CPU_X86;
    maker k = {.g = g,
               .table = &coll_tuning[g->version],
               .options = options == NULL ? &none : options,
               .out = out,
               .old = g->version == SC_NCCL_2_10_3,
               .n = out->n,
               .nodes = g->nodes,
               .local = g->n_local,
               .depth = floor(log2(g->nodes)),
               .gen = generation(g),
               .column = g->nodes <= 2 ? g->nodes - 1 : 2};
    if (out->n < 2)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "a communicator of one member has no algorithm");
    tuning_gen row = g->nodes == 1             ? k.gen
                     : g->vendor == SC_CPU_AMD ? TUNING_AMPERE
                                               : TUNING_VOLTA;
    k.ll_max = k.table->ll.bw[row][k.column];
    SC_TRY(fill(&k, first, end, err));
    fill_channels(&k);
    return SC_OK;
}

sc_status sc_coll_tune(const sc_channels *g, const sc_nccl_options *options,
                       sc_tuning *out, sc_err *err)
{
    sc_tuning t;
    SC_TRY(tune(g, options, 0, SC_N_TUNED_COLLS, &t, err));
    *out = t;
    return SC_OK;
}

/* ---- one message */

/* Bytes per thread below which another channel does not pay. */
static double threshold(const sc_tuning *t, sc_nccl_algo a, sc_nccl_proto p)
{
    if (is_collnet(a) && p == SC_NCCL_SIMPLE) return 512;
    if (p == SC_NCCL_SIMPLE) return 64;
    return a == SC_NCCL_RING && p == SC_NCCL_LL ? 8.0 * t->n : 8;
}

static void size_kernel(const sc_tuning *t, double bytes, sc_choice *c)
{
    double per_thread = threshold(t, c->algo, c->proto);
    c->n_channels = t->n_channels;
    c->n_threads = t->threads[c->algo][c->proto];
    if (is_nvls(c->algo)) {
        c->n_channels = t->nvls_channels;
        return;
    }
    while (c->n_channels > 1 &&
           bytes < (double)c->n_channels * c->n_threads * per_thread)
        c->n_channels--;
    while (c->n_threads % 128 == 0 &&
           bytes < (double)c->n_channels * c->n_threads * per_thread)
        c->n_threads /= 2;
}

/* The power of two of the size, from 64 bytes on; -1: it is not corrected. */
static int size_of(const sc_tuning *t, double bytes)
{
    if (bytes >= 64) return (int)floor(log2(bytes / 64));
    return t->version == SC_NCCL_2_10_3 ? 0 : -1;
}

/* NCCL's corrections of the table at some sizes. */
static void correct(const sc_tuning *t, sc_coll coll, sc_nccl_algo algo,
                    sc_nccl_proto proto, double bytes, int size,
                    sc_tuning_cell *c)
{
    bool old = t->version == SC_NCCL_2_10_3;
    bool nvls_tree = algo == SC_NCCL_NVLS_TREE && t->min_sm >= 100 && t->x86;
    int sizes = nvls_tree ? TUNING_SIZES : TUNING_SIZES - 1;
    if (coll != SC_ALL_REDUCE) return;
    if ((algo == SC_NCCL_TREE || nvls_tree) && size >= 0 && size < sizes)
        c->bandwidth *= coll_tree_correction[proto][size];
    if (algo != SC_NCCL_RING || proto != SC_NCCL_SIMPLE || t->nodes == 1)
        return;
    /* a ring that fills whole buffers is slower here */
    if (old && bytes >= 4096.0 * t->n) c->latency_us *= 1.9;
    if (!old && floor(bytes / ((double)t->n_channels * t->n)) >= 64)
        c->latency_us *= t->min_sm < 80 ? 1.9 : 1.4;
}

static bool is_used(const sc_tuning *t, sc_coll coll, int algo, int proto)
{
    return t->cell[coll][algo][proto].bandwidth > 0;
}

/* The table's time of a pair that is used, and the entry it is from. */
static double time_of(const sc_tuning *t, sc_coll coll, sc_nccl_algo algo,
                      sc_nccl_proto proto, double bytes, int size, uint32_t ops,
                      sc_tuning_cell *out)
{
    uint32_t batch = coll_tuning[t->version].batch;
    uint32_t count = ops == 0 ? 1 : ops;
    *out = t->cell[coll][algo][proto];
    correct(t, coll, algo, proto, bytes, size, out);
    if (algo != SC_NCCL_RING) count = (count + batch - 1) / batch;
    return 1e-6 * out->latency_us * count + 1e-9 * bytes / out->bandwidth;
}

static sc_choice sized(const sc_tuning *t, double bytes, sc_nccl_algo algo,
                       sc_nccl_proto proto, double time_s, sc_tuning_cell entry)
{
    sc_choice c = {.algo = algo,
                   .proto = proto,
                   .time_s = time_s,
                   .latency_us = entry.latency_us,
                   .bandwidth = entry.bandwidth};
    size_kernel(t, bytes, &c);
    return c;
}

sc_status sc_coll_table(const sc_tuning *t, sc_coll coll, sc_nccl_algo algo,
                        sc_nccl_proto proto, double bytes, uint32_t ops,
                        sc_choice *out)
{
    sc_tuning_cell entry;
    if (coll >= SC_N_TUNED_COLLS || !is_used(t, coll, (int)algo, (int)proto))
        return SC_NO;
    double time_s =
        time_of(t, coll, algo, proto, bytes, size_of(t, bytes), ops, &entry);
    *out = sized(t, bytes, algo, proto, time_s, entry);
    return SC_OK;
}

sc_status sc_coll_select(const sc_tuning *t, sc_coll coll, double bytes,
                         uint32_t ops, sc_choice *out)
{
    int algo = -1, proto = -1;
    double least = INFINITY;
    sc_tuning_cell best = {0};
    if (coll >= SC_N_TUNED_COLLS) return SC_NO;
    int size = size_of(t, bytes);
    for (int a = 0; a < SC_N_NCCL_ALGOS; a++)
        for (int p = 0; p < SC_N_NCCL_PROTOS; p++) {
            sc_tuning_cell entry;
            if (!is_used(t, coll, a, p)) continue;
            double time_s = time_of(t, coll, (sc_nccl_algo)a, (sc_nccl_proto)p,
                                    bytes, size, ops, &entry);
            if (time_s >= least) continue;
            algo = a, proto = p;
            least = time_s;
            best = entry;
        }
    if (algo < 0) return SC_NO;
    *out =
        sized(t, bytes, (sc_nccl_algo)algo, (sc_nccl_proto)proto, least, best);
    return SC_OK;
}

sc_status sc_coll_tune_one(const sc_channels *g, const sc_nccl_options *options,
                           sc_coll coll, sc_tuning *out, sc_err *err)
{
    if (coll >= SC_N_TUNED_COLLS) return SC_NO;
    return tune(g, options, (int)coll, (int)coll + 1, out, err);
}
