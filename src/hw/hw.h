/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw.h - the machine: devices, memory, links, rules of routing.
 *
 * A machine is a list of network dimensions, innermost first.  Device r has
 * mixed-radix coordinates: r = c0 + size0 * (c1 + size1 * (c2 + ...)).  A
 * cluster of nodes is two or three dimensions: the scale-up fabric inside a
 * node, then the network between nodes (leaf, spine).  Routes are computed by
 * rule from the coordinates, never stored.
 *
 * Units: bytes, bytes/s (one direction), seconds, FLOP/s, W.
 * Ownership: everything lives in the arena given to the builder; an sc_hw is
 * immutable after it is built and may be shared between threads.
 */
#ifndef SC_HW_H
#define SC_HW_H

#include "base/base.h"

typedef enum sc_precision {
    SC_FP32,
    SC_TF32,
    SC_FP16,
    SC_BF16,
    SC_FP8,
    SC_FP4,
    SC_INT8,
    SC_N_PRECISIONS
} sc_precision;

extern const char *const sc_precision_names[]; /* "fp32"...; NULL ends */
double sc_precision_bytes(sc_precision p);     /* per element */
/* Bytes per element of values between products. Formats below 16 bits are only
 * used inside products. */
double sc_value_bytes(sc_precision p);

/* The source of a value. */
typedef struct sc_source {
    const char *text; /* "NVIDIA A100 datasheet" */
    const char *date; /* "2021-06" */
} sc_source;

typedef struct sc_value {
    const char *key, *text; /* "mem_bw", "2039GB/s" */
    sc_source source;
} sc_value;

typedef struct sc_device {
    const char *name;             /* "a100-sxm-80g" */
    const char *title;            /* "NVIDIA A100 SXM4 80 GB" */
    const char *vendor;           /* "nvidia" */
    const char *arch;             /* key of fits: "pascal" "volta" "turing"
                                        "ampere" "ada" "hopper" "blackwell"
                                        "blackwell-ultra"
                                        "blackwell-rtx" "cdna1".."cdna4"
                                        "gaudi" "tpu-v3".. "dojo" */
    const char *node;             /* catalogue node it usually sits in */
    const char *like;             /* a device of a cluster file: the catalogue's
                                     device whose figures it has unless the file
                                     gives them; NULL */
    double peak[SC_N_PRECISIONS]; /* FLOP/s, dense, of the fastest unit for
                                        that precision; 0: not supported */
    double vector_flops;          /* FLOP/s fp32 outside matrix units */
    uint64_t mem_bytes;           /* nominal; a driver keeps 1 to 5 % */
    double mem_bw;                /* bytes/s */
    uint64_t l2_bytes;
    uint32_t units; /* SMs, CUs, cores */
    uint32_t array; /* side of a systolic array; 0: none */
    double
        chip_fraction; /* the peaks of the same chip on its family's reference board, as a fraction of these peaks */
    double clock_hz;   /* boost */
    uint32_t links;    /* number of scale-up links; 0: none */
    double link_bw;    /* bytes/s of all scale-up links, one dir. */
    double host_bw;    /* bytes/s to the host (PCIe), one dir. */
    double power_w;    /* board power limit, or that of a job */
    double usual_power_w; /* the board's limit if a job has a lower one, or 0 */
    uint32_t n_values;    /* for `show`: every value and its source */
    const sc_value *values; /* [n_values] */
} sc_device;

typedef enum sc_dim_kind {
    SC_DIM_SWITCH, /* every member has a port of bw into a full crossbar */
    SC_DIM_FULL,   /* a link of bw / (size - 1) between every pair */
    SC_DIM_RING,   /* bw / 2 to each of two neighbours, wraps */
    SC_DIM_MESH,   /* as ring, no wrap: two of these are a 2-D mesh */
    SC_DIM_TREE,   /* PCIe tree: four members under each host bridge */
    SC_DIM_CUBE    /* NVLink hybrid cube mesh of 8 P100 or V100 */
} sc_dim_kind;

extern const char *const sc_dim_kind_names[]; /* "switch" "fc" "ring" ... */

/* The kind of network between nodes: how its steps and its sharing cost. */
typedef enum sc_net_kind {
    SC_NETWORK_UNKNOWN,
    SC_NETWORK_INFINIBAND,
    SC_NETWORK_ROCE,
    SC_NETWORK_EFA,
    SC_NETWORK_TCP, /* GPUDirect over TCP */
    SC_N_NETWORKS
} sc_net_kind;

