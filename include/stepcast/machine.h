/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - a cluster: its devices, the tiers of its network, its links.
 *
 * What a job's option "cluster" names.  A job reads it by itself; this is for
 * programs that ask about the machine, or run graphs of their own on it.
 */
#ifndef STEPCAST_MACHINE_H
#define STEPCAST_MACHINE_H

#include <stepcast/stepcast.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stepcast_machine stepcast_machine;

/* "dgx-h100:16" (nodes of the catalogue), "h100-sxm:16" (devices in their usual
 * nodes), a file "cluster.yml", or one line: "ring4@300GB/s,50ns x
 * switch4@50GB/s,1us; device=h100-sxm".  NULL: `errors` says why. */
STEPCAST_API stepcast_machine *stepcast_machine_new(const char *spec,
                                                    stepcast_errors *errors);
STEPCAST_API void stepcast_machine_free(stepcast_machine *machine);

typedef struct stepcast_machine_info {
    size_t size;
    const char *name;   /* the name that the caller gave */
    const char *device; /* "h100-sxm"; where nodes differ, the least of them;
                           NULL: none is named */
    uint32_t devices;   /* of the machine */
    uint32_t nodes;     /* scale-up domains: servers, or racks of NVL72 */
    uint32_t devices_per_node;
    uint32_t tiers;          /* of the network, see stepcast_machine_tier() */
    uint64_t links;          /* directed, see stepcast_machine_link() */
    double memory_bytes;     /* of a device; NaN: no device is named */
    double memory_bandwidth; /* bytes/s of a device */
    double power_w;          /* of a device, its limit; 0: not known */
} stepcast_machine_info;

/* STEPCAST_USAGE: `out->size` is not set. */
STEPCAST_API stepcast_status stepcast_machine_get(
    const stepcast_machine *machine, stepcast_machine_info *out);

/* FLOP/s of a device at its densest, in "fp32", "tf32", "fp16", "bf16", "fp8",
 * "fp4" or "int8".  0: it has no such unit; NaN: no such format, or no device
 * is named. */
STEPCAST_API double stepcast_machine_peak(const stepcast_machine *machine,
                                          const char *precision);

typedef struct stepcast_tier {
    size_t size;
    const char *kind; /* "switch", "ring" ... */
    uint32_t members; /* devices of a node, nodes of the machine ... */
    double bandwidth; /* bytes/s of a device, in one direction */
    double latency_s; /* of one hop */
} stepcast_tier;

/* Tier `i` of the network, 0 the innermost.  STEPCAST_USAGE: there is none, or
 * `out->size` is not set. */
STEPCAST_API stepcast_status stepcast_machine_tier(
    const stepcast_machine *machine, uint32_t i, stepcast_tier *out);

typedef struct stepcast_link {
    size_t size;
    double bandwidth; /* bytes/s, in its direction */
    double latency_s; /* that it adds to a message */
} stepcast_link;

/* Link `i`, 0 <= i < links.  Its name, cut to what there is room for, goes to
 * `name`[name_size]; both may be NULL and 0.  STEPCAST_USAGE: there is none, or
 * `out->size` is not set. */
STEPCAST_API stepcast_status
stepcast_machine_link(const stepcast_machine *machine, uint64_t i,
                      stepcast_link *out, char *name, size_t name_size);

/* The links from device `from` to device `to`, in the order passed: writes up
 * to `capacity` of them to `links`, and returns how many there are.  0: it is
 * the same device, or there is no such device. */
STEPCAST_API uint32_t stepcast_machine_route(const stepcast_machine *machine,
                                             uint32_t from, uint32_t to,
                                             uint64_t *links,
                                             uint32_t capacity);

#ifdef __cplusplus
}
#endif
#endif
