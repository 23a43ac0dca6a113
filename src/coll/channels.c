/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels.c - finds the channels of a machine, by a formula if there is one
 * and otherwise by NCCL's search.
 *
 * On an NVSwitch the search fills each device's links with channels of the best
 * speed of its list; between nodes every adapter carries one channel of the
 * next lower speed. tests/unit/test_coll_channels.c compares formula and
 * search.
 */
#include "coll/search_walk.h"
#include "hw/hw_memo.h"
#include "hw/hw_nccl_graph.h"

#include <math.h>
#include <string.h>

static uint32_t inner_dims(const sc_hw *hw)
{
    uint32_t product = 1, i = 0;
    while (i < hw->n_dims && product < hw->node_size)
        product *= hw->dim[i++].size;
    return i;
}

/* The dimension along which the devices of a node are joined. */
static const sc_dim *fabric_of(const sc_hw *hw)
{
    uint32_t inner = inner_dims(hw);
    for (uint32_t i = 0; i < inner; i++)
        if (hw->dim[i].size > 1) return &hw->dim[i];
    return NULL;
}

static const sc_dim *network_of(const sc_hw *hw)
{
    for (uint32_t i = inner_dims(hw); i < hw->n_dims; i++)
        if (hw->dim[i].ports > 0) return &hw->dim[i];
    return NULL;
}

bool sc_coll_wired(const sc_hw *hw)
{
    const sc_dim *d = fabric_of(hw);
    return hw->topo != NULL || (d != NULL && d->kind == SC_DIM_CUBE);
}

/* ---- closed form */

typedef struct form {
    const sc_hw *hw;
    uint32_t m, nodes, sm;
    sc_nccl version;
    double width; /* GB/s of a device's links, as NCCL counts them */
    bool host;    /* the path uses host links */
    bool sockets; /* the path crosses more than one host bridge */
} form;

/* GB/s as NCCL counts bw bytes/s: whole links at its own rate for them. */
static double counted(const form *f, const sc_dim *d, double bw)
{
    const sc_device *dev = f->hw->device;
    if (d->kind == SC_DIM_TREE) return 0.75e-9 * bw; /* NCCL: 12 of 15.75 */
    if (dev->links == 0 || !(dev->link_bw > 0)) return bw * 1e-9;
    return round(dev->links * bw / dev->link_bw) *
           (double)hw_topo_nvlink(f->version, f->sm);
}

/* The part of a port that rings of n members can use. */
static double width_of(const form *f, const sc_dim *d, uint32_t n)
{
    double bw = d->bw;
    if (d->kind == SC_DIM_FULL) bw *= (n - 1.0) / (d->size - 1.0);
    if (d->kind == SC_DIM_MESH || (d->kind == SC_DIM_RING && n < d->size))
        bw /= 2;
    return counted(f, d, bw);
}

static double speed_below(const form *f, bool net, double width)
{
    uint32_t n;
    const float *speed = search_speeds(f->version, f->sm, net, &n);
    for (uint32_t i = 0; i < n; i++)
        if ((double)speed[i] <= width) return (double)speed[i];
    return width < 0.1 ? 0.1 : width;
}

/* Channels that fill the links: the highest speed that fills them best. */
static void fill_links(const form *f, sc_search *s)
{
    uint32_t n, most = search_ring_channels(f->version);
    const float *speed = search_speeds(f->version, f->sm, false, &n);
    for (uint32_t i = 0; i < n; i++) {
        double v = (double)speed[i], channels = floor(f->width / v + 1e-6);
        if (channels < 1) continue;
        if (s->n_channels > 0 && v < 0.49 * s->intra) break;
        if (channels > most) channels = most;
        if (channels * v <= s->n_channels * s->intra + 1e-6) continue;
        s->n_channels = (uint32_t)channels;
        s->intra = v;
    }
    if (s->n_channels == 0) {
        s->n_channels = 1;
        s->intra = speed_below(f, false, f->width);
    }
    s->inter = s->intra;
}

/* Splits fast channels like search.c does after a search. */
static void split_fast_channels(const form *f, sc_search *s)
{
    uint32_t most = search_ring_channels(f->version);
    if (s->intra < 25 || 2 * s->n_channels > most) return;
    if (f->version != SC_NCCL_2_10_3 && f->sm > 80 && s->intra < 50 &&
        s->n_channels > 4)
        return;
    s->n_channels *= 2;
    s->intra /= 2;
    s->inter /= 2;
}

