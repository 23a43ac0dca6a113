/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_params_network.h - parameters of collective times, fitted on the tables
 * data/validation/network*.csv; see cost.h and cost_params.h. sd 0: not fitted.
 * Bandwidths are fractions of the nominal rate of a port.
 *
 * Parameters by generation have four rows, volta, ampere, hopper and blackwell,
 * in this order (cost/coll_estimate.c indexes them).  NVIDIA devices between
 * two generations use the older one, and earlier devices use volta's.  Devices
 * of other vendors use hopper's.
 *
 * "NCCL": constants of NCCL 2.30.7, src/graph/tuning.cc and
 * src/transport/nvls.cc. "Vidur": fits over Vidur's kernel-level collective
 * tables (A100 and H100), which are not part of these tables.
 */
#ifndef SC_COST_PARAMS_NETWORK_H
#define SC_COST_PARAMS_NETWORK_H

/* Four rows of one formula. */
#define SC_PARAMS_BY_GEN(X, ID, name, unit, v, a, h, b, sd, lo, hi, text) \
    X(ID##_VOLTA, name "_volta", unit, v, sd, lo, hi, text)               \
    X(ID##_AMPERE, name "_ampere", unit, a, sd, lo, hi, text)             \
    X(ID##_HOPPER, name "_hopper", unit, h, sd, lo, hi, text)             \
    X(ID##_BLACKWELL, name "_blackwell", unit, b, sd, lo, hi, text)

/* Inside a node: base + steps * hop + bytes / rate, for each protocol. */
#define SC_PARAMS_NET_NODE(X)                                                 \
    SC_PARAMS_BY_GEN(X, SC_P_LINK, "link_fraction", "fraction", 0.88, 0.80,   \
                     0.824, 0.78, 0.05, 0.1, 1,                               \
                     "rate of the Simple protocol over the nominal port "     \
                     "rate; centre: NCCL's link constants 22/25, 20/25, "     \
                     "20.6/25")                                               \
    X(SC_P_PAIR_LOSS, "pair_loss", "fraction", 0.5, 0.3, 0.01, 1,             \
      "a switch ring of n loses this / n^2: few channels for few peers; "     \
      "centre: two devices lose an eighth")                                   \
    SC_PARAMS_BY_GEN(X, SC_P_LL128, "ll128_fraction", "fraction", 0.92, 0.92, \
                     0.92, 0.92, 0.3, 0.1, 1,                                 \
                     "rate of LL128 over Simple; centre: NCCL")               \
    SC_PARAMS_BY_GEN(X, SC_P_BASE_LL128, "base_ll128", "s", 30e-6, 30e-6,     \
                     22e-6, 30e-6, 0.4, 1e-6, 2e-4,                           \
                     "fixed time of an LL128 collective; centre: Vidur; "     \
                     "volta as ampere")                                       \
    SC_PARAMS_BY_GEN(X, SC_P_BASE_LL, "base_ll", "s", 8e-6, 12e-6, 6e-6,      \
                     10e-6, 0.3, 1e-6, 1e-4,                                  \
                     "fixed time of an LL collective; centre: NCCL 6.6 us "   \
                     "and Vidur")                                             \
    SC_PARAMS_BY_GEN(X, SC_P_HOP_LL, "hop_ll", "s", 1e-6, 1e-6, 1e-6, 1e-6,   \
                     0.3, 1e-7, 1e-5,                                         \
                     "one step inside the node, LL; centre: Vidur; NCCL "     \
                     "0.6 us")                                                \
    X(SC_P_HOP_LL128, "hop_ll128", "s", 0.8e-6, 0.5, 1e-7, 2e-5,              \
      "same, LL128; centre: Vidur; NCCL 1.9 us")                              \
    X(SC_P_LL_FRACTION, "ll_fraction", "fraction", 0.32, 0.2, 0.1, 0.5,       \
      "rate of LL over Simple; half of its payload are flags; centre: Vidur") \
    SC_PARAMS_BY_GEN(X, SC_P_BASE_SIMPLE, "base_simple", "s", 25e-6, 25e-6,   \
                     20e-6, 25e-6, 0.5, 1e-6, 2e-4,                           \
                     "fixed time of a Simple collective; centre: Vidur; "     \
                     "NCCL 8.4 us")                                           \
    X(SC_P_RING_RAMP, "ring_ramp", "s", 40e-6, 0.5, 1e-7, 1e-3,               \
      "time that a long Simple collective needs to fill its buffers; a "      \
      "message of t seconds adds ramp t / (ramp + t)")                        \
    X(SC_P_GATHER_COPY, "gather_copy", "fraction", 3, 0.5, 0.3, 30,           \
      "rate at which a member copies its own part of an all-gather, over "    \
      "the nominal port rate; centre: twice a send and a receive")            \
    X(SC_P_SCATTER_COPY, "scatter_copy", "fraction", 3, 0.5, 0.3, 30,         \
      "same, of a reduce-scatter")                                            \
    X(SC_P_HOP_SIMPLE, "hop_simple", "s", 5e-6, 0.5, 1e-6, 2e-5,              \
      "one step inside the node, Simple; centre between NCCL's 3.4 us and "   \
      "Vidur's 6.6 us")                                                       \
    X(SC_P_NVLS, "nvls_fraction", "fraction", 0.70, 0.05, 0.1, 1,             \
      "rate of in-switch reduction over the nominal port rate, Hopper; "      \
      "centre: NCCL 0.85 * 20.6/25")                                          \
    X(SC_P_NVLS_BLACKWELL, "nvls_fraction_blackwell", "fraction", 0.58, 0.05, \
      0.1, 1, "same, Blackwell; centre: NCCL 0.74 * 40.1/50")                 \
    X(SC_P_NVLS_BASE, "nvls_base", "s", 60e-6, 0.4, 1e-6, 3e-4,               \
      "fixed time of an NVLS collective; NCCL's selector says 25 us, logs "   \
      "about 80")                                                             \
    X(SC_P_NVLS_PIPE, "nvls_pipe", "B", 1e7, 0.5, 1e5, 1e9,                   \
      "bytes per port that fill the pipeline of an NVLS collective; b bytes " \
      "fill b pipe / (b + pipe); centre: 16 channels x 8 heads x 64 KiB")     \
    X(SC_P_NVLS_CHUNK, "nvls_chunk", "B", 5e3, 0.7, 1, 1e6,                   \
      "bytes that one NVLS chunk could carry during its synchronisation, "    \
      "Hopper")                                                               \
    X(SC_P_NVLS_CHUNK_BLACKWELL, "nvls_chunk_blackwell", "B", 1e4, 0.7, 1,    \
      1e6, "same, Blackwell")                                                 \
    X(SC_P_NVLS_CHANNELS, "nvls_channels", "blocks", 16, 0, 1, 64,            \
      "thread blocks of an NVLS collective; NCCL, Hopper")                    \
    X(SC_P_NVLS_CHANNELS_BLACKWELL, "nvls_channels_blackwell", "blocks", 24,  \
      0, 1, 64, "same, Blackwell; NCCL, one node")                            \
    X(SC_P_XGMI, "xgmi_fraction", "fraction", 0.73, 0.05, 0.1, 1,             \
      "rate of a ring or exchange over AMD's links; published rows: MI300X "  \
      "0.71 and 0.75, MI355X 0.67 and 0.76")                                  \
    X(SC_P_PCIE_FRACTION, "pcie_fraction", "fraction", 0.6, 0, 0.1, 1,        \
      "rate of a ring over host links; published all-reduce logs of PCIe "    \
      "nodes reach 55 to 65 % of the nominal rate")                           \
    X(SC_P_PCIE_HOP, "pcie_hop", "factor", 1.67, 0, 1, 10,                    \
      "hop over host links against NVLink; NCCL 5.7/3.4, 1/0.6")

/* Between nodes. */
#define SC_PARAMS_NET_NODES(X)                                                 \
    X(SC_P_NET_W, "net_fraction", "fraction", 0.92, 0.03, 0.1, 1,              \
      "usable fraction of the nominal NIC rate of one node; InfiniBand logs "  \
      "at "                                                                    \
      "256 MiB and above")                                                     \
    SC_PARAMS_BY_GEN(                                                          \
        X, SC_P_NET_RING, "net_ring_fraction", "fraction", 1, 1, 1, 0.86, 0,   \
        0.1, 1,                                                                \
        "fraction of net_fraction that rings reach; all-gather logs of 2 x 8 " \
        "H100 and "                                                            \
        "H200 show none of a loss, of two B200 pairs (InfiniBand "             \
        "and RoCE) 0.84 and 0.89")                                             \
    X(SC_P_NET_TREE, "net_tree_fraction", "fraction", 0.52, 0, 0.1, 1,         \
      "the same for trees: over two nodes no faster than the ring, as steps "  \
      "with tensor parallelism over two nodes of A100 show; logs of 2 to 4 "   \
      "p4d: 0.66")                                                             \
    X(SC_P_NET_PAT, "net_pat_fraction", "fraction", 0.75, 0, 0.1, 1,           \
      "the same for parallel aggregated trees; NCCL")                          \
    X(SC_P_NET_LL, "net_ll_fraction", "fraction", 0.5, 0, 0.1, 0.5,            \
      "the same for LL: 4 of 8 bytes are payload")                             \
    X(SC_P_NET_LL128, "net_ll128_fraction", "fraction", 0.9375, 0, 0.1,        \
      0.9375, "the same for LL128: 120 of 128 bytes")                          \
    SC_PARAMS_BY_GEN(X, SC_P_NET_LL_MAX, "net_ll_max", "B/s", 20e9, 20e9,      \
                     39e9, 39e9, 0, 1e9, 1e11,                                 \
                     "largest bus bandwidth of LL over several nodes; NCCL, "  \
                     "by host generation")                                     \
    X(SC_P_TREE_FRACTION, "tree_fraction", "fraction", 0.92, 0, 0.1, 1,        \
      "in-node rate of a tree over that of a ring; NCCL")                      \
    X(SC_P_TREE_LL128, "tree_ll128_fraction", "fraction", 0.85, 0, 0.1, 1,     \
      "the same for LL128, over tree_fraction; NCCL")                          \
    X(SC_P_NVLS_TREE, "nvls_tree_fraction", "fraction", 0.95, 0.1, 0.1, 1,     \
      "rate of the in-switch part of an NVLS tree over that of NVLS")          \
    X(SC_P_NVLS_TREE_BASE, "nvls_tree_base", "s", 25e-6, 0, 0, 1e-3,           \
      "added to nvls_base by an NVLS tree; NCCL")                              \
    X(SC_P_XTREE_LL, "net_tree_ll", "s", 5e-6, 0, 0, 1e-3,                     \
      "one step between nodes of a tree, LL, on top of the network's "         \
      "latency; NCCL")                                                         \
    X(SC_P_XTREE_LL128, "net_tree_ll128", "s", 8.5e-6, 0, 0, 1e-3,             \
      "same, LL128; NCCL")                                                     \
    X(SC_P_XTREE_SIMPLE, "net_tree_simple", "s", 14e-6, 0, 0, 1e-3,            \
      "same, Simple; NCCL")                                                    \
    X(SC_P_XTREE_NVLS, "net_tree_nvls", "s", 18e-6, 0, 0, 1e-3,                \
      "same, NVLS tree; NCCL")                                                 \
    X(SC_P_NET_RAMP, "net_ramp", "s", 45e-6, 0.5, 1e-7, 1e-2,                  \
      "as ring_ramp, between nodes; all-gather logs of 2 x 8 H200 and B200 "   \
      "and all-reduce logs of 2 x 8 H100 and H200: 40 to 80 us")               \
    X(SC_P_XCOLLNET, "net_collnet", "s", 31e-6, 0, 0, 1e-3,                    \
      "one way to the network's reducing switches; NCCL")                      \
    X(SC_P_XRING_LL, "net_ring_ll", "s", 2.7e-6, 0.5, 1e-7, 1e-3,              \
      "one step between nodes of a ring, LL, on top of the network's "         \
      "latency; NCCL")                                                         \
    X(SC_P_XRING_LL128, "net_ring_ll128", "s", 4e-6, 0, 0, 1e-3,               \
      "same, LL128; NCCL")                                                     \
    X(SC_P_NET_LL128_BASE, "net_ll128_base", "s", 20e-6, 0.7, 1e-7, 1e-3,      \
      "added by an LL128 collective over several nodes, whose proxies check "  \
      "the flags of each line; NCCL's table has no such term")                 \
    X(SC_P_NET_RCCL_STEP, "net_rccl_step", "s", 5e-6, 0.7, 1e-7, 1e-3,         \
      "added by RCCL to each step between nodes; a log of 2 x 8 MI355X")       \
    X(SC_P_XRING_SIMPLE, "net_ring_simple", "s", 14e-6, 0, 0, 1e-3,            \
      "same, Simple; NCCL")

/* Kinds of networks, in the order of sc_net_kind (hw/hw.h).  Not fitted: no
 * table has them; each is one class with what is published about it. */
#define SC_PARAMS_BY_NETWORK(X, ID, name, unit, u, ib, roce, efa, tcp, lo, hi, \
                             text)                                             \
    X(ID##_UNKNOWN, name "_unknown", unit, u, 0, lo, hi, text)                 \
    X(ID##_INFINIBAND, name "_infiniband", unit, ib, 0, lo, hi, text)          \
    X(ID##_ROCE, name "_roce", unit, roce, 0, lo, hi, text)                    \
    X(ID##_EFA, name "_efa", unit, efa, 0, lo, hi, text)                       \
    X(ID##_TCP, name "_tcp", unit, tcp, 0, lo, hi, text)

#define SC_PARAMS_NET_KINDS(X)                                                 \
    SC_PARAMS_BY_NETWORK(                                                      \
        X, SC_P_FABRIC_STEP, "fabric_step", "s", 5e-6, 0, 5e-6, 90e-6, 110e-6, \
        0, 1e-2,                                                               \
        "added to each step between nodes of a Simple collective; two-node "   \
        "logs of EFA (p5) and GPUDirect-TCPXO (a3-mega)")                      \
    X(SC_P_FABRIC_STEP_SMALL, "fabric_step_small", "fraction", 0.3, 0, 0, 1,   \
      "fraction of fabric_step that LL, LL128 and point to point pay; a log "  \
      "of 2 x 8 H100 over GPUDirect-TCPX starts at 130 us")                    \
    SC_PARAMS_BY_NETWORK(                                                      \
        X, SC_P_FABRIC_FLOWS, "fabric_flows", "flows", 250, 2000, 30, 100, 50, \
        1, 1e6,                                                                \
        "flows that share a link above the leaves: the busiest of L leaves "   \
        "carries 1 + sqrt(2 ln(L) / flows) of the mean; adaptive routing "     \
        "leaves 2 to 5 %, hashed Ethernet 20 to 40 % (Gangidi et al., RDMA "   \
        "over Ethernet for Distributed AI Training at Meta Scale, SIGCOMM "    \
        "2024)")                                                               \
    X(SC_P_FABRIC_LEAF, "fabric_leaf", "nodes", 32, 0, 1, 1e6,                 \
      "nodes under one leaf, or set of rails, where none is given; half of "   \
      "a switch of 64 ports")

/* Point to point, all-to-all, and the blocks collectives occupy. */
#define SC_PARAMS_NET_P2P(X)                                                   \
    X(SC_P_P2P_FRACTION, "p2p_fraction", "fraction", 0.75, 0.05, 0.1, 1,       \
      "rate of one transfer over the nominal port rate inside a node; Vidur "  \
      "send_recv, all-to-all logs: 0.94 of NCCL's link constants")             \
    X(SC_P_P2P_T0, "p2p_t0", "s", 7e-6, 0, 0, 1e-3,                            \
      "time of a tiny transfer inside a node; Vidur 5.5 to 8.7 us")            \
    X(SC_P_P2P_T1, "p2p_t1", "s", 13e-6, 0, 0, 1e-3,                           \
      "same at 64 KiB, without bandwidth; Vidur 9 to 17 us")                   \
    SC_PARAMS_BY_GEN(X, SC_P_A2A_BASE, "all_to_all_base", "s", 10e-6, 10e-6,   \
                     8e-6, 10e-6, 0.5, 1e-6, 1e-4,                             \
                     "time of a tiny all-to-all inside a node; centre: "       \
                     "p2p_t0 and its launch")                                  \
    SC_PARAMS_BY_GEN(X, SC_P_A2A_COPY, "all_to_all_copy", "fraction", 1.5,     \
                     1.5, 1.5, 1.5, 0.7, 0.1, 30,                              \
                     "rate at which a member copies its own part of an "       \
                     "all-to-all, over the nominal port rate; centre: a "      \
                     "send and a receive")                                     \
    X(SC_P_A2A_RAMP, "all_to_all_ramp", "s", 35e-6, 0.5, 1e-7, 1e-3,           \
      "as ring_ramp, of an all-to-all")                                        \
    X(SC_P_P2P_NET_T0, "p2p_net_t0", "s", 16.5e-6, 0, 0, 1e-3,                 \
      "as p2p_t0, between nodes; Vidur 16 to 17 us")                           \
    X(SC_P_P2P_NET_T1, "p2p_net_t1", "s", 41e-6, 0, 0, 1e-3,                   \
      "as p2p_t1, between nodes; Vidur 27 to 62 us")                           \
    X(SC_P_A2A_NET, "all_to_all_net_fraction", "fraction", 0.55, 0.1, 0.1, 1,  \
      "usable fraction of the nominal NIC rate in an all-to-all, NCCL; logs "  \
      "of 16 B200 show 0.45, of 128 GB300 0.48, and 0.74 with more channels "  \
      "per peer than is usual")                                                \
    X(SC_P_A2A_NET_BASE, "all_to_all_net_base", "s", 17e-6, 0.5, 1e-7, 1e-3,   \
      "added to p2p_net_t0 by an all-to-all; logs of 16 B200 and MI355X "      \
      "start at 37 us")                                                        \
    X(SC_P_A2A_NET_RCCL, "all_to_all_net_fraction_rccl", "fraction", 0.9, 0.1, \
      0.1, 1, "same, RCCL; logs of MI350 and MI355X show 0.97, 0.93, 0.78")    \
    SC_PARAMS_BY_GEN(X, SC_P_CHANNELS, "channels", "blocks", 12, 24, 24, 32,   \
                     0, 1, 64,                                                 \
                     "thread blocks of a large ring or tree; NCCL's logs of "  \
                     "full nodes")                                             \
    X(SC_P_P2P_CHANNELS, "p2p_channels", "blocks", 32, 0, 1, 64,               \
      "thread blocks of a large transfer or all-to-all; NCCL")

/* Half-widths of 80 % intervals, as factors; from leaving devices and sizes
 * out. */
#define SC_PARAMS_NET_INTERVAL(X)                                             \
    X(SC_P_INTERVAL_LARGE, "interval_large", "factor", 1.16, 0, 1, 10,        \
      "above 1 MiB inside a node; a new generation of devices is 7 to 16 % "  \
      "off when left out of the fit")                                         \
    X(SC_P_INTERVAL_SMALL, "interval_small", "factor", 1.5, 0, 1, 10,         \
      "up to 1 MiB; 13 to 46 % off, noise of the measurements included")      \
    X(SC_P_INTERVAL_NETWORK, "interval_network", "factor", 2, 0, 2, 10,       \
      "between nodes whose network is not calibrated; published all-reduces " \
      "of one nominal rate differ 1.8 times")

/* What a measuring program adds; used by the fit, never by a prediction. */
#define SC_PARAMS_NET_HARNESS(X)                                           \
    X(SC_P_HARNESS_BENCH, "harness_bench", "s", 17e-6, 0.5, 1e-7, 1e-3,    \
      "added by a Python benchmark around one collective")                 \
    X(SC_P_HARNESS_HOST0, "harness_host0", "s", 31e-6, 0.5, 1e-7, 1e-3,    \
      "a single process driving n devices takes at least host0 + n host1 " \
      "per collective")                                                    \
    X(SC_P_HARNESS_HOST1, "harness_host1", "s", 7.2e-6, 0.5, 1e-7, 1e-3,   \
      "see harness_host0")

#define SC_PARAMS_NETWORK(X)  \
    SC_PARAMS_NET_NODE(X)     \
    SC_PARAMS_NET_NODES(X)    \
    SC_PARAMS_NET_KINDS(X)    \
    SC_PARAMS_NET_P2P(X)      \
    SC_PARAMS_NET_INTERVAL(X) \
    SC_PARAMS_NET_HARNESS(X)
#endif
