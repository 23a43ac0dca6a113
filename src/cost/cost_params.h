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
    X(SC_P_LAUNCH, "kernel_launch", "s", 3.65e-6, 0, 0, 1e-3,                  \
      "start-up of one kernel on the device; fit on Vidur's A100 FP16 GEMM "   \
      "table, 5.8 % mean error")                                               \
    X(SC_P_MEM_EFF, "memory_efficiency", "fraction", 0.84, 0, 0.1, 1,          \
      "fraction of the datasheet's memory bandwidth that streaming kernels "   \
      "reach; median of Vidur's `add` rows 0.839")                             \
    X(SC_P_GEMM_ODD, "gemm_unaligned", "factor", 2.13, 0, 1, 10,               \
      "slowdown of a 16-bit GEMM whose rows start at odd elements; fit on "    \
      "vTrain's single-device profile (odd vocabulary shards)")                \
    X(SC_P_FLASH_BWD, "flash_backward", "fraction", 0.75, 0, 0.1, 1,           \
      "backward rate of fused attention over its forward rate; Dao 2023, "     \
      "figures 4 to 6")                                                        \
    X(SC_P_IDLE_POWER, "idle_power", "fraction", 0.35, 0, 0, 1,                \
      "of its power limit that a device draws while it waits, clocks up; "     \
      "assumed")                                                               \
    X(SC_P_EXCHANGE_POWER, "exchange_power", "fraction", 0.75, 0, 0, 1,        \
      "of its power limit that a device draws while it only moves data; "      \
      "assumed between waiting and computing: nodes of 8 H100 draw 5 % more "  \
      "in DLRM, which exchanges for a third of its step, than in BERT "        \
      "(power.csv)")                                                           \
    X(SC_P_MATRIX_POWER, "matrix_power", "fraction", 0.5, 0, 0, 1,             \
      "of what a chip draws because of its clock while it computes products, "  \
      "the part that its matrix units draw; assumed")                          \
    X(SC_P_HOST_WATTS, "host_power", "fraction", 0.31, 0, 0, 1,                \
      "power of a node without its devices over what its datasheet's "         \
      "maximum leaves for it; power.csv, measured node power less the "        \
      "devices': 0.31 with 8 H100 (28 rows), 0.31 with 8 B200 (8 rows)")       \
    X(SC_P_HOST_POWER, "norm_exponent", "-", 4, 0, 1, 16,                      \
      "exponent p of (host^p + device^p)^(1/p), the time of a layer whose "    \
      "kernels are issued while others run")

