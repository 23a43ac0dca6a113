/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - which links there are, what they join and how fast they are.
 *
 * The ids of route.c and the decoding here are two sides of one numbering:
 *   switch   2 * device + (0 up, 1 down)
 *   full     device * (size - 1) + other, without itself
 *   ring     2 * device + (0 to the next, 1 to the previous)
 *   mesh     (2 * instance + direction) * (size - 1) + lower member
 *   tree     2 * device + (0 up, 1 down), then all pairs of bridges
 *   cube     4 * device + index in hw_cube
 *   network  host links 2 * device + (0 to the NIC, 1 from it), NIC ports
 *            2 * nic + (0 up, 1 down), then leaf to spine and spine to core
 *            2 * (lower * uppers + upper) + (0 up, 1 down), or of a dragonfly
 *            leaf * (switches - 1) + other and (group * (groups - 1) + other)
 *            * switches + switch
 */
#include "hw/hw_link.h"
#include "hw/hw_wiring.h"

#include <math.h>
#include <stdio.h>

/* The DGX-1 with V100 has two quads. Each quad has links between all pairs, and
 * each member has a link to one of the other quad; two edges of each member are
 * doubled. With P100 every edge is single. */
const hw_edge hw_cube[8][HW_CUBE_DEGREE] = {
    {{1, 1}, {2, 1}, {3, 2}, {4, 2}}, {{0, 1}, {2, 2}, {3, 1}, {5, 2}},
    {{0, 1}, {1, 2}, {3, 2}, {6, 1}}, {{0, 2}, {1, 1}, {2, 2}, {7, 1}},
    {{0, 2}, {5, 1}, {6, 1}, {7, 2}}, {{1, 2}, {4, 1}, {6, 2}, {7, 1}},
    {{2, 1}, {4, 1}, {5, 2}, {7, 2}}, {{3, 1}, {4, 2}, {5, 1}, {6, 2}}};

int hw_cube_edge(uint32_t from, uint32_t to)
{
    for (int k = 0; k < HW_CUBE_DEGREE; k++)
        if (hw_cube[from][k].to == to) return k;
    return -1;
}

static uint64_t bridges(uint64_t size)
{
    return (size + HW_BRIDGE - 1) / HW_BRIDGE;
}

static uint64_t dim_links(const sc_hw *hw, uint32_t dim, const hw_axis *x)
{
    uint64_t n = hw->n_devices, b = bridges(x->size);
    if (hw->dim[dim].ports > 0) return hw_net_of(hw, dim).n;
    if (x->size < 2) return 0;
    switch (hw->dim[dim].kind) {
    case SC_DIM_SWITCH:
    case SC_DIM_RING: return 2 * n;
    case SC_DIM_FULL: return n * (x->size - 1);
    case SC_DIM_MESH: return 2 * x->instances * (x->size - 1);
    case SC_DIM_TREE: return 2 * n + x->instances * b * (b - 1);
    case SC_DIM_CUBE: return HW_CUBE_DEGREE * n;
    }
    return 0;
}

hw_axis hw_axis_of(const sc_hw *hw, uint32_t dim)
{
    hw_axis x = {1, 1, 1, 0};
    for (uint32_t d = 0;; d++) {
        x.size = hw->dim[d].size;
        x.instances = hw->n_devices / x.size;
        if (d == dim) return x;
        x.base += dim_links(hw, d, &x);
        x.inner *= x.size;
    }
}

static const sc_node_group *group_of(const sc_hw *hw, uint64_t node)
{
    for (uint32_t g = 0; g < hw->n_groups; g++)
        if (node < (uint64_t)hw->groups[g].first + hw->groups[g].n)
            return &hw->groups[g];
    return NULL;
}

const sc_device *sc_hw_device_at(const sc_hw *hw, uint32_t device)
{
    const sc_node_group *g = group_of(hw, device / hw->node_size);
    return g == NULL ? hw->device : g->device;
}

hw_nics hw_net_nics(const hw_net *t, uint64_t node)
{
    const sc_node_group *g = group_of(t->hw, node);
    if (g == NULL) return hw_equal_nics(t, node);
    return (hw_nics){g->first_port + (node - g->first) * g->ports, g->ports,
                     g->port_bw};
}