extern const char *const sc_net_kind_names[]; /* "unknown" ...; NULL ends */

typedef struct sc_dim {
    sc_dim_kind kind;
    uint32_t size;    /* members: 8 devices of a node, 16 nodes ... */
    double bw;        /* bytes/s per device, one direction, nominal */
    double latency_s; /* one hop */
    /* A dimension between nodes: */
    uint32_t ports;      /* NICs per node; 0 inside a node.  bw is then
                          ports * port_bw / node_size */
    double port_bw;      /* bytes/s of one NIC, one direction */
    double oversub;      /* leaf to spine, or dragonfly group to the other
                          groups: oversubscription, >= 1 */
    uint32_t leaf;       /* nodes under one leaf switch; 0: all */
    uint32_t group;      /* nodes of one dragonfly group, of whole leaves; 0: no
                          dragonfly, leaves join at spines */
    uint32_t rails;      /* leaf switches of such a group: NIC i of every node
                          is on switch i * rails / ports; 1: no rails */
    uint32_t pod;        /* nodes of one pod, of whole leaves, whose spines join
                          the others' at cores; 0: no third tier */
    double core_oversub; /* spine to core, >= 1 */
    sc_net_kind network; /* kind of a dimension between nodes */
    bool multicast;      /* the switch reduces and multicasts (NVLS, SHARP) */
} sc_dim;

#define SC_HW_DIMS 8

/* Nodes of one kind, in a cluster with several kinds of nodes. */
typedef struct sc_node_group {
    uint32_t first, n; /* nodes */
    const sc_device *device;
    uint32_t ports;      /* NICs per node */
    double port_bw;      /* bytes/s of one, one direction */
    uint64_t first_port; /* number of NICs of all nodes before */
} sc_node_group;

/* Memory that devices reach beside their own without the host's processor: CXL,
 * or a pool.  Every device has the same. */
typedef struct sc_expanded {
    double bytes; /* of one device; 0: none */
    double bw;    /* bytes/s of one device, one direction */
    double latency_s;
    uint32_t pool; /* devices that share the capacity of all of them */
    bool spread;   /* every tensor has a part there, see sc_hw_spread() */
} sc_expanded;

/* Average power of the parts of the network between nodes, in W; 0 within one
 * node. Adapters sit in hosts. */
typedef struct sc_network_power {
    double adapters_w, switches_w, links_w;
} sc_network_power;

typedef struct sc_hw {
    const char *name; /* the text that the user wrote */
    /* The device. If groups differ, it has the lowest rates and the smallest
     * memory of all groups and their mean power. */
    const sc_device *device;
    bool
        device_assumed; /* the one-line form did not name it, so the default was taken */
    const char *nearest; /* why its device or node replaces an unknown name;
                            NULL: it does not */
    const char *node_assumed; /* the node of the catalogue if only the device
                                 was named; NULL: the user named or described
                                 the node */
    uint32_t n_devices;
    uint32_t n_dims;
    sc_dim dim[SC_HW_DIMS];
    uint32_t node_size; /* devices of one node, which is the scale-up domain
                           (product of inner dims): a rack of NVL72, a TPU
                           slice */
    uint32_t host_size; /* devices of one host: node_size, or less */
    uint32_t n_nodes;
    sc_expanded expanded;
    const char *cpu_vendor; /* "intel" "amd" "arm" or "" */
    double node_power_w;    /* host share without devices (mean of nodes); 0:
                                  unknown */
    double pue;             /* power usage effectiveness; 0: unknown */
    double price;           /* rent of a device, USD/s; 0: unknown */
    sc_network_power network_power;
    uint64_t hash;          /* hash of all numbers, but not of the name */
    uint32_t n_values;      /* of the node, for `show`; may be 0 */
    const sc_value *values; /* [n_values] */
    /* Set if nodes differ; the NICs of `dim` are then those of the slowest
     * node. */
    uint32_t n_groups;           /* 0: all nodes are alike */
    const sc_node_group *groups; /* [n_groups], by rising `first` */
    /* The collective library, see hw_nccl.h. */
    int nccl;          /* sc_nccl: the version whose constants hold */
    bool nccl_assumed; /* no release was named, so the usual one is assumed */
    const struct sc_nccl_options *nccl_options; /* NULL: none set */
    const struct sc_topo *topo;     /* the node as a file of NCCL describes it;
                                       NULL: only `dim` does */
    const struct sc_wiring *wiring; /* links and routes as a file gives them,
                                       see hw_wiring.h; closed forms still use
                                       `dim`. NULL: links follow from `dim` */
    struct hw_memo *memo; /* results that are expensive to compute; never
                             changes a result; may be NULL */
} sc_hw;

