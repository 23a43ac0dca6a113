/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_partition.h - parts of a machine on which jobs run side by side.
 *
 * A machine is divided into units: nodes if a network joins them, else devices.
 * The ranks of a job are the devices of its units, in their order.
 */
#ifndef SC_HW_PARTITION_H
#define SC_HW_PARTITION_H

#include "hw/hw.h"

/* Ownership: the arena of the call. */
typedef struct sc_hw_part {
    const sc_hw *hw; /* the units alone, as if they were next to each other
                        from the first one of the machine */
    /* The same for prices, if what crosses the links above the leaves is
     * computed: not oversubscribed, with as many nodes under a leaf as the
     * fullest leaf of the machine has. */
    const sc_hw *apart;
    uint32_t *device; /* [hw->n_devices] devices of the machine */
} sc_hw_part;

/* Number of units, and their name: "node" or "device". */
uint32_t sc_hw_units(const sc_hw *hw);
const char *sc_hw_unit_name(const sc_hw *hw);
/* Units under one leaf switch; all of them if there is only one. */
uint32_t sc_hw_leaf_units(const sc_hw *hw);

/* The part of distinct units `unit` [n] below sc_hw_units(), n >= 1.  Errors at
 * `pos`, SC_C_UNSUPPORTED: nodes of several kinds; devices that fill no box of a
 * torus or mesh; a part of a cube mesh. */
sc_status sc_hw_part_of(const sc_hw *hw, const uint32_t *unit, uint32_t n,
                        sc_pos pos, sc_arena *a, sc_hw_part *out, sc_err *err);

#endif