/* Links within a group carry twice the traffic that enters the group, because
 * half of a switch's non-terminal ports stay in the group (Kim et al., ISCA
 * 2008). Links between groups carry the entering traffic divided by the
 * oversubscription. */
static void set_dragonfly(hw_net *t, const sc_dim *d, const hw_nics *wide)
{
    t->flies = (t->nodes + d->group - 1) / d->group;
    t->switches = d->group / t->leaf * t->rails;
    uint64_t into = t->leaf * (wide->n / t->rails);
    double entering = (double)into * wide->bw;
    double others = (double)(t->switches - 1), flies = (double)(t->flies - 1);
    t->spine_bw = t->switches > 1 ? 2 * entering / others : 0;
    t->global_bw = t->flies > 1 ? entering / d->oversub / flies : 0;
    t->global_base = t->spine_base + t->flies * t->switches * (t->switches - 1);
    t->n = t->global_base + t->flies * (t->flies - 1) * t->switches;
}

/* The uplinks of a spine carry the traffic of its leaves divided by the
 * oversubscription. There are so many that each carries at most as much as a
 * link of a leaf. */
static void set_cores(hw_net *t, const sc_dim *d)
{
    uint64_t leaves = t->pod / t->leaf;
    double down = (double)leaves;
    t->cores = (uint64_t)ceil(down / d->core_oversub);
    t->core_bw = t->spine_bw * down / d->core_oversub / (double)t->cores;
    t->n = t->core_base + 2 * t->pods * t->rails * t->spines * t->cores;
}

hw_net hw_net_of(const sc_hw *hw, uint32_t dim)
{
    const sc_dim *d = &hw->dim[dim];
    hw_net t = {.hw = hw,
                .nodes = d->size,
                .node_size = hw->n_devices / d->size,
                .ports = d->ports,
                .rails = d->rails,
                .leaf = d->leaf == 0 ? d->size : d->leaf,
                .pod = d->pod == 0 ? d->size : d->pod};
    hw_nics wide = {0, t.ports, d->port_bw}, last;
    t.attach = t.ports < t.node_size;
    for (uint32_t g = 0; g < hw->n_groups; g++) {
        const sc_node_group *x = &hw->groups[g];
        if (x->ports < t.node_size) t.attach = true;
        if (x->ports * x->port_bw > (double)wide.n * wide.bw)
            wide = (hw_nics){0, x->ports, x->port_bw};
    }
    last = hw_net_nics(&t, t.nodes - 1);
    t.groups = (t.nodes + t.leaf - 1) / t.leaf;
    uint64_t into = t.leaf * (wide.n / t.rails);
    double down = (double)into;
    t.spines = (uint64_t)ceil(down / d->oversub);
    t.spine_bw = wide.bw * down / d->oversub / (double)t.spines;
    t.nic_base = t.attach ? 2 * (uint64_t)hw->n_devices : 0;
    t.spine_base = t.nic_base + 2 * (last.first + last.n);
    t.pods = (t.nodes + t.pod - 1) / t.pod;
    t.n = t.global_base = t.spine_base;
    if (d->group > 0)
        set_dragonfly(&t, d, &wide);
    else if (t.groups > 1)
        t.n += 2 * t.groups * t.rails * t.spines;
    t.core_base = t.n;
    if (t.pods > 1) set_cores(&t, d);
    return t;
}

/* The device to which a NIC belongs if no NIC is shared. */
static uint64_t owner(const hw_net *t, uint64_t n, uint64_t nic)
{
    uint64_t count, local = nic * t->node_size / n;
    while (hw_net_nic(t, n, local, &count) + count <= nic) local++;
    return local;
}

/* The node of a NIC. */
static uint64_t node_of(const hw_net *t, uint64_t port)
{
    const sc_hw *hw = t->hw;
    for (uint32_t g = hw->n_groups; g-- > 0;)
        if (port >= hw->groups[g].first_port)
            return hw->groups[g].first +
                   (port - hw->groups[g].first_port) / hw->groups[g].ports;
    return port / t->ports;
}

static void swap_ends(hw_link *l)
{
    hw_vertex v = l->from;
    l->from = l->to;
    l->to = v;
}

