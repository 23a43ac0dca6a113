/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_server.c - adds the parts of a server, with the rates of a machine. */
#include "hw/nccl_server.h"

#include "hw/hw_arch.h"
#include "hw/hw_link.h"

#include <math.h>
#include <string.h>

static const sc_arch *arch_of(const sc_hw *hw)
{
    return sc_arch_of(hw->device ? hw->device->arch : NULL);
}

uint32_t sc_nccl_sm(const sc_hw *hw)
{
    return arch_of(hw)->sm;
}

bool hw_server_on_pci(const hw_server *x)
{
    for (uint32_t i = 0; i < x->inner; i++)
        if (x->hw->dim[i].kind != SC_DIM_TREE && x->hw->dim[i].size > 1)
            return false;
    return x->hw->node_size > 1;
}

uint32_t hw_server_ports(const hw_server *x)
{
    return x->net == NULL ? 0 : x->net->ports;
}

/* NCCL's rate for PCI: 12 GB/s of the 15.75 GB/s of Gen 3 x16. */
static float pci_width(const hw_server *x)
{
    double bw = 0;
    if (hw_server_on_pci(x))
        bw = x->hw->dim[0].bw;
    else if (x->hw->device != NULL)
        bw = x->hw->device->host_bw;
    if (!(bw > 0)) return 12;
    return (float)(bw / 1e9 * 0.75);
}

sc_status hw_server_init(hw_server *x, const sc_hw *hw, sc_nccl version,
                         uint32_t most, sc_arena *a, sc_err *err)
{
    const sc_arch *arch = arch_of(hw);
    *x = (hw_server){.hw = hw, .sm = arch->sm, .cpu_model = arch->cpu_model};
    uint32_t product = 1;
    while (x->inner < hw->n_dims && product < hw->node_size)
        product *= hw->dim[x->inner++].size;
    for (uint32_t i = x->inner; i < hw->n_dims && x->net == NULL; i++)
        if (hw->dim[i].ports > 0) x->net = &hw->dim[i];
    x->pci = pci_width(x);
    return hw_topo_init(&x->b, version, most, a, err);
}

sc_status hw_server_cpu(hw_server *x, uint64_t id, sc_pos pos, uint32_t *out)
{
    const char *vendor = x->hw->cpu_vendor;
    bool arm = vendor != NULL && strcmp(vendor, "arm") == 0;
    bool amd = vendor != NULL && strcmp(vendor, "amd") == 0;
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_CPU, id, pos, out));
    sc_topo_node *c = &x->b.t->node[*out];
    c->arch = arm ? SC_CPU_ARM : SC_CPU_X86;
    c->vendor = arm ? SC_CPU_VENDOR_UNKNOWN : amd ? SC_CPU_AMD : SC_CPU_INTEL;
    c->model = c->vendor == SC_CPU_INTEL ? x->cpu_model : 0;
    return SC_OK;
}

static float width_of(const hw_server *x, const hw_part *p)
{
    return p->width > 0 ? p->width : x->pci;
}

sc_status hw_server_switch(hw_server *x, const hw_part *p, uint32_t *out)
{
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_PCI, p->id, p->pos, out));
    return hw_topo_join(&x->b, *out, p->parent, SC_WIRE_PCI, width_of(x, p));
}

sc_status hw_server_gpu(hw_server *x, const hw_part *p)
{
    uint32_t node;
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_GPU, p->id, p->pos, &node));
    sc_topo_node *g = &x->b.t->node[node];
    g->dev = p->dev;
    g->sm = x->sm;
    g->gdr = true;
    return hw_topo_join(&x->b, node, p->parent, SC_WIRE_PCI, width_of(x, p));
}