/* The number of network adapters for m devices of a node, at least one. */
static uint32_t adapters(const form *f, const sc_dim *net)
{
    uint64_t n = (uint64_t)net->ports * f->m / f->hw->node_size;
    return n < 1 ? 1 : n > SC_MAX_CHANNELS ? SC_MAX_CHANNELS : (uint32_t)n;
}

/* The distance to the adapter by which a channel leaves the node. */
static sc_path_type way_out(const form *f, const sc_dim *net)
{
    const sc_nccl_options *o = f->hw->nccl_options;
    bool pxn = f->version != SC_NCCL_2_10_3 && !(o != NULL && o->pxn_disable);
    if (f->host) return f->sockets ? SC_PATH_SYS : SC_PATH_PHB;
    if (f->m == 1) return SC_PATH_PIX;
    if (pxn) return SC_PATH_PXN;
    /* Two devices share a PCI switch with their adapters. */
    return 2 * (uint64_t)net->ports >= f->hw->node_size ? SC_PATH_PXB
                                                        : SC_PATH_PHB;
}

static void across(const form *f, const sc_dim *net, sc_channels *g)
{
    double port = net->port_bw * 1e-9;
    uint32_t n = adapters(f, net);
    if (f->host && port > f->width) port = f->width;
    sc_search *r = &g->ring, *t = &g->tree;
    r->n_channels = n;
    r->intra = r->inter = speed_below(f, true, port);
    /* Each channel leaves one device through its adapter, not its links. */
    double total = n * r->inter;
    double inside = f->m > 1 ? f->width * f->m / (f->m - 1.0) : total;
    if (total > inside) r->intra = r->inter = speed_below(f, true, inside / n);
    split_fast_channels(f, r);
    r->type_inter = way_out(f, net);
    *t = *r;
    /* From Hopper on, the search ends with the plain tree. */
    bool plain = f->version != SC_NCCL_2_10_3 && f->sm >= 90 && f->m > 1;
    t->pattern = plain ? SC_TOPO_TREE : SC_TOPO_BALANCED_TREE;
    /* The in-node links of a tree are searched up to twice its way out. */
    double most = 2 * r->inter;
    if (f->m > 1 && inside / n < most) most = inside / n;
    if (most > t->intra) t->intra = speed_below(f, true, most);
}

/* The link of each head carries its part of the data and the data it passes
 * on. */
static void in_switch(const form *f, const sc_dim *net, sc_channels *g)
{
    uint32_t n = f->m < 32 ? f->m : 32;
    sc_search *s = &g->nvls;
    const sc_dim *d = fabric_of(f->hw);
    if (d == NULL || !d->multicast || f->sm < 90 || f->m < 2 ||
        f->version == SC_NCCL_2_10_3)
        return;
    s->n_channels = n;
    s->intra = speed_below(f, false, f->width / (n + 1));
    s->inter = speed_below(f, false, 2 * s->intra); /* the second pass */
    s->type_intra = SC_PATH_NVL;
    if (net == NULL || f->nodes < 2) return;
    double port = net->port_bw * 1e-9 * adapters(f, net) / n;
    s->inter = speed_below(f, true, port);
    if (s->inter < s->intra) s->intra = s->inter;
    s->type_inter = way_out(f, net);
}

static void describe(const form *f, const sc_dim *fabric, sc_channels *g)
{
    const char *cpu = f->hw->cpu_vendor != NULL ? f->hw->cpu_vendor : "";
    bool arm = strcmp(cpu, "arm") == 0;
    *g = (sc_channels){.version = f->version,
                       .n_local = f->m,
                       .nodes = f->nodes,
                       .min_sm = f->sm,
                       .max_sm = f->sm,
                       .arch = arm ? SC_CPU_ARM : SC_CPU_X86,
                       .vendor = arm ? SC_CPU_VENDOR_UNKNOWN
                                 : strcmp(cpu, "amd") == 0 ? SC_CPU_AMD
                                                           : SC_CPU_INTEL,
                       .nvswitch =
                           fabric != NULL && fabric->kind == SC_DIM_SWITCH};
    sc_path_type wire = f->m == 1    ? SC_PATH_LOC
                        : !f->host   ? SC_PATH_NVL
                        : f->sockets ? SC_PATH_SYS
                                     : SC_PATH_PHB;
    g->ring = (sc_search){.pattern = SC_TOPO_RING,
                          .n_gpus = f->m,
                          .type_intra = wire,
                          .same_channels = true};
    g->nvls = (sc_search){.pattern = SC_TOPO_NVLS, .n_gpus = f->m};
}

