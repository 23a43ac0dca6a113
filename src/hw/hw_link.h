/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - the links of a machine, numbered by rule.
 *
 * Ids are dense: dimension by dimension, and inside a dimension by device or
 * switch. The ends of links are vertices. Nothing of this is stored.
 */
#ifndef HW_LINK_H
#define HW_LINK_H

#include "hw/hw.h"

typedef enum hw_vertex_kind {
    HW_V_DEVICE, /* id: device */
    HW_V_SWITCH, /* dim, id: instance of the dimension */
    HW_V_BRIDGE, /* dim, id: instance * bridges + bridge */
    HW_V_NIC,    /* id: of all NICs, node by node */
    HW_V_LEAF,   /* id: group of nodes * rails + rail */
    HW_V_SPINE,  /* id: (pod * rails + rail) * spines + spine */
    HW_V_CORE    /* id: (rail * spines + spine) * cores + core */
} hw_vertex_kind;

typedef struct hw_vertex {
    hw_vertex_kind kind;
    uint32_t dim;
    uint64_t id;
} hw_vertex;

typedef struct hw_link {
    uint32_t dim;
    hw_vertex from, to;
    double bw; /* bytes/s, one direction */
} hw_link;

/* Place of a dimension in the machine: device = (instance / inner * size +
 * c) * inner + instance % inner. */
typedef struct hw_axis {
    uint64_t inner;     /* product of the sizes of inner dimensions */
    uint64_t size;      /* members */
    uint64_t instances; /* of this dimension */
    uint64_t base;      /* its first link id */
} hw_axis;

hw_axis hw_axis_of(const sc_hw *hw, uint32_t dim);

/* The network between nodes.  Devices that share a NIC reach it over a host
 * link; a device with a NIC of its own sits at its port. */
typedef struct hw_net {
    const sc_hw *hw;
    uint64_t nodes, node_size, ports, rails, leaf, groups, spines;
    bool attach; /* every device has a host link, or none has */
    /* A dragonfly has no spines. Each of `flies` groups has `switches`, which
     * are all joined in pairs; switch i of one group is also joined with switch
     * i of each other group. */
    uint64_t flies, switches;
    /* With a third tier, spine i of every pod is joined with the same `cores`;
     * without one all nodes are in one pod. */
    uint64_t pod, pods, cores;
    /* Ids relative to the dimension. */
    uint64_t nic_base, spine_base, global_base, core_base, n;
    double spine_bw; /* leaf to spine, or within a dragonfly group */
    double global_bw, core_bw;
} hw_net;

hw_net hw_net_of(const sc_hw *hw, uint32_t dim);

/* The dimensions of a machine, prepared for many queries. A machine with wiring
 * has no links here. */
typedef struct hw_map {
    const sc_hw *hw;
    hw_axis axis[SC_HW_DIMS]; /* [hw->n_dims] */
    uint64_t n_links;
    hw_net net; /* of the last dimension, if it has ports */
} hw_map;

hw_map hw_map_of(const sc_hw *hw);

/* False if there is no such link. */
bool hw_link_get(const hw_map *map, uint64_t link, hw_link *out);

/* Whether a link joins switches: a tier above the leaves, or a dragonfly. */
static inline bool hw_link_above(const hw_link *l)
{
    return l->from.kind >= HW_V_LEAF && l->to.kind >= HW_V_LEAF;
}

/* The links of a fat tree among which routes choose at one switch. */
typedef struct hw_bundle {
    uint64_t first, n; /* links first + 2 * i, i < n */
} hw_bundle;

/* The bundle of a link; n = 1 if routes have no other link there. */
hw_bundle hw_link_bundle(const hw_map *map, uint64_t link);
/* As sc_hw_route(). */
uint32_t hw_route(const hw_map *map, uint32_t src, uint32_t dst, uint64_t seed,
                  uint64_t *links, uint32_t cap);

/* NICs of one node. */
typedef struct hw_nics {
    uint64_t first, n; /* of all NICs */
    double bw;
} hw_nics;

hw_nics hw_net_nics(const hw_net *net, uint64_t node);

/* Only for machines whose nodes are all alike. */
static inline hw_nics hw_equal_nics(const hw_net *t, uint64_t node)
{
    return (hw_nics){node * t->ports, t->ports,
                     t->hw->dim[t->hw->n_dims - 1].port_bw};
}

/* First NIC of a device by its place in a node of n NICs, and how many it
 * has. */
static inline uint64_t hw_net_nic(const hw_net *t, uint64_t n, uint64_t local,
                                  uint64_t *count)
{
    *count = 1;
    if (n == t->node_size) return local;
    uint64_t first = local * n / t->node_size;
    uint64_t next = (local + 1) * n / t->node_size;
    if (next > first) *count = next - first;
    return first;
}

/* Devices under one host bridge of a PCIe tree. */
#define HW_BRIDGE 4

/* An NVLink edge of the cube mesh: the neighbour and the number of links. */
typedef struct hw_edge {
    uint8_t to, count;
} hw_edge;

#define HW_CUBE_DEGREE 4
extern const hw_edge hw_cube[8][HW_CUBE_DEGREE];

/* The neighbour's index in hw_cube[from], or -1. */
int hw_cube_edge(uint32_t from, uint32_t to);

#endif