struct sc_nccl_options;
struct sc_topo;
struct sc_wiring;
struct hw_memo;

/* The device at index `device` < n_devices. */
const sc_device *sc_hw_device_at(const sc_hw *hw, uint32_t device);

/* A machine whose devices may use `watts` each, or less where a board may;
 * watts <= 0: no limit.  The clock falls with the cube root of the power, and
 * with it the rate outside matrix units; cost/ prices that of matrix units by
 * the power, and memory keeps its rate. */
sc_status sc_hw_cap(const sc_hw *hw, double watts, sc_arena *a,
                    const sc_hw **out, sc_err *err);

/* Bytes/s of a memory with a fraction of its data in expanded memory: both are
 * read in turn, 1 / ((1 - f) / bw + f / bw_expanded) (COMET, arXiv 2211.16648,
 * section on hybrid memory), or at the same time, min(bw / (1 - f),
 * bw_expanded / f), as pages that alternate between both are. */
double sc_hw_hybrid_bw(double bw, double expanded_bw, double fraction,
                       bool in_turn);

/* A machine whose devices keep this fraction of every tensor in their expanded
 * memory: a memory of that rate, which is full when the first of both is.
 * fraction <= 0: the machine itself. Errors: SC_C_CONFLICT, it has no expanded
 * memory, or different kinds of nodes. */
sc_status sc_hw_spread(const sc_hw *hw, double fraction, bool in_turn,
                       sc_pos pos, sc_arena *a, const sc_hw **out, sc_err *err);

/* The assumptions about nodes if only a device was named, as text in the arena.
 * NULL: none, or out of memory. */
const char *sc_hw_assumed(const sc_hw *hw, sc_arena *a);

/* The catalogue as built in.  `name` is a device, resolved through aliases
 * ("A100-SXM-80GB", "NVIDIA H100 80GB HBM3").  Errors: unknown name with the
 * nearest; a name that is known but not in the catalogue yet says so. */
sc_status sc_device_find(const char *name, sc_arena *a, const sc_device **out,
                         sc_err *err);

/* The same, but an unknown name gives the device of the catalogue whose name it
 * contains ("H100 96GB custom"), or h100-sxm, with a warning in the arena
 * (otherwise NULL). */
sc_status sc_device_nearest(const char *name, sc_arena *a,
                            const sc_device **out, const char **warning,
                            sc_err *err);

/* Whether a machine is described in a file, by the end of its name. */
bool sc_hw_is_file(const char *spec);

/* Any form in which people name a machine:
 *   CATALOGUE:N             "dgx-a100-80g:16" (N nodes; racks of NVL72; chips
 *                           of a TPU pod; absent: 1), or "a100-sxm-80g:16"
 *                           (N devices in its usual nodes)
 *   FILE.yml                cluster file
 *   one line                "ring4@300GB/s,50ns x switch4@50GB/s"
 * A name or a line may be followed by "; nic_bw=200Gb/s; device=h100-sxm".
 * `pos` is used in diagnostics of command-line values; the column in the text
 * is added to it.  See docs/cluster.md. */
sc_status sc_hw_build(const char *spec, sc_pos pos, sc_arena *a,
                      const sc_hw **out, sc_err *err);

/* The same with another rate of the network adapters, in bytes/s of one adapter
 * in one direction; 0: the machine's own. SC_C_CONFLICT at `at` if nodes differ
 * or no network joins them. */
sc_status sc_hw_build_nics(const char *spec, sc_pos pos, double nic_bw,
                           sc_pos at, sc_arena *a, const sc_hw **out,
                           sc_err *err);

/* A machine of a name or file as a cluster file with all its values, which reads
 * back to the same machine.  SC_C_UNSUPPORTED at `pos`: no file can state it. */
sc_status sc_hw_yaml(const char *spec, sc_pos pos, double nic_bw, sc_arena *a,
                     sc_text *out, sc_err *err);