/* Finds the slowest dimension that the first m devices need. */
static void measure(form *f)
{
    uint32_t inner = inner_dims(f->hw), reached = 1;
    for (uint32_t i = 0; i < inner && reached < f->m; i++) {
        const sc_dim *d = &f->hw->dim[i];
        uint32_t n = (f->m + reached - 1) / reached;
        reached *= d->size;
        if (d->size < 2) continue;
        if (n > d->size) n = d->size;
        bool tree = d->kind == SC_DIM_TREE;
        bool sockets = tree && f->m > 4;
        double width = width_of(f, d, n) * (sockets ? 0.5 : 1);
        if (!(f->width > 0) || width < f->width) f->width = width;
        f->host = f->host || tree;
        f->sockets = f->sockets || sockets;
    }
}

/* `inside`: the result of a search in the node, or NULL. */
static void closed(form *f, const sc_search *inside, sc_channels *g)
{
    const sc_dim *d = fabric_of(f->hw), *net = network_of(f->hw);
    measure(f);
    describe(f, d, g);
    if (inside != NULL) f->width = inside->n_channels * inside->intra;
    if (f->nodes > 1) {
        across(f, net, g);
    } else {
        fill_links(f, &g->ring);
        split_fast_channels(f, &g->ring);
        g->tree = g->ring;
        g->tree.pattern = SC_TOPO_BALANCED_TREE;
    }
    in_switch(f, net, g);
    g->n_channels = g->ring.n_channels;
}

/* ---- searched */

typedef struct found {
    sc_channels g;
    sc_wiring w;
} found;

_Static_assert(sizeof(found) <= HW_MEMO_BYTES,
               "the result is too large for the cache");

/* Hash of all inputs of the search. */
static uint64_t key_of(const form *f, bool net)
{
    const sc_hw *hw = f->hw;
    uint32_t inner = inner_dims(hw);
    uint32_t word[] = {f->m, net, (uint32_t)hw->nccl, f->sm, hw->node_size};
    uint64_t h = sc_hash(word, sizeof word, 1);
    for (uint32_t i = 0; i < inner; i++) {
        double number[] = {(double)hw->dim[i].kind, hw->dim[i].size,
                           counted(f, &hw->dim[i], hw->dim[i].bw),
                           hw->device->host_bw};
        h = sc_hash(number, sizeof number, h);
    }
    h = sc_hash(&hw->topo, sizeof hw->topo, h);
    h = sc_hash(&hw->nccl_options, sizeof hw->nccl_options, h);
    return h == 0 ? 1 : h;
}

/* Links of a graph among its GPUs, in NCCL's widths. */
typedef struct links {
    uint32_t n;
    double width[SC_TOPO_GPUS]; /* of one GPU to each other */
} links;

static void links_of(const sc_topo *t, uint32_t from, links *out)
{
    const sc_topo_node *g = &t->node[t->of[SC_TOPO_GPU][from]];
    *out = (links){.n = t->n[SC_TOPO_GPU]};
    for (uint32_t i = 0; i < g->n_links; i++)
        for (uint32_t to = 0; to < out->n; to++)
            if (g->link[i].wire == SC_WIRE_NVLINK &&
                g->link[i].to == t->of[SC_TOPO_GPU][to])
                out->width[to] += (double)g->link[i].width;
}

/* The number of links to every other GPU; false if one can't be reached. */
static bool distances(const sc_topo *t, uint32_t from, double *sum)
{
    uint32_t n = t->n[SC_TOPO_GPU], queue[SC_TOPO_GPUS], head = 0, tail = 1;
    uint32_t steps[SC_TOPO_GPUS] = {0};
    bool seen[SC_TOPO_GPUS] = {false};
    links l;
    queue[0] = from;
    seen[from] = true;
    while (head < tail) {
        uint32_t at = queue[head++];
        links_of(t, at, &l);
        *sum += steps[at];
        for (uint32_t to = 0; to < n; to++)
            if (!seen[to] && l.width[to] > 0) {
                seen[to] = true;
                steps[to] = steps[at] + 1;
                queue[tail++] = to;
            }
    }
    return tail == n;
}

/* All pairs send the same amount over shortest paths: the width of all links
 * divided by the links that a byte crosses. */
static bool exchange(const sc_topo *t, sc_wiring *w)
{
    uint32_t n = t->n[SC_TOPO_GPU];
    double width = 0, steps = 0;
    links l;
    for (uint32_t from = 0; from < n; from++) {
        if (!distances(t, from, &steps)) return false;
        links_of(t, from, &l);
        for (uint32_t to = 0; to < n; to++) width += l.width[to];
    }
    links_of(t, 0, &l);
    w->all_pairs = width * (n - 1) / steps;
    w->pair = l.width[1];
    return true;
}

