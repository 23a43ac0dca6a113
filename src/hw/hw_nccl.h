/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_nccl.h - one node as NCCL sees it: GPUs, PCI switches, NVSwitches, CPUs,
 * NICs and networks, joined by directed links.
 *
 * The graph comes from the XML file that NCCL writes (NCCL_TOPO_DUMP_FILE) or
 * reads (NCCL_TOPO_FILE), or from a machine of ours.  NCCL does not use the
 * rates of a data sheet: a link's width is what NCCL's own table gives the
 * generation, and the order of a node's links decides between equal paths.
 *
 * Units: widths in GB/s (1e9 bytes/s), one direction; float because the search
 * repeats NCCL's arithmetic.
 * Ownership: everything lives in the arena given to the reader; immutable.
 */
#ifndef SC_HW_NCCL_H
#define SC_HW_NCCL_H

#include "hw/hw.h"

/* Versions whose constants are known; a release in between has those of the
 * older one. */
typedef enum sc_nccl { SC_NCCL_2_10_3, SC_NCCL_2_30_7, SC_N_NCCLS } sc_nccl;

/* The version whose constants apply to release `text` ("2.18", "2.10.3") on a
 * device of generation `arch`. NULL: the version with which most of that
 * generation was measured: 2.10 up to Ampere, and 2.30 from Hopper on, which
 * 2.10 does not support. False: `text` is no version. */
bool sc_nccl_version(const char *text, const char *arch, sc_nccl *out);

/* NCCL_* variables that change the choice; zero or NULL: not set. The caller
 * fills them, because the library reads no environment. */
typedef struct sc_nccl_options {
    const char *algo;  /* NCCL_ALGO: "ring,tree", "^nvls", from 2.24
                          "ring;allreduce:tree" */
    const char *proto; /* NCCL_PROTO: "LL,LL128,Simple" likewise */
    uint32_t min_channels, max_channels; /* NCCL_MIN_, NCCL_MAX_NCHANNELS */
    uint32_t cross_nic; /* NCCL_CROSS_NIC plus 1: 1 never, 2 always, 3 auto */
    bool pxn_disable;   /* NCCL_PXN_DISABLE */
    bool collnet;       /* NCCL_COLLNET_ENABLE: a plugin reduces in switches */
    sc_pos algo_pos,
        proto_pos; /* their positions; if `file` is NULL, errors name the variable */
} sc_nccl_options;

typedef enum sc_topo_kind {
    SC_TOPO_GPU,
    SC_TOPO_PCI, /* a PCI switch */
    SC_TOPO_NVS, /* all NVSwitches of the node */
    SC_TOPO_CPU, /* a NUMA domain */
    SC_TOPO_NIC,
    SC_TOPO_NET, /* a port of a NIC */
    SC_N_TOPO_KINDS
} sc_topo_kind;

typedef enum sc_wire {
    SC_WIRE_SELF, /* from a GPU to itself */
    SC_WIRE_NVLINK,
    SC_WIRE_PCI,
    SC_WIRE_SYS, /* between CPUs */
    SC_WIRE_NET
} sc_wire;

typedef enum sc_cpu_arch {
    SC_CPU_ARCH_UNKNOWN,
    SC_CPU_X86,
    SC_CPU_ARM,
    SC_CPU_POWER
} sc_cpu_arch;

typedef enum sc_cpu_vendor {
    SC_CPU_VENDOR_UNKNOWN,
    SC_CPU_INTEL,
    SC_CPU_AMD,
    SC_CPU_ZHAOXIN
} sc_cpu_vendor;

typedef struct sc_topo_link {
    uint32_t to; /* node */
    sc_wire wire;
    float width;
} sc_topo_link;

