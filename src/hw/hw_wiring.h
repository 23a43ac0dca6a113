/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_wiring.h - a network as a file states it, link by link.
 *
 *   devices: 4            # d0 to d3, or a list of names: rank by rank
 *   switches: [s0, s1]    # or a number: s0, s1, ...
 *   links:
 *     - {from: d0, to: s0, bandwidth: 50GB/s, latency: 500ns}
 *     - {from: s0, to: s1, bandwidth: 100GB/s, latency: 300ns, both: false}
 *
 * A link goes both ways, at the bandwidth each, unless it says `both: false`;
 * the same two ends may have several.  A route passes through as few other
 * devices as can be, and of those ways has the fewest links; where several links
 * go on equally well, each hop draws one of them (ECMP).  What routes need is
 * stored: four bytes for every pair of a device and a vertex.
 *
 * Units: bytes/s in one direction, seconds.  Lives in the arena; immutable.
 */
#ifndef SC_HW_WIRING_H
#define SC_HW_WIRING_H

#include "hw/hw.h"

typedef struct sc_wiring_link {
    uint32_t from, to; /* vertices: devices, then switches */
    double bw, latency_s;
} sc_wiring_link;

#define SC_WIRING_DEVICE 65536u

typedef struct sc_wiring {
    uint32_t n_devices, n_vertices, n_links;
    const char **name; /* [n_vertices] */
    const sc_wiring_link
        *link; /* [n_links], in the order of the file, a way back
                            after its way there */
    /* Links by their first end: out[first[v] .. first[v + 1]). */
    const uint32_t *first, *out;
    /* [n_devices * n_vertices]: from a vertex to a device, links plus
     * SC_WIRING_DEVICE for each device passed through,
     * way[device * n_vertices + vertex] */
    const uint32_t *way;
    uint64_t hash;
} sc_wiring;

/* Reads a text of YAML or JSON.  Errors: located; among them two devices that
 * no links join, and more than 2^24 pairs of device and vertex. */
sc_status sc_wiring_read(const char *text, size_t len, const char *file,
                         sc_arena *a, const sc_wiring **out, sc_err *err);

/* As sc_hw_route(). */
uint32_t sc_wiring_route(const sc_wiring *w, uint32_t src, uint32_t dst,
                         uint64_t seed, uint64_t *links, uint32_t cap);
#endif
