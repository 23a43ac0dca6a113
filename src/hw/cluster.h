/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - the description of a machine, before the machine is built.
 *
 * Files of the catalogue's nodes and cluster files have the same keys.
 */
#ifndef HW_CLUSTER_H
#define HW_CLUSTER_H

#include "hw/device.h"
#include "hw/hw_keys.h"
#include "hw/names.h"
#include "hw/read.h"

typedef enum hw_fabric {
    HW_NVSWITCH,
    HW_NVLINK_MESH,
    HW_PCIE_TREE,
    HW_TORUS,
    HW_RING,
    HW_FULL,
    HW_NONE,
    HW_MESH,
    HW_BRIDGE_PCIE,
    HW_FABRIC_UNKNOWN /* not given */
} hw_fabric;

typedef enum hw_unit { HW_UNIT_NODE, HW_UNIT_CHIP } hw_unit;

typedef struct hw_spec {
    const char *name, *title, *device, *node, *shape;
    const sc_node *sources, *groups;
    int64_t devices_per_node, nodes; /* 0: not given */
    int fabric;                      /* hw_fabric */
    int unit;                        /* hw_unit: what the N of NAME:N counts */
    int64_t host;                    /* devices of one host; 0: the node's */
    int64_t wrap, bridge;
    double bandwidth; /* bytes/s per device; 0: the device's */
    double fabric_latency, nic_latency;
    bool multicast;
    double expanded_memory, expanded_bw, expanded_latency;
    double expanded_pool_bw; /* bytes/s of the whole pool; 0: no limit */
    int64_t expanded_pool;
    int64_t nics; /* per node; -1: not given */
    double nic_bw;
    int64_t rails, leaf, group, pod;
    double oversubscription, core_oversubscription, node_power, pue, price;
    int cpu;     /* index into hw_cpus */
    int network; /* sc_net_kind */
    /* The collective library. */
    const char *nccl, *nccl_algo, *nccl_proto, *topology, *wiring;
    int64_t nccl_min_channels, nccl_max_channels; /* 0: not given */
    int64_t nccl_cross_nic;                       /* -1: not given */
    bool nccl_pxn_disable, sharp;
    /* Not keys: */
    const hw_own *own;        /* devices that the file itself describes */
    const char *node_assumed; /* see hw.h */
    hw_values values;
    sc_pos pos;         /* of the whole description */
    const sc_node *map; /* the tree it was read from, or NULL */
} hw_spec;

extern const char *const hw_cpus[]; /* "unknown" "intel" "amd" "arm" */

/* All keys of a file, and those after the ';' behind the dimensions of a line;
 * those behind a name are in hw_keys.h. */
extern const sc_key hw_cluster_keys[];
extern const sc_key hw_line_keys[];

sc_status hw_spec_init(hw_spec *s, sc_pos pos, sc_arena *a, sc_err *err);

/* Reads a cluster or node file over the defaults, or over the catalogue node
 * that its `node:` names. */
sc_status hw_cluster_read(const char *text, size_t len, const char *file,
                          hw_spec *s, sc_arena *a, sc_err *err);

/* Reads one item of `groups:`; other values are those of `of`. */
sc_status hw_group_read(const sc_node *item, const hw_spec *of, hw_spec *s,
                        sc_arena *a, sc_err *err);

/* Reads a node of the catalogue. */
sc_status hw_node_read(const sc_embedded *file, hw_spec *s, sc_arena *a,
                       sc_err *err);

/* The number of rails of a node after its adapters were reduced: unless rails
 * were `given`, each adapter keeps a rail of its own. */
void hw_own_rails(hw_spec *s, bool given);

/* The position of `key`, or of the description if it has no such key. */
sc_pos hw_spec_pos(const hw_spec *s, const char *key);

#endif