typedef struct sc_topo_node {
    sc_topo_kind kind;
    uint64_t id; /* bus id; CPU: NUMA domain; NET: dev */
    uint32_t n_links, cap;
    sc_topo_link *link; /* [n_links], widest first; the link upwards is last */
    uint32_t dev;       /* GPU, NET: the number that people use */
    uint32_t sm;        /* GPU: compute capability, 80 for 8.0 */
    bool gdr;           /* GPU, NET: GPUDirect RDMA */
    bool collnet;       /* NET: reduces in the network */
    uint64_t device;    /* NET: guid; PCI: vendor, device and subsystem */
    uint32_t port;      /* NET */
    uint32_t channels;  /* NET: connections it can have */
    float width;        /* NET */
    float latency_us;   /* NET: in addition to NCCL's constant */
    sc_cpu_arch arch;   /* CPU */
    sc_cpu_vendor vendor;
    uint32_t model; /* CPU: family << 8 | model */
} sc_topo_node;

typedef struct sc_topo {
    sc_nccl version; /* the version whose widths these are */
    uint32_t n_nodes;
    sc_topo_node *node;          /* [n_nodes] in order of creation */
    uint32_t n[SC_N_TOPO_KINDS]; /* nodes of each kind ... */
    uint32_t
        *of[SC_N_TOPO_KINDS]; /* ... [n] their indices, in order of creation */
} sc_topo;

#define SC_TOPO_GPUS 128 /* most GPUs of one graph */
#define SC_TOPO_KIND 256 /* most nodes of another kind */

/* NCCL topology XML.  All errors of the file are reported in one pass with
 * line and column.  Nothing outside `text` is read: a DTD is refused.
 * Attributes that we do not need are ignored, elements that NCCL does not know
 * are errors.  A GPU without rank takes its dev. */
sc_status sc_topo_read(const char *text, size_t len, const char *file,
                       sc_nccl version, sc_arena *a, const sc_topo **out,
                       sc_err *err);

/* Reads one node from what `nvidia-smi topo -m` prints: how near its devices
 * are and how many NVLinks join them. GPU<n> is dev n. Rates, hosts and the
 * GPUs' generation come from `hw`. The node has as many adapters as in `hw`,
 * those nearest to GPUs. Errors as above. */
sc_status sc_topo_read_matrix(const char *text, size_t len, const char *file,
                              const sc_hw *hw, sc_arena *a, const sc_topo **out,
                              sc_err *err);

/* Reads one node from a file of hwloc (`lstopo FILE.xml`, versions 1 to 3): PCI
 * devices, bridges and NUMA domains, and NVLinks if the file has them,
 * otherwise those of `hw`. GPUs get their devs in the order of bus ids. The
 * rates and the number of adapters come from `hw`, as above. */
sc_status sc_topo_read_hwloc(const char *text, size_t len, const char *file,
                             const sc_hw *hw, sc_arena *a, const sc_topo **out,
                             sc_err *err);

/* Any of the three formats, recognized by its content. */
sc_status sc_topo_read_any(const char *text, size_t len, const char *file,
                           const sc_hw *hw, sc_arena *a, const sc_topo **out,
                           sc_err *err);

/* The graph of one node of a machine. If there are several nodes, it has its
 * NICs. A machine does not state its PCI tree, so two CPUs are assumed and a
 * switch for every two devices, or for each device from Hopper on. */
sc_status sc_topo_from_hw(const sc_hw *hw, sc_nccl version, sc_arena *a,
                          const sc_topo **out, sc_err *err);

/* Compute capability of a machine's devices as NCCL counts, 80 for 8.0; 0: not
 * NVIDIA's. */
uint32_t sc_nccl_sm(const sc_hw *hw);

/* The graph of some GPUs (by dev, each once); `nets`: keep the networks.
 * SC_EINPUT: a dev does not exist, or occurs twice. */
sc_status sc_topo_select(const sc_topo *t, uint32_t n, const uint32_t *dev,
                         bool nets, sc_arena *a, const sc_topo **out,
                         sc_err *err);
#endif
