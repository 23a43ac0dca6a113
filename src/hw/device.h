/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - reads a device of the catalogue. */
#ifndef HW_DEVICE_H
#define HW_DEVICE_H

#include "hw/hw.h"
#include "hw/read.h"

/* A device of the catalogue, or one with factors (hw_device_scaled()). Errors in
 * the name are reported at `pos`. */
sc_status hw_device_find(const char *name, sc_pos pos, sc_arena *a,
                         const sc_device **out, sc_err *err);

/* The length of the name before the factors of "h100-sxm*{peak=1.5,mem_bw=2}";
 * 0: it has none. */
size_t hw_scaled_base(const char *name);
/* Such a device, whose fits are those of the device that is multiplied. */
sc_status hw_device_scaled(const char *name, sc_pos pos, sc_arena *a,
                           const sc_device **out, sc_err *err);

/* Reads a device of the catalogue. */
sc_status hw_device_read(const sc_embedded *file, sc_arena *a,
                         const sc_device **out, sc_err *err);

/* Devices that a cluster file itself describes. */
typedef struct hw_own {
    const sc_device *device;
    const struct hw_own *next;
} hw_own;

/* Reads the mapping `device:` of a cluster file: keys of the catalogue, which
 * replace values of the device that `like` names. */
sc_status hw_device_own(const sc_node *map, hw_values values, sc_arena *a,
                        const sc_device **out, sc_err *err);

/* NULL if no device has this name. */
const sc_device *hw_own_device(const hw_own *own, const char *name);

#endif
