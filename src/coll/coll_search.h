/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_search.h - NCCL's topology search and its choice of algorithm.
 *
 * The search finds how many channels a ring or tree has in the graph of one
 * node, and how fast each is.  No formula gives the bandwidth inside a node in
 * general: on a cube mesh it is not even monotone in the number of GPUs.  The
 * tables then give every algorithm and protocol a latency and a bandwidth; NCCL
 * runs the pair with the least L + V / BW, which need not be the fastest.
 *
 * Version 2.10.3 is reproduced decision by decision.  2.30.7 has its own
 * constants and the changes listed in docs/dev/nccl-search.md.
 *
 * Units: GB/s (1e9 bytes/s), us; choices in seconds. Ownership: results live in
 * the arena.
 */
#ifndef SC_COLL_SEARCH_H
#define SC_COLL_SEARCH_H

#include "coll/coll.h"
#include "hw/hw_nccl.h"

/* The distance between two nodes of the graph. */
typedef enum sc_path_type {
    SC_PATH_LOC, /* the same node */
    SC_PATH_NVL, /* NVLink */
    SC_PATH_NVB, /* NVLink through another GPU */
    SC_PATH_PIX, /* one PCI switch */
    SC_PATH_PXB, /* several PCI switches */
    SC_PATH_PXN, /* another GPU's NIC, over NVLink (2.12 and later) */
    SC_PATH_PHB, /* through a CPU */
    SC_PATH_SYS, /* between CPUs */
    SC_N_PATH_TYPES
} sc_path_type;

extern const char *const sc_path_type_names[]; /* "LOC" ...; NULL ends */

typedef enum sc_topo_pattern {
    SC_TOPO_RING,
    SC_TOPO_BALANCED_TREE, /* traffic to the network split over two GPUs */
    SC_TOPO_TREE,
    SC_TOPO_NVLS /* through the NVSwitch, one head per channel */
} sc_topo_pattern;

typedef struct sc_search {
    sc_topo_pattern pattern;
    uint32_t n_gpus, n_channels;
    double intra, inter; /* GB/s of one channel in the node, to the network */
    sc_path_type type_intra, type_inter; /* largest distance allowed */
    bool same_channels;                  /* all channels have the same order */
    bool cross_nic;        /* a channel leaves by another NIC than it enters */
    double net_latency_us; /* of the NIC, from the file */
    const uint32_t *order; /* [n_channels * n_gpus] dev */
    const uint32_t *net;   /* [n_channels * 2] dev of the NICs by which a
                              channel enters and leaves; SC_NO_NET without
                              network */
    uint64_t visits;       /* steps of the search */
} sc_search;

#define SC_NO_NET       UINT32_MAX
#define SC_MAX_CHANNELS 64

/* The channels of all patterns of one communicator.  With `nodes` > 1 the
 * search includes networks. */
typedef struct sc_channels {
    sc_nccl version;
    uint32_t n_local; /* GPUs of the communicator in one node */
    uint32_t nodes;
    uint32_t min_sm, max_sm;
    sc_cpu_arch arch;
    sc_cpu_vendor vendor;
    bool nvswitch;
    uint32_t n_channels;        /* of ring and tree: the least */
    sc_search ring, tree, nvls; /* nvls.n_channels 0: no NVLS */
} sc_channels;

/* All patterns for GPUs `dev` (NULL: 0 to n - 1) of a graph; its networks are
 * used if there are any.  A pattern that does not exist has one channel of 0.1
 * GB/s, NCCL's own fallback (NVLS: no channel). */
sc_status sc_topo_channels(const sc_topo *t, uint32_t n, const uint32_t *dev,
                           uint32_t nodes, const sc_nccl_options *options,
                           sc_arena *a, sc_channels *out, sc_err *err);

/* The same for devices of a machine's node.  SC_EINPUT if the node is too large
 * for the search. */
sc_status sc_coll_search(const sc_hw *hw, sc_nccl version, uint32_t n_local,
                         uint32_t nodes, const sc_nccl_options *options,
                         sc_arena *a, sc_channels *out, sc_err *err);

/* The channels of one communicator of a machine, which NCCL's choice needs.  On
 * NVSwitches, full meshes, rings and PCIe trees they follow from widths and
 * adapters, within microseconds.  A cube mesh and a node that is given as a
 * topology file are searched; results are kept in hw->memo.  Members are
 * devices 0 to m - 1 of each node.  `order` and `net` of the searches are NULL.
 * Version: hw->nccl; options: hw->nccl_options. Errors: SC_C_UNSUPPORTED, a
 * device that NCCL does not drive; SC_C_TOO_BIG, a node too large for the
 * search. */
