/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.h - the dimensions inside a node. */
#ifndef HW_FABRIC_H
#define HW_FABRIC_H

#include "hw/build.h"

/* The largest number of members of a machine or of one of its sides. */
#define HW_MAX_DEVICES ((uint64_t)1 << 31)

/* Adds the dimensions inside a node to a machine whose device is set. */
sc_status hw_fabric_dims(const hw_spec *s, sc_hw *hw, sc_err *err);

/* Reduces the node to `n` devices with fewer adapters and rails. Of a torus or
 * mesh it takes the most compact part, whose sides replace the shape. */
sc_status hw_resize(hw_spec *s, uint64_t n, sc_arena *a, sc_err *err);

/* The size of a scale-up domain if `n` devices are in hosts of its kind: all of
 * them, or the largest equal part that consists of whole hosts. 0: there is
 * none. */
uint64_t hw_domain(const hw_spec *s, uint64_t n);

#endif