/* Fitted on measured training steps (data/validation). */
#define SC_PARAMS_STEP(X)                                                      \
    X(SC_P_NET_STAGED, "net_staged", "B/s", 12.5e9, 0.5, 1e9, 1e11,            \
      "rate of one adapter if a ring or tree reaches it through the host's "   \
      "memory; centre: half of the 25 GB/s of an x16 link of PCIe 4.0, which " \
      "each byte crosses twice")                                               \
    X(SC_P_SUSTAINED_AMPERE, "sustained_ampere", "factor", 0.95, 0.06, 0.6,    \
      1.1, "rate of the matrix units in a training step over that in tables "  \
      "of kernels (burst clocks, products alone), Ampere and before; "         \
      "centre: power limits are seldom reached")                               \
    X(SC_P_SUSTAINED_HOPPER, "sustained_hopper", "factor", 0.88, 0.08, 0.6,    \
      1.1, "same, Hopper at 700 W; centre: clocks under sustained products "   \
      "of 1.4 to 1.75 of 1.83 GHz (He 2024, `Strangely, Matrix "               \
      "Multiplications on GPUs Run Faster When Given Predictable Data`)")      \
    X(SC_P_SUSTAINED_BLACKWELL, "sustained_blackwell", "factor", 0.88, 0.1,    \
      0.5, 1.2, "same, Blackwell at 1000 W; centre as Hopper")                 \
    X(SC_P_SUSTAINED_ADA, "sustained_ada", "factor", 0.85, 0.15, 0.3, 1.2,     \
      "same, boards for graphics and inference")                               \
    X(SC_P_SUSTAINED_CDNA, "sustained_cdna", "factor", 0.65, 0.3, 0.2, 1.2,    \
      "same, CDNA; no table of its kernels in low precision exists, so it "    \
      "also has what its libraries do not reach; centre: published "           \
      "hipBLASLt rates of MI300X, 0.45 to 0.55 of the peak")                   \
    X(SC_P_SUSTAINED_GAUDI, "sustained_gaudi", "factor", 0.8, 0, 0.2, 1.2,     \
      "same, Gaudi and other accelerators without rows; assumed")              \
    X(SC_P_SUSTAINED_TPU, "sustained_tpu", "factor", 1.15, 0.1, 0.2, 1.5,      \
      "same, TPUs, with all that XLA's products do not reach; centre: gives "  \
      "the 120 TFLOP/s that MaxText's README states for 16 billion "           \
      "parameters on 256 v5e (6 samples per chip, all recomputed)")            \
    X(SC_P_SUSTAINED_TPU6, "sustained_tpu_v6", "factor", 0.86, 0.1, 0.2, 1.5,  \
      "that of TPU v6 and v7 over that of v3 to v5; centre: Google states "    \
      "4 times v5e's training rate at 4.66 times its peak")                    \
    X(SC_P_TPU_INT8, "tpu_int8", "factor", 0.65, 0.25, 0.2, 1.2,               \
      "rate of 8-bit products of TPUs over their peak, against that of "       \
      "16-bit products over theirs; centre: between the 1 of units that only " \
      "multiply and the 0.5 of programs that also cast both operands (AQT)")   \
    X(SC_P_POWER_HOPPER, "power_hopper", "exponent", 0.4, 0.3, 0.05, 1,        \
      "sustained rate ~ (board power / 700 W)^p; centre: dynamic power grows " \
      "with the cube of the clock, and about a third of the power is not "     \
      "dynamic")                                                               \
    X(SC_P_POWER_BLACKWELL, "power_blackwell", "exponent", 0.5, 0.3, 0.05, 1,  \
      "sustained rate ~ (board power / 1000 W)^p; centre as Hopper")           \
    X(SC_P_ULTRA_GEMM, "gemm_ultra", "factor", 1.05, 0.06, 0.5, 2,             \
      "sustained rate of Blackwell Ultra beyond its power")                    \
    X(SC_P_FP8_ROW, "fp8_row", "factor", 0.6, 0.25, 0.1, 1,                    \
      "rate of row-scaled FP8 products over tensor-scaled, from CUTLASS "      \
      "kernels of PyTorch against cuBLASLt's")                                 \
    X(SC_P_MXFP8, "mxfp8_products", "factor", 0.951, 0, 0.1, 1.2,              \
      "rate of MXFP8 products over tensor-scaled; Transformer Engine's "       \
      "docs/examples/gemm_profiling, B300, operands cast before: 7.161 "       \
      "against 6.812 ms")                                                      \
    X(SC_P_FP4_LIBRARY, "fp4_products", "factor", 1.3, 0, 0.5, 2,              \
      "rate of FP4 products in training programs (cuBLASLt) over those of "    \
      "TensorRT-LLM, which the table has; centre: 1.81 times those of FP8 "    \
      "(Transformer Engine's docs/examples/gemm_profiling, B300: 3.764 "       \
      "against 6.812 ms), in the table 1.39 (median of B200 and GB200, all "   \
      "sizes 4096 and more)")                                                  \
    X(SC_P_FLASH2_HOPPER, "flash2_hopper", "factor", 0.58, 0.12, 0.05, 1,      \
      "rate of FlashAttention 2 on Hopper over that of FlashAttention 3; "     \
      "Shah et al. 2024, figure 5: 350 to 370 of 600 to 640 TFLOP/s")          \
    X(SC_P_TE2024_HOPPER, "te2024_hopper", "factor", 0.8, 0.15, 0.05, 1,       \
      "same, fused attention of Transformer Engine in 2024 (cuDNN 8.9 and "    \
      "9.0); Shah et al. 2024, figure 5: 480 to 560 TFLOP/s")                  \
    X(SC_P_FLASH1_AMPERE, "flash1_ampere", "factor", 0.65, 0.2, 0.05, 1,       \
      "rate of FlashAttention 1 (Triton) over FlashAttention 2, Ampere; Dao "  \
      "2023, figure 5: about 1.5 to 2 times slower")                           \
    X(SC_P_FLASH1_HOPPER, "flash1_hopper", "factor", 0.35, 0.25, 0.05, 1,      \
      "same kernels on Hopper, which they do not know, over FlashAttention 3") \
    X(SC_P_SCAN, "scan_traffic", "B", 60, 0.3, 1, 1000,                        \
      "memory traffic of a Mamba-2 scan and its convolution per element that " \
      "the projection before them makes, forward; centre: five passes of the " \
      "chunked algorithm over inputs, gates and states of 4 and 2 bytes (Dao " \
      "and Gu 2024, section 7)")                                               \
    X(SC_P_GROUPED, "grouped_gemm", "fraction", 0.8, 0, 0.2, 1,                \
      "rate of grouped products of experts over that of one product, of "      \
      "classes without a table of grouped products; assumed")                  \
    X(SC_P_EP_RATE, "dispatch_rate", "factor", 1.03, 0, 0.1, 1.3,              \
      "rate of token dispatch inside a node over that of an all-to-all "       \
      "alone; DeepEP's README, 2025-02: 153 and 158 GB/s of the 200 of an "    \
      "H800, against p2p_fraction")                                            \
    X(SC_P_EP_ROW, "dispatch_row", "B", 4096, 0.4, 100, 1e5,                   \
      "cost of a copy of a token in a dispatch inside a node beside its "      \
      "bytes; centre: a quarter of a token of 7168 x 2 bytes, from DeepEP's "  \
      "README against the bytes it moves")                                     \
    X(SC_P_EP_NET, "dispatch_net", "fraction", 0.887, 0, 0.1, 1,               \
      "usable fraction of the NIC rate in token dispatch by a library "        \
      "made for it; DeepEP's README, 2025-02: 43, 44, 46 GB/s of 50 between "  \
      "nodes, 16 to 64 ranks")                                                 \
    X(SC_P_BMM, "batched_gemm", "fraction", 0.7, 0, 0.1, 1,                    \
      "rate of the batched products of unfused attention over that of large "  \
      "GEMMs; assumed: measured steps hardly depend on it")                     \
    X(SC_P_HOST_KERNEL, "host_per_kernel", "s", 2.8e-5, 0.5, 1e-6, 2e-4,       \
      "host time to issue one kernel from an eager Python program; centre: "   \
      "4752 us per layer of 150 kernels and 406 us per expert of 16")          \
    X(SC_P_EXPERT_BIAS, "expert_bias", "passes", 15, 0.3, 1, 100,              \
      "extra passes of clamps and biases of experts (GPT-OSS) outside of "     \
      "their products, in units of the activation's; centre: counted in "      \
      "Megatron-Core's unfused path, forward and backward")                    \
    X(SC_P_EXPERT_BIAS_FUSED, "expert_bias_fused", "passes", 5, 0, 0.5, 100,   \
      "same, where a program fuses the MLP of experts; a third, those of the " \
      "biases alone; assumed")                                                          \
    X(SC_P_STEP_CAPTURED, "step_fixed_captured", "fraction", 0.1, 0, 0, 1,     \
      "of step_fixed, where the whole step is issued at once: the optimizer's "\
      "some hundred launches and the logging are gone, data and clipping "     \
      "stay; assumed")\
    X(SC_P_STEP_AHEAD, "step_fixed_ahead", "fraction", 0.5, 0.5, 0.05, 1,     \
      "of step_fixed, where the host issues a step while the one before runs: "\
      "waiting for norm and loss and refilling the queue are gone, data and "  \
      "the optimizer's own launches stay; centre: half")                          \
    X(SC_P_STRAGGLER, "straggler", "fraction", 0.003, 0, 0, 0.1,              \
      "extra time per doubling of the devices beyond 8: all wait for the "     \
      "slowest; assumed: step times of n independent devices with a spread of "\
      "0.5 % grow so")                                                         \
    X(SC_P_BLOCKING, "launch_blocking", "s", 2.5e-5, 0.5, 1e-6, 3e-4,          \
      "idle of the device after each kernel with CUDA_LAUNCH_BLOCKING=1: one " \
      "synchronisation and one issue")                                         \
    X(SC_P_NUMA, "numa_unbound", "fraction", 0.04, 0.6, 0.001, 0.5,            \
      "extra time of a step whose processes are not bound to their GPU's "     \
      "NUMA node; centre: BigScience chronicle, 1 to 5 %")                     \
    X(SC_P_STEP_FIXED, "step_fixed", "s", 0.05, 0.7, 0.001, 1,                 \
      "per step: data, clipping, loss scale, logging, launch")                 \
    X(SC_P_TRAFFIC, "eager_traffic", "factor", 1.2, 0.25, 1, 4,                \
      "memory traffic of element-wise operators over the bytes of their "      \
      "operands, in programs that do not fuse them")

/* clang-format on */
#endif
