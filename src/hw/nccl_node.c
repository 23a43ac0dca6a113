/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_node.c - one node of a machine of ours as NCCL would see it.
 *
 * The fabric is the machine's.  What a machine does not state is put as
 * servers are built: two CPUs where there are more devices than one host
 * bridge carries, a PCI switch for every two devices (from Hopper for one), NICs
 * spread over the switches, GPUDirect RDMA everywhere.
 */
#include "hw/link.h"
#include "hw/nccl_graph.h"

#include <math.h>
#include <string.h>

typedef struct builder {
    hw_topo b;
    const sc_hw *hw;
    uint32_t size, sm;
    uint32_t inner; /* dimensions inside the node */
    float pci;      /* GB/s of a device's PCI link */
} builder;

typedef struct arch_row {
    const char *name;
    uint32_t sm;
    uint32_t cpu_model; /* an Intel host of that time */
} arch_row;

static const arch_row arches[] = {
    {"pascal", 60, 0x64f},     {"volta", 70, 0x655},
    {"turing", 75, 0x655},     {"ampere", 80, 0x66a},
    {"ada", 89, 0x68f},        {"hopper", 90, 0x68f},
    {"blackwell", 100, 0x6cf}, {"blackwell-ultra", 103, 0x6cf}};

static const arch_row *arch_of(const sc_hw *hw)
{
    for (size_t i = 0; i < SC_COUNT(arches); i++)
        if (hw->device != NULL && hw->device->arch != NULL &&
            strcmp(hw->device->arch, arches[i].name) == 0)
            return &arches[i];
    return NULL;
}

uint32_t sc_nccl_sm(const sc_hw *hw)
{
    const arch_row *row = arch_of(hw);
    return row == NULL ? 0 : row->sm;
}

/* GB/s of `share` of a device's fabric, as NCCL counts: whole NVLinks at its
 * own rate where these are NVLinks, else what the machine says. */
static float fabric_width(const builder *x, const sc_dim *d, double share)
{
    const sc_device *dev = x->hw->device;
    if (x->sm == 0 || dev == NULL || dev->links == 0 || !(dev->link_bw > 0))
        return (float)(d->bw * share / 1e9);
    double links = round(dev->links * d->bw / dev->link_bw) * share;
    return (float)links * hw_topo_nvlink(x->b.t->version, x->sm);
}

/* Devices with all coordinates of `dev` but that of one dimension. */
typedef struct line {
    uint32_t base, stride, size;
} line;

static uint32_t gpu(const builder *x, const line *l, uint32_t c)
{
    return x->b.t->of[SC_TOPO_GPU][l->base + c * l->stride];
}

static sc_status add_switch(builder *x, const sc_dim *d, const line *l)
{
    uint32_t nvs;
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_NVS, x->b.t->n[SC_TOPO_NVS],
                       sc_pos_none(), &nvs));
    for (uint32_t c = 0; c < l->size; c++)
        SC_TRY(hw_topo_join(&x->b, gpu(x, l, c), nvs, SC_WIRE_NVLINK,
                            fabric_width(x, d, 1)));
    return SC_OK;
}

/* Links between every two neighbours: of a full graph, a ring or a mesh. */
static sc_status add_links(builder *x, const sc_dim *d, const line *l)
{
    uint32_t n = l->size;
    bool full = d->kind == SC_DIM_FULL;
    float width = fabric_width(x, d, full ? 1.0 / (n - 1) : 0.5);
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t k = c + 1; k < n; k++)
            if (full || k == c + 1)
                SC_TRY(hw_topo_join(&x->b, gpu(x, l, c), gpu(x, l, k),
                                    SC_WIRE_NVLINK, width));
    if (d->kind != SC_DIM_RING) return SC_OK;
    return hw_topo_join(&x->b, gpu(x, l, 0), gpu(x, l, n - 1), SC_WIRE_NVLINK,
                        width);
}

