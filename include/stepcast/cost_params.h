/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_params.h - every number that is neither a datasheet value nor a byte
 * count.  X(enumerator, name, unit, centre, sd, lo, hi, meaning and source);
 * see cost.h.
 */
#ifndef SC_COST_PARAMS_H
#define SC_COST_PARAMS_H

#include <stepcast/cost_params_network.h> /* SC_PARAMS_NETWORK */

/* clang-format off */

/* Kernel constants: fixed. */
#define SC_PARAMS_KERNEL(X)                                                    \
    X(SC_P_GEMM_K0, "gemm_k0", "elements", 72, 0, 0, 1000,                     \
      "prologue of a GEMM tile as extra depth, at the rate of one A100 SM; "   \
      "fit on Vidur's A100 FP16 GEMM table, 5.8 % mean error")                 \
    X(SC_P_LAUNCH, "kernel_launch", "s", 3.65e-6, 0, 0, 1e-3,                  \
      "start-up of one kernel on the device; same fit")                        \
    X(SC_P_MEM_EFF, "memory_efficiency", "fraction", 0.84, 0, 0.1, 1,          \
      "share of the datasheet's memory bandwidth that streaming kernels "      \
      "reach; median of Vidur's `add` rows 0.839")                             \
    X(SC_P_TILE_SMALL, "gemm_tile_small", "fraction", 0.974, 0, 0.1, 1,        \
      "rate of a 128x128 tile over that of 256x128; same fit as gemm_k0")      \
    X(SC_P_GEMM_ODD, "gemm_unaligned", "factor", 2.13, 0, 1, 10,               \
      "slowdown of a 16-bit GEMM whose rows start at odd elements; fit on "    \
      "vTrain's single-device profile (odd vocabulary shards)")                \
    X(SC_P_FLASH2_AMPERE, "flash2_ampere", "fraction", 0.62, 0, 0.05, 1,       \
      "FlashAttention 2 forward rate over the dense peak, head dim 128; Dao "  \
      "2023, figure 5: 190 to 200 of 312 TFLOP/s with the causal mask")        \
    X(SC_P_FLASH2_HOPPER, "flash2_hopper", "fraction", 0.36, 0, 0.05, 1,       \
      "same on Hopper; Shah et al. 2024, figure 5: 350 of 989 TFLOP/s")        \
    X(SC_P_CUDNN_AMPERE, "cudnn_ampere", "fraction", 0.62, 0, 0.05, 1,         \
      "cuDNN fused attention; as flash2_ampere")                               \
    X(SC_P_CUDNN_HOPPER, "cudnn_hopper", "fraction", 0.52, 0, 0.05, 1,         \
      "cuDNN fused attention on Hopper; Shah et al. 2024, figure 5: about "    \
      "520 of 989 TFLOP/s")                                                    \
    X(SC_P_FLASH_BWD, "flash_backward", "fraction", 0.75, 0, 0.1, 1,           \
      "backward rate of fused attention over its forward rate; Dao 2023, "     \
      "figures 4 to 6")                                                        \
    X(SC_P_HOST_POWER, "norm_exponent", "-", 4, 0, 1, 16,                      \
      "exponent p of (host^p + device^p)^(1/p), the time of a layer whose "    \
      "kernels are issued while others run")

/* Fitted on measured training steps (data/validation). */
#define SC_PARAMS_STEP(X)                                                      \
    X(SC_P_GEMM_AMPERE, "gemm_ampere", "fraction", 0.776, 0.05, 0.3, 1,        \
      "large-tile GEMM rate over the dense peak, Ampere and Volta; centre: "   \
      "Vidur's A100 kernel table alone")                                       \
    X(SC_P_GEMM_HOPPER, "gemm_hopper", "fraction", 0.72, 0.08, 0.3, 1,         \
      "same, Hopper; centre: published cuBLAS measurements")                   \
    X(SC_P_BMM, "batched_gemm", "fraction", 0.7, 0.3, 0.1, 1,                  \
      "rate of the batched products of unfused attention over that of large "  \
      "GEMMs")                                                                 \
    X(SC_P_FLASH1_AMPERE, "flash1_ampere", "fraction", 0.42, 0.3, 0.05, 1,     \
      "FlashAttention 1 forward rate over the dense peak, Ampere; centre: "    \
      "Dao et al. 2022, figures 5 and 6")                                      \
    X(SC_P_FLASH1_HOPPER, "flash1_hopper", "fraction", 0.25, 0.3, 0.05, 1,     \
      "same kernels on Hopper, which they do not know")                        \
    X(SC_P_HOST_KERNEL, "host_per_kernel", "s", 2.0e-5, 0.5, 1e-6, 2e-4,       \
      "host time to issue one kernel from an eager Python program")            \
    X(SC_P_BLOCKING, "launch_blocking", "s", 2.5e-5, 0.5, 1e-6, 3e-4,          \
      "idle of the device after each kernel with CUDA_LAUNCH_BLOCKING=1: one " \
      "synchronisation and one issue")                                         \
    X(SC_P_NUMA, "numa_unbound", "fraction", 0.04, 0.6, 0.001, 0.5,            \
      "extra time of a step whose processes are not bound to their GPU's "     \
      "NUMA node; centre: BigScience chronicle, 1 to 5 %")                     \
    X(SC_P_GRAD_NET, "grad_exchange", "fraction", 0.6, 0.4, 0.05, 1,           \
      "rate of a gradient exchange after the backward pass over that of the "  \
      "collective alone, one member per node (each on its own rail): "         \
      "flattening, copies, skew between replicas")                             \
    X(SC_P_GRAD_MIXED, "grad_exchange_mixed", "fraction", 0.4, 0.4, 0.05, 1,   \
      "same, several members per node: rings enter and leave a node through "  \
      "several NICs")                                                          \
    X(SC_P_STEP_FIXED, "step_fixed", "s", 0.05, 0.7, 0.001, 1,                 \
      "per step: data, clipping, loss scale, logging, launch")                 \
    X(SC_P_OVERLAP, "overlap_slowdown", "fraction", 0.189, 0, 0.01, 2,         \
      "extra time per time in which compute and communication overlap; "       \
      "arXiv 2507.03114: 18.9 % mean over A100, H100, MI210, MI250")                   \
    X(SC_P_TRAFFIC, "eager_traffic", "factor", 1.2, 0.25, 0.5, 4,              \
      "memory traffic of element-wise operators over the bytes of their "      \
      "operands, in programs that do not fuse them")

/* clang-format on */
#endif