static hw_vertex device(uint64_t id)
{
    return (hw_vertex){HW_V_DEVICE, 0, id};
}

static void dragonfly_link(const hw_net *t, uint64_t i, hw_link *l)
{
    uint64_t from, to, n = t->switches;
    uint64_t local = n > 1 ? n - 1 : 1,
             global = t->flies > 1 ? t->flies - 1 : 1;
    sc_assert(n > 0);
    if (i < t->global_base) {
        i -= t->spine_base;
        from = i / local;
        to = i % local;
        to += to >= from % n;
        to += from / n * n;
        l->bw = t->spine_bw;
    } else {
        i -= t->global_base;
        uint64_t pair = i / n, fly = pair / global;
        uint64_t other = pair % global;
        other += other >= fly;
        from = fly * n + i % n;
        to = other * n + i % n;
        l->bw = t->global_bw;
    }
    l->from = (hw_vertex){HW_V_LEAF, l->dim, from};
    l->to = (hw_vertex){HW_V_LEAF, l->dim, to};
}

static void net_link(const sc_hw *hw, const hw_net *t, uint64_t i, hw_link *l)
{
    uint64_t dir = i % 2;
    if (t->flies > 0 && i >= t->spine_base) {
        dragonfly_link(t, i, l);
        return;
    }
    if (i < t->nic_base) {
        uint64_t dev = i / 2, count;
        hw_nics own = hw_net_nics(t, dev / t->node_size);
        uint64_t nic = hw_net_nic(t, own.n, dev % t->node_size, &count);
        double host = sc_hw_device_at(hw, (uint32_t)dev)->host_bw;
        l->from = device(dev);
        l->to = (hw_vertex){HW_V_NIC, l->dim, own.first + nic};
        l->bw = host > 0 ? host : own.bw;
    } else if (i < t->spine_base) {
        uint64_t port = (i - t->nic_base) / 2, node = node_of(t, port);
        hw_nics own = hw_net_nics(t, node);
        uint64_t nic = port - own.first, rail = nic * t->rails / own.n;
        l->from = own.n < t->node_size
                      ? (hw_vertex){HW_V_NIC, l->dim, port}
                      : device(node * t->node_size + owner(t, own.n, nic));
        l->to =
            (hw_vertex){HW_V_LEAF, l->dim, node / t->leaf * t->rails + rail};
        l->bw = own.bw;
    } else if (i < t->core_base) {
        uint64_t pair = (i - t->spine_base) / 2, leaf = pair / t->spines;
        uint64_t pod = leaf / t->rails * t->leaf / t->pod;
        uint64_t plane = pod * t->rails + leaf % t->rails;
        l->from = (hw_vertex){HW_V_LEAF, l->dim, leaf};
        l->to = (hw_vertex){HW_V_SPINE, l->dim,
                            plane * t->spines + pair % t->spines};
        l->bw = t->spine_bw;
    } else {
        uint64_t cores = t->cores ? t->cores : 1;
        uint64_t pair = (i - t->core_base) / 2, spine = pair / cores;
        uint64_t of_pod = spine % (t->rails * t->spines);
        l->from = (hw_vertex){HW_V_SPINE, l->dim, spine};
        l->to = (hw_vertex){HW_V_CORE, l->dim, of_pod * cores + pair % cores};
        l->bw = t->core_bw;
    }
    if (dir == 1) swap_ends(l);
}

static uint64_t member(const hw_axis *x, uint64_t instance, uint64_t c)
{
    return (instance / x->inner * x->size + c) * x->inner + instance % x->inner;
}

static uint64_t instance_of(const hw_axis *x, uint64_t dev)
{
    return dev / (x->inner * x->size) * x->inner + dev % x->inner;
}

static void tree_link(const sc_hw *hw, const hw_axis *x, uint64_t i, hw_link *l)
{
    uint64_t b = bridges(x->size), n = 2 * (uint64_t)hw->n_devices;
    if (i < n) {
        uint64_t dev = i / 2, c = dev / x->inner % x->size;
        uint64_t id = instance_of(x, dev) * b + c / HW_BRIDGE;
        l->from = device(dev);
        l->to = (hw_vertex){HW_V_BRIDGE, l->dim, id};
        if (i % 2 == 1) swap_ends(l);
        return;
    }
    i -= n;
    uint64_t instance = i / (b * (b - 1)), pair = i % (b * (b - 1));
    uint64_t from = pair / (b - 1), to = pair % (b - 1);
    to += to >= from;
    l->from = (hw_vertex){HW_V_BRIDGE, l->dim, instance * b + from};
    l->to = (hw_vertex){HW_V_BRIDGE, l->dim, instance * b + to};
}