sc_status hw_server_nic(hw_server *x, const hw_part *p)
{
    uint32_t nic = hw_topo_find(x->b.t, SC_TOPO_NIC, p->id), node;
    bool is_new = nic == UINT32_MAX;
    float width = (float)(x->net->port_bw / 1e9);
    if (is_new) SC_TRY(hw_topo_add(&x->b, SC_TOPO_NIC, p->id, p->pos, &nic));
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_NET, p->dev, p->pos, &node));
    sc_topo_node *n = &x->b.t->node[node];
    n->dev = p->dev;
    n->device = p->id;
    n->gdr = true;
    n->channels = INT32_MAX;
    n->width = width;
    SC_TRY(hw_topo_join(&x->b, nic, node, SC_WIRE_NET, width));
    if (!is_new) return SC_OK;
    /* The slot of a NIC has at least the lanes that its port needs. */
    float slot = width_of(x, p);
    return hw_topo_join(&x->b, nic, p->parent, SC_WIRE_PCI,
                        width > slot ? width : slot);
}

uint32_t hw_server_find(const hw_server *x, uint32_t dev)
{
    const sc_topo *t = x->b.t;
    for (uint32_t i = 0; i < t->n[SC_TOPO_GPU]; i++)
        if (t->node[t->of[SC_TOPO_GPU][i]].dev == dev)
            return t->of[SC_TOPO_GPU][i];
    return UINT32_MAX;
}

/* GB/s of `share` of a device's fabric, as NCCL counts: whole NVLinks at NCCL's
 * rate, or the machine's rate if the fabric is not NVLink. */
static float fabric_width(const hw_server *x, const sc_dim *d, double share)
{
    const sc_device *dev = x->hw->device;
    if (x->sm == 0 || dev == NULL || dev->links == 0 || !(dev->link_bw > 0))
        return (float)(d->bw * share / 1e9);
    double links = round(dev->links * d->bw / dev->link_bw) * share;
    return (float)links * hw_topo_nvlink(x->b.t->version, x->sm);
}

/* Devices that differ from `dev` only in their coordinate of one dimension. */
typedef struct line {
    uint32_t base, stride, size;
} line;

static uint32_t gpu(const hw_server *x, const line *l, uint32_t c)
{
    return hw_server_find(x, l->base + c * l->stride);
}

static sc_status add_switch(hw_server *x, const sc_dim *d, const line *l)
{
    uint32_t nvs;
    SC_TRY(hw_topo_add(&x->b, SC_TOPO_NVS, x->b.t->n[SC_TOPO_NVS],
                       sc_pos_none(), &nvs));
    for (uint32_t c = 0; c < l->size; c++)
        SC_TRY(hw_topo_join(&x->b, gpu(x, l, c), nvs, SC_WIRE_NVLINK,
                            fabric_width(x, d, 1)));
    return SC_OK;
}

/* Adds the links between neighbours of a full graph, a ring or a mesh. */
static sc_status add_links(hw_server *x, const sc_dim *d, const line *l)
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

static sc_status add_cube(hw_server *x, const sc_dim *d, const line *l)
{
    /* Adds the cube mesh's links: six for a device, or with P100 one to each
     * neighbour. */
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

static sc_status add_line(hw_server *x, const sc_dim *d, const line *l)
{
    switch (d->kind) {
    case SC_DIM_SWITCH: return add_switch(x, d, l);
    case SC_DIM_FULL:
    case SC_DIM_RING:
    case SC_DIM_MESH: return add_links(x, d, l);
    case SC_DIM_CUBE: return add_cube(x, d, l);
    case SC_DIM_TREE: break; /* the PCI tree always exists */
    }
    return SC_OK;
}

sc_status hw_server_fabric(hw_server *x)
{
    uint32_t stride = 1;
    for (uint32_t i = 0; i < x->inner; i++) {
        const sc_dim *d = &x->hw->dim[i];
        line l = {0, stride, d->size};
        for (uint32_t g = 0; d->size > 1 && g < x->hw->node_size; g++) {
            if (g / stride % d->size != 0) continue;
            l.base = g;
            SC_TRY(add_line(x, d, &l));
        }
        stride *= d->size;
    }
    return SC_OK;
}