static sc_status add_cube(builder *x, const sc_dim *d, const line *l)
{
    /* Six links, or with P100 one to each neighbour. */
    bool single =
        x->hw->device != NULL && x->hw->device->links == HW_CUBE_DEGREE;
    float width = fabric_width(x, d, single ? 1.0 / HW_CUBE_DEGREE : 1.0 / 6);
    for (uint32_t c = 0; c < l->size; c++)
        for (int k = 0; k < HW_CUBE_DEGREE; k++) {
            hw_edge e = hw_cube[c][k];
            float links = single ? 1 : (float)e.count;
            if (e.to < l->size)
                SC_TRY(hw_topo_link(&x->b, gpu(x, l, c), gpu(x, l, e.to),
                                    SC_WIRE_NVLINK, links * width));
        }
    return SC_OK;
}

static sc_status add_line(builder *x, const sc_dim *d, const line *l)
{
    switch (d->kind) {
    case SC_DIM_SWITCH: return add_switch(x, d, l);
    case SC_DIM_FULL:
    case SC_DIM_RING:
    case SC_DIM_MESH: return add_links(x, d, l);
    case SC_DIM_CUBE: return add_cube(x, d, l);
    case SC_DIM_TREE: break; /* the PCI tree is there anyway */
    }
    return SC_OK;
}

static sc_status add_fabric(builder *x)
{
    uint32_t stride = 1;
    for (uint32_t i = 0; i < x->inner; i++) {
        const sc_dim *d = &x->hw->dim[i];
        line l = {0, stride, d->size};
        for (uint32_t g = 0; d->size > 1 && g < x->size; g++) {
            if (g / stride % d->size != 0) continue;
            l.base = g;
            SC_TRY(add_line(x, d, &l));
        }
        stride *= d->size;
    }
    return SC_OK;
}

static bool on_pci_tree(const builder *x)
{
    for (uint32_t i = 0; i < x->inner; i++)
        if (x->hw->dim[i].kind != SC_DIM_TREE && x->hw->dim[i].size > 1)
            return false;
    return x->size > 1;
}

static sc_status add_cpus(builder *x, uint32_t n, uint32_t intel)
{
    const char *vendor = x->hw->cpu_vendor;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node;
        SC_TRY(hw_topo_add(&x->b, SC_TOPO_CPU, i, sc_pos_none(), &node));
        sc_topo_node *c = &x->b.t->node[node];
        bool arm = vendor != NULL && strcmp(vendor, "arm") == 0;
        bool amd = vendor != NULL && strcmp(vendor, "amd") == 0;
        c->arch = arm ? SC_CPU_ARM : SC_CPU_X86;
        c->vendor = arm   ? SC_CPU_VENDOR_UNKNOWN
                    : amd ? SC_CPU_AMD
                          : SC_CPU_INTEL;
        c->model = c->vendor == SC_CPU_INTEL ? intel : 0;
    }
    return SC_OK;
}

static sc_status add_gpu(builder *x, uint32_t dev, uint32_t parent)
{
    uint32_t node;
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_GPU, 0x1000 + dev, sc_pos_none(), &node));
    sc_topo_node *g = &x->b.t->node[node];
    g->dev = dev;
    g->sm = x->sm;
    g->gdr = true;
    return hw_topo_join(&x->b, node, parent, SC_WIRE_PCI, x->pci);
}

static sc_status add_nic(builder *x, const sc_dim *net, uint32_t dev,
                         uint32_t parent)
{
    uint32_t nic, node;
    float width = (float)(net->port_bw / 1e9);
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_NIC, 0x2000 + dev, sc_pos_none(), &nic));
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_NET, dev, sc_pos_none(), &node));
    sc_topo_node *n = &x->b.t->node[node];
    n->dev = dev;
    n->device = 0x2000 + dev;
    n->gdr = true;
    n->channels = INT32_MAX;
    n->width = width;
    SC_TRY(hw_topo_join(&x->b, nic, node, SC_WIRE_NET, width));
    /* A NIC's slot has at least the lanes that its port needs. */
    return hw_topo_join(&x->b, nic, parent, SC_WIRE_PCI,
                        width > x->pci ? width : x->pci);
}