sc_status sc_coll_channels(const sc_hw *hw, uint32_t m, uint32_t nodes,
                           sc_channels *out, sc_err *err);

/* True where rates inside the node are found by the search. */
bool sc_coll_wired(const sc_hw *hw);

/* Bytes/s of a member's port that the links between devices 0 to m - 1 of a
 * wired node allow, at the machine's own rate of a link. */
typedef struct sc_wiring {
    double ring;      /* neighbours: the rings that the search finds */
    double all_pairs; /* all pairs over shortest paths */
    double pair;      /* device 0 to device 1 */
} sc_wiring;

/* SC_C_UNSUPPORTED: only the host connects the members. */
sc_status sc_coll_wiring(const sc_hw *hw, uint32_t m, sc_wiring *out,
                         sc_err *err);

/* Algorithms and protocols as NCCL numbers them. */
typedef enum sc_nccl_algo {
    SC_NCCL_TREE,
    SC_NCCL_RING,
    SC_NCCL_COLLNET_DIRECT, /* 2.10: "CollNet" */
    SC_NCCL_COLLNET_CHAIN,
    SC_NCCL_NVLS,
    SC_NCCL_NVLS_TREE,
    SC_NCCL_PAT,
    SC_N_NCCL_ALGOS
} sc_nccl_algo;

typedef enum sc_nccl_proto {
    SC_NCCL_LL,
    SC_NCCL_LL128,
    SC_NCCL_SIMPLE,
    SC_N_NCCL_PROTOS
} sc_nccl_proto;

extern const char *const sc_nccl_algo_names[];  /* "Tree" ...; NULL ends */
extern const char *const sc_nccl_proto_names[]; /* "LL" ...; NULL ends */
extern const char *const sc_nccl_names[];       /* "2.10.3" ...; NULL ends */

typedef struct sc_tuning_cell {
    double latency_us;
    double bandwidth; /* GB/s of V, as nccl-tests counts it; 0: the pair is not
                         used */
} sc_tuning_cell;

/* NCCL's choice covers the first collectives of sc_coll. */
#define SC_N_TUNED_COLLS (SC_REDUCE + 1)

/* NCCL's table of one communicator.  Plain data, can be copied. */
typedef struct sc_tuning {
    sc_nccl version;
    uint32_t n, nodes, min_sm;
    bool x86;
    uint32_t n_channels;    /* of the communicator, each takes one SM */
    uint32_t nvls_channels; /* of NVLS and NVLSTree */
    uint32_t threads[SC_N_NCCL_ALGOS][SC_N_NCCL_PROTOS];
    sc_tuning_cell cell[SC_N_TUNED_COLLS][SC_N_NCCL_ALGOS][SC_N_NCCL_PROTOS];
} sc_tuning;

/* SC_EINPUT: an option has a name that NCCL does not know, or the communicator
 * has one member.  n = g->n_local * g->nodes. */
sc_status sc_coll_tune(const sc_channels *g, const sc_nccl_options *options,
                       sc_tuning *out, sc_err *err);

typedef struct sc_choice {
    sc_nccl_algo algo;
    sc_nccl_proto proto;
    double time_s;                  /* estimate of the table or of a selector */
    double latency_us, bandwidth;   /* the table's entry after corrections for
                                       size */
    uint32_t n_channels, n_threads; /* for a message of this size */
} sc_choice;

/* One pair; SC_NO if it is not used.  `ops`: operations in one group call. */
sc_status sc_coll_table(const sc_tuning *t, sc_coll coll, sc_nccl_algo algo,
                        sc_nccl_proto proto, double bytes, uint32_t ops,
                        sc_choice *out);

/* NCCL's choice. SC_NO: the options exclude everything, or NCCL has no
 * algorithms for the collective (all-to-all, send and receive). */
sc_status sc_coll_select(const sc_tuning *t, sc_coll coll, double bytes,
                         uint32_t ops, sc_choice *out);

/* The row of one collective of the table, for which sc_coll_select() may then
 * be called; SC_NO: NCCL has no algorithms for it. */
sc_status sc_coll_tune_one(const sc_channels *g, const sc_nccl_options *options,
                           sc_coll coll, sc_tuning *out, sc_err *err);
#endif
