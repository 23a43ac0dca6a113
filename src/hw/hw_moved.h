/* SPDX-License-Identifier: Apache-2.0 */
/* hw_moved.h - a machine one of whose properties has another value. */
#ifndef SC_HW_MOVED_H
#define SC_HW_MOVED_H

#include "hw/hw.h"

typedef enum sc_hw_property {
    SC_HW_PEAK,
    SC_HW_MEM_BW,
    SC_HW_LINK_BW,
    SC_HW_NIC_BW,
    SC_HW_MEMORY,
    SC_HW_HOST_BW,
    SC_HW_LINK_LATENCY,
    SC_HW_NIC_LATENCY,
    SC_HW_OVERSUB, /* at least 1 */
    SC_N_HW_PROPERTIES
} sc_hw_property;

extern const char *const sc_hw_property_names[]; /* "device peak"; NULL ends */

/* The machine with that property times `by`.  Of nodes that differ, only what the
 * whole machine has is changed. */
sc_status sc_hw_moved(const sc_hw *hw, sc_hw_property what, double by,
                      sc_arena *a, const sc_hw **out, sc_err *err);

#endif
