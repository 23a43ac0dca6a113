/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_server.h - the parts of a server's graph whose figures come from an
 * sc_hw: hosts, PCI links, adapters, the fabric.
 *
 * The caller knows the wiring from a rule or a file. It adds the parts in
 * NCCL's order, each part after the one above it.
 */
#ifndef HW_NCCL_SERVER_H
#define HW_NCCL_SERVER_H

#include "hw/hw_nccl_graph.h"

typedef struct hw_server {
    hw_topo b;
    const sc_hw *hw;
    const sc_dim *net;  /* between nodes; NULL: there is one node only */
    uint32_t inner;     /* dimensions inside the node */
    uint32_t sm;        /* 0: not NVIDIA's */
    uint32_t cpu_model; /* an Intel host of the device's time */
    float pci;          /* GB/s of a device's PCI link, as NCCL counts */
} hw_server;

/* The graph has at most `most` nodes and the version of the machine. */
sc_status hw_server_init(hw_server *x, const sc_hw *hw, sc_nccl version,
                         uint32_t most, sc_arena *a, sc_err *err);

/* Whether the node has no scale-up fabric but the PCI tree. */
bool hw_server_on_pci(const hw_server *x);

/* The number of adapters of a node; 0 if it has no network. */
uint32_t hw_server_ports(const hw_server *x);

/* Adds a NUMA domain with the machine's kind of host. */
sc_status hw_server_cpu(hw_server *x, uint64_t id, sc_pos pos, uint32_t *out);

typedef struct hw_part {
    uint64_t id;     /* on the bus */
    uint32_t dev;    /* of a GPU or NIC */
    uint32_t parent; /* node */
    float width; /* of its PCI link, GB/s as NCCL counts; 0: the machine's */
    sc_pos pos;  /* where the file describes it */
} hw_part;

sc_status hw_server_switch(hw_server *x, const hw_part *p, uint32_t *out);
sc_status hw_server_gpu(hw_server *x, const hw_part *p);
/* Adds a port, and its adapter if that is new. */
sc_status hw_server_nic(hw_server *x, const hw_part *p);

/* Adds the machine's scale-up fabric between the GPUs that were added. Their
 * devs are their coordinates, and there have to be node_size of them. */
sc_status hw_server_fabric(hw_server *x);

/* The node of the GPU with this dev, or UINT32_MAX. */
uint32_t hw_server_find(const hw_server *x, uint32_t dev);

#endif