static void inner_link(const sc_hw *hw, const hw_axis *x, uint64_t i,
                       hw_link *l)
{
    const sc_dim *d = &hw->dim[l->dim];
    uint64_t n = x->size, dev = i / 2, from, to;
    l->bw = d->bw;
    switch (d->kind) {
    case SC_DIM_SWITCH:
        l->from = device(dev);
        l->to = (hw_vertex){HW_V_SWITCH, l->dim, instance_of(x, dev)};
        if (i % 2 == 1) swap_ends(l);
        return;
    case SC_DIM_TREE: tree_link(hw, x, i, l); return;
    case SC_DIM_FULL:
        dev = i / (n - 1);
        from = dev / x->inner % n;
        to = i % (n - 1);
        to += to >= from;
        l->bw = d->bw / (double)(n - 1);
        break;
    case SC_DIM_RING:
        from = dev / x->inner % n;
        to = (from + (i % 2 == 0 ? 1 : n - 1)) % n;
        l->bw = d->bw / 2;
        break;
    case SC_DIM_MESH:
        from = i % (n - 1);
        to = from + 1;
        dev = member(x, i / (n - 1) / 2, from);
        l->bw = d->bw / 2;
        break;
    case SC_DIM_CUBE:
    default:
        dev = i / HW_CUBE_DEGREE;
        from = dev / x->inner % n;
        to = hw_cube[from][i % HW_CUBE_DEGREE].to;
        l->bw = hw->device->links == 4
                    ? d->bw / 4
                    : d->bw * hw_cube[from][i % HW_CUBE_DEGREE].count / 6;
        break;
    }
    l->from = device(dev);
    l->to = device(member(x, instance_of(x, dev), to));
    if (d->kind == SC_DIM_MESH && i / (n - 1) % 2 == 1) swap_ends(l);
}

hw_map hw_map_of(const sc_hw *hw)
{
    hw_map m = {.hw = hw};
    uint64_t inner = 1;
    for (uint32_t d = 0; d < hw->n_dims && hw->wiring == NULL; d++) {
        uint64_t size = hw->dim[d].size;
        m.axis[d] = (hw_axis){inner, size, hw->n_devices / size, m.n_links};
        inner *= size;
        if (hw->dim[d].ports > 0) m.net = hw_net_of(hw, d);
        m.n_links +=
            hw->dim[d].ports > 0 ? m.net.n : dim_links(hw, d, &m.axis[d]);
    }
    return m;
}

bool hw_link_get(const hw_map *m, uint64_t link, hw_link *out)
{
    const sc_hw *hw = m->hw;
    uint32_t d = 0;
    if (link >= m->n_links) return false;
    while (d + 1 < hw->n_dims && link >= m->axis[d + 1].base) d++;
    out->dim = d;
    if (hw->dim[d].ports > 0)
        net_link(hw, &m->net, link - m->axis[d].base, out);
    else
        inner_link(hw, &m->axis[d], link - m->axis[d].base, out);
    return true;
}

static bool link_of(const sc_hw *hw, uint64_t link, hw_link *out)
{
    hw_map m = hw_map_of(hw);
    return hw_link_get(&m, link, out);
}

hw_bundle hw_link_bundle(const hw_map *m, uint64_t link)
{
    const hw_net *t = &m->net;
    uint32_t last = m->hw->n_dims - 1;
    uint64_t base = m->axis[last].base + t->spine_base;
    hw_bundle one = {link, 1};
    if (m->hw->wiring != NULL || m->hw->dim[last].ports == 0 || t->flies > 0)
        return one;
    if (link < base || link >= m->axis[last].base + t->n) return one;
    uint64_t cores = m->axis[last].base + t->core_base, n = t->spines;
    if (link >= cores) {
        base = cores;
        n *= t->cores;
    }
    uint64_t at = link - base;
    return (hw_bundle){base + at / (2 * n) * 2 * n + at % 2, n};
}

