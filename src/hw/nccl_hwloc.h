/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_hwloc.h - shared by the two files that read hwloc's XML of a node. */
#ifndef HW_NCCL_HWLOC_H
#define HW_NCCL_HWLOC_H

#include "hw/nccl_server.h"
#include "hw/nccl_xml.h"

typedef struct hw_hwloc_device {
    const hw_xml_node *pci;
    uint64_t id;   /* bus id */
    uint32_t node; /* number of a GPU's node in the graph */
} hw_hwloc_device;

typedef struct hw_hwloc {
    hw_xml doc;
    hw_server x;
    int major; /* version of the file */
    uint32_t n_gpus, n_nics;
    hw_hwloc_device *gpu, *nic; /* by bus id */
    sc_arena *arena;
    sc_err *err;
    sc_status status; /* status of the first error; reading continues */
} hw_hwloc;

void hw_hwloc_note(hw_hwloc *h, sc_status s);

/* Reads a whole number of at most `most` from an attribute; false after an
 * error. */
bool hw_hwloc_number(hw_hwloc *h, const hw_xml_node *n, const char *key,
                     uint64_t most, uint64_t *out);

/* Class and vendor of a PCIDev; 0 if they can't be read. */
uint32_t hw_hwloc_class(const hw_xml_node *pci, uint32_t *vendor);

/* Reads the matrix "NVLinkBandwidth", if the file has one. */
bool hw_hwloc_nvlinks(hw_hwloc *h);

#endif
