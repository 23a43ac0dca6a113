/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_parts.h - parts of a machine outside its devices: how many there are, and
 * what the network between nodes draws.
 */
#ifndef SC_HW_PARTS_H
#define SC_HW_PARTS_H

#include "hw/hw.h"

/* A switch has `ports` ports. Links go from adapters to leaf switches, from
 * there to spines if there are several leaves, and to cores if there are several
 * pods, by the machine's oversubscription. A dragonfly has as many links between
 * its switches as a tree with one tier of spines. */
typedef struct sc_hw_parts {
    double hosts, adapters, switches, links;
} sc_hw_parts;

sc_hw_parts sc_hw_count_parts(const sc_hw *hw, uint32_t ports);

/* Parts of one rate; those of other rates draw in proportion. */
typedef struct sc_part_power {
    double rate; /* bytes/s of a port, one direction */
    double adapter_w, switch_w, link_w;
    uint32_t switch_ports;
} sc_part_power;

/* Reads the text of a file like data/hw/network.yml into out[0..n). */
sc_status sc_part_power_read(const char *text, size_t len, const char *file,
                             sc_arena *a, const sc_part_power **out,
                             uint32_t *n, sc_err *err);

#endif
