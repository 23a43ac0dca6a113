/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_params.h - every number that is neither a datasheet value nor a byte
 * count.  X(enumerator, name, unit, centre, sd, lo, hi, meaning and source);
 * see cost.h.
 */
#ifndef SC_COST_PARAMS_H
#define SC_COST_PARAMS_H

#include "cost/cost_params_network.h" /* SC_PARAMS_NETWORK */

/* clang-format off */

/* Kernel constants: fixed. */
#define SC_PARAMS_KERNEL(X)                                                    \
    X(SC_P_GEMM_K0, "gemm_k0", "elements", 72, 0, 0, 1000,                     \
      "prologue of a GEMM tile as extra depth, at the rate of one A100 SM; "   \
      "fit on Vidur's A100 FP16 GEMM table, 5.8 % mean error")                 \
    X(SC_P_LAUNCH, "kernel_launch", "s", 3.65e-6, 0, 0, 1e-3,                  \
      "start-up of one kernel on the device; same fit")                        \
    X(SC_P_MEM_EFF, "memory_efficiency", "fraction", 0.84, 0, 0.1, 1,          \
      "fraction of the datasheet's memory bandwidth that streaming kernels "   \
      "reach; median of Vidur's `add` rows 0.839")                             \
    X(SC_P_TILE_SMALL, "gemm_tile_small", "fraction", 0.974, 0, 0.1, 1,        \
      "rate of a 128x128 tile over that of 256x128; same fit as gemm_k0")      \
    X(SC_P_GEMM_ODD, "gemm_unaligned", "factor", 2.13, 0, 1, 10,               \
      "slowdown of a 16-bit GEMM whose rows start at odd elements; fit on "    \
      "vTrain's single-device profile (odd vocabulary shards)")                \
    X(SC_P_FLASH2_AMPERE, "flash2_ampere", "fraction", 0.62, 0, 0.05, 1,       \
      "FlashAttention 2 forward rate over the dense peak, head dim 128; Dao "  \
      "2023, figure 5: 190 to 200 of 312 TFLOP/s with the causal mask")        \
    X(SC_P_POWER_HOPPER, "power_hopper", "exponent", 0.353, 0, 0, 1,           \
      "rate ~ (board power / 700 W)^p; 500 W boards of torchtitan beside "     \
      "700 W boards; "                                                         \
      "fitted elsewhere on these rows (standard error 27 %)")            \
    X(SC_P_POWER_BLACKWELL, "power_blackwell", "exponent", 0.76, 0, 0, 1,      \
      "rate ~ (board power / 1000 W)^p; "                                      \
      "fitted elsewhere on these rows (standard error 14 %)")            \
    X(SC_P_ULTRA_GEMM, "gemm_ultra", "factor", 1.107, 0, 0.5, 2,               \
      "rate of Blackwell Ultra beyond its power; "                             \
      "fitted elsewhere on these rows (standard error 4 %)")             \
    X(SC_P_ULTRA_ATTN, "attention_ultra", "factor", 1.39, 0, 0.5, 3,           \
      "attention on Blackwell Ultra, whose exponential unit is doubled; "      \
      "fitted elsewhere on these rows (standard error 20 %)")            \
    X(SC_P_FP8_ROW, "fp8_row", "factor", 0.47, 0, 0.1, 1,                      \
      "rate of row-scaled FP8 products over tensor-scaled; torchtitan, "       \
      "fitted elsewhere on these rows (standard error 11 %)")            \
    X(SC_P_FLASH_BWD, "flash_backward", "fraction", 0.75, 0, 0.1, 1,           \
      "backward rate of fused attention over its forward rate; Dao 2023, "     \
      "figures 4 to 6")                                                        \
    X(SC_P_SCAN, "scan_traffic", "B", 68.7, 0, 0, 1000,                        \
      "memory traffic of a Mamba-2 scan and its convolution per element that " \
      "the projection before them makes, forward; 12 x 5.727, fitted "         \
      "elsewhere on these rows (standard error 10 %)")                   \
    X(SC_P_IDLE_POWER, "idle_power", "fraction", 0.35, 0, 0, 1,                \
      "of its power limit that a device draws while it waits, clocks up; "     \
      "assumed")                                                               \
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
    X(SC_P_GEMM_HOPPER_FP8, "gemm_hopper_fp8", "fraction", 0.66, 0.08, 0.2, 1, \
      "same, Hopper FP8; centre: published cuBLAS measurements")               \
    X(SC_P_GEMM_BLACKWELL, "gemm_blackwell", "fraction", 0.70, 0.12, 0.2, 1,   \
      "same, Blackwell BF16, of 2250 TFLOP/s at 1000 W")                       \
    X(SC_P_GEMM_BLACKWELL_FP8, "gemm_blackwell_fp8", "fraction", 0.6, 0.15,    \
      0.2, 1, "same, FP8, of 4500 TFLOP/s")                                    \
    X(SC_P_GEMM_BLACKWELL_MX, "gemm_blackwell_mx", "fraction", 0.55, 0.15,     \
      0.2, 1, "same, MXFP8, of 4500 TFLOP/s")                                  \
    X(SC_P_GEMM_BLACKWELL_FP4, "gemm_blackwell_fp4", "fraction", 0.525, 0,   \
      0.1, 1, "same, NVFP4, of 9000 TFLOP/s (13500 on Ultra); "           \
      "fitted elsewhere on these rows (standard error 11 %)")            \
    X(SC_P_GEMM_OTHER, "gemm_other", "fraction", 0.38, 0, 0.1, 1,              \
      "same, accelerators of other makers and consumer boards; MI300X and "    \
      "L40S submissions to MLPerf, "                                           \
      "fitted elsewhere on these rows")                  \
    X(SC_P_GEMM_TPU, "gemm_tpu", "fraction", 0.53, 0.2, 0.1, 1,                \
      "same, TPU v3 to v5; centre: MLPerf GPT-3 on v5p, "                      \
      "fitted elsewhere on these rows (standard error 6 %)")             \
    X(SC_P_GEMM_TPU6, "gemm_tpu_v6", "fraction", 0.38, 0.3, 0.1, 1,            \
      "same, TPU v6; centre: MLPerf GPT-3 on Trillium, "                       \
      "fitted elsewhere on these rows (standard error 6 %)")             \
    X(SC_P_GROUPED, "grouped_gemm", "fraction", 0.8, 0, 0.2, 1,           \
      "rate of grouped products of experts over that of one product; near "    \
      "0.78, fitted elsewhere on these rows (standard error 11 %)")      \
    X(SC_P_FLASH2_HOPPER, "flash2_hopper", "fraction", 0.36, 0.2, 0.05, 1,     \
      "FlashAttention 2 on Hopper; centre: Shah et al. 2024, figure 5")        \
    X(SC_P_TE2024_HOPPER, "te2024_hopper", "fraction", 0.4325, 0, 0.05, 1,     \
      "fused attention of Transformer Engine in 2024 on Hopper; "              \
      "fitted elsewhere on these rows (standard error 8 %)")             \
    X(SC_P_CUDNN_HOPPER, "cudnn_hopper", "fraction", 0.52, 0, 0.05, 1,      \
      "cuDNN attention on Hopper; centre: Shah et al. 2024, figure 5")         \
    X(SC_P_CUDNN_BLACKWELL, "cudnn_blackwell", "fraction", 0.55, 0.1, 0.05, 1, \
      "same on Blackwell; centre 0.547, standard error 7 %, fitted "    \
      "elsewhere on these rows")                                               \
    X(SC_P_QUANTIZE, "quantize_traffic", "factor", 2, 0.5, 0.2, 10,            \
      "memory passes to scale operands per tensor, in units of 3 bytes per "   \
      "element")                                                               \
    X(SC_P_QUANTIZE_MX, "quantize_traffic_mx", "factor", 1.33, 0, 0.2, 10,     \
      "same, scales per block: 2 bytes read, 1 + 1 written by rows and by "    \
      "columns")                                                \
    X(SC_P_TP_EXPOSED, "tp_exposed", "fraction", 0.3, 0.5, 0.01, 1,            \
      "fraction of tensor-parallel exchanges that shows where the program "    \
      "overlaps them with products")                                           \
    X(SC_P_EP_RATE, "dispatch_rate", "factor", 1.03, 0, 0.1, 1.3,              \
      "rate of token dispatch inside a node over that of an all-to-all "       \
      "alone; DeepEP's README, 2025-02: 153 and 158 GB/s of the 200 of an "    \
      "H800, against p2p_fraction")                                            \
    X(SC_P_EP_ROW, "dispatch_row", "B", 5130, 0.3, 100, 1e5,                   \
      "cost of a copy of a token in a dispatch inside a node beside its "      \
      "bytes; centre fitted elsewhere on these rows")    \
    X(SC_P_EP_NET, "dispatch_net", "fraction", 0.887, 0, 0.1, 1,               \
      "usable fraction of the NIC rate in token dispatch by a library "        \
      "made for it; DeepEP's README, 2025-02: 43, 44, 46 GB/s of 50 between "  \
      "nodes, 16 to 64 ranks")                                                 \
    X(SC_P_EP_EXPOSED, "ep_exposed", "fraction", 0.2186, 0, 0.01, 1,           \
      "fraction of token dispatch that shows where it is overlapped; "         \
      "fitted elsewhere on these rows (standard error 31 %)")            \
    X(SC_P_BMM, "batched_gemm", "fraction", 0.7, 0.3, 0.1, 1,                  \
      "rate of the batched products of unfused attention over that of large "  \
      "GEMMs")                                                                 \
    X(SC_P_FLASH1_AMPERE, "flash1_ampere", "fraction", 0.42, 0.3, 0.05, 1,     \
      "FlashAttention 1 forward rate over the dense peak, Ampere; centre: "    \
      "Dao et al. 2022, figures 5 and 6")                                      \
    X(SC_P_FLASH1_HOPPER, "flash1_hopper", "fraction", 0.25, 0.3, 0.05, 1,     \
      "same kernels on Hopper, which they do not know")                        \
    X(SC_P_HOST_KERNEL, "host_per_kernel", "s", 2.8e-5, 0.2, 1e-6, 2e-4,       \
      "host time to issue one kernel from an eager Python program; centre: "   \
      "4752 us per layer of 150 kernels and 406 us per " \
      "expert of 16")                                                     \
    X(SC_P_EXPERT_BIAS, "expert_bias", "passes", 18.98, 0, 0, 100,             \
      "extra passes of clamps and biases of experts (GPT-OSS) outside of "     \
      "their products, in units of the activation's; "                         \
      "fitted elsewhere on these rows (standard error 10 %)")            \
    X(SC_P_EXPERT_BIAS_FUSED, "expert_bias_fused", "passes", 6.341, 0, 0, 100, \
      "same, where a program fuses the MLP of experts; "                   \
      "fitted elsewhere on these rows (standard error 24 %)")            \
    X(SC_P_STEP_CAPTURED, "step_fixed_captured", "fraction", 0.1, 0, 0, 1,     \
      "of step_fixed, where the whole step is issued at once: the optimizer's "\
      "some hundred launches and the logging are gone, data and clipping "     \
      "stay; assumed")\
    X(SC_P_STRAGGLER, "straggler", "fraction", 0.0022, 0, 0, 0.1,              \
      "extra time per doubling of the devices beyond 8: all wait for the "     \
      "slowest; fitted elsewhere on these rows (standard error 67 %)")   \
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
    X(SC_P_TRAFFIC, "eager_traffic", "factor", 1.2, 0.25, 0.5, 4,              \
      "memory traffic of element-wise operators over the bytes of their "      \
      "operands, in programs that do not fuse them")

/* clang-format on */
#endif