uint64_t sc_hw_n_links(const sc_hw *hw)
{
    if (hw->wiring != NULL) return hw->wiring->n_links;
    hw_axis x = hw_axis_of(hw, hw->n_dims - 1);
    return x.base + dim_links(hw, hw->n_dims - 1, &x);
}

/* A link that a file describes; NULL if links follow from rules. */
static const sc_wiring_link *wire(const sc_hw *hw, uint64_t link)
{
    static const sc_wiring_link none;
    if (hw->wiring == NULL) return NULL;
    return link < hw->wiring->n_links ? &hw->wiring->link[link] : &none;
}

double sc_hw_link_bw(const sc_hw *hw, uint64_t link)
{
    hw_link l;
    if (wire(hw, link) != NULL) return wire(hw, link)->bw;
    return link_of(hw, link, &l) ? l.bw : 0;
}

/* A file's link is inside a node if it joins two devices of one node. */
static sc_scope wire_scope(const sc_hw *hw, const sc_wiring_link *w)
{
    uint32_t n = hw->n_devices, size = hw->node_size;
    bool inside = w->from < n && w->to < n && w->from / size == w->to / size;
    return inside || hw->n_nodes == 1 ? SC_SCOPE_NODE : SC_SCOPE_NET;
}

sc_scope sc_hw_link_scope(const sc_hw *hw, uint64_t link)
{
    hw_link l;
    if (wire(hw, link) != NULL) return wire_scope(hw, wire(hw, link));
    bool net = link_of(hw, link, &l) && hw->dim[l.dim].ports > 0;
    return net ? SC_SCOPE_NET : SC_SCOPE_NODE;
}

double sc_hw_link_latency(const sc_hw *hw, uint64_t link)
{
    hw_link l;
    if (wire(hw, link) != NULL) return wire(hw, link)->latency_s;
    if (!link_of(hw, link, &l)) return 0;
    hw_vertex_kind a = l.from.kind, b = l.to.kind;
    double hop = hw->dim[l.dim].latency_s;
    if (a == HW_V_DEVICE && b == HW_V_DEVICE) return hop;
    bool host = (a == HW_V_DEVICE && b == HW_V_NIC) ||
                (a == HW_V_NIC && b == HW_V_DEVICE);
    return host ? 0 : hop / 2;
}

static int print_vertex(const sc_hw *hw, hw_vertex v, char *buf, size_t size)
{
    unsigned long long id = v.id, ports = 1, per;
    hw_net net;
    switch (v.kind) {
    case HW_V_DEVICE: return snprintf(buf, size, "device%llu", id);
    case HW_V_SWITCH: return snprintf(buf, size, "switch%llu", id);
    case HW_V_BRIDGE:
        per = bridges(hw->dim[v.dim].size);
        return snprintf(buf, size, "bridge%llu.%llu", id / per, id % per);
    case HW_V_NIC:
        net = hw_net_of(hw, v.dim);
        per = node_of(&net, v.id);
        return snprintf(buf, size, "nic%llu.%llu", per,
                        id - hw_net_nics(&net, per).first);
    case HW_V_LEAF:
        ports = hw->dim[v.dim].rails;
        return snprintf(buf, size, "leaf%llu.%llu", id / ports, id % ports);
    case HW_V_CORE: return snprintf(buf, size, "core%llu", id);
    case HW_V_SPINE: break;
    }
    return snprintf(buf, size, "spine%llu", id);
}

void sc_hw_link_name(const sc_hw *hw, uint64_t link, char *buf, size_t size)
{
    hw_link l;
    char from[40], to[40];
    if (size == 0) return;
    buf[0] = '\0';
    const sc_wiring *w = hw->wiring;
    if (w != NULL) {
        if (link < w->n_links)
            snprintf(buf, size, "%s>%s", w->name[w->link[link].from],
                     w->name[w->link[link].to]);
        return;
    }
    if (!link_of(hw, link, &l)) return;
    print_vertex(hw, l.from, from, sizeof from);
    print_vertex(hw, l.to, to, sizeof to);
    snprintf(buf, size, "dim%u:%s>%s", l.dim, from, to);
}
