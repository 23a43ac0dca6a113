/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_node.c - the graph of a node as NCCL would see it.
 *
 * The fabric is the machine's. What the machine does not state is assumed as in
 * usual servers: two CPUs if there are more devices than one host bridge
 * carries, a PCI switch for every two devices (from Hopper on for each), NICs
 * spread over the switches, GPUDirect RDMA on all of them.
 */
#include "hw/hw_link.h"
#include "hw/nccl_server.h"

/* The first of the bus ids that no other part of the node has. */
enum { GPU_ID = 0x1000, NIC_ID = 0x2000 };

static sc_status add_devices(hw_server *x, uint32_t s, uint32_t groups,
                             uint32_t up)
{
    bool tree = hw_server_on_pci(x);
    uint32_t size = x->hw->node_size, ports = hw_server_ports(x);
    for (uint32_t g = 0; g < size; g++) {
        uint32_t at =
            tree ? g / HW_BRIDGE : (uint32_t)((uint64_t)g * groups / size);
        hw_part p = {.id = GPU_ID + g, .dev = g, .parent = up};
        if (at == s) SC_TRY(hw_server_gpu(x, &p));
    }
    for (uint32_t i = 0; i < ports; i++) {
        hw_part p = {.id = NIC_ID + i, .dev = i, .parent = up};
        if ((uint64_t)i * groups / ports == s) SC_TRY(hw_server_nic(x, &p));
    }
    return SC_OK;
}

/* Adds host bridges, switches, devices and NICs in the order of a bus scan. */
static sc_status add_pci(hw_server *x)
{
    bool tree = hw_server_on_pci(x);
    uint32_t size = x->hw->node_size, ports = hw_server_ports(x);
    uint32_t pairs = (size + 1) / 2;
    /* A DGX A100 has two devices and two adapters on a switch, a DGX H100 a
     * switch for each device. */
    bool apart = ports > pairs && x->sm >= 90;
    uint32_t groups = tree    ? (size + HW_BRIDGE - 1) / HW_BRIDGE
                      : apart ? (ports < size ? ports : size)
                              : pairs;
    uint32_t cpus = tree ? groups : size > HW_BRIDGE ? 2 : 1, cpu;
    for (uint32_t i = 0; i < cpus; i++)
        SC_TRY(hw_server_cpu(x, i, sc_pos_none(), &cpu));
    for (uint32_t s = 0; s < groups; s++) {
        uint32_t top = x->b.t->of[SC_TOPO_CPU][s * cpus / groups], up = top;
        hw_part p = {.id = s, .parent = top};
        if (!tree) SC_TRY(hw_server_switch(x, &p, &up));
        SC_TRY(add_devices(x, s, groups, up));
    }
    return SC_OK;
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
    hw_server x;
    uint32_t ports = 0;
    for (uint32_t i = 0; i < hw->n_dims && ports == 0; i++)
        ports = hw->dim[i].ports;
    SC_TRY(check_size(hw, ports, err));
    uint32_t most = 4 * hw->node_size + 3 * ports + SC_TOPO_KIND;
    SC_TRY(hw_server_init(&x, hw, version, most, a, err));
    SC_TRY(add_pci(&x));
    SC_TRY(hw_server_fabric(&x));
    SC_TRY(hw_topo_finish(&x.b));
    *out = x.b.t;
    return SC_OK;
}
