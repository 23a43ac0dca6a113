/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_params_program.h - waits of single programs, and what only their rows
 * show; see cost.h.  A parameter PROFILE.KEY is the value of a key that the
 * profile of data/software/profiles.yml states as `fitted`.  Its centre is the
 * value of programs without such rows, to which it returns in a fit that lacks
 * them.  A default of 0 has no logarithm: there the centre is a time that is
 * short in every step, and the width is large.
 */
#ifndef SC_COST_PARAMS_PROGRAM_H
#define SC_COST_PARAMS_PROGRAM_H

/* clang-format off */

/* Fitted on measured steps of the programs with fitted keys, of those alone. */
#define SC_PARAMS_PROGRAM(X)                                                   \
    X(SC_P_EFA_RING, "efa_ring_step", "s", 90e-6, 1, 0, 1e-2,                  \
      "added to each step between nodes of a ring over EFA, as fabric_step to " \
      "the steps of trees; centre: that of trees over EFA; its rows are "      \
      "exchanges of tensor parallelism over several nodes")                    \
    X(SC_P_NANOTRON_LAUNCH, "nanotron-2025.launch", "s", 2.8e-5, 0.5, 1e-6,    \
      1e-3, "host time of a launch of nanotron; centre: host_per_kernel by the "   \
      "rows of other programs")                                                \
    X(SC_P_NANOTRON_APART, "nanotron-2025.stages_apart", "s", 1e-6, 3, 1e-8,   \
      1e-1, "more host time of nanotron's exchange over TP per member of its " \
      "group, if stages are on different nodes; centre: that of no program "   \
      "is known")                                                              \
    X(SC_P_NANOTRON_WAIT, "nanotron-2025.transfer_wait", "s", 1e-4, 4, 1e-8,   \
      100, "added to nanotron's transfers between stages on different nodes "  \
      "in large jobs; centre: that of no program is known")                    \
    X(SC_P_NANOTRON_FIXED, "nanotron-2025.step_fixed", "s", 0.05, 0.7, 1e-3,   \
      1, "time of a step of nanotron beside kernels and links; centre: that "  \
      "of step_fixed")                                                         \
    X(SC_P_NANOTRON_SLICE, "nanotron-2025-zero1.weight_slice", "s", 1e-6, 3,   \
      1e-8, 1e-3, "host time of nanotron per weight and replica of the "       \
      "slices that ZeRO-1 gathers; centre: that of no program is known")

/* clang-format on */

#endif