/* Host bridges, switches, devices and NICs, in the order of a bus scan. */
static sc_status add_pci(builder *x, const sc_dim *net, uint32_t intel)
{
    bool tree = on_pci_tree(x);
    uint32_t ports = net == NULL ? 0 : net->ports;
    uint32_t pairs = (x->size + 1) / 2;
    /* A DGX A100 has two devices and two adapters on a switch, a DGX H100 a
     * switch for each device. */
    bool apart = ports > pairs && x->sm >= 90;
    uint32_t groups = tree    ? (x->size + HW_BRIDGE - 1) / HW_BRIDGE
                      : apart ? (ports < x->size ? ports : x->size)
                              : pairs;
    uint32_t cpus = tree ? groups : x->size > HW_BRIDGE ? 2 : 1;
    SC_TRY(add_cpus(x, cpus, intel));
    for (uint32_t s = 0; s < groups; s++) {
        uint32_t top = x->b.t->of[SC_TOPO_CPU][s * cpus / groups], up = top;
        if (!tree) {
            SC_TRY(hw_topo_add(&x->b, SC_TOPO_PCI, s, sc_pos_none(), &up));
            SC_TRY(hw_topo_join(&x->b, up, top, SC_WIRE_PCI, x->pci));
        }
        for (uint32_t g = 0; g < x->size; g++) {
            uint32_t at = tree ? g / HW_BRIDGE
                               : (uint32_t)((uint64_t)g * groups / x->size);
            if (at == s) SC_TRY(add_gpu(x, g, up));
        }
        for (uint32_t p = 0; p < ports; p++)
            if ((uint64_t)p * groups / ports == s)
                SC_TRY(add_nic(x, net, p, up));
    }
    return SC_OK;
}

/* NCCL's figure for PCI: 12 GB/s of the 15.75 GB/s of Gen 3 x16. */
static float pci_width(const builder *x)
{
    double bw = 0;
    if (on_pci_tree(x))
        bw = x->hw->dim[0].bw;
    else if (x->hw->device != NULL)
        bw = x->hw->device->host_bw;
    if (!(bw > 0)) return 12;
    return (float)(bw / 1e9 * 0.75);
}

static sc_status check_size(const sc_hw *hw, uint32_t ports, sc_err *err)
{
    if (hw->node_size >= 1 && hw->node_size <= SC_TOPO_GPUS &&
        ports <= SC_TOPO_KIND)
        return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                    "NCCL's search takes nodes of at most %d devices and %d "
                    "NICs",
                    SC_TOPO_GPUS, SC_TOPO_KIND);
}

sc_status sc_topo_from_hw(const sc_hw *hw, sc_nccl version, sc_arena *a,
                          const sc_topo **out, sc_err *err)
{
    const arch_row *arch = arch_of(hw);
    builder x = {.hw = hw, .size = hw->node_size};
    x.sm = arch == NULL ? 0 : arch->sm;
    uint32_t product = 1;
    while (x.inner < hw->n_dims && product < hw->node_size)
        product *= hw->dim[x.inner++].size;
    const sc_dim *net = NULL;
    for (uint32_t i = x.inner; i < hw->n_dims && net == NULL; i++)
        if (hw->dim[i].ports > 0) net = &hw->dim[i];
    uint32_t ports = net == NULL ? 0 : net->ports;
    SC_TRY(check_size(hw, ports, err));
    uint32_t most = 4 * hw->node_size + 3 * ports + SC_TOPO_KIND;
    SC_TRY(hw_topo_init(&x.b, version, most, a, err));
    x.pci = pci_width(&x);
    SC_TRY(add_pci(&x, net, arch == NULL ? 0x68f : arch->cpu_model));
    SC_TRY(add_fabric(&x));
    SC_TRY(hw_topo_finish(&x.b));
    *out = x.b.t;
    return SC_OK;
}