static void forget_arrays(sc_channels *g)
{
    sc_search *s[] = {&g->ring, &g->tree, &g->nvls};
    for (int i = 0; i < 3; i++) s[i]->order = s[i]->net = NULL;
}

/* Searches the node; the caller frees the arena. */
static sc_status look(const sc_hw *hw, uint32_t m, uint32_t nodes, sc_arena *a,
                      found *out, sc_err *err)
{
    const sc_topo *t = hw->topo, *part;
    uint32_t dev[SC_TOPO_GPUS];
    if (t == NULL) SC_TRY(sc_topo_from_hw(hw, (sc_nccl)hw->nccl, a, &t, err));
    SC_TRY(
        sc_topo_channels(t, m, NULL, nodes, hw->nccl_options, a, &out->g, err));
    forget_arrays(&out->g);
    for (uint32_t i = 0; i < m; i++)
        dev[i] = t->node[t->of[SC_TOPO_GPU][i]].dev;
    SC_TRY(sc_topo_select(t, m, dev, false, a, &part, err));
    const sc_search *r = &out->g.ring;
    out->w = (sc_wiring){.ring = r->n_channels * r->intra};
    const sc_dim *d = fabric_of(hw);
    bool host = d != NULL && d->kind == SC_DIM_TREE;
    bool wired = (host || r->type_intra <= SC_PATH_NVB) && m > 1;
    if (part->n[SC_TOPO_NVS] > 0 || host)
        out->w.all_pairs = out->w.pair = out->w.ring;
    else if (wired)
        wired = exchange(part, &out->w);
    if (!wired) out->w = (sc_wiring){0};
    return SC_OK;
}

static sc_status search_node(const form *f, uint32_t nodes, found *out,
                             sc_err *err)
{
    uint64_t key = key_of(f, nodes > 1);
    if (!hw_memo_get(f->hw->memo, key, out, sizeof *out)) {
        sc_arena a;
        sc_arena_init(&a, 0);
        sc_status s = look(f->hw, f->m, nodes, &a, out, err);
        sc_arena_free(&a);
        SC_TRY(s);
        hw_memo_put(f->hw->memo, key, out, sizeof *out);
    }
    out->g.nodes = nodes;
    return SC_OK;
}

static form form_of(const sc_hw *hw, uint32_t m, uint32_t nodes)
{
    return (form){.hw = hw,
                  .m = m,
                  .nodes = nodes,
                  .sm = sc_nccl_sm(hw),
                  .version = (sc_nccl)hw->nccl};
}

sc_status sc_coll_channels(const sc_hw *hw, uint32_t m, uint32_t nodes,
                           sc_channels *out, sc_err *err)
{
    found inside;
    form f = form_of(hw, m, nodes);
    if (f.sm == 0 || (nodes > 1 && network_of(hw) == NULL))
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(), NULL,
                        "NCCL does not run on %s", hw->name);
    if (!sc_coll_wired(hw) || m == 1) {
        closed(&f, NULL, out);
        return SC_OK;
    }
    bool nets = hw->topo != NULL && hw->topo->n[SC_TOPO_NET] > 0;
    SC_TRY(search_node(&f, nets ? nodes : 1, &inside, err));
    if (nets || nodes == 1)
        *out = inside.g;
    else
        closed(&f, &inside.g.ring, out);
    return SC_OK;
}

/* From NCCL's width of a device's links to the machine's bytes/s. */
static double scale(const form *f)
{
    const sc_dim *d = fabric_of(f->hw);
    if (d == NULL) return 1e9;
    double width = counted(f, d, d->bw);
    return width > 0 ? d->bw / width : 1e9;
}

sc_status sc_coll_wiring(const sc_hw *hw, uint32_t m, sc_wiring *out,
                         sc_err *err)
{
    found inside;
    form f = form_of(hw, m, 1);
    SC_TRY(search_node(&f, 1, &inside, err));
    double k = scale(&f);
    *out = (sc_wiring){.ring = k * inside.w.ring,
                       .all_pairs = k * inside.w.all_pairs,
                       .pair = k * inside.w.pair};
    if (out->ring > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                    "use a different number of devices, or describe the wiring "
                    "with topology: FILE.xml",
                    "NCCL's search finds no ring over the links between "
                    "devices 0 to %u of %s",
                    m - 1, hw->name);
}