/* A name, or the name of a device (or of a node, unless `devices`) that is
 * nearest to it and `why` it replaces it; NULL: the name is known, or nothing
 * has a word in common. */
sc_status sc_hw_nearest(const char *name, bool devices, sc_arena *a,
                        const char **out, const char **why, sc_err *err);

/* A cluster from numbers, as a row of a truth table states them: `nodes` x
 * `per_node` devices, scale-up and NIC bytes/s per device (0: from the
 * device, or the catalogue's node for that device).  Where `per_node` is one
 * host of a wider scale-up domain (4 of an NVL72 rack or a TPU pod), hosts are
 * taken together into as large domains as divide them evenly. */
sc_status sc_hw_from_numbers(const char *device, uint32_t nodes,
                             uint32_t per_node, double intra_bw,
                             double inter_bw, sc_pos pos, sc_arena *a,
                             const sc_hw **out, sc_err *err);

/* The same cluster with another kind of network between its nodes. */
sc_status sc_hw_with_network(const sc_hw *hw, sc_net_kind kind, sc_arena *a,
                             const sc_hw **out, sc_err *err);

/* The one-line form; parses back to the same machine (equal hash), but for
 * groups of different nodes, of which it shows the slowest, and options of the
 * collective library.  Always terminated;
 * returns the length it needs. */
size_t sc_hw_print(const sc_hw *hw, char *buf, size_t size);

/* The scope of a link: inside a node (scale-up fabric) or between nodes. */
typedef enum sc_scope { SC_SCOPE_NODE, SC_SCOPE_NET } sc_scope;

/* Directed links of the route from device `src` to `dst`.  Link ids are
 * dense in [0, sc_hw_n_links()).  Returns the number of links (0 if src ==
 * dst), writes at most `cap`.  `seed` picks among equal paths (ECMP). */
uint64_t sc_hw_n_links(const sc_hw *hw);
double sc_hw_link_bw(const sc_hw *hw, uint64_t link);
/* Seconds that a link adds to a message.  The latency of a dimension is that of
 * one hop between neighbours: half of it for a link that ends at a switch or
 * bridge, none for the link to a NIC. */
double sc_hw_link_latency(const sc_hw *hw, uint64_t link);
void sc_hw_link_name(const sc_hw *hw, uint64_t link, char *buf, size_t size);
sc_scope sc_hw_link_scope(const sc_hw *hw, uint64_t link);
uint32_t sc_hw_route(const sc_hw *hw, uint32_t src, uint32_t dst, uint64_t seed,
                     uint64_t *links, uint32_t cap);

/* Where the members of a communicator are, as far as a price depends on it. If
 * nodes have different numbers of members, m is the largest number that divides
 * all of these in every sibling group. nodes = n / m then counts a node several
 * times, so the price is rather too high. */
typedef struct sc_place {
    uint32_t n;     /* members */
    uint32_t m;     /* members in one node (scale-up domain) */
    uint32_t nodes; /* nodes touched: n = m * nodes */
    uint32_t peers; /* equal groups that share each node's NICs at once */
    uint32_t apart; /* devices from one member of a node to the next; 0: no
                       node has two */
    uint32_t reach; /* nodes from a member's to the next one's; 0: one */
    uint32_t dim_n[SC_HW_DIMS]; /* members along each dimension; product n */
} sc_place;

/* Members are base + i * stride, i < n (one mesh axis), extended by further
 * axes: n_axes pairs (size, stride).  All devices outside the group work in
 * sibling groups of the same shape. */
sc_place sc_hw_place(const sc_hw *hw, uint32_t n_axes, const uint32_t *size,
                     const uint32_t *stride);

/* The members are `rank` [n], in ascending order, n >= 1; no other device
 * communicates. */
sc_place sc_hw_place_ranks(const sc_hw *hw, uint32_t n, const uint32_t *rank);

/* Members at the positions `at` [n], n >= 1, of every group along one axis, if
 * all groups exchange at once. The axis has `size` members, `stride` apart,
 * over the whole machine. The result is the worst place; `peers` is the number
 * of groups that share the NICs of the fullest node. */
sc_place sc_hw_place_axis(const sc_hw *hw, uint32_t size, uint32_t stride,
                          uint32_t n, const uint32_t *at);

/* Names for `list`; all live in static data or the arena. */
sc_status sc_hw_list(bool devices, sc_arena *a, const char ***names,
                     uint32_t *n, sc_err *err);
#endif
